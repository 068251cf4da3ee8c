package ui

import (
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
)

func chosenName(d *dashboard) string { return d.tags.currentTag(d.shownSnapshot()).Name }

// names returns the tags in screen order.
func names(d *dashboard) (out []string) {
	for _, i := range d.tags.rows {
		out = append(out, d.shownSnapshot().Tags[i].Name)
	}
	return out
}

func TestMove(t *testing.T) {
	for _, test := range []struct {
		keys []string
		want int
	}{
		{nil, 0}, {[]string{"j"}, 1}, {[]string{"down", "down", "k"}, 1}, {[]string{"up"}, 0}, {[]string{"G"}, 21},
		{[]string{"G", "j"}, 21}, {[]string{"G", "g"}, 0}, {[]string{"pgdown"}, 4}, {[]string{"G", "pgup"}, 17},
	} {
		d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
		_ = frameText(d)
		press(d, test.keys...)
		if d.tags.at != test.want {
			t.Errorf("%v: row %d, want %d", test.keys, d.tags.at, test.want)
		}
		if got, want := screen(d), "▸ "+chosenName(d); !strings.Contains(strings.ReplaceAll(got, "▸!", "▸ "), want) {
			t.Errorf("%v: no cursor at %q in\n%s", test.keys, want, got)
		}
	}
}

func TestSort(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "j")
	if got := chosenName(d); got != "conv.c:203 im2col" {
		t.Fatalf("chose %q", got)
	}
	largest := names(d)
	press(d, "S")
	if got := names(d); got[len(got)-1] != largest[0] || chosenName(d) != "conv.c:203 im2col" {
		t.Errorf("reversed: last is %q, chosen is %q", got[len(got)-1], chosenName(d))
	}
	seen := []int{d.tags.sortColumn()}
	for range tagColumns {
		press(d, "s")
		seen = append(seen, d.tags.sortColumn())
		if chosenName(d) != "conv.c:203 im2col" {
			t.Errorf("sorting by %s moved the cursor to %q", tagColumns[d.tags.sortColumn()].title, chosenName(d))
		}
	}
	for i, c := range tagColumns {
		if c.order != nil && !d.tags.content.isFolded(i) && !slices.Contains(seen, i) {
			t.Errorf("s never sorts by %s", c.title)
		}
	}
}

func TestCursorFollowsItsTag(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "j", "j")
	want := chosenName(d)
	next := sampleSnapshot()
	next.Tags[2].Held = 1 << 40 // now first
	d.Update(frameMsg{now: testStart.Add(orderTime - 1), snap: next})
	if d.tags.at != 2 || chosenName(d) != want {
		t.Errorf("rows change places within a second: row %d, %q; want row 2, %q", d.tags.at, chosenName(d), want)
	}
	again := *next
	d.Update(frameMsg{now: testStart.Add(orderTime), snap: &again})
	if d.tags.at != 0 || chosenName(d) != want {
		t.Errorf("row %d, %q; want row 0, %q", d.tags.at, chosenName(d), want)
	}
	gone := sampleSnapshot()
	gone.Tags = gone.Tags[:1]
	d.Update(frameMsg{now: testStart, snap: gone})
	if d.tags.currentTag(d.shownSnapshot()) == nil {
		t.Error("no cursor after the tag has gone")
	}
}

// TestCursorStaysOnTop: until it is moved, the cursor shows the tag that holds the most.
func TestCursorStaysOnTop(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	next := sampleSnapshot()
	next.Tags[2].Held = 1 << 40
	d.Update(frameMsg{now: testStart.Add(orderTime), snap: next})
	if got := chosenName(d); d.tags.at != 0 || got != next.Tags[2].Name {
		t.Errorf("row %d, %q; want row 0, %q", d.tags.at, got, next.Tags[2].Name)
	}
}

// TestHeldBetweenIterations: a loop that holds nothing at the moment still shows what it needs.
func TestHeldBetweenIterations(t *testing.T) {
	s := sampleSnapshot()
	s.Totals.Held, s.Totals.InUse = 5<<30, 1<<10
	s.Tags[8].Held, s.Tags[8].InUse, s.Tags[8].Live = 2<<30, 0, 0
	d := newTest((&calls{}).options(), 120, 36, s)
	shows(t, d, "in use 1.00K   held 5.00G ", "▸ "+s.Tags[8].Name)
}

func TestFreeze(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "f")
	later := sampleSnapshot()
	later.Time += 12e9
	later.Events += 14000
	later.Totals.InUse = 3 << 30
	d.Update(frameMsg{now: testStart, snap: later})
	got := screen(d)
	if !strings.Contains(got, "FROZEN 12 s, 14 000 events behind") || !strings.Contains(got, "in use 1.43G") {
		t.Errorf("frozen screen:\n%s", got)
	}
	press(d, " ")
	shows(t, d, "in use 3.00G")
	hides(t, d, "FROZEN")
}

func TestQuitDialog(t *testing.T) {
	ended := func(o *Options) { o.App = func() App { return App{State: stats.Exited} } }
	for _, test := range []struct {
		name     string
		options  func(*Options)
		keys     []string
		quits    bool
		result   Result
		detached int
		ended    int
	}{
		{"asks", nil, []string{"q"}, false, Quit, 0, 0},
		{"escape", nil, []string{"q", "esc"}, false, Quit, 0, 0},
		{"detach", nil, []string{"q", "d"}, true, Detached, 1, 0},
		{"terminate", nil, []string{"q", "t"}, true, Terminated, 0, 1},
		{"other keys do nothing", nil, []string{"q", "x", "j"}, false, Quit, 0, 0},
		{"program has ended", ended, []string{"q"}, true, Quit, 0, 0},
		{"nothing to ask", func(o *Options) { o.Detach, o.Terminate = nil, nil }, []string{"q"}, true, Quit, 0, 0},
		{"d alone does nothing", nil, []string{"d"}, false, Quit, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c calls
			o := c.options()
			if test.options != nil {
				test.options(&o)
			}
			d := newTest(o, 120, 36, sampleSnapshot())
			if o.App != nil {
				d.Update(frameMsg{now: testStart, app: o.App(), hasApp: true})
			}
			cmd := press(d, test.keys...)
			if quits(cmd) != test.quits || d.result != test.result || c.detached != test.detached || c.ended != test.ended {
				t.Errorf("quits %v, result %v, calls %+v", quits(cmd), d.result, c)
			}
			if !test.quits && test.keys[len(test.keys)-1] == "q" && !strings.Contains(screen(d), "[d]etach UI, app continues · [t]erminate · [esc]") {
				t.Errorf("no question on the screen:\n%s", screen(d))
			}
		})
	}
}

func TestExitWithApp(t *testing.T) {
	o := (&calls{}).options()
	o.ExitWithApp = true
	d := newTest(o, 120, 36, sampleSnapshot())
	_, cmd := d.Update(frameMsg{now: testStart, app: App{State: stats.Signaled, Status: 11}, hasApp: true})
	if !quits(cmd) || d.result != AppEnded {
		t.Errorf("result %v", d.result)
	}
}

func TestStates(t *testing.T) {
	for _, test := range []struct {
		app  App
		want string
	}{
		{App{}, "● RUNNING"}, {App{State: stats.Exited}, "✓ EXITED 0"}, {App{State: stats.Exited, Status: 7}, "✗ EXITED 7"},
		{App{State: stats.Signaled, Status: 11}, "✗ SIGSEGV"}, {App{State: stats.Signaled, Status: 60}, "✗ SIGNAL 60"},
		{App{State: stats.Exited, Status: -1}, "● EXITED"},
	} {
		d := newTest((&calls{}).options(), 80, 24, sampleSnapshot())
		d.Update(frameMsg{now: testStart, app: test.app, hasApp: true})
		shows(t, d, test.want)
	}
}

func TestInterrupt(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	at := func(after time.Duration) { d.Update(frameMsg{now: testStart.Add(after)}) }
	press(d, "ctrl+c")
	at(time.Second)
	press(d, "ctrl+c")
	at(2 * time.Second)
	press(d, "ctrl+c")
	at(10 * time.Second)
	press(d, "ctrl+c")
	want := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT}
	if !slices.Equal(c.signals, want) {
		t.Errorf("sent %v, want %v", c.signals, want)
	}
	d.Update(frameMsg{now: testStart, app: App{State: stats.Exited}, hasApp: true})
	if !quits(press(d, "ctrl+c")) {
		t.Error("ctrl+c does not quit after the end of the program")
	}
}

// TestSlabsRow checks the row of free ranges in slabs, whose list counts slabs.
func TestSlabsRow(t *testing.T) {
	s := sampleSnapshot()
	s.Tags = []stats.Tag{{
		ID: math.MaxUint32, Name: "(slabs)", Slabs: true, Cached: 3 * mib, CachedCount: 5, Free: []stats.FreeClass{{Size: 4 * mib, Blocks: 2}},
	}}
	d := newTest((&calls{}).options(), 120, 36, s)
	got := screen(d)
	press(d, "enter")
	got += screen(d)
	for _, want := range []string{"(slabs)", "SLABS    BYTES", "2    8.00M", "3.00M"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestFocusAndZoom(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	want := []paneID{paneFree, paneMisses, paneLimits, paneOutput, paneMemory, paneRates, paneTags}
	for _, p := range want {
		press(d, "tab")
		if d.focus != p {
			t.Errorf("focus on %d, want %d", d.focus, p)
		}
	}
	press(d, "shift+tab")
	if d.focus != paneRates {
		t.Errorf("focus on %d, want %d", d.focus, paneRates)
	}
	for _, p := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		press(d, p)
		if got := d.visiblePanes(); len(got) != 1 || got[0] != paneID(p[0]-'0') {
			t.Errorf("%s shows %v", p, got)
		}
	}
	press(d, "esc")
	if len(d.visiblePanes()) != 7 {
		t.Errorf("esc leaves %v", d.visiblePanes())
	}
}

func TestOutputPane(t *testing.T) {
	d := newTest((&calls{}).options(), 80, 24, sampleSnapshot())
	press(d, "o")
	got := screen(d)
	for _, want := range []string{"output 4 lines, 1 on stderr", "▌warning: no GPU", " iter 212/500  12.4 ms", " iter 213/500    12.1 ms"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	lines := make([]view.OutputLine, 3*outputMax)
	for i := range lines {
		lines[i].Text = "line " + itoa(i)
	}
	d.Update(frameMsg{now: testStart, lines: lines, next: 20004})
	if len(d.output.lines) != outputMax || d.output.count != uint64(len(lines))+4 || d.output.next != 20004 {
		t.Errorf("%d lines kept, %d counted", len(d.output.lines), d.output.count)
	}
	_ = frameText(d)
	press(d, "g")
	if got := screen(d); !strings.Contains(got, " line "+itoa(2*outputMax)) {
		t.Errorf("the oldest kept line is not at the top:\n%s", got)
	}
}

// TestOpenLineIsReplaced: a bar that shows progress is one line that changes.
func TestOpenLineIsReplaced(t *testing.T) {
	d := newTest((&calls{}).options(), 80, 24, sampleSnapshot())
	press(d, "o")
	for _, text := range []string{"10 %", "20 %"} {
		d.Update(frameMsg{now: testStart, lines: []view.OutputLine{{Text: text, Open: true}}, next: 4})
		shows(t, d, "output 4 lines", " "+text)
	}
	hides(t, d, "10 %")
	d.Update(frameMsg{now: testStart, lines: []view.OutputLine{{Text: "done"}}, next: 5})
	shows(t, d, "output 5 lines", " done")
	hides(t, d, "20 %")
}

func TestHelpHasEveryKeyAndPane(t *testing.T) {
	d := newTest((&calls{}).options(), 200, 200, sampleSnapshot())
	press(d, "?", "?")
	got := screen(d)
	for _, c := range d.mode.keys {
		if !strings.Contains(got, c.help) {
			t.Errorf("no help for %s", c.shown)
		}
	}
	for _, w := range slices.Concat(words, poolWords, panesFor(false, false)) {
		if !strings.Contains(got, w.meaning) {
			t.Errorf("no help for %q", w.term)
		}
	}
	press(d, "?")
	if d.overlay != noOverlay {
		t.Error("? does not close the help")
	}
}

func TestPastedTextIsNoKeys(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	d.Update(pasted("qt"))
	if c.ended != 0 || d.overlay != noOverlay {
		t.Error("pasted text was taken for keys")
	}
}

func TestResizeTellsTheProgram(t *testing.T) {
	var c calls
	newTest(c.options(), 120, 36, nil)
	if len(c.sizes) != 1 || c.sizes[0] != [2]int{118, 36} {
		t.Errorf("sizes %v", c.sizes)
	}
}

func TestUnchangedFrameIsNotDrawnAgain(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 120, 36, s)
	_ = frameText(d)
	d.Update(frameMsg{now: testStart.Add(time.Second), snap: s, next: 4})
	if d.dirty {
		t.Error("the same snapshot makes a new frame")
	}
}
