package lab

import (
	"math/rand/v2"
	"os"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// synthetic is a program of that many events: buffers of 40 call sites, of which each asks for sizes of its own, 64 live
// at a time, that go in no order.
func synthetic(events int) *labtest.Program {
	const sites, live = 40, 64
	rng := rand.New(rand.NewPCG(1, 2))
	t := labtest.New()
	t.Records = append(make([]wire.Record, 0, events+2), t.Records...)
	var held [live]uint64
	for n := uint64(1); len(t.Records) < events; n++ {
		at := rng.IntN(live)
		if held[at] != 0 {
			t.Release(held[at], wire.OutcomeCached)
		}
		held[at] = n
		site := rng.Uint32N(sites)
		t.Create(n, uint64(1<<12+int(site)*3000+rng.IntN(4)*256)).Tag = site + 1
	}
	return t
}

// BenchmarkRun plays a tape through every policy. GPUMEMTOP_RECORDING names a recording to play instead of the
// synthetic one.
func BenchmarkRun(b *testing.B) {
	var src trace.Source = synthetic(1_000_000)
	if file := os.Getenv("GPUMEMTOP_RECORDING"); file != "" {
		reader, err := trace.Open(file)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = reader.Close() }()
		src = reader
	}
	loaded, err := Load(src)
	if err != nil {
		b.Fatal(err)
	}
	for _, policy := range allocator.Names() {
		b.Run(policy, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := loaded.Run(ReplayOptions{Policy: policy}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(loaded.Events())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// BenchmarkSimulation takes records as they come.
func BenchmarkSimulation(b *testing.B) {
	src := synthetic(1_000_000)
	for b.Loop() {
		if err := src.Rewind(); err != nil {
			b.Fatal(err)
		}
		if _, err := Replay(src, ReplayOptions{Policy: "futhark"}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(src.Records))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
