package callsite

// kernelsMax is the most kernels whose names are kept.
const kernelsMax = 1024

// Kernels holds the names of the latest kernels of a process by id. The zero value is empty. It is for one goroutine.
type Kernels struct {
	names map[uint64]string
	order []uint64 // ids; once the ring is full, the oldest is at next
	next  int
}

// AddKernel takes the id and the payload of a KERNEL event. The first name of an id stays.
func (k *Kernels) AddKernel(id uint64, name []byte) {
	if k.names == nil {
		k.names = map[uint64]string{}
	}
	if _, known := k.names[id]; known || id == 0 {
		return
	}
	if len(k.order) < kernelsMax {
		k.order = append(k.order, id)
	} else {
		delete(k.names, k.order[k.next])
		k.order[k.next] = id
		k.next = (k.next + 1) % kernelsMax
	}
	k.names[id] = CleanFunctionName(name)
}

// Name returns the name of a kernel, empty when it is unknown or was dropped.
func (k *Kernels) Name(id uint64) string { return k.names[id] }
