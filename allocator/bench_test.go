package allocator

import (
	"fmt"
	"testing"
)

// stocked returns a policy with that many free blocks of different sizes, all tagged differently from tag 0.
func stocked(b *testing.B, name string, blocks int) Policy {
	b.Helper()
	p, err := New(name, []Setting{{"max_cached_bytes", "1125899906842624"}})
	if err != nil {
		b.Fatal(err)
	}
	held := make([]Block, blocks)
	for i := range held {
		plan, _ := p.Plan(Request{Size: size(i), Class: 1, Tag: Tag(1 + i%64)}, nil)
		p.Commit(plan)
		held[i] = plan.Block
	}
	for _, block := range held {
		p.Free(block, false, 0, nil)
	}
	return p
}

// size spreads blocks over 64 KiB to 64 MiB without order.
func size(i int) uint64 { return 1<<16 + uint64(i)*0x9e3779b97f4a7c15>>32&(1<<26-1)&^3 }

var counts = []int{100, 1_000, 10_000, 100_000, 1_000_000}

// BenchmarkHit serves requests that a free block fits exactly and gives the block back.
func BenchmarkHit(b *testing.B) {
	for _, name := range []string{"futhark", "pow2"} {
		for _, n := range counts {
			b.Run(fmt.Sprintf("%s/cached=%d", name, n), func(b *testing.B) {
				p := stocked(b, name, n)
				before := p.Stats().Misses
				var out []Eviction
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					plan, _ := p.Plan(Request{Size: size(i), Class: 1, Tag: Tag(1 + i%64)}, out[:0])
					p.Commit(plan)
					out = p.Free(plan.Block, false, 0, out[:0])
					if i++; i == n {
						i = 0
					}
				}
				if p.Stats().Misses != before {
					b.Fatal("not all requests hit")
				}
			})
		}
	}
}

// BenchmarkMiss serves requests that no free block is large enough for, and forgets the block.
func BenchmarkMiss(b *testing.B) {
	for _, name := range []string{"futhark", "pow2"} {
		for _, n := range counts {
			b.Run(fmt.Sprintf("%s/cached=%d", name, n), func(b *testing.B) {
				p := stocked(b, name, n)
				before := p.Stats().Hits
				b.ReportAllocs()
				for b.Loop() {
					plan, _ := p.Plan(Request{Size: 1 << 30, Class: 1}, nil)
					p.Commit(plan)
					p.Forget(plan.Block)
				}
				if p.Stats().Hits != before {
					b.Fatal("a request hit")
				}
			})
		}
	}
}
