package tbuddy

import (
	"math/bits"
	"sync"
)

// mutexBuddy is the usual buddy allocator, a free list per order behind one mutex: the baseline of seed 001 §4.1.
type mutexBuddy struct {
	mu         sync.Mutex
	pages      int
	heads      []int32 // of the lists, by order; pages are numbered from 1 in them, 0 ends one
	next, prev []int32 // by page
	free, held []int8  // by page: 1 + the order of the block that begins there and is free, or allocated; 0: none does
}

// newMutexBuddy returns an allocator over that many pages, all free. It panics unless pages is 1 to MaxPages.
func newMutexBuddy(pages int) *mutexBuddy {
	height := New(pages).height // and its panic
	m := &mutexBuddy{pages: pages, heads: make([]int32, height+1)}
	m.next, m.prev = make([]int32, pages+1), make([]int32, pages+1)
	m.free, m.held = make([]int8, pages+1), make([]int8, pages+1)
	for page := 0; page < pages; {
		order := min(bits.Len(uint(pages-page))-1, bits.TrailingZeros(uint(page)|1<<height))
		m.push(page, order)
		page += 1 << order
	}
	return m
}

// Alloc takes a block as Tree.Alloc does.
func (m *mutexBuddy) Alloc(order int, _ uint64) (page int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if order < 0 {
		return 0, false
	}
	for from := order; from < len(m.heads); from++ {
		if m.heads[from] == 0 {
			continue
		}
		page = int(m.heads[from] - 1)
		m.pop(page, from)
		for ; from > order; from-- {
			m.push(page+1<<(from-1), from-1)
		}
		m.held[page] = int8(order + 1)
		return page, true
	}
	return 0, false
}

// Free gives a block back as Tree.Free does.
func (m *mutexBuddy) Free(page, order int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if page < 0 || page >= m.pages || order < 0 || m.held[page] != int8(order+1) {
		return false
	}
	m.held[page] = 0
	for order+1 < len(m.heads) {
		buddy := page ^ 1<<order
		if buddy >= m.pages || m.free[buddy] != int8(order+1) {
			break
		}
		m.pop(buddy, order)
		page &^= 1 << order
		order++
	}
	m.push(page, order)
	return true
}

func (m *mutexBuddy) push(page, order int) {
	head := m.heads[order]
	m.next[page], m.prev[page] = head, 0
	if head != 0 {
		m.prev[head-1] = int32(page + 1)
	}
	m.heads[order] = int32(page + 1)
	m.free[page] = int8(order + 1)
}

func (m *mutexBuddy) pop(page, order int) {
	next, prev := m.next[page], m.prev[page]
	if next != 0 {
		m.prev[next-1] = prev
	}
	if prev != 0 {
		m.next[prev-1] = next
	} else {
		m.heads[order] = next
	}
	m.free[page] = 0
}
