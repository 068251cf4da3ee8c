package allocator

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMapsOfSlabs draws random sub-allocations and compares maps with what the decisions said.
func TestMapsOfSlabs(t *testing.T) {
	for _, name := range carving() {
		d := newPartDriver(t, name)
		d.set("max_part", "65536")
		rng := rand.New(rand.NewPCG(3, 9))
		var live, cools []Block
		mapped := 0
		for step := range 1500 {
			switch n := rng.IntN(9); {
			case n < 5 || len(live) == 0:
				live = append(live, d.alloc(uint64(1+rng.IntN(1<<15)), Class(1+rng.IntN(2)), 1).Block)
			case n < 8:
				at, busy := rng.IntN(len(live)), rng.IntN(4) == 0
				d.free(live[at], busy)
				if busy && d.blocks[live[at]] != nil {
					cools = append(cools, live[at])
				}
				live = slices.Delete(live, at, at+1)
			case len(cools) > 0:
				d.cooled(cools[0])
				cools = cools[1:]
			}
			if step%25 == 0 {
				mapped += d.checkMaps(cools)
			}
		}
		if mapped < 100 {
			t.Errorf("%s: %d slabs were looked at", name, mapped)
		}
	}
}

// checkMaps compares the maps of slabs with the blocks that lie in them, and returns how many there are.
func (d *driver) checkMaps(cools []Block) int {
	d.t.Helper()
	maps := d.policy.SlabMaps(1000)
	for i := range maps {
		m := &maps[i]
		slab := d.policy.blockOfEntry(d.policy.slabs.list[m.Number].entry)
		want := SlabMap{Number: m.Number, Size: d.blocks[slab].size, Serves: m.Serves}
		var list []slabRange
		for b, h := range d.blocks {
			if h.slab == slab {
				list = append(list, slabRange{cooling: slices.Contains(cools, b), offset: h.offset, size: h.size})
			}
		}
		slices.SortFunc(list, func(a, b slabRange) int { return cmp.Compare(a.offset, b.offset) })
		at := uint64(0)
		for _, l := range append(list, slabRange{offset: want.Size}) {
			if l.offset > at {
				want.Holes++
				want.Largest = max(want.Largest, l.offset-at)
			}
			at = l.offset + l.size
			if l.cooling {
				want.Cooling += l.size
			} else {
				want.InUse += l.size
			}
		}
		for c := range uint64(MapCells) {
			want.Cells += cellOf(list, want.Size, c)
		}
		if *m != want {
			d.t.Fatalf("%s: slab %d:\n%+v, want\n%+v", d.policy.PolicyName(), m.Number, *m, want)
		}
		if d.policy.PolicyName() == "slab" && m.Serves < m.Largest && m.Largest <= 65536 {
			d.t.Fatalf("slab %d serves %d and has %d free", m.Number, m.Serves, m.Largest)
		}
	}
	if uint64(len(maps)) != d.policy.Stats().Slabs {
		d.t.Fatalf("%d maps of %d slabs", len(maps), d.policy.Stats().Slabs)
	}
	if few := d.policy.SlabMaps(2); len(maps) > 2 && (len(few) != 2 || few[0] != maps[0] || few[1] != maps[1]) {
		d.t.Fatal("the first two maps are others than those of all")
	}
	return len(maps)
}

// cellOf returns a cell by looking at each sub-allocation.
func cellOf(list []slabRange, size, cell uint64) string {
	from, until := size*cell/MapCells, size*(cell+1)/MapCells
	inUse, cools := uint64(0), uint64(0)
	for _, l := range list {
		part := min(l.offset+l.size, until) - min(max(l.offset, from), min(l.offset+l.size, until))
		if l.cooling {
			cools += part
		} else {
			inUse += part
		}
	}
	return string([]byte{inFifteenths(inUse, until-from)<<4 | inFifteenths(cools, until-from)})
}

// TestMapOfAnArena: the places of a layout are in the map, too.
func TestMapOfAnArena(t *testing.T) {
	d := newArenaDriver(t)
	first, second := d.alloc(mib, 1, 1), d.alloc(2*mib, 1, 1)
	d.free(first.Block, false)
	maps := d.policy.SlabMaps(10)
	if len(maps) != 1 || !maps[0].Arena || maps[0].InUse != second.Size || maps[0].Holes != 1 || maps[0].Largest != mib {
		t.Fatalf("%+v, want an arena with a MiB free", maps)
	}
	begin, _ := maps[0].CellUse(0)
	last, cools := maps[0].CellUse(MapCells - 1)
	if begin != 0 || last != 15 || cools != 0 {
		t.Errorf("%q, want the first third free", maps[0].Cells)
	}
}
