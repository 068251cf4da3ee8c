package broker

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// LedgerSize is how many blocks a ledger holds.
const LedgerSize = 32

// Ledger is where the caller notes blocks that the program has released and nothing uses, instead of a call of Free for each:
// they cost a few ns, and the next call takes them back first. Nothing can see the difference: no other decision comes between,
// and no block is evicted, because the caller notes no more bytes than there is room for. The decision for the block that was
// noted last has the number Latest + Count.
//
// It is struct gmt_ledger of shim/base/core.h, in memory of the shim.
type Ledger struct {
	Latest Number // of the decisions so far
	Room   uint64 // bytes that may still be noted
	Count  uint64 // of Freed
	Freed  [LedgerSize]Freed
}

// Freed is a block that was noted, and when.
type Freed struct {
	Block allocator.Block
	Time  int64 // ns
}

// settle takes back what was noted. Should a block be evicted for all that, its driver object goes with this call's.
func (b *Broker) settle() {
	noted := b.ledger.Freed[:min(b.ledger.Count, LedgerSize)]
	b.ledger.Count = 0
	if b.failed != nil {
		return
	}
	for _, f := range noted {
		b.number()
		b.evicted = b.policy.Free(f.Block, false, f.Time, b.evicted)
	}
	b.postpone()
}
