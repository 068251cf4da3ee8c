package curve

import (
	"slices"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
)

// Numbers of requests, except the last, which counts records. They say when limits are chosen for the anchors, when the
// anchors rest, and when a new curve replaces the previous one.
const (
	choiceFirst  = 64      // after these the limits of the anchors are chosen for the first time
	choiceFactor = 16      // after this many times as many they are chosen again
	choiceLast   = 1 << 24 // but no later than after these
	enoughMax    = 1 << 16 // where requests come fast, anchors rest after these at the latest
	restFactor   = 16      // and are chosen again after this many times as many
	anchorsMax   = 4       // anchors, not requests
	shownMin     = 32      // a new curve replaces the previous one after these
	shownMax     = 4096    // and no later than after these
	skipAfter    = 1 << 18 // after these records a curve can skip others
)

// liveRate is how many blocks are measured per second by default, and at how many requests per second the anchors begin
// to rest.
const liveRate = 50_000

// Live is the curve of running programs. All of them share Options.Memory. NewLive, View and Leave are for any
// goroutine; the other methods are for package live, whose listener Live is. Its memory is bounded except for the
// programs' live buffers: about 200 bytes for each.
type Live struct {
	viewRequested, hasLeft atomic.Bool
	view                   atomic.Pointer[view.Curve]

	options  Options
	policy   string
	settings []allocator.Setting // including limits that were changed since
	missed   uint64
	records  int // since the batch began

	batch    *replay.Batch
	feed     *feed // nil: the policy has no curve
	anchors  anchors
	lastView *view.Curve // the view of the previous curve, until the new curve has enough requests; nil: none
}

// NewLive returns a curve for the policy that a session begins with. The error reports an invalid policy or setting.
func NewLive(policy string, settings []allocator.Setting, o Options) (*Live, error) {
	if o.Rate == 0 {
		o.Rate = liveRate
	}
	l := &Live{options: o, policy: policy, settings: slices.Clone(settings)}
	if err := l.followPolicy(); err != nil {
		return nil, err
	}
	l.view.Store(l.currentView())
	return l, nil
}

// View returns the view that was made for the previous call, and requests a new one.
func (l *Live) View() *view.Curve {
	l.viewRequested.Store(true)
	return l.view.Load()
}

// EndCurve ends the curve: no one will view it again.
func (l *Live) EndCurve() { l.hasLeft.Store(true) }

// Begin implements live.Listener. A curve cannot interpret records after missing ones, for example releases of unknown
// buffers. So a new curve begins.
func (l *Live) Begin(batch *replay.Batch, missed uint64) {
	var last *view.Curve
	if l.batch != nil && missed == l.missed && l.feed != nil { // after a pause the previous curve is still shown
		last = l.currentView()
	}
	l.batch, l.missed, l.anchors = batch, missed, newAnchors()
	l.followPolicyOrDefaults()
	l.lastView, l.records = last, 0
}

// CanSkip implements live.Listener.
func (l *Live) CanSkip() bool { return l.feed == nil || !l.anchors.cold && l.records >= skipAfter }

// Play implements live.Listener.
func (l *Live) Play(part *live.Part) bool {
	if l.feed != nil {
		l.batch.EachReadDemand(l.feed.passDemand)
	}
	l.anchors.playBatch(l.batch)
	l.records += part.Records
	if part.Change != nil && l.applyChange(part.Change) {
		l.followPolicyOrDefaults()
	}
	l.updateAnchors(part.Time)
	return !l.hasLeft.Load()
}

// Publish implements live.Listener.
func (l *Live) Publish(load *live.Load) {
	if l.viewRequested.Swap(false) || load.Final {
		l.view.Store(l.currentView())
	}
}

// followPolicy starts a new curve for the present policy, without blocks.
func (l *Live) followPolicy() error {
	l.anchors.removeForNewPolicy(l.batch)
	l.feed, l.lastView = nil, nil
	if !LimitsCachedBytes(l.policy) {
		_, err := allocator.New(l.policy, l.settings)
		return err
	}
	feed, err := newFeed(l.policy, l.settings, l.options)
	if err == nil {
		l.feed = feed
	}
	return err
}

// followPolicyOrDefaults is followPolicy, with the policy's defaults if the settings contradict each other. The
// program's own settings do not, so the curve's settings are outdated then.
func (l *Live) followPolicyOrDefaults() {
	if l.followPolicy() != nil {
		l.settings = nil
		_ = l.followPolicy()
	}
}

// applyChange applies a change of a limit or the policy, and reports whether it requires a new curve.
func (l *Live) applyChange(payload []byte) bool {
	before := replay.Configuration{Policy: l.policy, Settings: l.settings}
	after, ok := before.AfterChange(payload)
	if !ok {
		return false
	}
	l.policy, l.settings = after.Policy, after.Settings
	return after.Policy != before.Policy || !slices.Equal(otherSettings(before.Settings), otherSettings(after.Settings))
}

// updateAnchors chooses the limits of the anchors when it is time, starts their counting when they are warm, and lets
// them rest when they have counted enough.
func (l *Live) updateAnchors(time uint64) {
	if l.feed == nil {
		return
	}
	switch requests := l.feed.countedRequests(); {
	case l.anchors.cold && requests >= l.anchors.warm:
		l.anchors.startCounting(l.batch, time)
		l.feed.restartCurves()
	case !l.anchors.cold && requests >= l.anchors.next:
		s := l.feed.snapshot()
		if !l.anchors.resting {
			l.lastView = l.viewWithExactPoints(s)
		}
		l.anchors.chooseLimits(l.batch, s, l.policy, l.settings, requests)
	case l.anchors.canPauseMeasuring(requests, time, l.options.Rate):
		l.lastView = l.viewWithExactPoints(l.feed.snapshot())
		l.anchors.pauseAnchors(l.batch, requests)
	}
}

// currentView returns what the dashboard shows.
func (l *Live) currentView() *view.Curve {
	if l.feed == nil {
		return &view.Curve{Policy: l.policy, Missed: l.missed}
	}
	if l.lastView != nil && (l.anchors.cold || l.anchors.resting || l.feed.countedRequests() < max(shownMin, min(float64(l.lastView.Requests)/4, shownMax))) {
		return l.lastView
	}
	return l.viewWithExactPoints(l.feed.snapshot())
}

// viewWithExactPoints returns the view of a curve with its exact points.
func (l *Live) viewWithExactPoints(s *Snapshot) *view.Curve {
	v := &view.Curve{Policy: l.policy, Limits: true, Requests: uint64(s.Requests), Missed: l.missed, LeftOut: l.feed.leftOut}
	v.Exact = l.anchors.exactPoints(l.batch)
	v.Points = s.correctedPoints(v.Exact)
	v.Error = max(s.leaveOneOutError(v.Exact), s.meanError(v.Exact))
	through := &Snapshot{Points: v.Points}
	v.Knee, v.Enough = through.KneePoint(), through.NearlyBestPoint()
	return v
}
