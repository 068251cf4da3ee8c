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

// Two upper bits mark what we know of an argument. They carry no information in an address: they are equal to those below.
const (
	isPointer = 1 << 63 // an address of shared memory
	isSettled = 1 << 62 // of memory that was known when it became an argument
	isMarked  = isPointer | isSettled
)

// unmarked returns an argument without its marks. Addresses of a device's own memory may be in the upper half.
func unmarked(value uint64) uint64 { return uint64(int64(value<<2) >> 2) }

func (t *Tracker) createKernel(s *wire.Sample) { t.newKernel(s, s.Result, string(textOf(s))) }

// createKernels handles clCreateKernelsInProgram, which does not say the names of the kernels.
func (t *Tracker) createKernels(s *wire.Sample) {
	list, made := s.Copy(0), uint32(s.Argument[1])
	if int32(s.Result) != 0 {
		return
	}
	if count := s.Copy(1); count != nil {
		made = min(made, uint32(word(count, 0)))
	}
	for i := range handles(list, made) {
		t.newKernel(s, word(list, i), unnamedKernel)
	}
}

func (t *Tracker) cloneKernel(s *wire.Sample) {
	if s.Result == 0 {
		return
	}
	source := t.kernelOf(s, s.Argument[0])
	if source == nil {
		return
	}
	if k := t.newKernel(s, s.Result, source.name); k != nil && t.arguments+len(source.arguments) <= argumentsMax {
		k.arguments = slices.Clone(source.arguments)
		t.arguments += len(k.arguments)
	}
}

// newKernel adds a kernel. It returns nil if the kernel is known already or there is no room.
func (t *Tracker) newKernel(s *wire.Sample, handle uint64, name string) *kernel {
	old := t.kernels[handle]
	if handle == 0 || old != nil && old.reportedWithin(s) || old == nil && len(t.kernels) >= objectsMax {
		return nil
	}
	t.endPrevious(s, handle)
	t.removeKernel(handle)
	t.numbers.kernel++
	k := &kernel{object: newObject(s, t.numbers.kernel), name: name}
	t.kernels[handle] = k
	t.count(s, &k.object, wire.HeldKernel)
	t.writeKernel(s, k)
	return k
}

// kernelOf returns the kernel of a handle that the driver accepts, nil if the handle is 0 or there is no room.
func (t *Tracker) kernelOf(s *wire.Sample, handle uint64) *kernel {
	if t.latest != nil && t.handle == handle {
		return t.latest
	}
	k := t.kernels[handle]
	if k == nil {
		if handle == 0 || len(t.kernels) >= objectsMax {
			return nil
		}
		t.numbers.kernel++
		k = &kernel{object: carriedObject(s, t.numbers.kernel), name: unknownKernel}
		t.kernels[handle] = k
		t.writeKernel(s, k)
	}
	t.latest, t.handle = k, handle
	return k
}

func (t *Tracker) writeKernel(s *wire.Sample, k *kernel) {
	t.writeRecord(s, wire.KernelFields{Kernel: k.number, CarriedOver: k.carried}.Record([]byte(k.name)))
}

func (t *Tracker) removeKernel(handle uint64) {
	if k := t.kernels[handle]; k != nil {
		t.arguments -= len(k.arguments)
		t.uncount(&k.object)
		delete(t.kernels, handle)
		t.latest = nil
	}
}

func (t *Tracker) retainKernel(s *wire.Sample) {
	if k := t.kernelOf(s, s.Argument[0]); k != nil {
		k.references++
	}
}

func (t *Tracker) releaseKernel(s *wire.Sample) {
	if k := t.kernelOf(s, s.Argument[0]); k != nil && k.release() {
		t.removeKernel(s.Argument[0])
	}
}

// setArgument handles clSetKernelArg. Its value was copied only if it looks like an object of the driver.
func (t *Tracker) setArgument(s *wire.Sample) {
	var handle uint64
	if value := s.Copy(0); value != nil {
		handle = word(value, 0) &^ isMarked
	}
	if int32(s.Result) != 0 {
		return
	}
	switch {
	case handle == 0:
	case t.memories[handle] != nil:
		handle |= isSettled
	default:
		if g := t.freed(handle); g != nil {
			g.heldByKernel = g.freedAt <= s.Entered
		}
	}
	t.set(s, handle)
}

// setPointer handles clSetKernelArgSVMPointer and the equivalents of extensions.
func (t *Tracker) setPointer(s *wire.Sample) {
	if int32(s.Result) != 0 {
		return
	}
	address := s.Argument[2]
	if address != 0 {
		address = address&^isMarked | isPointer
	}
	t.set(s, address)
}

func (t *Tracker) set(s *wire.Sample, value uint64) {
	k, index := t.kernelOf(s, s.Argument[0]), int(uint32(s.Argument[1]))
	if k == nil || index >= indicesMax {
		return
	}
	if more := index + 1 - len(k.arguments); more > 0 {
		if value == 0 || t.arguments+more > argumentsMax {
			return
		}
		k.arguments = append(k.arguments, make([]uint64, more)...)
		t.arguments += more
	}
	k.arguments[index] = value
}

// createSampler follows samplers because they look like memory where they are kernel arguments.
func (t *Tracker) createSampler(s *wire.Sample) {
	if s.Result == 0 {
		return
	}
	t.endPrevious(s, s.Result)
	if old := t.samplers[s.Result]; old != nil {
		t.uncount(old)
		delete(t.samplers, s.Result)
	}
	if o := t.enterSampler(s.Result, newObject(s, 0)); o != nil {
		t.count(s, o, wire.HeldSampler)
	}
}

func (t *Tracker) enterSampler(handle uint64, o object) *object {
	if handle == 0 || len(t.samplers) >= objectsMax {
		return nil
	}
	t.samplers[handle] = &o
	return &o
}

func (t *Tracker) samplerOf(s *wire.Sample) *object {
	if o := t.samplers[s.Argument[0]]; o != nil {
		return o
	}
	return t.enterSampler(s.Argument[0], carriedObject(s, 0))
}

func (t *Tracker) retainSampler(s *wire.Sample) {
	if o := t.samplerOf(s); o != nil {
		o.references++
	}
}

func (t *Tracker) releaseSampler(s *wire.Sample) {
	if o := t.samplerOf(s); o != nil && o.release() {
		delete(t.samplers, s.Argument[0])
		t.uncount(o)
	}
}
