// Package extract takes a part of a run: a time range, and some of the processes. Memory that exists when the part begins comes
// first, as records with wire.FlagCarried, so that readers of the part know all memory in it. The package reads no clock.
//
// A part has, in this order:
//
//   - the definitions and names from before Since
//   - for each process, the blocks in its pool and the objects that the program holds, with their times
//   - how many objects of each type each call site holds
//   - the policy's latest figures on its slabs, the latest value of each limit that was changed, and the exits under way
//   - all records from the first one at or after Since to the last one before the first one after Until
//   - names of call sites in the part that came later, with the time Until
//
// Processes that ended before Since are not in the part.
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

// Options select the part. The zero value selects everything.
type Options struct {
	Since, Until uint64            // CLOCK_MONOTONIC ns, both included; Until 0: to the end
	Process      func(uint32) bool // by number in the session; nil: all
}

// CutRange returns the part of a source. It reads the records before Since twice after each Rewind; its memory grows with the
// objects and blocks at Since, and with call sites.
func CutRange(src recording.Source, o Options) recording.Source {
	if o.Since == 0 && o.Until == 0 && o.Process == nil {
		return src
	}
	if o.Until == 0 {
		o.Until = math.MaxUint64
	}
	p := &part{src: src, options: o}
	p.resetToStart()
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

// noteRecord tracks which call sites lack a name after a record.
func (u unnamed) noteRecord(r *wire.Record) {
	switch r.Kind {
	case wire.KindTag:
		if mode := r.AsTag().Mode(); mode == wire.TagsCaller || mode == wire.TagsStack {
			u[site{r.Process, r.DefinedTag()}] = true
		}
	case wire.KindSite:
		delete(u, site{r.Process, r.DefinedTag()})
	default: // gets no name later
	}
}

// namesUnnamedSite reports whether a record after the part has a name that the part lacks.
func (u unnamed) namesUnnamedSite(r *wire.Record) bool {
	return r.Kind == wire.KindSite && u[site{r.Process, r.DefinedTag()}]
}

// Rewind implements recording.Source.
func (p *part) Rewind() error {
	p.resetToStart()
	return p.src.Rewind()
}

func (p *part) resetToStart() {
	*p = part{src: p.src, options: p.options, unnamed: unnamed{}}
	if p.options.Since == 0 {
		p.stage = within
	}
}

// Damage returns what the source could not read so far.
func (p *part) Damage() string { return recording.DamageOf(p.src) }

// IsCut reports, once Next has returned io.EOF, whether the run goes on after the part: memory in use at its end is then no leak.
// It may go on without a record.
func (p *part) IsCut() bool {
	if src, ok := p.src.(interface {
		Footer() (recording.Footer, bool)
	}); ok {
		if footer, whole := src.Footer(); whole && p.options.Until < footer.EndedNS {
			return true
		}
	}
	return p.stage == behind || recording.RunGoesOn(p.src)
}

// Next implements recording.Source.
func (p *part) Next(r *wire.Record) error {
	for {
		given, err := p.takeRecord(r)
		if err != nil {
			return err
		}
		if given {
			p.noteUnnamedSites(r)
			return nil
		}
	}
}

// takeRecord processes one record and reports whether Next returns it.
func (p *part) takeRecord(r *wire.Record) (bool, error) {
	if len(p.queue) > 0 {
		*r, p.queue = p.queue[0], p.queue[1:]
		return true, nil
	}
	switch p.stage {
	case outside:
		return false, p.findProcessesEndedBefore(r)
	case before:
		return p.keepRecordFromBefore(r)
	case within:
		return p.returnIfInPart(r)
	default:
		return p.returnIfLateName(r)
	}
}

// noteUnnamedSites tracks which call sites lack a name. Names that come late go into the part.
func (p *part) noteUnnamedSites(r *wire.Record) {
	if r.Kind.IsMadeLater() {
		r.Time = min(r.Time, p.options.Until)
	}
	p.unnamed.noteRecord(r)
}

func (p *part) isOfWantedProcess(r *wire.Record) bool {
	if r.Kind == wire.KindLost && r.Process == 0 {
		return true
	}
	return !p.gone[r.Process] && (p.options.Process == nil || p.options.Process(r.Process))
}

// returnIfInPart returns the records in the part.
func (p *part) returnIfInPart(r *wire.Record) (bool, error) {
	if err := p.src.Next(r); err != nil {
		return false, err
	}
	switch {
	case r.Time <= p.options.Until:
	case r.Kind.IsMadeLater(): // what follows it may have been before
	default:
		p.stage = behind
		return p.unnamed.namesUnnamedSite(r), nil
	}
	return p.isOfWantedProcess(r), nil
}

// returnIfLateName returns records after the part that name call sites of the part.
func (p *part) returnIfLateName(r *wire.Record) (bool, error) {
	if len(p.unnamed) == 0 {
		return false, io.EOF
	}
	if err := p.src.Next(r); err != nil {
		return false, err
	}
	return p.unnamed.namesUnnamedSite(r), nil
}

// findProcessesEndedBefore finds the processes that end before the part, and rewinds the source.
func (p *part) findProcessesEndedBefore(r *wire.Record) error {
	p.stage, p.gone, p.old = before, map[uint32]bool{}, newOld(heap.New(heap.Options{}))
	last := map[uint32]uint64{} // time of the last word of those that exit
	for {
		err := p.src.Next(r)
		if errors.Is(err, io.EOF) || err == nil && r.Time >= p.options.Since && !r.Kind.IsMadeLater() {
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

// keepRecordFromBefore processes one record from before the part. Next returns it if it defines or names something.
func (p *part) keepRecordFromBefore(r *wire.Record) (bool, error) {
	err := p.src.Next(r)
	ended := errors.Is(err, io.EOF)
	switch {
	case err != nil && !ended:
		return false, fmt.Errorf("look for the start: %w", err)
	case ended:
		p.queueCarriedOverRecords()
		return false, nil
	case r.Time >= p.options.Since && !r.Kind.IsMadeLater(): // after a late record, earlier records may follow
		p.queueCarriedOverRecords()
		p.beginPart(r)
		return false, nil
	case !p.isOfWantedProcess(r):
		return false, nil
	}
	if r.IsDefinition() {
		return true, nil
	}
	if !p.old.keepIfUnknownToHeap(r) {
		p.old.heap.Apply(r)
	}
	return false, nil
}

// queueCarriedOverRecords begins the part: it queues the records that are carried over.
func (p *part) queueCarriedOverRecords() {
	p.stage = within
	p.queue = append(p.queue, p.old.recordsAtPartStart(p.options.Since, func(process uint32) bool { return p.gone[process] })...)
	p.old = nil
}

// beginPart processes the first record in the part.
func (p *part) beginPart(r *wire.Record) {
	give := p.isOfWantedProcess(r)
	if r.Time > p.options.Until {
		p.stage = behind
		give = p.unnamed.namesUnnamedSite(r)
	}
	if give {
		p.queue = append(p.queue, cloneRecord(r))
	}
}
