package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

func look(t *testing.T, o Options, tapes ...*replay.Loaded) *Result {
	t.Helper()
	if !o.Fit {
		o.Device = device
	}
	r, err := Search(context.Background(), tapes, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// better reports whether a is as good as b in time and in memory, and better in one of them.
func better(a, b *Point) bool {
	return a.DriverNS <= b.DriverNS && a.PeakReserved <= b.PeakReserved && (a.DriverNS < b.DriverNS || a.PeakReserved < b.PeakReserved)
}

// checkFront fails unless a front has all points that no other point beats, one of each that are equal, and no others.
func checkFront(t *testing.T, r *Result) {
	t.Helper()
	type place struct {
		ns   float64
		peak uint64
	}
	want := map[place]bool{}
	for i := range r.Points {
		beaten := false
		for j := range r.Points {
			beaten = beaten || better(&r.Points[j], &r.Points[i])
		}
		if p := &r.Points[i]; !beaten {
			want[place{p.DriverNS, p.PeakReserved}] = true
		}
	}
	got := map[place]bool{}
	for i := range r.Front {
		got[place{r.Front[i].DriverNS, r.Front[i].PeakReserved}] = true
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(place{})); diff != "" || len(got) != len(r.Front) {
		t.Errorf("the front has %d points, %d different ones: %s", len(r.Front), len(got), diff)
	}
}

func names(points []Point) string {
	var b strings.Builder
	for i := range points {
		fmt.Fprintf(&b, "%s %g %d\n", points[i].Configuration, points[i].DriverNS, points[i].PeakReserved)
	}
	return b.String()
}

func TestSearchIsTheSameEachTime(t *testing.T) {
	racetest.Slow(t)
	tape := random(t, 1, 500)
	want := look(t, Options{Workers: 1}, tape)
	for _, workers := range []int{2, 7} {
		got := look(t, Options{Workers: workers}, tape)
		if diff := cmp.Diff(names(want.Points), names(got.Points)); diff != "" {
			t.Errorf("%d goroutines: %s", workers, diff)
		}
		if want.Recommended.Configuration.String() != got.Recommended.Configuration.String() {
			t.Errorf("%d goroutines recommend %s, one %s", workers, got.Recommended.Configuration, want.Recommended.Configuration)
		}
	}
	if want.Ending != Enough || len(want.Points) != Usual {
		t.Errorf("%d configurations, ending %d", len(want.Points), want.Ending)
	}
}

// TestSearchFindsTheFront compares with all values of each limit of each policy, and of all pairs of limits of one
// policy.
func TestSearchFindsTheFront(t *testing.T) {
	racetest.Slow(t)
	tape := random(t, 2, 200)
	r := look(t, Options{Most: 2000}, tape)
	checkFront(t, r)
	var all []replay.Configuration
	for _, policy := range allocator.PolicyNames() {
		plain := replay.Configuration{Policy: policy}
		all = append(all, plain)
		for _, one := range neighbours(plain, r.Bound.Peak) {
			all = append(all, one)
			if policy == "mantissa" {
				all = append(all, neighbours(one, r.Bound.Peak)...)
			}
		}
	}
	for _, p := range r.testbed.playConfigurations(context.Background(), all, func() {}) {
		if p == nil {
			t.Fatal("a neighbour cannot be played")
		}
		for i := range r.Front {
			if better(p, &r.Front[i]) {
				t.Errorf("%s takes %g ns and %d bytes: better than %s", p.Configuration, p.DriverNS, p.PeakReserved, r.Front[i].Configuration)
			}
		}
	}
}

func TestPointsAreNotBelowTheBound(t *testing.T) {
	racetest.Slow(t)
	for seed := range uint64(4) {
		r := look(t, Options{Most: 150}, random(t, seed, 500), random(t, seed+100, 300))
		checkFront(t, r)
		for i := range r.Points {
			p := &r.Points[i]
			if p.DriverNS < r.BoundOf(&p.Configuration)*(1-1e-12) || p.PeakReserved < r.Bound.Peak {
				t.Errorf("%s takes %g ns and %d bytes, below %+v", p.Configuration, p.DriverNS, p.PeakReserved, r.Bound)
			}
			if ns, share := r.RegretOf(p); ns < 0 || share < 0 || share > 1 {
				t.Errorf("%s: regret %g ns, %g", p.Configuration, ns, share)
			}
		}
		if _, share := r.RegretOf(&r.None); share != 1 {
			t.Errorf("no pool: regret %g, want 1", share)
		}
	}
}

func TestScoresOfSeveralRecordings(t *testing.T) {
	one, other := random(t, 1, 300), random(t, 2, 200)
	r := look(t, Options{Most: 40}, one, other)
	for i := range r.Points {
		p := &r.Points[i]
		a, b := p.On[0], p.On[1]
		if p.DriverNS != a.DriverNS+b.DriverNS || p.PeakReserved != max(a.PeakReserved, b.PeakReserved) || p.Requests != 500 || p.Hits != a.Hits+b.Hits {
			t.Errorf("%s: %+v of %+v", p.Configuration, p.Score, p.On)
		}
	}
}

func TestEndings(t *testing.T) {
	tape := bursts(t, 3)
	if r := look(t, Options{Most: 1}, tape); len(r.Points) != len(allocator.PolicyNames()) || r.Ending != Enough {
		t.Errorf("%d points, ending %d: want every policy", len(r.Points), r.Ending)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := Search(ctx, []*replay.Loaded{tape}, Options{Device: device, Workers: 1, Progress: func(done, all int) {
		if done == 20 {
			cancel()
		}
		if all != Usual {
			t.Errorf("%d of %d", done, all)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Ending != Cut || len(r.Points) != 20 || r.Recommended == nil {
		t.Errorf("%d points, ending %d, want those 20 that there was time for", len(r.Points), r.Ending)
	}
	if _, err := Search(ctx, []*replay.Loaded{tape}, Options{Device: device}); !errors.Is(err, ErrNothing) {
		t.Errorf("no time: %v", err)
	}
}

func TestSearchErrors(t *testing.T) {
	tape := bursts(t, 3)
	if _, err := Search(context.Background(), []*replay.Loaded{tape}, Options{}); !errors.Is(err, ErrNoCost) {
		t.Errorf("a driver that takes nothing: %v", err)
	}
	if _, err := Search(context.Background(), []*replay.Loaded{load(t, labtest.NewTape())}, Options{Device: device}); !errors.Is(err, ErrNoRequest) {
		t.Errorf("a recording without requests: %v", err)
	}
	present := replay.Configuration{Policy: "slob"}
	if _, err := Search(context.Background(), []*replay.Loaded{tape}, Options{Device: device, Present: &present}); err == nil || !strings.Contains(err.Error(), "unknown policy") {
		t.Errorf("a policy that there is not: %v", err)
	}
}

// TestPresentStays: the present configuration is recommended if no other is better.
func TestPresentStays(t *testing.T) {
	present := replay.Configuration{Policy: "buckets", Settings: []allocator.Setting{{Name: "max_per_bucket", Value: "100"}, {Name: "min_block", Value: "1"}}}
	r := look(t, Options{Present: &present, Most: 60}, bursts(t, 5))
	if r.Present == nil || r.Present.Configuration.String() != "buckets max_per_bucket=100" {
		t.Errorf("the present configuration is %+v", r.Present)
	}
	plain := replay.Configuration{Policy: "futhark"}
	if r := look(t, Options{Present: &plain, Most: 60}, bursts(t, 5)); r.Recommended.Configuration.String() != "futhark" || r.Reason != Close {
		t.Errorf("recommends %s, reason %d, want futhark to stay", r.Recommended.Configuration, r.Reason)
	}
}

func TestMaxMemory(t *testing.T) {
	tape := stairs(t, 20)
	r := look(t, Options{MaxMemory: 40 << 20}, tape)
	if r.Recommended == nil || r.Recommended.PeakReserved > 40<<20 || r.Reason != Fits {
		t.Fatalf("recommended: %+v, reason %d", r.Recommended, r.Reason)
	}
	for i := range r.Points {
		if p := &r.Points[i]; p.PeakReserved <= 40<<20 && p.DriverNS < r.Recommended.DriverNS-savingGivenUp*r.None.DriverNS {
			t.Errorf("%s saves more within the memory than %s", p.Configuration, r.Recommended.Configuration)
		}
	}
	if r := look(t, Options{MaxMemory: 1 << 20}, tape); r.Recommended != nil || r.Reason != NoneFits || r.CrossValidate(context.Background()) != nil {
		t.Errorf("within too little: %+v", r.Recommended)
	}
}

// TestPartsCost: sub-allocations of unknown cost are not taken to be free.
func TestPartsCost(t *testing.T) {
	r := look(t, Options{Most: 1}, random(t, 1, 500))
	if r.PartNS != device.Create.A+device.Release.A {
		t.Errorf("a part is taken to cost %g", r.PartNS)
	}
	slab := pointWithConfigurationOf(r.Points, &Point{Configuration: replay.Configuration{Policy: "slab"}})
	if !slab.IsAssumed() || r.Recommended.IsAssumed() || slices.ContainsFunc(r.Front, func(p Point) bool { return p.IsAssumed() }) {
		t.Errorf("what is assumed is ranked: %+v of %+v", r.Recommended, r.Front)
	}
	if slab.DriverNS < 400*r.PartNS {
		t.Errorf("slabs take %g ns for 500 parts", slab.DriverNS)
	}
	known := device
	known.Part.A = 1
	r, err := Search(context.Background(), []*replay.Loaded{random(t, 1, 500)}, Options{Device: known, Most: 1})
	if err != nil {
		t.Fatal(err)
	}
	if cheap := pointWithConfigurationOf(r.Points, slab); r.PartNS != 0 || cheap.IsAssumed() || len(r.Assumed) > 0 || cheap.DriverNS >= slab.DriverNS {
		t.Errorf("with a cost that is known: %g", r.PartNS)
	}
}

func TestFitUsesEachRecordingsDriver(t *testing.T) {
	r := look(t, Options{Fit: true, Most: 1}, random(t, 1, 100))
	if got := r.None.DriverNS; got != 100*1000 {
		t.Errorf("100 creates that took 1 µs each take %g ns", got)
	}
}
