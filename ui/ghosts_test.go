package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// ghostSnapshot is the sample under futhark with ghosts: slab leads, one has stopped, one started late.
func ghostSnapshot() *stats.Snapshot {
	s := sampleSnapshot()
	s.Policy = "futhark"
	s.Ghosts = &stats.Ghosts{
		Rows: []stats.Ghost{
			{Name: "slab max_cached_bytes=64M", Policy: "slab", Hits: 9990, Requests: 10_000, RecentHits: 100, RecentRequests: 100, PeakReserved: 96 * mib, Reserved: 64 * mib, DriverNS: 3.1e9},
			{Name: "futhark", Policy: "futhark", Present: true, Hits: 9000, Requests: 10_000, RecentHits: 80, RecentRequests: 100, PeakReserved: 80 * mib, Reserved: 64 * mib, DriverNS: 5e9},
			{Name: "pow2", Policy: "pow2", Hits: 5000, Requests: 10_000, RecentHits: 10, RecentRequests: 100, PeakReserved: 120 * mib, Reserved: 99 * mib, DriverNS: 90e9},
			{Name: "buddy", Policy: "buddy", Hits: 400, Requests: 1000, PeakReserved: 64 * mib, DriverNS: 2e6, Stopped: "stopped: could not keep up at 2.1 million events/s"},
			{Name: "mantissa mantissa_bits=3", Policy: "mantissa", Hits: 10, Requests: 20, PeakReserved: mib, Reserved: mib, DriverNS: 1e5, Since: s.Started + 3e9},
		},
		Events: 20_000, CreateA: 2000, CreateB: 0.01, ReleaseA: 900, Busy: 0.124, Bytes: 3 * mib, Waiting: 1024,
	}
	return s
}

// ghostTest is a dashboard that records what is adopted.
func ghostTest(w, h int, s *stats.Snapshot, adopted *[]string, refusal error) *dashboard {
	var asked []string
	d := policyTest(w, h, s, &asked, nil)
	d.o.Adopt = func(name string) (uint64, error) {
		if refusal == nil {
			*adopted = append(*adopted, name)
		}
		return uint64(len(*adopted)), refusal
	}
	return d
}

func TestGhostsGolden(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {80, 24}, {60, 14}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			var adopted []string
			d := ghostTest(size[0], size[1], ghostSnapshot(), &adopted, nil)
			press(d, "w")
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

// TestAssumedGhosts: a row at assumed costs has no number and no comparison, and where all are so, none leads.
func TestAssumedGhosts(t *testing.T) {
	var adopted []string
	s := ghostSnapshot()
	s.Ghosts.Rows[2].Assumed = true
	d := ghostTest(120, 36, s, &adopted, nil)
	press(d, "w")
	text := screen(d)
	if !strings.Contains(text, "assumed │") || strings.Contains(text, " 3   pow2") || !strings.Contains(text, "what sub-allocations take is assumed") {
		t.Errorf("%s", text)
	}
	for i := range s.Ghosts.Rows {
		s.Ghosts.Rows[i].Assumed = true
	}
	d = ghostTest(120, 36, s, &adopted, nil)
	press(d, "w")
	if text := screen(d); !strings.Contains(text, "no ghost leads: too few driver calls") || strings.Contains(text, "y switches") {
		t.Errorf("%s", text)
	}
}

// TestLittleToGain: a leader that would hardly have changed the run is not advised.
func TestLittleToGain(t *testing.T) {
	var adopted []string
	s := ghostSnapshot()
	s.Ghosts.Rows[0].DriverNS, s.Ghosts.Rows[1].DriverNS = 50e3, 60e3
	d := ghostTest(120, 36, s, &adopted, nil)
	press(d, "w")
	if text := screen(d); strings.Contains(text, "y switches to") || !strings.Contains(text, "leads: −17 % time in the driver, which is little to gain (y switches)") {
		t.Errorf("%s", text)
	}
}

// TestLateConfigurationIsNotReplacedByWorse: what was set while the program ran is not ranked, and may be better than the leader.
func TestLateConfigurationIsNotReplacedByWorse(t *testing.T) {
	var adopted []string
	s := ghostSnapshot()
	s.Ghosts.Rows[0].RecentHits = 70
	present := &s.Ghosts.Rows[1]
	present.Since, present.RecentHits = s.Started+3e9, 100
	d := ghostTest(120, 36, s, &adopted, nil)
	press(d, "w")
	press(d, "y")
	if len(adopted) != 0 {
		t.Fatalf("adopted %q", adopted)
	}
	shows(t, d, "the present policy is too new to rank, but has had more hits recently: 100.0 % hits, slab max_cached_bytes=64M 70.0 %")
	s.Ghosts.Rows[0].RecentHits = 100
	press(d, "y")
	if len(adopted) != 1 {
		t.Errorf("an equal leader is not adopted:\n%s", screen(d))
	}
}

func TestLeaderIsAdopted(t *testing.T) {
	var adopted []string
	d := ghostTest(120, 36, ghostSnapshot(), &adopted, nil)
	press(d, "y")
	if got := screen(d); len(adopted) != 0 || !strings.Contains(got, "press y again to switch to slab max_cached_bytes=64M: −38 % time in the driver") || !strings.Contains(got, "IF YOU HAD USED") {
		t.Errorf("adopted %q before it said so:\n%s", adopted, got)
	}
	press(d, "y")
	if got := screen(d); !slices.Equal(adopted, []string{"slab max_cached_bytes=64M"}) || !strings.Contains(got, "switching to slab") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
	press(d, "y") // it is on its way
	if got := screen(d); len(adopted) != 1 || !strings.Contains(got, "policy slab is pending") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
	s := ghostSnapshot()
	s.Policy, s.Change.Done, s.Change.Request = "slab", 1, answeredPolicy(1, "")
	s.Ghosts.Rows[0].Present, s.Ghosts.Rows[1].Present = true, false
	d.Update(frameMsg{now: testStart, snap: s})
	shows(t, d, "✓ policy futhark → slab max_cached_bytes=64M acknowledged")
	press(d, "y")
	if got := screen(d); len(adopted) != 1 || !strings.Contains(got, "slab max_cached_bytes=64M leads and is in force") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
}

// TestLeaderOfTheSamePolicy checks that an answer counts if only the limits change, even between two frames.
func TestLeaderOfTheSamePolicy(t *testing.T) {
	var adopted []string
	s := ghostSnapshot()
	s.Policy, s.Ghosts.Rows[1].Name, s.Ghosts.Rows[1].Policy = "slab", "slab", "slab"
	d := ghostTest(120, 36, s, &adopted, nil)
	press(d, "y", "y")
	late := *s
	late.Time += 2 * stats.AnswerTime
	late.Change.Done, late.Change.Request = late.Change.Done+1, answeredPolicy(1, "")
	d.Update(frameMsg{now: testStart, snap: &late})
	if got := screen(d); len(adopted) != 1 || !strings.Contains(got, "✓ policy slab → slab max_cached_bytes=64M acknowledged") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
}

func TestLeaderIsNotAdopted(t *testing.T) {
	var adopted []string
	with := func(change func(*stats.Snapshot)) *dashboard {
		s := ghostSnapshot()
		change(s)
		return ghostTest(120, 36, s, &adopted, nil)
	}
	readOnly := with(func(*stats.Snapshot) {})
	readOnly.o.ReadOnly = true
	readOnly.mode = keymapMode(&readOnly.o)
	ended := with(func(*stats.Snapshot) {})
	ended.Update(frameMsg{now: testStart, app: App{State: stats.Exited}, hasApp: true})
	attached := attachedTest(120, 36, ghostSnapshot(), App{Status: -1})
	for want, d := range map[string]*dashboard{
		"no policies are simulated beside this run": with(func(s *stats.Snapshot) { s.Ghosts = nil }),
		"no ghost leads: all stopped: too fast": with(func(s *stats.Snapshot) {
			s.Ghosts.Stopped = "stopped: too fast"
			for i := range s.Ghosts.Rows {
				s.Ghosts.Rows[i].Stopped = s.Ghosts.Stopped
			}
		}),
		"there was no request yet": with(func(s *stats.Snapshot) { s.Ghosts.Rows[0].Requests = 0 }),
		"attach only watches; to use the leader: gpumemtop --policy slab --set max_cached_bytes=64M ./app": attached,
		"cannot be changed here": readOnly,
		"the program has ended; to use the leader: gpumemtop --policy slab --set max_cached_bytes=64M ./app": ended,
		"started without a pool; to use the leader: gpumemtop --policy slab":                                 with(func(s *stats.Snapshot) { s.Policy, s.Ghosts.Rows[1].Policy = "none", "none" }),
		"✗ not from none": ghostTest(120, 36, ghostSnapshot(), &adopted, errors.New("not from none")),
	} {
		press(d, "y", "y")
		if got := screen(d); len(adopted) != 0 || !strings.Contains(got, want) {
			t.Errorf("adopted %q, no %q in\n%s", adopted, want, got)
		}
	}
}

// TestAdoptedInTheLastMoment checks the message if the program ends before it answers, and that nothing stays pending.
func TestAdoptedInTheLastMoment(t *testing.T) {
	var adopted []string
	s := ghostSnapshot()
	d := ghostTest(120, 36, s, &adopted, nil)
	press(d, "y", "y")
	s.Change.Wanted, s.Change.Request = "slab", stats.Request{Sequence: 1, AskedAt: s.Time}
	d.Update(frameMsg{now: testStart, snap: s, app: App{State: stats.Exited}, hasApp: true})
	got := screen(d)
	if len(adopted) != 1 || !strings.Contains(got, "✗ policy slab max_cached_bytes=64M: the program ended before it answered") || strings.Contains(got, "pending") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
}

// TestGhostsAreOfAllProcesses checks that ghosts and curve cover all processes while the screen shows one.
func TestGhostsAreOfAllProcesses(t *testing.T) {
	s := crowdSnapshot(3)
	s.Ghosts = ghostSnapshot().Ghosts
	o := (&calls{}).options()
	o.Curve = sampleCurve
	d := newTest(o, 120, 36, s)
	press(d, "w")
	shows(t, d, "ghosts 5 ─")
	press(d, "p")
	shows(t, d, "ghosts 5 of all processes ─")
	press(d, "c")
	shows(t, d, "hit rate by limit of cached bytes of all processes ─")
}

// TestGhostHint checks that the verdict points to the ghosts if one is clearly better.
func TestGhostHint(t *testing.T) {
	var adopted []string
	const hint = "! slab max_cached_bytes=64M would do better: 38.0 % less time in the driver "
	d := ghostTest(120, 36, ghostSnapshot(), &adopted, nil)
	shows(t, d, hint, "w what if", "! list  y: policy slab")
	press(d, "!", "enter")
	if d.zoom != paneGhosts {
		t.Error("enter does not lead to the ghosts")
	}
	s := ghostSnapshot()
	s.Ghosts.Rows[1].DriverNS = 3.2e9
	hides(t, ghostTest(120, 36, s, &adopted, nil), "would do better")
	s = ghostSnapshot() // what is hardly any of the run is not worth a word
	s.Ghosts.Rows[0].DriverNS, s.Ghosts.Rows[1].DriverNS = 31e6, 50e6
	hides(t, ghostTest(120, 36, s, &adopted, nil), "would do better")
}

// TestGhostsInASCII checks that changes keep their sign.
func TestGhostsInASCII(t *testing.T) {
	o := (&calls{}).options()
	o.Charts = ASCII
	d := newTest(o, 80, 24, ghostSnapshot())
	press(d, "w")
	shows(t, d, "-38 %")
	hides(t, d, "?38")
}

func TestChangeText(t *testing.T) {
	for part, want := range map[float64]string{0: "±0 %", -0.001: "±0 %", -0.384: "−38 %", 0.02: "+2 %", 17: "×18", -0.997: "−99.7 %", -0.99999: "−99.9 %", -1: "−100 %"} {
		if got := relativeChangeText(part); got != want {
			t.Errorf("%g: %q, want %q", part, got, want)
		}
	}
}

// autoSnapshot is the sample with ghosts under a session that switches policies by itself.
func autoSnapshot(a *stats.Auto) *stats.Snapshot {
	s := ghostSnapshot()
	s.Auto = a
	return s
}

// TestAutoIsSeen checks the header at all sizes with panes, and what auto did in the message line and under the ghosts.
func TestAutoIsSeen(t *testing.T) {
	const said = "auto: switches to slab 3.2s after the first call: with futhark it takes longer"
	for _, size := range [][2]int{{140, 45}, {100, 30}, {80, 24}, {60, 20}, {60, 12}} {
		var adopted []string
		d := ghostTest(size[0], size[1], autoSnapshot(&stats.Auto{Steers: true}), &adopted, nil)
		head, _, _ := strings.Cut(screen(d), "\n")
		if !strings.Contains(head, "auto: futhark") || strings.Contains(head, "policy") || !strings.Contains(head, "RUNNING") {
			t.Errorf("at %v the header is %q", size, head)
		}
	}
	var adopted []string
	d := ghostTest(100, 30, autoSnapshot(&stats.Auto{Steers: true}), &adopted, nil)
	hides(t, d, "auto: slab")
	press(d, "w")
	shows(t, d, "auto: nothing is decided yet", ", and ends auto")
	d.Update(frameMsg{now: testStart, snap: autoSnapshot(&stats.Auto{Steers: true, Said: said, Number: 1})})
	if got := screen(d); strings.Count(got, said) != 2 {
		t.Errorf("not in the line of messages and under the list:\n%s", got)
	}
	d.Update(frameMsg{now: testStart.Add(2 * noteTime), snap: autoSnapshot(&stats.Auto{Steers: true, Said: said, Number: 1})})
	if got := screen(d); strings.Count(got, said) != 1 {
		t.Errorf("said again, or no more under the list:\n%s", got)
	}
	d.Update(frameMsg{now: testStart, snap: autoSnapshot(&stats.Auto{})})
	shows(t, d, "auto: off, because the policy was changed by hand")
	hides(t, d, "auto: futhark")
}

// TestGhostsAfterAChange checks the note that the present policy is simulated from the start, and that common settings
// appear once.
func TestGhostsAfterAChange(t *testing.T) {
	s := ghostSnapshot()
	for i := range s.Ghosts.Rows {
		s.Ghosts.Rows[i].Name += " max_age=30"
	}
	var adopted []string
	d := ghostTest(80, 40, s, &adopted, nil)
	press(d, "w")
	shows(t, d, "● now: futhark  ", "all with max_age=30")
	hides(t, d, "simulated from the start")
	s = ghostSnapshot()
	s.Change.Done, s.Change.Former = 1, []string{"pow2"}
	for _, size := range [][2]int{{140, 45}, {100, 30}, {80, 24}, {60, 20}} {
		d = ghostTest(size[0], size[1], s, &adopted, nil)
		press(d, "w")
		got := strings.Join(strings.Fields(screen(d)), " ")
		for _, want := range []string{"the run itself, with 1 change,", "● now: futhark", "slab max_cached_bytes=64M 99.9"} {
			if !strings.Contains(strings.ReplaceAll(got, "│ │ ", ""), want) {
				t.Errorf("at %v no %q in\n%s", size, want, screen(d))
			}
		}
	}
}
