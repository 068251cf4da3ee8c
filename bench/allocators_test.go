package main

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/allocator/rcu"
	"codeberg.org/gpumemtop/gpumemtop/allocator/tbuddy"
)

func TestInTurnsTakesTurnsAndLeavesFailuresOut(t *testing.T) {
	var order []int
	broken := errors.New("broken")
	figures := inTurns(3, []func() (float64, error){
		func() (float64, error) { order = append(order, 0); return float64(10 - len(order)), nil },
		func() (float64, error) { order = append(order, 1); return 0, broken },
		func() (float64, error) { order = append(order, 2); return 7, nil },
	})
	if want := []int{0, 1, 2, 0, 2, 0, 2}; !slices.Equal(order, want) {
		t.Errorf("measured %v, want %v", order, want)
	}
	if figures[0].value != 6 || figures[0].err != nil || !slices.Equal(figures[0].values, []float64{9, 6, 4}) || !errors.Is(figures[1].err, broken) || figures[2].value != 7 {
		t.Errorf("figures %v", figures)
	}
}

func TestFigureOverAnother(t *testing.T) {
	f, other := figure{value: 6, values: []float64{6, 8, 5}}, figure{value: 4, values: []float64{4, 4, 5}}
	if got := f.over(other); got != "1.50 (1.00 to 2.00)" {
		t.Error(got)
	}
}

// TestLongEnough: figures are of as many operations as take the time, and no more than that.
func TestLongEnough(t *testing.T) {
	var counts []int
	ns, err := lasting(100, 2, func(n int) (float64, error) { counts = append(counts, n); return 2, nil })
	if last := counts[len(counts)-1]; ns != 2 || err != nil || last < 50 || last > 64 {
		t.Errorf("%v ns, %v, after %v operations", ns, err, counts)
	}
	values := []float64{3, 5, 4, 9}
	ns, err = repeated(100, 10, func() (float64, error) { next := values[0]; values = values[1:]; return next, nil })
	if ns != 4 || err != nil || len(values) != 1 {
		t.Errorf("%v ns, %v, %v left; want the mean of three", ns, err, values)
	}
	fails := func() (float64, error) { return 0, errRefused }
	if _, err := lasting(1, 1, func(int) (float64, error) { return fails() }); !errors.Is(err, errRefused) {
		t.Error(err)
	}
	if _, err := repeated(1, 1, fails); !errors.Is(err, errRefused) {
		t.Error(err)
	}
}

func TestShareGivesEveryOperationOut(t *testing.T) {
	for threads := 1; threads < 5; threads++ {
		var done atomic.Int64
		steps := slices.Repeat([]step{func(n int) error { done.Add(int64(n)); return nil }}, threads)
		if _, err := share(10, steps); err != nil || done.Load() != 10 {
			t.Errorf("%d threads did %d of 10, %v", threads, done.Load(), err)
		}
	}
	if _, err := share(1, []step{func(int) error { return nil }, func(int) error { return errRefused }}); !errors.Is(err, errRefused) {
		t.Errorf("a thread failed, share says %v", err)
	}
}

// TestContendersDoWhatIsMeasured: each measures itself whether its requests hit or miss.
func TestContendersDoWhatIsMeasured(t *testing.T) {
	contenders := direct()
	for _, name := range allocator.Names() {
		contenders = append(contenders, inBroker(name, false))
		if name != "none" {
			contenders = append(contenders, inBroker(name, true))
		}
	}
	for _, c := range contenders {
		for _, threads := range []int{1, 3} {
			if _, err := c.measure(threads, 200, 0); err != nil && (c.name != aloneName || threads == 1) {
				t.Errorf("%s with %d threads: %v", c.name, threads, err)
			}
		}
	}
	if _, err := inBroker("none", true).measure(1, 200, 0); err == nil {
		t.Error("hits of a policy that has none are measured")
	}
}

func TestStocksHoldWhatTheySay(t *testing.T) {
	for _, name := range allocator.Names() {
		if name == "none" {
			continue
		}
		const n = 1000
		s, err := newStock(name, n, allSizes)
		if err != nil {
			t.Fatal(err)
		}
		stats := s.policy.Stats()
		if held := max(stats.Parts, stats.Ranges); held < n {
			t.Errorf("%s holds %d blocks, want %d", name, held, n)
		}
		if err := s.pairs(2 * n); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStrideVisitsAll: otherwise the caches hold more than the table says.
func TestStrideVisitsAll(t *testing.T) {
	for _, n := range heldCounts {
		a, b := stride, n
		for b != 0 {
			a, b = b, a%b
		}
		if a != 1 {
			t.Errorf("the stride and %d have the factor %d in common", n, a)
		}
	}
}

// TestExhaustionFailsAsExpected: what the caption says of the paper.
func TestExhaustionFailsAsExpected(t *testing.T) {
	for _, test := range []struct {
		size        int
		least, most float64
	}{{8, 0.02, 0.05}, {128, 0.02, 0.05}, {512, 0.125, 0.15}, {1024, 0.25, 0.27}, {2048, 0.5, 0.5}, {4096, 0, 0}, {65536, 0, 0}} {
		requests := 4 * mib / test.size
		ask, err := fromUalloc(test.size, requests)
		if err != nil {
			t.Fatal(err)
		}
		_, failed, err := askAll(ask, requests)
		if rate := float64(failed) / float64(requests); err != nil || rate < test.least || rate > test.most {
			t.Errorf("%d bytes: %v of the requests failed, want %v to %v; %v", test.size, rate, test.least, test.most, err)
		}
	}
	if _, failed, err := askAll(fromBuddy(tbuddy.NewMutex(1024), 4), 256); failed != 0 || err != nil {
		t.Errorf("%d of 256 requests for all of a buddy allocator failed, %v", failed, err)
	}
}

func TestSemaphoresGiveUnits(t *testing.T) {
	for _, threads := range []int{1, 3} {
		grown := 0
		count := func() { grown++ }
		if _, err := countedUnits(2*batch, threads, count); err != nil || grown != 2 {
			t.Errorf("counting, %d threads: grown %d times, %v", threads, grown, err)
		}
		grown = 0
		if _, err := bulkUnits(2*batch, threads, count); err != nil || grown != 2 {
			t.Errorf("bulk, %d threads: grown %d times, %v", threads, grown, err)
		}
	}
}

func TestSearchesRemoveEverything(t *testing.T) {
	for name, barrier := range map[string]func(*rcu.Domain){
		"plain": (*rcu.Domain).Barrier, "delegated": func(d *rcu.Domain) { d.TryBarrier() },
	} {
		for _, elements := range []int{256, 16} {
			if _, err := removeAll(256, elements, 4, barrier); err != nil {
				t.Errorf("%s, %d elements: %v", name, elements, err)
			}
		}
	}
}

func TestKeepNothingNamesLimitsThatThereAre(t *testing.T) {
	for _, name := range allocator.Names() {
		settings, err := allocator.ParseSettings(keepNothing(name))
		if err == nil {
			_, err = allocator.New(name, settings)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, want := keepNothing("slab"), fmt.Sprintf("max_cached_bytes=0,max_part=%d,slabs_per_heap=1000000", bigPart); got != want {
		t.Errorf("slab: %s, want %s", got, want)
	}
}
