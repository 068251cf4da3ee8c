package devicebench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// How much is measured.
const (
	visitMost    = 64                    // repetitions with a size before another size has its turn
	visitTime    = 20 * time.Millisecond // and about how long they may take
	enough       = 500                   // repetitions with a size after which more would tell nothing
	freshMost    = 8                     // new buffers of a size that are held at a time
	freshShare   = 3                     // the new buffers of a size may take 1/freshShare of the time that is left
	unknownShare = 3                     // and so may a size of unknown cost
	firstGuess   = time.Millisecond      // what the first repetition is taken to need
)

// sampler measures one device. It holds no memory when a method of it returns.
type sampler struct {
	d      driver
	sizes  []uint64 // ascending; cut short when memory or time do not suffice for the rest
	align  uint64   // of parts, bytes; 0: no parts are measured
	budget time.Duration
	stop   func() bool // true once it should end
	tell   func(*sample)
	parts  func(create, release float64)
	note   func(string)

	warm  memory // SizeMin bytes
	begun time.Duration
	cost  map[uint64]time.Duration // of the last repetition with a size
	n     map[uint64]int
}

// measureAll measures until time is up, or nothing more can be learnt, or stop returns true. The error is the driver's.
func (s *sampler) measureAll() (err error) {
	s.begun = s.d.elapsed()
	s.cost, s.n = map[uint64]time.Duration{}, map[uint64]int{}
	if s.warm, _, err = s.d.createBuffer(SizeMin); err != nil {
		return err
	}
	defer func() {
		_, released := s.d.releaseBuffer(s.warm)
		err = errors.Join(err, released)
	}()
	// The first calls load and build things that have nothing to do with memory.
	for _, poked := range []bool{false, true} {
		if err := s.repeatOnce(&sample{Size: s.sizes[0], Poked: poked}); err != nil {
			return err
		}
	}
	if err := s.measureFreshMemory(); err != nil {
		return err
	}
	if err := s.measureSizesAscending(); err != nil {
		return err
	}
	return s.measureSizesRepeatedly()
}

func (s *sampler) timeLeft() time.Duration { return s.budget - (s.d.elapsed() - s.begun) }

func (s *sampler) isTimeOver() bool { return s.stop() || s.timeLeft() <= 0 }

// expectedRepetitionTime is what a repetition with a size will need: what it needed last, or what the next smaller size lets
// expect.
func (s *sampler) expectedRepetitionTime(i int) (need time.Duration, known bool) {
	if need, known = s.cost[s.sizes[i]]; known {
		return need, true
	}
	for j := i - 1; j >= 0; j-- {
		if need, found := s.cost[s.sizes[j]]; found {
			// Memory that a cache served may come from the system from this size on.
			return (need + firstGuess) * time.Duration(s.sizes[i]/s.sizes[j]), false
		}
	}
	return firstGuess, false
}

// areRepetitionsAffordable reports whether that many repetitions with a size fit into what is left of the time.
func (s *sampler) areRepetitionsAffordable(i, n int) bool {
	need, known := s.expectedRepetitionTime(i)
	left := s.timeLeft()
	if !known {
		left /= unknownShare
	}
	return need*time.Duration(n) <= left
}

// repeatOnce does one repetition and remembers what it needed.
func (s *sampler) repeatOnce(one *sample) error {
	began := s.d.elapsed()
	m, err := one.createAndUse(s.d, s.warm)
	if err == nil {
		err = one.releaseBuffer(s.d, m)
	}
	s.cost[one.Size] = s.d.elapsed() - began
	return err
}

// buffersHeldAtOnce is how many new buffers of a size are held at a time with those of all smaller sizes, which together take
// hardly more than the largest size.
func (s *sampler) buffersHeldAtOnce(size uint64) int {
	fit := s.sizes[len(s.sizes)-1] / size
	if fit < 4 {
		return 0
	}
	return int(min(max(2, fit/16), freshMost))
}

// measureFreshMemory measures memory that the process never had: it keeps whatever it got until it has measured it all.
func (s *sampler) measureFreshMemory() (err error) {
	var list []*sample
	var held []memory
	defer func() {
		for i, m := range held {
			if released := list[i].releaseBuffer(s.d, m); released != nil {
				err = errors.Join(err, released)
				continue
			}
			s.tell(list[i])
		}
	}()
	for i, size := range s.sizes {
		copies := s.buffersHeldAtOnce(size)
		if copies == 0 || !s.areRepetitionsAffordable(i, freshShare*copies) {
			return nil
		}
		for k := range copies {
			if s.isTimeOver() {
				return nil
			}
			one := &sample{Size: size, Fresh: true, Poked: k%2 == 1}
			began := s.d.elapsed()
			m, err := one.createAndUse(s.d, s.warm)
			s.cost[size] = s.d.elapsed() - began
			if errors.Is(err, errExhausted) {
				return nil // with so much held; the size alone may be had
			}
			if err != nil {
				return err
			}
			list, held = append(list, one), append(held, m)
		}
	}
	return nil
}

// measureSizesAscending visits each size once, the smallest first, to learn which there can be and what they cost.
func (s *sampler) measureSizesAscending() error {
	for i := 0; i < len(s.sizes) && !s.stop(); i++ {
		if i > 0 && !s.areRepetitionsAffordable(i, 2) {
			s.leaveOutSizesFrom(i, "would take more time than there is: give more with --budget")
			return nil
		}
		if err := s.measureSize(i); err != nil {
			return err
		}
	}
	return s.measureSubBuffers()
}

// measureSizesRepeatedly visits all sizes again and again, each time in another order, so that what changes with time does not look as
// if it changed with size.
func (s *sampler) measureSizesRepeatedly() error {
	for round := uint64(0); !s.isTimeOver(); round++ {
		visited := false
		for _, i := range rand.New(rand.NewPCG(round, 1)).Perm(len(s.sizes)) {
			if i >= len(s.sizes) || s.n[s.sizes[i]] >= enough || !s.areRepetitionsAffordable(i, 1) {
				continue
			}
			if s.isTimeOver() {
				return nil
			}
			visited = true
			if err := s.measureSize(i); err != nil {
				return err
			}
		}
		if !visited {
			return nil
		}
		if err := s.measureSubBuffers(); err != nil {
			return err
		}
	}
	return nil
}

// measureSize measures a size some times, each create right after a release of the same size.
func (s *sampler) measureSize(i int) error {
	size := s.sizes[i]
	began := s.d.elapsed()
	var list []*sample // reported when nothing is measured: the reader needs a processor, too
	defer func() {
		for _, one := range list {
			s.tell(one)
		}
	}()
	for n := range visitMost {
		if n > 0 && (s.d.elapsed()-began > visitTime || s.isTimeOver()) {
			break
		}
		one := &sample{Size: size, Poked: s.n[size]%2 == 1}
		err := s.repeatOnce(one)
		if errors.Is(err, errExhausted) && i > 0 {
			s.leaveOutSizesFrom(i, fmt.Sprintf("are not to be had: %v", innermostError(err)))
			return nil
		}
		if err != nil {
			return err
		}
		s.n[size]++
		list = append(list, one)
	}
	return nil
}

// leaveOutSizesFrom leaves a size out from now on, and all that are larger.
func (s *sampler) leaveOutSizesFrom(i int, why string) {
	s.note(fmt.Sprintf("buffers of %s and more %s", units.FormatLong(s.sizes[i]), why))
	s.sizes = s.sizes[:i]
}

// innermostError is the innermost of joined errors: what the driver said.
func innermostError(err error) error {
	for {
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			return err
		}
		list := joined.Unwrap()
		err = list[len(list)-1]
	}
}

// measureSubBuffers measures parts of a buffer.
func (s *sampler) measureSubBuffers() error {
	if s.align == 0 {
		return nil
	}
	whole, _, err := s.d.createBuffer(max(SizeMin, 2*s.align))
	if err != nil {
		return err
	}
	for range visitMost {
		if err = s.measureSubBuffer(whole); err != nil {
			break
		}
	}
	_, released := s.d.releaseBuffer(whole)
	return errors.Join(err, released)
}

func (s *sampler) measureSubBuffer(whole memory) error {
	part, create, err := s.d.createSubBuffer(whole, s.align, s.align)
	if err != nil {
		return err
	}
	release, err := s.d.releaseBuffer(part)
	if err == nil {
		s.parts(create, release)
	}
	return err
}
