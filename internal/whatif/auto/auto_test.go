package auto

import (
	"math"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"
)

const second = 1_000_000_000

// course is a program whose windows of one second take a given time under each policy.
type course struct {
	*Controller
	look  Observation
	under string
	went  []string
	slow  string // the configuration that trials show to be slower; "*": all
}

func newCourse() *course { return newCourseThat(false) }

func newCourseThat(mayRest bool) *course {
	c := &course{Controller: New("futhark", mayRest), under: "futhark", slow: NoPool}
	c.noPoolDue = math.MaxUint64 // except where a test is about it
	books := &ghost.Results{Device: cost.Device{Create: cost.Line{B: 1}}}
	for _, name := range []string{"futhark", "slab", "buddy"} {
		books.Rows = append(books.Rows, ghost.Result{
			Ghost: stats.Ghost{Name: name, PeakReserved: 100}, Configuration: replay.Configuration{Policy: name},
		})
	}
	c.look.Results = books
	c.ChooseConfigurationToTry(c.look)
	return c
}

// change changes a copy of the results, because the controller may keep the earlier ones.
func (c *course) change(row int, by func(*ghost.Result)) {
	books := *c.look.Results
	books.Rows = slices.Clone(books.Rows)
	by(&books.Rows[row])
	c.look.Results = &books
}

// advance lets ns pass with a number of requests; the program and the rows spend the given ns in the driver.
func (c *course) advance(ns, requests uint64, real float64, rows ...float64) {
	c.look.Time += ns
	c.look.Requests += requests
	c.look.PoolNS += uint64(real)
	c.look.AvoidableNS += uint64(real)
	for i, ns := range rows {
		c.change(i, func(b *ghost.Result) {
			b.Requests += requests
			b.Hits += requests
			b.Work.Creates.CountCall(uint64(ns))
		})
	}
	if choice, ok := c.ChooseConfigurationToTry(c.look); ok {
		word := choice.Configuration.String()
		slower := word == c.slow || c.slow == "*"
		if c.NoteTrialResult(!slower); slower {
			word += " (no)"
		} else {
			c.under = word
		}
		c.went = append(c.went, word)
	}
}

// pass lets n windows pass.
func (c *course) pass(n int, real float64, rows ...float64) {
	for range n {
		c.advance(second, windowRequestsMin, real, rows...)
	}
}

func (c *course) expect(t *testing.T, went ...string) {
	t.Helper()
	if len(c.went) != len(went) {
		t.Fatalf("it went to %q, want %q", c.went, went)
	}
	for i := range went {
		if c.went[i] != went[i] {
			t.Fatalf("it went to %q, want %q", c.went, went)
		}
	}
}

func TestGoesToTheLeaderAfterSomeWindows(t *testing.T) {
	c := newCourse()
	c.pass(streakFirst-1, 50e6, 50e6, 30e6, 20e6)
	c.expect(t)
	c.pass(1, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "buddy")
	c.pass(500, 20e6, 50e6, 30e6, 20e6)
	c.expect(t, "buddy")
}

func TestStaysWhereLittleIsToBeHad(t *testing.T) {
	for name, rows := range map[string][]float64{
		"less than a tenth":                {50e6, 46e6, 45.5e6},
		"a thousandth of the time at most": {2e6, 1.5e6, 1.1e6},
		"nothing":                          {0, 0, 0},
	} {
		c := newCourse()
		c.pass(100, rows[0], rows...)
		if len(c.went) != 0 {
			t.Errorf("%s: it went to %q", name, c.went)
		}
	}
}

// TestWaitsForEnough: a window needs enough requests, enough time, and ghosts that have seen enough requests.
func TestWaitsForEnough(t *testing.T) {
	c := newCourse()
	for range 2*streakFirst - 1 {
		c.advance(second, windowRequestsMin/2, 25e6, 25e6, 15e6, 10e6)
	}
	c.expect(t)
	c.advance(second, windowRequestsMin/2, 25e6, 25e6, 15e6, 10e6)
	c.expect(t, "buddy")

	c = newCourse()
	for range 5*streakFirst - 1 {
		c.advance(windowNSMin/5, windowRequestsMin, 5e6, 5e6, 3e6, 2e6)
	}
	c.expect(t)
	c.advance(windowNSMin/5, windowRequestsMin, 5e6, 5e6, 3e6, 2e6)
	c.expect(t, "buddy")

	c = newCourse()
	for range 10 * streakFirst {
		c.look.Time += second
		c.look.Requests += windowRequestsMin
		if choice, ok := c.ChooseConfigurationToTry(c.look); ok {
			t.Fatalf("it goes to %v by ghosts that have heard nothing", choice)
		}
	}
}

func TestAssumedCostsDecideNothing(t *testing.T) {
	c := newCourse()
	c.look.Results.Assumed = true
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t)
}

func TestAssumedRowIsNotChosen(t *testing.T) {
	c := newCourse()
	c.change(2, func(b *ghost.Result) { b.Assumed = true })
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "slab")
}

func TestHoldsLittleMoreMemoryThanTheBase(t *testing.T) {
	c := newCourse()
	c.change(2, func(b *ghost.Result) { b.PeakReserved = 126 })
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "slab")
}

func TestALeaderThatFellBehindIsNone(t *testing.T) {
	c := newCourse()
	c.change(2, func(b *ghost.Result) { b.Stopped = "too slow" })
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "slab")
}

func TestWithoutTheBaseNothingIsDecided(t *testing.T) {
	c := newCourse()
	c.change(0, func(b *ghost.Result) { b.Stopped = "too slow" })
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t)
}

// TestChangesLessAndLess: a program whose best configuration keeps changing is changed less and less often.
func TestChangesLessAndLess(t *testing.T) {
	c := newCourse()
	for range 1000 {
		if c.under == "slab" {
			c.pass(1, 20e6, 50e6, 20e6, 10e6)
		} else {
			c.pass(1, 20e6, 50e6, 10e6, 20e6)
		}
	}
	if n := len(c.went); n < 5 || n > 20 {
		t.Errorf("it changed %d times in 1000 windows", n)
	}
}

func TestALeaderThatChangesIsNone(t *testing.T) {
	c := newCourse()
	for range 500 {
		c.pass(1, 50e6, 50e6, 20e6, 30e6)
		c.pass(1, 50e6, 50e6, 30e6, 20e6)
	}
	c.expect(t)
}

func TestGoesBackFromWhatIsWorse(t *testing.T) {
	c := newCourse()
	c.pass(streakFirst, 50e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy")
	c.pass(settlingWindows+streakFirst, 60e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy") // futhark has just lost against it
	c.pass(banFirst-1, 60e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy", "futhark")
	c.pass(banFirst-1, 50e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy", "futhark")
	c.pass(10*streakFirst, 50e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy", "futhark", "buddy")
}

// TestWhatLosesIsNotTriedAtOnce: each loser stays away twice as long as before, and the runner-up has its turn.
func TestWhatLosesIsNotTriedAtOnce(t *testing.T) {
	c := newCourse()
	c.slow = "buddy"
	c.pass(streakFirst, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "buddy (no)")
	c.pass(1+settlingWindows+2*streakFirst, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "buddy (no)", "slab")

	c = newCourse()
	c.slow = "*"
	for range 1000 {
		c.pass(1, 50e6, 50e6, 30e6, 20e6)
	}
	if n := len(c.went); n < 4 || n > 14 || c.under != "futhark" {
		t.Errorf("%d trials in 1000 windows, under %s: %q", n, c.under, c.went)
	}
}

// TestTriesNoPool: at once, although nothing is known of ghosts, and less and less often.
func TestTriesNoPool(t *testing.T) {
	c := newCourseThat(true)
	c.noPoolDue = 0
	c.pass(1000, 0)
	if n := len(c.went); n < 3 || n > 6 || c.went[0] != NoPool+" (no)" {
		t.Errorf("%q", c.went)
	}
	c = newCourse()
	c.noPoolDue, c.slow = 0, "*"
	c.slow = ""
	c.pass(10, 0, 0, 0, 0)
	c.expect(t, NoPool)
}

// TestTriesWhatNeedsLessMemory: it takes no more time.
func TestTriesWhatNeedsLessMemory(t *testing.T) {
	c := newCourse()
	c.change(1, func(b *ghost.Result) { b.PeakReserved = 75 })
	c.change(2, func(b *ghost.Result) { b.PeakReserved = 76 })
	c.pass(streakFirst-1, 50e6, 50e6, 50e6, 50e6)
	c.look.Time, c.look.Requests = c.look.Time+second, c.look.Requests+windowRequestsMin
	for i := range 3 {
		c.change(i, func(b *ghost.Result) {
			b.Requests += windowRequestsMin
			b.Work.Creates.CountCall(50e6)
		})
	}
	choice, ok := c.ChooseConfigurationToTry(c.look)
	if !ok || choice.Name != "slab" || choice.Current != "futhark" || choice.Peak != [2]uint64{75, 100} || !choice.SavesMemory() {
		t.Errorf("%+v", choice)
	}
	if choice.Peak[0] = 76; choice.SavesMemory() {
		t.Error("little less is enough")
	}
}

// TestAskedForMoreIsNotWorse: the program requests more than before, which would cost the base as much more.
func TestAskedForMoreIsNotWorse(t *testing.T) {
	c := newCourse()
	c.pass(streakFirst, 60e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy")
	c.pass(100, 100e6, 100e6, 120e6, 90.5e6)
	c.expect(t, "buddy")
	c.pass(streakFirst, 115e6, 100e6, 120e6, 90.5e6)
	c.expect(t, "buddy", "futhark")
}
