package tune

import (
	"io"
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// device is what the drivers of these tests take.
var device = cost.Device{Create: cost.Line{A: 1e5, B: 0.1}, Release: cost.Line{A: 2e4}}

// program is a recording that a test writes; it is a source, too.
type program struct {
	records []wire.Record
	next    int
	objects uint64
}

func newProgram() *program {
	p := &program{}
	p.add(wire.Event{Kind: wire.KindDevice, Object: 7, Granted: 1 << 34, Link: 1 << 32, Tag: 128})
	p.add(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeCreate), Object: 1, Link: 7})
	return p
}

func (p *program) add(e wire.Event) {
	e.Time = 1000 * uint64(len(p.records)+1)
	p.records = append(p.records, wire.Record{Event: e, Process: 1})
}

// create asks for a buffer at a call site and returns its number.
func (p *program) create(size uint64, site uint32) uint64 {
	p.objects++
	p.add(wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: p.objects, Link: p.objects, Size: size, Granted: size, Scope: 1, Access: 1,
		Tag: site, Cost: 1000,
	})
	return p.objects
}

func (p *program) release(object uint64) {
	p.add(wire.Event{Kind: wire.KindRelease, Object: object, Link: object, Outcome: wire.OutcomeCached})
}

// Next implements trace.Source.
func (p *program) Next(r *wire.Record) error {
	if p.next == len(p.records) {
		return io.EOF
	}
	*r = p.records[p.next]
	p.next++
	return nil
}

// Rewind implements trace.Source.
func (p *program) Rewind() error {
	p.next = 0
	return nil
}

func (p *program) tape(t testing.TB) *lab.Tape {
	t.Helper()
	loaded, err := lab.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// random is a program of 12 call sites whose sizes vary, in no order.
func random(t testing.TB, seed uint64, requests int) *lab.Tape {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	p := newProgram()
	var held [16]uint64
	for range requests {
		at := rng.IntN(len(held))
		if held[at] != 0 {
			p.release(held[at])
		}
		site := rng.Uint32N(12)
		held[at] = p.create(uint64(1000)<<(site/2)+rng.Uint64N(5000), site+1)
	}
	return p.tape(t)
}

// stairs is a program whose every iteration asks for buffers of other sizes than those before, and for some that are always
// the same.
func stairs(t testing.TB, iterations int) *lab.Tape {
	t.Helper()
	p := newProgram()
	for n := range iterations {
		large := p.create(8<<20+uint64(n)*(1<<20), 1)
		small := p.create(4096, 2)
		p.release(small)
		p.release(large)
	}
	return p.tape(t)
}

// bursts is a program that has many equal buffers at a time, again and again.
func bursts(t testing.TB, iterations int) *lab.Tape {
	t.Helper()
	p := newProgram()
	for range iterations {
		var all []uint64
		for range 32 {
			all = append(all, p.create(4<<20, 3))
		}
		for _, object := range all {
			p.release(object)
		}
	}
	return p.tape(t)
}
