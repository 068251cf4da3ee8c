package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// unwatched is how long the curve may stay off the screen before the work rests.
const unwatched = time.Second

// background computes the hit-rate curve of a recording while the dashboard shows the recording. That reads the file several
// times, so it starts when the curve is first shown and rests while it is not.
type background struct {
	path   string
	begin  sync.Once
	cancel context.CancelFunc
	ctx    context.Context
	shows  chan struct{} // the dashboard shows the curve
	ends   sync.WaitGroup
	result atomic.Pointer[view.Curve]
}

func newBackgroundCurve(path string) *background {
	m := &background{path: path, shows: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// endMeasuring ends the work and waits for its end.
func (m *background) endMeasuring() {
	m.cancel()
	m.ends.Wait()
}

// curveOrProgress returns the curve, or the progress. It returns at once.
func (m *background) curveOrProgress() *view.Curve {
	m.begin.Do(func() { m.ends.Go(m.measureAndPublishCurve) })
	select {
	case m.shows <- struct{}{}:
	default:
	}
	return m.result.Load()
}

func (m *background) measureAndPublishCurve() {
	c, err := m.measureCurve()
	switch {
	case m.ctx.Err() != nil: // the dashboard is closed
	case err != nil:
		m.result.Store(&view.Curve{Why: err.Error()})
	default:
		m.result.Store(c.Curve())
	}
}

func (m *background) measureCurve() (c *curve.Measurement, err error) {
	reader, err := recording.Open(m.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	h := reader.Header()
	return MeasureHitRateCurve(&playedFile{Reader: reader, of: m, seen: time.Now()}, &h)
}

// playedFile is the recording as it is read for the curve.
type playedFile struct {
	*recording.Reader
	of      *background
	pass, n int
	seen    time.Time // the last time that the dashboard showed the curve
}

// Next implements recording.Source.
func (s *playedFile) Next(r *wire.Record) error {
	if s.n%files.ProgressEvery == 0 {
		if err := s.publishProgressOrPause(); err != nil {
			return err
		}
	}
	s.n++
	return s.Reader.Next(r)
}

// Rewind implements recording.Source.
func (s *playedFile) Rewind() error {
	s.pass++
	return s.Reader.Rewind()
}

// publishProgressOrPause publishes the progress, and waits while the curve is not shown. An error ends the work.
func (s *playedFile) publishProgressOrPause() error {
	m := s.of
	share := float64(s.Offset()) / float64(max(s.Size(), 1))
	m.result.Store(&view.Curve{Why: fmt.Sprintf("playing the recording at other limits: pass %d of %d, %.0f %%", s.pass, curve.Passes, 100*share)})
	select {
	case <-m.shows:
		s.seen = time.Now()
	default:
	}
	if time.Since(s.seen) > unwatched {
		select {
		case <-m.shows:
			s.seen = time.Now()
		case <-m.ctx.Done():
		}
	}
	return m.ctx.Err()
}

// MeasureHitRateCurve computes the hit rate by cache limit of a recording. One without a pool has no present limit.
func MeasureHitRateCurve(src recording.Source, h *recording.Header) (*curve.Measurement, error) {
	policy, settings := configurationOfCurve(h.Policy, limitsOfRecording(h))
	m, err := curve.MeasureCurve(src, policy, settings)
	if err == nil && policy != h.Policy {
		m.Present = 0
	}
	return m, err
}
