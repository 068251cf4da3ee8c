package devicebench

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
)

// fake is a driver whose costs are known, with a clock of its own.
type fake struct {
	t                               *testing.T
	create0, touch, reuse, release0 cost.Line
	residency                       Residency
	keeps                           uint64 // released memory of sizes up to this is kept
	capacity                        uint64 // bytes, 0: no bound
	fails                           uint64 // the first fill of this size fails
	scatter                         float64
	random                          *rand.Rand

	clock float64 // ns
	held  uint64  // bytes
	most  uint64  // that were held at a time
	kept  map[uint64]int
	calls map[uint64]int // creates by size
}

type fakeBuffer struct {
	size          uint64
	there         bool // the memory
	released, sub bool
}

var errFake = errors.New("the fake fails")

func newFake(t *testing.T) *fake {
	return &fake{
		t: t, create0: cost.Line{A: 2000}, touch: cost.Line{A: 500, B: 0.25}, reuse: cost.Line{A: 15000, B: 0.06}, release0: cost.Line{A: 1500, B: 0.01},
		residency: ByPage, random: rand.New(rand.NewPCG(1, 2)), kept: map[uint64]int{}, calls: map[uint64]int{},
	}
}

// takes lets time go by. Now and then something else takes the processor.
func (f *fake) takes(ns float64) float64 {
	if f.scatter > 0 {
		ns *= 1 + f.scatter*f.random.NormFloat64()
		if f.random.IntN(20) == 0 {
			ns *= 10
		}
	}
	ns = max(1, ns)
	f.clock += ns
	return ns
}

func (f *fake) elapsed() time.Duration { return time.Duration(f.clock) }

func (f *fake) createBuffer(size uint64) (memory, float64, error) {
	f.calls[size]++
	if f.capacity > 0 && f.held+size > f.capacity {
		return nil, f.takes(1000), errors.Join(errExhausted, errors.New("CL_FAKE"))
	}
	f.held += size
	f.most = max(f.most, f.held)
	b := &fakeBuffer{size: size}
	ns := f.create0.CallNS(size)
	switch {
	case f.kept[size] > 0:
		f.kept[size]--
		b.there, ns = true, 100
	case f.residency == AtCreate:
		b.there = true
		ns += f.touch.CallNS(size)
	}
	return b, f.takes(ns), nil
}

func (f *fake) use(m memory) *fakeBuffer {
	f.t.Helper()
	b := m.(*fakeBuffer)
	if b.released {
		f.t.Errorf("a released buffer of %d is used", b.size)
	}
	return b
}

func (f *fake) createSubBuffer(m memory, origin, size uint64) (memory, float64, error) {
	if whole := f.use(m); origin+size > whole.size {
		f.t.Errorf("a part from %d to %d of %d", origin, origin+size, whole.size)
	}
	return &fakeBuffer{size: size, sub: true}, f.takes(60), nil
}

func (f *fake) releaseBuffer(m memory) (float64, error) {
	b := f.use(m)
	b.released = true
	if b.sub {
		return f.takes(70), nil
	}
	f.held -= b.size
	if b.size <= f.keeps {
		f.kept[b.size]++
		return f.takes(100), nil
	}
	return f.takes(f.release0.CallNS(b.size)), nil
}

func (f *fake) fillBuffer(m memory, size uint64) (float64, error) {
	b := f.use(m)
	if size != b.size {
		f.t.Errorf("%d of %d are filled", size, b.size)
	}
	if size == f.fails {
		return 0, errFake
	}
	ns := f.reuse.CallNS(size)
	if !b.there {
		ns += f.touch.CallNS(size)
	}
	b.there = true
	return f.takes(ns), nil
}

func (f *fake) writeWord(m memory) (float64, error) {
	b := f.use(m)
	ns := 8000.0
	if !b.there && f.residency == AtFirstUse {
		ns += f.touch.CallNS(b.size)
		b.there = true
	}
	return f.takes(ns), nil
}

// measuredFake is what a sampler measured of the fake.
type measuredFake struct {
	Device
	samples []*sample
}

// run measures the fake with sizes up to most.
func (f *fake) run(budget time.Duration, most uint64, stop func() bool) (*measuredFake, error) {
	f.t.Helper()
	g, result := newGathered(), &measuredFake{}
	s := &sampler{
		d: f, sizes: sizesToTest(1<<40, most), align: 128, budget: budget, stop: stop,
		tell: func(s *sample) { g.addSample(s); result.samples = append(result.samples, s) },
		parts: func(create, release float64) {
			g.subCreate, g.subRelease = append(g.subCreate, create), append(g.subRelease, release)
		},
		note: func(text string) { result.Notes = append(result.Notes, text) },
	}
	err := s.measureAll()
	if f.held != 0 {
		f.t.Errorf("%d bytes are still held at the end", f.held)
	}
	g.fitAndJudge(&result.Device)
	return result, err
}

func never() bool { return false }
