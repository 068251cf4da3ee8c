package ui

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// crowdSnapshot is the sample as a run of n processes, each with a tag of its own and one that all have.
func crowdSnapshot(n int) *stats.Snapshot {
	s := sampleSnapshot()
	s.Program, s.Arguments = "mpirun", []string{"-n", itoa(n), "./blur"}
	s.Processes = nil
	for i := range n {
		p := stats.Process{
			Number: uint32(i + 1), PID: 4711 + i, Program: "/opt/blur", Arguments: []string{"--rank", itoa(i)}, Status: -1,
			Started: s.Started + uint64(i)*1e9,
			Totals: stats.Totals{
				Hits: uint64(90 + i), Misses: 10, Creates: uint64(100 + i), InUse: uint64(i+1) * mib, Cached: uint64(i) * kib,
				PeakInUse: uint64(i+2) * mib, LiveBuffers: uint64(i),
			},
			Window: stats.Rates{NS: 1e9, Creates: uint64(i)}, History: s.History[i : i+150],
			Tags: []stats.Tag{s.Tags[0], {ID: uint32(1000 + i), Name: fmt.Sprintf("rank.c:%d own", i), InUse: uint64(i+1) * mib}},
		}
		switch i % 4 {
		case 1:
			p.State, p.Status, p.Ended = stats.Exited, 0, s.Time
		case 2:
			p.State, p.Status, p.Ended = stats.Exited, 3, s.Time
		case 3:
			p.State, p.Status, p.Ended = stats.Signaled, 9, s.Time
		}
		s.Processes = append(s.Processes, p)
	}
	return s
}

func TestGoldenProcesses(t *testing.T) {
	for _, size := range [][2]int{{120, 36}, {80, 24}, {60, 20}, {40, 10}} {
		for name, keys := range map[string][]string{"all": nil, "one": {"p", "p"}, "list": {"P", "j", "j", "j"}} {
			t.Run(name+itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
				d := newTest((&calls{}).options(), size[0], size[1], crowdSnapshot(24))
				press(d, keys...)
				checkFrame(t, frameText(d), size[0], size[1])
				golden.RequireEqual(t, screen(d))
			})
		}
	}
}

func TestProcessKeyGoesThroughAll(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, crowdSnapshot(3))
	all := screen(d)
	for i := range 3 {
		press(d, "p")
		got, holds := screen(d), "in use"
		if i > 0 { // it has ended
			holds = "at end"
		}
		for _, want := range []string{
			fmt.Sprintf("process %d/3", i+1), fmt.Sprintf("blur --rank %d", i), fmt.Sprintf("pid %d", 4711+i),
			fmt.Sprintf(" %s %s ", holds, bytesText(uint64(i+1)*mib)), fmt.Sprintf("rank.c:%d own", i),
		} {
			if !strings.Contains(got, want) {
				t.Errorf("process %d: no %q in\n%s", i+1, want, got)
			}
		}
		if other := fmt.Sprintf("rank.c:%d own", (i+1)%3); strings.Contains(got, other) {
			t.Errorf("process %d shows the tag %q of another", i+1, other)
		}
		if want := []string{"blur.c:88 make_tmp", fmt.Sprintf("rank.c:%d own", i)}; !slices.Equal(names(d), want) {
			t.Errorf("process %d has tags %q, want %q", i+1, names(d), want)
		}
	}
	press(d, "p")
	if got := screen(d); got != all {
		t.Errorf("after the last process the screen is\n%s\nand was\n%s", got, all)
	}
	press(d, "p", "p", "esc")
	if got := screen(d); got != all {
		t.Errorf("after esc the screen is\n%s\nand was\n%s", got, all)
	}
}

func TestProcessList(t *testing.T) {
	d := newTest((&calls{}).options(), 80, 24, crowdSnapshot(300))
	press(d, "P")
	shows(t, d, "processes 300", "all processes")
	press(d, "G", "k", "enter")
	if got := screen(d); !strings.Contains(got, "process 299/300") || d.zoom != noPane {
		t.Errorf("the last but one was chosen:\n%s", got)
	}
	press(d, "P")
	if d.processes.at != 299 {
		t.Errorf("the cursor is in row %d of the list, want 299: that is on the screen", d.processes.at)
	}
	press(d, "g", "enter")
	if d.processes.number != 0 || strings.Contains(screen(d), "process 299/300") {
		t.Errorf("the first row is all processes, the screen shows\n%s", screen(d))
	}
}

// The chosen process is followed from snapshot to snapshot, whatever place it has, and all are shown when it is not
// there.
func TestListOfProcessesStaysOnTab(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, crowdSnapshot(3))
	press(d, "P")
	list := screen(d)
	for _, key := range []string{"tab", "shift+tab"} {
		if press(d, key); screen(d) != list {
			t.Errorf("%s: the list gave way to\n%s", key, screen(d))
		}
	}
	press(d, "esc", "tab")
	if screen(d) == list {
		t.Error("the list stays for good")
	}
}

func TestProcessIsFollowed(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, crowdSnapshot(3))
	press(d, "p", "p")
	next := crowdSnapshot(5)
	slices.Reverse(next.Processes)
	d.Update(frameMsg{now: testStart, snap: next})
	shows(t, d, "process 4/5", "--rank 1")
	press(d, "f")
	d.Update(frameMsg{now: testStart, snap: crowdSnapshot(3)})
	shows(t, d, "process 4/5", "FROZEN")
	press(d, "f")
	gone := crowdSnapshot(5)
	gone.Processes = slices.Delete(gone.Processes, 1, 2)
	d.Update(frameMsg{now: testStart, snap: gone})
	shows(t, d, "mpirun")
	hides(t, d, "/4")
}

func TestProcessKeyWithOneProcess(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "p")
	shows(t, d, "no other process has", "blur 4096")
}

// An ended process among running ones: the header shows how it ended and how long it ran.
func TestEndedProcessOnTheScreen(t *testing.T) {
	o := (&calls{}).options()
	d := newTest(o, 120, 36, crowdSnapshot(4))
	d.Update(frameMsg{now: testStart, app: App{PID: 4700}, hasApp: true})
	press(d, "p", "p", "p", "p")
	s := crowdSnapshot(4)
	s.Processes[3].Ended = s.Processes[3].Started + 7e9
	d.Update(frameMsg{now: testStart, snap: s, app: App{PID: 4700}, hasApp: true})
	if got := screen(d); !strings.Contains(got, "✗ "+signalName(9)) || !strings.Contains(got, units.FormatClock(7e9)) {
		t.Errorf("process 4 was killed after 7 s:\n%s", got)
	}
	press(d, "esc")
	shows(t, d, "RUNNING")
}

func TestProcessViewLeavesTheSnapshot(t *testing.T) {
	s := crowdSnapshot(4)
	d := newTest((&calls{}).options(), 120, 36, s)
	for _, k := range append([]string{"p", "p"}, allKeys...) {
		press(d, k)
		d.leaving = false
		_ = frameText(d)
	}
	if !reflect.DeepEqual(s, crowdSnapshot(4)) {
		t.Error("the dashboard changed a published snapshot")
	}
}
