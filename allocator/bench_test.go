package allocator

import (
	"fmt"
	"slices"
	"testing"
)

// stock is a policy with many blocks.
type stock struct {
	*Pool
	blocks []Block // free ones, or live ones where live is set
	sizes  int     // how many different ones
	shrink int     // how much smaller, as a power of two
	align  uint64
	tags   int
	live   bool
}

// newStock allocates blocks of a number of sizes, none of tag 0, and frees them. Where blocks are sub-allocations, they
// stay live, or with gaps are freed between others that stay live, so that free ranges do not join.
func newStock(b *testing.B, name string, blocks, sizes int, gaps bool) *stock {
	b.Helper()
	p, err := New(name, []Setting{{"max_cached_bytes", "1125899906842624"}})
	if err != nil {
		b.Fatal(err)
	}
	for _, l := range p.Limits() {
		if l.Name == "max_per_bucket" {
			if _, err := p.SetLimit(l.Name, "0", 0, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	s := &stock{Pool: p, blocks: make([]Block, blocks), sizes: sizes, tags: 64}
	if name == "futhark-2018" {
		s.tags = blocks // it keeps one block for each
	}
	if findPolicy(name).carver != nil {
		s.shrink, s.align, s.live = 10, 256, !gaps
	}
	for i := range s.blocks {
		s.blocks[i] = s.alloc(i)
		if s.align != 0 && gaps {
			s.alloc(i)
		}
	}
	if !s.live {
		for _, block := range s.blocks {
			p.Free(block, false, 0, nil)
		}
	}
	return s
}

// request spreads sizes over 64 KiB to 64 MiB without order.
func (s *stock) request(i int) Request {
	size := 1<<16 + uint64(i%s.sizes)*0x9e3779b97f4a7c15>>32&(1<<26-1)&^3
	return Request{Size: size >> s.shrink, Align: s.align, Class: 1, Tag: Tag(1 + i%s.tags), Pinned: true}
}

func (s *stock) alloc(i int) Block {
	decision, _ := s.Decide(s.request(i), nil)
	if decision.SlabSize != 0 {
		s.SlabCreated(decision)
	}
	s.Commit(decision)
	return decision.Block
}

var (
	blockCounts = []int{100, 1_000, 10_000, 100_000, 1_000_000}
	// stride has no factor in common with these counts: it visits all blocks in no order, so that the processor's caches
	// hold few blocks and not many.
	stride = 61_803
)

// everyStock runs a benchmark for every policy that caches, with few and many blocks, of as many sizes and of a
// thousand.
func everyStock(b *testing.B, gaps bool, run func(b *testing.B, s *stock)) {
	b.Helper()
	for _, name := range PolicyNames()[1:] {
		for _, blocks := range blockCounts {
			for _, sizes := range slices.Compact([]int{blocks, min(blocks, 1000)}) {
				b.Run(fmt.Sprintf("%s/sizes=%s/blocks=%d", name, map[bool]string{true: "all", false: "1000"}[sizes == blocks], blocks), func(b *testing.B) {
					s := newStock(b, name, blocks, sizes, gaps)
					b.ReportAllocs()
					run(b, s)
				})
			}
		}
	}
}

// BenchmarkHit allocates a block that fits exactly and frees it. Policies with slabs free a live sub-allocation and
// allocate it again.
func BenchmarkHit(b *testing.B) {
	everyStock(b, false, func(b *testing.B, s *stock) {
		b.Helper()
		before := s.Stats().Misses
		var out []Eviction
		i := 0
		for b.Loop() {
			if s.live {
				out = s.Free(s.blocks[i], false, 0, out[:0])
			}
			decision, _ := s.Decide(s.request(i), out[:0])
			s.Commit(decision)
			if s.live {
				s.blocks[i] = decision.Block
			} else {
				out = s.Free(decision.Block, false, 0, out[:0])
			}
			i = (i + stride) % len(s.blocks)
		}
		if s.Stats().Misses != before {
			b.Fatal("not all requests hit")
		}
	})
}

// BenchmarkMap shows what the processor's caches cost: it deletes a key from a Go map and inserts it again, in the order
// of BenchmarkHit.
func BenchmarkMap(b *testing.B) {
	for _, count := range blockCounts {
		b.Run(fmt.Sprintf("map/sizes=all/blocks=%d", count), func(b *testing.B) {
			key := func(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 }
			values := make(map[uint64]uint64, count)
			for i := range count {
				values[key(i)] = 1
			}
			i := 0
			for b.Loop() {
				value := values[key(i)]
				delete(values, key(i))
				values[key(i)] = value + 1
				i = (i + stride) % count
			}
		})
	}
}

// BenchmarkMiss serves requests that no free block is large enough for, and forgets the block.
func BenchmarkMiss(b *testing.B) {
	everyStock(b, true, func(b *testing.B, s *stock) {
		b.Helper()
		before := s.Stats().Hits
		for b.Loop() {
			decision, _ := s.Decide(Request{Size: 1 << 30, Class: 1, Pinned: true}, nil)
			s.Commit(decision)
			s.Forget(decision.Block)
		}
		if s.Stats().Hits != before {
			b.Fatal("a request hit")
		}
	})
}
