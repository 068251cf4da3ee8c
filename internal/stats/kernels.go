package stats

import (
	"cmp"
	"math/bits"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// KernelsMax is the most kernels, by name, that are counted separately.
const KernelsMax = 63

// kernelShares divide memory by the kernels that have used it. Memory that several kernels have used counts for each of them,
// so that the shares may add up to more than all memory.
type kernelShares struct {
	clock   *clock
	shares  [KernelsMax + 1]share // the first is the share of all further kernels
	names   []string              // of the others
	objects []uint64              // sets of shares that have the object, by the places of objects in the heap
}

// placedKernels are the places of a process's kernels in the shares.
type placedKernels struct {
	latest uint64 // kernel
	at     uint8
	places map[uint64]uint8
}

// placedMax bounds placedKernels: a program may make a kernel for each launch.
const placedMax = 1024

// placeOfKernel returns the place of a process's kernel in the shares.
func (k *kernelShares) placeOfKernel(p *process, kernel uint64) uint8 {
	placed := &p.placed
	if placed.latest == kernel && kernel != 0 {
		return placed.at
	}
	at, known := placed.places[kernel]
	if !known {
		at = k.placeOfName(cmp.Or(p.kernels.Name(kernel), "kernel unknown"))
		if placed.places == nil || len(placed.places) == placedMax {
			placed.places = map[uint64]uint8{}
		}
		placed.places[kernel] = at
	}
	placed.latest, placed.at = kernel, at
	return at
}

func (k *kernelShares) placeOfName(name string) uint8 {
	at := slices.Index(k.names, name)
	if at < 0 {
		if len(k.names) == KernelsMax {
			return 0
		}
		at, k.names = len(k.names), append(k.names, name)
	}
	return uint8(at + 1)
}

// countUse counts memory for a kernel at the first command that lets the kernel use it.
func (k *kernelShares) countUse(p *process, u wire.UseView) {
	if u.Command() != wire.CommandKernel {
		return
	}
	o := p.heap.Object(u.Object())
	if o != nil && !o.Owns {
		o = p.heap.Object(o.Parent)
	}
	if o == nil || !o.Owns {
		return
	}
	at, users := k.placeOfKernel(p, u.Kernel()), elementAt(&k.objects, o.Place)
	if *users&(1<<at) != 0 {
		return
	}
	*users |= 1 << at
	s := &k.shares[at]
	s.changeHeld(int64(o.Granted), int64(o.Size), 1, k.clock.second)
	s.countCreate(o.PresentOutcome(), k.clock.slot)
}

// removeObject takes the memory of an object off.
func (k *kernelShares) removeObject(o *heap.Object) {
	if int(o.Place) >= len(k.objects) {
		return
	}
	for users := &k.objects[o.Place]; *users != 0; *users &= *users - 1 {
		k.shares[bits.TrailingZeros64(*users)].changeHeld(int64(o.Granted), int64(o.Size), -1, k.clock.second)
	}
}

// listKernels returns the kernels in the order of their first use.
func (k *kernelShares) listKernels() []Named {
	list := make([]Named, 0, len(k.names)+1)
	for i, name := range k.names {
		list = append(list, Named{name, k.shares[i+1].shareForSnapshot(k.clock)})
	}
	if k.shares[0] != (share{}) {
		list = append(list, Named{others, k.shares[0].shareForSnapshot(k.clock)})
	}
	return list
}
