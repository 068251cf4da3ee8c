// Package merging finds memory blocks of an OpenCL program that could be one block, from what a run of it did. After
// Memory Block Merging in Futhark (master's thesis, University of Copenhagen): liveness, interference, reuse (blocks
// one after the other in the same memory) and coalescing (the source of a copy made where the copy puts it). What a
// compiler proves, a run only shows: advice says how far it was confirmed. It reads no clock and does no I/O.
package merging

import (
	"errors"
	"fmt"
	"math"
)

// None is the number of no buffer and no step.
const None = -1

// Program is what one run did with memory, in the order of its calls. Nothing here changes it.
type Program struct {
	Buffers []Buffer
	Steps   []Step
	// Align is what the origin of a sub-buffer must be a multiple of, in bytes (CL_DEVICE_MEM_BASE_ADDR_ALIGN / 8); 0
	// when it is not known.
	Align uint64
	// Names are those of sites. A site without one is written as a number.
	Names map[uint32]string
	// Recording numbers what the run comes from: programs of one recording count as one run when it is asked whether
	// advice is safe.
	Recording int
	// Partial says that something is missing in the middle of the run: all advice is Unsure then.
	Partial bool
}

// Buffer is one memory object. Creates and releases are steps of their own, so that no two things happen at once.
type Buffer struct {
	Size  uint64 // bytes asked for
	Site  uint32 // tag, or where it was created
	Class uint32 // context and flags: only buffers of one class can share a block
	// Parent is the buffer that this one is a part of, from its byte Offset on; None for memory of its own.
	Parent int
	Offset uint64
	// Created and Released are steps: it is there in [Created, Released). Released is None when the run ended first.
	Created, Released int
	Pinned            Pin
}

// Pin says why a buffer's memory cannot be taken from another block.
type Pin uint8

// The reasons.
const (
	Free     Pin = iota // it can
	HostPtr             // CL_MEM_USE_HOST_PTR: the memory is the program's
	Imported            // from OpenGL, Direct3D, a file descriptor
	SVM                 // pointers into it are anywhere
	Image               // its layout is the driver's
	Earlier             // from before the recording: its contents and users are unknown
	Other
)

// Kind of a step.
type Kind uint8

// The kinds. Create has a use when it brings data (CL_MEM_COPY_HOST_PTR).
const (
	KindCreate Kind = iota
	KindRelease
	KindKernel
	KindNative
	KindRead
	KindWrite
	KindCopy // reads its first use, writes its second; buffers, rectangles and images
	KindFill
	KindMap
	KindUnmap
	KindSync     // a finish or wait
	KindHostRead // anything else by which the host learns what a command computed
	KindOther
)

var kinds = [...]string{
	"create", "release", "kernel", "native kernel", "read", "write", "copy", "fill", "map", "unmap", "wait",
	"host read", "command",
}

// String returns the word for a kind.
func (k Kind) String() string { return kinds[min(int(k), len(kinds)-1)] }

// Step is one call.
type Step struct {
	Kind Kind
	// Queue numbers what runs in the order of its calls. Commands of an out-of-order queue each get a number of their
	// own, for their order is not known.
	Queue  uint32
	Thread uint32 // that called, from 1; 0 if unknown
	Site   uint32 // where a copy was enqueued; 0 when not known
	// Done is the step at which it is known to have completed: the next finish or wait of its queue, or itself when it
	// blocks. None when the run does not tell.
	Done int
	// After are earlier steps that have surely ended when this one begins, and so have those before them on their
	// queues: the events that it waits for.
	After []int
	Time  uint64 // ns; 0 when not known
	Nanos uint64 // ns that it took on the device; 0 when not known
	Uses  []Use
}

// Extent says which bytes of [Offset, Offset+Bytes) a use means.
type Extent uint8

// The extents.
const (
	Whole     Extent = iota // any bytes of the buffer, as kernels do; Offset and Bytes do not count
	Range                   // all of these
	Scattered               // Bytes of them, from Offset on, with gaps: rectangles
	Unknown                 // any bytes of the buffer: the recording lacks the offset
)

// Use is one buffer of a step. Neither Reads nor Writes means that it is not known: it may do both.
type Use struct {
	Buffer        int
	Offset, Bytes uint64
	Extent        Extent
	Reads, Writes bool
}

// Name returns the name of a site.
func (p *Program) Name(site uint32) string {
	if name := p.Names[site]; name != "" {
		return name
	}
	return fmt.Sprintf("site %d", site)
}

// check returns what is wrong with a program.
func (p *Program) check() error {
	if len(p.Steps) >= math.MaxInt32 || len(p.Buffers) >= math.MaxInt32 {
		return errors.New("too many steps or buffers: at most 2^31-1 of each")
	}
	for i := range p.Buffers {
		if err := p.checkBuffer(i); err != nil {
			return fmt.Errorf("buffer %d: %w", i, err)
		}
	}
	for i := range p.Steps {
		if err := p.checkStep(i); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (p *Program) checkBuffer(i int) error {
	b := &p.Buffers[i]
	switch {
	case b.Created < 0 || b.Created > len(p.Steps):
		return fmt.Errorf("created at step %d of %d", b.Created, len(p.Steps))
	case b.Released != None && (b.Released < b.Created || b.Released > len(p.Steps)):
		return fmt.Errorf("released at step %d of %d, created at %d", b.Released, len(p.Steps), b.Created)
	case b.Parent < None || b.Parent >= i:
		return fmt.Errorf("is a part of buffer %d: parents come before their parts", b.Parent)
	case b.Parent != None && !within(b.Offset, b.Size, p.Buffers[b.Parent].Size):
		return fmt.Errorf("its bytes %d+%d are not within its parent's %d", b.Offset, b.Size, p.Buffers[b.Parent].Size)
	}
	return nil
}

func (p *Program) checkStep(i int) error {
	s := &p.Steps[i]
	if s.Done != None && s.Done < i || s.Done > len(p.Steps) {
		return fmt.Errorf("done at step %d", s.Done)
	}
	for _, x := range s.After {
		if x < 0 || x >= i {
			return fmt.Errorf("comes after step %d", x)
		}
	}
	for _, u := range s.Uses {
		if u.Buffer < 0 || u.Buffer >= len(p.Buffers) {
			return fmt.Errorf("uses buffer %d of %d", u.Buffer, len(p.Buffers))
		}
		b := &p.Buffers[u.Buffer]
		switch {
		case u.Extent == Range && !within(u.Offset, u.Bytes, b.Size):
			return fmt.Errorf("uses bytes %d+%d of buffer %d, which has %d", u.Offset, u.Bytes, u.Buffer, b.Size)
		case i < b.Created:
			return fmt.Errorf("uses buffer %d, which is created at step %d", u.Buffer, b.Created)
		}
	}
	return nil
}

// within reports whether size bytes from an offset on lie in a whole.
func within(offset, size, whole uint64) bool { return offset <= whole && size <= whole-offset }
