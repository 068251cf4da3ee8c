package analysis

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// run is the second pass.
type run struct {
	options   *Options
	survey    *survey
	started   uint64
	model     *model.Model
	fold      *life.Fold
	record    *wire.Record // the present one
	processes map[uint32]*process
	latest    *process // of the last record
	total     life.Gauges
	quiet     bool // the last record was carried over: no peak yet
	cut       bool // the run goes on behind the part

	books books
	rows  map[string]*row
	peak  peak
	line  *timeline

	sizes, lifetimes bins
	lag              lags
	misses           misses
	creates, copies  costs // of blocks and slabs; of blocks with the program's bytes in them
	frees            costs
	before           uint64  // buffers from before attach
	byteSeconds      float64 // ∫ in use dt
	clock            uint64  // up to when

	snapshot *model.Snapshot
}

// pinned is the bit of an object's note that says that only sub-objects keep it; the others are the number of its create
// in its thread.
const pinned = 1 << 63

// process is what a process has beside its life.Process.
type process struct {
	number  uint32
	life    *life.Process
	counted life.Gauges // as they are in run.total
	ended   bool
	streams map[uint32]*stream
	stream  *stream // of the last create
	slab    uint32  // ns that the driver took for a slab whose first part is yet to come
	pool    poolCaps
}

func newRun(o *Options, s *survey) *run {
	x := &run{options: o, survey: s, started: o.Header.ClockNS, processes: map[uint32]*process{}, rows: map[string]*row{}}
	if x.started == 0 {
		x.started = s.earliest
	}
	x.fold = life.New(x)
	x.model = model.New(model.Options{
		Program: o.Header.Program, Arguments: o.Header.Arguments, Policy: o.Header.Policy,
		Limits: PolicyLimits(o.Header.Policy, o.Header.Limits), LimitsOf: DefaultLimits, Auto: o.Header.Auto, Started: x.started,
		Removed: x.removed,
	})
	x.line = newTimeline(s, o, x.started)
	x.clock = s.first
	return x
}

// since makes a time relative to the start.
func (x *run) since(ns uint64) uint64 { return relative(x.started, ns) }

func (x *run) process(number uint32) *process {
	if x.latest != nil && x.latest.number == number {
		return x.latest
	}
	p := x.processes[number]
	if p == nil {
		p = &process{number: number, life: x.fold.Process(number), streams: map[uint32]*stream{}}
		x.processes[number] = p
	}
	x.latest = p
	return p
}

func (x *run) step(r *wire.Record) {
	x.record = r
	x.advance(r)
	x.model.Apply(r)
	if r.Kind == wire.KindLost {
		return
	}
	p := x.process(r.Process)
	switch r.Kind {
	case wire.KindEvict:
		x.misses.evicted(p, &r.Event)
	case wire.KindRelease:
		if o := p.life.Object(r.Object); o != nil && r.Outcome == wire.OutcomePinned {
			o.Note |= pinned
		}
	default:
	}
	x.fold.Step(r)
	x.account(p)
	switch r.Kind {
	case wire.KindUse:
		x.lag.seen = true
	case wire.KindSlab:
		if r.Status == 0 && !carried(r) {
			x.creates.add(r.Granted, r.Cost)
			p.slab = r.Cost
		}
	case wire.KindEvict:
		x.frees.add(r.Granted, r.Cost)
	case wire.KindExit:
		p.ended = true
	}
	p.pool.raise(p.life)
}

// advance moves time on to a record.
func (x *run) advance(r *wire.Record) {
	if x.survey.happened(r) {
		if x.quiet {
			x.quiet = false
			x.raise()
		}
		x.line.advance(r.Time, &x.total, x.model.Fragmentation)
		if r.Time > x.clock {
			x.byteSeconds += float64(max(x.total.InUse, 0)) * float64(r.Time-x.clock) / 1e9
			x.clock = r.Time
		}
		if x.line.Step > 0 && r.Kind == wire.KindCreate {
			switch r.Outcome {
			case wire.OutcomeHit:
				x.line.Hits[x.line.at]++
			case wire.OutcomeMiss:
				x.line.Misses[x.line.at]++
			}
		}
		return
	}
	x.quiet = x.quiet || carried(r)
}

// account takes a process's gauges over into the total.
func (x *run) account(p *process) {
	now := &p.life.Gauges
	if *now == p.counted {
		return
	}
	x.total.InUse += now.InUse - p.counted.InUse
	x.total.Requested += now.Requested - p.counted.Requested
	x.total.Cached += now.Cached - p.counted.Cached
	x.total.Cooling += now.Cooling - p.counted.Cooling
	x.total.Room += now.Room - p.counted.Room
	p.counted = *now
	if !x.quiet {
		x.raise()
	}
}

func (x *run) raise() {
	t := &x.total
	x.peak.raise(x.fold.Now, t.InUse, t.InUse+t.Cached+t.Cooling+t.Room)
	x.line.look(t)
}

// removed ends a process whose memory has left the gauges of the model.
func (x *run) removed(number uint32) {
	p := x.process(number)
	x.record = nil
	x.fold.End(p.life, life.Leaked)
	p.life.Gauges = life.Gauges{} // its pool has gone with it
	x.account(p)
}

// Begin implements life.Watcher.
func (x *run) Begin(p *life.Process, o *life.Object) {
	s := x.books.site(p.Number, o.Tag)
	w := x.row(s)
	x.peak.touch(s)
	s.buffers++
	var own int64
	if o.Owns {
		own = int64(o.Granted)
		s.inUse += own
		s.requested += int64(o.Size)
		x.hold(w, own)
	}
	if o.Carried() {
		if w.before() {
			x.before++
		}
		return
	}
	s.creates++
	s.total += o.Size
	w.creates++
	x.sizes.add(o.Size, o.Size)
	at := x.process(p.Number)
	o.Note = x.stream(at, o.Thread).create(x.fold.Now, p.InUse, own)
	switch {
	case o.Outcome == wire.OutcomeMiss:
		x.misses.add(at, o)
		if o.Flags&wire.FlagPart == 0 { // else the SLAB before it was the driver's create
			x.priced(o)
		}
	case o.Outcome == wire.OutcomeDriver && o.Owns:
		x.priced(o)
	}
}

// priced notes what a create took: one that copies takes longer than a block does, often many times.
func (x *run) priced(o *life.Object) {
	if o.Access&wire.CopyHostPtr != 0 {
		x.copies.add(o.Granted, o.Cost)
		return
	}
	x.creates.add(o.Granted, o.Cost)
}

// hold changes what the series of a call site shows.
func (x *run) hold(w *row, bytes int64) {
	if w.series >= 0 {
		x.line.tags[w.series] += bytes
	}
}

// End implements life.Watcher.
func (x *run) End(p *life.Process, o *life.Object, how life.How) {
	s := x.books.site(p.Number, o.Tag)
	w := x.row(s)
	x.peak.touch(s)
	s.buffers--
	if o.Owns {
		s.inUse -= int64(o.Granted)
		s.requested -= int64(o.Size)
		x.hold(w, -int64(o.Granted))
	}
	if x.record != nil && carried(x.record) { // it never lived in this part, or goes on as something larger
		if o.Carried() && w.before() {
			x.before-- // the next create says more of it
		}
		return
	}
	switch how {
	case life.Released:
		x.released(x.process(p.Number), s, o)
		if cost := x.releaseCost(o); cost > 0 {
			x.frees.add(o.Granted, uint32(cost))
		}
	case life.Leaked:
		w.left(s, o)
	default: // nobody knows
	}
}

// releaseCost is what the driver took for the release of an object that goes back to it at once.
func (x *run) releaseCost(o *life.Object) uint64 {
	r := x.record
	if r == nil || r.Kind != wire.KindRelease || r.Object != o.Number || !o.Owns || r.Flags&wire.FlagPart != 0 {
		return 0
	}
	switch r.Outcome {
	case wire.OutcomeCached, wire.OutcomeCooling, wire.OutcomeRefused, wire.OutcomePinned:
		return 0 // an EVICT tells later
	}
	return uint64(r.Cost)
}

// Pool implements life.Watcher.
func (x *run) Pool(p *life.Process, b *life.Block) { x.pooled(p, b, 1) }

// Unpool implements life.Watcher.
func (x *run) Unpool(p *life.Process, b *life.Block, _ life.How) { x.pooled(p, b, -1) }

// pooled changes what the pool has of a call site. What is free in slabs is nobody's.
func (x *run) pooled(p *life.Process, b *life.Block, sign int64) {
	if b.State == life.Slab {
		return
	}
	if w := x.row(x.books.site(p.Number, b.Tag)); w.pooled >= 0 {
		x.line.free[w.pooled] += sign * int64(b.Size)
	}
}

// finish draws the conclusions.
func (x *run) finish() *Analysis {
	x.advanceToEnd()
	x.snapshot = x.model.Publish()
	a := &Analysis{
		Run: Run{
			Header: x.options.Header, Footer: x.options.Footer, Whole: x.options.Whole, Started: x.started,
			Since: x.options.Since, Until: x.options.Until, Process: x.options.Process, Before: x.before,
			Events: x.survey.events,
		},
		Peak: x.peakOf(), CreateCost: x.creates.curve(), CopyCost: x.copies.curve(), ReleaseCost: x.frees.curve(),
		Sizes: x.sizes.list(), Phases: x.phases(),
	}
	if x.options.Tag != nil {
		a.Run.Tag = x.options.Tag.String()
	}
	x.record = nil
	for _, p := range x.fold.Processes() {
		how := life.Leaked
		if x.cut && !x.process(p.Number).ended {
			how = life.Cut
		}
		x.fold.End(p, how)
	}
	a.Lifetimes, a.Lag, a.Temporaries, a.Leaks = x.lifetimes.list(), x.lagOf(), x.temporaries(), x.leaks()
	a.Misses, a.Timeline, a.Flame = x.misses.list(x), x.line.Timeline, x.flame()
	a.Diagnoses = x.diagnose(a)
	a.Snapshot = x.narrowed()
	return a
}

// advanceToEnd closes what is open at the end of the part.
func (x *run) advanceToEnd() {
	if x.quiet {
		x.raise()
	}
	if x.options.Whole && x.options.Until == 0 && x.options.Process == "" {
		x.model.Tick(x.options.Footer.EndedNS)
	}
	if x.line.Step > 0 {
		x.line.close(&x.total, x.model.Fragmentation())
	}
}

// narrowed is the snapshot with the tags that were asked for. Its totals are those of the whole run.
func (x *run) narrowed() *model.Snapshot {
	if x.options.Tag == nil {
		return x.snapshot
	}
	s := *x.snapshot
	s.Tags = []model.Tag{}
	for i := range x.snapshot.Tags {
		if x.options.wanted(x.snapshot.Tags[i].Name) {
			s.Tags = append(s.Tags, x.snapshot.Tags[i])
		}
	}
	return &s
}
