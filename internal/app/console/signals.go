package console

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
)

// CatchInterrupts makes signals remove unfinished files and the progress line before they end gpumemtop. The function that
// it returns restores the default.
func CatchInterrupts() (restore func()) {
	signals := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	over := make(chan struct{})
	go func() {
		select {
		case sig := <-signals:
			number, _ := sig.(syscall.Signal)
			Signaled{number}.endBySignal()
		case <-over:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// CallOnSignalAfter makes signals that would end gpumemtop call fn once something has ended, and a second one end gpumemtop. The function
// that it returns restores the default.
func CallOnSignalAfter(ended <-chan struct{}, fn func()) (restore func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-ended:
		case <-over:
			return
		}
		signals := session.CatchSignals()
		defer signal.Stop(signals)
		for called := false; ; {
			select {
			case sig := <-signals:
				number, _ := sig.(syscall.Signal)
				switch {
				case number == syscall.SIGUSR1 || number == syscall.SIGUSR2: // the program's
				case called:
					Signaled{number}.endBySignal()
				default:
					called = true
					fn()
				}
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

// Signaled is the cause of a context that a signal ended.
type Signaled struct{ syscall.Signal }

// Error implements error.
func (s Signaled) Error() string { return s.String() }

// Status is that of a process that the signal ended.
func (s Signaled) Status() session.Status { return session.Status{Signal: int(s.Signal)} }

// endBySignal ends gpumemtop as the signal does, without unfinished files and the progress line.
func (s Signaled) endBySignal() {
	tempfile.RemoveUnfinished()
	Meter().HideForGood()
	s.Status().EndLikeTarget()
}

// EndOnSignalUnlessWorthKeeping ends gpumemtop at once if a signal ends a context of ContextUntilSignal while there is nothing yet that is worth
// keeping. The function that it returns stops that.
func EndOnSignalUnlessWorthKeeping(ctx context.Context, worth func() bool) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		if sig, ok := errors.AsType[Signaled](context.Cause(ctx)); ok && !worth() {
			sig.endBySignal()
		}
	})
}

// ContextUntilSignal returns a context that ends with the first of some signals, which becomes its cause as a Signaled; without
// signals, with the first that would end gpumemtop.
func ContextUntilSignal(parent context.Context, signals ...os.Signal) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var caught chan os.Signal
	if len(signals) == 0 {
		caught = session.CatchSignals()
	} else {
		caught = make(chan os.Signal, 1)
		signal.Notify(caught, signals...)
	}
	go func() {
		select {
		case sig := <-caught:
			number, _ := sig.(syscall.Signal)
			cancel(Signaled{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(caught)
		cancel(nil)
	}
}
