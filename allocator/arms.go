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

// TurnsMax is how many turns Arms holds that are yet to come.
const TurnsMax = 64

// Arms serves a program from its present configuration and, while an experiment runs, in turn from an alternative. Each has
// a pool of its own. The active arm decides; whatever concerns a block goes to the arm that made it, and its blocks serve no
// request of the other arm. Its rules are those of a Pool besides:
//
//   - Blocks of the arm that waits do not age: for that arm no time passes.
//   - Drain and Trim give up the blocks of the arm that waits first.
//   - The end of an experiment gives up the blocks of the alternative: cached ones at once, the others when they come back.
//   - Limits, policies and layouts that come during an experiment are those of the present configuration.
type Arms struct {
	pools    [2]*Pool // by arm; both the same until the first experiment
	active   *Pool
	split    bool   // the alternative has blocks, or will have
	running  bool   // an experiment runs
	requests uint64 // that the program has made
	since    int64  // when the arm that waits began to do so, in ns
	turns    []turn // to come
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

// Present returns the pool of the present configuration.
func (a *Arms) Present() *Pool { return a.pools[Present] }

// Requests returns how many requests the program has made.
func (a *Arms) Requests() uint64 { return a.requests }

// waiting returns the arm that does not decide.
func (a *Arms) waiting() *Pool {
	if a.active == a.pools[Present] {
		return a.pools[Alternative]
	}
	return a.pools[Present]
}

// clock returns the time of an arm, which stands still while the arm waits.
func (a *Arms) clock(p *Pool, time int64) int64 {
	if p != a.active {
		return a.since
	}
	return time
}

// DecideInto is DecideInto of the active arm. The request may be the first of a turn.
func (a *Arms) DecideInto(decision *Decision, request *Request, out []Eviction) []Eviction {
	if !request.Again {
		a.requests++
	}
	if a.split {
		out = a.takeTurn(request, out)
	}
	return a.active.DecideInto(decision, request, out)
}

// takeTurn prepares the arm whose turn a request is. The other arm learns of the device, too, and gives up what it owes.
func (a *Arms) takeTurn(request *Request, out []Eviction) []Eviction {
	for len(a.turns) > 0 && a.turns[0].from <= a.requests {
		a.activate(a.turns[0].arm, request.Time)
		a.turns = append(a.turns[:0], a.turns[1:]...)
	}
	out = a.waiting().meet(request.Heap, a.waiting().flush(out))
	a.share()
	return out
}

// activate lets an arm decide.
func (a *Arms) activate(arm int, time int64) {
	next := a.pools[arm]
	if next == a.active {
		return
	}
	now := max(a.active.now, time)
	next.resume(a.since, now)
	a.active, a.since = next, now
}

// resume goes on at a time after none passed since another one.
func (p *Pool) resume(since, now int64) {
	for i := p.cachedByAge.oldest; i != 0; i = p.chain[i].newer {
		p.entries[i].since += now - since
	}
	if p.layouts != nil && p.layouts.current != nil {
		starts := &p.layouts.current.starts
		for i := range starts {
			starts[i] += now - since
		}
	}
	p.peaks.shift(now - since)
	p.now = now
}

// share tells each arm what the other one takes of the device.
func (a *Arms) share() {
	present, alternative := a.pools[Present], a.pools[Alternative]
	most := max(a.both.PeakWanted, present.stats.PeakWanted, alternative.stats.PeakWanted)
	present.others = others{held: alternative.stats.Reserved(), excess: alternative.stats.Excess(), wanted: most}
	alternative.others = others{held: present.stats.Reserved(), excess: present.stats.Excess(), wanted: most}
}

// settle takes note of what a call has changed.
func (a *Arms) settle() {
	s, t := &a.pools[Present].stats, &a.pools[Alternative].stats
	a.both.BytesInUse, a.both.BytesWanted = s.BytesInUse+t.BytesInUse, s.BytesWanted+t.BytesWanted
	a.both.BytesCached, a.both.BytesCooling = s.BytesCached+t.BytesCached, s.BytesCooling+t.BytesCooling
	a.both.peaks()
	if !a.running && a.pools[Alternative].empty() {
		a.split = false
		a.pools[Present].others = others{}
	}
}

// Commit is Commit of the arm that decided.
func (a *Arms) Commit(decision Decision) {
	a.pools[decision.Block.Arm()].Commit(decision)
	if a.split {
		a.settle()
	}
}

// Abort is Abort of the arm that decided.
func (a *Arms) Abort(decision Decision) {
	a.pools[decision.Block.Arm()].Abort(decision)
	if a.split {
		a.settle()
	}
}

// Grown is Grown of the arm that decided.
func (a *Arms) Grown(decision Decision) {
	a.pools[decision.Block.Arm()].Grown(decision)
	if a.split {
		a.settle()
	}
}

// Free is Free of the block's arm.
func (a *Arms) Free(b Block, busy bool, time int64, out []Eviction) []Eviction {
	p := a.pools[b.Arm()]
	if !a.split {
		return p.Free(b, busy, time, out)
	}
	out = p.Free(b, busy, a.clock(p, time), out)
	a.settle()
	return out
}

// Cooled is Cooled of the block's arm.
func (a *Arms) Cooled(b Block, time int64, out []Eviction) []Eviction {
	p := a.pools[b.Arm()]
	if !a.split {
		return p.Cooled(b, time, out)
	}
	out = p.Cooled(b, a.clock(p, time), out)
	a.settle()
	return out
}

// Forget is Forget of the block's arm.
func (a *Arms) Forget(b Block) {
	a.pools[b.Arm()].Forget(b)
	if a.split {
		a.settle()
	}
}

// Room is Room of each arm, for its blocks. The arm that waits has none while its next call may give blocks back.
func (a *Arms) Room() (room [2]uint64) {
	if !a.split {
		room[Present] = a.active.Room()
		return room
	}
	for arm, p := range a.pools {
		if p == a.active || p.Due() > a.since {
			room[arm] = p.Room()
		}
	}
	return room
}

// Due is Due of the active arm: for the other one no time passes.
func (a *Arms) Due() int64 { return a.active.Due() }

// Drain is Drain: the arm that waits gives up its cached blocks before the active one, and then cooling ones.
func (a *Arms) Drain(need uint64, out []Eviction) []Eviction {
	if !a.split {
		return a.active.Drain(need, out)
	}
	a.share()
	waiting := a.waiting()
	waiting.runShort()
	a.active.runShort()
	out, given := waiting.drainCached(need, out)
	more := uint64(0)
	if given < max(need, 1) {
		out, more = a.active.drainCached(max(need, 1)-given, out)
	}
	if given+more == 0 {
		out = a.active.drainCooling(waiting.drainCooling(out))
	}
	a.settle()
	return out
}

// Relieve is Relieve of both arms together, or TimeRelease if that is what the message is for: during an experiment no release is
// timed. What the arms cannot give each of them owes.
func (a *Arms) Relieve(r wire.Relief, time int64, out []Eviction) []Eviction {
	need, idle := r.Asked, r.Idle()
	switch timed := r.Why == wire.ReliefTimed; {
	case timed && a.split:
		return out
	case timed:
		return a.active.TimeRelease(need, out)
	case !a.split:
		return a.active.Relieve(need, idle, time, out)
	}
	waiting, before := a.waiting(), len(out)
	out = waiting.Relieve(need, idle, a.since, out)
	for _, e := range out[before:] {
		need -= min(need, e.Size)
	}
	out = a.active.Relieve(need, idle, time, out)
	waiting.debt = a.active.debt
	a.settle()
	return out
}

// Repeat is Repeat of both arms.
func (a *Arms) Repeat(period int64) {
	for _, p := range a.pools {
		p.Repeat(period)
	}
}

// Trim is Trim of both arms together.
func (a *Arms) Trim(keep uint64, out []Eviction) []Eviction {
	if !a.split {
		return a.active.Trim(keep, out)
	}
	waiting := a.waiting()
	out = waiting.Trim(keep-min(keep, a.active.stats.BytesCached), out)
	out = a.active.Trim(keep-min(keep, waiting.stats.BytesCached), out)
	a.settle()
	return out
}

// Expire is Expire of the active arm. While it has no such limit and the other one has, the time is when that one might give
// up a block if its turn came now.
func (a *Arms) Expire(time int64, out []Eviction) (_ []Eviction, next int64) {
	out, next = a.active.Expire(time, out)
	if l := &a.waiting().limits; next == 0 && l.timed() {
		next = time + cmp.Or(l.maxAge, second)
	}
	return out, next
}

// DropClass is DropClass of both arms.
func (a *Arms) DropClass(c Class, out []Eviction) []Eviction {
	out = a.pools[Present].DropClass(c, out)
	if a.pools[Alternative] != a.pools[Present] {
		out = a.pools[Alternative].DropClass(c, out)
	}
	return out
}

// SetLimit is SetLimit of the present configuration.
func (a *Arms) SetLimit(name, text string, time int64, out []Eviction) ([]Eviction, error) {
	p := a.pools[Present]
	return p.SetLimit(name, text, a.clock(p, time), out)
}

// SetAlternative is SetLimit of the alternative. It is an error if no experiment runs.
func (a *Arms) SetAlternative(name, text string, time int64, out []Eviction) ([]Eviction, error) {
	if !a.running {
		return out, errors.New("arms: no experiment runs")
	}
	p := a.pools[Alternative]
	return p.SetLimit(name, text, a.clock(p, time), out)
}

// Switch is Switch of the present configuration.
func (a *Arms) Switch(next *Pool, time int64, out []Eviction) []Eviction {
	p := a.pools[Present]
	return p.Switch(next, a.clock(p, time), out)
}

// Install is Install of the present configuration.
func (a *Arms) Install(l Layout, out []Eviction) ([]Eviction, error) {
	return a.pools[Present].Install(l, out)
}

// Begin begins an experiment: turns may follow. Until then the present configuration decides. next comes from New; Begin only
// copies its rule and limits. An experiment that runs ends first.
func (a *Arms) Begin(next *Pool, time int64, out []Eviction) []Eviction {
	present := a.pools[Present]
	if a.pools[Alternative] == present {
		a.pools[Alternative] = newAlternative(present)
		a.since = max(present.now, time)
	}
	out = a.End(time, out)
	alternative := a.pools[Alternative]
	alternative.short, alternative.small, alternative.beyond = present.short, present.small, present.beyond
	out = alternative.meet(present.heap, alternative.Switch(next, a.since, out))
	a.running, a.split = true, true
	a.settle()
	return out
}

// newAlternative returns a pool for the other arm. One pool serves all experiments of a program, so that ids stay unique.
func newAlternative(present *Pool) *Pool {
	p := newPool(find("none"))
	p.arm, p.now, p.dropped = ArmBit, present.now, maps.Clone(present.dropped)
	p.Repeat(present.period)
	return p
}

// End ends the experiment, if one runs: the present configuration decides.
func (a *Arms) End(time int64, out []Eviction) []Eviction {
	a.turns = a.turns[:0]
	if !a.running {
		return out
	}
	a.running = false
	a.activate(Present, time)
	out = a.pools[Alternative].Switch(newPool(find("none")), a.since, out)
	a.settle()
	return out
}

// TakeTurns lets an arm decide from a request on; the first request of the program has the number 1. Turns come in the order
// of their requests. It is an error if no experiment runs, or if the request was made before; nothing changes then.
func (a *Arms) TakeTurns(arm int, from uint64) error {
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
	s.add(&t)
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
	excess uint64 // of these, beyond what the program asked for
	wanted uint64 // the most that the program wanted of both arms
}
