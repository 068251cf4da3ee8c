package broker

import (
	"errors"
	"testing"
	"testing/synctest"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// part asks for a buffer that slabs can serve.
func part(t *testing.T, b *Broker) Plan {
	t.Helper()
	plan, _, out, err := ask(b, allocator.Request{Size: 4096, Align: 128, Class: 1, Max: 1 << 30, Heap: 1 << 32}, nil)
	if err != nil || len(out) > 0 {
		t.Errorf("plan: %v, evictions %v", err, out)
	}
	return plan
}

// second starts a request while the slab that it fits is being created.
func second(t *testing.T, b *Broker) (first Plan, other <-chan Plan) {
	t.Helper()
	first = part(t, b)
	if first.SlabSize == 0 || first.Hit {
		t.Fatalf("plan %+v, want one that creates a slab", first)
	}
	answer := make(chan Plan, 1)
	go func() { answer <- part(t, b) }()
	synctest.Wait()
	select {
	case plan := <-answer:
		t.Fatalf("plan %+v did not wait for the slab", plan)
	default:
	}
	return first, answer
}

func TestAPlanWaitsForTheSlabThatAnotherThreadCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, "slab", "")
		first, other := second(t, b)
		if _, err := b.Grown(first.Plan, 77); err != nil {
			t.Fatal(err)
		}
		plan := <-other
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
	})
}

func TestAPlanThatWaitedForNothingGetsABlockOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, "slab", "")
		first, other := second(t, b)
		if _, err := b.Abort(first.Plan); err != nil {
			t.Fatal(err)
		}
		plan := <-other
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
	})
}

// The slab that was refused is forgotten at once, and its index goes to the next block: those who wait must not take
// that block's object for the slab's.
func TestAWaiterIsNotFooledByABlockWithTheIndexOfTheSlab(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, "slab", "")
		first, other := second(t, b)
		b.mu.Lock() // as another thread that is there first
		b.keep(first.Slab, refused)
		b.settle()
		b.policy.Abort(first.Plan)
		next, _ := b.policy.Plan(allocator.Request{Size: 64, Class: 2}, nil)
		for next.Block.Index() != first.Slab.Index() {
			b.keep(next.Block, 66)
			b.policy.Commit(next)
			next, _ = b.policy.Plan(allocator.Request{Size: 64, Class: 2}, nil)
		}
		b.keep(next.Block, 66)
		b.policy.Commit(next)
		b.mu.Unlock()
		if plan := <-other; plan.Slab != 0 || plan.Handle == 66 {
			t.Errorf("plan %+v, want a block of its own", plan)
		}
	})
}

func TestAPlanDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, "slab", "")
		first, other := second(t, b)
		plan := <-other // the other thread stays in the driver
		if plan.Slab != 0 || plan.Hit {
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
	})
}

// What a plan has to release before it waits may be what the create that it waits for needs.
func TestWhatAWaitingPlanEvictsIsThereForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		first := part(t, b)
		go func() {
			if _, _, _, err := ask(b, allocator.Request{Size: 4096, Align: 128, Class: 1, Time: 5e9}, nil); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		out, _, err := b.Drain(1<<30, make([]Eviction, 0, 4))
		if err != nil || len(out) != 1 || out[0].Handle != 9 {
			t.Errorf("drained %v, %v: want the block that the waiting plan gave up", out, err)
		}
		if _, err := b.Grown(first.Plan, 77); err != nil {
			t.Fatal(err)
		}
	})
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
	synctest.Test(t, func(t *testing.T) {
		b := newBroker(t, "slab", "")
		if plan := part(t, b); plan.SlabSize == 0 {
			t.Fatalf("plan %+v, want one that creates a slab", plan)
		}
		failed := make(chan error, 1)
		go func() {
			_, _, _, err := ask(b, allocator.Request{Size: 4096, Align: 128, Class: 1}, nil)
			failed <- err
		}()
		synctest.Wait()
		b.policy = nil // whatever comes next panics
		if _, err := b.Forget(1); err == nil {
			t.Error("a panic was no failure")
		}
		if err := <-failed; err == nil {
			t.Error("the waiting plan was served")
		}
	})
}
