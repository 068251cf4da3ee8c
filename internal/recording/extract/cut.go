// Package extract takes a part of a run: some time of it, some processes. What was there when the part begins comes first,
// as records with wire.FlagCarried, so that whatever is made of the part is right about what it holds. It reads no
// clock.
//
// A part has, in this order: what names things, as it was before Since; for each process what is in the pool and what
// the application holds, with the times when that came to be; how many objects of each type each call site holds; what the
// policy said last of its slabs, each limit that was changed, with its last value, and the exits that are under way, with
// their times; all records from the first one that is not before Since to the last one before one that is behind Until;
// names of call sites in it that came later, at Until. Processes that ended before Since are not in it.
package extract

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options say which part. The zero value takes everything.
type Options struct {
	Since, Until uint64            // CLOCK_MONOTONIC ns, both included; Until 0: to the end
	Process      func(uint32) bool // by number in the session; nil: all
}

// Range returns the part of a source. Its records before Since are read twice each time that reading starts again;
// memory grows with what is alive at Since, and with call sites.
func Range(src recording.Source, o Options) recording.Source {
	if o.Since == 0 && o.Until == 0 && o.Process == nil {
		return src
	}
	if o.Until == 0 {
		o.Until = math.MaxUint64
	}
	p := &part{src: src, options: o}
	p.reset()
	return p
}

// stage is how far reading has come.
type stage uint8

const (
	outside stage = iota // nothing was read
	before
	within
	behind
)

// part is a part of a source.
type part struct {
	src     recording.Source
	options Options
	stage   stage
	old     *old
	gone    map[uint32]bool // processes that ended before Since
	queue   []wire.Record   // to return next
	unnamed map[site]bool   // call sites that were given without their names
}

// site is a call site.
type site struct{ process, tag uint32 }

// Rewind implements trace.Source.
func (p *part) Rewind() error {
	p.reset()
	return p.src.Rewind()
}

func (p *part) reset() {
	*p = part{src: p.src, options: p.options, unnamed: map[site]bool{}}
	if p.options.Since == 0 {
		p.stage = within
	}
}

// Damage returns what the source could not read so far.
func (p *part) Damage() string { return recording.DamageOf(p.src) }

// Cut reports, once Next has given io.EOF, whether the run goes on behind the part: what lives then is no leak.
func (p *part) Cut() bool { return p.stage == behind || recording.GoesOn(p.src) }

// Next implements trace.Source.
func (p *part) Next(r *wire.Record) error {
	for {
		given, err := p.step(r)
		if err != nil {
			return err
		}
		if given {
			p.note(r)
			return nil
		}
	}
}

// step takes one record and says whether it is to be given.
func (p *part) step(r *wire.Record) (bool, error) {
	if len(p.queue) > 0 {
		*r, p.queue = p.queue[0], p.queue[1:]
		return true, nil
	}
	switch p.stage {
	case outside:
		return false, p.survey(r)
	case before:
		return p.before(r)
	case within:
		return p.within(r)
	default:
		return p.behind(r)
	}
}

// note keeps which call sites still lack their names. Those that came late are brought into the part.
func (p *part) note(r *wire.Record) {
	if r.Kind.Late() {
		r.Time = min(r.Time, p.options.Until)
	}
	switch r.Kind {
	case wire.KindTag:
		if mode := r.AsTag().Mode(); mode == wire.TagsCaller || mode == wire.TagsStack {
			p.unnamed[site{r.Process, r.DefinedTag()}] = true
		}
	case wire.KindSite:
		delete(p.unnamed, site{r.Process, r.DefinedTag()})
	default: // has no name of its own to come
	}
}

func (p *part) wanted(r *wire.Record) bool {
	if r.Kind == wire.KindLost && r.Process == 0 {
		return true
	}
	return !p.gone[r.Process] && (p.options.Process == nil || p.options.Process(r.Process))
}

// within gives what is in the part.
func (p *part) within(r *wire.Record) (bool, error) {
	if err := p.src.Next(r); err != nil {
		return false, err
	}
	switch {
	case r.Time <= p.options.Until:
	case r.Kind.Late(): // what follows it may have been before
	default:
		p.stage = behind
		return p.missing(r), nil
	}
	return p.wanted(r), nil
}

// behind gives the names that are still missing.
func (p *part) behind(r *wire.Record) (bool, error) {
	if len(p.unnamed) == 0 {
		return false, io.EOF
	}
	if err := p.src.Next(r); err != nil {
		return false, err
	}
	return p.missing(r), nil
}

// missing reports whether a record behind the part has a name that is still missing.
func (p *part) missing(r *wire.Record) bool {
	return r.Kind == wire.KindSite && p.unnamed[site{r.Process, r.DefinedTag()}]
}

// survey looks which processes end before the part, and goes back to the start.
func (p *part) survey(r *wire.Record) error {
	p.stage, p.gone, p.old = before, map[uint32]bool{}, newOld()
	last := map[uint32]uint64{} // time of the last word of those that exit
	for {
		err := p.src.Next(r)
		if errors.Is(err, io.EOF) || err == nil && r.Time >= p.options.Since && !r.Kind.Late() {
			break
		}
		if err != nil {
			return fmt.Errorf("look for the start: %w", err)
		}
		if _, exits := last[r.Process]; exits || r.Kind == wire.KindExit {
			last[r.Process] = max(last[r.Process], r.Time)
		}
		if r.Kind == wire.KindExit && r.Thread == 0 { // the session's word: it is gone
			p.gone[r.Process] = true
		}
	}
	for process, time := range last {
		if p.options.Since-time >= heap.Grace {
			p.gone[process] = true
		}
	}
	if err := p.src.Rewind(); err != nil {
		return fmt.Errorf("go back to the start: %w", err)
	}
	return nil
}

// old is what the records before the part leave behind.
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

func newOld() *old {
	return &old{heap: heap.New(heap.Options{}), gauges: map[uint32]wire.Record{}, exits: map[uint32]wire.Record{}, counts: map[counted]wire.Record{}}
}

// limitsMax bounds the limits that are kept: a policy has a few dozen, in a handful of processes.
const limitsMax = 1024

// limit keeps a change that the target took: the latest of each limit since the latest policy, which began with its own.
func (o *old) limit(r *wire.Record) {
	if r.AsLimit().Status() != 0 {
		return
	}
	name := limitName(r)
	if name == wire.PlanSetting { // of tags that the part may not name
		return
	}
	o.limits = slices.DeleteFunc(o.limits, func(l wire.Record) bool {
		return l.Process == r.Process && (name == wire.PolicySetting || limitName(&l) == name)
	})
	if len(o.limits) < limitsMax {
		o.limits = append(o.limits, keep(r))
	}
}

// figure keeps the latest figure of the machine.
func (o *old) figure(r *wire.Record) {
	m := r.AsMachine()
	o.figures = slices.DeleteFunc(o.figures, func(f wire.Record) bool {
		had := f.AsMachine()
		return f.Process == r.Process && had.Source() == m.Source() && had.Device() == m.Device()
	})
	if len(o.figures) < limitsMax {
		o.figures = append(o.figures, *r)
	}
}

// count keeps an OBJECT as one that says what was there. Call sites are bounded by those of the part.
func (o *old) count(r *wire.Record) {
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

// keep copies a record with its payload.
func keep(r *wire.Record) wire.Record {
	kept := *r
	kept.Payload = slices.Clone(r.Payload)
	return kept
}

// before takes one record of the time before the part. It gives those that name things.
func (p *part) before(r *wire.Record) (bool, error) {
	err := p.src.Next(r)
	ended := errors.Is(err, io.EOF)
	switch {
	case err != nil && !ended:
		return false, fmt.Errorf("look for the start: %w", err)
	case ended:
		p.enter()
		return false, nil
	case r.Time >= p.options.Since && !r.Kind.Late(): // behind a late one may come what was before
		p.enter()
		p.first(r)
		return false, nil
	case !p.wanted(r):
		return false, nil
	}
	switch r.Kind {
	case wire.KindProcess, wire.KindThread, wire.KindModule, wire.KindTag, wire.KindSite, wire.KindDevice,
		wire.KindContext, wire.KindQueue, wire.KindKernel:
		return true, nil
	case wire.KindLimit:
		p.old.limit(r)
	case wire.KindExit:
		if _, known := p.old.exits[r.Process]; !known {
			p.old.exits[r.Process] = *r
		}
	case wire.KindGauge:
		p.old.gauges[r.Process] = *r
	case wire.KindMachine:
		p.old.figure(r)
	case wire.KindObject:
		p.old.count(r)
	default:
		p.old.heap.Apply(r)
	}
	return false, nil
}

// enter begins the part: what was there is to be given.
func (p *part) enter() {
	p.stage = within
	for _, process := range p.old.heap.Processes() {
		p.carryOver(process)
	}
	p.add(p.old.gauges)
	for _, key := range slices.SortedFunc(maps.Keys(p.old.counts), compareCounted) {
		p.queue = append(p.queue, p.old.counts[key])
	}
	p.queue = append(append(p.queue, p.old.limits...), p.old.figures...)
	p.add(p.old.exits)
	p.old = nil
}

// add gives records of processes by their numbers.
func (p *part) add(records map[uint32]wire.Record) {
	for _, process := range slices.Sorted(maps.Keys(records)) {
		p.queue = append(p.queue, records[process])
	}
}

// first takes the first record that is not before the part.
func (p *part) first(r *wire.Record) {
	give := p.wanted(r)
	if r.Time > p.options.Until {
		p.stage = behind
		give = p.missing(r)
	}
	if give {
		p.queue = append(p.queue, keep(r))
	}
}
