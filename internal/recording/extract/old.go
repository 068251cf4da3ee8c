package extract

import (
	"cmp"
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// old keeps records from before the part that a part begins with.
type old struct {
	heap    *heap.Heap
	gauges  map[uint32]wire.Record  // the latest of each process
	figures []wire.Record           // MACHINE: the latest of each source
	limits  []wire.Record           // the latest of each, in the order of their changes
	exits   map[uint32]wire.Record  // the first of each process
	counts  map[counted]wire.Record // the latest OBJECT of each
}

// counted is what an OBJECT counts.
type counted struct {
	process, tag uint32
	held         wire.Held
}

// compareCounted orders by processes.
func compareCounted(a, b counted) int {
	return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.held, b.held), cmp.Compare(a.tag, b.tag))
}

func newOld(memory *heap.Heap) *old {
	return &old{heap: memory, gauges: map[uint32]wire.Record{}, exits: map[uint32]wire.Record{}, counts: map[counted]wire.Record{}}
}

// limitsMax bounds the limits that are kept: a policy has a few dozen, in a handful of processes.
const limitsMax = 1024

// keepAcceptedLimit keeps a change that the target took: the latest of each limit since the latest policy, which began with its own,
// and the latest period, which every policy heeds.
func (o *old) keepAcceptedLimit(r *wire.Record) {
	if r.AsLimit().Status() != 0 {
		return
	}
	name := limitName(r)
	switch name {
	case wire.PlanSetting: // of tags that the part may not name
		return
	case wire.RelieveSetting: // of blocks that are gone
		return
	case wire.ArmsSetting, wire.ArmSetting: // an experiment counts the requests before the part
		return
	}
	o.limits = slices.DeleteFunc(o.limits, func(l wire.Record) bool {
		was := limitName(&l)
		return l.Process == r.Process && (was == name || name == wire.PolicySetting && was != wire.PeriodSetting)
	})
	if len(o.limits) < limitsMax {
		o.limits = append(o.limits, cloneRecord(r))
	}
}

// keepMachineFigure keeps a MACHINE record, the latest of each source.
func (o *old) keepMachineFigure(r *wire.Record) {
	m := r.AsMachine()
	o.figures = slices.DeleteFunc(o.figures, func(f wire.Record) bool {
		had := f.AsMachine()
		return f.Process == r.Process && had.Source() == m.Source() && had.Device() == m.Device()
	})
	if len(o.figures) < limitsMax {
		o.figures = append(o.figures, *r)
	}
}

// keepObjectCount keeps an OBJECT, marked as carried over. Their number is bounded by the call sites of the part.
func (o *old) keepObjectCount(r *wire.Record) {
	key := counted{r.Process, r.AsObject().Tag(), r.AsObject().Held()}
	latest := r.AsObject().Fields()
	if before, known := o.counts[key]; known { // records of several threads may come in another order
		latest.Created, latest.Released = max(latest.Created, before.AsObject().Created()), max(latest.Released, before.AsObject().Released())
	}
	latest.Most, latest.CarriedOver = latest.Created-min(latest.Released, latest.Created), true
	o.counts[key] = wire.Record{Process: r.Process, Thread: r.Thread, Event: latest.Event()}
}

// limitName returns the name before the = of a LIMIT.
func limitName(r *wire.Record) string {
	name, _ := wire.ParseLimit(r.Payload)
	return string(name)
}

// cloneRecord copies a record with its payload.
func cloneRecord(r *wire.Record) wire.Record {
	kept := *r
	kept.Payload = slices.Clone(r.Payload)
	return kept
}

// keepIfUnknownToHeap keeps a record from before the part, and reports whether the record is of a kind that the heap does not use.
func (o *old) keepIfUnknownToHeap(r *wire.Record) bool {
	switch r.Kind {
	case wire.KindLimit:
		o.keepAcceptedLimit(r)
	case wire.KindExit:
		if _, known := o.exits[r.Process]; !known {
			o.exits[r.Process] = *r
		}
	case wire.KindGauge:
		o.gauges[r.Process] = *r
	case wire.KindMachine:
		o.keepMachineFigure(r)
	case wire.KindObject:
		o.keepObjectCount(r)
	default:
		return false
	}
	return true
}

// recordsAtPartStart returns the first records of a part after the names.
func (o *old) recordsAtPartStart(since uint64, gone func(process uint32) bool) (list []wire.Record) {
	for _, process := range o.heap.Processes() {
		if !gone(process.Number) {
			list = appendCarriedOver(list, process, since)
		}
	}
	list = appendByProcess(list, o.gauges)
	for _, key := range slices.SortedFunc(maps.Keys(o.counts), compareCounted) {
		list = append(list, o.counts[key])
	}
	list = append(append(list, o.limits...), o.figures...)
	return appendByProcess(list, o.exits)
}

// forgetProcess drops the records of a process that is gone.
func (o *old) forgetProcess(process uint32) {
	of := func(r wire.Record) bool { return r.Process == process }
	delete(o.gauges, process)
	delete(o.exits, process)
	o.limits, o.figures = slices.DeleteFunc(o.limits, of), slices.DeleteFunc(o.figures, of)
	maps.DeleteFunc(o.counts, func(c counted, _ wire.Record) bool { return c.process == process })
}

// appendByProcess appends records in the order of their processes' numbers.
func appendByProcess(list []wire.Record, records map[uint32]wire.Record) []wire.Record {
	for _, process := range slices.Sorted(maps.Keys(records)) {
		list = append(list, records[process])
	}
	return list
}
