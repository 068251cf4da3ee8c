package stats

import (
	"cmp"
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// listBySize returns the size ranges that had objects.
func (s *shares) listBySize() []Bucket {
	buckets := []Bucket{}
	for i := range placesMax {
		share, some := s.shareForSnapshot(bySize, i)
		if !some {
			continue
		}
		b := Bucket{Share: share}
		if i > 0 {
			b.Smallest, b.Largest = 1<<(i-1), 1<<(i-1)|(1<<(i-1)-1)
		}
		buckets = append(buckets, b)
	}
	return buckets
}

// listByKind returns the kinds of memory that had objects.
func (s *shares) listByKind() []Kind {
	list := []Kind{}
	for i := range int(kinds) {
		if share, some := s.shareForSnapshot(byKind, i); some {
			list = append(list, Kind{wire.Memory(i), share})
		}
	}
	return list
}

// NounForMemory returns what sentences call the memory objects of a run, with live those that live: their kind, where all are of one.
func NounForMemory(list []Kind, live bool) string {
	word := ""
	for i := range list {
		if live && list[i].Live == 0 {
			continue
		}
		if word != "" {
			return "memory object"
		}
		switch kind := list[i].Memory; {
		case kind <= wire.MemoryPipe:
			word = kind.WordsForCreated()
		case kind >= wire.MemoryExternal:
			word = "memory object"
		default:
			word = strings.ToUpper(kind.WordsForCreated()[:len("svm")]) + " allocation"
		}
	}
	return cmp.Or(word, "buffer")
}

// listByClass returns the classes.
func (s *shares) listByClass() []Class {
	list := s.listDivision(byClass, &s.classes, className)
	classes := make([]Class, len(list))
	for i, n := range list {
		classes[i] = Class{Name: n.Name, Share: n.Share}
		if i < int(s.classes.known) {
			key := s.classes.keys[i+1]
			classes[i].Context, classes[i].Flags = uint16(key>>16), uint16(key)
		}
	}
	return classes
}

// className returns the name of the class that has a key.
func className(key uint64) string {
	kind, context, flags := wire.Memory(key>>32), uint16(key>>16), uint16(key)
	name := ""
	if kind != wire.MemoryBuffer {
		name = kind.WordsForCreated() + ", "
	}
	return fmt.Sprintf("context %d, %s%s", context, name, flagsText(flags))
}

// listByThread returns the threads. Several threads may have the same number, one after the other or in different namespaces.
func (s *shares) listByThread() []Named {
	return s.listDivision(byThread, &s.threads, func(key uint64) string {
		if uint32(key) == 0 {
			return "thread unknown"
		}
		return fmt.Sprintf("thread %d", uint32(key))
	})
}

// listByDevice returns the devices.
func (s *shares) listByDevice() []Named {
	return s.listDivision(byDevice, &s.devices, func(key uint64) string { return s.names[key] })
}

// listDivision returns the shares of a division with keys. name makes names of the keys.
func (s *shares) listDivision(division int, k *keys, name func(key uint64) string) []Named {
	list := make([]Named, 0, k.known+1)
	for i := 1; i <= int(k.known); i++ {
		share, _ := s.shareForSnapshot(division, i)
		list = append(list, Named{name(k.keys[i]), share})
	}
	if share, some := s.shareForSnapshot(division, 0); some {
		list = append(list, Named{others, share})
	}
	return list
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
