package ui

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// LastMoment asks for the end of a recording, wherever that is.
const LastMoment = math.MaxUint64

// Moment is what a recording tells of a time in it. Times are CLOCK_MONOTONIC ns of the recording.
type Moment struct {
	// Shown is how things were; its Time says when, and that is not always the time that was asked for. nil: nothing
	// has been read yet.
	Shown *model.Snapshot
	// Rough says that of the totals in Shown only hits, misses, creates, releases and the peak in use are those of its
	// Time, and that the bytes in use, cached and cooling are of the fullest moment in the stretch of time that ends
	// there. Tags, limits, marks and all the rest are of the time Known.
	Rough bool
	Known uint64
	// Latest is as far as reading has come. History are samples of the whole run, evenly spaced or not.
	Latest  *model.Snapshot
	History []model.Sample
	// From and Until are the start and the end of the recording, as far as that is known. Instants at From + n × Step
	// can be shown without waiting.
	From, Until, Step uint64
	Read              float64 // how much of the file has been read, 0…1
	Done              bool    // all has been
	Note              string  // why Shown is not of the time that was asked for
	Damage            string  // what of the file cannot be read
}

// replay is the dashboard's place in a recording.
type replay struct {
	at     uint64 // the time asked for
	moment Moment
	typing bool // a time to go to
	typed  string
}

// viewing reports whether the dashboard shows a recording.
func (d *dashboard) viewing() bool { return d.o.Moment != nil }

// takeMoment asks for the present place again: reading may have come further.
func (d *dashboard) takeMoment() {
	m := d.o.Moment(d.replay.at)
	old := &d.replay.moment
	if m.Shown == old.Shown && m.Latest == old.Latest && m.Read == old.Read && m.Note == old.Note && m.Done == old.Done &&
		m.Damage == old.Damage && m.Until == old.Until {
		return
	}
	d.replay.moment, d.dirty = m, true
	if m.Shown != d.live {
		d.live = m.Shown
		d.tags.take(d.shown())
	}
}

// The steps of the time cursor, in instants.
const (
	smallStep  = 1
	mediumStep = 10
	largeStep  = 50
)

// travel moves the time cursor.
func (d *dashboard) travel(a action) {
	switch a {
	case actBackward:
		d.stepTime(-smallStep)
	case actForward:
		d.stepTime(smallStep)
	case actBackwardMore:
		d.stepTime(-mediumStep)
	case actForwardMore:
		d.stepTime(mediumStep)
	case actBackwardMost:
		d.stepTime(-largeStep)
	case actForwardMost:
		d.stepTime(largeStep)
	case actFirst:
		d.goTo(d.replay.moment.From)
	case actLast:
		d.goTo(LastMoment)
	case actTime:
		d.replay.typing, d.replay.typed = true, ""
	}
}

// goTo asks for another time.
func (d *dashboard) goTo(at uint64) {
	d.replay.at = at
	d.takeMoment()
}

// stepTime goes n instants on, from one between two to the nearer of them first.
func (d *dashboard) stepTime(n int) {
	m := &d.replay.moment
	at, step := min(max(d.replay.at, m.From), m.Until), max(m.Step, 1)
	place := (at - m.From) / step
	if n < 0 {
		if (at-m.From)%step != 0 {
			n++
		}
		d.goTo(m.From + since(uint64(-n), place)*step)
		return
	}
	if at = add(m.From, (place+uint64(n))*step); at >= m.Until {
		at = LastMoment
	}
	d.goTo(at)
}

// typedMax bounds what is typed.
const typedMax = 16

// typeTime takes a key of the prompt for a time.
func (d *dashboard) typeTime(msg tea.KeyMsg) {
	r := &d.replay
	switch {
	case msg.Type == tea.KeyEsc:
		r.typing = false
	case msg.Type == tea.KeyEnter:
		r.typing = false
		if after, ok := parseTime(r.typed); ok {
			d.goTo(add(r.moment.From, after))
		} else {
			d.say(warnStyle, strconv.Quote(r.typed)+" is no time: want 12.5, 12.5s, 1m30s or 1:30 after the start")
		}
	case msg.Type == tea.KeyBackspace && r.typed != "":
		r.typed = r.typed[:len(r.typed)-1]
	case msg.Type == tea.KeyRunes && len(r.typed) < typedMax:
		for _, c := range msg.Runes {
			if strings.ContainsRune("0123456789.:hmnus", c) {
				r.typed += string(c)
			}
		}
	}
}

// parseTime reads a time after the start: seconds, minutes:seconds, or with units.
func parseTime(text string) (ns uint64, ok bool) {
	minutes, seconds, colon := strings.Cut(text, ":")
	if !colon {
		minutes, seconds = "0", text
	}
	if v, err := strconv.ParseFloat(seconds, 64); err == nil {
		m, err := strconv.ParseUint(minutes, 10, 32)
		if err != nil || !(v >= 0) || v > 1e9 {
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

// momentItems are the parts of the header that a recording has instead of a clock.
func (d *dashboard) momentItems(s *model.Snapshot) []item {
	m := &d.replay.moment
	at := []span{{" AT " + exactTime(since(m.From, s.Time)) + " ", bannerStyle}}
	if d.w >= compactW {
		at = append(at, span{"of " + exactTime(since(m.From, m.Until)) + " ", bannerStyle})
	}
	items := []item{{0, at}}
	if !m.Done {
		items = append(items, item{1, []span{{"reading " + strconv.Itoa(int(100*max(0, min(m.Read, 1)))) + " %", warnStyle}}})
	}
	if m.Damage != "" {
		items = append(items, item{1, []span{{"NOT WHOLE", badStyle}}})
	}
	return items
}

// exactTime formats a time after the start to the millisecond.
func exactTime(ns uint64) string {
	ms := ns / uint64(time.Millisecond)
	rest := strconv.FormatUint(1000+ms%1000, 10)[1:]
	if ms < 60_000 {
		return strconv.FormatUint(ms/1000, 10) + "." + rest + " s"
	}
	return clock(ns) + "." + rest
}

// momentText is what the line of messages says of a recording.
func (d *dashboard) momentText() (string, style) {
	m := &d.replay.moment
	switch {
	case d.replay.typing:
		return "go to (after the start): " + d.replay.typed + "_", strong
	case m.Note != "":
		return m.Note, warnStyle
	case m.Damage != "":
		return "! " + m.Damage, badStyle
	}
	return "", plain
}

// typingKeys are the keys of the prompt.
var typingKeys = []key.Help{{Key: "enter", Desc: "go there"}, {Key: "esc", Desc: "back"}}
