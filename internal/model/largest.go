package model

// Largest is a multiset of sizes that knows the largest of them. One goroutine uses it. Both changes cost O(log n), n
// the number of different sizes. The zero value is empty.
type Largest struct{ sizes sizes }

// Add adds a size.
func (l *Largest) Add(size uint64) { l.sizes.add(size) }

// Remove takes a size off that was added before.
func (l *Largest) Remove(size uint64) { l.sizes.remove(size) }

// Value returns the largest size, 0 when there is none.
func (l *Largest) Value() uint64 { return l.sizes.largest() }
