package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var errInterrupted = errors.New("interrupted")

// stopAtSignals makes reading fail after the first signal that asks us to end, so that whoever reads can clean up. A
// second one ends us at once. The function that it returns makes signals what they were.
func (in *input) stopAtSignals() func() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	signals = slices.DeleteFunc(signals, signal.Ignored) // as under nohup
	if len(signals) == 0 {
		return func() {}
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	source := &interruptible{Source: in.Source}
	in.Source = source
	context.AfterFunc(ctx, func() {
		source.stopped.Store(true)
		stop()
	})
	return stop
}

// interruptible is a source that can be made to fail, from any thread.
type interruptible struct {
	trace.Source
	stopped atomic.Bool
}

// Next implements trace.Source.
func (s *interruptible) Next(r *wire.Record) error {
	if s.stopped.Load() {
		return errInterrupted
	}
	return s.Source.Next(r)
}
