package watch

import (
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

const (
	failuresPoll  = 100 * time.Millisecond
	namesPatience = uint64(time.Second) // call sites get their names a moment after the failure
)

// Failures writes each post-mortem to stderr when it is made, or when the dashboard has closed.
type Failures struct {
	notes *console.Notes
	shown int
	stop  chan struct{}
	done  chan struct{}
}

// FollowFailures watches what a model publishes; nil without a model.
func FollowFailures(model *stats.Model, notes *console.Notes) *Failures {
	if model == nil {
		return nil
	}
	f := &Failures{notes: notes, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		poll := time.NewTicker(failuresPoll)
		defer poll.Stop()
		for {
			select {
			case <-poll.C:
				f.writePostMortems(model.PublishedSnapshot(), false)
			case <-f.stop:
				return
			}
		}
	}()
	return f
}

// WriteRemainingPostMortems writes what is left.
func (f *Failures) WriteRemainingPostMortems(last *stats.Snapshot) {
	close(f.stop)
	<-f.done
	f.writePostMortems(last, true)
}

func (f *Failures) writePostMortems(s *stats.Snapshot, last bool) {
	if s == nil {
		return
	}
	for f.shown < len(s.PostMortems) {
		p := &s.PostMortems[f.shown]
		if !last && !p.Named && s.Time < p.Time+namesPatience {
			return
		}
		f.shown++
		f.notes.AddPage(report.NewPostMortem(p, s.Started).String())
	}
}
