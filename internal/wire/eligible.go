// Code generated from eligible.def by internal/wire/gen; DO NOT EDIT.

package wire

import "strconv"

// Ineligible: why the pool must leave a request for memory to the driver.
type Ineligible uint8

const (
	IneligibleNone         Ineligible = 0 // the pool may serve it
	IneligibleMemory       Ineligible = 1 // it lies in other memory, or is not the driver's
	IneligibleProperties   Ineligible = 2 // queries return them word for word
	IneligibleFlags        Ineligible = 3 // the driver may refuse them, or the pool does not know them
	IneligibleDeviceAccess Ineligible = 4 // the driver refuses it
	IneligibleHostAccess   Ineligible = 5 // the driver refuses it
	IneligibleAlignment    Ineligible = 6 // the driver refuses what is not a power of two
	IneligibleEmpty        Ineligible = 7 // the driver refuses it
	IneligibleTooLarge     Ineligible = 8
	IneligibleContents     Ineligible = 9  // the driver refuses a flag or a pointer alone
	IneligibleSmallCopy    Ineligible = 10 // filling a block would cost more than it saves
	IneligibleNoCopy       Ineligible = 11 // filling a block is not allowed
	IneligiblePitches      Ineligible = 12 // drivers do not agree on them
)

var namesIneligible = [...]string{"none", "memory", "properties", "flags", "device access", "host access", "alignment", "empty", "too large", "contents", "small copy", "no copy", "pitches"}

// String returns the word that screens and reports use.
func (v Ineligible) String() string {
	if int(v) < len(namesIneligible) {
		return namesIneligible[v]
	}
	return strconv.Itoa(int(v))
}

// PoolRequest is a request for memory, as far as the rules look at it.
type PoolRequest struct {
	Memory     Memory // what is requested
	Flags      uint64 // CL_MEM_*
	Size       uint64 // in bytes
	Largest    uint64 // bytes that the device allocates at most; 0: unknown, or known to suffice
	Smallest   uint64 // bytes from which memory with contents comes from the pool
	Alignment  uint64 // of shared memory; 0: the driver's
	Properties bool   // there is a list of them
	Contents   bool   // there is a pointer to them
	Array      bool   // it is an image that is neither 2D nor 3D
}

// Ineligible returns why a pool must leave the request to the driver.
func (r *PoolRequest) Ineligible() Ineligible {
	const device = ReadWrite | WriteOnly | ReadOnly
	const host = HostWriteOnly | HostReadOnly | HostNoAccess
	known, served := uint64(0), true
	switch r.Memory {
	case MemoryBuffer:
		known = device | host | AllocHostPtr | CopyHostPtr
	case MemoryImage:
		known = device | host | AllocHostPtr | CopyHostPtr | KernelReadAndWrite
	case MemorySVM:
		known = device | SVMFineGrainBuffer | SVMAtomics
	case MemoryUSMHost:
		known = 0
	case MemoryUSMDevice:
		known = 0
	case MemoryUSMShared:
		known = 0
	default:
		served = false
	}
	if !served {
		return IneligibleMemory
	}
	if r.Properties {
		return IneligibleProperties
	}
	if (r.Flags & ^known) != 0 {
		return IneligibleFlags
	}
	if several(r.Flags & device) {
		return IneligibleDeviceAccess
	}
	if several(r.Flags & host) {
		return IneligibleHostAccess
	}
	if several(r.Alignment) {
		return IneligibleAlignment
	}
	if r.Size == 0 {
		return IneligibleEmpty
	}
	if r.Largest != 0 && r.Size > r.Largest {
		return IneligibleTooLarge
	}
	if r.Contents != ((r.Flags & CopyHostPtr) != 0) {
		return IneligibleContents
	}
	if r.Contents && r.Size < r.Smallest {
		return IneligibleSmallCopy
	}
	if r.Contents && (r.Flags&(HostReadOnly|HostNoAccess)) != 0 {
		return IneligibleNoCopy
	}
	if r.Contents && r.Array {
		return IneligiblePitches
	}
	return IneligibleNone
}

// several reports whether more than one bit is set.
func several(bits uint64) bool { return bits&(bits-1) != 0 }
