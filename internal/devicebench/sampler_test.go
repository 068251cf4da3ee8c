package devicebench

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
)

// near reports whether a line costs about the same over all sizes.
func near(t *testing.T, name string, got, want cost.Line, from, to uint64) {
	t.Helper()
	for size := from; size <= to; size *= 2 {
		if off := math.Abs(got.CallNS(size)/want.CallNS(size) - 1); off > 0.1 {
			t.Errorf("%s: %+v, want %+v: %.0f %% off at %d", name, got, want, 100*off, size)
			return
		}
	}
}

// Known costs are found again, though every call scatters and some take ten times as long.
func TestFindsTheCosts(t *testing.T) {
	for _, residency := range []Residency{AtCreate, AtFirstUse, ByPage} {
		f := newFake(t)
		f.residency, f.scatter = residency, 0.03
		d, err := f.run(10*time.Second, 64<<20, never)
		if err != nil {
			t.Fatal(err)
		}
		if d.Residency != residency || d.Lazy != (residency != AtCreate) || d.DriverCaches {
			t.Errorf("%s: %+v", residency, d.Verdict)
		}
		create, touch := f.create0, f.touch
		if residency == AtCreate {
			create.A, create.B, touch = create.A+touch.A, create.B+touch.B, cost.Line{}
		}
		near(t, "create", d.Create.Line, create, 4<<10, 64<<20)
		near(t, "reuse", d.Reuse.Line, f.reuse, 4<<10, 64<<20)
		near(t, "release", d.Release.Line, f.release0, 4<<10, 64<<20)
		if residency == AtCreate {
			if d.Touch.CallNS(64<<20) > scatter*f.reuse.CallNS(64<<20) {
				t.Errorf("a first touch costs %v where there is none", d.Touch.Line)
			}
		} else {
			// Below a MiB it is lost in how the writes scatter.
			near(t, "touch", d.Touch.Line, touch, 1<<20, 64<<20)
		}
		if math.Abs(d.SubCreate-60) > 6 || math.Abs(d.SubRelease-70) > 7 {
			t.Errorf("parts: create %v, release %v", d.SubCreate, d.SubRelease)
		}
		if len(d.Points) != 15 || d.Points[0].N < 100 {
			t.Errorf("%d points, %+v", len(d.Points), d.Points)
		}
	}
}

// A cache below some size is seen as one, and as a break of the lines; new memory shows through it when memory comes.
func TestFindsCaches(t *testing.T) {
	f := newFake(t)
	f.keeps, f.scatter = 4<<20, 0.02
	d, err := f.run(10*time.Second, 256<<20, never)
	if err != nil {
		t.Fatal(err)
	}
	if !d.DriverCaches || d.CachesUpTo != 4<<20 || d.Residency != ByPage {
		t.Errorf("%+v", d.Verdict)
	}
	for name, fit := range map[string]Fit{"touch": d.Touch, "release": d.Release} {
		if fit.Below.Bytes != 8<<20 {
			t.Errorf("%s: no break at 8 MiB: %+v, %+v", name, fit, fit.Below)
		}
	}
	near(t, "touch", d.Touch.Line, f.touch, 8<<20, 256<<20)
	near(t, "touch of new memory", d.New.Touch.Line, f.touch, 1<<20, 256<<20)
	near(t, "release", d.Release.Line, f.release0, 8<<20, 256<<20)
}

// Time is up when it is, and sizes that take too long are left out, with a message. The order of sizes changes.
func TestKeepsToTheBudget(t *testing.T) {
	for _, budget := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
		f := newFake(t)
		d, err := f.run(budget, 16<<30, never)
		if err != nil {
			t.Fatal(err)
		}
		if f.elapsed() > budget+budget/10 || f.elapsed() < budget/3 {
			t.Errorf("took %v of %v", f.elapsed(), budget)
		}
		if n := len(d.Points); n < 8 || n == 23 || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "--budget") {
			t.Errorf("%v: %d points, %q", budget, n, d.Notes)
		}
		for i := range d.Points {
			if d.Points[i].N < 1 {
				t.Errorf("%v: nothing of %d", budget, d.Points[i].Size)
			}
		}
	}
}

func TestInterleavesSizes(t *testing.T) {
	f := newFake(t)
	d, err := f.run(5*time.Second, 1<<20, never)
	if err != nil {
		t.Fatal(err)
	}
	var falls, rises int
	for i, s := range d.samples[1:] {
		switch before := d.samples[i]; {
		case s.Size > before.Size:
			rises++
		case s.Size < before.Size:
			falls++
		}
	}
	if falls < rises/3 || rises < falls/3 {
		t.Errorf("sizes go up %d times, down %d times", rises, falls)
	}
}

// Where a device has no more memory the rest is measured; nothing is asked for again that was not to be had.
func TestMemoryIsShort(t *testing.T) {
	f := newFake(t)
	f.capacity = 8<<20 + SizeMin
	d, err := f.run(5*time.Second, 64<<20, never)
	if err != nil {
		t.Fatal(err)
	}
	last := d.Points[len(d.Points)-1].Size
	if last != 8<<20 || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "16.0 MiB and more are not to be had: CL_FAKE") {
		t.Errorf("up to %d, %q", last, d.Notes)
	}
	if f.calls[16<<20] > 3 || f.calls[32<<20] > 2 {
		t.Errorf("asked %d times for 16 MiB, %d times for 32", f.calls[16<<20], f.calls[32<<20])
	}
}

// With the largest size allowed as it is, no more is held at a time than about one and a half of it.
func TestHoldsLittle(t *testing.T) {
	f := newFake(t)
	if _, err := f.run(10*time.Second, 64<<20, never); err != nil {
		t.Fatal(err)
	}
	if f.most > 64<<20*3/2 {
		t.Errorf("%d MiB were held at a time", f.most>>20)
	}
}

// A driver that fails is reported, and gets back what it gave; so does one that is interrupted.
func TestFailsAndStops(t *testing.T) {
	f := newFake(t)
	f.fails = 64 << 10
	if _, err := f.run(time.Second, 1<<20, never); !errors.Is(err, errFake) {
		t.Errorf("error %v", err)
	}
	for limit := range 40 {
		f, asked := newFake(t), 0
		d, err := f.run(time.Second, 1<<20, func() bool { asked++; return asked > limit })
		if err != nil {
			t.Fatal(err)
		}
		if f.elapsed() > 200*time.Millisecond {
			t.Errorf("stopped at the %d-th question, it went on to %v with %d points", limit, f.elapsed(), len(d.Points))
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		maxAlloc, most uint64
		want           int
		last           uint64
	}{{0, 0, 1, 4 << 10}, {1 << 20, 0, 7, 256 << 10}, {1<<20 + 5, 1 << 30, 7, 256 << 10}, {8 << 30, 1 << 20, 9, 1 << 20}, {1<<64 - 1, 0, 50, 1 << 61}} {
		list := sizesToTest(c.maxAlloc, c.most)
		if len(list) != c.want || list[len(list)-1] != c.last {
			t.Errorf("%d, %d: %d", c.maxAlloc, c.most, list)
		}
	}
}
