package calls

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Names of kernels whose creation does not tell them.
const (
	unknownKernel = "unknown before attach"
	unnamedKernel = "made by clCreateKernelsInProgram"
)

type kernel struct {
	object
	name      string
	arguments []uint64 // by index: handles and addresses, with what is known of them; 0: neither
}

// What is known of an argument stands in two of its upper bits, which say nothing: in an address, these are all alike.
const (
	isPointer = 1 << 63 // an address of shared memory
	isSettled = 1 << 62 // memory that was known when it became an argument: it was not there before
	isMarked  = isPointer | isSettled
)

// unmarked returns an argument without what is known of it. Addresses of a device's own memory may be in the upper half.
func unmarked(value uint64) uint64 { return uint64(int64(value<<2) >> 2) }

func (b *Book) createKernel(s *wire.Sample) { b.newKernel(s, s.Result, string(textOf(s))) }

// createKernels is clCreateKernelsInProgram, which does not say what the kernels are called.
func (b *Book) createKernels(s *wire.Sample) {
	list, made := s.Copy(0), uint32(s.Argument[1])
	if int32(s.Result) != 0 {
		return
	}
	if count := s.Copy(1); count != nil {
		made = min(made, uint32(word(count, 0)))
	}
	for i := range handles(list, made) {
		b.newKernel(s, word(list, i), unnamedKernel)
	}
}

func (b *Book) cloneKernel(s *wire.Sample) {
	if s.Result == 0 {
		return
	}
	source := b.kernelOf(s, s.Argument[0])
	if source == nil {
		return
	}
	if k := b.newKernel(s, s.Result, source.name); k != nil && b.arguments+len(source.arguments) <= argumentsMax {
		k.arguments = slices.Clone(source.arguments)
		b.arguments += len(k.arguments)
	}
}

// newKernel enters a kernel that was made. Nil when it is known already, or there is no room.
func (b *Book) newKernel(s *wire.Sample, handle uint64, name string) *kernel {
	old := b.kernels[handle]
	if handle == 0 || old != nil && old.made(s) || old == nil && len(b.kernels) >= objectsMax {
		return nil
	}
	b.displace(s, handle)
	b.removeKernel(handle)
	b.numbers.kernel++
	k := &kernel{object: born(s, b.numbers.kernel), name: name}
	b.kernels[handle] = k
	b.writeKernel(s, k)
	return k
}

// kernelOf returns the kernel with a handle that the driver has accepted, or will; nil when there is none.
func (b *Book) kernelOf(s *wire.Sample, handle uint64) *kernel {
	if b.latest != nil && b.handle == handle {
		return b.latest
	}
	k := b.kernels[handle]
	if k == nil {
		if handle == 0 || len(b.kernels) >= objectsMax {
			return nil
		}
		b.numbers.kernel++
		k = &kernel{object: learnt(s, b.numbers.kernel), name: unknownKernel}
		b.kernels[handle] = k
		b.writeKernel(s, k)
	}
	b.latest, b.handle = k, handle
	return k
}

func (b *Book) writeKernel(s *wire.Sample, k *kernel) {
	b.tell(s, wire.Event{Kind: wire.KindKernel, Object: k.number, Flags: k.flags()}, []byte(k.name))
}

func (b *Book) removeKernel(handle uint64) {
	if k := b.kernels[handle]; k != nil {
		b.arguments -= len(k.arguments)
		delete(b.kernels, handle)
		b.latest = nil
	}
}

func (b *Book) retainKernel(s *wire.Sample) {
	if k := b.kernelOf(s, s.Argument[0]); k != nil {
		k.references++
	}
}

func (b *Book) releaseKernel(s *wire.Sample) {
	if k := b.kernelOf(s, s.Argument[0]); k != nil && k.release() {
		b.removeKernel(s.Argument[0])
	}
}

// setArgument is clSetKernelArg. Its value was copied only when it looks like an object of the driver.
func (b *Book) setArgument(s *wire.Sample) {
	var handle uint64
	if value := s.Copy(0); value != nil {
		handle = word(value, 0) &^ isMarked
	}
	if int32(s.Result) != 0 {
		return
	}
	switch {
	case handle == 0:
	case b.memories[handle] != nil:
		handle |= isSettled
	default:
		if g := b.ghost(handle); g != nil {
			g.held = g.died <= s.Entered
		}
	}
	b.set(s, handle)
}

// setPointer is clSetKernelArgSVMPointer and what extensions have of its kind.
func (b *Book) setPointer(s *wire.Sample) {
	if int32(s.Result) != 0 {
		return
	}
	address := s.Argument[2]
	if address != 0 {
		address = address&^isMarked | isPointer
	}
	b.set(s, address)
}

func (b *Book) set(s *wire.Sample, value uint64) {
	k, index := b.kernelOf(s, s.Argument[0]), int(uint32(s.Argument[1]))
	if k == nil || index >= indicesMax {
		return
	}
	if more := index + 1 - len(k.arguments); more > 0 {
		if value == 0 || b.arguments+more > argumentsMax {
			return
		}
		k.arguments = append(k.arguments, make([]uint64, more)...)
		b.arguments += more
	}
	k.arguments[index] = value
}

// The samplers are followed because they look like memory where they are arguments of a kernel.
func (b *Book) createSampler(s *wire.Sample) {
	if s.Result == 0 {
		return
	}
	b.displace(s, s.Result)
	delete(b.samplers, s.Result)
	b.enterSampler(s.Result, born(s, 0))
}

func (b *Book) enterSampler(handle uint64, o object) *object {
	if handle == 0 || len(b.samplers) >= objectsMax {
		return nil
	}
	b.samplers[handle] = &o
	return &o
}

func (b *Book) samplerOf(s *wire.Sample) *object {
	if o := b.samplers[s.Argument[0]]; o != nil {
		return o
	}
	return b.enterSampler(s.Argument[0], learnt(s, 0))
}

func (b *Book) retainSampler(s *wire.Sample) {
	if o := b.samplerOf(s); o != nil {
		o.references++
	}
}

func (b *Book) releaseSampler(s *wire.Sample) {
	if o := b.samplerOf(s); o != nil && o.release() {
		delete(b.samplers, s.Argument[0])
	}
}
