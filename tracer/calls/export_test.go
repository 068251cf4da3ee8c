package calls

import "fmt"

// CopyMin is checked against the command's.
const CopyMin = copyMin

// ImageBytes returns the size of an image from its format and descriptor.
func ImageBytes(format, desc []byte) uint64 {
	d := descOf(desc)
	return d.bytes(elementSize(format))
}

// Check returns what is wrong inside a book.
func (b *Book) Check() error {
	arguments := 0
	for _, k := range b.kernels {
		arguments += len(k.arguments)
	}
	if arguments != b.arguments || arguments > argumentsMax {
		return fmt.Errorf("%d arguments, counted %d", arguments, b.arguments)
	}
	if len(b.memories) > memoriesMax || max(len(b.contexts), len(b.queues), len(b.kernels), len(b.samplers)) > objectsMax {
		return fmt.Errorf("%d memory objects and more than there is room for", len(b.memories))
	}
	children := map[*memory]uint32{}
	for handle, m := range b.memories {
		if m.handle != handle || m.gone || m.references == 0 && m.children == 0 {
			return fmt.Errorf("memory %d is of handle %#x under %#x, %d references, %d children", m.number, m.handle, handle, m.references, m.children)
		}
		if m.parent != nil {
			children[m.parent]++
		}
	}
	for m, n := range children {
		if m.children != n || !m.gone && b.memories[m.handle] != m {
			return fmt.Errorf("memory %d has %d children, counted %d", m.number, n, m.children)
		}
	}
	for m := b.free; m != nil; m = m.parent {
		if b.memories[m.handle] == m || m.children != 0 {
			return fmt.Errorf("memory %d is free and in use", m.number)
		}
	}
	return nil
}

// Sizes returns how many objects a book has of each kind.
func (b *Book) Sizes() (contexts, queues, kernels, samplers, memories int) {
	return len(b.contexts), len(b.queues), len(b.kernels), len(b.samplers), len(b.memories)
}
