package replay

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// crew is a program of several threads under a policy. Each thread records its decisions in order, but some time after
// they were made, while other threads decide.
type crew struct {
	t       *testing.T
	rng     *rand.Rand
	policy  *allocator.Arms
	tape    *labtest.Tape
	threads []worker
	number  uint64 // of the latest decision
	object  uint64
	cooling []allocator.Block
	sizes   map[allocator.Block]uint64

	experiments bool // some alternative decides now and then
}

// worker is one thread.
type worker struct {
	events  []wire.Record // not read yet
	last    uint64        // number of its latest decision
	buffers []uint64
	blocks  []allocator.Block   // of these
	making  *allocator.Decision // the driver makes its block
	request allocator.Request
}

func newCrew(t *testing.T, seed uint64, threads int) *crew {
	policy, err := allocator.New("futhark", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &crew{
		t: t, rng: rand.New(rand.NewPCG(seed, 7)), policy: allocator.NewArms(policy), tape: labtest.NewTape(), threads: make([]worker, threads), number: 1,
		sizes: map[allocator.Block]uint64{},
	}
}

// say adds an event that is not read yet.
func (w *worker) say(e wire.Event) { w.events = append(w.events, wire.Record{Event: e}) }

// evicted says which blocks the thread gave back.
func (c *crew) evicted(w *worker, evictions []allocator.Eviction) {
	if len(evictions) > 0 && !c.experiments {
		c.t.Fatal("something is too old or too much")
	}
	for _, e := range evictions {
		w.say(wire.Event{Kind: wire.KindEvict, Link: uint64(e.Block), Granted: e.Size, Reason: uint8(e.Reason)})
	}
}

// decided notes that the policy has decided for a thread, which records that with what follows.
func (c *crew) decided(w *worker) {
	c.number++
	if c.number != w.last+1 {
		w.say(wire.Event{Kind: wire.KindOrder, Op: uint8(wire.OrderNext), Object: c.number, Link: w.last})
	}
	w.last = c.number
}

// step lets a thread do something, or tell something.
func (c *crew) step() {
	thread := c.rng.IntN(len(c.threads))
	w := &c.threads[thread]
	what := c.rng.IntN(12)
	switch {
	case what < 5:
		c.read(thread)
	case w.making != nil:
		c.made(w)
	case what < 8:
		c.ask(w)
	case what < 10 && len(w.buffers) > 0:
		c.free(w)
	case what == 10 && len(c.cooling) > 0:
		c.cool(w)
	case what == 11 && c.experiments:
		c.experiment(w)
	default:
		others := []wire.Event{{Kind: wire.KindUse, Object: 1}, {Kind: wire.KindUse, Object: 1}, {Kind: wire.KindSync, Op: uint8(wire.SyncFinish)}}
		w.say(others[c.rng.IntN(len(others))])
	}
}

// read moves a thread's events into the recording, bit by bit.
func (c *crew) read(thread int) {
	w := &c.threads[thread]
	for n := c.rng.IntN(4); n > 0 && len(w.events) > 0; n-- {
		c.tape.SetThread(uint32(thread + 1)).AddEvent(w.events[0].Event).Payload = w.events[0].Payload
		w.events = w.events[1:]
	}
}

func (c *crew) ask(w *worker) {
	w.request = allocator.Request{Size: 4096 * (1 + c.rng.Uint64N(3)), Class: 1, Max: 1 << 28, Heap: 1 << 30, Align: 128, Round: 1 << 28}
	var plan allocator.Decision
	evictions := c.policy.DecideInto(&plan, &w.request, nil)
	c.decided(w)
	c.evicted(w, evictions)
	if plan.Hit {
		c.policy.Commit(plan)
		c.serve(w, plan, wire.OutcomeHit)
		return
	}
	w.making = &plan
}

// made gives a thread the block that the driver made.
func (c *crew) made(w *worker) {
	c.policy.Commit(*w.making)
	c.decided(w)
	c.serve(w, *w.making, wire.OutcomeMiss)
	w.making = nil
}

func (c *crew) serve(w *worker, plan allocator.Decision, outcome wire.Outcome) {
	c.object++
	c.sizes[plan.Block] = plan.Size
	w.buffers, w.blocks = append(w.buffers, c.object), append(w.blocks, plan.Block)
	w.say(wire.Event{
		Kind: wire.KindCreate, Outcome: outcome, Reason: uint8(plan.Reason), Object: c.object, Link: uint64(plan.Block), Size: w.request.Size,
		Granted: plan.Size, Scope: labtest.Scope, Access: labtest.ReadWrite,
	})
}

func (c *crew) free(w *worker) {
	i := c.rng.IntN(len(w.buffers))
	object, block := w.buffers[i], w.blocks[i]
	last := len(w.buffers) - 1
	w.buffers[i], w.blocks[i] = w.buffers[last], w.blocks[last]
	w.buffers, w.blocks = w.buffers[:last], w.blocks[:last]
	e := wire.Event{Kind: wire.KindRelease, Object: object, Link: uint64(block), Size: c.sizes[block], Outcome: wire.OutcomeCached}
	busy := c.rng.IntN(3) == 0
	if busy {
		e.Outcome, e.Flags = wire.OutcomeCooling, wire.FlagWouldRace
		c.cooling = append(c.cooling, block)
	}
	evictions := c.policy.Free(block, busy, 0, nil)
	c.decided(w)
	if slices.ContainsFunc(evictions, func(gone allocator.Eviction) bool { return gone.Block == block }) {
		e.Outcome = wire.OutcomeRefused
		c.cooling = slices.DeleteFunc(c.cooling, func(b allocator.Block) bool { return b == block })
	}
	w.say(e)
	c.evicted(w, evictions)
}

// cool records that a block has cooled, behind its release and before the policy learns of it: the finder records
// that later.
func (c *crew) cool(w *worker) {
	block := c.cooling[0]
	c.cooling = c.cooling[1:]
	c.readAll()
	w.say(wire.Event{Kind: wire.KindCooled, Link: uint64(block), Granted: c.sizes[block]})
	c.readAll()
	evictions := c.policy.CoolingEnded(block, 0, nil)
	c.decided(w)
	c.evicted(w, evictions)
}

func (c *crew) readAll() {
	for i := range c.threads {
		for len(c.threads[i].events) > 0 {
			c.read(i)
		}
	}
}

// TestThreadsReplayExactly: in whatever order threads record, a replay decides as the policy did, and a batch that
// leaves out records of no concern gives the same results.
func TestThreadsReplayExactly(t *testing.T) {
	for seed := range uint64(12) {
		c := newCrew(t, seed, 2+int(seed%6))
		for range 3000 {
			c.step()
		}
		for i := range c.threads {
			if c.threads[i].making != nil {
				c.made(&c.threads[i])
			}
		}
		c.readAll()
		compared, err := CompareDecisions(c.tape, Options{Policy: "futhark"})
		if err != nil {
			t.Fatal(err)
		}
		if !compared.IsExact() || compared.Requests != c.object {
			t.Fatalf("seed %d: %+v", seed, compared)
		}
		for _, batch := range []int{1, 64} {
			simulations := playAll(t, c.tape, batch, Options{})
			simulations.EndStream()
			for member, name := range allocator.PolicyNames() {
				if err := simulations.PlayMember(member); err != nil {
					t.Fatal(err)
				}
				want := replay(t, c.tape, name, 0)
				if diff := cmp.Diff(*want, simulations.ResultOfMember(member, cost.Device{})); diff != "" {
					t.Fatalf("seed %d, %s, batches of %d: %s", seed, name, batch, diff)
				}
			}
		}
	}
}
