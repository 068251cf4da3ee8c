package calls

import "fmt"

// ImageBytes returns the size of an image from its format and descriptor.
func ImageBytes(format, desc []byte) uint64 {
	d := descOf(desc)
	return d.bytes(elementSize(format))
}

// Check returns the first inconsistency of a tracker.
func (t *Tracker) Check() error {
	arguments := 0
	for _, k := range t.kernels {
		arguments += len(k.arguments)
	}
	if arguments != t.arguments || arguments > argumentsMax {
		return fmt.Errorf("%d arguments, counted %d", arguments, t.arguments)
	}
	if len(t.memories) > memoriesMax || max(len(t.contexts), len(t.queues), len(t.kernels), len(t.samplers)) > objectsMax {
		return fmt.Errorf("%d memory objects and more than there is room for", len(t.memories))
	}
	children := map[*memory]uint32{}
	for handle, m := range t.memories {
		if m.handle != handle || m.gone || m.references == 0 && m.children == 0 {
			return fmt.Errorf("memory %d is of handle %#x under %#x, %d references, %d children", m.number, m.handle, handle, m.references, m.children)
		}
		if m.parent != nil {
			children[m.parent]++
		}
	}
	for m, n := range children {
		if m.children != n || !m.gone && t.memories[m.handle] != m {
			return fmt.Errorf("memory %d has %d children, counted %d", m.number, n, m.children)
		}
	}
	for m := t.free; m != nil; m = m.parent {
		if t.memories[m.handle] == m || m.children != 0 {
			return fmt.Errorf("memory %d is free and in use", m.number)
		}
	}
	return nil
}

// Sizes returns the number of objects of each kind.
func (t *Tracker) Sizes() (contexts, queues, kernels, samplers, memories int) {
	return len(t.contexts), len(t.queues), len(t.kernels), len(t.samplers), len(t.memories)
}
