// Package timeline returns the figures of a recording at any time. It folds the recording once, in the background, and
// keeps snapshots of evenly spaced instants; until it has come far enough it answers from the summaries in the file.
package timeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// Options say how a recording is viewed.
type Options struct {
	// Model returns what a model of the recording knows before the first event. It is called once per fold, from any
	// goroutine.
	Model func(recording.Header) stats.Options
	// Slabs returns what follows the policy of the recording, for a map of its slabs. It is called once per fold, from any
	// goroutine; nil: there is no map.
	Slabs func(recording.Header) *replay.SlabMapper
	// Blocks summarise the recording in the order of their times; nil where it has no summaries.
	Blocks []recording.Block
	// Now tells the time; nil: time.Now.
	Now func() time.Time
}

// Viewer is a recording that is being viewed. Any goroutine may call its methods.
type Viewer struct {
	options Options
	path    string
	header  recording.Header
	footer  recording.Footer
	whole   bool // there is a footer
	rough   rough
	size    int64

	cancel context.CancelFunc
	wants  chan uint64 // times to work out exactly
	wanted atomic.Uint64
	offset atomic.Int64

	mu      sync.Mutex
	kept    kept
	final   *stats.Snapshot
	until   uint64
	damage  string
	rate    float64 // events folded in a second; 0: so few that it does not matter
	asked   uint64
	askedAt time.Time
	exact   *stats.Snapshot // of the time that was worked out last
	exactOf uint64
}

// NewViewer begins to fold a recording, which was opened from a path, and closes its reader in the end. It returns at once,
// whatever the length of the recording.
func NewViewer(reader *recording.Reader, path string, o Options) *Viewer {
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &Viewer{
		options: o, path: path, header: reader.Header(), size: max(reader.Size(), 1), cancel: cancel, wants: make(chan uint64, 1),
	}
	v.footer, v.whole = reader.Footer()
	v.rough = newRough(v.header, o)
	v.until = max(v.header.ClockNS, v.footer.EndedNS, v.rough.coveredUntil())
	v.kept = newKept(v.header.ClockNS, v.until)
	go v.foldRecording(ctx, reader)
	go v.foldToWantedTimes(ctx)
	return v
}

// Close ends the folding soon, and does not wait for that: a picture of 100,000 call sites takes a tenth of a second.
func (v *Viewer) Close() { v.cancel() }

// Header returns what was recorded.
func (v *Viewer) Header() recording.Header { return v.header }

// Damage says what of the file cannot be read, as far as is known.
func (v *Viewer) Damage() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.damage
}

// rest is how long the same time must be asked for before it is worked out, and patience how long that may take.
const (
	rest     = 150 * time.Millisecond
	patience = 2 * time.Second
)

// MomentAt returns what is known of a time in ns; any time behind the end stands for the end. It returns at once. A time
// that is asked for again and again is worked out exactly, where that does not take long.
func (v *Viewer) MomentAt(at uint64) view.Moment {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := view.Moment{
		From: v.header.ClockNS, Until: v.until, Step: v.kept.step, Latest: v.latestSnapshot(), Damage: v.damage, Done: v.final != nil,
		Read: float64(v.offset.Load()) / float64(v.size),
	}
	if m.Done {
		m.Read = 1
	}
	m.History = v.samplesOfRun(m.Latest)
	v.fillMoment(&m, min(max(at, m.From), m.Until))
	if m.Shown != nil && !m.Rough {
		m.Known = m.Shown.Time
	}
	return m
}

// latestSnapshot is as far as the folding has come, nil before its first picture.
func (v *Viewer) latestSnapshot() *stats.Snapshot {
	if v.final != nil {
		return v.final
	}
	return v.kept.lastKept()
}

// samplesOfRun returns samples of the whole run: of the summaries until there are better ones.
func (v *Viewer) samplesOfRun(latest *stats.Snapshot) []stats.Sample {
	switch {
	case v.final == nil && len(v.rough.samples) > 0:
		return v.rough.samples
	case latest != nil:
		return latest.History
	}
	return nil
}

// fillMoment finds what to show of a time within the recording.
func (v *Viewer) fillMoment(m *view.Moment, at uint64) {
	switch {
	case m.Latest == nil:
		m.Shown, m.Rough = v.rough.roughSnapshot(at, nil), len(v.rough.samples) > 0
	case at >= m.Latest.Time && m.Done:
		m.Shown = m.Latest
	case at > m.Latest.Time && len(v.rough.samples) > 0:
		m.Shown, m.Rough, m.Known = v.rough.roughSnapshot(at, m.Latest), true, m.Latest.Time
		m.Note = "reading: header, memory and rates are from summaries, the rest as far as read"
	case at > m.Latest.Time:
		m.Shown = m.Latest
		m.Note = "reading has not come that far: this is the latest time that has been read"
	default:
		v.fillWithNearestSnapshot(m, at)
	}
}

// fillWithNearestSnapshot shows the picture of a time if it is kept, else the nearest kept picture.
func (v *Viewer) fillWithNearestSnapshot(m *view.Moment, at uint64) {
	before, behind := v.kept.snapshotsAround(at)
	if behind == nil {
		behind = m.Latest
	}
	switch {
	case before.Time == at:
		m.Shown = before
		return
	case v.exact != nil && v.exactOf == at:
		m.Shown = v.exact
		return
	case behind.Time-at < at-before.Time:
		m.Shown = behind
	default:
		m.Shown = before
	}
	m.Note = v.askForExactIfCheap(at, behind.Events)
}

// askForExactIfCheap asks for the exact picture of a time when it has been asked for long enough and is cheap, and says what
// became of that. events is how many events there are up to that time, at most.
func (v *Viewer) askForExactIfCheap(at, events uint64) string {
	const nearest = "the nearest kept instant is shown"
	if v.asked != at {
		v.asked, v.askedAt = at, v.options.Now()
		v.wanted.Store(at)
		return nearest
	}
	cost := time.Duration(0)
	if v.rate > 0 {
		cost = time.Duration(float64(events) / max(v.rate, 1) * float64(time.Second))
	}
	switch {
	case cost > patience:
		return fmt.Sprintf("%s: the exact one takes %v to work out", nearest, cost.Round(time.Second))
	case v.options.Now().Sub(v.askedAt) < rest:
		return nearest
	}
	select {
	case v.wants <- at:
	default: // it is being seen to
	}
	return nearest + ": working out the exact one"
}
