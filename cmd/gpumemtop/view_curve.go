package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// unwatched is how long nobody asks before the work rests.
const unwatched = time.Second

// measuring is the hit rate by limit of a recording, which is worked out beside the dashboard over it. That reads the
// file several times, so it begins when somebody asks, and rests while nobody does.
type measuring struct {
	path   string
	begin  sync.Once
	cancel context.CancelFunc
	ctx    context.Context
	looks  chan struct{} // somebody asks
	ends   sync.WaitGroup
	shown  atomic.Pointer[ui.Curve]
}

func newMeasuring(path string) *measuring {
	m := &measuring{path: path, looks: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// close ends the work, if it goes on, and waits for that.
func (m *measuring) close() {
	m.cancel()
	m.ends.Wait()
}

// view returns the curve, or how far it has come. It returns at once.
func (m *measuring) view() *ui.Curve {
	m.begin.Do(func() { m.ends.Go(m.run) })
	select {
	case m.looks <- struct{}{}:
	default:
	}
	return m.shown.Load()
}

func (m *measuring) run() {
	c, err := m.work()
	switch {
	case m.ctx.Err() != nil: // nobody waits for it
	case err != nil:
		m.shown.Store(&ui.Curve{Why: err.Error()})
	default:
		m.shown.Store(recordedCurve(c))
	}
}

func (m *measuring) work() (c *curve.Measurement, err error) {
	reader, err := trace.Open(m.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	h := reader.Header()
	return measureLimits(&playedFile{Reader: reader, of: m, asked: time.Now()}, &h)
}

// playedFile is the recording as it is read for that.
type playedFile struct {
	*trace.Reader
	of      *measuring
	pass, n int
	asked   time.Time
}

// Next implements trace.Source.
func (s *playedFile) Next(r *wire.Record) error {
	if s.n%watchEvery == 0 {
		if err := s.look(); err != nil {
			return err
		}
	}
	s.n++
	return s.Reader.Next(r)
}

// Rewind implements trace.Source.
func (s *playedFile) Rewind() error {
	s.pass++
	return s.Reader.Rewind()
}

// look says how far the work has come, and rests while nobody wants to know. An error ends the work.
func (s *playedFile) look() error {
	m := s.of
	share := float64(s.Offset()) / float64(max(s.Size(), 1))
	m.shown.Store(&ui.Curve{Why: fmt.Sprintf("playing the recording at other limits: pass %d of %d, %.0f %%", s.pass, curve.Passes, 100*share)})
	select {
	case <-m.looks:
		s.asked = time.Now()
	default:
	}
	if time.Since(s.asked) > unwatched {
		select {
		case <-m.looks:
			s.asked = time.Now()
		case <-m.ctx.Done():
		}
	}
	return m.ctx.Err()
}

// recordedCurve is the curve of a whole recording, which has none but exact points. Those beyond which nothing changes are
// left out: they would take the room of what does.
func recordedCurve(m *curve.Measurement) *ui.Curve {
	c := &ui.Curve{
		Policy: m.Policy, Limits: curve.Limited(m.Policy), Whole: true, Requests: m.Requests, Knee: exactPoint(m.Knee),
		Enough: exactPoint(m.Enough), Points: []ui.CurvePoint{{}},
	}
	last := len(m.Exact)
	for last > 1 && m.Exact[last-1].HitRate == m.Exact[last-2].HitRate {
		last--
	}
	for _, e := range m.Exact[:last] {
		c.Exact = append(c.Exact, exactPoint(e))
	}
	c.Points = append(c.Points, c.Exact...)
	return c
}

func exactPoint(e curve.Exact) ui.CurvePoint {
	return ui.CurvePoint{Limit: e.Limit, HitRate: e.HitRate}
}
