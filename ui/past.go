package ui

import (
	"math"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// How much of a live run can be shown again: the most moments, and the most call sites that they have together.
const (
	pastMoments = 120
	pastTags    = 60_000
	pastStep    = 500 * time.Millisecond
	pastFewest  = 2
)

// past keeps snapshots of a live run: many of the last seconds, few of earlier times.
type past struct {
	moments []*stats.Snapshot // oldest first
	tags    int               // of them together
}

// keepMoment takes the latest snapshot.
func (p *past) keepMoment(s *stats.Snapshot) {
	if n := len(p.moments); n > 0 && differenceOrZero(p.moments[n-1].Time, s.Time) < uint64(pastStep) {
		return
	}
	p.moments = append(p.moments, s)
	p.tags += len(s.Tags)
	for len(p.moments) > pastMoments || len(p.moments) > pastFewest && p.tags > pastTags {
		i := p.indexOfMomentToForget(s.Time)
		p.tags -= len(p.moments[i].Tags)
		p.moments = slices.Delete(p.moments, i, i+1)
	}
}

// indexOfMomentToForget returns the place of the moment to forget: without it the gap is smallest, for its age. The first and the last
// stay.
func (p *past) indexOfMomentToForget(now uint64) (at int) {
	least := math.Inf(1)
	for i := 1; i < len(p.moments)-1; i++ {
		gap := differenceOrZero(p.moments[i-1].Time, p.moments[i+1].Time)
		if share := float64(gap) / float64(saturatingSum(differenceOrZero(p.moments[i].Time, now), uint64(pastStep))); share < least {
			at, least = i, share
		}
	}
	return at
}

// indexOfMomentUntil returns the place of the last moment until a time, -1 if there is none.
func (p *past) indexOfMomentUntil(time uint64) int {
	i, found := slices.BinarySearchFunc(p.moments, time, func(s *stats.Snapshot, t uint64) int {
		switch {
		case s.Time < t:
			return -1
		case s.Time > t:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	return i
}

// moveByMoments moves the time that a live dashboard shows by some moments. After the latest one it is live again.
func (d *dashboard) moveByMoments(n int) {
	at := len(d.past.moments)
	if d.frozen != nil {
		if at = d.past.indexOfMomentUntil(d.frozen.Time); n < 0 && at >= 0 && d.past.moments[at].Time < d.frozen.Time {
			at++ // frozen between two
		}
	}
	d.event = 0
	switch at += n; {
	case len(d.past.moments) == 0:
		d.sayMessage(dim, "nothing to look back to yet")
	case at >= len(d.past.moments):
		d.showPresent()
	default:
		d.freezeAt(d.past.moments[max(0, at)])
	}
}

// freezeAt freezes the screen at a moment.
func (d *dashboard) freezeAt(s *stats.Snapshot) {
	if d.frozen == nil {
		d.frozenLive = d.live
	}
	d.frozen = s
	d.tags.update(d.shownSnapshot())
}

// showPresent shows the present again.
func (d *dashboard) showPresent() {
	d.frozen, d.frozenLive, d.event = nil, nil, 0
	d.tags.update(d.shownSnapshot())
}

// userMark is a moment that the user marked.
type userMark struct{ time uint64 }

// markShownTime marks the time that is shown.
func (d *dashboard) markShownTime() {
	s := d.shownSnapshot()
	if s == nil {
		return
	}
	d.marks = append(d.marks, userMark{s.Time})
	d.sayMessage(goodStyle, "★ mark "+formatCount(uint64(len(d.marks)))+"; < and > go from event to event")
}

// eventTimes returns the times of all events on the axis, in order.
func (d *dashboard) eventTimes(s *stats.Snapshot) []uint64 {
	var times []uint64
	for _, m := range d.newestSnapshot(s).Marks {
		times = append(times, m.Time)
	}
	for _, m := range d.marks {
		times = append(times, m.time)
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// showNextEvent shows the next event after the time shown, or before it.
func (d *dashboard) showNextEvent(forward bool) {
	s := d.shownSnapshot()
	if s == nil {
		return
	}
	times, at := d.eventTimes(d.wholeSnapshot()), s.Time
	if d.event != 0 {
		at = d.event
	}
	i, found := slices.BinarySearch(times, at)
	switch {
	case !forward:
		i--
	case found:
		i++
	}
	if i < 0 || i >= len(times) {
		d.sayMessage(dim, "no event there")
		return
	}
	d.showEvent(s, times[i])
}

// showEvent shows the time of an event, and what happened.
func (d *dashboard) showEvent(s *stats.Snapshot, at uint64) {
	switch {
	case d.mode.recording:
		d.cursor.goToTime(at)
	case !d.showFirstMomentAfter(at):
		d.sayMessage(dim, "that has just happened")
		return
	}
	d.event = at
	d.sayMessage(plain, d.eventText(s, at))
}

// eventText says what happened at a time.
func (d *dashboard) eventText(s *stats.Snapshot, time uint64) string {
	text := units.FormatClock(differenceOrZero(s.Started, time))
	for i, m := range d.marks {
		if m.time == time {
			text += "  ★ mark " + formatCount(uint64(i+1))
		}
	}
	for _, m := range d.newestSnapshot(s).Marks {
		if m.Time == time {
			text += "  " + signOfEvent(m.Kind).text + " " + d.changeText(s, m.Text)
		}
	}
	failures := d.newestSnapshot(s).PostMortems
	for i := range failures {
		if p := &failures[i]; p.Time == time && p.Size > 0 {
			text += " of " + bytesText(p.Size) + textIf(p.Tag != "", " at "+p.Tag)
		}
	}
	return text
}

// changeText writes what happened: the value of a limit as in the pane of the limits.
func (d *dashboard) changeText(s *stats.Snapshot, text string) string {
	name, value, _ := strings.Cut(text, "=")
	at := slices.IndexFunc(s.Limits, func(l stats.Limit) bool { return l.Name == name })
	if at < 0 {
		return text
	}
	v, known := s.Limits[at].ParseValue(value)
	if !known {
		return text
	}
	return name + " = " + d.limits.valueText(&s.Limits[at], v)
}

// signOfEvent is how an event is drawn on the axis.
func signOfEvent(k wire.Kind) span {
	switch k {
	case wire.KindLimit:
		return span{"Δ", warnStyle}
	case wire.KindExit:
		return span{"■", dim}
	}
	return span{"•", warnStyle}
}

// showFirstMomentAfter shows the first kept moment after a time, false if there is none yet.
func (d *dashboard) showFirstMomentAfter(time uint64) bool {
	i := d.past.indexOfMomentUntil(time)
	if i < 0 || d.past.moments[i].Time < time {
		i++
	}
	switch {
	case i < len(d.past.moments):
		d.freezeAt(d.past.moments[i])
	case d.live != nil && d.live.Time >= time:
		d.freezeAt(d.live)
	default:
		return false
	}
	return true
}
