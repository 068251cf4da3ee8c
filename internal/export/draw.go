package export

import (
	"fmt"
	"maps"
	"path"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
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
	s := span{r.Start(), r.Time}
	if r.Kind != wire.KindCreate {
		s.end = r.Time + uint64(r.Duration)
	}
	s = l.fit(s)
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

func createName(op uint8) string {
	if int(op) < len(createNames) {
		return createNames[op]
	}
	return `"create ` + wire.Memory(op).String() + `"`
}

func (x *chrome) createSlice(p *running, r *wire.Record) {
	t := p.tag(r.Tag)
	if !x.wanted(t.chosen && r.Served() >= x.opts.MinSize) {
		return
	}
	x.slice(p, r, createName(r.Op))
	if x.opts.Flows && r.Outcome != wire.OutcomeFailed {
		p.flows[r.Object] = struct{}{}
		x.flow(p, r.Object, `,"flow_out":true`)
	}
	x.out.args()
	x.out.raw(`"tag":`)
	x.out.raw(t.quoted)
	x.out.word(`,"outcome":`, r.Outcome.String())
	if r.Outcome == wire.OutcomeMiss {
		x.out.word(`,"reason":`, wire.Miss(r.Reason).String())
	}
	if r.Outcome == wire.OutcomeFailed {
		x.out.signed(`,"status":`, int64(r.Status))
	}
	x.out.number(`,"bytes":`, r.Size)
	x.out.number(`,"granted":`, r.Served())
	x.out.number(`,"object":`, r.Object)
	x.cost(r)
	if !t.told {
		t.told = true
		x.out.raw(`,"stack":`)
		x.out.raw(t.stack)
	}
	x.out.close()
}

// cost appends the time in the driver; a call that did not reach it has none, which saves a tenth of a line.
func (x *chrome) cost(r *wire.Record) {
	if r.Cost > 0 {
		x.out.micros(`,"driver_us":`, uint64(r.Cost))
	}
}

// flow appends the arrow of an object. Its id is one in all processes.
func (x *chrome) flow(p *running, object uint64, ends string) {
	x.out.hex(`,"bind_id":`, uint64(p.number)<<44^object)
	x.out.raw(ends)
}

func (x *chrome) releaseSlice(p *running, r *wire.Record) {
	o := p.life.Object(r.Object)
	chosen := x.opts.Tag == nil && x.opts.MinSize == 0
	if o != nil {
		chosen = p.tag(o.Tag).chosen && o.Granted >= x.opts.MinSize
	}
	if !x.wanted(chosen) {
		return
	}
	x.slice(p, r, `"release"`)
	if _, open := p.flows[r.Object]; open && r.Granted == 0 && r.Outcome != wire.OutcomePinned {
		x.flow(p, r.Object, `,"flow_in":true`)
	}
	x.out.args()
	x.out.number(`"object":`, r.Object)
	if r.Granted == 0 {
		x.out.word(`,"outcome":`, r.Outcome.String())
	} else {
		x.out.number(`,"references":`, r.Granted)
	}
	x.cost(r)
	x.out.close()
}

func (x *chrome) sync(p *running, r *wire.Record) {
	if !x.wanted(x.opts.Tag == nil) {
		return
	}
	x.slice(p, r, `"`+wire.Sync(r.Op).String()+`"`)
	x.out.args()
	x.out.number(`"queue":`, r.Link)
	x.out.close()
}

// showObject begins a lifetime. Objects without memory of their own are kept apart, so that bytes on the others' track
// add up.
func (x *chrome) showObject(p *running, o *life.Object, t *tag) {
	head := `{"ph":"b","cat":"sub","name":`
	if o.Owns {
		head = `{"ph":"b","cat":"buf","name":`
	}
	x.out.event(head, t.quoted, x.lane(p, o.Thread).at, x.at(o.Started))
	x.out.id(o.Number)
	if x.opts.Flows {
		_, open := p.flows[o.Number]
		p.flows[o.Number] = struct{}{}
		x.flow(p, o.Number, `,"flow_out":true`)
		if open {
			x.out.raw(`,"flow_in":true`)
		}
	}
	x.out.args()
	x.out.number(`"bytes":`, o.Size)
	x.out.number(`,"granted":`, o.Granted)
	x.out.number(`,"object":`, o.Number)
	x.out.close()
}

// objectEnds say how an object ended.
var objectEnds = [...]string{life.Released: "", life.Unknown: `"unknown":true`, life.Leaked: `"leaked":true`, life.Cut: `"cut":true`}

func (x *chrome) hideObject(p *running, o *life.Object, t *tag, how life.How) {
	head := `{"ph":"e","cat":"sub","name":`
	if o.Owns {
		head = `{"ph":"e","cat":"buf","name":`
	}
	x.out.event(head, t.quoted, x.lane(p, o.Thread).at, x.at(max(x.fold.Now, o.Started)))
	x.out.id(o.Number)
	x.out.args()
	x.out.raw(objectEnds[how])
	x.out.close()
}

func (x *chrome) showBlock(p *running, b *life.Block, t *tag, group *pool) {
	x.out.event(group.begin, group.quoted, x.lane(p, b.Thread).at, x.at(b.Freed))
	x.out.id(b.Serial)
	x.out.args()
	if b.State == life.Slab {
		x.out.number(`"granted":`, b.Size)
		x.out.close()
		return
	}
	x.out.number(`"bytes":`, b.Size)
	if b.State == life.Cooling {
		x.out.raw(`,"cooling":true`)
	}
	x.out.raw(`,"tag":`)
	x.out.raw(t.quoted)
	x.out.close()
}

// hideBlock ends a block's stay in the pool, or a slab.
func (x *chrome) hideBlock(p *running, b *life.Block, group *pool, how life.How) {
	x.out.event(group.end, group.quoted, x.lane(p, b.Thread).at, x.at(max(x.fold.Now, b.Freed)))
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
	x.out.event(`{"ph":"i","cat":"mark","name":`, quote(markText(r)), at, x.at(max(x.fold.Now, r.Time)))
	x.out.raw(`,"s":"g"`)
	x.out.args()
	x.out.word(`"kind":`, r.Kind.String())
	x.out.close()
}

func markText(r *wire.Record) string {
	switch {
	case r.Kind == wire.KindLost:
		return fmt.Sprintf("%d events lost", r.Size)
	case r.Kind == wire.KindDiag:
		return wire.Diag(r.Op).String() + ": " + string(r.Payload)
	case r.Status != 0:
		return "limit refused: " + string(r.Payload)
	}
	return "limit " + string(r.Payload)
}
