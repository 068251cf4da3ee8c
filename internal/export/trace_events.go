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
	x.out.process(quote(name), homeOf(p.pid))
}

func (x *trace) nameThread(p *surveyed, thread uint32) {
	tid := p.thread(thread)
	name := fmt.Sprintf("thread %d", tid)
	if tid == p.pid {
		name = "main thread"
	}
	x.out.thread(quote(name), placeOf(p.pid, tid))
}

// lane returns where the calls of a thread show.
func (x *trace) lane(p *running, thread uint32) *lane {
	if p.lane != nil && p.lane.thread == thread {
		return p.lane
	}
	l := p.lanes[thread]
	if l == nil {
		l = &lane{thread: thread, at: placeOf(p.pid, p.thread(thread)), floor: x.seen.begin}
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
	l := x.lane(p, r.Thread)
	s := l.fit(span{r.Start(), r.End()})
	x.report.Slices++
	x.out.call(name, l.at, x.relativeTime(s.start), s.end-s.start)
}

// showsSlice reports whether a call shows, and counts it if not.
func (x *trace) showsSlice(chosen bool) bool {
	if !chosen || x.full() {
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

func createName(made wire.Memory) string {
	if int(made) < len(createNames) {
		return createNames[made]
	}
	return `"create ` + made.String() + `"`
}

func (x *trace) createSlice(p *running, r *wire.Record) {
	e := r.AsCreate()
	t := p.tag(e.Tag())
	failed := e.Outcome() == wire.OutcomeFailed
	if !failed && !x.showsCall(t, e.Duration()) || !x.showsSlice(t.chosen && e.Served() >= x.opts.MinSize) {
		return
	}
	x.beginSlice(p, r, createName(e.Memory()))
	if x.opts.Flows && !failed {
		p.flows[e.Object()] = struct{}{}
		x.flow(p, e.Object(), true, false)
	}
	x.out.args()
	if x.style.isLean() {
		x.createFew(t, e)
	} else {
		x.createArgs(t, e)
	}
	x.out.close()
	x.writeFailedCreate(p, r, t)
}

// longCall is the time in ns from which on lean styles show a call besides the lifetime that it begins or ends.
const longCall = 10_000

// showsCall reports whether a call shows besides its lifetime. t is the tag of its memory, nil if unknown.
func (x *trace) showsCall(t *tag, took uint32) bool {
	return !x.style.isLean() || t == nil || !t.shown || took >= longCall && x.style == packed
}

// createFew writes the arguments of a create in lean styles.
func (x *trace) createFew(t *tag, e wire.CreateView) {
	failed := e.Outcome() == wire.OutcomeFailed
	if failed {
		x.out.text(`"tag":`, t.quoted)
		x.out.status(wire.CreateStatus(e))
	}
	if failed || !t.shown {
		x.out.plainText(`"outcome":`, e.Outcome().String())
		x.out.number(`"bytes":`, e.Requested())
		x.out.stack(t)
	}
}

func (x *trace) createArgs(t *tag, e wire.CreateView) {
	x.out.text(`"tag":`, t.quoted)
	x.out.plainText(`"outcome":`, e.Outcome().String())
	if e.Outcome() == wire.OutcomeMiss {
		x.out.plainText(`"reason":`, e.Reason().String())
	}
	if e.Outcome() == wire.OutcomeFailed {
		x.out.status(wire.CreateStatus(e))
	}
	x.out.number(`"bytes":`, e.Requested())
	x.out.number(`"granted":`, e.Served())
	x.out.number(`"object":`, e.Object())
	x.appendDriverTime(e.Cost())
	x.out.stack(t)
}

// appendDriverTime appends the time in the driver. Calls that did not reach the driver have none, which saves a tenth of a line.
func (x *trace) appendDriverTime(ns uint32) {
	if ns > 0 {
		x.out.micros(`"driver_us":`, uint64(ns))
	}
}

// blockFlow appends the arrow that connects the events of a block of the pool.
func (x *trace) blockFlow(p *running, block uint64, goesOn bool) {
	if block > 0 {
		x.flow(p, block, goesOn, !goesOn)
	}
}

// flow appends the arrow of an object, whose id is unique among all processes.
func (x *trace) flow(p *running, object uint64, begins, ends bool) {
	x.out.flow(uint64(p.number)<<44^object, begins, ends)
}

// id returns the number of a lifetime; those of the first process stay short.
func (x *trace) id(p *running, n uint64) uint64 {
	if x.style == compact {
		return uint64(p.number-1)<<44 ^ n
	}
	return n
}

func (x *trace) releaseSlice(p *running, r *wire.Record) {
	e := r.AsRelease()
	o := p.life.Object(e.Object())
	chosen, t := x.opts.Tag == nil && x.opts.MinSize == 0, (*tag)(nil)
	if o != nil {
		t = p.tag(o.Tag)
		chosen = t.chosen && o.Granted >= x.opts.MinSize
	}
	if !x.showsCall(t, e.Duration()) || !x.showsSlice(chosen) {
		return
	}
	x.beginSlice(p, r, `"release"`)
	if _, open := p.flows[e.Object()]; open && e.References() == 0 && e.Outcome() != wire.OutcomePinned {
		x.flow(p, e.Object(), false, true)
	}
	x.out.args()
	if x.style.isLean() {
		x.out.close()
		return
	}
	x.out.number(`"object":`, e.Object())
	if e.References() == 0 {
		x.out.plainText(`"outcome":`, e.Outcome().String())
	} else {
		x.out.number(`"references":`, e.References())
	}
	x.appendDriverTime(e.Cost())
	x.out.close()
}

func (x *trace) showSync(p *running, r *wire.Record) {
	if !x.showsSlice(x.opts.Tag == nil) {
		return
	}
	x.beginSlice(p, r, `"`+r.AsSync().Sync().String()+`"`)
	x.out.args()
	if !x.style.isLean() {
		x.out.number(`"queue":`, r.AsSync().Queue())
	}
	x.out.close()
}

// showProfiled shows how long the device took for a transfer that did not block. The device's clock is not ours, so the transfer is
// drawn to end when the program learned of its completion, which is the latest possible time.
func (x *trace) showProfiled(p *running, r *wire.Record) {
	v := r.AsTransfer()
	t := p.tag(v.Site())
	if v.Profiled() == wire.CommandOther || !x.showsSlice(t.chosen && v.Moved() >= x.opts.MinSize) {
		return
	}
	p.timed++
	x.report.Slices++
	end, at, name := max(x.heap.Now(), r.Time), x.lane(p, r.Thread).at, quote(v.Profiled().String()+" on the device")
	id := x.id(p, p.timed)
	x.out.open(onDevice, name, at, x.relativeTime(end-min(v.Took(), end)), id)
	x.out.args()
	x.out.text(`"tag":`, t.quoted)
	x.out.number(`"bytes":`, v.Moved())
	x.out.micros(`"device_us":`, v.Took())
	x.out.close()
	x.out.shut(onDevice, name, at, x.relativeTime(end), id)
	x.out.args()
	x.out.close()
}

// showObject begins a lifetime.
func (x *trace) showObject(p *running, o *heap.Object, t *tag) {
	x.out.open(categoryOf(o), t.quoted, x.lane(p, o.Thread).at, x.relativeTime(o.Started), x.id(p, o.ID))
	switch {
	case x.style == packed:
		x.blockFlow(p, o.Block, true)
	case x.opts.Flows:
		_, open := p.flows[o.ID]
		p.flows[o.ID] = struct{}{}
		x.flow(p, o.ID, true, open)
	}
	x.out.args()
	if x.style.isLean() {
		x.out.number(`"granted":`, o.Granted)
		x.out.stack(t)
	} else {
		x.out.number(`"bytes":`, o.Size)
		x.out.number(`"granted":`, o.Granted)
		x.out.number(`"object":`, o.ID)
	}
	x.out.close()
}

// objectEnds say how an object ended.
var objectEnds = [...]string{heap.Released: "", heap.Unknown: `"unknown":`, heap.Leaked: `"leaked":`, heap.Cut: `"cut":`}

// categoryOf keeps objects without memory of their own apart, so that bytes on the others' track add up.
func categoryOf(o *heap.Object) category {
	if o.Owns {
		return buffers
	}
	return subBuffers
}

func (x *trace) hideObject(p *running, o *heap.Object, t *tag, how heap.How) {
	x.out.shut(categoryOf(o), t.quoted, x.lane(p, o.Thread).at, x.relativeTime(max(x.heap.Now(), o.Started)), x.id(p, o.ID))
	x.out.args()
	if key := objectEnds[how]; key != "" {
		x.out.truth(key, true)
	}
	x.out.close()
}

func (x *trace) showBlock(p *running, b *heap.Block, t *tag, group *pool) {
	x.out.open(group.category, group.quoted, x.lane(p, b.Thread).at, x.relativeTime(b.Freed), b.Serial)
	x.out.args()
	if b.State == heap.Slab {
		x.out.number(`"granted":`, b.Size)
		x.out.close()
		return
	}
	x.out.number(`"bytes":`, b.Size)
	if b.State == heap.Cooling {
		x.out.truth(`"cooling":`, true)
	}
	x.out.text(`"tag":`, t.quoted)
	x.out.close()
}

// hideBlock ends a block's stay in the pool, or a slab.
func (x *trace) hideBlock(p *running, b *heap.Block, group *pool, how heap.How) {
	x.out.shut(group.category, group.quoted, x.lane(p, b.Thread).at, x.relativeTime(max(x.heap.Now(), b.Freed)), b.Serial)
	x.out.args()
	x.out.plainText(`"left":`, how.String())
	x.out.close()
}

// poolMoment writes an instant where a block leaves the pool, or a slab comes.
func (x *trace) poolMoment(p *running, r *wire.Record) {
	ns := x.relativeTime(max(x.heap.Now(), r.Time))
	if r.Kind == wire.KindSlab {
		x.out.instant("pool", `"slab"`, "p", p.pool, ns)
		x.out.args()
		x.out.number(`"bytes":`, r.AsSlab().Bytes())
		x.out.close()
		return
	}
	e := r.AsEvict()
	x.out.instant("pool", `"evict: `+e.Reason().String()+`"`, "p", p.pool, ns)
	x.blockFlow(p, e.Block(), false)
	x.out.args()
	x.out.number(`"bytes":`, e.Bytes())
	x.out.close()
}

// writeMark writes an instant for an event that concerns the whole run.
func (x *trace) writeMark(r *wire.Record) {
	at := x.home
	if r.Kind != wire.KindLost {
		at = x.process(r.Process).home
	}
	x.out.instant("mark", quote(markText(r)), "g", at, x.relativeTime(max(x.heap.Now(), r.Time)))
	x.out.args()
	x.out.plainText(`"kind":`, r.Kind.String())
	x.out.close()
}

func markText(r *wire.Record) string {
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
