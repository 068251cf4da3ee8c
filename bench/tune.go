package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tuneEvents is how long the program is that is tuned.
const tuneEvents = 1_000_000

// tune shows how long it takes to try as many configurations as gpumemtop tune does.
func (b *bench) tune() error {
	const sites, live = 400, 4096
	tape, err := lab.Load(newWanderer(sites, live))
	if err != nil {
		return err
	}
	start := time.Now()
	spent, err := processorTime()
	if err != nil {
		return err
	}
	r, err := tune.Search(context.Background(), []*lab.Tape{tape}, tune.Options{Fit: true})
	if err != nil {
		return err
	}
	r.Folds(context.Background())
	taken := time.Since(start).Seconds()
	end, err := processorTime()
	if err != nil {
		return err
	}
	used := (end - spent).Seconds()
	b.row("program", "events", "configurations", "cores", "s", "s of the processor", "million events/s of it")
	b.row(fmt.Sprintf("%d sites, %d buffers at a time", sites, live), tape.Events(), len(r.Points), runtime.GOMAXPROCS(0), fixed(taken, 1),
		fixed(used, 1), fixed(float64(tape.Events()*len(r.Points))/used/1e6, 1))
	b.flush()
	fmt.Println("\nOne search, cross-validation included; buffers of each site have sizes of their own and go in no order. Budget: 60 s on 2 cores.")
	return nil
}

// wanderer is a recording of a program that asks for buffers at random, and lets them go at random.
type wanderer struct {
	rng   *rand.Rand
	sites uint32
	held  []uint64 // numbers of buffers
	n     uint64   // records so far
	made  uint64   // buffers so far
	full  int      // place where the next record makes a buffer; -1: none
}

func newWanderer(sites uint32, live int) *wanderer {
	return &wanderer{rng: rand.New(rand.NewPCG(1, 2)), sites: sites, held: make([]uint64, live)}
}

// Next implements trace.Source.
func (w *wanderer) Next(r *wire.Record) error {
	if w.n == tuneEvents+2 {
		return io.EOF
	}
	*r = wire.Record{Process: 1, Event: w.event()}
	w.n++
	r.Time = 1000 * w.n
	return nil
}

func (w *wanderer) event() wire.Event {
	switch w.n {
	case 0:
		w.full = -1
		return wire.Event{Kind: wire.KindDevice, Object: 7, Granted: 1 << 34, Link: 1 << 32, Tag: 128}
	case 1:
		return wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeCreate), Object: 1, Link: 7}
	}
	at := w.full
	if w.full = -1; at < 0 {
		at = w.rng.IntN(len(w.held))
		if object := w.held[at]; object != 0 {
			w.full = at
			return wire.Event{Kind: wire.KindRelease, Object: object, Link: object, Outcome: wire.OutcomeCached}
		}
	}
	w.made++
	w.held[at] = w.made
	site := w.rng.Uint32N(w.sites)
	size := uint64(1<<12 + int(site)*3000 + w.rng.IntN(4)*256)
	return wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: w.made, Link: w.made, Size: size, Granted: size, Scope: 1, Access: 1,
		Tag: site + 1, Cost: 5000,
	}
}

// Rewind implements trace.Source.
func (w *wanderer) Rewind() error {
	*w = *newWanderer(w.sites, len(w.held))
	return nil
}
