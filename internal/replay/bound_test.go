package replay

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// devices are the devices that bounds are checked with. On each of them another kind of call is expensive.
var devices = []cost.Device{
	{ // with breaks, behind which more bytes take less
		Create:  cost.Line{A: 500, B: 0.01, Below: cost.Below{Bytes: 4096, A: 100, B: 2}},
		Release: cost.Line{A: 10, Below: cost.Below{Bytes: 70000, A: 3000}},
		Touch:   cost.Line{A: 40, Below: cost.Below{Bytes: 1 << 20, A: 20, B: 1}},
		Part:    cost.Line{A: 30},
	},
	{Create: cost.Line{A: 1000}, Release: cost.Line{A: 300}},
	{Create: cost.Line{A: 10, B: 2}, Release: cost.Line{A: 1, B: 1}, Touch: cost.Line{A: 50}},
	{Create: cost.Line{B: 1}, Touch: cost.Line{A: 7, B: 1}, Part: cost.Line{A: 1}},
}

func load(t *testing.T, src recording.Source) *Loaded {
	t.Helper()
	loaded, err := Load(labtest.RewindSource(t, src))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// checkBound fails if a policy is below the bounds of a recording.
func checkBound(t *testing.T, loaded *Loaded, settings func(policy string) []allocator.Setting) {
	t.Helper()
	for _, device := range devices {
		bound := loaded.LowerBound(device)
		if bound.Carved > bound.Whole {
			t.Errorf("bounds %+v: one for all policies is above one for some", bound)
		}
		for _, policy := range allocator.PolicyNames() {
			r, err := loaded.Replay(Options{Policy: policy, Settings: settings(policy), Device: device})
			if err != nil {
				t.Fatal(err)
			}
			least := bound.Whole
			if carves(r.Limits) {
				least = bound.Carved
			}
			if r.DriverNS < least*(1-1e-12) || r.PeakReserved < bound.Peak {
				t.Errorf("%s takes %g ns, peak %d: below %g, %d", policy, r.DriverNS, r.PeakReserved, least, bound.Peak)
			}
		}
	}
}

func carves(limits []allocator.Limit) bool {
	return slices.ContainsFunc(limits, func(l allocator.Limit) bool { return l.Name == "max_part" })
}

func defaultLimits(string) []allocator.Setting { return nil }

// randomLimits sets one limit, or none, of a policy.
func randomLimits(rng *rand.Rand) func(string) []allocator.Setting {
	return func(policy string) []allocator.Setting {
		d, _ := allocator.DescribePolicy(policy)
		if len(d.Limits) == 0 {
			return nil
		}
		values := map[string][]string{
			"max_cached_bytes": {"0", "65536", "1048576"}, "max_part": {"4096", "65536"}, "over_limit": {"reject-new"}, "max_per_tag": {"1"},
			"max_per_bucket": {"1"}, "max_age": {"0.001"}, "proportion": {"1"}, "outgrown": {"on", "off"},
			"min_block": {"65536"}, "mantissa_bits": {"0", "8"}, "heap_bytes": {"65536"},
		}
		l := &d.Limits[rng.IntN(len(d.Limits))]
		if v := values[l.Name]; v != nil {
			return []allocator.Setting{{Name: l.Name, Value: v[rng.IntN(len(v))]}}
		}
		return nil
	}
}

func TestNoPolicyIsBelowTheBound(t *testing.T) {
	for _, reader := range labtest.Recordings(t, "testdata") {
		loaded := load(t, reader)
		checkBound(t, loaded, defaultLimits)
		first, second := loaded.SplitInHalves()
		checkBound(t, first, defaultLimits)
		checkBound(t, second, defaultLimits)
	}
}

// TestNoPolicyIsBelowTheBoundOfNonsense plays random records, with ends of contexts between them.
func TestNoPolicyIsBelowTheBoundOfNonsense(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 11))
		src := labtest.NewTape()
		for n := range 400 {
			src.Records = append(src.Records, randomRecord(rng, uint64(n)))
		}
		loaded := load(t, src)
		checkBound(t, loaded, randomLimits(rng))
		first, second := loaded.SplitInHalves()
		checkBound(t, first, randomLimits(rng))
		checkBound(t, second, randomLimits(rng))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestBoundIsMet plays programs for which a policy reaches the bound.
func TestBoundIsMet(t *testing.T) {
	src := labtest.NewTape()
	for n := range uint64(20) { // two at a time, of 8192 and 4096 bytes
		src.AddCreate(2*n+1, 8192)
		src.AddCreate(2*n+2, 4096)
		src.AddRelease(2*n+1, wire.OutcomeCached)
		src.AddRelease(2*n+2, wire.OutcomeCached)
	}
	src.EndContext(labtest.Scope)
	loaded := load(t, src)
	device := cost.Device{Create: cost.Line{A: 100, B: 1}, Release: cost.Line{A: 10}}
	bound := loaded.LowerBound(device)
	if want := (Bound{Peak: 12288, Whole: 2*110 + 12288, Carved: 110 + 12288}); bound != want {
		t.Errorf("bound %+v, want %+v", bound, want)
	}
	r, err := loaded.Replay(Options{Policy: "futhark", Device: device})
	if err != nil {
		t.Fatal(err)
	}
	if r.DriverNS != bound.Whole || r.PeakReserved != bound.Peak {
		t.Errorf("futhark takes %g ns, peak %d, want the bound's %+v", r.DriverNS, r.PeakReserved, bound)
	}
}

// TestBoundOfWhatStays plays a buffer that is never released and one that is unfit for reuse; the context does not end.
func TestBoundOfWhatStays(t *testing.T) {
	src := labtest.NewTape()
	src.AddCreate(1, 1000)
	src.AddCreate(2, 3000)
	device := cost.Device{Create: cost.Line{A: 100}, Release: cost.Line{A: 10}}
	if got := load(t, src).LowerBound(device); got.Whole != 200 || got.Carved != 100 {
		t.Errorf("nothing is released: %+v, want 200 and 100 ns", got)
	}
	src.AddRelease(1, wire.OutcomeCached)
	src.EndContext(labtest.Scope)
	if got := load(t, src).LowerBound(device); got.Whole != 210 || got.Carved != 100 {
		t.Errorf("one is released: %+v, want 210 and 100 ns", got)
	}
	if got := load(t, labtest.NewTape()).LowerBound(device); got != (Bound{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestMaxTree compares the tree with a row of plain counters.
func TestMaxTree(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rng.IntN(20)
		h, now, want := newMaxTree(n), make([]int, n), make([]int, n)
		for range 200 {
			last, by := rng.IntN(n), 1-2*rng.IntN(2)
			h.addToFirst(last, by)
			for i := range last + 1 {
				now[i] += by
				want[i] = max(want[i], now[i])
			}
		}
		if got := h.peaks()[:n]; !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// TestHalves fails unless a policy without memory of the past ends in the same state after the second half as after the
// whole recording.
func TestHalves(t *testing.T) {
	src := labtest.NewTape()
	for n := range uint64(9) {
		src.AddCreate(n+1, 4096*(n+1))
		if n%2 == 1 {
			src.AddRelease(n, wire.OutcomeCached)
		}
	}
	loaded := load(t, src)
	first, second := loaded.SplitInHalves()
	whole, err := loaded.Replay(Options{Policy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	begun, err := first.Replay(Options{Policy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := second.Replay(Options{Policy: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if first.EventCount() != loaded.EventCount()/2 || ended.InUse != whole.InUse || ended.PeakInUse != whole.PeakInUse {
		t.Errorf("%d of %d events; in use %d, peak %d, want %d, %d", first.EventCount(), loaded.EventCount(), ended.InUse, ended.PeakInUse, whole.InUse, whole.PeakInUse)
	}
	if carried := begun.Requests + ended.Requests - whole.Requests; carried == 0 || begun.InUse == 0 {
		t.Errorf("nothing was there at the cut: %d requests and %d", begun.Requests, ended.Requests)
	}
	if device := second.DriverCosts(); device != loaded.DriverCosts() {
		t.Errorf("the second half has the device %+v, want %+v", device, loaded.DriverCosts())
	}
}

func TestRunContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := load(t, thousand()).ReplayUntilDone(ctx, Options{Policy: "none"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestMeasured(t *testing.T) {
	src := labtest.NewTape()
	src.AddCreate(1, 100).Cost = 1
	src.AddRelease(1, wire.OutcomeRefused).Cost = 20
	src.AddEvict(1, 100, wire.EvictNone).Cost = 300
	src.AddEvent(wire.Event{Kind: wire.KindSlab, Object: 1}).Cost = 700000 // is in that of the create
	for n, ns := range []uint32{4000, 30000} {
		part := src.AddCreate(uint64(3+n), 8)
		part.Flags, part.Cost = wire.FlagSubAlloc, ns
		if n > 0 {
			part.Outcome = wire.OutcomeHit
		}
		released := src.AddRelease(uint64(3+n), wire.OutcomeCached)
		released.Flags, released.Cost = wire.FlagSubAlloc, 8000000 // with what the pool does
	}
	alone := src.AddCreate(2, 8)
	alone.Outcome, alone.Cost = wire.OutcomeDriver, 50000 // nothing for a policy
	src.AddRelease(2, wire.OutcomeDriver).Cost = 50000
	if got, err := MeasuredDriverNS(src); got != 64321 || err != nil {
		t.Errorf("%d ns, %v; want 64321", got, err)
	}
	if _, err := MeasuredDriverNS(labtest.Broken{Err: errors.New("bad block")}); err == nil {
		t.Error("a source that fails is no error")
	}
}
