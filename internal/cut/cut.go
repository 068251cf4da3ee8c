// Package cut takes a part of a run: some time of it, some processes. What was there when the part begins comes first,
// as records with wire.FlagCarried, so that whatever is made of the part is right about what it holds. It reads no
// clock.
package cut

import (
	"errors"
	"fmt"
	"io"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options say which part. The zero value takes everything.
type Options struct {
	Since, Until uint64            // CLOCK_MONOTONIC ns, both included; Until 0: to the end
	Process      func(uint32) bool // by number in the session; nil: all
}

// Range returns the part of a source. Its records before Since are read and folded each time that reading starts
// again; memory grows with what is alive at Since.
func Range(src trace.Source, o Options) trace.Source {
	if o.Since == 0 && o.Until == 0 && o.Process == nil {
		return src
	}
	if o.Until == 0 {
		o.Until = math.MaxUint64
	}
	return &part{src: src, options: o}
}

// part is a part of a source.
type part struct {
	src     trace.Source
	options Options
	inside  bool
	fold    *life.Fold
	gauges  map[uint32]wire.Record // the latest of each process
	carried []wire.Record          // to be given, then first
	over    bool                   // the source ended, or first is the last
	cut     bool                   // the source goes on behind the part
}

// Rewind implements trace.Source.
func (p *part) Rewind() error {
	p.inside, p.over, p.cut, p.carried = false, false, false, nil
	p.fold, p.gauges = nil, nil
	return p.src.Rewind()
}

// Damage returns what the source could not read so far.
func (p *part) Damage() string {
	if s, ok := p.src.(interface{ Damage() string }); ok {
		return s.Damage()
	}
	return ""
}

// Cut reports, once Next has given io.EOF, whether the source goes on behind the part: what lives then is no leak.
func (p *part) Cut() bool { return p.cut }

// Next implements trace.Source.
func (p *part) Next(r *wire.Record) error {
	for !p.inside {
		given, err := p.before(r)
		if given || err != nil {
			return err
		}
	}
	if len(p.carried) > 0 {
		*r, p.carried = p.carried[0], p.carried[1:]
		return nil
	}
	if p.over {
		return io.EOF
	}
	return p.within(r)
}

// within gives the next record of the part.
func (p *part) within(r *wire.Record) error {
	for {
		if err := p.src.Next(r); err != nil {
			return err
		}
		if r.Time > p.options.Until {
			p.over, p.cut = true, true
			return io.EOF
		}
		if p.wanted(r) {
			return nil
		}
	}
}

func (p *part) wanted(r *wire.Record) bool {
	return p.options.Process == nil || r.Kind == wire.KindLost || p.options.Process(r.Process)
}

// before takes one record of the time before the part. It gives those that name things.
func (p *part) before(r *wire.Record) (given bool, err error) {
	if p.fold == nil {
		p.fold, p.gauges = life.New(nil), map[uint32]wire.Record{}
	}
	err = p.src.Next(r)
	ended := errors.Is(err, io.EOF)
	switch {
	case err != nil && !ended:
		return false, fmt.Errorf("look for the start: %w", err)
	case ended || r.Time >= p.options.Since:
		p.enter(r, ended)
		return false, nil
	case !p.wanted(r):
		return false, nil
	}
	switch r.Kind {
	case wire.KindProcess, wire.KindThread, wire.KindModule, wire.KindTag, wire.KindSite, wire.KindDevice,
		wire.KindContext, wire.KindQueue, wire.KindKernel, wire.KindLimit:
		return true, nil
	case wire.KindExit:
		p.fold.End(p.fold.Process(r.Process), life.Released)
		return true, nil
	case wire.KindGauge:
		p.gauges[r.Process] = *r
	default:
		p.fold.Step(r)
	}
	return false, nil
}

// enter begins the part with a record, unless the source has ended.
func (p *part) enter(r *wire.Record, ended bool) {
	p.inside = true
	for _, process := range p.fold.Processes() {
		p.carry(process)
	}
	p.fold = nil
	p.cut = !ended && r.Time > p.options.Until
	p.over = ended || p.cut
	if !p.over && p.wanted(r) {
		first := *r
		first.Payload = append([]byte(nil), r.Payload...)
		p.carried = append(p.carried, first)
	}
}
