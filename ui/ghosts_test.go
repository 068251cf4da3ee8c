package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// ghostSnapshot is the sample under futhark with ghosts: slab leads, one has stopped, one came late.
func ghostSnapshot() *model.Snapshot {
	s := sampleSnapshot()
	s.Policy = "futhark"
	s.Ghosts = &model.Ghosts{
		Rows: []model.Ghost{
			{Name: "slab max_cached_bytes=64M", Policy: "slab", Hits: 9990, Requests: 10_000, RecentHits: 100, RecentRequests: 100, PeakReserved: 96 * mib, Reserved: 64 * mib, DriverNS: 31e6},
			{Name: "futhark", Policy: "futhark", Present: true, Hits: 9000, Requests: 10_000, RecentHits: 80, RecentRequests: 100, PeakReserved: 80 * mib, Reserved: 64 * mib, DriverNS: 50e6},
			{Name: "pow2", Policy: "pow2", Hits: 5000, Requests: 10_000, RecentHits: 10, RecentRequests: 100, PeakReserved: 120 * mib, Reserved: 99 * mib, DriverNS: 900e6},
			{Name: "buddy", Policy: "buddy", Hits: 400, Requests: 1000, PeakReserved: 64 * mib, DriverNS: 2e6, Stopped: "stopped: could not keep up at 2.1 million events/s"},
			{Name: "mantissa mantissa_bits=3", Policy: "mantissa", Hits: 10, Requests: 20, PeakReserved: mib, Reserved: mib, DriverNS: 1e5, Since: s.Started + 3e9},
		},
		Events: 20_000, CreateA: 2000, CreateB: 0.01, ReleaseA: 900, Busy: 0.124, Bytes: 3 * mib, Waiting: 1024,
	}
	return s
}

// ghostTest is a dashboard that notes what is adopted.
func ghostTest(w, h int, s *model.Snapshot, adopted *[]string, refusal error) *dashboard {
	var asked []string
	d := policyTest(w, h, s, &asked, nil)
	d.o.Adopt = func(name string) error {
		if refusal == nil {
			*adopted = append(*adopted, name)
		}
		return refusal
	}
	return d
}

func TestGhostsGolden(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {80, 24}, {60, 14}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			var adopted []string
			d := ghostTest(size[0], size[1], ghostSnapshot(), &adopted, nil)
			press(d, "w")
			checkFrame(t, d.View(), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

func TestLeaderIsAdopted(t *testing.T) {
	var adopted []string
	d := ghostTest(120, 36, ghostSnapshot(), &adopted, nil)
	press(d, "y")
	if got := screen(d); len(adopted) != 0 || !strings.Contains(got, "y again goes over to slab max_cached_bytes=64M: −38 % time in the driver") || !strings.Contains(got, "IF YOU HAD USED") {
		t.Errorf("adopted %q before it said so:\n%s", adopted, got)
	}
	press(d, "y")
	if got := screen(d); !slices.Equal(adopted, []string{"slab max_cached_bytes=64M"}) || !strings.Contains(got, "going over to slab") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
	press(d, "y") // it is on its way
	if got := screen(d); len(adopted) != 1 || !strings.Contains(got, "policy slab is on its way") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
	s := ghostSnapshot()
	s.Policy, s.Change.Done = "slab", 1
	s.Ghosts.Rows[0].Present, s.Ghosts.Rows[1].Present = true, false
	d.Update(frameMsg{now: testStart, snap: s})
	if got := screen(d); !strings.Contains(got, "✓ policy futhark → slab max_cached_bytes=64M acknowledged") {
		t.Errorf("no answer:\n%s", got)
	}
	press(d, "y")
	if got := screen(d); len(adopted) != 1 || !strings.Contains(got, "slab max_cached_bytes=64M leads, and is in force") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
}

// TestLeaderOfTheSamePolicy: the answer counts where the policy stays and only its limits are others, be it between two
// frames.
func TestLeaderOfTheSamePolicy(t *testing.T) {
	var adopted []string
	s := ghostSnapshot()
	s.Policy, s.Ghosts.Rows[1].Name, s.Ghosts.Rows[1].Policy = "slab", "slab", "slab"
	d := ghostTest(120, 36, s, &adopted, nil)
	press(d, "y", "y")
	late := *s
	late.Time += 2 * answerTime
	late.Change.Done++
	d.Update(frameMsg{now: testStart, snap: &late})
	if got := screen(d); len(adopted) != 1 || !strings.Contains(got, "✓ policy slab → slab max_cached_bytes=64M acknowledged") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
}

func TestLeaderIsNotAdopted(t *testing.T) {
	var adopted []string
	with := func(change func(*model.Snapshot)) *dashboard {
		s := ghostSnapshot()
		change(s)
		return ghostTest(120, 36, s, &adopted, nil)
	}
	readOnly := with(func(*model.Snapshot) {})
	readOnly.o.ReadOnly = true
	ended := with(func(*model.Snapshot) {})
	ended.Update(frameMsg{now: testStart, app: App{State: model.Exited}, hasApp: true})
	attached := attachedTest(120, 36, ghostSnapshot(), App{Status: -1})
	for want, d := range map[string]*dashboard{
		"no policies are simulated beside this run": with(func(s *model.Snapshot) { s.Ghosts = nil }),
		"no ghost leads: all stopped: too fast": with(func(s *model.Snapshot) {
			s.Ghosts.Stopped = "stopped: too fast"
			for i := range s.Ghosts.Rows {
				s.Ghosts.Rows[i].Stopped = s.Ghosts.Stopped
			}
		}),
		"there was no request yet": with(func(s *model.Snapshot) { s.Ghosts.Rows[0].Requests = 0 }),
		"attach only watches: gpumemtop --policy slab --set max_cached_bytes=64M ./app goes": attached,
		"cannot be changed here": readOnly,
		"the program has ended: gpumemtop --policy slab --set max_cached_bytes=64M ./app goes": ended,
		"started without a pool: gpumemtop --policy slab":                                      with(func(s *model.Snapshot) { s.Policy, s.Ghosts.Rows[1].Policy = "none", "none" }),
		"✗ not from none": ghostTest(120, 36, ghostSnapshot(), &adopted, errors.New("not from none")),
	} {
		press(d, "y", "y")
		if got := screen(d); len(adopted) != 0 || !strings.Contains(got, want) {
			t.Errorf("adopted %q, no %q in\n%s", adopted, want, got)
		}
	}
}

// TestAdoptedInTheLastMoment: of a program that ends before it answers that is said, and nothing is on its way any more.
func TestAdoptedInTheLastMoment(t *testing.T) {
	var adopted []string
	s := ghostSnapshot()
	d := ghostTest(120, 36, s, &adopted, nil)
	press(d, "y", "y")
	s.Change.Wanted = "slab"
	d.Update(frameMsg{now: testStart, snap: s, app: App{State: model.Exited}, hasApp: true})
	got := screen(d)
	if len(adopted) != 1 || !strings.Contains(got, "✗ policy slab max_cached_bytes=64M: the program ended before it answered") || strings.Contains(got, "on its way") {
		t.Errorf("adopted %q:\n%s", adopted, got)
	}
}

// TestGhostsAreOfAllProcesses, also where the rest of the screen is of one; so is the curve.
func TestGhostsAreOfAllProcesses(t *testing.T) {
	s := crowdSnapshot(3)
	s.Ghosts = ghostSnapshot().Ghosts
	o := (&calls{}).options()
	o.Curve = sampleCurve
	d := newTest(o, 120, 36, s)
	press(d, "w")
	if got := screen(d); !strings.Contains(got, "ghosts 5 ─") {
		t.Errorf("of all, and says so without need:\n%s", got)
	}
	press(d, "p")
	if got := screen(d); !strings.Contains(got, "ghosts 5 of all processes ─") {
		t.Errorf("not said:\n%s", got)
	}
	press(d, "c")
	if got := screen(d); !strings.Contains(got, "hit rate by limit of cached bytes of all processes ─") {
		t.Errorf("not said of the curve:\n%s", got)
	}
}

// TestGhostHint: whoever does not know of ghosts hears of them when they have something to say.
func TestGhostHint(t *testing.T) {
	var adopted []string
	const hint = "! if you had used slab max_cached_bytes=64M: −38 % time in the driver: w shows it"
	d := ghostTest(120, 36, ghostSnapshot(), &adopted, nil)
	if got := screen(d); !strings.Contains(got, hint) || !strings.Contains(got, "w what if") {
		t.Errorf("no %q in\n%s", hint, got)
	}
	press(d, "w")
	if got := screen(d); strings.Contains(got, "w shows it") {
		t.Errorf("it is there:\n%s", got)
	}
	s := ghostSnapshot()
	s.Ghosts.Rows[1].DriverNS = 32e6
	if got := screen(ghostTest(120, 36, s, &adopted, nil)); strings.Contains(got, "w shows it") {
		t.Errorf("3 %% are not worth a word:\n%s", got)
	}
}

// TestGhostsInASCII: changes have their sign.
func TestGhostsInASCII(t *testing.T) {
	o := (&calls{}).options()
	o.ASCII = true
	d := newTest(o, 80, 24, ghostSnapshot())
	press(d, "w")
	if got := screen(d); !strings.Contains(got, "-38 %") || strings.Contains(got, "?38") {
		t.Errorf("no sign:\n%s", got)
	}
}

func TestChangeText(t *testing.T) {
	for part, want := range map[float64]string{0: "±0 %", -0.001: "±0 %", -0.384: "−38 %", 0.02: "+2 %", 17: "×18", -0.997: "−99.7 %", -0.99999: "−99.9 %", -1: "−100 %"} {
		if got := changeText(part); got != want {
			t.Errorf("%g: %q, want %q", part, got, want)
		}
	}
}

// autoSnapshot is the sample with ghosts under a session that goes over by itself.
func autoSnapshot(a *model.Auto) *model.Snapshot {
	s := ghostSnapshot()
	s.Auto = a
	return s
}

// TestAutoIsSeen: in the header wherever there are panes, with what it did in the line of messages and under the ghosts.
func TestAutoIsSeen(t *testing.T) {
	const said = "auto: slab after 3.2s: 15 % less time in the driver than futhark"
	for _, size := range [][2]int{{140, 45}, {100, 30}, {80, 24}, {60, 20}, {60, 12}} {
		var adopted []string
		d := ghostTest(size[0], size[1], autoSnapshot(&model.Auto{Steers: true}), &adopted, nil)
		head, _, _ := strings.Cut(screen(d), "\n")
		if !strings.Contains(head, "auto: futhark") || strings.Contains(head, "policy") || !strings.Contains(head, "RUNNING") {
			t.Errorf("at %v the header is %q", size, head)
		}
	}
	var adopted []string
	d := ghostTest(100, 30, autoSnapshot(&model.Auto{Steers: true}), &adopted, nil)
	if got := screen(d); strings.Contains(got, "auto: slab") {
		t.Errorf("it has done nothing yet:\n%s", got)
	}
	press(d, "w")
	if got := screen(d); !strings.Contains(got, "auto: nothing else has been clearly better for long enough") || !strings.Contains(got, ", and ends auto") {
		t.Errorf("not said what auto does:\n%s", got)
	}
	d.Update(frameMsg{now: testStart, snap: autoSnapshot(&model.Auto{Steers: true, Said: said, Number: 1})})
	if got := screen(d); strings.Count(got, said) != 2 {
		t.Errorf("not in the line of messages and under the list:\n%s", got)
	}
	d.Update(frameMsg{now: testStart.Add(2 * noteTime), snap: autoSnapshot(&model.Auto{Steers: true, Said: said, Number: 1})})
	if got := screen(d); strings.Count(got, said) != 1 {
		t.Errorf("said again, or no more under the list:\n%s", got)
	}
	d.Update(frameMsg{now: testStart, snap: autoSnapshot(&model.Auto{})})
	if got := screen(d); strings.Contains(got, "auto: futhark") || !strings.Contains(got, "auto: off, since the policy was changed by hand") {
		t.Errorf("somebody has changed the policy:\n%s", got)
	}
}

// TestGhostsAfterAChange: what is in force is shown as from the start, which the run was not under; settings that all have
// are told once.
func TestGhostsAfterAChange(t *testing.T) {
	s := ghostSnapshot()
	for i := range s.Ghosts.Rows {
		s.Ghosts.Rows[i].Name += " max_age=30"
	}
	var adopted []string
	d := ghostTest(80, 40, s, &adopted, nil)
	press(d, "w")
	if got := screen(d); strings.Contains(got, "simulated from the start") || !strings.Contains(got, "● now: futhark  ") || !strings.Contains(got, "all with max_age=30") {
		t.Errorf("nothing has changed yet, or names are long:\n%s", got)
	}
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
