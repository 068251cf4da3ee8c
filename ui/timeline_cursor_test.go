package ui

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/golden"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

// fakeRecording is a recording that answers with the same moment at another time, and records what it was asked.
type fakeRecording struct {
	moment view.Moment
	asked  []uint64
}

func (r *fakeRecording) at(at uint64) view.Moment {
	r.asked = append(r.asked, at)
	m := r.moment
	if m.Shown != nil {
		shown := *m.Shown
		shown.Time = max(m.From, min(at, m.Until))
		m.Shown = &shown
	}
	return m
}

func (r *fakeRecording) last() uint64 { return r.asked[len(r.asked)-1] }

// sampleRecording is the sample program's recording, of 83 seconds, with an instant each second.
func sampleRecording() *fakeRecording {
	s := sampleSnapshot()
	s.Recording = stats.Recording{}
	s.Processes[0].State, s.Processes[0].Status = stats.Exited, 0
	return &fakeRecording{moment: view.Moment{
		Shown: s, Latest: s, History: s.History, From: s.Started, Until: s.Time, Step: 1e9, Read: 1, Done: true,
	}}
}

func newViewTest(r *fakeRecording, w, h int, at uint64) *dashboard {
	o := Options{Moment: r.at, At: at, ReadOnly: true, Judge: &analysis.Live{Still: true}}
	d := newDashboard(o, newTrueColorTheme(Dark, Braille))
	d.Update(tea.WindowSizeMsg{Width: w, Height: h})
	d.Update(frameMsg{now: testStart})
	return d
}

func TestViewGolden(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {80, 24}, {60, 20}, {40, 10}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			r := sampleRecording()
			d := newViewTest(r, size[0], size[1], r.moment.From+30e9)
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

// While the file is read the totals come from its summaries: what these do not tell is not shown.
func TestViewGoldenWhileReading(t *testing.T) {
	r := sampleRecording()
	m := &r.moment
	m.Rough, m.Known, m.Done, m.Read, m.Note = true, m.From+35e9, false, 0.43, "reading: as far as it has come"
	d := newViewTest(r, 120, 36, view.LastMoment)
	golden.RequireEqual(t, screen(d))
	if bar := d.View().ProgressBar; bar == nil || bar.Value != 43 {
		t.Errorf("the terminal's progress: %+v", bar)
	}
	for _, unknown := range []string{"reserved", "waste 4.1%", "frag ", "p50", "steady", "saved", "EXITED"} {
		if strings.Contains(screen(d), unknown) {
			t.Errorf("%q is shown of summaries, which do not tell it", unknown)
		}
	}
}

func TestTimeCursor(t *testing.T) {
	r := sampleRecording()
	from := r.moment.From
	d := newViewTest(r, 120, 36, from+30e9)
	for _, test := range []struct {
		keys []string
		want uint64
	}{
		{nil, from + 30e9},
		{[]string{"right"}, from + 31e9},
		{[]string{"left", "left"}, from + 29e9},
		{[]string{"shift+right"}, from + 39e9},
		{[]string{"shift+left"}, from + 29e9},
		{[]string{"ctrl+right"}, from + 79e9},
		{[]string{"shift+right"}, view.LastMoment},
		{[]string{"left"}, from + 82e9},
		{[]string{"ctrl+left", "ctrl+left"}, from},
		{[]string{"left"}, from},
		{[]string{"end"}, view.LastMoment},
		{[]string{"home"}, from},
		{[]string{"t", "1", ":", "0", "2", ".", "5", "enter"}, from + 62.5e9},
		{[]string{"left"}, from + 62e9},
		{[]string{"t", "9", "backspace", "2", "5", "0", "0", "m", "s", "enter", "right"}, from + 3e9},
		{[]string{"t", "7", "esc"}, from + 3e9},
		{[]string{"t", "m", "enter"}, from + 3e9},
		{[]string{"t", "x", "1", "h", "enter"}, from + 3600e9},
	} {
		press(d, test.keys...)
		if got := r.last(); got != test.want {
			t.Errorf("after %v: %v ns after the start, want %v", test.keys, int64(got-from), int64(test.want-from))
		}
	}
}

func TestAWrongTimeIsSaid(t *testing.T) {
	d := newViewTest(sampleRecording(), 80, 24, view.LastMoment)
	press(d, "t", "1", "m", "m")
	if !strings.Contains(screen(d), "1mm_") {
		t.Errorf("what is typed is not shown:\n%s", screen(d))
	}
	press(d, "enter")
	if !strings.Contains(screen(d), `"1mm" is not a time`) {
		t.Errorf("no message about a wrong time:\n%s", screen(d))
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "1.5": 1.5e9, "2:03": 123e9, "1m1s": 61e9, "250ms": 250e6, "1:00.25": 60.25e9} {
		if got, ok := parseTimeAfterStart(text); !ok || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", ":", "1:", ":1", "1:1m", "1e99", "NaN", "1:2:3", "m", "-1s"} {
		if got, ok := parseTimeAfterStart(text); ok {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
}

// A recording offers nothing that needs a live program: no limits to change, no output, no signals.
func TestViewOffersNothingLive(t *testing.T) {
	d := newViewTest(sampleRecording(), 120, 60, view.LastMoment)
	var help strings.Builder
	for _, line := range d.help.shownHelpLines() {
		for _, s := range line {
			help.WriteString(s.text)
		}
		help.WriteByte('\n')
	}
	for _, live := range []string{"SIGINT", "freeze", "output of the program", "lower the chosen limit", "7 output", "program that still runs"} {
		if strings.Contains(help.String(), live) {
			t.Errorf("%q in the help:\n%s", live, help.String())
		}
	}
	for _, p := range d.visiblePanes() {
		if p == paneOutput {
			t.Error("a recording has an output pane")
		}
	}
	for range 10 { // through all panes
		press(d, "1", "tab", "1")
		if d.zoom == paneOutput || d.focus == paneOutput {
			t.Fatal("the pane for output can be zoomed")
		}
	}
	for _, k := range []string{"q", "ctrl+c"} {
		if !quits(press(d, k)) {
			t.Errorf("%s does not quit", k)
		}
		d.leaving = false
	}
}

// The end of a recording without calls does not look like its start.
func TestViewOfNoCalls(t *testing.T) {
	r := sampleRecording()
	r.moment.Shown = &stats.Snapshot{Started: r.moment.From}
	for at, want := range map[uint64]string{r.moment.From: "STARTING", view.LastMoment: "NO CALLS"} {
		if d := newViewTest(r, 120, 36, at); !strings.Contains(screen(d), want) || strings.Contains(screen(d), "yet") {
			t.Errorf("no %s, or something is yet to come:\n%s", want, screen(d))
		}
	}
}

// The limits of a recording cannot change, and the message says so.
func TestViewSaysThatLimitsAreFixed(t *testing.T) {
	d := newViewTest(sampleRecording(), 120, 36, view.LastMoment)
	press(d, "]")
	if !strings.Contains(screen(d), "its limits cannot change") {
		t.Errorf("no message:\n%s", screen(d))
	}
}

// TestNothingEscapesTheView holds for every size, moment and row of keys.
func TestNothingEscapesTheView(t *testing.T) {
	racetest.Slow(t)
	var keys []string
	for _, c := range inView.commandsOfMode(keymap) {
		keys = append(keys, c.keys...)
	}
	keys = append(keys, "1", "9", "m", ":", ".", "backspace", "enter", "esc", "[")
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 220).Draw(t, "w"), rapid.IntRange(1, 70).Draw(t, "h")
		anyMoment := func(uint64) view.Moment {
			m := view.Moment{
				Shown: anySnapshot(t), Rough: rapid.Bool().Draw(t, "rough"), Known: anyNumber().Draw(t, "known"),
				Latest: anySnapshot(t), From: anyNumber().Draw(t, "from"), Step: anyNumber().Draw(t, "step"),
				Read: anyFloat().Draw(t, "read"), Done: rapid.Bool().Draw(t, "done"), Note: anyText().Draw(t, "note"),
				Damage: anyText().Draw(t, "damage"),
			}
			m.Until = saturatingSum(m.From, anyNumber().Draw(t, "length"))
			if m.Latest != nil {
				m.History = m.Latest.History
			}
			return m
		}
		o := Options{Moment: anyMoment, At: anyNumber().Draw(t, "at"), Charts: rapid.SampledFrom([]Charts{Braille, Blocks, HalfBlocks, ASCII}).Draw(t, "charts"), Judge: &analysis.Live{Still: true}}
		d := newDashboard(o, newTrueColorTheme(Dark, o.Charts))
		d.Update(tea.WindowSizeMsg{Width: w, Height: h})
		d.Update(frameMsg{now: testStart})
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(keys), 0, 6).Draw(t, "keys") {
			press(d, k)
			d.leaving = false
			frame := frameText(d)
			checkFrame(t, frame, w, h)
			if o.Charts == ASCII {
				checkASCII(t, frame)
			}
		}
		checkFrame(t, frameText(d), w, h)
	})
}

// TestViewCurve checks that a recording's curve is requested only while it is shown, with its progress, and that other
// limits can be tried.
func TestViewCurve(t *testing.T) {
	r := sampleRecording()
	asked, curve := 0, &view.Curve{Why: "playing the recording at other limits: pass 2 of 3, 40 %"}
	d := newViewTest(r, 100, 30, view.LastMoment)
	d.o.Curve, d.o.Refresh = func() *view.Curve { asked++; return curve }, 1
	tick := func() { d.Update(d.pollSources(0)()) }
	tick()
	if asked != 0 {
		t.Error("asked while the curve is not shown")
	}
	press(d, "c")
	tick()
	if got := screen(d); asked != 1 || !strings.Contains(got, curve.Why) || strings.Contains(got, "[ ] limit") {
		t.Errorf("asked %d times:\n%s", asked, got)
	}
	press(d, "left")
	if r.last() == view.LastMoment {
		t.Error("the time cursor does not move meanwhile")
	}
	curve = sampleCurve()
	curve.Whole = true
	tick()
	press(d, "[")
	got := screen(d)
	for _, want := range []string{"hit rate by limit of cached bytes (futhark)", "◆ simulated, not estimated  of all 104 817 requests of the recording", "│ set 512.0M 92.5 %", "┊ with 256.0M", "[ ] limit"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, size := range [][2]int{{140, 45}, {80, 24}, {60, 20}} {
		d.resizeTo(size[0], size[1])
		checkFrame(t, frameText(d), size[0], size[1])
	}
	curve = &view.Curve{Whole: true, Limits: true, Policy: "futhark"}
	tick()
	shows(t, d, "this recording has no poolable requests")
}

// TestNamesOfLater: a moment before a call site had its name has it, too, also in all lines about failures.
func TestNamesOfLater(t *testing.T) {
	r := sampleRecording()
	early := sampleSnapshot()
	early.Tags[2].Name = "tag 3"
	early.PostMortems = []stats.PostMortem{{Time: early.Time - 1, Call: "create of a buffer", Size: 900 * gib, Status: -61, Tag: "tag 99"}}
	late := sampleSnapshot()
	late.PostMortems = slices.Clone(early.PostMortems)
	late.PostMortems[0].Tag, late.PostMortems[0].Grew, late.PostMortems[0].Repeats = "mine.c:10 make_huge", "mine.c:8 keep", 7
	early.FailedCalls = []stats.FailedCall{{Call: "clFinish", Status: -36, Count: 1, Time: early.Time - 2, Tag: "tag 98"}}
	late.FailedCalls = []stats.FailedCall{{Call: "clFinish", Status: -36, Count: 5, Time: early.Time - 2, Tag: "mine.c:12 wait"}}
	r.moment.Shown, r.moment.Latest = early, late
	d := newViewTest(r, 120, 36, r.moment.Until)
	shows(t, d, "main.c:140 upload", "900.0 GiB")
	hides(t, d, "tag 3", "tag 99")
	if early.Tags[2].Name != "tag 3" {
		t.Error("a snapshot was changed")
	}
	press(d, "!")
	shows(t, d, "create of a buffer of 900.0 GiB at mine.c:10 make_huge failed (-61)", "clFinish at mine.c:12 wait failed")
	hides(t, d, "5 times")
	if p := d.live.PostMortems[0]; p.Grew != "mine.c:8 keep" || p.Repeats != 0 {
		t.Errorf("got %+v", p)
	}
}

// TestNoTimeTyped: nothing typed is no mistake.
func TestNoTimeTyped(t *testing.T) {
	r := sampleRecording()
	d := newViewTest(r, 120, 36, r.moment.Until)
	press(d, "t", "a", "b", "c", "enter")
	shows(t, d, "a time is a number of seconds after the start")
	hides(t, d, "is not a time")
}
