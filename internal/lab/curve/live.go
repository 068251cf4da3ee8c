package curve

import (
	"slices"
	"sync"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// View is what Live shows. Nobody changes it.
type View struct {
	Policy string
	Limits bool // the policy limits what it caches: without there is no curve

	// Points are the curve, ascending from limit 0, through all of Exact; between two of them the lower one holds.
	Points   []Point
	Exact    []Exact // what the policy does at a few limits, ascending, over the same requests
	Error    float64 // how far the curve is off where it is not exact, on average, 0…1; see Known
	Known    bool    // Error is known: there are exact points
	Knee     Point
	Enough   Point   // the first point with 99 % of the highest hit rate
	Requests float64 // that the curve is of, the latest; an estimate where they are sampled
	Missed   uint64  // records that came too fast; the curve began anew after the last of them
	LeftOut  bool    // there are more processes than there is memory for
}

// Off returns how far the curve is from points that were played, on average, 0…1.
func (v *View) Off(points []Exact) float64 {
	through := &Snapshot{Points: v.Points}
	return through.off(points)
}

// Exact points: after how many requests the limits for them are chosen for the first time, after how many times as many
// they are chosen again, and of how many requests a curve is at least before it is shown in the place of the one before.
const (
	placedFirst = 64
	placedAgain = 16
	placedLast  = 1 << 24
	ghostsMost  = 4
	shownLeast  = 32
	shownMost   = 4096
	stepLeast   = 16
)

const (
	// QueueMost bounds the records that wait, and those that are taken in meanwhile: some 8 MiB each.
	QueueMost = 1 << 16
	// liveRate is how many blocks are measured in a second where nothing is said of it.
	liveRate = 50_000
)

// Live is the curve of programs that run, which takes Options.Memory for all of them. Take may be called from one goroutine, View and Close from any: a goroutine of
// its own does the work, so that none of them waits. Its memory is bounded but for what the programs have at a time: about
// 200 bytes for each of their buffers.
type Live struct {
	mu     sync.Mutex
	queue  []wire.Record
	missed uint64
	closed bool

	wake  chan struct{}
	asked atomic.Bool
	view  atomic.Pointer[View]
	done  chan struct{}

	work work // the goroutine's own
}

// NewLive starts one with the policy that a session begins with. An error says what is wrong with it or a setting.
func NewLive(policy string, settings []allocator.Setting, o Options) (*Live, error) {
	l, err := newLive(policy, settings, o)
	if err != nil {
		return nil, err
	}
	go l.run()
	return l, nil
}

func newLive(policy string, settings []allocator.Setting, o Options) (*Live, error) {
	if o.Rate == 0 {
		o.Rate = liveRate
	}
	l := &Live{wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.work = work{options: o, policy: policy, settings: slices.Clone(settings)}
	if err := l.work.begin(); err != nil {
		return nil, err
	}
	l.view.Store(l.work.look())
	return l, nil
}

// Take takes a record in, of which it keeps nothing. When too many wait it is left out, and the curve begins anew.
func (l *Live) Take(r *wire.Record) {
	if !lab.Hears(&r.Event) {
		return
	}
	record := *r
	record.Payload = slices.Clone(r.Payload)
	l.mu.Lock()
	switch {
	case l.closed:
	case len(l.queue) < QueueMost:
		l.queue = append(l.queue, record)
	default:
		l.missed++
	}
	l.mu.Unlock()
	l.nudge()
}

func (l *Live) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// View returns the curve as it was when it was asked for last, and asks for the present one.
func (l *Live) View() *View {
	l.asked.Store(true)
	l.nudge()
	return l.view.Load()
}

// Close ends the goroutine, when all records that wait are taken in. View returns the last state from then on.
func (l *Live) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.nudge()
	<-l.done
}

func (l *Live) run() {
	defer close(l.done)
	var spare []wire.Record
	for range l.wake {
		l.mu.Lock()
		records, missed, closed := l.queue, l.missed, l.closed
		l.queue = spare[:0]
		l.mu.Unlock()
		l.work.take(records)
		if missed != l.work.missed { // what came after them may make no sense: releases of nothing, creates without an end
			l.work.missed = missed
			l.work.anew()
		}
		if closed {
			l.work.chorus.Finish()
			l.work.play()
		}
		if l.asked.Swap(false) || closed {
			l.view.Store(l.work.look())
		}
		if closed {
			return
		}
		clear(records)
		spare = records
	}
}

// work is what the goroutine of a Live works with.
type work struct {
	options  Options
	policy   string
	settings []allocator.Setting // and the limits that were changed since
	missed   uint64

	chorus *lab.Chorus
	feed   *feed // nil: the policy has no curve
	ghosts ghosts
	last   *View // the curve before this one; nil: none
}

// begin starts with nothing.
func (w *work) begin() error {
	w.chorus, w.ghosts, w.last = lab.NewChorus(), newGhosts(), nil
	return w.follow()
}

// anew forgets all. The policy and its settings were good before.
func (w *work) anew() { _ = w.begin() }

// follow follows the policy as it is now, with no block that is there.
func (w *work) follow() error {
	w.ghosts.leave(w.chorus)
	w.feed, w.last = nil, nil
	if !Limited(w.policy) {
		_, err := allocator.New(w.policy, w.settings)
		return err
	}
	feed, err := newFeed(w.policy, w.settings, w.options)
	if err == nil {
		w.feed = feed
	}
	return err
}

// take takes records in, a batch at a time.
func (w *work) take(records []wire.Record) {
	for len(records) > 0 {
		n := min(len(records), w.step())
		changed := false
		for i := range records[:n] {
			r := &records[i]
			w.chorus.Read(r)
			if r.Kind == wire.KindLimit && r.Status == 0 && w.change(r.Payload) {
				n, changed = i+1, true
				break
			}
		}
		w.play()
		if changed && w.follow() != nil { // limits that contradict each other: those that the program has do not
			w.settings = nil
			_ = w.follow()
		}
		w.place()
		records = records[n:]
	}
}

// play takes in what was read.
func (w *work) play() {
	if w.feed != nil {
		w.chorus.Demands(w.feed.take)
	}
	w.ghosts.play(w.chorus)
	w.chorus.Clear()
}

// step returns how many records are taken in at once: few at first, so that limits are chosen in time.
func (w *work) step() int {
	if w.feed == nil {
		return batch
	}
	return max(stepLeast, min(int(w.feed.requests()), batch))
}

// change notes a limit that was changed, or the policy, and reports whether the curve is another one by that.
func (w *work) change(payload []byte) bool {
	before := lab.Configuration{Policy: w.policy, Settings: w.settings}
	after, ok := before.After(payload)
	if !ok {
		return false
	}
	w.policy, w.settings = after.Policy, after.Settings
	return after.Policy != before.Policy || !slices.Equal(others(before.Settings), others(after.Settings))
}

// place chooses limits for the ghosts when it is time, and begins to count when they are no longer cold.
func (w *work) place() {
	if w.feed == nil {
		return
	}
	switch requests := w.feed.requests(); {
	case w.ghosts.cold && requests >= w.ghosts.warm:
		w.ghosts.count(w.chorus)
		w.feed.restart()
	case !w.ghosts.cold && requests >= w.ghosts.next:
		s := w.feed.snapshot()
		w.last = w.show(s)
		w.ghosts.place(w.chorus, s, w.policy, w.settings, requests)
	}
}

// look returns what there is to show.
func (w *work) look() *View {
	if w.feed == nil {
		return &View{Policy: w.policy, Missed: w.missed}
	}
	if w.last != nil && (w.ghosts.cold || w.feed.requests() < max(shownLeast, min(w.last.Requests/4, shownMost))) {
		return w.last
	}
	return w.show(w.feed.snapshot())
}

// show returns a curve with its exact points.
func (w *work) show(s *Snapshot) *View {
	v := &View{Policy: w.policy, Limits: true, Requests: s.Requests, Missed: w.missed, LeftOut: w.feed.left}
	v.Exact = w.ghosts.points(w.chorus)
	v.Points, v.Known = s.anchored(v.Exact), len(v.Exact) > 0
	v.Error = max(s.missed(v.Exact), s.off(v.Exact))
	through := &Snapshot{Points: v.Points}
	v.Knee, v.Enough = through.Knee(), through.Enough()
	return v
}
