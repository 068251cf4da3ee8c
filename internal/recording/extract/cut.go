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
	"errors"
	"fmt"
	"io"
	"math"

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
	unnamed unnamed         // call sites that were given without their names
}

// site is a call site.
type site struct{ process, tag uint32 }

// unnamed are call sites without their names.
type unnamed map[site]bool

// note keeps which call sites still lack their names.
func (u unnamed) note(r *wire.Record) {
	switch r.Kind {
	case wire.KindTag:
		if mode := r.AsTag().Mode(); mode == wire.TagsCaller || mode == wire.TagsStack {
			u[site{r.Process, r.DefinedTag()}] = true
		}
	case wire.KindSite:
		delete(u, site{r.Process, r.DefinedTag()})
	default: // has no name of its own to come
	}
}

// missing reports whether a record behind the part has a name that is still missing.
func (u unnamed) missing(r *wire.Record) bool {
	return r.Kind == wire.KindSite && u[site{r.Process, r.DefinedTag()}]
}

// Rewind implements recording.Source.
func (p *part) Rewind() error {
	p.reset()
	return p.src.Rewind()
}

func (p *part) reset() {
	*p = part{src: p.src, options: p.options, unnamed: unnamed{}}
	if p.options.Since == 0 {
		p.stage = within
	}
}

// Damage returns what the source could not read so far.
func (p *part) Damage() string { return recording.DamageOf(p.src) }

// Cut reports, once Next has given io.EOF, whether the run goes on behind the part: what lives then is no leak.
func (p *part) Cut() bool { return p.stage == behind || recording.GoesOn(p.src) }

// Next implements recording.Source.
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
	p.unnamed.note(r)
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
		return p.unnamed.missing(r), nil
	}
	return p.wanted(r), nil
}

// behind gives the records that name call sites which the part uses and did not name.
func (p *part) behind(r *wire.Record) (bool, error) {
	if len(p.unnamed) == 0 {
		return false, io.EOF
	}
	if err := p.src.Next(r); err != nil {
		return false, err
	}
	return p.unnamed.missing(r), nil
}

// survey looks which processes end before the part, and goes back to the start.
func (p *part) survey(r *wire.Record) error {
	p.stage, p.gone, p.old = before, map[uint32]bool{}, newOld(heap.New(heap.Options{}))
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
	if r.Defines() {
		return true, nil
	}
	if !p.old.take(r) {
		p.old.heap.Apply(r)
	}
	return false, nil
}

// enter begins the part: what was there is to be given.
func (p *part) enter() {
	p.stage = within
	p.queue = append(p.queue, p.old.records(p.options.Since, func(process uint32) bool { return p.gone[process] })...)
	p.old = nil
}

// first takes the first record that is not before the part.
func (p *part) first(r *wire.Record) {
	give := p.wanted(r)
	if r.Time > p.options.Until {
		p.stage = behind
		give = p.unnamed.missing(r)
	}
	if give {
		p.queue = append(p.queue, keep(r))
	}
}
