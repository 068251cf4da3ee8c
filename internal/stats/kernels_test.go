package stats

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func (s *stream) launch(kernel, object uint64) {
	s.feed(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Object: object, Granted: kernel})
}

// TestKernelsShareMemory: a buffer counts once for each kernel that uses it, until it is released.
func TestKernelsShareMemory(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.Event{Kind: wire.KindKernel, Object: 7}, []byte("blur")...)
	s.feed(wire.Event{Kind: wire.KindKernel, Object: 8}, []byte("blur")...) // another object of the same function
	s.feed(wire.Event{Kind: wire.KindKernel, Object: 9}, []byte("sum")...)
	s.miss(1, 1, 1000, 1024, 1)
	s.miss(2, 2, 3000, 4096, 1)
	s.feed(wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: 3, Link: 2, Size: 10}) // of the second
	s.launch(7, 1)
	s.launch(8, 1)
	s.launch(9, 1)
	s.launch(9, 2)
	s.launch(9, 3)
	s.launch(9, 99) // unknown
	s.feed(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandWrite), Object: 2})
	want := []Named{
		{"blur", Share{Misses: 1, Creates: 1, Live: 1, InUse: 1024, Requested: 1000, PeakInUse: 1024}},
		{"sum", Share{Misses: 2, Creates: 2, Live: 2, InUse: 5120, Requested: 4000, PeakInUse: 5120}},
	}
	ignored := cmpopts.IgnoreFields(Share{}, "Window", "Held")
	if diff := cmp.Diff(want, s.Snapshot().Kernels, ignored); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.release(1, wire.OutcomeCached)
	s.hit(4, 1, 1000, 1024, 1)
	s.launch(9, 4)
	want[0].Share = Share{Misses: 1, Creates: 1, PeakInUse: 1024}
	want[1].Hits, want[1].Creates = 1, 3
	if diff := cmp.Diff(want, s.Snapshot().Kernels, ignored); diff != "" {
		t.Errorf("after a release (-want +got):\n%s", diff)
	}
}

// TestKernelsAreBounded: beyond the bound they are one, and nothing grows with kernel objects.
func TestKernelsAreBounded(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 1)
	for i := range uint64(3 * placedMax) {
		s.feed(wire.Event{Kind: wire.KindKernel, Object: i + 1}, fmt.Appendf(nil, "k%d", i%(KernelsMax+3))...)
		s.launch(i+1, 1)
	}
	got := s.Snapshot().Kernels
	if len(got) != KernelsMax+1 || got[0].Live != 1 || got[KernelsMax].Name != others || got[KernelsMax].Live != 1 {
		t.Errorf("%d kernels: %+v", len(got), got)
	}
	s.release(1, wire.OutcomeCached)
	for _, k := range s.Snapshot().Kernels {
		if k.InUse != 0 || k.Live != 0 {
			t.Errorf("%+v", k)
		}
	}
}

// TestKernelsOfTransfersOnly: without uses nothing is known of kernels.
func TestKernelsOfTransfersOnly(t *testing.T) {
	s := newStream(Options{TransfersOnly: true})
	s.miss(1, 1, 64, 64, 1)
	s.launch(1, 1)
	if got := s.Snapshot().Kernels; len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
