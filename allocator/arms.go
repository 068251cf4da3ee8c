package allocator

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The numbers of the arms.
const (
	Present     = 0 // the configuration that the program has
	Alternative = 1 // the configuration that an experiment compares with it
)

// TurnsMax is how many future turns Arms holds at most.
const TurnsMax = 64

// Arms serves a program from its present configuration and, while an experiment runs, in turn from an alternative. Each
// arm has a pool of its own. The active arm decides; every later call about a block goes to the arm that made it, and a
// block serves no request of the other arm. In addition to the rules of a Pool:
//
//   - Blocks of the waiting arm do not age: its time stands still.
//   - Drain and Trim give up the blocks of the waiting arm first.
//   - The end of an experiment gives up the blocks of the alternative: cached blocks at once, the others when they come
//     back.
//   - Limits, policies and layouts that come during an experiment apply to the present configuration.
type Arms struct {
	pools    [2]*Pool // by arm; both the same until the first experiment
	active   *Pool
	split    bool   // the alternative has blocks, or will have
	running  bool   // an experiment runs
	requests uint64 // that the program has made
	since    int64  // when the waiting arm began to wait, in ns
	turns    []turn // future ones
	both     Stats  // peaks of both arms together
}

// turn says which arm decides from a request on.
type turn struct {
	arm  int
	from uint64
}

// NewArms returns arms that serve a program from a pool, without an experiment.
func NewArms(present *Pool) *Arms {
	return &Arms{pools: [2]*Pool{present, present}, active: present}
}

// PresentPool returns the pool of the present configuration.
func (a *Arms) PresentPool() *Pool { return a.pools[Present] }

// RequestCount returns how many requests the program has made.
func (a *Arms) RequestCount() uint64 { return a.requests }

// waitingPool returns the pool of the arm that does not decide.
func (a *Arms) waitingPool() *Pool {
	if a.active == a.pools[Present] {
		return a.pools[Alternative]
	}
	return a.pools[Present]
}

// timeOfArm returns the time of an arm, which stands still while the arm waits.
func (a *Arms) timeOfArm(p *Pool, time int64) int64 {
	if p != a.active {
		return a.since
	}
	return time
}

// DecideInto is Pool.DecideInto of the active arm. The request may begin a turn.
func (a *Arms) DecideInto(decision *Decision, request *Request, out []Eviction) []Eviction {
	if !request.Again {
		a.requests++
	}
	if a.split {
		out = a.activateArmForRequest(request, out)
	}
	return a.active.DecideInto(decision, request, out)
}

// activateArmForRequest activates the arm whose turn a request is. The waiting arm notes the device's memory as well, and reports
// evictions that it owes.
func (a *Arms) activateArmForRequest(request *Request, out []Eviction) []Eviction {
	for len(a.turns) > 0 && a.turns[0].from <= a.requests {
		a.activateArm(a.turns[0].arm, request.Time)
		a.turns = append(a.turns[:0], a.turns[1:]...)
	}
	out = a.waitingPool().noteDeviceMemory(request.Heap, a.waitingPool().evictDoomed(out))
	a.exchangeDeviceUse()
	return out
}

// activateArm makes an arm the active one.
func (a *Arms) activateArm(arm int, time int64) {
	next := a.pools[arm]
	if next == a.active {
		return
	}
	now := max(a.active.now, time)
	next.skipPause(a.since, now)
	a.active, a.since = next, now
}

// skipPause continues at time now as if no time had passed since another time.
func (p *Pool) skipPause(since, now int64) {
	for i := p.cachedByAge.oldest; i != 0; i = p.chain.At(i).newer {
		p.cachingMoment(i).since += now - since
	}
	if p.layouts != nil && p.layouts.current != nil {
		starts := &p.layouts.current.starts
		for i := range starts {
			starts[i] += now - since
		}
	}
	p.peaks.shiftTimes(now - since)
	p.now = now
}

// exchangeDeviceUse gives each arm the bytes that the other arm takes of the device.
func (a *Arms) exchangeDeviceUse() {
	present, alternative := a.pools[Present], a.pools[Alternative]
	most := max(a.both.PeakWanted, present.stats.PeakWanted, alternative.stats.PeakWanted)
	present.others = others{held: alternative.stats.ReservedBytes(), excess: alternative.stats.ExcessBytes(), wanted: most}
	alternative.others = others{held: present.stats.ReservedBytes(), excess: present.stats.ExcessBytes(), wanted: most}
}

// updatePeaksAfterCall updates the peaks of both arms after a call, and ends the split if the alternative has no blocks left.
func (a *Arms) updatePeaksAfterCall() {
	s, t := &a.pools[Present].stats, &a.pools[Alternative].stats
	a.both.BytesInUse, a.both.BytesWanted = s.BytesInUse+t.BytesInUse, s.BytesWanted+t.BytesWanted
	a.both.BytesCached, a.both.BytesCooling = s.BytesCached+t.BytesCached, s.BytesCooling+t.BytesCooling
	a.both.raisePeaks()
	if !a.running && a.pools[Alternative].hasNoBlocks() {
		a.split = false
		a.pools[Present].others = others{}
	}
}

// Commit is Pool.Commit of the arm that decided.
func (a *Arms) Commit(decision Decision) {
	a.pools[decision.Block.Arm()].Commit(decision)
	if a.split {
		a.updatePeaksAfterCall()
	}
}

// Abort is Pool.Abort of the arm that decided.
func (a *Arms) Abort(decision Decision) {
	a.pools[decision.Block.Arm()].Abort(decision)
	if a.split {
		a.updatePeaksAfterCall()
	}
}

// SlabCreated is Pool.SlabCreated of the arm that decided.
func (a *Arms) SlabCreated(decision Decision) {
	a.pools[decision.Block.Arm()].SlabCreated(decision)
	if a.split {
		a.updatePeaksAfterCall()
	}
}

// Free is Pool.Free of the block's arm.
func (a *Arms) Free(b Block, busy bool, time int64, out []Eviction) []Eviction {
	p := a.pools[b.Arm()]
	if !a.split {
		return p.Free(b, busy, time, out)
	}
	out = p.Free(b, busy, a.timeOfArm(p, time), out)
	a.updatePeaksAfterCall()
	return out
}

// CoolingEnded is Pool.CoolingEnded of the block's arm.
func (a *Arms) CoolingEnded(b Block, time int64, out []Eviction) []Eviction {
	p := a.pools[b.Arm()]
	if !a.split {
		return p.CoolingEnded(b, time, out)
	}
	out = p.CoolingEnded(b, a.timeOfArm(p, time), out)
	a.updatePeaksAfterCall()
	return out
}

// Forget is Pool.Forget of the block's arm.
func (a *Arms) Forget(b Block) {
	a.pools[b.Arm()].Forget(b)
	if a.split {
		a.updatePeaksAfterCall()
	}
}

// HasBlock reports whether a block is in the pool of its arm.
func (a *Arms) HasBlock(b Block) bool { return a.pools[b.Arm()].entryOf(b) != 0 }

// FreeableBytes is Pool.FreeableBytes of each arm, for the arm's blocks. The waiting arm has no room while its next call may give blocks
// back.
func (a *Arms) FreeableBytes() (room [2]uint64) {
	if !a.split {
		room[Present] = a.active.FreeableBytes()
		return room
	}
	for arm, p := range a.pools {
		if p == a.active || p.NextExpiry() > a.since {
			room[arm] = p.FreeableBytes()
		}
	}
	return room
}

// NextExpiry is Pool.NextExpiry of the active arm: the time of the waiting arm stands still.
func (a *Arms) NextExpiry() int64 { return a.active.NextExpiry() }

// Drain is Pool.Drain for both arms: the waiting arm gives up its cached blocks before the active arm; cooling blocks
// go last.
func (a *Arms) Drain(need uint64, out []Eviction) []Eviction {
	if !a.split {
		return a.active.Drain(need, out)
	}
	a.exchangeDeviceUse()
	waiting := a.waitingPool()
	waiting.noteShortage()
	a.active.noteShortage()
	out, given := waiting.drainCached(need, out)
	more := uint64(0)
	if given < max(need, 1) {
		out, more = a.active.drainCached(max(need, 1)-given, out)
	}
	if given+more == 0 {
		out = a.active.drainCooling(waiting.drainCooling(out))
	}
	a.updatePeaksAfterCall()
	return out
}

// EvictForOthers is Pool.EvictForOthers of both arms together, or Pool.EvictForTiming if the message asks for that; during an experiment
// no release is timed. Each arm owes the bytes that both together could not give.
func (a *Arms) EvictForOthers(r wire.Relief, time int64, out []Eviction) []Eviction {
	need, idle := r.Asked, r.LeastIdleNS()
	switch timed := r.Why == wire.ReliefTimed; {
	case timed && a.split:
		return out
	case timed:
		return a.active.EvictForTiming(need, out)
	case !a.split:
		return a.active.EvictForOthers(need, idle, time, out)
	}
	waiting, before := a.waitingPool(), len(out)
	out = waiting.EvictForOthers(need, idle, a.since, out)
	for _, e := range out[before:] {
		need -= min(need, e.Size)
	}
	out = a.active.EvictForOthers(need, idle, time, out)
	waiting.debt = a.active.debt
	a.updatePeaksAfterCall()
	return out
}

// SetIterationTime is Pool.SetIterationTime of both arms.
func (a *Arms) SetIterationTime(period int64) {
	for _, p := range a.pools {
		p.SetIterationTime(period)
	}
}

// Trim is Pool.Trim of both arms together.
func (a *Arms) Trim(keep uint64, out []Eviction) []Eviction {
	if !a.split {
		return a.active.Trim(keep, out)
	}
	waiting := a.waitingPool()
	out = waiting.Trim(keep-min(keep, a.active.stats.BytesCached), out)
	out = a.active.Trim(keep-min(keep, waiting.stats.BytesCached), out)
	a.updatePeaksAfterCall()
	return out
}

// Expire is Pool.Expire of the active arm. If only the waiting arm has a limit that depends on the time, next is when
// that arm might give up a block if its turn came now.
func (a *Arms) Expire(time int64, out []Eviction) (_ []Eviction, next int64) {
	out, next = a.active.Expire(time, out)
	if l := &a.waitingPool().limits; next == 0 && l.dependsOnTime() {
		next = time + cmp.Or(l.maxAge, second)
	}
	return out, next
}

// DropClass is Pool.DropClass of both arms.
func (a *Arms) DropClass(c Class, out []Eviction) []Eviction {
	out = a.pools[Present].DropClass(c, out)
	if a.pools[Alternative] != a.pools[Present] {
		out = a.pools[Alternative].DropClass(c, out)
	}
	return out
}

// SetLimit is Pool.SetLimit of the present configuration.
func (a *Arms) SetLimit(name, text string, time int64, out []Eviction) ([]Eviction, error) {
	p := a.pools[Present]
	return p.SetLimit(name, text, a.timeOfArm(p, time), out)
}

// SetAlternativeLimit is Pool.SetLimit of the alternative. It is an error if no experiment runs.
func (a *Arms) SetAlternativeLimit(name, text string, time int64, out []Eviction) ([]Eviction, error) {
	if !a.running {
		return out, errors.New("arms: no experiment runs")
	}
	p := a.pools[Alternative]
	return p.SetLimit(name, text, a.timeOfArm(p, time), out)
}

// SwitchPolicy is Pool.SwitchPolicy of the present configuration.
func (a *Arms) SwitchPolicy(next *Pool, time int64, out []Eviction) []Eviction {
	p := a.pools[Present]
	return p.SwitchPolicy(next, a.timeOfArm(p, time), out)
}

// InstallLayout is Pool.InstallLayout of the present configuration.
func (a *Arms) InstallLayout(l Layout, out []Eviction) ([]Eviction, error) {
	return a.pools[Present].InstallLayout(l, out)
}

// BeginExperiment begins an experiment: turns may follow, and until then the present configuration decides. next comes from New;
// BeginExperiment only copies its rule and limits. If an experiment runs, BeginExperiment ends it first.
func (a *Arms) BeginExperiment(next *Pool, time int64, out []Eviction) []Eviction {
	present := a.pools[Present]
	if a.pools[Alternative] == present {
		a.pools[Alternative] = newAlternativePool(present)
		a.since = max(present.now, time)
	}
	out = a.EndExperiment(time, out)
	alternative := a.pools[Alternative]
	alternative.short, alternative.small, alternative.beyond = present.short, present.small, present.beyond
	out = alternative.noteDeviceMemory(present.heap, alternative.SwitchPolicy(next, a.since, out))
	a.running, a.split = true, true
	a.updatePeaksAfterCall()
	return out
}

// newAlternativePool returns a pool for the other arm. One pool serves all experiments of a program, so that ids stay unique.
func newAlternativePool(present *Pool) *Pool {
	p := newPool(findPolicy("none"))
	p.arm, p.now, p.dropped = ArmBit, present.now, maps.Clone(present.dropped)
	p.SetIterationTime(present.period)
	return p
}

// EndExperiment ends the experiment, if one runs. The present configuration then decides all requests.
func (a *Arms) EndExperiment(time int64, out []Eviction) []Eviction {
	a.turns = a.turns[:0]
	if !a.running {
		return out
	}
	a.running = false
	a.activateArm(Present, time)
	out = a.pools[Alternative].SwitchPolicy(newPool(findPolicy("none")), a.since, out)
	a.updatePeaksAfterCall()
	return out
}

// LetArmDecideFrom lets an arm decide from a request on; the program's first request has the number 1. Turns come in the order
// of their requests. It is an error if no experiment runs, or if the request was made before; then nothing changes.
func (a *Arms) LetArmDecideFrom(arm int, from uint64) error {
	switch last := len(a.turns) - 1; {
	case !a.running:
		return errors.New("arm: no experiment runs")
	case arm != Present && arm != Alternative:
		return fmt.Errorf("arm: there is no arm %d: want 0 or 1", arm)
	case from <= a.requests:
		return fmt.Errorf("arm: request %d has passed: the program has made %d", from, a.requests)
	case last+1 == TurnsMax:
		return fmt.Errorf("arm: %d turns are yet to come: no more fit", TurnsMax)
	case last >= 0 && from <= a.turns[last].from:
		return fmt.Errorf("arm: request %d does not come after that of the turn before, %d", from, a.turns[last].from)
	}
	a.turns = append(a.turns, turn{arm, from})
	return nil
}

// Stats returns the counters and gauges of both arms together. The peaks are those after calls.
func (a *Arms) Stats() Stats {
	s := a.pools[Present].Stats()
	if a.pools[Alternative] == a.pools[Present] {
		return s
	}
	t := a.pools[Alternative].Stats()
	s.addArm(&t)
	s.PeakInUse, s.PeakWanted = max(s.PeakInUse, a.both.PeakInUse), max(s.PeakWanted, a.both.PeakWanted)
	s.PeakCached, s.PeakCooling = max(s.PeakCached, a.both.PeakCached), max(s.PeakCooling, a.both.PeakCooling)
	s.PeakReserved = max(s.PeakReserved, a.both.PeakReserved)
	return s
}

// Validate checks the invariants of both arms, for tests.
func (a *Arms) Validate() error {
	for arm, p := range a.pools {
		if err := p.Validate(); err != nil {
			return fmt.Errorf("arm %d: %w", arm, err)
		}
	}
	return nil
}

// others is what the other arm takes of the device, in bytes.
type others struct {
	held   uint64 // from the driver
	excess uint64 // the part of held beyond what the program asked for
	wanted uint64 // the most that the program wanted at one time from both arms
}
