package export

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func (x *trace) writeNames(processes []*surveyed) {
	for _, p := range processes {
		x.nameProcess(p)
		for _, tid := range slices.Sorted(maps.Keys(p.threads)) {
			x.nameThread(p, tid)
		}
	}
}

func (x *trace) nameProcess(p *surveyed) {
	name := fmt.Sprintf("process %d", p.number)
	if p.program != "" {
		name = path.Base(p.program)
	}
	x.out.nameProcess(quoteJSON(name), placeOfProcess(p.pid))
}

func (x *trace) nameThread(p *surveyed, thread uint32) {
	tid := p.shownThreadID(thread)
	name := fmt.Sprintf("thread %d", tid)
	if tid == p.pid {
		name = "main thread"
	}
	x.out.nameThread(quoteJSON(name), newPlace(p.pid, tid))
}

// laneOfThread returns where the calls of a thread show.
func (x *trace) laneOfThread(p *running, thread uint32) *lane {
	if p.lane != nil && p.lane.thread == thread {
		return p.lane
	}
	l := p.lanes[thread]
	if l == nil {
		l = &lane{thread: thread, at: newPlace(p.pid, p.shownThreadID(thread)), floor: x.seen.begin}
		p.lanes[thread] = l
		if x.live {
			x.nameThread(p.surveyed, thread)
		}
	}
	p.lane = l
	return l
}

// beginSlice begins the slice of a call up to its arguments.
func (x *trace) beginSlice(p *running, r *wire.Record, name string) {
	l := x.laneOfThread(p, r.Thread)
	s := l.nestingPart(span{r.Start(), r.End()})
	x.report.Slices++
	x.out.beginCall(name, l.at, x.timeSinceStart(s.start), s.end-s.start)
}

// showsOrCountsDropped reports whether a call shows, and counts it if not.
func (x *trace) showsOrCountsDropped(chosen bool) bool {
	if !chosen || x.hasMaxEvents() {
		x.report.DroppedSlices++
		return false
	}
	return true
}

// createNames are the names of creates, as JSON.
var createNames = func() (names [wire.MemoryExternal + 1]string) {
	for i := range names {
		names[i] = `"create ` + wire.Memory(i).String() + `"`
	}
	return names
}()

func createCallName(made wire.Memory) string {
	if int(made) < len(createNames) {
		return createNames[made]
	}
	return `"create ` + made.String() + `"`
}

func (x *trace) showCreate(p *running, r *wire.Record) {
	e := r.AsCreate()
	t := p.tag(e.Tag())
	failed := e.Outcome() == wire.OutcomeFailed
	if !failed && !x.showsBesideLifetime(t, e.Duration()) || !x.showsOrCountsDropped(t.chosen && e.BytesServing() >= x.opts.MinSize) {
		return
	}
	x.beginSlice(p, r, createCallName(e.Memory()))
	if x.opts.Flows && !failed {
		p.flows[e.Object()] = struct{}{}
		x.appendObjectFlow(p, e.Object(), true, false)
	}
	x.out.beginArguments()
	if x.style.isLean() {
		x.addLeanCreateArgs(t, e)
	} else {
		x.addCreateArgs(t, e)
	}
	x.out.endEvent()
	x.writeFailedCreate(p, r, t)
}

// longCall is the time in ns from which on lean styles show a call besides the lifetime that it begins or ends.
const longCall = 10_000

// showsBesideLifetime reports whether a call shows besides its lifetime. t is the tag of its memory, nil if unknown.
func (x *trace) showsBesideLifetime(t *tag, took uint32) bool {
	return !x.style.isLean() || t == nil || !t.shown || took >= longCall && x.style == packed
}

// addLeanCreateArgs writes the arguments of a create in lean styles.
func (x *trace) addLeanCreateArgs(t *tag, e wire.CreateView) {
	failed := e.Outcome() == wire.OutcomeFailed
	if failed {
		x.out.addText(`"tag":`, t.quoted)
		x.out.addStatus(wire.CreateStatus(e))
	}
	if failed || !t.shown {
		x.out.addPlainText(`"outcome":`, e.Outcome().String())
		x.out.addNumber(`"bytes":`, e.Requested())
		x.out.addStack(t)
	}
}

func (x *trace) addCreateArgs(t *tag, e wire.CreateView) {
	x.out.addText(`"tag":`, t.quoted)
	x.out.addPlainText(`"outcome":`, e.Outcome().String())
	if e.Outcome() == wire.OutcomeMiss {
		x.out.addPlainText(`"reason":`, e.Reason().String())
	}
	if e.Outcome() == wire.OutcomeFailed {
		x.out.addStatus(wire.CreateStatus(e))
	}
	x.out.addNumber(`"bytes":`, e.Requested())
	x.out.addNumber(`"granted":`, e.BytesServing())
	x.out.addNumber(`"object":`, e.Object())
	x.appendDriverTime(e.Cost())
	x.out.addStack(t)
}

// appendDriverTime appends the time in the driver. Calls that did not reach the driver have none, which saves a tenth of a line.
func (x *trace) appendDriverTime(ns uint32) {
	if ns > 0 {
		x.out.addMicros(`"driver_us":`, uint64(ns))
	}
}

// appendBlockFlow appends the arrow that connects the events of a block of the pool.
func (x *trace) appendBlockFlow(p *running, block uint64, goesOn bool) {
	if block > 0 {
		x.appendObjectFlow(p, block, goesOn, !goesOn)
	}
}

// appendObjectFlow appends the arrow of an object, whose id is unique among all processes.
func (x *trace) appendObjectFlow(p *running, object uint64, begins, ends bool) {
	x.out.addFlow(uint64(p.number)<<44^object, begins, ends)
}

// lifetimeID returns the number of a lifetime; those of the first process stay short.
func (x *trace) lifetimeID(p *running, n uint64) uint64 {
	if x.style == compact {
		return uint64(p.number-1)<<44 ^ n
	}
	return n
}

func (x *trace) showRelease(p *running, r *wire.Record) {
	e := r.AsRelease()
	o := p.life.Object(e.Object())
	chosen, t := x.opts.Tag == nil && x.opts.MinSize == 0, (*tag)(nil)
	if o != nil {
		t = p.tag(o.Tag)
		chosen = t.chosen && o.Granted >= x.opts.MinSize
	}
	if !x.showsBesideLifetime(t, e.Duration()) || !x.showsOrCountsDropped(chosen) {
		return
	}
	x.beginSlice(p, r, `"release"`)
	if _, open := p.flows[e.Object()]; open && e.References() == 0 && e.Outcome() != wire.OutcomePinned {
		x.appendObjectFlow(p, e.Object(), false, true)
	}
	x.out.beginArguments()
	if x.style.isLean() {
		x.out.endEvent()
		return
	}
	x.out.addNumber(`"object":`, e.Object())
	if e.References() == 0 {
		x.out.addPlainText(`"outcome":`, e.Outcome().String())
	} else {
		x.out.addNumber(`"references":`, e.References())
	}
	x.appendDriverTime(e.Cost())
	x.out.endEvent()
}

func (x *trace) showSync(p *running, r *wire.Record) {
	if !x.showsOrCountsDropped(x.opts.Tag == nil) {
		return
	}
	x.beginSlice(p, r, `"`+r.AsSync().Sync().String()+`"`)
	x.out.beginArguments()
	if !x.style.isLean() {
		x.out.addNumber(`"queue":`, r.AsSync().Queue())
	}
	x.out.endEvent()
}

// showDeviceTime shows how long the device took for a transfer that did not block. The device's clock is not ours, so the
// transfer is drawn to end when the program learned of its completion, which is the latest possible time.
func (x *trace) showDeviceTime(p *running, r *wire.Record) {
	v := r.AsTransfer()
	t := p.tag(v.Site())
	if v.Profiled() == wire.CommandOther || !x.showsOrCountsDropped(t.chosen && v.Moved() >= x.opts.MinSize) {
		return
	}
	p.timed++
	x.report.Slices++
	end, at, name := max(x.heap.Now(), r.Time), x.laneOfThread(p, r.Thread).at, quoteJSON(v.Profiled().String()+" on the device")
	id := x.lifetimeID(p, p.timed)
	x.out.openLifetime(onDevice, name, at, x.timeSinceStart(end-min(v.Took(), end)), id)
	x.out.beginArguments()
	x.out.addText(`"tag":`, t.quoted)
	x.out.addNumber(`"bytes":`, v.Moved())
	x.out.addMicros(`"device_us":`, v.Took())
	x.out.endEvent()
	x.out.closeLifetime(onDevice, name, at, x.timeSinceStart(end), id)
	x.out.beginArguments()
	x.out.endEvent()
}

// beginObjectLifetime begins a lifetime.
func (x *trace) beginObjectLifetime(p *running, o *heap.Object, t *tag) {
	x.out.openLifetime(categoryOfObject(o), t.quoted, x.laneOfThread(p, o.Thread).at, x.timeSinceStart(o.Started), x.lifetimeID(p, o.ID))
	switch {
	case x.style == packed:
		x.appendBlockFlow(p, o.Block, true)
	case x.opts.Flows:
		_, open := p.flows[o.ID]
		p.flows[o.ID] = struct{}{}
		x.appendObjectFlow(p, o.ID, true, open)
	}
	x.out.beginArguments()
	if x.style.isLean() {
		x.out.addNumber(`"granted":`, o.Granted)
		x.out.addStack(t)
	} else {
		x.out.addNumber(`"bytes":`, o.Size)
		x.out.addNumber(`"granted":`, o.Granted)
		x.out.addNumber(`"object":`, o.ID)
	}
	x.out.endEvent()
}

// objectEnds say how an object ended.
var objectEnds = [...]string{heap.Released: "", heap.Unknown: `"unknown":`, heap.Leaked: `"leaked":`, heap.Held: `"held at exit":`, heap.Cut: `"cut":`}

// categoryOfObject keeps objects without memory of their own apart, so that bytes on the others' track add up.
func categoryOfObject(o *heap.Object) category {
	if o.Owns {
		return buffers
	}
	return subBuffers
}

func (x *trace) endObjectLifetime(p *running, o *heap.Object, t *tag, how heap.How) {
	x.out.closeLifetime(categoryOfObject(o), t.quoted, x.laneOfThread(p, o.Thread).at, x.timeSinceStart(max(x.heap.Now(), o.Started)), x.lifetimeID(p, o.ID))
	x.out.beginArguments()
	if key := objectEnds[how]; key != "" {
		x.out.addBool(key, true)
	}
	x.out.endEvent()
}

func (x *trace) beginBlockLifetime(p *running, b *heap.Block, t *tag, group *pool) {
	x.out.openLifetime(group.category, group.quoted, x.laneOfThread(p, b.Thread).at, x.timeSinceStart(b.Freed), b.Serial)
	x.out.beginArguments()
	if b.State == heap.Slab {
		x.out.addNumber(`"granted":`, b.Size)
		x.out.endEvent()
		return
	}
	x.out.addNumber(`"bytes":`, b.Size)
	if b.State == heap.Cooling {
		x.out.addBool(`"cooling":`, true)
	}
	x.out.addText(`"tag":`, t.quoted)
	x.out.endEvent()
}

// endBlockLifetime ends a block's stay in the pool, or a slab.
func (x *trace) endBlockLifetime(p *running, b *heap.Block, group *pool, how heap.How) {
	x.out.closeLifetime(group.category, group.quoted, x.laneOfThread(p, b.Thread).at, x.timeSinceStart(max(x.heap.Now(), b.Freed)), b.Serial)
	x.out.beginArguments()
	x.out.addPlainText(`"left":`, how.String())
	x.out.endEvent()
}

// showPoolEvent writes an instant where a block leaves the pool, or a slab comes.
func (x *trace) showPoolEvent(p *running, r *wire.Record) {
	ns := x.timeSinceStart(max(x.heap.Now(), r.Time))
	if r.Kind == wire.KindSlab {
		x.out.beginInstant("pool", `"slab"`, "p", p.pool, ns)
		x.out.beginArguments()
		x.out.addNumber(`"bytes":`, r.AsSlab().Bytes())
		x.out.endEvent()
		return
	}
	e := r.AsEvict()
	x.out.beginInstant("pool", `"evict: `+e.Reason().String()+`"`, "p", p.pool, ns)
	x.appendBlockFlow(p, e.Block(), false)
	x.out.beginArguments()
	x.out.addNumber(`"bytes":`, e.Bytes())
	x.out.endEvent()
}

// writeRunMark writes an instant for an event that concerns the whole run.
func (x *trace) writeRunMark(r *wire.Record) {
	at := x.home
	if r.Kind != wire.KindLost {
		at = x.processNumbered(r.Process).home
	}
	x.out.beginInstant("mark", quoteJSON(runMarkText(r)), "g", at, x.timeSinceStart(max(x.heap.Now(), r.Time)))
	x.out.beginArguments()
	x.out.addPlainText(`"kind":`, r.Kind.String())
	x.out.endEvent()
}

func runMarkText(r *wire.Record) string {
	switch {
	case r.Kind == wire.KindLost:
		return fmt.Sprintf("%d events lost", r.AsLost().Events())
	case r.Kind == wire.KindDiag:
		return r.AsDiag().Diag().String() + ": " + string(r.Payload)
	case r.AsLimit().Status() != 0:
		return "limit refused: " + string(r.Payload)
	}
	return "limit " + string(r.Payload)
}
