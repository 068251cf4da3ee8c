package allocator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// naive is a second opinion on hits: it scans all free blocks.
type naive struct {
	policy string
	ratio  float64
	free   []*freeBlock
}

type freeBlock struct {
	block Block
	size  uint64
	class Class
	tag   Tag
}

// serves returns the size of the block that should serve a request, 0 for a miss.
func (n *naive) serves(size uint64, class Class, tag Tag) uint64 {
	best := uint64(math.MaxUint64)
	for _, f := range n.free {
		ok := f.class == class && f.size >= max(size, 4)
		switch n.policy {
		case "none":
			ok = false
		case "pow2":
			ok = ok && f.size == pow2{}.grant(Request{Size: size}, &limits{minBlock: 4})
		case "futhark":
			ok = ok && (f.size == max(size, 4) || f.size < 4096 || f.tag == tag || float64(f.size) < n.ratio*float64(max(size, 4)))
		}
		if ok {
			best = min(best, f.size)
		}
	}
	if best == math.MaxUint64 {
		return 0
	}
	return best
}

func (n *naive) remove(b Block) (tag Tag) {
	for i, f := range n.free {
		if f.block == b {
			n.free = append(n.free[:i], n.free[i+1:]...)
			return f.tag
		}
	}
	return 0
}

// TestRandom compares every policy with a scan of all free blocks, and checks all invariants after each step.
func TestRandom(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { random(t, rt, name) })
		})
	}
}

func random(t *testing.T, rt *rapid.T, name string) {
	d := newDriver(t, name, "")
	n := &naive{policy: name, ratio: 2}
	type use struct {
		tag   Tag
		class Class
	}
	inUse, cooling := map[Block]use{}, map[Block]use{}
	var live, cold []Block
	pick := func(from *[]Block, label string) Block {
		i := rapid.IntRange(0, len(*from)-1).Draw(rt, label)
		b := (*from)[i]
		*from = append((*from)[:i], (*from)[i+1:]...)
		return b
	}
	forgetEvicted := func() {
		for i := 0; i < len(n.free); {
			if d.blocks[n.free[i].block] == nil {
				n.free = append(n.free[:i], n.free[i+1:]...)
				continue
			}
			i++
		}
	}
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		switch op := rapid.IntRange(0, 9).Draw(rt, "op"); {
		case op < 5:
			size := uint64(rapid.SampledFrom([]int{1, 3, 100, 4096, 5000, 8192, 9999, 1 << 20, 1<<20 + 1, 3 << 20}).Draw(rt, "size"))
			u := use{Tag(rapid.IntRange(1, 3).Draw(rt, "tag")), Class(rapid.IntRange(1, 2).Draw(rt, "class"))}
			want := n.serves(size, u.class, u.tag)
			plan := d.alloc(size, u.class, u.tag)
			if plan.Hit != (want != 0) || (plan.Hit && plan.Size != want) {
				rt.Fatalf("a request of %d got %+v, a scan finds a block of %d", size, plan, want)
			}
			n.remove(plan.Block)
			inUse[plan.Block] = u
			live = append(live, plan.Block)
		case op < 8 && len(live) > 0:
			b := pick(&live, "free")
			busy := rapid.Bool().Draw(rt, "busy")
			d.free(b, busy)
			if h := d.blocks[b]; h != nil && busy {
				cooling[b] = inUse[b]
				cold = append(cold, b)
			} else if h != nil {
				n.free = append(n.free, &freeBlock{b, h.size, inUse[b].class, inUse[b].tag})
			}
		case op == 8 && len(cold) > 0:
			b := pick(&cold, "cooled")
			d.cooled(b)
			if h := d.blocks[b]; h != nil {
				n.free = append(n.free, &freeBlock{b, h.size, cooling[b].class, cooling[b].tag})
			}
		case op == 9:
			d.release(d.policy.Drain(uint64(rapid.IntRange(1, 4<<20).Draw(rt, "need")), nil))
		}
		forgetEvicted()
		d.check()
	}
}

// TestSameRequestsSamePlans: replay relies on it.
func TestSameRequestsSamePlans(t *testing.T) {
	for _, name := range Names() {
		run := func() string {
			rng := rand.New(rand.NewPCG(7, 7))
			d := newDriver(t, name, "")
			var live []Block
			log := ""
			for range 500 {
				if len(live) > 0 && rng.IntN(2) == 0 {
					i := rng.IntN(len(live))
					log += fmt.Sprint(d.free(live[i], rng.IntN(4) == 0))
					live = append(live[:i], live[i+1:]...)
					continue
				}
				plan := d.alloc(uint64(1+rng.IntN(64))<<14, Class(1+rng.IntN(3)), Tag(rng.IntN(5)))
				log += fmt.Sprint(plan)
				live = append(live, plan.Block)
			}
			return log
		}
		if run() != run() {
			t.Errorf("%s answers the same requests differently", name)
		}
	}
}

func TestHitAllocatesNothing(t *testing.T) {
	for _, name := range []string{"futhark", "pow2"} {
		p, err := New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out []Eviction
		cycle := func() {
			plan, _ := p.Plan(Request{Size: 1 << 20, Class: 1, Tag: 1}, out[:0])
			p.Commit(plan)
			out = p.Free(plan.Block, false, 0, out[:0])
		}
		cycle()
		if n := testing.AllocsPerRun(100, cycle); n != 0 {
			t.Errorf("%s: %v allocations per hit", name, n)
		}
	}
}

func BenchmarkAllocFree(b *testing.B) {
	for _, name := range Names() {
		for _, cached := range []int{100, 10_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/cached=%d", name, cached), func(b *testing.B) { benchmarkAllocFree(b, name, cached) })
		}
	}
}

// benchmarkAllocFree serves requests of random sizes from a pool with that many free blocks.
func benchmarkAllocFree(b *testing.B, name string, blocks int) {
	p, err := New(name, nil)
	if err != nil {
		b.Fatal(err)
	}
	if name != "none" {
		if _, err := p.SetLimit("max_cached_bytes", 1<<50, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	held := make([]Block, blocks)
	for i := range held {
		plan, _ := p.Plan(Request{Size: 4096 + rng.Uint64N(1<<26), Class: 1, Tag: Tag(i % 64)}, nil)
		p.Commit(plan)
		held[i] = plan.Block
	}
	for _, block := range held {
		p.Free(block, false, 0, nil)
	}
	var out []Eviction
	b.ReportAllocs()
	for b.Loop() {
		plan, _ := p.Plan(Request{Size: 4096 + rng.Uint64N(1<<26), Class: 1, Tag: 1}, out[:0])
		p.Commit(plan)
		out = p.Free(plan.Block, false, 0, out[:0])
	}
}
