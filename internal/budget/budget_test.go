package budget_test

import (
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
)

func TestParts(t *testing.T) {
	whole := budget.New(100)
	a, b := whole.NewPart(80), whole.NewPart(80)
	for i, step := range []struct {
		of     *budget.Budget
		bytes  int64
		fits   bool
		whole  int64
		reason string
	}{
		{a, 80, true, 80, "a part's most"},
		{a, 1, false, 80, "more than the part"},
		{b, 21, false, 80, "more than the whole"},
		{b, 20, true, 100, "the rest of the whole"},
		{b, -1, false, 100, "less than nothing"},
		{b, 1 << 62, false, 100, "a number near the largest"},
		{b, 0, true, 100, "nothing"},
	} {
		if fits := step.of.Charge(step.bytes); fits != step.fits || whole.UsedBytes() != step.whole {
			t.Errorf("%d, %s: %v, %d used", i, step.reason, fits, whole.UsedBytes())
		}
	}
	if a.RefusedCount() != 1 || b.RefusedCount() != 3 || whole.RefusedCount() != 1 {
		t.Errorf("refused %d, %d, %d", a.RefusedCount(), b.RefusedCount(), whole.RefusedCount())
	}
	b.Release(5)
	a.ReleaseAll()
	if whole.UsedBytes() != 15 || b.UsedBytes() != 15 || a.Charge(1) {
		t.Errorf("after the end of a part %d are used, %d in the other", whole.UsedBytes(), b.UsedBytes())
	}
}

func TestNoBudget(t *testing.T) {
	var none *budget.Budget
	if part := none.NewPart(10); !none.Charge(1<<62) || !part.Charge(10) || part.Charge(1) || none.UsedBytes() != 0 ||
		none.RefusedCount() != 0 {
		t.Error("no budget has a bound, or its part has none")
	}
	none.Release(5)
	none.ReleaseAll()
}

func TestAppend(t *testing.T) {
	b := budget.New(16)
	var list []int
	for i := range 5 {
		list, _ = budget.AppendIfRoom(b, list, 8, i)
	}
	if len(list) != 2 || b.UsedBytes() != 16 {
		t.Errorf("%v, %d used", list, b.UsedBytes())
	}
}

func TestManyGoroutines(t *testing.T) {
	whole := budget.New(1000)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			part := whole.NewPart(400)
			for range 10_000 {
				if part.Charge(7) {
					part.Release(7)
				}
			}
			part.Charge(3)
			part.ReleaseAll()
		})
	}
	group.Wait()
	if whole.UsedBytes() != 0 {
		t.Errorf("%d are used", whole.UsedBytes())
	}
}
