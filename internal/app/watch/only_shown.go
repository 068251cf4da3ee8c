package watch

import (
	"context"
	"errors"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/remote"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// onlyShown is what sources without a subject share: they need a terminal, and end when the user leaves the dashboard or a
// signal comes.
type onlyShown struct {
	*Watch
	noScreen string // the error without a terminal
	err      error  // that the dashboard ended with
}

// Start implements Source.
func (s *onlyShown) Start() (ended <-chan struct{}, err error) {
	if s.screen == nil {
		return nil, errors.New(s.noScreen)
	}
	return nil, nil //nolint:nilnil // a nil channel never closes
}

// HostForViewers implements Source: other terminals do not see it.
func (s *onlyShown) HostForViewers() (path string, host remote.Host, remove func()) {
	return "", host, nil
}

func (s *onlyShown) showDashboardUntilSignal(o ui.Options) {
	ctx, stop := console.ContextUntilSignal(context.Background(), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer stop()
	s.err = s.screen.Show(ctx, o)
	var sig console.Signaled
	if errors.As(s.err, &sig) {
		s.err = console.NewExitWithStatus(sig.Status())
	}
}

// Wait implements Source.
func (s *onlyShown) Wait() End { return End{Err: s.err} }
