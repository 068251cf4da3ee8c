package allocator

import (
	"fmt"
	"testing"
)

// cycle creates sub-allocations of a size in a policy, and then releases them all.
func cycle(p *Pool, size uint64, blocks []Block, out []Eviction) []Eviction {
	req := Request{Size: size, Class: 1, Tag: 1, Align: 128, Max: 1 << 32, Heap: 1 << 33}
	for i := range blocks {
		decision, _ := p.Decide(req, out[:0])
		if decision.SlabSize != 0 {
			p.SlabCreated(decision)
		}
		p.Commit(decision)
		blocks[i] = decision.Block
	}
	for _, b := range blocks {
		out = p.Free(b, false, 0, out[:0])
	}
	return out
}

// BenchmarkChurn is what most programs do: create one, release it, and have nothing else in the pool.
func BenchmarkChurn(b *testing.B) {
	for _, name := range carving() {
		for _, size := range []uint64{100, 4096, 1 << 20} {
			b.Run(fmt.Sprintf("%s/size=%d", name, size), func(b *testing.B) {
				p, err := New(name, nil)
				if err != nil {
					b.Fatal(err)
				}
				var out []Eviction
				var blocks [1]Block
				b.ReportAllocs()
				for b.Loop() {
					out = cycle(p, size, blocks[:], out)
				}
			})
		}
	}
}
