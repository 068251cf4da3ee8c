package devicebench

import (
	"errors"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/devicebench/cl"
)

// memory is a buffer of a driver.
type memory any

// driver is what is measured. Every call returns how long it took, in ns. Errors that say that memory is short are
// errExhausted.
type driver interface {
	createBuffer(size uint64) (memory, float64, error)
	createSubBuffer(m memory, origin, size uint64) (memory, float64, error)
	releaseBuffer(m memory) (float64, error)
	fillBuffer(m memory, size uint64) (float64, error) // all of it, to the end
	writeWord(m memory) (float64, error)               // four bytes, to the end
	elapsed() time.Duration                            // since some moment
}

// errExhausted says that there is no more memory: a size not to be had, not a failure.
var errExhausted = errors.New("memory is short")

// device is a driver's device as package cl reaches it.
type device struct {
	session *cl.Session
	begun   time.Time
	nothing float64 // ns that each call is measured too long
}

// openDevice prepares a device for being measured.
func openDevice(d cl.Device) (*device, error) {
	session, err := cl.NewSession(d)
	if err != nil {
		return nil, err
	}
	var list [101]float64
	for i := range list {
		list[i] = float64(cl.EmptyCallTime())
	}
	return &device{session, time.Now(), median(list[:])}, nil
}

func (d *device) netNS(took time.Duration, err error) (float64, error) {
	if errors.Is(err, cl.MemObjectAllocationFailure) || errors.Is(err, cl.OutOfResources) ||
		errors.Is(err, cl.OutOfHostMemory) || errors.Is(err, cl.InvalidBufferSize) {
		err = errors.Join(errExhausted, err)
	}
	return max(0, float64(took)-d.nothing), err
}

func (d *device) createBuffer(size uint64) (memory, float64, error) {
	m, took, err := d.session.CreateBuffer(size)
	ns, err := d.netNS(took, err)
	return m, ns, err
}

func (d *device) createSubBuffer(m memory, origin, size uint64) (memory, float64, error) {
	part, took, err := m.(cl.Mem).CreateSubBuffer(origin, size)
	ns, err := d.netNS(took, err)
	return part, ns, err
}

func (d *device) releaseBuffer(m memory) (float64, error) {
	return d.netNS(m.(cl.Mem).ReleaseMemObject())
}

// pattern is what buffers are filled with: not zero, which a driver might not write at all.
const pattern = 0x5ca1ab1e

func (d *device) fillBuffer(m memory, size uint64) (float64, error) {
	return d.netNS(d.session.FillBuffer(m.(cl.Mem), pattern, size))
}

func (d *device) writeWord(m memory) (float64, error) {
	return d.netNS(d.session.WriteBuffer(m.(cl.Mem), 0, pattern))
}

func (d *device) elapsed() time.Duration { return time.Since(d.begun) }

// sample is what one buffer cost from its create to its release, ns.
type sample struct {
	Size   uint64
	Fresh  bool // memory that the process never had
	Poked  bool // four bytes were written before all was: First is what was left to do
	Create float64
	// Poke and PokeAgain are the first and the second write of four bytes, First and Again those of all of it.
	Poke, PokeAgain float64
	First, Again    float64
	Release         float64
}

// createAndUse creates a buffer and uses it; warm is a small buffer that was used before. On an error it releases the buffer.
func (s *sample) createAndUse(d driver, warm memory) (memory, error) {
	m, ns, err := d.createBuffer(s.Size)
	if err != nil {
		return nil, err
	}
	s.Create = ns
	if err := s.writeBuffer(d, m, warm); err != nil {
		_, released := d.releaseBuffer(m)
		return nil, errors.Join(err, released)
	}
	return m, nil
}

// writeBuffer writes the buffer. Each kind of command is given to the warm buffer first: what it costs to rouse threads of the
// driver or a device that went to rest must not look like memory that is touched for the first time.
func (s *sample) writeBuffer(d driver, m, warm memory) error {
	fill := func() (float64, error) { return d.fillBuffer(m, s.Size) }
	poke := func() (float64, error) { return d.writeWord(m) }
	var rousing float64
	steps := []struct {
		into *float64
		do   func() (float64, error)
	}{
		{&rousing, func() (float64, error) { return d.writeWord(warm) }}, {&s.Poke, poke}, {&s.PokeAgain, poke},
		{&rousing, func() (float64, error) { return d.fillBuffer(warm, SizeMin) }}, {&s.First, fill}, {&s.Again, fill},
	}
	if !s.Poked {
		steps = steps[3:]
	}
	for _, step := range steps {
		ns, err := step.do()
		if err != nil {
			return err
		}
		*step.into = ns
	}
	return nil
}

// releaseBuffer releases the buffer.
func (s *sample) releaseBuffer(d driver, m memory) error {
	var err error
	s.Release, err = d.releaseBuffer(m)
	return err
}
