package stats

import (
	"fmt"
	"math/bits"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ClassesMax is the most classes that are counted separately.
const ClassesMax = 64

// Share is what one size range or one class has of the counters and gauges. Free memory in slabs has neither.
type Share struct {
	Hits, Misses uint64
	Creates      uint64 // of objects with memory of their own
	InUse        uint64
	Cached       uint64
	Cooling      uint64
	Blocks       uint64 // cached
}

// HitRate returns hits / (hits + misses).
func (s *Share) HitRate() float64 { return rate(s.Hits, s.Hits+s.Misses) }

// Bucket is a range of granted sizes: a power of two and those up to the next.
type Bucket struct {
	Smallest, Largest uint64 // bytes
	Share
}

// Kind is one kind of memory.
type Kind struct {
	Memory wire.Memory
	Share
}

// Class is a context with a kind of memory and its flags, in all processes that number the context the same.
type Class struct {
	Name    string // "context 1, READ_WRITE", "context 1, image, READ_WRITE", or "others"
	Context uint16
	Flags   uint16 // the lowest 16 bits of cl_mem_flags
	Share
}

// share is a Share with signed gauges, for the reason given at ledger.
type share struct {
	hits, misses, creates          uint64
	inUse, cached, cooling, blocks int64
}

func (s *share) count(cools bool, bytes, blocks int64) {
	if cools {
		s.cooling += bytes
		return
	}
	s.cached += bytes
	s.blocks += blocks
}

func (s *share) show() Share {
	return Share{
		Hits: s.hits, Misses: s.misses, Creates: s.creates, InUse: heap.Amount(s.inUse), Cached: heap.Amount(s.cached),
		Cooling: heap.Amount(s.cooling), Blocks: heap.Amount(s.blocks),
	}
}

// kinds is how many kinds of memory there are.
const kinds = int(wire.MemoryExternal) + 1

// kindOf returns an index for a kind: one that this version does not know counts as external.
func kindOf(m wire.Memory) int { return min(int(m), kinds-1) }

// shares divide what happens by size, kind and class, each in O(1).
type shares struct {
	sizes   [65]share              // by bits.Len64 of the size
	kinds   [kinds]share           // by wire.Memory
	classes [ClassesMax + 1]share  // the first is that of all others
	keys    [ClassesMax + 1]uint64 // of the classes
	index   table.Table            // key to place
	known   int32
}

// class returns the place of a class, 0 when there are too many.
func (s *shares) class(kind wire.Memory, scope, access uint16) int32 {
	key := uint64(kind)<<32 | uint64(scope)<<16 | uint64(access)
	if s.known > 0 && s.keys[s.known] == key {
		return s.known
	}
	if place := s.index.Get(key); place >= 0 {
		return place
	}
	if s.known == ClassesMax {
		return 0
	}
	s.known++
	s.keys[s.known] = key
	s.index.Put(key, s.known)
	return s.known
}

// of returns the shares that something of a size, a kind and a class counts in.
func (s *shares) of(size uint64, kind wire.Memory, class int32) [3]*share {
	return [3]*share{&s.sizes[bits.Len64(size)], &s.kinds[kindOf(kind)], &s.classes[class]}
}

func (s *shares) create(class int32, o *heap.Object) {
	for _, s := range s.of(o.Granted, o.Memory, class) {
		s.creates++
		switch o.Outcome {
		case wire.OutcomeHit:
			s.hits++
		case wire.OutcomeMiss:
			s.misses++
		default: // never eligible for the pool
		}
	}
}

// bySize returns the ranges that something happened in.
func (s *shares) bySize() []Bucket {
	buckets := []Bucket{}
	for i := range s.sizes {
		if s.sizes[i] == (share{}) {
			continue
		}
		b := Bucket{Share: s.sizes[i].show()}
		if i > 0 {
			b.Smallest, b.Largest = 1<<(i-1), 1<<(i-1)|(1<<(i-1)-1)
		}
		buckets = append(buckets, b)
	}
	return buckets
}

// byKind returns the kinds of memory that there were.
func (s *shares) byKind() []Kind {
	list := []Kind{}
	for i := range s.kinds {
		if s.kinds[i] != (share{}) {
			list = append(list, Kind{wire.Memory(i), s.kinds[i].show()})
		}
	}
	return list
}

// byClass returns the classes.
func (s *shares) byClass() []Class {
	classes := make([]Class, 0, s.known+1)
	for i := range s.known {
		key := s.keys[i+1]
		kind, context, flags := wire.Memory(key>>32), uint16(key>>16), uint16(key)
		name := ""
		if kind != wire.MemoryBuffer {
			name = kind.String() + ", "
		}
		classes = append(classes, Class{
			Name: fmt.Sprintf("context %d, %s%s", context, name, flagsText(flags)), Context: context, Flags: flags,
			Share: s.classes[i+1].show(),
		})
	}
	if s.classes[0] != (share{}) {
		classes = append(classes, Class{Name: "others", Share: s.classes[0].show()})
	}
	return classes
}

// flagNames are the bits of cl_mem_flags (OpenCL 3.0 §5.2.1, §5.6.1) from the lowest on.
var flagNames = [...]string{
	"READ_WRITE", "WRITE_ONLY", "READ_ONLY", "USE_HOST_PTR", "ALLOC_HOST_PTR", "COPY_HOST_PTR", "",
	"HOST_WRITE_ONLY", "HOST_READ_ONLY", "HOST_NO_ACCESS", "SVM_FINE_GRAIN_BUFFER", "SVM_ATOMICS", "KERNEL_READ_AND_WRITE",
}

// flagsText names the bits, without their CL_MEM_.
func flagsText(flags uint16) string {
	if flags == 0 {
		return "no flags"
	}
	var names []string
	for bit, name := range flagNames {
		if flags&(1<<bit) != 0 && name != "" {
			names = append(names, name)
			flags &^= 1 << bit
		}
	}
	if flags != 0 {
		names = append(names, fmt.Sprintf("%#x", flags))
	}
	return strings.Join(names, " | ")
}
