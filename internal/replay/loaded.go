package replay

import (
	"context"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Loaded is a recording in a compact form, to be played many times. It is immutable: any number of goroutines may run
// it at the same time.
type Loaded struct {
	script script
	chunks [][]op
	events int
	device cost.Device
}

// chunkOps is how many ops are allocated at a time.
const chunkOps = 1 << 14

// Load reads a source from its start to its end. An error is that of the source.
func Load(src recording.Source) (*Loaded, error) {
	t := &Loaded{}
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

func (t *Loaded) add(ops []op) {
	for i := range ops {
		last := len(t.chunks) - 1
		if last < 0 || len(t.chunks[last]) == chunkOps {
			t.chunks = append(t.chunks, make([]op, 0, chunkOps))
			last++
		}
		t.chunks[last] = append(t.chunks[last], ops[i])
	}
	t.events += len(ops)
}

// Events returns how many events concern a policy. Uses, retains and the like do not.
func (t *Loaded) Events() int { return t.events }

// Device returns what the driver took in the recording, as far as it tells: a line through its creates and one through
// its releases.
func (t *Loaded) Device() cost.Device { return t.device }

// Run returns what Replay returns for the recording.
func (t *Loaded) Run(o Options) (*Result, error) {
	return t.RunContext(context.Background(), o)
}

// RunContext is Run until the context ends, whose error it returns then.
func (t *Loaded) RunContext(ctx context.Context, o Options) (*Result, error) {
	if o.Fit {
		o.Device = t.device
	}
	p, err := newPlayer(o, &t.script)
	if err != nil {
		return nil, err
	}
	for _, ops := range t.chunks {
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
