package analysis

import (
	"reflect"
	"regexp"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options describe what is analysed. The source itself selects the part; Since, Until and Process only name it.
type Options struct {
	Header       recording.Header
	Footer       recording.Footer
	Whole        bool          // there is a footer
	Since, Until time.Duration // after the start; Until 0: to the end
	Process      string        // empty: all
	Tag          *regexp.Regexp
}

// wantsSite reports whether a call site is selected.
func (o *Options) wantsSite(name string) bool { return o.Tag == nil || o.Tag.MatchString(name) }

// Analyse reads a source twice and analyses it. Memory grows with live objects, call sites, blocks, threads and processes, not
// with records. Errors are those of the source; Damage describes damage. No other goroutine may use the source meanwhile.
func Analyse(src recording.Source, o Options) (*Analysis, error) {
	first := newSurvey(&o)
	if err := eachRecord(src, first.handleRecord); err != nil {
		return nil, err
	}
	second := newRun(&o, first.finishSurvey())
	if err := eachRecord(src, second.handleRecord); err != nil {
		return nil, err
	}
	second.cut = recording.RunGoesOn(src)
	a := second.makeAnalysis()
	a.Damage = recording.DamageOf(src)
	replaceNilLists(reflect.ValueOf(a))
	return a, nil
}

// eachRecord calls step with all records of a source from its start.
func eachRecord(src recording.Source, step func(*wire.Record)) error {
	for r, err := range recording.Records(src) {
		if err != nil {
			return err
		}
		step(r)
	}
	return nil
}

// happenedInPart reports whether a record is of an event in the part: neither carried over from before it nor a definition.
func (s *survey) happenedInPart(r *wire.Record) bool {
	if r.Time < s.since {
		return false
	}
	switch r.Kind {
	case wire.KindProcess, wire.KindThread, wire.KindModule, wire.KindTag, wire.KindSite, wire.KindDevice,
		wire.KindContext, wire.KindQueue, wire.KindKernel, wire.KindMachine:
		return false
	}
	return !r.CarriedOver()
}
