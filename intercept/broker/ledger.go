package broker

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// LedgerSize is how many blocks a ledger holds.
const LedgerSize = 32

// Ledger is a list of blocks that the program has released and no command uses. To note a block there costs the caller a few
// ns, instead of a call of Free. The next call of the broker first frees the blocks in the list. The policy's
// decisions are the same as with calls of Free: no other decision comes between, and the policy evicts no block, because the
// caller notes at most Room bytes, and none from the time Due on. The decision on the block noted last has the number
// Latest + Count.
//
// The ledger is struct gmt_ledger of shim/base/core.h, in the shim's memory.
type Ledger struct {
	Latest Number    // number of the latest decision
	Room   [2]uint64 // bytes that may still be noted, by the arm of the block
	Due    int64     // ns: when the policy may have to give blocks up
	Count  uint64    // number of blocks in Freed
	Freed  [LedgerSize]Freed
}

// Freed is a block in the ledger, with the time of its release.
type Freed struct {
	Block allocator.Block
	Time  int64 // ns
}

// freeLedgerBlocks frees the blocks in the ledger. If the policy evicts one nevertheless, the caller gets it with this call's evictions.
func (b *Broker) freeLedgerBlocks() {
	noted := b.ledger.Freed[:min(b.ledger.Count, LedgerSize)]
	b.ledger.Count = 0
	if b.failed != nil {
		return
	}
	for _, f := range noted {
		b.nextDecisionNumber()
		b.evicted = b.policy.Free(f.Block, false, f.Time, b.evicted)
	}
	b.postponeEvictions()
}
