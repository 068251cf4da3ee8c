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

// Class is a context with the flags of buffers, in all processes that number the context the same.
type Class struct {
	Name    string // "context 1, READ_WRITE", or "others"
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

// shares divide what happens by size and by class, each in O(1).
type shares struct {
	sizes   [65]share              // by bits.Len64 of the size
	classes [ClassesMax + 1]share  // the first is that of all others
	keys    [ClassesMax + 1]uint32 // of the classes
	index   table.Table            // key to place
	known   int32
}

// class returns the place of a class, 0 when there are too many.
func (s *shares) class(scope, access uint16) int32 {
	key := uint32(scope)<<16 | uint32(access)
	if s.known > 0 && s.keys[s.known] == key {
		return s.known
	}
	if place := s.index.Get(uint64(key)); place >= 0 {
		return place
	}
	if s.known == ClassesMax {
		return 0
	}
	s.known++
	s.keys[s.known] = key
	s.index.Put(uint64(key), s.known)
	return s.known
}

// of returns the shares that something of a size and a class counts in.
func (s *shares) of(size uint64, class int32) [2]*share {
	return [2]*share{&s.sizes[bits.Len64(size)], &s.classes[class]}
}

func (s *shares) create(class int32, o *heap.Object) {
	for _, s := range s.of(o.Granted, class) {
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

// byClass returns the classes.
func (s *shares) byClass() []Class {
	classes := make([]Class, 0, s.known+1)
	for i := range s.known {
		key := s.keys[i+1]
		context, flags := uint16(key>>16), uint16(key)
		classes = append(classes, Class{
			Name: fmt.Sprintf("context %d, %s", context, flagsText(flags)), Context: context, Flags: flags,
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
