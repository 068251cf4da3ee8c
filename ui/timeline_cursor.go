package ui

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// timeCursor is the dashboard's place in a recording.
type timeCursor struct {
	d      *dashboard
	at     uint64 // the time asked for
	moment view.Moment
	read   *stats.Snapshot // the snapshot at that time, without later names
}

// askForPlaceAgain asks for the present place again: reading may have progressed.
func (c *timeCursor) askForPlaceAgain() {
	d := c.d
	m := d.o.Moment(c.at)
	old := &c.moment
	if m.Shown == c.read && m.Latest == old.Latest && m.Read == old.Read && m.Note == old.Note && m.Done == old.Done &&
		m.Damage == old.Damage && m.Until == old.Until {
		return
	}
	c.read, m.Shown = m.Shown, withLaterNames(m.Shown, m.Latest)
	c.moment, d.dirty = m, true
	if m.Shown != d.live {
		d.live = m.Shown
		d.tags.update(d.shownSnapshot())
		d.points.judgeSnapshot()
	}
}

// withLaterNames gives call sites of a moment the names that a recording has of them later, and those of failures. Snapshots
// are not changed.
func withLaterNames(s, later *stats.Snapshot) *stats.Snapshot {
	if s == nil || later == nil || s == later {
		return s
	}
	names := map[string]string{}
	for i := range later.Tags {
		names[fmt.Sprintf("tag %d", later.Tags[i].ID)] = later.Tags[i].Name
	}
	c := *s
	c.Tags, c.PostMortems, c.FailedCalls, c.Findings = slices.Clone(s.Tags), slices.Clone(s.PostMortems), slices.Clone(s.FailedCalls), slices.Clone(s.Findings)
	for i := range min(len(s.PostMortems), len(later.PostMortems)) {
		if was, is := &c.PostMortems[i], later.PostMortems[i]; was.Time == is.Time {
			is.Repeats = was.Repeats
			*was = is
		}
	}
	for i := range c.FailedCalls {
		was := &c.FailedCalls[i]
		at := slices.IndexFunc(later.FailedCalls, func(is stats.FailedCall) bool { return is.Time == was.Time && is.Call == was.Call })
		if at >= 0 {
			was.Tag, was.Wrapper = later.FailedCalls[at].Tag, later.FailedCalls[at].Wrapper
		}
	}
	rename := func(name *string) { *name = cmp.Or(names[*name], *name) }
	for i := range c.Tags {
		rename(&c.Tags[i].Name)
	}
	for i := range c.Findings {
		rename(&c.Findings[i].Tag)
	}
	return &c
}

// The steps of the time cursor, in instants.
const (
	smallStep  = 1
	mediumStep = 10
	largeStep  = 50
)

// travelInstants moves the time that is shown by some instants.
func (d *dashboard) travelInstants(instants int) {
	if d.mode.recording {
		d.cursor.moveByInstants(instants)
	} else {
		d.moveByMoments(instants)
	}
}

// goToTime moves to a time.
func (c *timeCursor) goToTime(at uint64) {
	c.at, c.d.event = at, 0
	c.askForPlaceAgain()
}

// moveByInstants moves by n instants. From a time between two instants the first step goes to the next one in that direction.
func (c *timeCursor) moveByInstants(n int) {
	m := &c.moment
	at, step := min(max(c.at, m.From), m.Until), max(m.Step, 1)
	place := (at - m.From) / step
	if n < 0 {
		if (at-m.From)%step != 0 {
			n++
		}
		c.goToTime(m.From + differenceOrZero(uint64(-n), place)*step)
		return
	}
	if at = saturatingSum(m.From, (place+uint64(n))*step); at >= m.Until {
		at = view.LastMoment
	}
	c.goToTime(at)
}

// askTime asks for a time to go to.
func (c *timeCursor) askTime() {
	d := c.d
	d.prompt = &prompt{
		label: "go to (after the start): ", allowed: "0123456789.:hmnus", keys: []word{{"enter", "go there"}, {"esc", "back"}},
		done: func(text string) {
			after, ok := parseTimeAfterStart(text)
			switch {
			case text == "":
				d.sayMessage(dim, "a time is a number of seconds after the start, such as 12.5, or 1m30s, or 1:30")
				return
			case !ok:
				d.sayMessage(warnStyle, strconv.Quote(text)+" is not a time: want 12.5, 12.5s, 1m30s or 1:30 after the start")
				return
			}
			d.note = note{}
			c.goToTime(saturatingSum(c.moment.From, after))
		},
	}
}

// parseTimeAfterStart reads a time after the start: seconds, minutes:seconds, or with units.
func parseTimeAfterStart(text string) (ns uint64, ok bool) {
	minutes, seconds, colon := strings.Cut(text, ":")
	if !colon {
		minutes, seconds = "0", text
	}
	if v, err := strconv.ParseFloat(seconds, 64); err == nil {
		m, err := strconv.ParseUint(minutes, 10, 32)
		if err != nil || m > 1e7 || !(v >= 0) || v > 1e9 {
			return 0, false
		}
		return m*60e9 + uint64(math.Round(v*1e9)), true
	}
	v, err := time.ParseDuration(text)
	if colon || err != nil || v < 0 {
		return 0, false
	}
	return uint64(v), true
}

// headerItems are the parts of the header that replace the clock in a recording.
func (c *timeCursor) headerItems(s *stats.Snapshot) []item {
	m := &c.moment
	at := []span{{" AT " + exactTimeText(differenceOrZero(m.From, s.Time)) + " ", bannerStyle}}
	if c.d.w >= compactW {
		at = append(at, span{"of " + exactTimeText(differenceOrZero(m.From, m.Until)) + " ", bannerStyle})
	}
	items := []item{{0, at}}
	if !m.Done {
		items = append(items, item{1, []span{{"reading " + strconv.Itoa(int(100*max(0, min(m.Read, 1)))) + " %", warnStyle}}})
	}
	if m.Damage != "" {
		items = append(items, item{1, []span{{"INCOMPLETE", badStyle}}})
	}
	return items
}

// exactTimeText formats a time after the start to the millisecond.
func exactTimeText(ns uint64) string {
	ms := ns / uint64(time.Millisecond)
	rest := strconv.FormatUint(1000+ms%1000, 10)[1:]
	if ms < 60_000 {
		return strconv.FormatUint(ms/1000, 10) + "." + rest + " s"
	}
	return units.FormatClock(ns) + "." + rest
}

// messageText is the message about a recording.
func (c *timeCursor) messageText() (string, style) {
	m := &c.moment
	switch {
	case m.Note != "":
		return m.Note, warnStyle
	case m.Damage != "":
		return "✗ " + m.Damage, badStyle
	}
	return "", plain
}
