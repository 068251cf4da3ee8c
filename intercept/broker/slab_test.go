package broker

import (
	"errors"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// request is for a buffer that slabs can serve.
var request = allocator.Request{Size: 4096, Align: 128, Class: 1, Max: 1 << 30, Heap: 1 << 32}

func part(t *testing.T, b *gate) Plan {
	t.Helper()
	plan, _, out, err := ask(b, request, nil)
	if err != nil || len(out) > 0 {
		t.Errorf("plan: %v, evictions %v", err, out)
	}
	return plan
}

// waiting is a request that fits a slab which another thread creates.
type waiting struct {
	t      *testing.T
	broker *gate
	plan   Plan
	number Number
}

func wait(t *testing.T, b *gate) (first Plan, w *waiting) {
	t.Helper()
	first = part(t, b)
	if first.SlabSize == 0 || first.Hit {
		t.Fatalf("plan %+v, want one that creates a slab", first)
	}
	plan, n, _, err := ask(b, request, nil)
	if err != nil || !plan.Waits || plan.Committed != 0 || plan.Slab != first.Slab {
		t.Fatalf("plan %+v, %v does not wait for the slab", plan, err)
	}
	w = &waiting{t, b, plan, n}
	if plan := w.resume(false); !plan.Waits {
		t.Fatalf("plan %+v waits no longer", plan)
	}
	return first, w
}

func (w *waiting) resume(late bool) Plan {
	w.t.Helper()
	n, out, err := w.broker.Resume(&w.plan, &request, w.number, late, nil)
	if err != nil || len(out) > 0 {
		w.t.Errorf("resumed: %v, evictions %v", err, out)
	}
	if alone := w.plan.Waived != 0; !w.plan.Waits && alone != (n != w.number) || alone && w.plan.Waived != w.number {
		w.t.Errorf("decision %d of plan %+v, which had %d", n, w.plan, w.number)
	}
	return w.plan
}

func TestAPlanWaitsForTheSlabThatAnotherThreadCreates(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	if _, err := b.Grown(first.Plan, 77); err != nil {
		t.Fatal(err)
	}
	plan := other.resume(false)
	if plan.Slab != first.Slab || plan.SlabSize != 0 || plan.Handle != 77 || !plan.Hit || plan.Offset == first.Offset {
		t.Errorf("plan %+v, want another part of the slab of %+v", plan, first)
	}
	for _, p := range []Plan{first, plan} {
		if _, err := b.Commit(p.Plan, 5); err != nil {
			t.Error(err)
		}
	}
	if s, err := b.Stats(); err != nil || s.Slabs != 1 || s.Parts != 2 || s.Misses != 1 || s.Hits != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestAPlanThatWaitedForNothingGetsABlockOfItsOwn(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	if _, err := b.Abort(first.Plan); err != nil {
		t.Fatal(err)
	}
	plan := other.resume(false)
	if plan.Slab != 0 || plan.Hit || plan.Size != 4096 {
		t.Errorf("plan %+v, want a block of its own", plan)
	}
	if _, err := b.Commit(plan.Plan, 5); err != nil {
		t.Error(err)
	}
	if s, err := b.Stats(); err != nil || s.Slabs != 0 || s.Blocks != 1 || s.BytesCached != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if again := part(t, b); again.SlabSize == 0 {
		t.Errorf("plan %+v, want one that tries to create a slab again", again)
	}
}

// The slab that was refused is forgotten at once, and its index goes to the next block: those who wait must not take
// that block's object for the slab's.
func TestAWaiterIsNotFooledByABlockWithTheIndexOfTheSlab(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	if _, err := b.Abort(first.Plan); err != nil {
		t.Fatal(err)
	}
	for {
		next, _, _, err := ask(b, allocator.Request{Size: 64, Class: 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Commit(next.Plan, 66); err != nil {
			t.Fatal(err)
		}
		if next.Block.Index() == first.Slab.Index() {
			break
		}
	}
	if plan := other.resume(false); plan.Slab != 0 || plan.Handle == 66 {
		t.Errorf("plan %+v, want a block of its own", plan)
	}
}

func TestAPlanDoesNotWaitForEver(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	plan := other.resume(true) // the other thread stays in the driver
	if plan.Slab != 0 || plan.Hit || plan.Waits {
		t.Errorf("plan %+v, want a block of its own", plan)
	}
	if _, err := b.Grown(first.Plan, 77); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Plan{first, plan} {
		if _, err := b.Commit(p.Plan, 5); err != nil {
			t.Error(err)
		}
	}
	if s, err := b.Stats(); err != nil || s.Slabs != 1 || s.Parts != 1 || s.Blocks != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What a plan has to release before it waits may be what the create that it waits for needs.
func TestWhatAWaitingPlanEvictsIsThereForOthers(t *testing.T) {
	b := newBroker(t, "slab", "max_age=1")
	old, _, _, err := ask(b, allocator.Request{Size: 1 << 30, Class: 1, Time: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Commit(old.Plan, 9); err != nil {
		t.Fatal(err)
	}
	if out, _, err := b.Free(old.Block, false, 1, make([]Eviction, 0, 4)); err != nil || len(out) > 0 {
		t.Fatal(out, err)
	}
	part(t, b)
	later := request
	later.Time = 5e9
	if plan, _, out, err := ask(b, later, make([]Eviction, 0, 4)); err != nil || !plan.Waits || len(out) > 0 {
		t.Fatalf("plan %+v, evictions %v, %v, want one that waits", plan, out, err)
	}
	out, _, err := b.Drain(1<<30, make([]Eviction, 0, 4))
	if err != nil || len(out) != 1 || out[0].Handle != 9 {
		t.Errorf("drained %v, %v: want the block that the waiting plan gave up", out, err)
	}
}

func TestARefusedMessageLosesNoEvictions(t *testing.T) {
	b := newBroker(t, "slab", "max_cached_bytes=0")
	plan := part(t, b)
	_, grown := b.Grown(plan.Plan, 7)
	_, made := b.Commit(plan.Plan, 8)
	_, forgotten := b.Forget(plan.Block)
	if err := errors.Join(grown, made, forgotten); err != nil {
		t.Fatal(err)
	}
	_, _, out, err := b.Control("limit nonsense=1", 1, make([]Eviction, 0, 4))
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
	if _, _, err := b.Resume(&other.plan, &request, other.number, false, nil); err == nil {
		t.Error("the waiting plan was served")
	}
}
