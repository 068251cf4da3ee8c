package allocator

import (
	"math/rand/v2"
	"testing"
)

// step is what a program does: it creates a buffer of that size, or releases the one that an earlier step created.
type step struct {
	size    uint64
	tag     Tag
	release int // number of the step, from 1; 0: this one creates
}

// script is a program. Its shapes are those of real ones.
type script struct {
	steps []step
	live  map[int]uint64 // sizes by the steps that created
	order []int          // of these
	now   uint64
	need  uint64 // the most at once
	unit  uint64 // bytes that a byte stands for
}

func (s *script) create(size uint64, tag Tag) int {
	size *= s.unit
	s.steps = append(s.steps, step{size: size, tag: tag})
	number := len(s.steps)
	s.live[number] = size
	s.order = append(s.order, number)
	s.now += size
	s.need = max(s.need, s.now)
	return number
}

func (s *script) release(number int) {
	s.steps = append(s.steps, step{release: number})
	s.now -= s.live[number]
	delete(s.live, number)
}

const kib = 1 << 10

// shapes are programs whose need is between 1 and 20 MiB.
var shapes = map[string]func(s *script, rng *rand.Rand){
	"temporaries of a loop": func(s *script, rng *rand.Rand) { // as array libraries make them, for each expression
		for range 60 {
			var held []int
			for range 7 {
				held = append(held, s.create((200+rng.Uint64N(2400))*kib, Tag(1+rng.IntN(5))))
				if len(held) > 3 && rng.IntN(2) == 0 {
					s.release(held[0])
					held = held[1:]
				}
			}
			for _, number := range held {
				s.release(number)
			}
		}
	},
	"an array that grows": func(s *script, _ *rand.Rand) {
		size := uint64(50_000)
		old := s.create(size, 1)
		for size < 8*mib {
			size += size / 2
			grown := s.create(size, 1)
			s.release(old)
			old = grown
		}
	},
	"training": func(s *script, rng *rand.Rand) {
		var sizes []uint64
		for range 12 {
			size := (10 + rng.Uint64N(500)) * 1000
			sizes = append(sizes, size)
			s.create(size, 1) // weights
		}
		for range 12 {
			var activations []int
			batch := 1 + rng.Uint64N(3)
			for i, size := range sizes {
				activations = append(activations, s.create(size/2*batch, Tag(2+i%3)))
			}
			for i := range activations {
				gradient := s.create(sizes[len(sizes)-1-i], 6)
				s.release(activations[len(activations)-1-i])
				s.release(gradient)
			}
		}
	},
	"buffers that stay": func(s *script, rng *rand.Rand) {
		for range 300 {
			s.create(1+rng.Uint64N(100_000), Tag(rng.IntN(4)))
		}
	},
	"small ones, then large ones": func(s *script, rng *rand.Rand) {
		for range 40 {
			for len(s.live) < 30 {
				s.create(1+rng.Uint64N(20_000), 1)
			}
			for len(s.live) > 5 {
				s.release(s.oldest())
			}
		}
		for range 9 {
			s.create(2*mib-rng.Uint64N(300_000), 2)
		}
	},
	"anything": func(s *script, rng *rand.Rand) {
		for range 1500 {
			for s.now > 12*mib*s.unit || len(s.live) > 0 && rng.IntN(3) == 0 {
				s.release(s.any(rng))
			}
			s.create(1+rng.Uint64N(1<<(8+rng.IntN(15))), Tag(rng.IntN(6)))
		}
	},
}

func (s *script) oldest() int {
	for _, number := range s.order {
		if _, live := s.live[number]; live {
			return number
		}
	}
	return 0
}

func (s *script) any(rng *rand.Rand) int {
	for {
		number := s.order[rng.IntN(len(s.order))]
		if _, live := s.live[number]; live {
			return number
		}
	}
}

// on runs the program on a device with that much memory, and returns how many creates fail, and how many of these the memory
// of the host serves because they would not fail alone.
func (s *script) on(t *testing.T, policy string, memory uint64) (failures, hosted int) {
	d := newDriver(t, policy, "")
	d.pinned = true
	used := func() (sum uint64) {
		for _, b := range d.blocks {
			if b.slab == 0 {
				sum += b.size
			}
		}
		return sum
	}
	blocks, ofHost, held := map[int]Block{}, map[int]uint64{}, uint64(0)
	for i, step := range s.steps {
		if step.release != 0 {
			if b, there := blocks[step.release]; there {
				d.free(b, false)
			}
			held -= ofHost[step.release]
			continue
		}
		decision, ok := d.serve(step, memory, used)
		stats := d.policy.Stats()
		switch {
		case ok:
			blocks[i+1] = decision.Block
		case stats.ExcessBytes() > held && used()-stats.ExcessBytes()+held+step.size <= memory:
			ofHost[i+1] = step.size
			held += step.size
			hosted++
		default:
			failures++
		}
	}
	return failures, hosted
}

// serve serves one request as the library does: a slab is tried once, then the buffer alone; while the device has no
// room for that the pool gives blocks back.
func (d *driver) serve(s step, memory uint64, used func() uint64) (Decision, bool) {
	for _, align := range []uint64{128, 0} {
		d.align = align
		req := d.request(s.size, 1, s.tag)
		req.Heap = memory
		decision, out := d.policy.Decide(req, nil)
		d.release(out)
		need := decision.Size
		if decision.Slab != 0 {
			need = decision.SlabSize
		}
		for !decision.Hit && decision.Slab == 0 && used()+need > memory {
			out := d.policy.Drain(1, nil)
			if len(out) == 0 {
				d.policy.Abort(decision)
				return Decision{}, false
			}
			d.release(out)
		}
		if decision.Slab != 0 && used()+need > memory {
			d.policy.Abort(decision)
			continue
		}
		d.commit(decision, 1)
		return decision, true
	}
	return Decision{}, false
}

// TestNothingFailsThatFits runs programs on devices that have what they need, or more, under every policy. On small devices
// nothing is wasted.
func TestNothingFailsThatFits(t *testing.T) {
	for shape, write := range shapes {
		for seed := range uint64(2) {
			for _, unit := range []uint64{1, 64} {
				s := &script{live: map[int]uint64{}, unit: unit}
				write(s, rand.New(rand.NewPCG(seed, 3)))
				s.fits(t, shape, 100, 105, 150, 300)
			}
		}
	}
}

// fits runs the program on devices that have those percentages of what it needs.
func (s *script) fits(t *testing.T, shape string, percents ...uint64) {
	t.Helper()
	for _, policy := range PolicyNames() {
		for _, percent := range percents {
			memory := s.need/100*percent + percent
			failures, hosted := s.on(t, policy, memory)
			if failures > 0 || hosted > 0 && memory < smallDevice {
				t.Errorf("%s, %s on %d %% of %d bytes: %d of %d steps fail, the host serves %d", shape, policy, percent, s.need, failures, len(s.steps), hosted)
			}
		}
	}
}
