package learn

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// TestLearnsBlocks plays loops in which no request can be a sub-allocation: after a layout was learned it serves every
// request, and no more is reserved than its size.
func TestLearnsBlocks(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		loop := randomLoop(rng, 4)
		p := newLearningPool(t)
		p.align = 0
		p.run(8+64/len(loop), loop)
		if len(p.plans) == 0 {
			t.Fatalf("%d: no plan of %v", seed, loop)
		}
		p.run(8, loop)
		plan := p.plans[len(p.plans)-1]
		if n, reserved := p.departed(8, loop); n != 0 || reserved > plan.Size || plan.Bound > plan.Size {
			t.Errorf("%d: %d departures, %d bytes, the plan has %d of at least %d: %v", seed, n, reserved, plan.Size, plan.Bound, loop)
		}
	}
}

// TestBlocksAreShared: buffers that are never needed at the same time share a block, also if their sizes differ.
// Several periods in a row need less memory where buffers outlive a period.
func TestBlocksAreShared(t *testing.T) {
	for _, c := range []struct {
		loop []item
		size uint64
	}{
		{[]item{{1, 4096, 1}, {2, 8192, 2}, {3, 512, 1}, {1, 1024, 1}}, 8192 + 512},
		{[]item{{1, 100, 4}, {2, 100, 4}, {3, 100, 4}}, 400},
	} {
		p := newLearningPool(t)
		p.align = 0
		p.run(80, c.loop)
		plan := p.plans[len(p.plans)-1]
		if n, reserved := p.departed(12, c.loop); n != 0 || reserved != c.size || plan.Size != c.size || plan.Bound != c.size {
			t.Errorf("%d departures, %d bytes, plan of %d, at least %d: want %d", n, reserved, plan.Size, plan.Bound, c.size)
		}
	}
}

// TestBlocksOfALimitedSize: a buffer shares with a larger one up to the size of block that may serve it.
func TestBlocksOfALimitedSize(t *testing.T) {
	for most, size := range map[uint64]uint64{4095: 4096 + 512, 4096: 4096, 0: 4096} {
		plan := MakeLayout([][]Buffer{{{Tag: 1, Class: 1, Size: 4096, Life: 1}, {Tag: 2, Class: 1, Size: 512, BlockMax: most, Life: 1}}})
		if plan == nil || plan.Size != size || (plan.Places[0].Offset == plan.Places[1].Offset) != (size == 4096) {
			t.Errorf("at most %d: %+v", most, plan)
		}
	}
}

// TestSearchForBlocks: where the first order of placement takes more than the least, another is found, and never a worse one.
func TestSearchForBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	better := 0
	for range 40 {
		buffers, items := make([]Buffer, 12), make([]arenaBuffer, 12)
		for i := range buffers {
			buffers[i] = Buffer{Tag: allocator.Tag(i), Class: 1, Size: 1 + rng.Uint64N(50), Life: 1 + rng.Uint64N(6)}
			items[i] = arenaBuffer{&buffers[i], i, buffers[i].Size}
		}
		plan := MakeLayout([][]Buffer{buffers})
		slices.SortStableFunc(items, func(a, b arenaBuffer) int { return cmp.Compare(b.size, a.size) })
		spans, order := make([][]span, len(items)), make([]int, len(items))
		for i := range items {
			spans[i], order[i] = items[i].neededSpans(len(buffers)), i
		}
		first := packFirstFit(items, spans, order)
		if plan.Size > first.height || plan.Size < plan.Bound {
			t.Errorf("%d bytes of at least %d, in the first order %d: %+v", plan.Size, plan.Bound, first.height, buffers)
		}
		if plan.Size < first.height {
			better++
		}
	}
	if better < 10 {
		t.Errorf("%d of 40 are better than the first order", better)
	}
}
