package tables

import (
	"maps"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MakeRows reads a source once more and makes the rows of the wanted processes; wanted nil: of all. Memory
// grows with live objects and blocks, not with records. It leaves the source at its end.
func (r *Run) MakeRows(src recording.Source, wanted func(process uint32) bool, sink Sink) error {
	w := &walk{run: r, sink: sink, processes: map[uint32]*process{}}
	w.heap = heap.New(heap.Options{}, w)
	for record, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		if wanted != nil && !wanted(record.Process) {
			continue
		}
		w.record = record
		if w.takeRecord(); w.err != nil {
			return w.err
		}
	}
	w.cut = recording.RunGoesOn(src)
	return w.finishRows()
}

type walk struct {
	heap.Base
	run       *Run
	sink      Sink
	heap      *heap.Heap
	processes map[uint32]*process
	latest    *process
	record    *wire.Record // the present one
	err       error        // the sink's first error
	cut       bool         // the run goes on after the source's end

	sides  stats.Sides
	event  Event
	buffer Buffer
	stay   Stay
	sample Sample
}

// process is a process whose rows are being made.
type process struct {
	*Facts
	uses  map[uint64]int64 // of live objects
	times sampler
	near  near
	peak  int64
}

func (w *walk) process(number uint32) *process {
	if w.latest != nil && w.latest.Number == number {
		return w.latest
	}
	p := w.processes[number]
	if p == nil {
		p = &process{Facts: w.run.processes[number], uses: map[uint64]int64{}}
		w.processes[number] = p
	}
	w.latest = p
	return p
}

func (w *walk) takeRecord() {
	r := w.record
	p := w.process(r.Process)
	if w.sink.Event != nil {
		w.addEventRow(p, r)
	}
	if r.Kind == wire.KindLost {
		return
	}
	if r.Process != 0 {
		w.makeSamplesUntil(p, max(r.Time, w.heap.Now()))
	}
	w.handleBeforeHeap(p, r)
	if r.Kind == wire.KindObject && w.sink.Held != nil {
		w.addObjectRow(p, r)
	}
	l := w.heap.Apply(r)
	p.times.noteHeldMemory(l, r.Flags&wire.FlagCarried != 0)
	p.near.noteLevel(l.InUse, min(w.heap.Now(), p.endTime(w.run)), r.Flags&wire.FlagCarried == 0)
	p.peak = max(p.peak, p.times.peak)
	if r.Kind == wire.KindUse && l.Object(r.Object) != nil {
		p.uses[r.Object]++
	}
}

func (w *walk) addEventRow(p *process, r *wire.Record) {
	e := &r.Event
	since := w.run.sinceStart(r.Time)
	row := &w.event
	*row = Event{
		Recording: p.Recording, Number: int32(p.Original), Time: w.run.sinceEpoch(since), TimeNS: since, Kind: e.Kind.String(),
		Op: wordOfOp(e), Outcome: wordOfOutcome(e), Reason: wordOfReason(e), Flags: flagWords()[flagsWithWords(e)],
		Carried: e.Flags&wire.FlagCarried != 0, Thread: int64(r.Thread), Context: int32(e.Scope),
		Access: int32(e.Access), Status: int32(e.Status), Tag: int64(e.Tag), Object: int64(e.Object),
		Link: int64(e.Link), Size: clampToSigned(e.Size), Granted: clampToSigned(e.Granted), Duration: int64(e.Duration),
		Cost: int64(e.Cost),
	}
	if e.Kind == wire.KindUse {
		addUseColumns(row, e)
	} else if origin, known := e.OffsetInParent(); known {
		row.Granted, row.Offset = 0, pointerTo(clampToSigned(origin))
	}
	if tagIsCallSite(e) {
		row.Site = w.run.names.Process(p.Number).Site(e.Tag).Name
	}
	if e.Kind.HasPayload() {
		row.Size = 0
		if e.Kind != wire.KindTag { // the payload of a TAG is no text
			row.Text = units.Clean(r.Payload)
		}
	}
	w.noteError(w.sink.Event(p.Number, row))
}

func (w *walk) addObjectRow(p *process, r *wire.Record) {
	v, since := r.AsObject(), w.run.sinceStart(r.Time)
	site := w.run.siteIfWanted(p.Number, v.Tag())
	if site == nil {
		return
	}
	w.noteError(w.sink.Held(p.Number, &Held{
		Recording: p.Recording, Number: int32(p.Original), Time: w.run.sinceEpoch(since), TimeNS: since, Type: v.Held().String(),
		Tag: int64(v.Tag()), Site: site.Name, Created: clampToSigned(v.Created()), Released: clampToSigned(v.Released()),
		Live: clampToSigned(v.Created() - min(v.Released(), v.Created())), Most: clampToSigned(v.Most()), Carried: v.CarriedOver(),
	}))
}

// addUseColumns fills in the columns that only uses have.
func addUseColumns(row *Event, e *wire.Event) {
	row.Scattered = e.Flags&wire.FlagScattered != 0
	row.Duration = 0
	if e.Duration > 0 {
		row.Argument = pointerTo(int64(e.Duration) - 1)
	}
	switch wire.Command(e.Op) {
	case wire.CommandKernel, wire.CommandNative:
		return
	default:
	}
	row.Granted = 0
	if e.Granted > 0 || !row.Scattered {
		row.Offset = pointerTo(clampToSigned(e.Granted))
	}
}

func (w *walk) noteError(err error) {
	if w.err == nil {
		w.err = err
	}
}

// finishRows ends what is alive, and makes the rows that need the whole source.
func (w *walk) finishRows() error {
	w.record = &wire.Record{}
	for _, l := range w.heap.Processes() {
		p := w.process(l.Number)
		left := l.InUse
		w.makeLastSample(p)
		w.heap.EndObjects(l, l.HowMemoryEnds(w.cut))
		if w.sink.Process != nil && w.err == nil && l.Number != 0 {
			w.noteError(w.sink.Process(l.Number, w.run.newProcessRow(p, l, left)))
		}
	}
	if w.sink.Tag != nil {
		w.addTagRows()
	}
	return w.err
}

// newProcessRow makes a row of a process; left is what it had in use at the end.
func (r *Run) newProcessRow(p *process, l *heap.Process, left int64) *Process {
	h, names := &r.options.Header, r.names.Process(p.Number)
	started, last := r.sinceStart(p.started), r.sinceStart(p.last)
	row := &Process{
		Recording: p.Recording, Number: int32(p.Original), PID: int64(names.PID), Parent: int64(names.Parent),
		Hostname: units.Clean(p.Host), Program: names.Program, Arguments: names.Arguments,
		Policy: h.Policy, Limits: h.Limits, Labels: h.IdentityOf(p.Number).Labels, Tags: h.Tags, Scrub: h.Scrub, DeviceMemory: clampToSigned(h.DeviceMemory),
		Started: r.sinceEpoch(started), StartedNS: started, Last: r.sinceEpoch(last), LastNS: last, Exited: p.exited, Status: p.status,
		Records: clampToSigned(p.Records), Hits: clampToSigned(l.Hits), Misses: clampToSigned(l.Misses), PeakInUse: p.peak, InUse: left,
		LostEvents: clampToSigned(r.lost), NearPeak: clampToSigned(p.near.timeNearPeak(p.endTime(r))), Identity: names.IdentityOfRun(h), App: names.AppName(h),
	}
	for i := range h.Merged {
		if o := &h.Merged[i]; p.Number >= o.First && p.Number <= o.Last {
			row.Policy, row.Limits = o.Policy, o.Limits
		}
	}
	if len(names.Devices) > 0 {
		d := &names.Devices[0]
		row.Device, row.DeviceID, row.Driver, row.DeviceBytes = d.Name, d.Identity, d.Driver, clampToSigned(d.Global)
	}
	return row
}

func (w *walk) addTagRows() {
	for _, number := range slices.Sorted(maps.Keys(w.processes)) {
		p := w.process(number)
		for tag := range w.run.names.Process(number).Tags() {
			site := w.run.siteIfWanted(number, tag)
			if site == nil || w.err != nil {
				continue
			}
			w.noteError(w.sink.Tag(number, &Tag{
				Recording: p.Recording, Number: int32(p.Original), Tag: int64(tag), Site: site.Name, Stack: site.Stack,
			}))
		}
	}
}
