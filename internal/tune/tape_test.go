package tune

import (
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// device is the device of these tests.
var device = cost.Device{Create: cost.Line{A: 1e5, B: 0.1}, Release: cost.Line{A: 2e4}}

// load loads a tape.
func load(t testing.TB, p *labtest.Tape) *replay.Loaded {
	t.Helper()
	loaded, err := replay.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// create requests a buffer at a call site; the driver takes 1 µs for it.
func create(p *labtest.Tape, size uint64, site uint32) uint64 {
	number := p.CreateBuffer(size, site)
	p.LastRecord().Cost = 1000
	return number
}

// random returns the requests of 12 call sites with random sizes.
func random(t testing.TB, seed uint64, requests int) *replay.Loaded {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	p := labtest.NewTape()
	var held [16]uint64
	for range requests {
		at := rng.IntN(len(held))
		if held[at] != 0 {
			p.AddRelease(held[at], wire.OutcomeCached)
		}
		site := rng.Uint32N(12)
		held[at] = create(p, uint64(1000)<<(site/2)+rng.Uint64N(5000), site+1)
	}
	return load(t, p)
}

// stairs returns the requests of a program whose iterations each request buffers of new sizes, and some of constant sizes.
func stairs(t testing.TB, iterations int) *replay.Loaded {
	t.Helper()
	p := labtest.NewTape()
	for n := range iterations {
		large := create(p, 8<<20+uint64(n)*(1<<20), 1)
		small := create(p, 4096, 2)
		p.AddRelease(small, wire.OutcomeCached)
		p.AddRelease(large, wire.OutcomeCached)
	}
	return load(t, p)
}

// bursts returns the requests of a program that repeatedly has many equal buffers at one time.
func bursts(t testing.TB, iterations int) *replay.Loaded {
	t.Helper()
	p := labtest.NewTape()
	for range iterations {
		var all []uint64
		for range 32 {
			all = append(all, create(p, 4<<20, 3))
		}
		for _, object := range all {
			p.AddRelease(object, wire.OutcomeCached)
		}
	}
	return load(t, p)
}
