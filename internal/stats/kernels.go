package stats

import (
	"cmp"
	"math/bits"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// KernelsMax is the most kernels, by name, that are counted separately.
const KernelsMax = 63

// kernelShares divide memory by the kernels that have used it: what several have used counts for each.
type kernelShares struct {
	shares [KernelsMax + 1]share // the first is that of all others
	names  []string              // of the rest
}

// placedKernels are the places of a process's kernels in the shares.
type placedKernels struct {
	latest uint64 // kernel
	at     uint8
	places map[uint64]uint8
}

// placedMax bounds them: a program may make a kernel for each launch.
const placedMax = 1024

// kernelPlace returns where a kernel's share is.
func (m *Model) kernelPlace(p *process, kernel uint64) uint8 {
	k := &p.placed
	if k.latest == kernel && kernel != 0 {
		return k.at
	}
	at, known := k.places[kernel]
	if !known {
		at = m.kernels.place(cmp.Or(p.kernels.Name(kernel), "kernel unknown"))
		if k.places == nil || len(k.places) == placedMax {
			k.places = map[uint64]uint8{}
		}
		k.places[kernel] = at
	}
	k.latest, k.at = kernel, at
	return at
}

func (k *kernelShares) place(name string) uint8 {
	at := slices.Index(k.names, name)
	if at < 0 {
		if len(k.names) == KernelsMax {
			return 0
		}
		at, k.names = len(k.names), append(k.names, name)
	}
	return uint8(at + 1)
}

// useByKernel counts memory for a kernel at the first command that lets it use that.
func (m *Model) useByKernel(p *process, u wire.UseView) {
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
	at := m.kernelPlace(p, u.Kernel())
	n := noteAt(&m.objects, o.Place)
	if n.kernels&(1<<at) != 0 {
		return
	}
	n.kernels |= 1 << at
	s := &m.kernels.shares[at]
	s.hold(int64(o.Granted), int64(o.Size), 1, m.second)
	s.create(o.Outcome, m.window.slot)
}

// leaveKernels takes the memory of an object off.
func (m *Model) leaveKernels(n *objectNote, granted, requested int64) {
	for ; n.kernels != 0; n.kernels &= n.kernels - 1 {
		m.kernels.shares[bits.TrailingZeros64(n.kernels)].hold(granted, requested, -1, m.second)
	}
}

// show returns the kernels in the order of their first use.
func (k *kernelShares) show(now moment) []Named {
	list := make([]Named, 0, len(k.names)+1)
	for i, name := range k.names {
		list = append(list, Named{name, k.shares[i+1].show(now)})
	}
	if k.shares[0] != (share{}) {
		list = append(list, Named{others, k.shares[0].show(now)})
	}
	return list
}
