package ui

import (
	"math/rand/v2"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// places returns where names begin in the second line of the screen. What is in use has another name once all processes have ended.
func places(d *dashboard, names []string) (at []int) {
	line := []rune(strings.Replace(strings.Split(screen(d), "\n")[1], " at end ", " in use ", 1))
	for _, name := range names {
		x := -1
		for i := range line {
			if i > 0 && line[i-1] == ' ' && strings.HasPrefix(string(line[i:]), name+" ") {
				x = i
				break
			}
		}
		at = append(at, x)
	}
	return at
}

var fieldNames = []string{"in use", "held", "cached", "reserved", "peak", "hit", "run", "waste", "frag", "alloc/s", "idle", "peak at"}

// TestFieldsStay: whatever happens in a run, no number of the second line moves, comes or goes.
func TestFieldsStay(t *testing.T) {
	racetest.Slow(t)
	random := rand.New(rand.NewPCG(1, 2))
	size := func() uint64 { return random.Uint64N(1<<20) >> random.IntN(20) << (10 * random.IntN(3)) }
	for _, w := range []int{60, 80, 100, 120, 160, 200} {
		d := newTest((&calls{}).options(), w, 36, &stats.Snapshot{})
		want := places(d, fieldNames)
		for range 100 {
			s := sampleSnapshot()
			c := &s.Totals
			c.InUse, c.Held, c.Cached, c.Cooling, c.Idle, c.PeakInUse, c.LargestCached = size(), size(), size(), size(), size(), size(), size()
			c.Hits, c.Misses, c.Requested, c.SlabBytes = size(), size(), size(), size()
			s.Window.Creates, s.Policy = size(), []string{"futhark", "slab", "none", "pinned"}[random.IntN(4)]
			if random.IntN(4) == 0 {
				s.Lost = 3
			}
			if random.IntN(4) == 0 {
				s.Processes[0].State = stats.Exited
			}
			for i := range uint64(20) {
				s.Minute = append(s.Minute, stats.Sample{Time: s.Time - 20e8 + i*1e8, Hits: size(), Misses: size()})
			}
			d.Update(frameMsg{now: testStart, snap: s})
			for i, x := range places(d, fieldNames) {
				if x != want[i] {
					t.Fatalf("%d columns: %s is at %d, was at %d:\n%s", w, fieldNames[i], x, want[i], screen(d))
				}
			}
		}
	}
}

// TestFragmentationIsShown: it is on the screen from 80 columns on, and allocations per second never in its place.
func TestFragmentationIsShown(t *testing.T) {
	for w := 60; w <= 200; w++ {
		line := strings.Split(screen(newTest((&calls{}).options(), w, 24, sampleSnapshot())), "\n")[1]
		if frag := strings.Contains(line, " frag "); w >= 80 && !frag || !frag && strings.Contains(line, "alloc/s") {
			t.Errorf("%d columns: %s", w, line)
		}
	}
}

// TestUnknownDevice: where the device's memory is not known no bar is drawn, which would look like a full one.
func TestUnknownDevice(t *testing.T) {
	s := attachedSnapshot(1)
	s.Device.Global = 0
	d := attachedTest(120, 36, s, App{Status: -1})
	if line := strings.Split(screen(d), "\n")[2]; strings.Contains(line, "█") || !strings.Contains(line, "the memory of the device is not known") {
		t.Errorf("the gauge is %q", line)
	}
}

// TestSeveralDevices: what each of them holds is unknown, so it is compared with none of them.
func TestSeveralDevices(t *testing.T) {
	s := sampleSnapshot()
	s.Processes = append(s.Processes[:0:0], s.Processes...)
	s.Processes[0].Devices = 2
	if line := strings.Split(screen(newTest((&calls{}).options(), 120, 36, s)), "\n")[2]; strings.Contains(line, "█") || !strings.Contains(line, "on 2 devices together") {
		t.Errorf("the gauge is %q", line)
	}
	if text, _ := appendDeviceText(s, 1<<20, "", true); text != "; which of 2 devices would have it is not known" {
		t.Error(text)
	}
}

// TestAlarmsMoveNothing: what is left of them in the first line stays where it is, and so it does for a measurement.
func TestAlarmsMoveNothing(t *testing.T) {
	calm, loud, measured, large := sampleSnapshot(), mistaken(sampleSnapshot()), sampleSnapshot(), sampleSnapshot()
	loud.Lost, measured.Measured, large.LeftOut = 7, measure.Results{{Running: true}}, "3 creates"
	var at [4]int
	for i, s := range []*stats.Snapshot{calm, loud, measured, large} {
		line := strings.Split(screen(newTest((&calls{}).options(), 120, 36, s)), "\n")[0]
		at[i] = textWidth(line[:strings.Index(line, "policy")])
		if say := [...]string{"gpumemtop", "LOST 7 events", " measuring: ", "LEFT OUT 3 creates"}[i]; !strings.Contains(line, say) {
			t.Errorf("no %q in %s", say, line)
		}
	}
	if at[0] != at[1] || at[0] != at[2] || at[0] != at[3] {
		t.Errorf("the policy moves: its columns are %d", at)
	}
}

// TestMeasuringIsProposedOnce: E ends a measurement that runs, and a program that has ended cannot be measured.
func TestMeasuringIsProposedOnce(t *testing.T) {
	proposes := func(change func(*stats.Snapshot)) bool {
		s := sampleSnapshot()
		s.Totals.Saved = stats.SavedCalls{}
		change(s)
		o := (&calls{}).options()
		o.Measure = func() (string, error) { return "", nil }
		return strings.Contains(screen(newTest(o, 160, 45, s)), "measures what that gains")
	}
	if !proposes(func(*stats.Snapshot) {}) {
		t.Error("it is not proposed while the program runs")
	}
	if proposes(func(s *stats.Snapshot) { s.Measured = measure.Results{{Running: true}} }) {
		t.Error("it is proposed while it runs")
	}
	if proposes(func(s *stats.Snapshot) { s.Processes[0].State = stats.Exited }) {
		t.Error("it is proposed after the end")
	}
}
