// Package lives has what the exports of the lives of buffers share: one way through a recording, the rule for processes
// that end, the choice of call sites, and addresses for memory that has none in a recording.
package lives

import (
	"errors"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/life"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Each goes through a source from its start and gives each record to do, until that fails.
func Each(src trace.Source, do func(*wire.Record) error) error {
	if err := src.Rewind(); err != nil {
		return fmt.Errorf("go to the start of the recording: %w", err)
	}
	var r wire.Record
	for {
		err := src.Next(&r)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := do(&r); err != nil {
			return err
		}
	}
}

// Run is a fold that also knows what all processes together have in use. The memory of one that is gone is taken off
// as soon as another one runs, as in internal/model: its objects end as life.Leaked.
type Run struct {
	*life.Fold
	InUse int64 // bytes, of all processes

	states  map[uint32]*state
	running int // processes that did not end
	leaving int // that ended and still count
}

// state is how far a process has come.
type state struct {
	ended, gone, removed bool
	when                 uint64 // it ended
}

// grace is how long after a process began to exit it counts as gone when nobody says so; as in internal/model.
const grace = 1_000_000_000

// NewRun returns a run that has seen nothing. watcher may be nil.
func NewRun(watcher life.Watcher) *Run {
	return &Run{Fold: life.New(watcher), states: map[uint32]*state{}}
}

// Step takes one record.
func (u *Run) Step(r *wire.Record) {
	if r.Kind == wire.KindLost {
		u.Fold.Step(r)
		return
	}
	s := u.states[r.Process]
	if s == nil {
		s = &state{}
		u.states[r.Process] = s
		u.running++
	}
	if r.Kind == wire.KindExit {
		u.exit(s, r)
	}
	u.Now = max(u.Now, r.Time)
	if u.leaving > 0 && u.running > 0 {
		u.settle()
	}
	p := u.Process(r.Process)
	before := p.InUse
	u.Fold.Step(r)
	u.InUse += p.InUse - before
}

func (u *Run) exit(s *state, r *wire.Record) {
	s.gone = s.gone || r.Thread == 0
	if !s.ended {
		s.ended, s.when = true, max(u.Now, r.Time)
		u.running--
		u.leaving++
	}
}

// settle takes off what is gone.
func (u *Run) settle() {
	for _, p := range u.Processes() {
		s := u.states[p.Number]
		if s == nil || !s.ended || s.removed || !s.gone && u.Now-s.when < grace {
			continue
		}
		s.removed = true
		u.leaving--
		u.InUse -= p.InUse
		u.End(p, life.Leaked)
		p.Gauges = life.Gauges{}
	}
}
