package auto

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"
)

// beginAnew is what becomes of the ghosts when they rest no longer.
func (c *course) beginAnew() {
	for i := range c.look.Results.Rows {
		c.change(i, func(b *ghost.Result) {
			*b = ghost.Result{Ghost: b.Ghost, Configuration: b.Configuration}
			b.Since, b.Hits, b.Requests = c.look.Time, 0, 0
		})
	}
}

// until lets windows pass until the ghosts rest or no longer do, and returns how many.
func (c *course) until(t *testing.T, rests bool, real float64, rows ...float64) int {
	t.Helper()
	for n := range 1000 {
		if c.IsResting() == rests {
			return n
		}
		c.pass(1, real, rows...)
	}
	t.Fatalf("resting is %v for good", !rests)
	return 0
}

func TestRestsWhileTheDriverTakesNoTime(t *testing.T) {
	c := newCourseThat(true)
	c.pass(100, idleShare*second*0.9)
	if !c.IsResting() {
		t.Error("it asks ghosts though there is nothing to gain")
	}
	for range 10 { // single peaks
		c.pass(1, second/4)
		c.pass(1, 0)
	}
	if !c.IsResting() {
		t.Error("it asks ghosts because of a moment")
	}
	c.pass(wakeObservations, idleShare*second*1.1)
	if c.IsResting() {
		t.Error("it does not ask the ghosts")
	}
	c.expect(t)
}

func TestNeverRestsWhereSomebodyLooks(t *testing.T) {
	c := newCourse()
	for range 100 {
		if c.pass(1, 0, 0, 0, 0); c.IsResting() {
			t.Fatal("it rests")
		}
	}
}

// TestSwitchesAfterARest: a program that has changed, or that the base never suited, gets a better configuration.
func TestSwitchesAfterARest(t *testing.T) {
	c := newCourseThat(true)
	c.pass(10, 0)
	c.until(t, false, 50e6)
	c.beginAnew()
	c.pass(1, 50e6)                   // they are behind still
	c.pass(1, 50e6, 50e6, 30e6, 20e6) // warm now
	c.pass(streakFirst-1, 50e6, 50e6, 30e6, 20e6)
	c.expect(t)
	c.pass(1, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "buddy")
	if n := c.until(t, true, 1e6, 50e6, 30e6, 1e6); n < settlingWindows+streakFirst {
		t.Errorf("it no longer asks a ghost after %d windows", n)
	}
	if n := c.until(t, false, 1e6); n < restFirst/second {
		t.Errorf("it asks again after %d seconds", n)
	}
	c.beginAnew()
	if n := c.until(t, true, 1e6, 50e6, 30e6, 1e6); n < streakFirst {
		t.Errorf("it no longer asks a ghost after %d windows", n)
	}
	c.expect(t, "buddy")
}

// TestComparesOnlyWarmGhosts: while the base's ghost misses more than the program, no ghost counts; if that lasts, the
// ghosts rest.
func TestComparesOnlyWarmGhosts(t *testing.T) {
	c := newCourseThat(true)
	c.until(t, false, 50e6)
	c.beginAnew()
	for range 10 * warmupWindows {
		if c.IsResting() {
			break
		}
		c.change(0, func(b *ghost.Result) { b.Hits -= windowRequestsMin / 50 })
		c.pass(1, 50e6, 50e6, 30e6, 20e6)
	}
	if !c.IsResting() {
		t.Error("they do not rest")
	}
	c.expect(t)
}

// TestRestsLongerAndLonger: the driver takes time, but no ghost takes less.
func TestRestsLongerAndLonger(t *testing.T) {
	c := newCourseThat(true)
	c.until(t, false, 50e6)
	for _, most := range []int{5, 10, 20, 40, 64, 64} {
		c.beginAnew()
		if n := c.until(t, true, 50e6, 50e6, 50e6, 50e6); n < leaderlessMax || n > leaderlessMax+3 {
			t.Errorf("it no longer asks a ghost after %d windows", n)
		}
		if n := c.until(t, false, 50e6); n != most {
			t.Errorf("it asks again after %d seconds, want %d", n, most)
		}
	}
	c.beginAnew()
	c.until(t, true, 50e6, 50e6, 50e6, 50e6)
	if n := c.until(t, false, wakeFactor*50e6+1); n != wakeObservations {
		t.Errorf("it asks after %d seconds with more work for the driver", n)
	}
	c.expect(t)
}
