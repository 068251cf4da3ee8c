package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
)

// checkSums adds objects and blocks up and compares with every gauge that is kept: of the processes, of all
// together, of the sizes and of the classes.
func checkSums(t *testing.T, m *Model) {
	t.Helper()
	var all heap.Gauges
	for _, p := range m.processes.list {
		counted := countAll(p.heap)
		if diff := cmp.Diff(counted, p.heap.Gauges); diff != "" && !p.heap.Left { // then it keeps what it shows
			t.Fatalf("process %d (-counted +kept):\n%s", p.shown.Number, diff)
		}
		all.InUse, all.Cached, all.Cooling = all.InUse+counted.InUse, all.Cached+counted.Cached, all.Cooling+counted.Cooling
		all.Requested, all.Room = all.Requested+counted.Requested, all.Room+counted.Room
	}
	if diff := cmp.Diff(all, m.heap.Gauges); diff != "" {
		t.Fatalf("totals (-counted +kept):\n%s", diff)
	}
	for _, i := range m.shares.divided {
		checkShares(t, m, m.shares.divisions[i])
	}
}

func countAll(p *heap.Process) (g heap.Gauges) {
	for _, o := range p.Objects() {
		if o.Owns {
			g.InUse += int64(o.Granted)
			g.Requested += int64(o.Size)
		}
	}
	for _, b := range p.Blocks() {
		size := int64(b.Size)
		switch b.State {
		case heap.Cached:
			g.Cached += size
		case heap.Cooling:
			g.Cooling += size
		case heap.Slab:
			g.Room += size
		default:
		}
		if b.SubAllocation {
			g.Room -= size
		}
	}
	return g
}

// checkShares checks that a division adds up to the totals.
func checkShares(t *testing.T, m *Model, shares []share) {
	t.Helper()
	var sum share
	for i := range shares {
		s := &shares[i]
		sum.hits, sum.misses = sum.hits+s.hits, sum.misses+s.misses
		sum.inUse, sum.cached, sum.cooling, sum.blocks = sum.inUse+s.inUse, sum.cached+s.cached, sum.cooling+s.cooling, sum.blocks+s.blocks
	}
	l := &m.totals.run
	want := share{
		hits: l.counters.Hits, misses: l.counters.Misses, creates: sum.creates,
		inUse: l.InUse, cached: l.Cached, cooling: l.Cooling, blocks: l.CachedBlocks,
	}
	if sum != want {
		t.Fatalf("shares add up to %+v, the totals are %+v", sum, want)
	}
}
