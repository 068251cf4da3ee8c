package session

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/machine"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Memory that a pool keeps idle may be what another program lacks. While little of a device's memory is free, or of the host's
// or a control group's where that is the device's, the pools give back their oldest blocks until there is headroom again: a
// tenth, and at least 256 MiB unless that is more than a quarter. What they do not have then they owe: it goes when the
// program releases it, so that the others find what they would without a pool. Where hardly anything is others', only blocks
// go that were idle for a second: the program alone would suffer.

const (
	headroomShare = 10
	headroomLeast = 256 << 20
	smallShare    = 4 // of small devices
	// spareShare of the headroom goes back besides, so that the next create does not bring the shortage back.
	spareShare  = 8
	othersLeast = 4                         // the part of the headroom that others have, or they do not count
	stallShare  = 10                        // the part of the time that processes of a group waited for memory: it is short
	idleRest    = uint64(wire.ReliefIdleNS) // between messages about idle blocks
)

// headroomBytes returns how many bytes shall be free.
func headroomBytes(total uint64) uint64 {
	return max(total/headroomShare, min(headroomLeast, total/smallShare))
}

// place is where the memory of a process is.
type place struct {
	devices    []uint64 // PCI addresses
	identities []string // of devices, the same in all processes: PCI address or UUID, or the name where the driver knows neither
	host       bool     // a device uses the memory of the host
}

// poolOf is what a process has through its pool.
type poolOf struct {
	process          uint32
	cached, reserved uint64
	place            place
}

// look is a pool and the memory that it shares.
type look struct {
	poolOf
	shared []machine.Shared
}

// relief decides which pools give back how much. Its clock is that of the events. One goroutine calls askPools; others call the
// other methods.
type relief struct {
	ask    func(process uint32, relief wire.Relief)
	stalls map[string]stall

	mu    sync.Mutex
	owed  map[uint32]owed
	room  map[uint32]uint64 // bytes around a pool at the last look that are free beyond the headroom
	given uint64            // by all pools so far
}

// owed is how many bytes a pool was asked for and has not given back yet, and when it was last asked for idle blocks.
type owed struct{ bytes, idle uint64 }

// stall is how long processes of a control group had waited for memory, at a time.
type stall struct{ time, stalled uint64 }

func newRelief(ask func(process uint32, relief wire.Relief)) *relief {
	return &relief{ask: ask, stalls: map[string]stall{}, owed: map[uint32]owed{}, room: map[uint32]uint64{}}
}

// shortage is what some memory lacks.
type shortage struct {
	lacks, spare uint64
	over         bool // there is headroom and more
	alone        bool // other programs have hardly any of it
	cached       uint64
}

// askPools asks the pools for the bytes that the shared memory lacks, those with the most free bytes first. If they have too few,
// all of them owe the rest.
func (r *relief) askPools(now uint64, looks []look) {
	slices.SortFunc(looks, func(a, b look) int { return cmp.Or(cmp.Compare(b.cached, a.cached), cmp.Compare(a.process, b.process)) })
	short := r.shortageByMemory(now, looks)
	for _, l := range looks {
		var need, spare uint64
		over, alone, room := true, true, uint64(math.MaxUint64)
		for _, m := range l.shared {
			s := short[m.Name]
			room = min(room, m.Free-min(m.Free, headroomBytes(m.Total)))
			over = over && s.over
			if s.lacks == 0 {
				continue
			}
			part := min(s.lacks, l.cached) + s.lacks - min(s.lacks, s.cached)
			need, spare, alone = max(need, part), max(spare, s.spare), alone && s.alone
			s.lacks -= min(s.lacks, l.cached)
			s.cached -= l.cached
		}
		r.adjustPoolDebt(now, &l, need, spare, over, alone)
		if len(l.shared) > 0 {
			r.mu.Lock()
			r.room[l.process] = room
			r.mu.Unlock()
		}
	}
}

// freeBytesAroundPool returns how many bytes around a pool were free beyond the headroom at the last look, if there was one.
func (r *relief) freeBytesAroundPool(process uint32) (bytes uint64, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes, known = r.room[process]
	return bytes, known
}

// adjustPoolDebt asks a pool for the needed bytes that it does not owe already, or ends its debt once there is enough.
func (r *relief) adjustPoolDebt(now uint64, l *look, need, spare uint64, over, alone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.owed[l.process]
	switch {
	case need > was.bytes && !alone:
		r.owed[l.process] = owed{bytes: need + spare}
		r.ask(l.process, wire.Relief{Asked: need + spare, Why: wire.ReliefShort})
	case need > 0 && alone && l.cached > 0 && (was.idle == 0 || now-was.idle >= idleRest):
		r.owed[l.process] = owed{idle: now}
		r.ask(l.process, wire.Relief{Asked: need + spare, Why: wire.ReliefIdle})
	case over && was.bytes > 0:
		delete(r.owed, l.process)
		r.ask(l.process, wire.Relief{Why: wire.ReliefShort})
	}
}

// shortageByMemory returns how much each memory lacks, by the name of the memory.
func (r *relief) shortageByMemory(now uint64, looks []look) map[string]*shortage {
	found, free := map[string]*shortage{}, map[string]machine.Shared{}
	ours := map[string]uint64{}
	for _, l := range looks {
		for _, m := range l.shared {
			if found[m.Name] == nil {
				found[m.Name] = &shortage{}
			}
			free[m.Name] = m
			found[m.Name].cached += l.cached
			ours[m.Name] += l.reserved
		}
	}
	for name, s := range found {
		m := free[name]
		want := headroomBytes(m.Total)
		used := m.Total - min(m.Free, m.Total)
		s.alone = used-min(used, ours[name]) < want/othersLeast
		s.spare, s.over = want/spareShare, m.Free >= want+want/spareShare
		if m.Free < want {
			s.lacks = want - m.Free
		} else if r.stalls[name].haveStalledMuch(now, m.Stalled) {
			s.lacks, s.over = want/2, false
		}
		r.stalls[name] = stall{now, m.Stalled}
	}
	maps.DeleteFunc(r.stalls, func(name string, _ stall) bool { return found[name] == nil })
	return found
}

// haveStalledMuch reports whether processes waited for memory for much of the time since an earlier look.
func (s stall) haveStalledMuch(now, stalled uint64) bool {
	return s.time != 0 && stalled > s.stalled && stallShare*(stalled-s.stalled) > now-s.time
}

// notePoolGave notes what a pool gave back.
func (r *relief) notePoolGave(process uint32, bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given += bytes
	if was, known := r.owed[process]; known {
		was.bytes -= min(was.bytes, bytes)
		r.owed[process] = was
	}
}

// notePoolAsked notes that a pool was asked for bytes that another program needs. The next askPools ends the part of this debt
// that the pool does not have.
func (r *relief) notePoolAsked(process uint32, bytes uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owed[process] = owed{bytes: bytes}
}

// totalGivenBack returns what all pools have given so far.
func (r *relief) totalGivenBack() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.given
}

// forgetProcess forgets a process that is gone.
func (r *relief) forgetProcess(process uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owed, process)
	delete(r.room, process)
}

// readPoolMemory reads the state of the memory that each pool shares. open are the processes whose figures can be read.
func readPoolMemory(open map[uint32]*sampled, pools []poolOf) (looks []look) {
	for _, pool := range pools {
		if p := open[pool.process]; p != nil {
			looks = append(looks, look{pool, p.reader.Load().ReadSharedMemory(pool.place.devices, pool.place.host)})
		}
	}
	return looks
}

// noteDevicePlace notes where the memory of a device is.
func (in *intake) noteDevicePlace(r *wire.Record) {
	if in.places == nil {
		return
	}
	at := in.places[r.Process]
	name, _, identity := wire.ParseDevice(r.Payload)
	text := string(identity)
	if address := machine.DeviceAddress(text); address != 0 && len(at.devices) < devicesMax && !slices.Contains(at.devices, address) {
		at.devices = append(slices.Clip(at.devices), address) // a look may read the old list
	}
	if text == "" || strings.HasPrefix(text, "local") {
		text = "name " + string(name)
	}
	if len(at.identities) < devicesMax && !slices.Contains(at.identities, text) {
		at.identities = append(slices.Clip(at.identities), text)
	}
	at.host = at.host || r.AsDevice().Unified()
	in.places[r.Process] = at
}

// forgetProcess forgets a process that is gone.
func (in *intake) forgetProcess(process uint32) {
	if in.places != nil {
		delete(in.places, process)
		delete(in.timed, process)
		in.sampler.relief.forgetProcess(process)
	}
}

// devicesMax bounds the devices of a process.
const devicesMax = 64

// givePoolsToSampler gives the sampler the pools, so that it reads the memory that they share.
func (in *intake) givePoolsToSampler() {
	var pools []poolOf
	for process, at := range in.places {
		p := in.model.Heap().FindProcess(process)
		if p != nil && p.Hits+p.Misses > 0 && p.ReservedBytes() > 0 && (at.host || len(at.devices) > 0) {
			pools = append(pools, poolOf{process, p.FreeBytes(), uint64(p.ReservedBytes()), at})
		}
	}
	if len(pools) == 0 {
		return
	}
	select {
	case in.sampler.pools <- pools:
	default: // the machine takes its time to answer
	}
}

// enablePoolRelief makes the collector ask pools for memory when memory is short.
func (c *collector) enablePoolRelief() {
	c.places, c.timed = map[uint32]place{}, map[uint32]*timed{}
	c.sampler.relief = newRelief(func(process uint32, relief wire.Relief) { c.queueCall(func() { c.askForRelief(process, relief) }) })
}

// askForRelief asks the pool of a process for memory.
func (c *collector) askForRelief(process uint32, relief wire.Relief) {
	message, err := wire.Control{Sequence: c.next(), Text: relief.MessageText()}.Encode()
	if err != nil {
		return // it is short
	}
	for _, p := range slices.Clone(c.peers) { // guard may remove one
		if p.number == process {
			c.runUnlessProcessFaults(func() { p.queueMessage(message) })
		}
	}
}
