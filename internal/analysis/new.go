package analysis

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options say what is analysed. The source itself gives the part: Since, Until and Process only name it.
type Options struct {
	Header       trace.Header
	Footer       trace.Footer
	Whole        bool          // there is a footer
	Since, Until time.Duration // after the start; Until 0: to the end
	Process      string        // empty: all
	Tag          *regexp.Regexp
}

// wanted reports whether a call site was asked for.
func (o *Options) wanted(name string) bool { return o.Tag == nil || o.Tag.MatchString(name) }

// New reads a source twice and works out what it says. Memory grows with live objects, call sites, blocks, threads and
// processes, not with records. Errors are those of the source; what is damaged in it is told by Damage. One goroutine
// uses the source meanwhile.
func New(src trace.Source, o Options) (*Analysis, error) {
	first := newSurvey(&o)
	if err := each(src, first.step); err != nil {
		return nil, fmt.Errorf("look through the recording: %w", err)
	}
	second := newRun(&o, first.finish())
	if err := each(src, second.step); err != nil {
		return nil, fmt.Errorf("analyse the recording: %w", err)
	}
	// Where a recording breaks off, what lives is told, as what it is.
	second.cut = trace.GoesOn(src) && (o.Whole || o.Until > 0)
	a := second.finish()
	a.Damage = trace.DamageOf(src)
	return a, nil
}

// each gives all records of a source from its start.
func each(src trace.Source, step func(*wire.Record)) error {
	if err := src.Rewind(); err != nil {
		return fmt.Errorf("go to the start: %w", err)
	}
	var r wire.Record
	for {
		err := src.Next(&r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		step(&r)
	}
}

// happened reports whether a record is of something that happened in the part: not carried over from before it, and no
// mere name.
func (s *survey) happened(r *wire.Record) bool {
	if r.Time < s.since {
		return false
	}
	switch r.Kind {
	case wire.KindProcess, wire.KindThread, wire.KindModule, wire.KindTag, wire.KindSite, wire.KindDevice,
		wire.KindContext, wire.KindQueue, wire.KindKernel:
		return false
	}
	return !carried(r)
}

// carried reports whether a record stands for what was there before the part begins.
func carried(r *wire.Record) bool {
	switch r.Kind {
	case wire.KindCreate, wire.KindRelease, wire.KindSlab:
		return r.Flags&wire.FlagCarried != 0
	default:
		return false
	}
}
