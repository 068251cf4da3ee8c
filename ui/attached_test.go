package ui

import (
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// attachedSnapshot is the sample of n processes seen from outside: no pool, and a tag for older buffers.
func attachedSnapshot(n int) *stats.Snapshot {
	s := crowdSnapshot(n)
	s.Program, s.Arguments, s.Policy, s.Limits, s.Marks = "/opt/blur", []string{"--rank", "0"}, "none", nil, nil
	s.Recording = stats.Recording{}
	t := &s.Totals
	t.Misses, t.Hits, t.Cached, t.Cooling, t.LargestCached, t.CachedBlocks, t.Saved.NS = t.Hits+t.Misses, 0, 0, 0, 0, 0, 0
	t.SteadyHits, t.DriverCreates, t.MissReasons = 0, t.Creates, [wire.MissPolicy + 1]uint64{wire.MissPolicy: t.Misses}
	s.Window.Misses, s.Window.Hits = s.Window.Creates, 0
	for i := range s.History {
		h := &s.History[i]
		h.Misses, h.Hits, h.Cached, h.Cooling = h.Creates, 0, 0, 0
	}
	for i := range s.Tags {
		tag := &s.Tags[i]
		tag.Misses, tag.Hits, tag.Cached, tag.Cooling, tag.CachedCount, tag.Free = tag.Creates, 0, 0, 0, 0, nil
		tag.MissReasons = [wire.MissPolicy + 1]uint64{wire.MissPolicy: tag.Misses}
	}
	for i := range s.Buckets {
		b := &s.Buckets[i]
		b.Hits, b.Cached, b.Cooling, b.Blocks = 0, 0, 0, 0
	}
	s.Misses = nil
	s.Tags = append(s.Tags, stats.Tag{ID: 900, Name: "unknown before attach", Live: 12, InUse: 700 * mib, Requested: 700 * mib, PeakInUse: 700 * mib})
	return s
}

func attachedTest(w, h int, s *stats.Snapshot, app App) *dashboard {
	d := newTest(Options{Attached: true, ReadOnly: true}, w, h, nil)
	d.Update(frameMsg{now: testStart, snap: s, app: app, hasApp: true})
	return d
}

func TestAttachedGolden(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {80, 24}, {60, 20}, {40, 10}} {
		for name, n := range map[string]int{"one": 1, "several": 3} {
			t.Run(name+itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
				d := attachedTest(size[0], size[1], attachedSnapshot(n), App{Status: -1})
				checkFrame(t, frameText(d), size[0], size[1])
				golden.RequireEqual(t, screen(d))
			})
		}
	}
}

// TestMachineStandsAboveTheChart: what the machine reports stands above the chart, where there is room and something to report.
func TestMachineStandsAboveTheChart(t *testing.T) {
	s := attachedSnapshot(1)
	plain := screen(attachedTest(120, 36, s, App{Status: -1}))
	s.Machine = []stats.MachineFigure{
		{Source: wire.MachineRSS, Bytes: 812 * mib, Since: 1},
		{Source: wire.MachineDRM, Device: 0x300, Bytes: s.Totals.ReservedBytes() + 41*mib, Since: 1},
	}
	for _, want := range []string{"machine ", "driver's own 41.0M", " · anonymous 812.0M"} {
		if text := screen(attachedTest(120, 36, s, App{Status: -1})); !strings.Contains(text, want) || strings.Contains(plain, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for i := range s.History {
		s.History[i].Machine = uint64(i) * mib
	}
	if lane := regexp.MustCompile(`mach *│ *▁+▂+▃+▄+▅+▆+▇+█`); !lane.MatchString(screen(attachedTest(120, 48, s, App{Status: -1}))) || lane.MatchString(plain) {
		t.Errorf("no curve in\n%s", screen(attachedTest(120, 48, s, App{Status: -1})))
	}
	s.Machine = s.Machine[:1]
	s.Totals.InFlight = stats.InFlight{Now: 3 * mib, Peak: 9 * mib}
	if text := screen(attachedTest(120, 36, s, App{Status: -1})); !strings.Contains(text, "· in flight 3.00M · at most 9.00M") {
		t.Errorf("released in flight:\n%s", text)
	}
	s.TransfersOnly, s.Totals.DriverReleases = true, 1
	if text := screen(attachedTest(120, 36, s, App{Status: -1})); !strings.Contains(text, "in flight not known without -o") {
		t.Errorf("released in flight, unknown:\n%s", text)
	}
	for w := 90; w < 120; w++ {
		if text := screen(attachedTest(w, 36, s, App{Status: -1})); strings.Contains(text, "in flight") != strings.Contains(text, "not known without -o") {
			t.Errorf("half a figure in %d columns:\n%s", w, text)
		}
	}
	s.Machine = []stats.MachineFigure{{Source: wire.MachineDRM, Unread: 13}}
	if text := screen(attachedTest(120, 36, s, App{Status: -1})); !strings.Contains(text, "DRM not readable: permission denied") {
		t.Errorf("not readable:\n%s", text)
	}
	if text := screen(attachedTest(60, 12, s, App{Status: -1})); strings.Contains(text, "not readable") {
		t.Errorf("in a small terminal:\n%s", text)
	}
}

func TestAttachedStates(t *testing.T) {
	ended := App{State: stats.Exited, Status: -1}
	empty := attachedSnapshot(0)
	empty.Program, empty.Arguments = "", nil
	for _, test := range []struct {
		snap *stats.Snapshot
		app  App
		want []string
	}{
		{attachedSnapshot(1), App{Status: -1}, []string{"attached to blur --rank 0", "WATCHING", "pid 4711"}},
		{attachedSnapshot(3), App{Status: -1}, []string{"WATCHING", "pid 4711 +2", "unknown before attach"}},
		{empty, App{Status: -1}, []string{"WAITING", "waiting for processes to watch"}},
		{attachedSnapshot(1), ended, []string{"ENDED", "nothing is left to watch"}},
	} {
		got := screen(attachedTest(120, 36, test.snap, test.app))
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		if strings.Contains(got, "attached to") == (test.snap == empty) {
			t.Errorf("attached to nothing, or not:\n%s", got)
		}
		if strings.Contains(got, "output") || strings.Contains(got, "interrupt") {
			t.Errorf("output or interrupt offered:\n%s", got)
		}
	}
}

// TestAttachedLeaves checks that no key affects the programs, and that quitting asks nothing.
func TestAttachedLeaves(t *testing.T) {
	for _, key := range []string{"q", "ctrl+c"} {
		d := attachedTest(120, 36, attachedSnapshot(3), App{Status: -1})
		if cmd := press(d, key); !quits(cmd) || d.result != Detached || d.overlay != noOverlay {
			t.Errorf("%s: result %v, overlay %d; want to leave at once", key, d.result, d.overlay)
		}
		d = attachedTest(120, 36, attachedSnapshot(1), App{State: stats.Exited, Status: -1})
		if cmd := press(d, key); !quits(cmd) || d.result != Quit {
			t.Errorf("%s after the end: result %v", key, d.result)
		}
	}
	d := attachedTest(120, 36, attachedSnapshot(1), App{Status: -1})
	press(d, "]")
	shows(t, d, "cannot be changed from outside")
}

func TestAttachedHelp(t *testing.T) {
	d := attachedTest(100, 130, attachedSnapshot(1), App{Status: -1})
	press(d, "?", "?")
	got := screen(d)
	for _, want := range []string{"the programs go on", "zoom a pane", "nothing to change", "unknown before attach"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in the help:\n%s", want, got)
		}
	}
	for _, wrong := range []string{"SIGINT", "output", "chosen limit", "keys: limits", "keys: program\n", "what becomes", "hit, miss", "steady", "cooling"} {
		if strings.Contains(got, wrong) {
			t.Errorf("%q in the help for attach:\n%s", wrong, got)
		}
	}
}

// TestAttachedNoPool checks that a watched program shows no figures of a pool, and that lower bounds are marked.
func TestAttachedNoPool(t *testing.T) {
	d := attachedTest(120, 36, attachedSnapshot(1), App{Status: -1})
	for range len(tagColumns) {
		press(d, "s")
		if tagColumns[d.tags.sortColumn()].pool {
			t.Errorf("sorted by %s, which is not there", tagColumns[d.tags.sortColumn()].title)
		}
	}
	got := screen(d)
	press(d, "P")
	list := screen(d)
	small := screen(attachedTest(80, 24, attachedSnapshot(1), App{Status: -1}))
	for _, wrong := range []string{"hit ", "HIT%", "CACHED", "MISSES", "cached", "cooling", "reserved", "driver/s", "saved", "avoided", "▸!"} {
		for _, shown := range []string{got, list, small} {
			if strings.Contains(shown, wrong) {
				t.Errorf("%q without a pool:\n%s", wrong, shown)
			}
		}
	}
	for _, want := range []string{"in use ≥", "peak ≥", "≥700.0M", "from before attach 12 buffers", "no pool"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	s := attachedSnapshot(1)
	s.Tags = s.Tags[:len(s.Tags)-1]
	hides(t, attachedTest(120, 36, s, App{Status: -1}), "≥")
}

// TestSpillStandsAboveTheChart: what --spill does stands above the chart, and that the device is too small for it.
func TestSpillStandsAboveTheChart(t *testing.T) {
	s := attachedSnapshot(1)
	s.Spill = &stats.Spill{
		Resident: 41 * mib, PeakResident: 64 * mib, Spilled: 812 * mib, WorkingSet: 99 * mib, Sites: []stats.SpillSite{{Tag: "render.c:88"}},
		Out: stats.Moves{Bytes: 5 * mib}, In: stats.Moves{Bytes: 7 * mib}, Stalls: stats.Moves{NS: 3e6},
	}
	for thrashing, want := range map[bool]string{
		false: "spilled 812.0M resident 41.0M out 5.00M back 7.00M stalls 3", true: "thrashing: needs 99.0M, has 64.0M: render.c:88",
	} {
		s.Spill.Thrashing = thrashing
		if text := screen(attachedTest(120, 36, s, App{Status: -1})); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	run := sampleSnapshot()
	run.Spill, run.Totals.Cached, run.Totals.Cooling = s.Spill, 0, 0
	text := screen(newTest(Options{}, 120, 36, run))
	for _, want := range []string{"in use 1.43G", "reserved 41.0M", "16.0G free of 16.0G", "peak resident 64.0M"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
