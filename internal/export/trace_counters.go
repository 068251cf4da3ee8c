package export

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// counters is the state of the counters of one process.
type counters struct {
	free    table.Sizes // sizes of cached blocks
	room    uint64      // largest free range in slabs, as the policy reported last
	changed bool        // something has changed since the last values
	moved   [2]uint64   // bytes to device and to host
	written [2]uint64   // the last values of moved
	spill   spillCounter
	objects objects
	started bool   // values were written, or are due
	due     uint64 // when the next may be written
	most    int64  // most bytes in use that were written

	waste, external uint64 // the last values
	fragmented      bool   // waste and external have values
}

// writeDueCounters writes the values at the time when the next counters were due, if that was before now.
func (x *trace) writeDueCounters(p *running, now uint64) {
	if c := &p.counters; c.changed && c.started && now > c.due {
		x.writeCounters(p, c.due)
	}
}

// writeCountersAfterRecord writes the values after a record, unless values were written shortly before. Carried records count together:
// at the beginning of the part, or when their memory was first seen.
func (x *trace) writeCountersAfterRecord(p *running, carried bool) {
	switch c := &p.counters; {
	case !c.changed:
	case carried:
		c.started, c.due = true, max(c.due, x.seen.begin, x.heap.Now())
	case x.heap.Now() >= c.due:
		x.writeCounters(p, x.heap.Now())
	}
}

func (x *trace) writeCounters(p *running, ns uint64) {
	c, g := &p.counters, p.life
	c.changed, c.started, c.due, c.most = false, true, ns+x.every, max(c.most, g.InUse)
	x.out.beginCounter("mem", p.home, x.timeSinceStart(ns))
	x.out.beginArguments()
	x.out.addNumber(`"in_use":`, uint64(max(g.InUse, 0)))
	x.out.addNumber(`"cached":`, g.FreeBytes())
	x.out.addNumber(`"cooling":`, uint64(max(g.Cooling, 0)))
	if x.style == packed {
		x.out.addNumber(`"reserved":`, heap.NonNegative(g.ReservedBytes()))
	}
	x.out.endEvent()
	x.writeSiteCounters(p, ns)
	if c.moved != c.written && x.style != compact {
		c.written = c.moved
		x.out.beginCounter("transfers", p.home, x.timeSinceStart(ns))
		x.out.beginArguments()
		x.out.addNumber(`"to_device":`, c.moved[stats.ToDevice])
		x.out.addNumber(`"to_host":`, c.moved[stats.ToHost])
		x.out.endEvent()
	}
	x.writeObjectCounters(p, ns)
	x.writeSpillCounters(p, ns)
	if x.seen.attached || x.style == compact { // the other values are about a pool
		return
	}
	x.writeFragmentationCounters(p, ns)
	if g.Hits+g.Misses == 0 {
		return
	}
	x.out.beginCounter("hit rate %", p.home, x.timeSinceStart(ns))
	x.out.beginArguments()
	x.out.addHundredths(`"total":`, shareInHundredths(g.Hits, g.Hits+g.Misses))
	x.out.endEvent()
}

// writeSiteCounters writes the bytes that the largest call sites hold, where they have changed.
func (x *trace) writeSiteCounters(p *running, ns uint64) {
	for _, t := range p.counted {
		if t.moved {
			t.moved = false
			x.out.beginCounter("in use by "+t.name, p.home, x.timeSinceStart(ns))
			x.out.addNumber(`"bytes":`, heap.NonNegative(t.inUse))
			x.out.endEvent()
		}
	}
}

// figureKey identifies a figure of the machine: its source and device.
type figureKey struct {
	source wire.Machine
	device uint64
}

// figuresMax bounds the figures of a process.
const figuresMax = 64

// writeMachineFigure writes a figure of the machine, of all devices together.
func (x *trace) writeMachineFigure(p *running, m wire.MachineView) {
	key := figureKey{m.Source(), m.Device()}
	if _, known := p.machine[key]; m.Unread() != 0 || !known && len(p.machine) == figuresMax {
		return
	}
	if p.machine == nil {
		p.machine = map[figureKey]uint64{}
	}
	p.machine[key] = m.Resident()
	all := uint64(0)
	for k, bytes := range p.machine {
		if k.source == key.source {
			all += bytes
		}
	}
	x.out.beginCounter("machine "+key.source.String(), p.home, x.timeSinceStart(max(x.heap.Now(), m.Time())))
	x.out.beginArguments()
	x.out.addNumber(`"resident":`, all)
	if key.source == wire.MachineDRM || key.source == wire.MachineNVML {
		x.out.addNumber(`"drivers_own":`, all-min(uint64(max(p.life.ReservedBytes(), 0)), all))
	}
	x.out.endEvent()
}

// countHostTransfer counts what a command moves between host and device.
func (c *counters) countHostTransfer(u wire.UseView) {
	if d, moves := stats.DirectionOf(u.Command()); moves && d <= stats.ToHost && u.Bytes() > 0 {
		c.moved[d] += u.Bytes()
		c.changed = true
	}
}

// spillCounter has the bytes of --spill on device and host, and those that it moved.
type spillCounter struct {
	resident, spilled, out, in uint64
	changed                    bool // since the last values
}

// noteSpillReport takes a report of --spill.
func (c *counters) noteSpillReport(v wire.SpillView) {
	s := &c.spill
	s.resident, s.spilled, s.changed, c.changed = v.Resident(), v.Spilled(), true, true
	switch v.Spill() {
	case wire.SpillOut:
		s.out += v.Bytes()
	case wire.SpillIn:
		s.in += v.Bytes()
	default:
	}
}

// writeSpillCounters writes where the memory of buffers is with --spill.
func (x *trace) writeSpillCounters(p *running, ns uint64) {
	s := &p.counters.spill
	if !s.changed {
		return
	}
	s.changed = false
	x.out.beginCounter("spill", p.home, x.timeSinceStart(ns))
	x.out.beginArguments()
	x.out.addNumber(`"resident":`, s.resident)
	x.out.addNumber(`"spilled":`, s.spilled)
	x.out.addNumber(`"out":`, s.out)
	x.out.addNumber(`"back":`, s.in)
	x.out.endEvent()
}

// objects has how many objects of the counted types a process holds.
type objects struct {
	live    map[objectKey]uint64
	all     [wire.HeldCommandBuffer + 1]uint64
	changed bool // since the last values
}

// objectKeys are the types as keys of arguments.
var objectKeys = func() (keys [wire.HeldCommandBuffer + 1]string) {
	for held := range keys {
		keys[held] = `"` + stats.ObjectType(held).JSONKey() + `":`
	}
	return keys
}()

type objectKey struct {
	held wire.Held
	tag  uint32
}

// objectsMax bounds the call sites of a process; the shim has fewer.
const objectsMax = 1 << 13

// noteHeldCounts takes a record with the counts of a call site.
func (c *counters) noteHeldCounts(v wire.ObjectView) {
	o, key := &c.objects, objectKey{v.Held(), v.Tag()}
	before, known := o.live[key]
	if int(v.Held()) >= len(o.all) || !known && len(o.live) == objectsMax {
		return
	}
	if o.live == nil {
		o.live = map[objectKey]uint64{}
	}
	live := v.Created() - min(v.Released(), v.Created())
	o.live[key] = live
	o.all[v.Held()] += live - before
	o.changed = true
	c.changed = true
}

// writeObjectCounters writes how many objects of each type are live, if that has changed.
func (x *trace) writeObjectCounters(p *running, ns uint64) {
	o := &p.counters.objects
	if !o.changed {
		return
	}
	o.changed = false
	x.out.beginCounter("objects", p.home, x.timeSinceStart(ns))
	x.out.beginArguments()
	for held, live := range o.all {
		x.out.addNumber(objectKeys[held], live)
	}
	x.out.endEvent()
}

// writeFragmentationCounters writes waste and external fragmentation if they have changed.
func (x *trace) writeFragmentationCounters(p *running, ns uint64) {
	c, g := &p.counters, p.life
	inUse := uint64(max(g.InUse, 0))
	waste := shareInHundredths(inUse-min(uint64(max(g.Requested, 0)), inUse), inUse)
	free, largest := g.FreeBytes(), c.free.Largest()
	if room := uint64(max(g.Room, 0)); room > 0 && c.room > 0 {
		largest = max(largest, min(c.room, room))
	} else {
		largest = max(largest, room)
	}
	external := shareInHundredths(free-min(largest, free), free)
	if c.fragmented && waste == c.waste && external == c.external {
		return
	}
	c.fragmented, c.waste, c.external = true, waste, external
	x.out.beginCounter("fragmentation %", p.home, x.timeSinceStart(ns))
	x.out.beginArguments()
	x.out.addHundredths(`"waste":`, waste)
	x.out.addHundredths(`"external":`, external)
	x.out.endEvent()
}
