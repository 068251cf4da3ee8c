package curve

import (
	"slices"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
)

// Exact points: after how many requests the limits for them are chosen for the first time, after how many times as many
// they are chosen again, and of how many requests a curve is at least before it is shown in the place of the one
// before. Where requests come fast: how many the ghosts count at most before they rest, and how many times as many have
// come when they are placed again. After satedBy records a curve can do without more for a while.
const (
	placedFirst = 64
	placedAgain = 16
	placedLast  = 1 << 24
	restsLast   = 1 << 16
	restsFor    = 16
	ghostsMost  = 4
	shownLeast  = 32
	shownMost   = 4096
	stepLeast   = 16
	satedBy     = 1 << 18
)

// liveRate is how many blocks are measured in a second by default, and how many requests come when the
// ghosts begin to rest.
const liveRate = 50_000

// Live is the curve of programs that run, which takes Options.Memory for all of them. NewLive, View and Leave are for
// any goroutine; the rest is for live, whose listener it is. Its memory is bounded except for what the programs hold at
// a time: about 200 bytes for each of their buffers.
type Live struct {
	asked, left atomic.Bool
	view        atomic.Pointer[view.Curve]

	options  Options
	policy   string
	settings []allocator.Setting // and the limits that were changed since
	missed   uint64
	records  int // since it began

	chorus *replay.Batch
	feed   *feed // nil: the policy has no curve
	ghosts ghosts
	last   *view.Curve // the curve before this one; nil: none
}

// NewLive returns one with the policy that a session begins with. An error says what is wrong with it or a setting.
func NewLive(policy string, settings []allocator.Setting, o Options) (*Live, error) {
	if o.Rate == 0 {
		o.Rate = liveRate
	}
	l := &Live{options: o, policy: policy, settings: slices.Clone(settings)}
	if err := l.follow(); err != nil {
		return nil, err
	}
	l.view.Store(l.look())
	return l, nil
}

// View returns the curve as it was when it was asked for last, and asks for the present one.
func (l *Live) View() *view.Curve {
	l.asked.Store(true)
	return l.view.Load()
}

// Leave ends the curve: no one will ask for it again.
func (l *Live) Leave() { l.left.Store(true) }

// Begin implements live.Listener. What comes after records that are missing may make no sense to a curve: releases of
// nothing, creates without an end. So it begins anew.
func (l *Live) Begin(c *replay.Batch, missed uint64) {
	var last *view.Curve
	if l.chorus != nil && missed == l.missed && l.feed != nil { // after a rest: the curve is what it was
		last = l.look()
	}
	l.chorus, l.missed, l.ghosts = c, missed, newGhosts()
	l.followAny()
	l.last, l.records = last, 0
}

// Sated implements live.Listener.
func (l *Live) CanSkip() bool { return l.feed == nil || !l.ghosts.cold && l.records >= satedBy }

// Play implements live.Listener.
func (l *Live) Play(part *live.Part) bool {
	if l.feed != nil {
		l.chorus.Demands(l.feed.take)
	}
	l.ghosts.play(l.chorus)
	l.records += part.Records
	if part.Change != nil && l.change(part.Change) {
		l.followAny()
	}
	l.place(part.Time)
	return !l.left.Load()
}

// Publish implements live.Listener.
func (l *Live) Publish(load *live.Load) {
	if l.asked.Swap(false) || load.Final {
		l.view.Store(l.look())
	}
}

// follow follows the policy as it is now, with no block that is there.
func (l *Live) follow() error {
	l.ghosts.leave(l.chorus)
	l.feed, l.last = nil, nil
	if !Limited(l.policy) {
		_, err := allocator.New(l.policy, l.settings)
		return err
	}
	feed, err := newFeed(l.policy, l.settings, l.options)
	if err == nil {
		l.feed = feed
	}
	return err
}

// followAny is follow where limits may contradict each other: then those that the program has do not, and the defaults
// are followed.
func (l *Live) followAny() {
	if l.follow() != nil {
		l.settings = nil
		_ = l.follow()
	}
}

// change notes a limit that was changed, or the policy, and reports whether the curve is another one by that.
func (l *Live) change(payload []byte) bool {
	before := replay.Configuration{Policy: l.policy, Settings: l.settings}
	after, ok := before.After(payload)
	if !ok {
		return false
	}
	l.policy, l.settings = after.Policy, after.Settings
	return after.Policy != before.Policy || !slices.Equal(others(before.Settings), others(after.Settings))
}

// place chooses limits for the ghosts when it is time, begins to count when they are no longer cold, and lets them rest
// when they have counted enough.
func (l *Live) place(time uint64) {
	if l.feed == nil {
		return
	}
	switch requests := l.feed.requests(); {
	case l.ghosts.cold && requests >= l.ghosts.warm:
		l.ghosts.count(l.chorus, time)
		l.feed.restart()
	case !l.ghosts.cold && requests >= l.ghosts.next:
		s := l.feed.snapshot()
		if !l.ghosts.resting {
			l.last = l.show(s)
		}
		l.ghosts.place(l.chorus, s, l.policy, l.settings, requests)
	case l.ghosts.tired(requests, time, l.options.Rate):
		l.last = l.show(l.feed.snapshot())
		l.ghosts.rest(l.chorus, requests)
	}
}

// look returns what there is to show.
func (l *Live) look() *view.Curve {
	if l.feed == nil {
		return &view.Curve{Policy: l.policy, Missed: l.missed}
	}
	if l.last != nil && (l.ghosts.cold || l.ghosts.resting || l.feed.requests() < max(shownLeast, min(float64(l.last.Requests)/4, shownMost))) {
		return l.last
	}
	return l.show(l.feed.snapshot())
}

// show returns a curve with its exact points.
func (l *Live) show(s *Snapshot) *view.Curve {
	v := &view.Curve{Policy: l.policy, Limits: true, Requests: uint64(s.Requests), Missed: l.missed, LeftOut: l.feed.left}
	v.Exact = l.ghosts.points(l.chorus)
	v.Points = s.anchored(v.Exact)
	v.Error = max(s.missed(v.Exact), s.off(v.Exact))
	through := &Snapshot{Points: v.Points}
	v.Knee, v.Enough = through.Knee(), through.Enough()
	return v
}
