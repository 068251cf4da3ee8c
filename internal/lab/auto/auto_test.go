package auto

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
)

const second = 1_000_000_000

var (
	futhark = lab.Configuration{Policy: "futhark"}
	slab    = lab.Configuration{Policy: "slab"}
	buddy   = lab.Configuration{Policy: "buddy"}
)

// course is a program whose windows of a second each cost what rates say, under whatever it is.
type course struct {
	*Controller
	look  Look
	under lab.Configuration
	went  []string
}

func newCourse() *course {
	c := &course{Controller: New(futhark), under: futhark}
	for _, configuration := range []lab.Configuration{futhark, slab, buddy} {
		c.look.Rows = append(c.look.Rows, Row{Configuration: configuration, Sample: Sample{PeakReserved: 100}})
	}
	c.Look(c.look)
	return c
}

// pass lets n windows pass in which the rows and the program take so many ns in the driver.
func (c *course) pass(n int, real float64, rows ...float64) {
	for range n {
		c.look.Time += second
		c.look.Requests += windowRequests
		c.look.Real.DriverNS += real
		for i, ns := range rows {
			c.look.Rows[i].DriverNS += ns
		}
		if choice, ok := c.Look(c.look); ok {
			word := choice.Configuration.String()
			if choice.Back {
				word += " (back)"
			}
			c.under, c.went = choice.Configuration, append(c.went, word)
		}
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
	c.pass(patience-1, 50e6, 50e6, 30e6, 20e6)
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

func TestWaitsForEnoughRequests(t *testing.T) {
	c := newCourse()
	for range 130 * patience {
		c.look.Time += second
		c.look.Requests += windowRequests / 128
		c.look.Rows[0].DriverNS += 50e6
		if choice, ok := c.Look(c.look); ok {
			if c.look.Requests < patience*windowRequests {
				t.Fatalf("it goes to %v after %d requests", choice, c.look.Requests)
			}
			return
		}
	}
	t.Fatal("it never goes")
}

func TestHoldsLittleMoreMemoryThanTheBase(t *testing.T) {
	c := newCourse()
	c.look.Rows[2].PeakReserved = 126
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "slab")
}

func TestALeaderThatFellBehindIsNone(t *testing.T) {
	c := newCourse()
	c.look.Rows[2].Stopped = true
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t, "slab")
}

func TestWithoutTheBaseNothingIsDecided(t *testing.T) {
	c := newCourse()
	c.look.Rows[0].Stopped = true
	c.pass(100, 50e6, 50e6, 30e6, 20e6)
	c.expect(t)
}

// TestChangesLessAndLess: a program that is always about to prefer another one is left alone more and more.
func TestChangesLessAndLess(t *testing.T) {
	c := newCourse()
	for range 1000 {
		if c.under.Policy == "slab" {
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
	c.pass(patience, 50e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy")
	c.pass(settling+patience, 60e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy", "futhark (back)")
	c.pass(banned-1, 50e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy", "futhark (back)")
	c.pass(10*patience, 50e6, 50e6, 60e6, 20e6)
	c.expect(t, "buddy", "futhark (back)", "buddy")
}

// TestSomebodyElseChanges: what the user has chosen is where it goes on from.
func TestSomebodyElseChanges(t *testing.T) {
	c := newCourse()
	c.Present(buddy)
	c.pass(100, 20e6, 50e6, 30e6, 20e6)
	c.expect(t)
}

// TestARestartIsNoWindow: fewer requests than before mean another program.
func TestARestartIsNoWindow(t *testing.T) {
	c := newCourse()
	c.pass(2, 50e6, 50e6, 30e6, 20e6)
	c.look.Requests = 0
	if _, ok := c.Look(c.look); ok {
		t.Error("it goes on what a restart left")
	}
}
