// Package broker stands between the shim's calls and a policy: it numbers decisions, keeps the driver object of each
// block, and turns a panic into an error, so that a bug in the policy cannot end the program. It knows nothing of C.
package broker

import (
	"errors"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// ErrFailed says that the broker has stopped for good: every later call returns it.
var ErrFailed = errors.New("the allocator has failed")

// Eviction is a block that left the pool, with the driver object that the caller releases.
type Eviction struct {
	allocator.Eviction
	Handle uint64
}

// Decision says how a request is served. A hit has its driver object, and is in use already.
type Decision struct {
	allocator.Decision
	Handle    uint64
	Committed Number // of the commit by which a sub-allocation is in use already; 0: no sub-allocation is
	Waived    Number // of an abandoned decision, whose slab could not be created; its abort has the number before this decision's; 0: none
	Waits     bool   // another thread creates the slab: Resume continues
}

// Number orders the decisions of the policy, from 2 on. 0 means that the policy was not asked, or had nothing to do. There is
// no decision 1: a thread that has made none has 0 as its latest, and decision 1 would seem to follow that.
type Number uint64

// Broker serves one process. The caller serialises all calls, which may come from any thread.
type Broker struct {
	policy *allocator.Arms
	held   [2]allocator.Chunked[uint64] // driver objects by Block.Arm and Block.Index; 0: it does not exist yet
	failed error
	ledger *Ledger
	draft  allocator.Draft // layout that the session is sending

	evicted []allocator.Eviction // scratch of one call
	pending []Eviction           // evictions that the caller has not fetched yet
}

// New returns a broker for the policy of that name with "name=value,..." limits. The ledger is empty. Blocks that the caller
// notes there count as freed before its next call.
func New(policy, limits string, ledger *Ledger) (*Broker, error) {
	p, err := newPolicy(policy, limits)
	if err != nil {
		return nil, err
	}
	b := &Broker{policy: allocator.NewArms(p), ledger: ledger}
	*ledger = Ledger{Latest: 1, Room: b.policy.FreeableBytes(), Due: b.policy.NextExpiry()}
	return b, nil
}

func newPolicy(name, limits string) (*allocator.Pool, error) {
	settings, err := allocator.ParseSettings(limits)
	if err != nil {
		return nil, err
	}
	return allocator.New(name, settings)
}

// nextDecisionNumber returns the number for a decision that the policy is about to make or has just made.
func (b *Broker) nextDecisionNumber() Number {
	b.ledger.Latest++
	return b.ledger.Latest
}

// beginCall frees the blocks in the ledger, and returns the error of a broker that has failed. Callers defer endCall first.
func (b *Broker) beginCall() error {
	b.evicted = b.evicted[:0]
	if b.ledger.Count > 0 {
		b.freeLedgerBlocks()
	}
	return b.failed
}

// endCall turns a panic into an error, which every later call returns, too. It also sets Room and Due of the ledger, at the end
// of each call.
func (b *Broker) endCall(err *error) {
	if p := recover(); p != nil {
		b.failed = fmt.Errorf("%w: %v", ErrFailed, p)
		*err = b.failed
	}
	if b.ledger.Room = [2]uint64{}; b.failed == nil {
		b.ledger.Room, b.ledger.Due = b.policy.FreeableBytes(), b.policy.NextExpiry()
	}
}

// Decide fills an empty decision with how to serve a request. A hit of a whole block is in use, and so is a sub-allocation
// that is Committed: Free takes them back. Every other decision is followed by Commit or Abort. Evictions are appended to
// out.
//
// If the request fits a slab that another thread is creating, the decision Waits, because to ask the driver for more memory would
// be false starvation (seed 001 §3.1). Then the next caller gets the evictions: it may be the other thread, whose create needs
// that memory.
func (b *Broker) Decide(decision *Decision, req *allocator.Request, out []Eviction) (n Number, _ []Eviction, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return 0, out, err
	}
	n = b.nextDecisionNumber()
	b.evicted = b.policy.DecideInto(&decision.Decision, req, b.evicted)
	if decision.Slab == 0 || decision.SlabSize != 0 {
		return n, b.answerWithBlock(decision, out), nil
	}
	if decision.Waits = b.isSlabBeingCreated(decision.Slab); decision.Waits {
		b.postponeEvictions()
		return n, out, nil
	}
	return b.serveSubAllocation(decision, req, n, out)
}

// Resume continues a decision that waits, with number n. The caller calls it when a slab was created or could not be.
// The decision may have to wait longer. If its slab could not be created, or it is too late to wait, the request gets a
// block of its own.
func (b *Broker) Resume(decision *Decision, req *allocator.Request, n Number, late bool, out []Eviction) (_ Number, _ []Eviction, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return 0, out, err
	}
	decision.Waits = b.isSlabBeingCreated(decision.Slab)
	switch {
	case !decision.Waits:
		return b.serveSubAllocation(decision, req, n, out)
	case late:
		return b.serveBlockInstead(decision, req, n, out)
	}
	return n, out, nil
}

// isSlabBeingCreated reports whether a thread is still creating a slab.
func (b *Broker) isSlabBeingCreated(slab allocator.Block) bool {
	return b.policy.HasBlock(slab) && b.handleOf(slab) == 0
}

// serveSubAllocation serves a request from a slab. If the driver refused the slab, the policy has forgotten it, and another
// block may have its index before the last waiting thread comes back.
func (b *Broker) serveSubAllocation(decision *Decision, req *allocator.Request, n Number, out []Eviction) (Number, []Eviction, error) {
	if !b.policy.HasBlock(decision.Slab) {
		return b.serveBlockInstead(decision, req, n, out)
	}
	decision.Handle = b.handleOf(decision.Slab)
	if b.ledger.Latest == n { // no other decision came between
		b.policy.Commit(decision.Decision)
		decision.Committed = b.nextDecisionNumber()
	}
	return n, b.appendEvictions(out), nil
}

// serveBlockInstead gives up a sub-allocation, and serves its request with a block of its own.
func (b *Broker) serveBlockInstead(decision *Decision, req *allocator.Request, n Number, out []Eviction) (Number, []Eviction, error) {
	b.nextDecisionNumber()
	b.policy.Abort(decision.Decision)
	whole := *req
	whole.Align, whole.Again = 0, true
	*decision = Decision{Waived: n}
	n = b.nextDecisionNumber()
	b.evicted = b.policy.DecideInto(&decision.Decision, &whole, b.evicted)
	return n, b.answerWithBlock(decision, out), nil
}

// answerWithBlock answers with a whole block, or with a slab to create.
func (b *Broker) answerWithBlock(decision *Decision, out []Eviction) []Eviction {
	out = b.appendEvictions(out)
	switch {
	case decision.Slab != 0:
		b.noteHandle(decision.Slab, 0)
	case decision.Hit:
		b.policy.Commit(decision.Decision)
		decision.Handle = b.handleOf(decision.Block)
	}
	return out
}

// handleOf returns the driver object of the latest block with a block's index.
func (b *Broker) handleOf(block allocator.Block) uint64 {
	return *b.held[block.Arm()].At(int32(block.Index()))
}

// SlabCreated notes that the driver created the slab of a decision.
func (b *Broker) SlabCreated(decision allocator.Decision, handle uint64) (n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return 0, err
	}
	b.noteHandle(decision.Slab, handle)
	b.policy.SlabCreated(decision)
	return b.nextDecisionNumber(), nil
}

// noteHandle notes the driver object of a block.
func (b *Broker) noteHandle(block allocator.Block, handle uint64) {
	held := &b.held[block.Arm()]
	held.MakePlace(int32(block.Index()))
	*held.At(int32(block.Index())) = handle
}

// Stats returns the policy's counters and gauges.
func (b *Broker) Stats() (s allocator.Stats, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return s, err
	}
	return b.policy.Stats(), nil
}

// Commit notes that the driver created the block of a miss, or a sub-allocation.
func (b *Broker) Commit(decision allocator.Decision, handle uint64) (n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return 0, err
	}
	b.noteHandle(decision.Block, handle)
	b.policy.Commit(decision)
	return b.nextDecisionNumber(), nil
}

// Abort notes that the driver refused to create the block, slab or sub-allocation of a decision.
func (b *Broker) Abort(decision allocator.Decision) (n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return 0, err
	}
	b.policy.Abort(decision)
	return b.nextDecisionNumber(), nil
}

// Free returns a block to the pool. It is busy while queued commands use it. The evictions may include the block itself.
func (b *Broker) Free(block allocator.Block, busy bool, time int64, out []Eviction) (_ []Eviction, n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return out, 0, err
	}
	b.evicted = b.policy.Free(block, busy, time, b.evicted)
	return b.appendEvictions(out), b.nextDecisionNumber(), nil
}

// CoolingEnded notes that the last command that used a block has completed.
func (b *Broker) CoolingEnded(block allocator.Block, time int64, out []Eviction) (_ []Eviction, n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return out, 0, err
	}
	b.evicted = b.policy.CoolingEnded(block, time, b.evicted)
	return b.appendEvictions(out), b.nextDecisionNumber(), nil
}

// Forget takes a block out of the pool without an eviction.
func (b *Broker) Forget(block allocator.Block) (n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return 0, err
	}
	b.policy.Forget(block)
	return b.nextDecisionNumber(), nil
}

// Drain gives up blocks after the driver failed to allocate need bytes.
func (b *Broker) Drain(need uint64, out []Eviction) (_ []Eviction, n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return out, 0, err
	}
	if b.evicted = b.policy.Drain(need, b.evicted); len(b.evicted) > 0 {
		n = b.nextDecisionNumber()
	}
	return b.appendEvictions(out), n, nil
}

// DropClass gives up every free block of a class, and caches no block of it from then on.
func (b *Broker) DropClass(class allocator.Class, out []Eviction) (_ []Eviction, n Number, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return out, 0, err
	}
	b.evicted = b.policy.DropClass(class, b.evicted)
	return b.appendEvictions(out), b.nextDecisionNumber(), nil
}

// Expire gives up blocks that are too old or too many while the program makes no calls, and returns when to call again; 0:
// never, because no limit depends on the time.
func (b *Broker) Expire(time int64, out []Eviction) (_ []Eviction, n Number, next int64, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return out, 0, 0, err
	}
	if b.evicted, next = b.policy.Expire(time, b.evicted); len(b.evicted) > 0 {
		n = b.nextDecisionNumber()
	}
	return b.appendEvictions(out), n, next, nil
}

// MoreEvictions returns evictions that exceeded the capacity of an earlier call's out.
func (b *Broker) MoreEvictions(out []Eviction) (_ []Eviction, err error) {
	defer b.endCall(&err)
	if err = b.beginCall(); err != nil {
		return out, err
	}
	return b.appendEvictions(out), nil
}

// HasPendingEvictions reports whether evictions wait for MoreEvictions.
func (b *Broker) HasPendingEvictions() bool { return len(b.pending) > 0 }

// appendEvictions appends evictions to out up to its capacity. The others wait for MoreEvictions.
func (b *Broker) appendEvictions(out []Eviction) []Eviction {
	if len(b.pending) == 0 && len(out)+len(b.evicted) <= cap(out) {
		for _, e := range b.evicted {
			out = append(out, Eviction{e, b.handleOf(e.Block)})
		}
		return out
	}
	b.postponeEvictions()
	n := min(cap(out)-len(out), len(b.pending))
	out = append(out, b.pending[:n]...)
	b.pending = b.pending[n:]
	return out
}

// postponeEvictions leaves the evictions of this call to a later one.
func (b *Broker) postponeEvictions() {
	for _, e := range b.evicted {
		b.pending = append(b.pending, Eviction{e, b.handleOf(e.Block)})
	}
	b.evicted = b.evicted[:0]
}
