package export

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// names writes what processes and threads are called.
func (x *chrome) names(processes []*surveyed) {
	for _, p := range processes {
		name := fmt.Sprintf("process %d", p.number)
		if p.program != "" {
			name = path.Base(p.program)
		}
		x.name("process_name", name, place{p.pid, p.pid})
		for _, tid := range slices.Sorted(maps.Keys(p.threads)) {
			at := place{p.pid, p.thread(tid)}
			name := fmt.Sprintf("thread %d", at.tid)
			if at.tid == at.pid {
				name = "main thread"
			}
			x.name("thread_name", name, at)
		}
	}
}

func (x *chrome) name(kind, name string, at place) {
	x.out.event("M", "", `"`+kind+`"`, at, 0)
	x.out.args()
	x.out.raw(`"name":` + quote(name))
	x.out.close()
}

// chosen reports whether a tag's slices and lifetimes are asked for.
func (x *chrome) chosen(t *tag) bool {
	return x.opts.Tag == nil || t != nil && x.opts.Tag.MatchString(t.name)
}

func (x *chrome) full() bool { return x.opts.MaxEvents > 0 && x.out.events >= x.opts.MaxEvents }

// slice begins the slice of a call up to its arguments; false when it is left out. t is nil for calls without one.
func (x *chrome) slice(p *running, r *wire.Record, name string, t *tag) bool {
	if !x.inside {
		return false
	}
	if !x.chosen(t) || x.full() {
		x.report.DroppedSlices++
		return false
	}
	l := p.lanes[r.Thread]
	if l == nil {
		l = &lane{floor: x.since}
		p.lanes[r.Thread] = l
	}
	s := span{r.Start(), r.Time}
	if r.Kind != wire.KindCreate {
		s.end = r.Time + uint64(r.Duration)
	}
	s = l.fit(s)
	x.report.Slices++
	x.out.event("X", "call", name, place{p.pid, p.thread(r.Thread)}, x.at(s.start))
	x.out.micros(`,"dur":`, s.end-s.start)
	x.out.args()
	return true
}

func (x *chrome) createSlice(p *running, r *wire.Record, t *tag) {
	if !x.slice(p, r, `"create `+wire.Memory(r.Op).String()+`"`, t) {
		return
	}
	x.out.raw(`"tag":` + t.quoted)
	x.out.word(`,"outcome":`, r.Outcome.String())
	if r.Outcome == wire.OutcomeMiss {
		x.out.word(`,"reason":`, wire.Miss(r.Reason).String())
	}
	if r.Outcome == wire.OutcomeFailed {
		x.out.signed(`,"status":`, int64(r.Status))
	}
	x.out.number(`,"bytes":`, r.Size)
	x.out.number(`,"granted":`, grantedBytes(&r.Event))
	x.out.number(`,"object":`, r.Object)
	x.out.micros(`,"driver_us":`, uint64(r.Cost))
	x.out.close()
}

func (x *chrome) releaseSlice(p *running, r *wire.Record, o *object) {
	var t *tag
	if o != nil {
		t = o.tag
	}
	if !x.slice(p, r, `"release"`, t) {
		return
	}
	x.out.number(`"object":`, r.Object)
	x.out.number(`,"references":`, r.Granted)
	if r.Granted == 0 {
		x.out.word(`,"outcome":`, r.Outcome.String())
	}
	x.out.micros(`,"driver_us":`, uint64(r.Cost))
	x.out.close()
}

func (x *chrome) sync(p *running, r *wire.Record) {
	if x.slice(p, r, `"`+wire.Sync(r.Op).String()+`"`, nil) {
		x.out.number(`"queue":`, r.Link)
		x.out.close()
	}
}

// lifetime reports whether a lifetime of a tag is to be begun now.
func (x *chrome) lifetime(t *tag) bool {
	if !x.inside || x.opts.NoLifetimes {
		return false
	}
	if !x.chosen(t) || x.full() {
		x.report.DroppedLifetimes++
		return false
	}
	x.report.Lifetimes++
	return true
}

// category keeps objects without memory of their own apart, so that bytes on the others' track add up.
func (o *object) category() string {
	if o.owns {
		return "buf"
	}
	return "sub"
}

func (x *chrome) showObject(p *running, number uint64, o *object) {
	if o.shown = x.lifetime(o.tag); !o.shown {
		return
	}
	x.out.event("b", o.category(), o.tag.quoted, place{p.pid, o.tid}, x.at(max(o.started, x.since)))
	x.out.id(number)
	x.out.raw("}")
	x.out.args()
	x.out.number(`"bytes":`, o.size)
	x.out.number(`,"granted":`, o.granted)
	x.out.number(`,"object":`, number)
	x.out.close()
}

// hideObject ends the lifetime of an object; how says why when it was not released.
func (x *chrome) hideObject(p *running, number uint64, o *object, how string) {
	if !o.shown {
		return
	}
	o.shown = false
	x.out.event("e", o.category(), o.tag.quoted, place{p.pid, o.tid}, x.at(max(x.now, o.started)))
	x.out.id(number)
	x.out.raw("}")
	x.out.args()
	if how != "" {
		x.out.raw(`"` + how + `":true`)
	}
	x.out.close()
}

func (x *chrome) showBlock(p *running, b *block) {
	if b.shown = x.lifetime(b.tag); !b.shown {
		return
	}
	category, name := poolName(b)
	x.out.event("b", category, name, place{p.pid, b.tid}, x.at(max(b.freed, x.since)))
	x.out.id(b.serial)
	x.out.raw("}")
	x.out.args()
	if b.state == blockSlab {
		x.out.number(`"granted":`, b.size)
		x.out.close()
		return
	}
	x.out.number(`"bytes":`, b.size)
	x.out.raw(`,"cooling":` + strconv.FormatBool(b.state == blockCooling))
	x.out.raw(`,"tag":` + b.tag.quoted)
	x.out.close()
}

// hideBlock ends a block's stay in the pool, or a slab.
func (x *chrome) hideBlock(p *running, b *block, how string) {
	if !b.shown {
		return
	}
	b.shown = false
	category, name := poolName(b)
	x.out.event("e", category, name, place{p.pid, b.tid}, x.at(max(x.now, b.freed)))
	x.out.id(b.serial)
	x.out.raw("}")
	x.out.args()
	x.out.word(`"left":`, how)
	x.out.close()
}

// poolName returns the category and the name of a block's stay in the pool.
func poolName(b *block) (category, name string) {
	if b.state == blockSlab {
		return "slab", `"slab ` + size.Format(b.size) + `"`
	}
	return "cache", `"free ` + size.Format(b.size) + `"`
}

// mark writes an instant for what concerns the whole run.
func (x *chrome) mark(r *wire.Record) {
	if !x.inside {
		return
	}
	at := x.home
	if p := x.seen.processes[r.Process]; p != nil {
		at = place{p.pid, p.pid}
	}
	x.out.event("i", "mark", quote(markText(r)), at, x.at(x.now))
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

// countersBefore writes the values that held when the next counters were due, when that was before now.
func (x *chrome) countersBefore(p *running) {
	if x.inside && p.changed && p.counted && x.now > p.due {
		x.counters(p, p.due)
	}
}

// countersAfter writes the values after a record, unless the last ones are too fresh.
func (x *chrome) countersAfter(p *running) {
	if x.inside && p.changed && x.now >= p.due {
		x.counters(p, x.now)
	}
}

func (x *chrome) counters(p *running, ns uint64) {
	p.changed, p.counted, p.due = false, true, ns+x.every
	at := place{p.pid, p.pid}
	x.out.event("C", "", `"mem"`, at, x.at(ns))
	x.out.args()
	x.out.number(`"in_use":`, uint64(max(p.inUse, 0)))
	x.out.number(`,"cached":`, uint64(max(p.cached, 0)+max(p.room, 0)))
	x.out.number(`,"cooling":`, uint64(max(p.cooling, 0)))
	x.out.close()
	if p.hits+p.misses == 0 {
		return
	}
	x.out.event("C", "", `"hit rate %"`, at, x.at(ns))
	x.out.args()
	x.out.raw(`"total":`)
	x.out.b = strconv.AppendFloat(x.out.b, 100*float64(p.hits)/float64(p.hits+p.misses), 'f', 2, 64)
	x.out.close()
}
