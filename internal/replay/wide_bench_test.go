package replay

import (
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// waves is a program that repeatedly creates many buffers and releases them all in random order: from 10 000 call
// sites, and hardly any two of the same size.
func waves(times, buffers int) *labtest.Tape {
	rng := rand.New(rand.NewPCG(3, 4))
	p := labtest.NewTape()
	for wave := range times {
		first := 1 + wave*buffers
		for n := range buffers {
			p.AddCreate(uint64(first+n), 4096+rng.Uint64N(1<<20)).Tag = 1 + rng.Uint32N(10_000)
		}
		for _, n := range rng.Perm(buffers) {
			p.AddRelease(uint64(first+n), wire.OutcomeCached)
		}
	}
	return p
}

// BenchmarkWide has too many call sites, sizes and free blocks for linear searches.
func BenchmarkWide(b *testing.B) {
	loaded, err := Load(waves(5, 100_000))
	if err != nil {
		b.Fatal(err)
	}
	for _, policy := range allocator.PolicyNames()[1:] {
		b.Run(policy, func(b *testing.B) {
			options := Options{Policy: policy, Settings: []allocator.Setting{{Name: "max_cached_bytes", Value: "1125899906842624"}}}
			for b.Loop() {
				if _, err := loaded.Replay(options); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(loaded.EventCount())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
