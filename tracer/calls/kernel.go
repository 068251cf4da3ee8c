package calls

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Names of kernels whose names we did not see.
const (
	unknownKernel = "unknown before attach"
	unnamedKernel = "made by clCreateKernelsInProgram"
)

type kernel struct {
	object
	name      string
	arguments []uint64 // by index: handles and addresses, marked; 0: neither
}

// kernels are those of a process, by handle.
type kernels struct {
	*writer
	ledger   *ledger
	memories *memories

	byHandle  map[uint64]*kernel
	last      uint64  // number of the latest
	arguments int     // of all kernels
	latest    *kernel // whose argument was set last, and its handle
	handle    uint64
}

// Two upper bits mark what we know of an argument. They carry no information in an address: they are equal to those below.
const (
	isPointer = 1 << 63 // an address of shared memory
	isSettled = 1 << 62 // of memory that was known when it became an argument
	isMarked  = isPointer | isSettled
)

// argumentWithoutMarks returns an argument without its marks. Addresses of a device's own memory may be in the upper half.
func argumentWithoutMarks(value uint64) uint64 { return uint64(int64(value<<2) >> 2) }

func (ks *kernels) handleCreate(s *wire.Sample) { ks.addKernel(s, s.Result, string(copiedText(s))) }

// handleCreateKernels handles clCreateKernelsInProgram, which does not say the names of the kernels.
func (ks *kernels) handleCreateKernels(s *wire.Sample) {
	list, made := s.CopiedArgument(0), uint32(s.Argument[1])
	if int32(s.Result) != 0 {
		return
	}
	if count := s.CopiedArgument(1); count != nil {
		made = min(made, uint32(numberAt(count, 0)))
	}
	for i := range countCopiedHandles(list, made) {
		ks.addKernel(s, numberAt(list, i), unnamedKernel)
	}
}

func (ks *kernels) handleClone(s *wire.Sample) {
	if s.Result == 0 {
		return
	}
	source := ks.kernelOfHandle(s, s.Argument[0])
	if source == nil {
		return
	}
	if k := ks.addKernel(s, s.Result, source.name); k != nil && ks.arguments+len(source.arguments) <= argumentsMax {
		k.arguments = slices.Clone(source.arguments)
		ks.arguments += len(k.arguments)
	}
}

// addKernel adds a kernel. It returns nil if the kernel is known already or there is no room.
func (ks *kernels) addKernel(s *wire.Sample, handle uint64, name string) *kernel {
	old := ks.byHandle[handle]
	if handle == 0 || old != nil && old.isFromNestedCall(s) || old == nil && len(ks.byHandle) >= objectsMax {
		return nil
	}
	ks.memories.endPreviousOfHandle(s, handle)
	ks.removeKernel(handle)
	ks.last++
	k := &kernel{object: newObject(s, ks.last), name: name}
	ks.byHandle[handle] = k
	ks.ledger.countCreated(s, &k.object, wire.HeldKernel)
	ks.writeKernelName(s, k)
	return k
}

// kernelOfHandle returns the kernel of a handle that the driver accepts, nil if the handle is 0 or there is no room.
func (ks *kernels) kernelOfHandle(s *wire.Sample, handle uint64) *kernel {
	if ks.latest != nil && ks.handle == handle {
		return ks.latest
	}
	k := ks.byHandle[handle]
	if k == nil {
		if handle == 0 || len(ks.byHandle) >= objectsMax {
			return nil
		}
		ks.last++
		k = &kernel{object: carriedObject(s, ks.last), name: unknownKernel}
		ks.byHandle[handle] = k
		ks.writeKernelName(s, k)
	}
	ks.latest, ks.handle = k, handle
	return k
}

func (ks *kernels) writeKernelName(s *wire.Sample, k *kernel) {
	ks.writeRecord(s, wire.KernelFields{Kernel: k.number, CarriedOver: k.carried}.Record([]byte(k.name)))
}

func (ks *kernels) removeKernel(handle uint64) {
	if k := ks.byHandle[handle]; k != nil {
		ks.arguments -= len(k.arguments)
		ks.ledger.countEnded(&k.object)
		delete(ks.byHandle, handle)
		ks.latest = nil
	}
}

func (ks *kernels) handleRetain(s *wire.Sample) {
	if k := ks.kernelOfHandle(s, s.Argument[0]); k != nil {
		k.references++
	}
}

func (ks *kernels) handleRelease(s *wire.Sample) {
	if k := ks.kernelOfHandle(s, s.Argument[0]); k != nil && k.dropReference() {
		ks.removeKernel(s.Argument[0])
	}
}

// handleSetArgument handles clSetKernelArg. Its value was copied only if it looks like an object of the driver.
func (ks *kernels) handleSetArgument(s *wire.Sample) {
	var handle uint64
	if value := s.CopiedArgument(0); value != nil {
		handle = numberAt(value, 0) &^ isMarked
	}
	if int32(s.Result) != 0 {
		return
	}
	switch {
	case handle == 0:
	case ks.memories.byHandle[handle] != nil:
		handle |= isSettled
	default:
		if g := ks.memories.findFreedHandle(handle); g != nil {
			g.heldByKernel = g.freedAt <= s.Entered
		}
	}
	ks.setArgumentValue(s, handle)
}

// handleSetPointer handles clSetKernelArgSVMPointer and the equivalents of extensions.
func (ks *kernels) handleSetPointer(s *wire.Sample) {
	if int32(s.Result) != 0 {
		return
	}
	address := s.Argument[2]
	if address != 0 {
		address = address&^isMarked | isPointer
	}
	ks.setArgumentValue(s, address)
}

func (ks *kernels) setArgumentValue(s *wire.Sample, value uint64) {
	k, index := ks.kernelOfHandle(s, s.Argument[0]), int(uint32(s.Argument[1]))
	if k == nil || index >= indicesMax {
		return
	}
	if more := index + 1 - len(k.arguments); more > 0 {
		if value == 0 || ks.arguments+more > argumentsMax {
			return
		}
		k.arguments = append(k.arguments, make([]uint64, more)...)
		ks.arguments += more
	}
	k.arguments[index] = value
}
