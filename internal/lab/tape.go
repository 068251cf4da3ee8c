package lab

import (
	"context"
	"reflect"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Tape is a recording in a compact form, to be played many times. It does not change: any number of goroutines may run
// it at the same time.
type Tape struct {
	script script
	reels  [][]op
	events int
	device cost.Device
}

// reel is how many ops are allocated at a time.
const reel = 1 << 14

// Load reads a source from where it stands to its end. An error is that of the source.
func Load(src trace.Source) (*Tape, error) {
	t := &Tape{}
	r := newResolver()
	var ops []op
	err := each(src, func(record *wire.Record) error {
		ops = r.take(record, ops[:0])
		t.add(ops)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.add(r.finish(nil))
	t.script, t.device = r.script, r.prices.device()
	return t, nil
}

func (t *Tape) add(ops []op) {
	for i := range ops {
		last := len(t.reels) - 1
		if last < 0 || len(t.reels[last]) == reel {
			t.reels = append(t.reels, make([]op, 0, reel))
			last++
		}
		t.reels[last] = append(t.reels[last], ops[i])
	}
	t.events += len(ops)
}

// Events returns how many events there are that a policy is told of. Uses, retains and the like are none.
func (t *Tape) Events() int { return t.events }

// Bytes returns what the tape takes in memory, nearly.
func (t *Tape) Bytes() int {
	return len(t.reels)*reel*int(reflect.TypeFor[op]().Size()) + len(t.script.classes)*int(reflect.TypeFor[class]().Size())
}

// Device returns what the driver took in the recording, as far as it tells: a line through its creates and one through
// its releases.
func (t *Tape) Device() cost.Device { return t.device }

// Run returns what Replay returns for the recording.
func (t *Tape) Run(o ReplayOptions) (*ReplayResult, error) {
	return t.RunContext(context.Background(), o)
}

// RunContext is Run until the context ends, whose error it returns then.
func (t *Tape) RunContext(ctx context.Context, o ReplayOptions) (*ReplayResult, error) {
	if o.Fit {
		o.Device = t.device
	}
	p, err := newPlayer(o, &t.script)
	if err != nil {
		return nil, err
	}
	for _, ops := range t.reels {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.play(ops); err != nil {
			return nil, err
		}
	}
	result := p.sum()
	return &result, nil
}
