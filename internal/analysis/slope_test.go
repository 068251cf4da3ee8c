package analysis

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// fifths keeps every fifth of 100 buffers of 1 MiB; keep says which of these stay.
func fifths(keep func(i int) bool, end func(s *tape, kept []uint64)) *tape {
	s := newTape()
	s.device(1 << 30)
	var kept []uint64
	for i := range 100 {
		o := s.driver(1, mib)
		s.use(o)
		if i%5 == 0 && keep(i) {
			kept = append(kept, o)
		} else {
			s.release(o, wire.OutcomeDriver)
		}
	}
	end(s, kept)
	return s
}

// threes has one buffer at a time, then three, all from one call site: what is in use at a create depends on which of them it makes.
func threes() *tape {
	s := newTape()
	for i := range 80 {
		var made []uint64
		for range 1 + 2*(i/40) {
			made = append(made, s.driver(1, mib))
			s.use(made[0])
		}
		for _, o := range made {
			s.release(o, wire.OutcomeDriver)
		}
	}
	s.exit()
	return s
}

// rounds makes three times many buffers of sizes in turn, and releases all: within an iteration, which does not begin there.
func rounds() *tape {
	s := newTape()
	for range 3 {
		var made []uint64
		for i := range 303 {
			made = append(made, s.driver(1, mib+uint64(i%7)*4096))
			s.use(made[i])
		}
		for _, o := range made {
			s.release(o, wire.OutcomeDriver)
		}
	}
	s.exit()
	return s
}

// TestFullByWhatAnIterationLeaves: what an iteration leaves fills the device, not what the first one takes besides.
func TestFullByWhatAnIterationLeaves(t *testing.T) {
	s := newTape()
	s.device(128 * mib)
	scratch := uint64(0)
	for range 40 {
		o := s.driver(1, mib)
		if scratch > 0 {
			s.release(scratch, wire.OutcomeDriver)
		}
		scratch = o
		s.use(s.driver(2, mib))
	}
	const want = "each of 40 iterations leaves 1.00 MiB more in use; after 87 more iterations the device is full" // 128 - 41 MiB
	if a := s.analyse(t); len(a.Diagnoses) == 0 || !strings.Contains(a.Diagnoses[0].Text, want) {
		t.Errorf("no %q in %+v", want, a.Diagnoses)
	}
}

// TestListThatKeepsEveryFifthGrows: a list that keeps every fifth buffer grows, though most iterations leave nothing.
func TestListThatKeepsEveryFifthGrows(t *testing.T) {
	all := func(int) bool { return true }
	end := func(s *tape, _ []uint64) { s.exit() }
	release := func(s *tape, kept []uint64) {
		for _, o := range kept {
			s.release(o, wire.OutcomeDriver)
		}
		s.exit()
	}
	for name, test := range map[string]struct {
		s    *tape
		want string // empty: no finding of growth
	}{
		"leaks":              {fifths(all, end), "problem: memory grows over the iterations: 100 iterations leave 20.0 MiB more in use in 20 more buffers, about 206.9 KiB an iteration; after 49"},
		"released at last":   {fifths(all, release), "advice: iterations keep memory: 100 iterations leave 20.0 MiB more in use in 20 more buffers, about 206.9 KiB an iteration, which is released once"},
		"fills, then stays":  {fifths(func(i int) bool { return i < 50 }, end), ""},
		"keeps none of them": {fifths(func(int) bool { return false }, end), ""},
		"then three at once": {threes(), ""},
		"releases in rounds": {rounds(), ""},
	} {
		found := ""
		a := test.s.analyse(t)
		for _, d := range a.Diagnoses {
			if strings.Contains(d.Title, "memory grows") || strings.Contains(d.Title, "keep memory") {
				found = string(d.Severity) + ": " + d.Title + ": " + d.Text
			}
		}
		if test.want == "" && found != "" || !strings.HasPrefix(found, test.want) {
			t.Errorf("%s: found %q, want %q; phases %+v", name, found, test.want, a.Phases)
		}
	}
}

// TestUnevenGrowth: "each iteration leaves" stands only where each leaves the same, and what comes and goes is no growth.
func TestUnevenGrowth(t *testing.T) {
	for name, test := range map[string]struct {
		phase Phase
		slope float64
		each  uint64
		even  bool
	}{
		"the same":           {Phase{Iterations: 12, Growth: 100, Mean: 102, AllGrew: true}, 100, 100, true},
		"not all":            {Phase{Iterations: 40, Growth: 100, Mean: 97}, 97, 97, false},
		"one or two":         {Phase{Iterations: 12, Growth: 100, Mean: 133}, 100, 133, false},
		"comes and goes":     {Phase{Iterations: 12, Growth: 100, Mean: 0}, 0, 0, false},
		"falls in the end":   {Phase{Iterations: 12, Growth: 100, Mean: -5}, 0, 0, false},
		"shrinks":            {Phase{Iterations: 12, Growth: -100, Mean: -100}, 0, 0, false},
		"rises straight":     {Phase{Iterations: 100, Growth: 0, Mean: 20, Straight: true}, 20, 20, false},
		"too few iterations": {Phase{Iterations: 3, Growth: 100, Mean: 100, AllGrew: true}, 0, 100, true},
	} {
		if p := &test.phase; p.iterationSlope() != test.slope || p.leftPerIteration() != test.each || p.GrowsEvenly() != test.even {
			t.Errorf("%s: slope %g, each %d, even %v", name, p.iterationSlope(), p.leftPerIteration(), p.GrowsEvenly())
		}
	}
}

// TestKeptToTheEnd: what a process has in use when a signal ends it was not released.
func TestKeptToTheEnd(t *testing.T) {
	for _, test := range []struct {
		end  func(s *tape, kept []uint64)
		want string
	}{
		{func(s *tape, kept []uint64) {
			for _, o := range kept {
				s.release(o, wire.OutcomeDriver)
			}
			s.exit()
		}, "which is released once nothing is used"},
		{func(s *tape, _ []uint64) { s.put(wire.ExitFields{Status: 139}.Event(), "") }, "which is in use at the end"},
	} {
		s, kept := newTape(), []uint64(nil)
		s.device(1 << 30)
		for range 64 {
			kept = append(kept, s.driver(1, mib))
			s.use(kept[len(kept)-1])
		}
		test.end(s, kept)
		found := ""
		for _, d := range s.analyse(t).Diagnoses {
			if d.Title == "every iteration keeps memory" {
				found = d.Text
			}
		}
		if !strings.Contains(found, test.want) {
			t.Errorf("%q, want %q", found, test.want)
		}
	}
}

// TestNoIterationLeft: a device with less room than an iteration takes is not said to hold 0 more.
func TestNoIterationLeft(t *testing.T) {
	for room, want := range map[float64]bool{0.75: false, 1: true} {
		r := Rise{Iterations: 16, Room: room}
		if text := r.perIterationText("buffer", "4 MiB", ""); strings.Contains(text, "the device is full") != want {
			t.Errorf("room for %g: %s", room, text)
		}
	}
}
