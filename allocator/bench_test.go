package allocator

import (
	"fmt"
	"slices"
	"testing"
)

// stock is a policy with many free blocks.
type stock struct {
	Policy
	blocks int // that are free
	sizes  int // how many different ones
	shrink int // how much smaller, as a power of two
	align  uint64
	tags   int
}

// newStock frees that many blocks of that many sizes, none of tag 0. Where blocks are parts of slabs, every other one
// stays in use, so that free ranges do not join.
func newStock(b *testing.B, name string, blocks, sizes int) *stock {
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
	s := &stock{Policy: p, blocks: blocks, sizes: sizes, tags: 64}
	if name == "futhark-2018" {
		s.tags = blocks // it keeps one block for each
	}
	held := make([]Block, blocks)
	if find(name).carver != nil {
		s.shrink, s.align = 10, 256
	}
	for i := range held {
		held[i] = s.alloc(i)
		if s.align != 0 {
			s.alloc(i)
		}
	}
	for _, block := range held {
		p.Free(block, false, 0, nil)
	}
	return s
}

// request spreads sizes over 64 KiB to 64 MiB without order.
func (s *stock) request(i int) Request {
	size := 1<<16 + uint64(i%s.sizes)*0x9e3779b97f4a7c15>>32&(1<<26-1)&^3
	return Request{Size: size >> s.shrink, Align: s.align, Class: 1, Tag: Tag(1 + i%s.tags), Pinned: true}
}

func (s *stock) alloc(i int) Block {
	plan, _ := s.Plan(s.request(i), nil)
	if plan.SlabSize != 0 {
		s.Grown(plan)
	}
	s.Commit(plan)
	return plan.Block
}

// everyStock runs a benchmark for every policy that caches, with few and many blocks, of as many sizes and of a
// thousand.
func everyStock(b *testing.B, run func(b *testing.B, s *stock)) {
	b.Helper()
	for _, name := range Names()[1:] {
		for _, blocks := range []int{100, 1_000, 10_000, 100_000, 1_000_000} {
			for _, sizes := range slices.Compact([]int{blocks, min(blocks, 1000)}) {
				b.Run(fmt.Sprintf("%s/cached=%d/sizes=%d", name, blocks, sizes), func(b *testing.B) {
					s := newStock(b, name, blocks, sizes)
					b.ReportAllocs()
					run(b, s)
				})
			}
		}
	}
}

// BenchmarkHit serves requests that a free block fits exactly and gives the block back.
func BenchmarkHit(b *testing.B) {
	everyStock(b, func(b *testing.B, s *stock) {
		b.Helper()
		before := s.Stats().Misses
		var out []Eviction
		i := 0
		for b.Loop() {
			plan, _ := s.Plan(s.request(i), out[:0])
			s.Commit(plan)
			out = s.Free(plan.Block, false, 0, out[:0])
			if i++; i == s.blocks {
				i = 0
			}
		}
		if s.Stats().Misses != before {
			b.Fatal("not all requests hit")
		}
	})
}

// BenchmarkMiss serves requests that no free block is large enough for, and forgets the block.
func BenchmarkMiss(b *testing.B) {
	everyStock(b, func(b *testing.B, s *stock) {
		b.Helper()
		before := s.Stats().Hits
		for b.Loop() {
			plan, _ := s.Plan(Request{Size: 1 << 30, Class: 1, Pinned: true}, nil)
			s.Commit(plan)
			s.Forget(plan.Block)
		}
		if s.Stats().Hits != before {
			b.Fatal("a request hit")
		}
	})
}
