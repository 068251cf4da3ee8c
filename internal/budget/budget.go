// Package budget bounds the memory that input of others can take. A budget is passed down to what reads such input, which
// charges the bytes that it is about to keep, and goes without what does not fit. A part of a budget is charged to the
// whole as well.
package budget

import (
	"math"
	"sync/atomic"
)

// Session is what a session may take where the user names no other size, in bytes.
const Session = 512 << 20

// Budget is a number of bytes that may be kept. A nil *Budget has no bound. All methods may be called from any goroutine.
type Budget struct {
	whole   *Budget // nil: this is no part of another
	most    atomic.Int64
	used    atomic.Int64
	refused atomic.Uint64
}

// New returns a budget of some bytes.
func New(most int64) *Budget { return (*Budget)(nil).NewPart(most) }

// NewPart returns a budget of at most some bytes, which also count in b.
func (b *Budget) NewPart(most int64) *Budget {
	part := &Budget{whole: b}
	part.GrowBy(most)
	return part
}

// GrowBy makes a budget larger, as more of a file arrives.
func (b *Budget) GrowBy(bytes int64) { b.most.Add(bytes) }

// Charge takes bytes. False: they do not fit, and nothing was taken.
func (b *Budget) Charge(bytes int64) bool {
	if b == nil {
		return true
	}
	if bytes < 0 || !b.takeIfRoom(bytes) {
		b.refused.Add(1)
		return false
	}
	if !b.whole.Charge(bytes) {
		b.used.Add(-bytes)
		b.refused.Add(1)
		return false
	}
	return true
}

func (b *Budget) takeIfRoom(bytes int64) bool {
	for {
		used := b.used.Load()
		if bytes > b.most.Load()-used {
			return false
		}
		if b.used.CompareAndSwap(used, used+bytes) {
			return true
		}
	}
}

// Release gives bytes back that were charged.
func (b *Budget) Release(bytes int64) {
	for ; b != nil; b = b.whole {
		b.used.Add(-bytes)
	}
}

// ReleaseAll gives back all that was charged to b itself. Others that still charge it get nothing more.
func (b *Budget) ReleaseAll() {
	if b != nil {
		b.whole.Release(b.used.Swap(math.MaxInt64))
	}
}

// UsedBytes returns how much of the budget is taken.
func (b *Budget) UsedBytes() int64 {
	if b == nil {
		return 0
	}
	return b.used.Load()
}

// RefusedCount returns how often something did not fit.
func (b *Budget) RefusedCount() uint64 {
	if b == nil {
		return 0
	}
	return b.refused.Load()
}

// AppendIfRoom adds an element to a list if the budget has room for bytes more.
func AppendIfRoom[T any](b *Budget, list []T, bytes int64, element T) ([]T, bool) {
	if !b.Charge(bytes) {
		return list, false
	}
	return append(list, element), true
}
