package carve

import (
	"math/rand/v2"
	"testing"
)

// TestPlaced compares it with a list of the bytes that are taken.
func TestPlaced(t *testing.T) {
	const unit, units = 64, 100
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var all []uint64
		for at := range uint64(units) {
			all = append(all, at*unit)
		}
		c := NewPlaced(unit, all)
		c.AddSlab(3, units*unit+unit/2)
		var owners [units]int32
		live := map[int32]Part{}
		fresh := 0 // unit from which on nothing was taken
		for i := int32(1); i < 2000; i++ {
			at := rng.IntN(units)
			n := 1 + rng.IntN(min(units-at, 12))
			owner := int32(0)
			for _, o := range owners[at : at+n] {
				if owner == 0 {
					owner = o
				}
			}
			if got := c.OwnerOf(at, uint64(n*unit)); (got != 0) != (owner != 0) || got != 0 && live[got].Size == 0 {
				t.Fatalf("%d units at %d belong to %d, want %d", n, at, got, owner)
			}
			if owner == 0 {
				live[i] = c.TakeRange(at, uint64(n*unit), i)
				if live[i].Fresh && at < fresh || !live[i].Fresh && at >= fresh {
					t.Fatalf("%+v, nothing from unit %d on was taken", live[i], fresh)
				}
				fresh = max(fresh, at+n)
				owner = i
			} else {
				owner = owners[rng.IntN(units)]
				part, there := live[owner]
				if !there {
					continue
				}
				delete(live, owner)
				at, n = int(part.Offset/unit), int(part.Size/unit)
				if c.Free(part) != (len(live) == 0) {
					t.Fatalf("%+v came back, of %d others", part, len(live))
				}
				owner = 0
			}
			for k := range n {
				owners[at+k] = owner
			}
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			if got, want := c.FreeSpace(), freeRuns(owners[:], unit); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	}
}

// freeRuns describes the units without an owner.
func freeRuns(owners []int32, unit uint64) Space {
	var tally Tally
	largest, run := uint64(0), uint64(0)
	for i := range len(owners) + 1 {
		if i < len(owners) && owners[i] == 0 {
			run += unit
			continue
		}
		if run > 0 {
			tally.AddRanges(run, 1)
		}
		largest, run = max(largest, run), 0
	}
	return tally.spaceWithLargest(largest)
}

func TestPlacedMisuse(t *testing.T) {
	for name, misuse := range map[string]func(c *Placed, part Part){
		"taken":          func(c *Placed, part Part) { c.TakeRange(c.StartIndex(64), 128, 2) },
		"taken at 0":     func(c *Placed, part Part) { c.TakeRange(c.StartIndex(0), 128, 2) },
		"taken behind":   func(c *Placed, part Part) { c.TakeRange(c.StartIndex(128), 64, 2) },
		"beyond the end": func(c *Placed, part Part) { c.TakeRange(c.StartIndex(960), 128, 2) },
		"unaligned":      func(c *Placed, part Part) { c.TakeRange(c.StartIndex(512), 32, 2) },
		"no bytes":       func(c *Placed, part Part) { c.TakeRange(c.StartIndex(512), 0, 2) },
		"a start":        func(*Placed, Part) { NewPlaced(64, []uint64{32}) },
		"no start":       func(c *Placed, part Part) { part.Offset = 32; c.Free(part) },
		"freed twice":    func(c *Placed, part Part) { c.Free(part); c.Free(part) },
		"another part":   func(c *Placed, part Part) { part.Size = 64; c.Free(part) },
		"another slab":   func(c *Placed, part Part) { part.Slab = 2; c.Free(part) },
		"in use":         func(c *Placed, part Part) { c.RemoveSlab(1) },
		"two slabs":      func(c *Placed, part Part) { c.AddSlab(2, 1024) },
		"slab 0":         func(c *Placed, part Part) { c.Free(part); c.RemoveSlab(1); c.AddSlab(0, 1024) },
		"too small":      func(c *Placed, part Part) { c.Free(part); c.RemoveSlab(1); c.AddSlab(1, 63) },
		"removed twice":  func(c *Placed, part Part) { c.Free(part); c.RemoveSlab(1); c.RemoveSlab(1) },
	} {
		t.Run(name, func(t *testing.T) {
			c := NewPlaced(64, []uint64{960, 512, 128, 64, 0, 64})
			c.AddSlab(1, 1024)
			part := c.TakeRange(c.StartIndex(64), 128, 1)
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse(c, part)
		})
	}
}

// TestPlacedSizes: sizes at the ends of what can be managed, and what a slab says before and after its parts.
func TestPlacedSizes(t *testing.T) {
	c := NewPlaced(64, []uint64{0, 128})
	for size, want := range map[uint64]uint64{0: 64, 1: 64, 64: 64, 65: 128, maxBytes: maxBytes, maxBytes + 1: 0, ^uint64(0): 0} {
		if got := c.RoundUp(size); got != want || c.SlabSize(size) != want {
			t.Errorf("%d rounds to %d, and needs a slab of %d; want %d", size, got, c.SlabSize(size), want)
		}
	}
	if c.UsableBytes(63) != 0 || c.UsableBytes(127) != 64 || c.UsableBytes(^uint64(0)) != maxBytes || c.StartIndex(64) != -1 || c.StartIndex(128) != 1 {
		t.Errorf("%d and %d bytes are usable, offset 128 is start %d", c.UsableBytes(127), c.UsableBytes(^uint64(0)), c.StartIndex(128))
	}
	c.AddSlab(1, 256)
	if part := c.TakeRange(1, 128, 7); part != (Part{Slab: 1, Offset: 128, Size: 128, Fresh: true}) || c.OwnerOf(0, 128) != 0 || c.OwnerOf(0, 129) != 7 {
		t.Errorf("%+v, the bytes before belong to %d", part, c.OwnerOf(0, 128))
	}
}
