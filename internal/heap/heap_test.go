package heap_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ledger checks what an observer sees: everything begins once and ends once.
type ledger struct {
	heap.Base
	open map[string]bool
	sum  heap.Gauges
	bad  []string
}

func (l *ledger) begin(key string) {
	if l.open[key] {
		l.bad = append(l.bad, key+" begins twice")
	}
	l.open[key] = true
}

func (l *ledger) end(key string) {
	if !l.open[key] {
		l.bad = append(l.bad, key+" ends without a beginning")
	}
	delete(l.open, key)
}

func (l *ledger) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	l.begin(fmt.Sprint("object ", p.Number, o.ID))
	l.sum.InUse += owned(o)
}

func (l *ledger) MemoryFreed(p *heap.Process, o *heap.Object, _ heap.How) {
	l.end(fmt.Sprint("object ", p.Number, o.ID))
	l.sum.InUse -= owned(o)
}

func (l *ledger) BlockPooled(p *heap.Process, b *heap.Block) { l.begin(fmt.Sprint("stay ", b.Serial)) }
func (l *ledger) BlockUnpooled(p *heap.Process, b *heap.Block, _ heap.How) {
	l.end(fmt.Sprint("stay ", b.Serial))
}

func owned(o *heap.Object) int64 {
	if o.Owns {
		return int64(o.Granted)
	}
	return 0
}

func TestEverythingEndsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &ledger{open: map[string]bool{}}
		h := heap.New(heap.Options{}, l)
		for _, r := range randomrun.DrawRun(t, randomrun.Options{}) {
			h.Apply(&r)
			var inUse int64
			for _, p := range h.Processes() {
				inUse += p.InUse
			}
			if inUse != l.sum.InUse {
				t.Fatalf("after %s at %d the observer counts %d in use, the heap %d", r.Kind, r.Time, l.sum.InUse, inUse)
			}
		}
		for _, p := range h.Processes() {
			h.EndObjects(p, heap.Leaked)
			if p.Gauges != (heap.Gauges{}) || len(p.Objects())+len(p.Blocks()) != 0 {
				t.Errorf("process %d ended with %+v", p.Number, p.Gauges)
			}
		}
		if len(l.bad) > 0 || len(l.open) > 0 {
			t.Errorf("%q, left open %v", l.bad, l.open)
		}
	})
}

// FuzzApply takes anything: nothing ends that did not begin.
func FuzzApply(f *testing.F) {
	f.Add([]byte{10, 2, 0, 1, 1, 9, 12, 4, 0, 1, 1, 0, 10, 1, 32, 2, 1, 9, 21, 0, 0, 0, 3, 9, 16, 0, 0, 0, 3, 0, 15, 0, 32, 0, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &ledger{open: map[string]bool{}}
		h := heap.New(heap.Options{}, l)
		for b := range slices.Chunk(data, 6) {
			if len(b) < 6 {
				break
			}
			r := wire.Record{Process: uint32(b[0] >> 7), Event: wire.Event{
				Time: uint64(b[5]), Kind: wire.Kind(b[0] & 31), Outcome: wire.Outcome(b[1] & 7), Op: b[1] >> 4, Flags: b[2],
				Object: uint64(b[3] & 7), Link: uint64(b[4] & 7), Size: uint64(b[5]), Granted: uint64(b[5]) * uint64(b[3]>>7),
			}}
			h.Apply(&r)
		}
		for _, p := range h.Processes() {
			h.EndObjects(p, heap.Open)
		}
		if len(l.bad) > 0 || len(l.open) > 0 {
			t.Errorf("%q, left open %v", l.bad, l.open)
		}
	})
}

// TestLostReleasesAddNothing: while releases are lost, a block that serves again and again leaves no trail of objects, and
// of those that had it none is a leak.
func TestLostReleasesAddNothing(t *testing.T) {
	l := &ledger{open: map[string]bool{}}
	h := heap.New(heap.Options{}, l)
	create := func(object, block uint64) {
		h.Apply(&wire.Record{Process: 1, Event: wire.Event{
			Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Object: object, Link: block, Size: 64, Granted: 64, Time: object,
		}})
	}
	release := func(object uint64) {
		h.Apply(&wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindRelease, Outcome: wire.OutcomeCached, Object: object}})
	}
	const late, rounds = 200, 5000
	for i := range uint64(rounds) { // each release comes after 200 more creates of the same block
		create(i+1, 7)
		if i >= late {
			release(i + 1 - late)
		}
	}
	if h.Unknown != 0 || h.Live != late {
		t.Errorf("late releases: %d live, %d unknown", h.Live, h.Unknown)
	}
	for i := range uint64(rounds) {
		create(rounds+i+1, 7)
	}
	if p := h.FindProcess(1); h.Live > 1025 || p.InUse != 64 || l.sum.InUse != 64 || len(p.Objects()) > 1025 {
		t.Errorf("lost releases: %d live, %d bytes in use, of %d objects", h.Live, p.InUse, len(p.Objects()))
	}
	h.Apply(&wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindExit}})
	if p := h.FindProcess(1); h.Live != 1 || p.InUse != 64 || len(p.Objects()) != 1 { // no release comes after that
		t.Errorf("at the end: %d live, %d bytes in use, of %d objects", h.Live, p.InUse, len(p.Objects()))
	}
	if len(l.bad) > 0 {
		t.Errorf("%q", l.bad)
	}
}
