package export

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// names writes what processes and threads are called.
func (x *chrome) names(processes []*surveyed) {
	for _, p := range processes {
		x.nameProcess(p)
		for _, tid := range slices.Sorted(maps.Keys(p.threads)) {
			x.nameThread(p, tid)
		}
	}
}

func (x *chrome) nameProcess(p *surveyed) {
	name := fmt.Sprintf("process %d", p.number)
	if p.program != "" {
		name = path.Base(p.program)
	}
	x.name("process_name", name, placeOf(p.pid, p.pid))
}

func (x *chrome) nameThread(p *surveyed, thread uint32) {
	tid := p.thread(thread)
	name := fmt.Sprintf("thread %d", tid)
	if tid == p.pid {
		name = "main thread"
	}
	x.name("thread_name", name, placeOf(p.pid, tid))
}

func (x *chrome) name(kind, name string, at place) {
	x.out.begin(`{"ph":"M","name":"`, kind+`"`, at)
	x.out.args()
	x.out.raw(`"name":` + quote(name))
	x.out.close()
}

// lane returns where the calls of a thread show.
func (x *chrome) lane(p *running, thread uint32) *lane {
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

// slice begins the slice of a call up to its arguments.
func (x *chrome) slice(p *running, r *wire.Record, name string) {
	l := x.lane(p, r.Thread)
	s := l.fit(span{r.Start(), r.End()})
	x.report.Slices++
	x.out.event(`{"ph":"X","cat":"call","name":`, name, l.at, x.at(s.start))
	x.out.micros(`,"dur":`, s.end-s.start)
}

// wanted reports whether a call is to be shown.
func (x *chrome) wanted(chosen bool) bool {
	if !chosen || x.full() {
		x.report.DroppedSlices++
		return false
	}
	return true
}

// createNames are what creates are called, as JSON.
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

func (x *chrome) createSlice(p *running, r *wire.Record) {
	e := r.AsCreate()
	t := p.tag(e.Tag())
	if !x.wanted(t.chosen && e.Served() >= x.opts.MinSize) {
		return
	}
	x.slice(p, r, createName(e.Memory()))
	if x.opts.Flows && e.Outcome() != wire.OutcomeFailed {
		p.flows[e.Object()] = struct{}{}
		x.flow(p, e.Object(), `,"flow_out":true`)
	}
	x.out.args()
	x.out.raw(`"tag":`)
	x.out.raw(t.quoted)
	x.out.word(`,"outcome":`, e.Outcome().String())
	if e.Outcome() == wire.OutcomeMiss {
		x.out.word(`,"reason":`, e.Reason().String())
	}
	if e.Outcome() == wire.OutcomeFailed {
		x.out.status(int32(e.Status()))
	}
	x.out.number(`,"bytes":`, e.Requested())
	x.out.number(`,"granted":`, e.Served())
	x.out.number(`,"object":`, e.Object())
	x.cost(e.Cost())
	if !t.stackWritten {
		t.stackWritten = true
		x.out.raw(`,"stack":`)
		x.out.raw(t.stack)
	}
	x.out.close()
	x.failed(p, r, t)
}

// cost appends the time in the driver; a call that did not reach it has none, which saves a tenth of a line.
func (x *chrome) cost(ns uint32) {
	if ns > 0 {
		x.out.micros(`,"driver_us":`, uint64(ns))
	}
}

// flow appends the arrow of an object. Its id is one in all processes.
func (x *chrome) flow(p *running, object uint64, ends string) {
	x.out.hex(`,"bind_id":`, uint64(p.number)<<44^object)
	x.out.raw(ends)
}

func (x *chrome) releaseSlice(p *running, r *wire.Record) {
	e := r.AsRelease()
	o := p.life.Object(e.Object())
	chosen := x.opts.Tag == nil && x.opts.MinSize == 0
	if o != nil {
		chosen = p.tag(o.Tag).chosen && o.Granted >= x.opts.MinSize
	}
	if !x.wanted(chosen) {
		return
	}
	x.slice(p, r, `"release"`)
	if _, open := p.flows[e.Object()]; open && e.References() == 0 && e.Outcome() != wire.OutcomePinned {
		x.flow(p, e.Object(), `,"flow_in":true`)
	}
	x.out.args()
	x.out.number(`"object":`, e.Object())
	if e.References() == 0 {
		x.out.word(`,"outcome":`, e.Outcome().String())
	} else {
		x.out.number(`,"references":`, e.References())
	}
	x.cost(e.Cost())
	x.out.close()
}

func (x *chrome) sync(p *running, r *wire.Record) {
	if !x.wanted(x.opts.Tag == nil) {
		return
	}
	x.slice(p, r, `"`+r.AsSync().Sync().String()+`"`)
	x.out.args()
	x.out.number(`"queue":`, r.AsSync().Queue())
	x.out.close()
}

// profiled shows how long the device took for a transfer that did not block. The times of its clock are not ours: it ends where the
// program learned that it had, at the latest.
func (x *chrome) profiled(p *running, r *wire.Record) {
	v := r.AsTransfer()
	t := p.tag(v.Site())
	if v.Profiled() == wire.CommandOther || !x.wanted(t.chosen && v.Moved() >= x.opts.MinSize) {
		return
	}
	p.timed++
	x.report.Slices++
	end, at, name := max(x.heap.Now(), r.Time), x.lane(p, r.Thread).at, quote(v.Profiled().String()+" on the device")
	x.out.event(`{"ph":"b","cat":"device","name":`, name, at, x.at(end-min(v.Took(), end)))
	x.out.id(p.timed)
	x.out.args()
	x.out.raw(`"tag":`)
	x.out.raw(t.quoted)
	x.out.number(`,"bytes":`, v.Moved())
	x.out.micros(`,"device_us":`, v.Took())
	x.out.close()
	x.out.event(`{"ph":"e","cat":"device","name":`, name, at, x.at(end))
	x.out.id(p.timed)
	x.out.args()
	x.out.close()
}

// showObject begins a lifetime. Objects without memory of their own are kept apart, so that bytes on the others' track
// add up.
func (x *chrome) showObject(p *running, o *heap.Object, t *tag) {
	head := `{"ph":"b","cat":"sub","name":`
	if o.Owns {
		head = `{"ph":"b","cat":"buf","name":`
	}
	x.out.event(head, t.quoted, x.lane(p, o.Thread).at, x.at(o.Started))
	x.out.id(o.ID)
	if x.opts.Flows {
		_, open := p.flows[o.ID]
		p.flows[o.ID] = struct{}{}
		x.flow(p, o.ID, `,"flow_out":true`)
		if open {
			x.out.raw(`,"flow_in":true`)
		}
	}
	x.out.args()
	x.out.number(`"bytes":`, o.Size)
	x.out.number(`,"granted":`, o.Granted)
	x.out.number(`,"object":`, o.ID)
	x.out.close()
}

// objectEnds say how an object ended.
var objectEnds = [...]string{heap.Released: "", heap.Unknown: `"unknown":true`, heap.Leaked: `"leaked":true`, heap.Cut: `"cut":true`}

func (x *chrome) hideObject(p *running, o *heap.Object, t *tag, how heap.How) {
	head := `{"ph":"e","cat":"sub","name":`
	if o.Owns {
		head = `{"ph":"e","cat":"buf","name":`
	}
	x.out.event(head, t.quoted, x.lane(p, o.Thread).at, x.at(max(x.heap.Now(), o.Started)))
	x.out.id(o.ID)
	x.out.args()
	x.out.raw(objectEnds[how])
	x.out.close()
}

func (x *chrome) showBlock(p *running, b *heap.Block, t *tag, group *pool) {
	x.out.event(group.begin, group.quoted, x.lane(p, b.Thread).at, x.at(b.Freed))
	x.out.id(b.Serial)
	x.out.args()
	if b.State == heap.Slab {
		x.out.number(`"granted":`, b.Size)
		x.out.close()
		return
	}
	x.out.number(`"bytes":`, b.Size)
	if b.State == heap.Cooling {
		x.out.raw(`,"cooling":true`)
	}
	x.out.raw(`,"tag":`)
	x.out.raw(t.quoted)
	x.out.close()
}

// hideBlock ends a block's stay in the pool, or a slab.
func (x *chrome) hideBlock(p *running, b *heap.Block, group *pool, how heap.How) {
	x.out.event(group.end, group.quoted, x.lane(p, b.Thread).at, x.at(max(x.heap.Now(), b.Freed)))
	x.out.id(b.Serial)
	x.out.args()
	x.out.word(`"left":`, how.String())
	x.out.close()
}

// mark writes an instant for what concerns the whole run.
func (x *chrome) mark(r *wire.Record) {
	at := x.home
	if r.Kind != wire.KindLost {
		at = x.process(r.Process).home
	}
	x.out.event(`{"ph":"i","cat":"mark","name":`, quote(markText(r)), at, x.at(max(x.heap.Now(), r.Time)))
	x.out.raw(`,"s":"g"`)
	x.out.args()
	x.out.word(`"kind":`, r.Kind.String())
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
