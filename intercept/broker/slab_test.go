package broker

import (
	"errors"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// request is for a buffer that slabs can serve.
var request = allocator.Request{Size: 4096, Align: 128, Class: 1, Max: 1 << 30, Heap: 1 << 32}

func part(t *testing.T, b *gate) Decision {
	t.Helper()
	decision, _, out, err := ask(b, request, nil)
	if err != nil || len(out) > 0 {
		t.Errorf("decide: %v, evictions %v", err, out)
	}
	return decision
}

// waiting is a request that fits a slab which another thread creates.
type waiting struct {
	t        *testing.T
	broker   *gate
	decision Decision
	number   Number
}

func wait(t *testing.T, b *gate) (first Decision, w *waiting) {
	t.Helper()
	first = part(t, b)
	if first.SlabSize == 0 || first.Hit {
		t.Fatalf("decision %+v, want one that creates a slab", first)
	}
	decision, n, _, err := ask(b, request, nil)
	if err != nil || !decision.Waits || decision.Committed != 0 || decision.Slab != first.Slab {
		t.Fatalf("decision %+v, %v does not wait for the slab", decision, err)
	}
	w = &waiting{t, b, decision, n}
	if decision := w.resume(false); !decision.Waits {
		t.Fatalf("decision %+v waits no longer", decision)
	}
	return first, w
}

func (w *waiting) resume(late bool) Decision {
	w.t.Helper()
	n, out, err := w.broker.Resume(&w.decision, &request, w.number, late, nil)
	if err != nil || len(out) > 0 {
		w.t.Errorf("resumed: %v, evictions %v", err, out)
	}
	if alone := w.decision.Waived != 0; !w.decision.Waits && alone != (n != w.number) || alone && w.decision.Waived != w.number {
		w.t.Errorf("decision %d of %+v, which had %d", n, w.decision, w.number)
	}
	return w.decision
}

func TestAPlanWaitsForTheSlabThatAnotherThreadCreates(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	if _, err := b.SlabCreated(first.Decision, 77); err != nil {
		t.Fatal(err)
	}
	decision := other.resume(false)
	if decision.Slab != first.Slab || decision.SlabSize != 0 || decision.Handle != 77 || !decision.Hit || decision.Offset == first.Offset || decision.Committed != 0 {
		t.Errorf("decision %+v, want another part of the slab of %+v, to be committed", decision, first)
	}
	for _, p := range []Decision{first, decision} {
		if _, err := b.Commit(p.Decision, 5); err != nil {
			t.Error(err)
		}
	}
	if s, err := b.Stats(); err != nil || s.Slabs != 1 || s.Parts != 2 || s.Misses != 1 || s.Hits != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if decision := part(t, b); decision.Slab != first.Slab || decision.Committed != b.ledger.Latest {
		t.Errorf("decision %+v, want a committed one, with number %d", decision, b.ledger.Latest)
	}
}

func TestAPlanThatWaitedForNothingGetsABlockOfItsOwn(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	if _, err := b.Abort(first.Decision); err != nil {
		t.Fatal(err)
	}
	decision := other.resume(false)
	if decision.Slab != 0 || decision.Hit || decision.Size != 4096 {
		t.Errorf("decision %+v, want a block of its own", decision)
	}
	if _, err := b.Commit(decision.Decision, 5); err != nil {
		t.Error(err)
	}
	if s, err := b.Stats(); err != nil || s.Slabs != 0 || s.Blocks != 1 || s.BytesCached != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if again := part(t, b); again.SlabSize == 0 {
		t.Errorf("decision %+v, want one that tries to create a slab again", again)
	}
}

// The slab that was refused is forgotten at once, and its index goes to the next block: those who wait must not take
// that block's object for the slab's.
func TestAWaiterIsNotFooledByABlockWithTheIndexOfTheSlab(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	if _, err := b.Abort(first.Decision); err != nil {
		t.Fatal(err)
	}
	for {
		next, _, _, err := ask(b, allocator.Request{Size: 64, Class: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Commit(next.Decision, 66); err != nil {
			t.Fatal(err)
		}
		if next.Block.Index() == first.Slab.Index() {
			break
		}
	}
	if decision := other.resume(false); decision.Slab != 0 || decision.Handle == 66 {
		t.Errorf("decision %+v, want a block of its own", decision)
	}
}

func TestAPlanDoesNotWaitForEver(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	decision := other.resume(true) // the other thread stays in the driver
	if decision.Slab != 0 || decision.Hit || decision.Waits {
		t.Errorf("decision %+v, want a block of its own", decision)
	}
	if _, err := b.SlabCreated(first.Decision, 77); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Decision{first, decision} {
		if _, err := b.Commit(p.Decision, 5); err != nil {
			t.Error(err)
		}
	}
	if s, err := b.Stats(); err != nil || s.Slabs != 1 || s.Parts != 1 || s.Blocks != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A decision that waits may have evicted the memory that the awaited create needs.
func TestWhatAWaitingPlanEvictsIsThereForOthers(t *testing.T) {
	b := newBroker(t, "slab", "max_age=1")
	old, _, _, err := ask(b, allocator.Request{Size: 1 << 30, Class: 1, Time: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(old.Decision, 9); err != nil {
		t.Fatal(err)
	}
	if out, _, err := b.Free(old.Block, false, 1, make([]Eviction, 0, 4)); err != nil || len(out) > 0 {
		t.Fatal(out, err)
	}
	part(t, b)
	later := request
	later.Time = 5e9
	if decision, _, out, err := ask(b, later, make([]Eviction, 0, 4)); err != nil || !decision.Waits || len(out) > 0 {
		t.Fatalf("decision %+v, evictions %v, %v, want one that waits", decision, out, err)
	}
	out, _, err := b.Drain(1<<30, make([]Eviction, 0, 4))
	if err != nil || len(out) != 1 || out[0].Handle != 9 {
		t.Errorf("drained %v, %v: want the block that the waiting decision gave up", out, err)
	}
}

func TestARefusedMessageLosesNoEvictions(t *testing.T) {
	b := newBroker(t, "slab", "max_cached_bytes=0")
	decision := part(t, b)
	_, grown := b.SlabCreated(decision.Decision, 7)
	_, made := b.Commit(decision.Decision, 8)
	_, forgotten := b.Forget(decision.Block)
	if err := errors.Join(grown, made, forgotten); err != nil {
		t.Fatal(err)
	}
	_, _, out, err := b.ObeyMessage("limit nonsense=1", 1, make([]Eviction, 0, 4))
	if err == nil || len(out) != 1 || out[0].Handle != 7 {
		t.Errorf("%v, %v: want an error, and the slab without users", out, err)
	}
}

func TestWaitersLearnThatTheBrokerHasFailed(t *testing.T) {
	b := newBroker(t, "slab", "")
	_, other := wait(t, b)
	b.policy = nil // whatever comes next panics
	if _, err := b.Forget(1); err == nil {
		t.Error("a panic was no failure")
	}
	if _, _, err := b.Resume(&other.decision, &request, other.number, false, nil); err == nil {
		t.Error("the waiting decision was served")
	}
}
