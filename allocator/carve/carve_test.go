package carve

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestThreeHoles is the example of METRICS: three free ranges of 256 bytes with parts between them.
func TestThreeHoles(t *testing.T) {
	c := NewBestFit(16)
	c.Add(1, 6*256)
	var parts [6]Part
	for i := range parts {
		parts[i], _ = c.Carve(256)
	}
	for _, i := range []int{4, 0, 2} {
		c.Free(parts[i])
	}
	if got, want := c.Space(), (Space{Bytes: 768, Largest: 256, Squares: 3 * 256 * 256, Ranges: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if p, ok := c.Carve(512); ok {
		t.Errorf("a request of 512 bytes got %+v", p)
	}
}

// TestSameCallsSameParts: replay relies on it.
func TestSameCallsSameParts(t *testing.T) {
	for i := range kinds {
		run := func() string {
			var log strings.Builder
			w := newChurn(kinds[i].create(), 1<<16, kinds[i].sizes[1])
			for range 500 {
				w.grow()
			}
			for range 500 {
				fmt.Fprint(&log, w.step())
			}
			return log.String()
		}
		if first, again := run(), run(); first != again {
			t.Errorf("%s answers the same calls differently", kinds[i].name)
		}
	}
}

// churn holds parts of random sizes, and replaces them one by one.
type churn struct {
	c        Carver
	rng      *rand.Rand
	slab     uint64
	size     uint64
	slabs    int32
	live     []Part
	requests []uint64
}

func newChurn(c Carver, slab, size uint64) *churn {
	return &churn{c: c, rng: rand.New(rand.NewPCG(5, 5)), slab: c.SlabSize(slab), size: size}
}

func (w *churn) carve(size uint64) Part {
	p, ok := w.c.Carve(size)
	if !ok {
		w.slabs++
		w.c.Add(w.slabs, w.slab)
		p, _ = w.c.Carve(size)
	}
	return p
}

func (w *churn) grow() {
	size := 1 + w.rng.Uint64N(w.size)
	w.requests = append(w.requests, size)
	w.live = append(w.live, w.carve(size))
}

// step frees one part and carves one of the size that another has.
func (w *churn) step() Part {
	i := w.rng.IntN(len(w.live))
	w.c.Free(w.live[i])
	w.live[i] = w.carve(w.requests[w.rng.IntN(len(w.live))])
	return w.live[i]
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for i := range kinds {
		w := newChurn(kinds[i].create(), 1<<20, kinds[i].sizes[1])
		for range 1000 {
			w.grow()
		}
		for range 20_000 { // until it never had that few ranges before
			w.step()
		}
		if n := testing.AllocsPerRun(10, func() {
			for range 1000 {
				w.step()
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations per thousand", kinds[i].name, n)
		}
	}
}

// BenchmarkCarve frees one of many parts of 1 to 64 KiB, at random, and carves another.
func BenchmarkCarve(b *testing.B) {
	for _, c := range []struct {
		name   string
		create func() Carver
	}{
		{"bestfit", func() Carver { return NewBestFit(128) }},
	} {
		for _, n := range []int{100, 1_000, 10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/parts=%d", c.name, n), func(b *testing.B) {
				w := newChurn(c.create(), 64<<20, 64<<10)
				for range n {
					w.grow()
				}
				b.ReportAllocs()
				for b.Loop() {
					w.step()
				}
			})
		}
	}
}

// TestMisuse: what only a bug can ask for stops at once, and says what it is.
func TestMisuse(t *testing.T) {
	for i := range kinds {
		k := &kinds[i]
		for name, misuse := range map[string]func(c Carver, p Part){
			"slab 0":             func(c Carver, _ Part) { c.Add(0, 4096) },
			"slab -1":            func(c Carver, _ Part) { c.Add(-1, 4096) },
			"too many slabs":     func(c Carver, _ Part) { c.Add(MaxSlabs, 4096) },
			"added twice":        func(c Carver, p Part) { c.Add(p.Slab, k.slabs[0]) },
			"too small a slab":   func(c Carver, _ Part) { c.Add(2, 1) },
			"removed with parts": func(c Carver, p Part) { c.Remove(p.Slab) },
			"unknown slab":       func(c Carver, _ Part) { c.Remove(7) },
			"part of no slab":    func(c Carver, p Part) { p.Slab = 9; c.Free(p) },
			"freed twice":        func(c Carver, p Part) { c.Free(p); c.Free(p) },
			"part moved":         func(c Carver, p Part) { p.Offset += p.Size; c.Free(p) },
			"part beyond":        func(c Carver, p Part) { p.Offset += 1 << 50; c.Free(p) },
			"part off by one":    func(c Carver, p Part) { p.Offset++; c.Free(p) },
			"part grown":         func(c Carver, p Part) { p.Size *= 2; c.Free(p) },
		} {
			c := k.create()
			c.Add(1, k.slabs[0])
			p, _ := c.Carve(1)
			if said := catch(func() { misuse(c, p) }); !strings.HasPrefix(said, "carve: ") {
				t.Errorf("%s, %s: panic %q", k.name, name, said)
			}
		}
	}
	for _, align := range []uint64{0, 3, 1 << 21, 1 << 63} {
		if said := catch(func() { NewBestFit(align) }); !strings.HasPrefix(said, "carve: ") {
			t.Errorf("alignment %d: panic %q", align, said)
		}
	}
}

func catch(f func()) (said string) {
	defer func() {
		if r := recover(); r != nil {
			said = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

// TestLimits: sizes at the ends of what 64 bits hold.
func TestLimits(t *testing.T) {
	for i := range kinds {
		c := kinds[i].create()
		most := c.Usable(^uint64(0))
		if most == 0 || c.Round(most) != most || c.SlabSize(most) < most || c.Usable(c.SlabSize(most)) < most {
			t.Errorf("%s: %d bytes are usable, round to %d and need %d", kinds[i].name, most, c.Round(most), c.SlabSize(most))
		}
		for _, size := range []uint64{most + 1, 1 << 62, 1 << 63, ^uint64(0)} {
			if c.Round(size) != 0 || c.SlabSize(size) != 0 {
				t.Errorf("%s: %d rounds to %d and needs a slab of %d", kinds[i].name, size, c.Round(size), c.SlabSize(size))
			}
			if p, ok := c.Carve(size); ok {
				t.Errorf("%s: %d got %+v", kinds[i].name, size, p)
			}
		}
		if c.Round(0) != c.Round(1) || c.Usable(0) != 0 {
			t.Errorf("%s: 0 rounds to %d, 1 to %d; of nothing %d is usable", kinds[i].name, c.Round(0), c.Round(1), c.Usable(0))
		}
		for want := uint64(1); want < most/4; want = want*3 + 1 {
			if slab := c.SlabSize(want); slab < want || c.Usable(slab) < want || c.SlabSize(slab) != slab {
				t.Errorf("%s: a slab for %d has %d and serves %d", kinds[i].name, want, slab, c.Usable(slab))
			}
		}
	}
}
