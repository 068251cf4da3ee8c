package analysis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// course is a program of iterations of 10 ms, each with a temporary buffer, that the machine is asked about four times a
// second. Each function gets how much of the run is over, from 0 to 1.
type course struct {
	seconds  float64
	source   wire.Machine
	resident func(done float64, iteration int) float64 // MiB
	buffers  func(done float64) float64                // MiB that it keeps, made in steps of 8 MiB; nil: 64
	once     bool                                      // it creates nothing in its iterations
	stalls   bool                                      // its first iteration takes nearly all of the run
}

func (c *course) tape() *tape {
	s := newTape()
	s.put(wire.Event{Kind: wire.KindProcess, Object: 4711}, "app")
	asked := func(done float64, iteration int) {
		s.put(wire.MachineFields{Time: s.now, Source: c.source, Resident: uint64(c.resident(done, iteration) * mib)}.Event(), "")
	}
	asked(0, 0)
	kept := 0.0
	iterations := int(c.seconds * 100)
	for i := range iterations {
		done := float64(i) / float64(iterations)
		wanted := 64.0
		if c.buffers != nil {
			wanted = c.buffers(done)
		}
		for ; kept+8 <= wanted; kept += 8 {
			s.driver(2, 8*mib)
		}
		began := s.now
		if c.once || c.stalls && i > 0 && i < iterations-40 {
			s.use(1)
		} else {
			s.release(s.driver(1, mib), wire.OutcomeDriver)
		}
		if i%25 == 24 {
			asked(done, i)
		}
		s.now = began + 10*ms
	}
	s.exit()
	return s
}

// TestSteadyGrowthIsFound: what grows steadily beside the buffers is found, with how much an iteration adds.
func TestSteadyGrowthIsFound(t *testing.T) {
	leak := func(done float64, i int) float64 { return 150 + 64*min(done*20, 1) + float64(i)/4 }
	for name, want := range map[string]struct {
		course
		each float64 // MiB; 0: there are no iterations
	}{
		"rss":                {course{seconds: 8, source: wire.MachineRSS, resident: leak}, 0.25},
		"drm":                {course{seconds: 8, source: wire.MachineDRM, resident: func(done float64, i int) float64 { return leak(done, i) - 146 }}, 0.25},
		"nvml":               {course{seconds: 8, source: wire.MachineNVML, resident: func(done float64, i int) float64 { return leak(done, i) - 146 }}, 0.25},
		"with noise":         {course{seconds: 8, resident: func(done float64, i int) float64 { return leak(done, i) + float64(i%3*4) }}, 0.25},
		"without iterations": {course{seconds: 30, resident: leak, once: true}, 0},
		"beside growing buffers": {course{seconds: 8, buffers: func(done float64) float64 { return 64 + 96*done },
			resident: func(done float64, i int) float64 { return leak(done, i) + 96*done }}, 0.25 * 67},
	} {
		a := want.tape().analyse(t)
		if len(a.Growth) != 1 {
			t.Errorf("%s: %d growths", name, len(a.Growth))
			continue
		}
		g := &a.Growth[0]
		if m := a.Timeline.Machine; len(m) != 1 || m[0].Source != want.source.String() || m[0].Values[len(m[0].Values)/2] <= m[0].Values[10] {
			t.Errorf("%s: over time %+v", name, m)
		}
		if each := float64(g.Each) / mib; each < 0.75*want.each || each > 1.25*want.each || (g.Iterations == 0) != want.once {
			t.Errorf("%s: %.3f MiB in each of %d iterations, want %.3f", name, each, g.Iterations, want.each)
		}
		d := diagnosisOf(a, "grows")
		if d == nil || !strings.Contains(d.Text, "grew by") || (g.Buffers > 0) != strings.Contains(d.Text, "beyond the") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func diagnosisOf(a *Analysis, word string) *Diagnosis {
	for i := range a.Diagnoses {
		if d := &a.Diagnoses[i]; strings.Contains(d.Title, word) && !strings.Contains(d.Title, "iteration") {
			return d
		}
	}
	return nil
}

// TestNoGrowth: warm-up, buffers that are touched little by little, and what comes and goes, are no growth.
func TestNoGrowth(t *testing.T) {
	flat := func(float64, int) float64 { return 200 }
	for name, c := range map[string]course{
		"flat":      {seconds: 8, resident: flat},
		"warm-up":   {seconds: 8, resident: func(done float64, _ int) float64 { return 150 + 300*min(done*3, 1) }},
		"late step": {seconds: 8, resident: func(done float64, _ int) float64 { return 150 + 100*float64(int(done*1.5)) }},
		"buffers":   {seconds: 8, resident: func(done float64, _ int) float64 { return 150 + 512*done }, buffers: func(done float64) float64 { return 512 * done }},
		"touched": {seconds: 8, resident: func(done float64, _ int) float64 { return 150 + 1024*done },
			buffers: func(float64) float64 { return 1024 }},
		"to and fro":    {seconds: 8, resident: func(_ float64, i int) float64 { return 200 + float64(i/25%2*64) }},
		"a little":      {seconds: 8, resident: func(done float64, _ int) float64 { return 200 + 6*done }},
		"small part":    {seconds: 8, resident: func(done float64, _ int) float64 { return 2000 + 40*done }},
		"too short":     {seconds: 2, resident: func(done float64, _ int) float64 { return 200 + 200*done }},
		"shrinking":     {seconds: 8, resident: func(done float64, _ int) float64 { return 400 - 200*done }},
		"control group": {seconds: 8, source: wire.MachineDMEM, resident: func(done float64, _ int) float64 { return 200 + 200*done }},
		"one iteration": {seconds: 60, stalls: true, resident: func(done float64, _ int) float64 { return 200 + 600*done }},
		"compiles until its first buffers": {seconds: 60, once: true, resident: func(done float64, _ int) float64 { return 200 + 600*min(done, 0.95) },
			buffers: func(done float64) float64 { return 64 * float64(int(done+0.05)) }},
		"short, no loop": {seconds: 8, once: true, resident: func(done float64, _ int) float64 { return 200 + 200*done }},
	} {
		if a := c.tape().analyse(t); len(a.Growth) != 0 || diagnosisOf(a, "beside") != nil {
			t.Errorf("%s: %+v", name, a.Growth)
		}
	}
}

// A program without buffers that compiles, say, has nothing beside which it could grow.
func TestGrowthNeedsBuffers(t *testing.T) {
	for buffers, want := range map[float64]bool{0: false, 64: true} {
		c := course{
			seconds: 60, once: true, buffers: func(float64) float64 { return buffers },
			resident: func(done float64, _ int) float64 { return 200 + 600*done },
		}
		if a := c.tape().analyse(t); len(a.Growth) != 1 || (diagnosisOf(a, "beside") != nil) != want {
			t.Errorf("%v MiB of buffers: %+v, %+v", buffers, a.Growth, a.Diagnoses)
		}
	}
}

// TestLongSeries: a long run keeps its figures at wider steps.
func TestLongSeries(t *testing.T) {
	c := course{seconds: 2000, source: wire.MachineRSS, resident: func(_ float64, i int) float64 { return 150 + float64(i)/64 }}
	a := c.tape().analyse(t)
	if len(a.Growth) != 1 || a.Growth[0].Each < mib/80 || a.Growth[0].Each > mib/50 {
		t.Errorf("growth %+v", a.Growth)
	}
}

// TestMachineChangesNothingElse: a report of a run is the same without what the machine reports.
func TestMachineChangesNothingElse(t *testing.T) {
	c := course{seconds: 4, resident: func(float64, int) float64 { return 200 }}
	with := c.tape()
	without := newTape()
	for i := range with.Records {
		if with.Records[i].Kind != wire.KindMachine {
			without.Records = append(without.Records, with.Records[i])
		}
	}
	a, b := with.analyse(t), without.analyse(t)
	if a.Run.Events != b.Run.Events || len(a.Phases) != len(b.Phases) || !cmp.Equal(a.Phases[len(a.Phases)-1], b.Phases[len(b.Phases)-1]) ||
		a.Peak.Time != b.Peak.Time || len(a.Diagnoses) != len(b.Diagnoses) {
		t.Errorf("with:    %+v %+v\nwithout: %+v %+v", a.Run, a.Phases, b.Run, b.Phases)
	}
}
