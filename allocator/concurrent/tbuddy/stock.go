package tbuddy

import "codeberg.org/gpumemtop/gpumemtop/allocator/concurrent/semaphore"

// stock counts the Available blocks of one order, for threads that take one each. It grows by two at a time, the halves
// of a larger block.
type stock interface {
	// wait takes a block's unit, or makes the caller a grower, who keeps one half and signals the other or the failure.
	wait() bool
	// tryWait takes a block's unit if there is one to take now.
	tryWait() bool
	// promiseUnit promises one block, to be signalled.
	promiseUnit()
	// signal adds n blocks, and ends promises, 0 or 1, which these blocks keep or which are broken.
	signal(n, promises int)
	// units returns the number of units, isAtRest whether none are expected or reserved, for Validate.
	units() int
	isAtRest() bool
}

// bulkStock lets as many threads grow as blocks are needed.
type bulkStock struct{ *semaphore.Bulk }

func newBulkStock(units int) bulkStock { return bulkStock{semaphore.NewBulk(units)} }

func (s bulkStock) wait() bool             { return s.Wait(1, 2) }
func (s bulkStock) tryWait() bool          { return s.TryWait(1) }
func (s bulkStock) promiseUnit()           { s.PromiseUnits(1) }
func (s bulkStock) signal(n, promises int) { s.Signal(n, promises) }
func (s bulkStock) units() int             { return s.Counts().Units }

func (s bulkStock) isAtRest() bool {
	c := s.Counts()
	return c.Expected == 0 && c.Reserved == 0
}
