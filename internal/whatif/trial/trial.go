// Package trial replays the configurations that findings may propose: other policies, and other values of limits. It
// replays only the first steps of a run, so a replay does not take long. The bound is a number of steps, not a time, so
// that each machine shows the same.
package trial

import (
	"fmt"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
)

// Most is how many steps are replayed at most.
const Most = 100_000

// Tape is the part of a run that is replayed. It is immutable.
type Tape struct {
	loaded   *replay.Loaded
	part     string // words for that part; empty: the whole run
	capacity uint64 // of the device, bytes; 0: any number
}

// ReadTape reads a recording of a run whose device had capacity bytes of memory; 0: any number.
func ReadTape(src recording.Source, capacity uint64) (*Tape, error) {
	loaded, whole, err := replay.LoadFirstEvents(src, Most)
	if err != nil {
		return nil, err
	}
	return newTape(loaded, whole, capacity), nil
}

func newTape(loaded *replay.Loaded, whole bool, capacity uint64) *Tape {
	t := &Tape{loaded: loaded, capacity: capacity}
	if !whole {
		t.part = fmt.Sprintf(" on a part of the run (its first %d steps)", loaded.EventCount())
	}
	return t
}

// ReplayTrials replays the present configuration and others. It returns nil if this version does not have the present
// configuration, or if the part has no requests.
func (t *Tape) ReplayTrials(present replay.Configuration, list []analysis.Trial) *analysis.Replays {
	options := present.OptionsKeepingLimits()
	options.AsRecorded = present.Policy == replay.LayoutPolicy // else it would have a layout sooner than the run, or one that the run lacked
	now, _, err := t.outcomeOfReplay(options)
	if err != nil || now.Requests == 0 {
		return nil
	}
	r := &analysis.Replays{Present: now, Outcomes: map[analysis.Trial]analysis.Outcome{}, Part: t.part}
	if present.Policy == "none" { // no recorded release waited in a pool
		r.Part += " as if no block was held back"
	}
	for _, trial := range list {
		c := replay.Configuration{Policy: trial.Policy}
		if trial.Limit != "" {
			c = present.WithLimit(trial.Limit, trial.Value)
		}
		if _, known := r.Outcomes[trial]; known || options.AsRecorded && c.Policy == present.Policy {
			continue
		}
		o, planned, err := t.outcomeOfReplay(c.OptionsKeepingLimits())
		if err == nil && (planned > 0 || c.Policy != replay.LayoutPolicy) { // else the policy refuses the value, or has no layout
			r.Outcomes[trial] = o
		}
	}
	return r
}

// outcomeOfReplay replays a configuration. planned are the requests that a layout served.
func (t *Tape) outcomeOfReplay(options replay.Options) (o analysis.Outcome, planned uint64, err error) {
	options.Capacity = t.capacity
	r, err := t.loaded.Replay(options)
	if err != nil {
		return o, 0, err
	}
	o = analysis.Outcome{Hits: r.Hits, Requests: r.Hits + r.Misses, PeakReserved: r.PeakReserved, Failures: r.Failures, Unpooled: r.Unpooled}
	return o, r.Arena.Planned, nil
}

// Replayer replays for a dashboard, one tape at a time, in a goroutine that ends with the replay. Its methods are for
// any goroutine. Tape returns the tape without waiting for it; nil: there is none yet.
type Replayer struct {
	Tape func() *Tape

	mutex   sync.Mutex
	busy    bool
	replays *analysis.Replays
	of      *Tape  // the tape that was replayed
	present string // the configuration that was present then
	tried   []analysis.Trial
}

// Replay implements analysis.Replay.
func (r *Replayer) Replay(s *stats.Snapshot, list []analysis.Trial) *analysis.Replays {
	present, tape := configurationOf(s), r.Tape()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	current := present.String() == r.present
	if tape != nil && !r.busy && (!current || tape != r.of || !r.hasReplayedAll(list)) {
		r.busy = true
		go r.replayAndStore(tape, present, list)
	}
	if !current {
		return nil
	}
	return r.replays
}

func (r *Replayer) replayAndStore(tape *Tape, present replay.Configuration, list []analysis.Trial) {
	replays := tape.ReplayTrials(present, list)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.busy, r.replays, r.of, r.present, r.tried = false, replays, tape, present.String(), list
}

// hasReplayedAll reports whether all trials of a list were replayed.
func (r *Replayer) hasReplayedAll(list []analysis.Trial) bool {
	known := map[analysis.Trial]bool{}
	for _, t := range r.tried {
		known[t] = true
	}
	for _, t := range list {
		if !known[t] {
			return false
		}
	}
	return true
}

// configurationOf returns the configuration of a snapshot.
func configurationOf(s *stats.Snapshot) replay.Configuration {
	c := replay.Configuration{Policy: s.Policy}
	for i := range s.Limits {
		c.Settings = append(c.Settings, allocator.Setting{Name: s.Limits[i].Name, Value: s.Limits[i].Text})
	}
	return c
}

// Live keeps the first steps of a running program. Tape is for any goroutine; the other methods are for package live, whose
// listener Live is.
type Live struct {
	capacity uint64
	batch    *replay.Batch // nil: the program's first records have not come, or enough were kept
	begun    bool
	loaded   replay.Loaded

	mutex sync.Mutex
	tape  *Tape
}

// NewLive returns a listener for programs whose device has capacity bytes of memory; 0: any number.
func NewLive(capacity uint64) *Live { return &Live{capacity: capacity} }

// Tape returns a tape of the steps so far; it may lack the latest ones. nil: there are no steps.
func (l *Live) Tape() *Tape {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.tape
}

// Begin implements live.Listener. Records after missing ones are not kept.
func (l *Live) Begin(batch *replay.Batch, missed uint64) {
	if l.begun {
		l.endTape()
		return
	}
	l.batch, l.begun = batch, true
}

// CanSkip implements live.Listener.
func (l *Live) CanSkip() bool { return l.batch == nil }

// Play implements live.Listener.
func (l *Live) Play(*live.Part) bool {
	if l.batch == nil {
		return false
	}
	l.batch.AppendReadSteps(&l.loaded)
	if l.loaded.EventCount() >= Most {
		l.endTape()
	}
	return l.batch != nil
}

// Publish implements live.Listener: it makes a new tape whenever there are half as many steps more.
func (l *Live) Publish(load *live.Load) {
	if l.batch != nil && (load.Final || 2*l.loaded.EventCount() > 3*l.countStepsOnTape()) {
		l.makeTape(load.Final)
	}
}

// endTape makes the last tape; later records are not kept.
func (l *Live) endTape() {
	if l.batch != nil {
		l.makeTape(false)
		l.batch = nil
	}
}

// countStepsOnTape returns how many steps the latest tape has.
func (l *Live) countStepsOnTape() int {
	if t := l.Tape(); t != nil {
		return t.loaded.EventCount()
	}
	return 0
}

// makeTape makes a tape of the steps so far. whole says that these are all steps of the run.
func (l *Live) makeTape(whole bool) {
	t := newTape(l.batch.CopyOfAppended(&l.loaded), whole, l.capacity)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.tape = t
}
