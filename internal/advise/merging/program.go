// Package merging finds memory blocks of an OpenCL program that could be one block, from what a run of the program did.
// It follows Memory Block Merging in Futhark (master's thesis, University of Copenhagen): liveness, interference, reuse
// (blocks that use the same memory one after the other) and coalescing (the source of a copy is created in place at its
// destination). A compiler proves its results; a run only shows them, so advice says how far it was confirmed. The
// package reads no clock and does no I/O.
package merging

import (
	"errors"
	"fmt"
	"math"
)

// None is the number that stands for no buffer and no step.
const None = -1

// Program is what one run did with memory, in the order of its calls. The package does not change it.
type Program struct {
	Buffers []Buffer
	Steps   []Step
	// Align is the alignment of a sub-buffer's origin, in bytes (CL_DEVICE_MEM_BASE_ADDR_ALIGN / 8); 0 if unknown.
	Align uint64
	// Names are the names of call sites. A site without a name is written as a number.
	Names map[uint32]string
	// Recording is the number of the recording that the run comes from. Programs of one recording count as one run when
	// a verdict is chosen.
	Recording int
	// Partial says that something is missing in the middle of the run: then all advice is Unsure.
	Partial bool
}

// Buffer is one memory object. Creates and releases are steps of their own, so that no two things happen at the same
// time.
type Buffer struct {
	Size  uint64 // requested bytes
	Site  uint32 // the tag of the call site
	Class uint32 // context and flags: only buffers of one class can share a block
	// Parent is the buffer that this one is a sub-buffer of, from byte Offset on; None for a buffer with memory of its
	// own.
	Parent int
	Offset uint64
	// Created and Released are steps: the buffer is there in [Created, Released). Released is None if the run ended
	// first.
	Created, Released int
	Pinned            Pin
}

// Pin is the reason why a buffer's memory cannot be part of another block.
type Pin uint8

// The reasons.
const (
	Free     Pin = iota // it can be
	HostPtr             // CL_MEM_USE_HOST_PTR: the memory belongs to the program
	Imported            // from OpenGL, Direct3D or a file descriptor
	SVM                 // pointers into it may be anywhere
	Image               // the driver chooses its layout
	Earlier             // created before the recording: its contents and users are unknown
	Other
)

// Kind is the kind of a step.
type Kind uint8

// The kinds. A create has a use if it brings data (CL_MEM_COPY_HOST_PTR).
const (
	KindCreate Kind = iota
	KindRelease
	KindKernel
	KindNative
	KindRead
	KindWrite
	KindCopy // reads its first use, writes its second; of buffers, rectangles and images
	KindFill
	KindMap
	KindUnmap
	KindSync     // a finish or wait
	KindHostRead // any other step by which the host learns what a command computed
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
	// Queue is the number of an in-order queue. Each command of an out-of-order queue gets a number of its own, because
	// its order is unknown.
	Queue  uint32
	Thread uint32 // the calling thread, from 1; 0 if unknown
	Site   uint32 // call site of a copy; 0 if unknown
	// Done is the step at which this step is known to have completed: the next finish or wait of its queue, or the step
	// itself if it blocks. None if the run does not show it.
	Done int
	// After are earlier steps that have certainly ended when this step begins, together with the steps before them on
	// their queues. They are the events that the step waits for.
	After []int
	Time  uint64 // ns; 0 if unknown
	Uses  []Use
}

// Extent says which bytes of [Offset, Offset+Bytes) a use may touch.
type Extent uint8

// The extents.
const (
	Whole     Extent = iota // any bytes of the buffer, as kernels do; Offset and Bytes have no meaning
	Range                   // all of these bytes
	Scattered               // Bytes in all, from Offset on, with gaps: rectangles
	Unknown                 // any bytes of the buffer, because the recording lacks the offset
)

// Use is a step's use of one buffer. If neither Reads nor Writes is set, the step may do both.
type Use struct {
	Buffer        int
	Offset, Bytes uint64
	Extent        Extent
	Reads, Writes bool
}

// NameOfSite returns the name of a site.
func (p *Program) NameOfSite(site uint32) string {
	if name := p.Names[site]; name != "" {
		return name
	}
	return fmt.Sprintf("site %d", site)
}

// checkProgram reports contradictions in a program.
func (p *Program) checkProgram() error {
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
	case b.Parent != None && !isWithin(b.Offset, b.Size, p.Buffers[b.Parent].Size):
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
		case u.Extent == Range && !isWithin(u.Offset, u.Bytes, b.Size):
			return fmt.Errorf("uses bytes %d+%d of buffer %d, which has %d", u.Offset, u.Bytes, u.Buffer, b.Size)
		case i < b.Created:
			return fmt.Errorf("uses buffer %d, which is created at step %d", u.Buffer, b.Created)
		}
	}
	return nil
}

// isWithin reports whether size bytes from an offset on lie within a whole.
func isWithin(offset, size, whole uint64) bool { return offset <= whole && size <= whole-offset }
