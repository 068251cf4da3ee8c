package replay

import (
	"context"
	"errors"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Loaded is a recording in a compact form that can be played many times. It is immutable: any number of goroutines may
// play it at the same time.
type Loaded struct {
	script script
	chunks [][]op
	events int
	device cost.Device
	first  uint64 // time of the first record
	last   uint64
	ran    uint64 // ns from the start of the session to its end; 0: unknown
}

// chunkOps is how many steps are allocated at a time.
const chunkOps = 1 << 14

// Load reads a source from its start to its end. The error is that of the source.
func Load(src recording.Source) (*Loaded, error) {
	l, _, err := LoadFirstEvents(src, math.MaxInt)
	if r, ok := src.(interface {
		Header() recording.Header
		Footer() (recording.Footer, bool)
	}); ok && err == nil {
		footer, _ := r.Footer()
		l.ran = footer.EndedNS - min(r.Header().ClockNS, footer.EndedNS)
	}
	return l, err
}

// LoadFirstEvents reads a source from its start until most events that concern a policy were read, or to its end; whole says
// that it read all.
func LoadFirstEvents(src recording.Source, most int) (l *Loaded, whole bool, err error) {
	l, err = loadAtMost(src, most)
	switch {
	case errors.Is(err, errEnough):
		return l, false, nil
	case err != nil:
		return nil, false, err
	}
	return l, true, nil
}

// errEnough ends the reading of a source before its end.
var errEnough = errors.New("as much as was asked for")

func loadAtMost(src recording.Source, most int) (*Loaded, error) {
	l := &Loaded{}
	r := newResolver()
	var ops []op
	err := eachRecord(src, func(record *wire.Record) error {
		if l.last == 0 {
			l.first = record.Time
		}
		l.last = max(l.last, record.Time)
		ops = r.appendStepsOf(record, ops[:0])
		l.appendSteps(ops)
		if l.events >= most {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	l.appendSteps(r.emitAllPendingSteps(nil))
	l.script, l.device = r.script, r.costs.deviceCosts()
	return l, err
}

func (l *Loaded) appendSteps(ops []op) {
	for i := range ops {
		last := len(l.chunks) - 1
		if last < 0 || len(l.chunks[last]) == chunkOps {
			l.chunks = append(l.chunks, make([]op, 0, chunkOps))
			last++
		}
		l.chunks[last] = append(l.chunks[last], ops[i])
	}
	l.events += len(ops)
}

// EventCount returns how many events concern a policy. Uses and retains, for example, do not.
func (l *Loaded) EventCount() int { return l.events }

// DurationNS returns how long the run was: the ns from the first record to the last, or to the end of the session that Load read of.
func (l *Loaded) DurationNS() uint64 { return max(l.ran, l.last-min(l.first, l.last)) }

// DriverCosts returns the driver costs that the recording shows: a line through its creates and one through its releases.
func (l *Loaded) DriverCosts() cost.Device { return l.device }

// Replay returns what Replay returns for the recording.
func (l *Loaded) Replay(o Options) (*Result, error) {
	return l.ReplayUntilDone(context.Background(), o)
}

// ReplayUntilDone is Run until the context ends; then it returns the context's error.
func (l *Loaded) ReplayUntilDone(ctx context.Context, o Options) (*Result, error) {
	if o.Fit {
		o.Device = l.device
	}
	p, err := newSimulation(o, &l.script)
	if err != nil {
		return nil, err
	}
	for _, ops := range l.chunks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.playSteps(ops); err != nil {
			return nil, err
		}
	}
	result := p.resultSoFar()
	return &result, nil
}
