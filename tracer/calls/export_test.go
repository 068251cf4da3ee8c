package calls

import "fmt"

// ImageBytes returns the size of an image from its format and descriptor.
func ImageBytes(format, desc []byte) uint64 {
	d := parseImageDesc(desc)
	return d.imageBytes(elementSize(format))
}

// Check returns the first inconsistency of a tracker.
func (t *Tracker) Check() error {
	arguments := 0
	for _, k := range t.kernels.byHandle {
		arguments += len(k.arguments)
	}
	if arguments != t.kernels.arguments || arguments > argumentsMax {
		return fmt.Errorf("%d arguments, counted %d", arguments, t.kernels.arguments)
	}
	if len(t.memories.byHandle) > memoriesMax || max(len(t.contexts.byHandle), len(t.queues.byHandle), len(t.kernels.byHandle), len(t.samplers.byHandle)) > objectsMax {
		return fmt.Errorf("%d memory objects and more than there is room for", len(t.memories.byHandle))
	}
	children := map[*memory]uint32{}
	for handle, m := range t.memories.byHandle {
		if m.handle != handle || m.gone || m.references == 0 && m.children == 0 {
			return fmt.Errorf("memory %d is of handle %#x under %#x, %d references, %d children", m.number, m.handle, handle, m.references, m.children)
		}
		if m.parent != nil {
			children[m.parent]++
		}
	}
	for m, n := range children {
		if m.children != n || !m.gone && t.memories.byHandle[m.handle] != m {
			return fmt.Errorf("memory %d has %d children, counted %d", m.number, n, m.children)
		}
	}
	for m := t.memories.free; m != nil; m = m.parent {
		if t.memories.byHandle[m.handle] == m || m.children != 0 {
			return fmt.Errorf("memory %d is free and in use", m.number)
		}
	}
	return nil
}

// Sizes returns the number of objects of each kind.
func (t *Tracker) Sizes() (contexts, queues, kernels, samplers, memories int) {
	return len(t.contexts.byHandle), len(t.queues.byHandle), len(t.kernels.byHandle), len(t.samplers.byHandle), len(t.memories.byHandle)
}
