package model

// kernelsMax bounds the kernels whose names are kept.
const kernelsMax = 1024

// Kernels are the names of a process's latest kernels, by number. Its zero value has none; it is for one goroutine.
type Kernels struct {
	names map[uint64]string
	order []uint64 // numbers, the oldest at next once the ring is full
	next  int
}

// Add takes the number and payload of a KERNEL event.
func (k *Kernels) Add(number uint64, name []byte) {
	if k.names == nil {
		k.names = map[uint64]string{}
	}
	if _, known := k.names[number]; known || number == 0 {
		return
	}
	if len(k.order) < kernelsMax {
		k.order = append(k.order, number)
	} else {
		delete(k.names, k.order[k.next])
		k.order[k.next] = number
		k.next = (k.next + 1) % kernelsMax
	}
	k.names[number] = Clean(short(name))
}

// Name returns a kernel's name, empty when it is not known, or no longer.
func (k *Kernels) Name(number uint64) string { return k.names[number] }
