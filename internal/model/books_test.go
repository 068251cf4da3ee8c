package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// books are gauges added up from what is known of objects and blocks one by one.
type books struct{ InUse, Cached, Cooling, Blocks, Slabs, SlabBytes, Room int64 }

// checkBooks adds objects and blocks up and compares with every gauge that is kept besides: of the processes, of all
// together, of the sizes and of the classes.
func checkBooks(t *testing.T, m *Model) {
	t.Helper()
	var all books
	for _, p := range m.processes {
		counted := m.countAll(p)
		l := &p.ledger
		kept := books{l.inUse, l.cached, l.cooling, l.blocks, l.slabs, l.slabBytes, l.room}
		if diff := cmp.Diff(counted, kept); diff != "" && !p.removed { // one that was removed keeps what it shows
			t.Fatalf("process %d (-counted +kept):\n%s", p.shown.Number, diff)
		}
		all.InUse, all.Cached, all.Cooling = all.InUse+counted.InUse, all.Cached+counted.Cached, all.Cooling+counted.Cooling
		all.Blocks, all.Slabs = all.Blocks+counted.Blocks, all.Slabs+counted.Slabs
		all.SlabBytes, all.Room = all.SlabBytes+counted.SlabBytes, all.Room+counted.Room
	}
	l := &m.ledger
	kept := books{l.inUse, l.cached, l.cooling, l.blocks, l.slabs, l.slabBytes, l.room}
	if diff := cmp.Diff(all, kept); diff != "" {
		t.Fatalf("totals (-counted +kept):\n%s", diff)
	}
	checkShares(t, m, m.shares.sizes[:])
	checkShares(t, m, m.shares.classes[:])
}

func (m *Model) countAll(p *process) books {
	var b books
	p.objects.all(func(_ uint64, place int32) {
		if o := m.objects.at(place); o.owns {
			b.InUse += int64(o.granted)
		}
	})
	p.blocks.all(func(_ uint64, place int32) {
		x := m.blocks.at(place)
		size := int64(x.size)
		switch x.state {
		case cached:
			b.Cached += size
			b.Blocks++
		case cooling:
			b.Cooling += size
		case carved:
			b.Slabs++
			b.SlabBytes += size
			b.Room += size
		}
		if x.part {
			b.Room -= size
		}
	})
	return b
}

// checkShares checks that a division adds up to the whole.
func checkShares(t *testing.T, m *Model, shares []share) {
	t.Helper()
	var sum share
	for i := range shares {
		s := &shares[i]
		sum.hits, sum.misses = sum.hits+s.hits, sum.misses+s.misses
		sum.inUse, sum.cached, sum.cooling, sum.blocks = sum.inUse+s.inUse, sum.cached+s.cached, sum.cooling+s.cooling, sum.blocks+s.blocks
	}
	l := &m.ledger
	want := share{
		hits: l.counters.Hits, misses: l.counters.Misses, creates: sum.creates,
		inUse: l.inUse, cached: l.cached, cooling: l.cooling, blocks: l.blocks,
	}
	if sum != want {
		t.Fatalf("shares add up to %+v, the whole is %+v", sum, want)
	}
}
