package main

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"codeberg.org/gpumemtop/gpumemtop/allocator/rcu"
)

// delegation compares conditional barriers with plain ones (seed 001 §5.2).
func (b *bench) delegation() error {
	const searches = 1 << 13
	threads := []int{2, 8, 32, 128}
	b.row("readers : writers", "2 threads", "8 threads", "32 threads", "128 threads")
	for _, ratio := range []int{1, 2, 4, 16, 64} {
		var ways []func() (float64, error)
		for _, n := range threads {
			for _, barrier := range []func(*rcu.Domain){(*rcu.Domain).Barrier, func(d *rcu.Domain) { d.TryBarrier() }} {
				ways = append(ways, func() (float64, error) {
					return repeated(lasts, searches, func() (float64, error) { return removeAll(searches, searches/ratio, n, barrier) })
				})
			}
		}
		cells := []any{fmt.Sprintf("%d : 1", ratio)}
		figures := inTurns(b.runs, ways)
		for i := 0; i < len(figures); i += 2 {
			plain, delegated := figures[i], figures[i+1]
			if err := errors.Join(plain.err, delegated.err); err != nil {
				return err
			}
			cells = append(cells, fmt.Sprintf("%s / %s = %s", counted(plain.value), counted(delegated.value), plain.over(delegated)))
		}
		b.row(cells...)
	}
	b.flush()
	fmt.Println("\nns for one search of a list, with plain barriers / with barriers that may be left to another thread = times faster, and\n" +
		"the lowest and highest of one turn. Who finds an element takes it out and needs a barrier. Each figure is of as many\n" +
		"lists as take 0.1 s. Of two threads none finds a third one to leave its barrier to. The more searches find nothing, the\n" +
		"rarer is a barrier, and the shorter the list.")
	return nil
}

// chain is a list that threads search while others take elements out.
type chain struct {
	first   link // before the first element
	writers sync.Mutex
}

// link is an element. One that was taken out still leads on, for those who stand on it.
type link struct {
	tag  int
	next atomic.Pointer[link]
	back *link // for writers
}

// newChain returns a list of the tags below n.
func newChain(n int) *chain {
	c := &chain{}
	last := &c.first
	for tag := range n {
		l := &link{tag: tag, back: last}
		last.next.Store(l)
		last = l
	}
	return c
}

// search returns the element with a tag, nil when there is none.
func (c *chain) search(d *rcu.Domain, tag int) *link {
	defer d.Exit(d.Enter())
	l := c.first.next.Load()
	for l != nil && l.tag != tag {
		l = l.next.Load()
	}
	return l
}

func (c *chain) remove(l *link) {
	c.writers.Lock()
	defer c.writers.Unlock()
	next := l.next.Load()
	l.back.next.Store(next)
	if next != nil {
		next.back = l.back
	}
}

// removeAll has threads search for so many tags, a power of two, of which the list has the first few, and returns the
// ns of one search.
func removeAll(searches, elements, threads int, barrier func(*rcu.Domain)) (float64, error) {
	c, d := newChain(elements), rcu.New()
	var next atomic.Int64
	steps := make([]step, threads)
	for i := range steps {
		steps[i] = func(n int) error {
			for range n {
				// Odd factors visit every tag once, in no order.
				l := c.search(d, int(uint64(next.Add(1))*0x9e3779b1%uint64(searches)))
				if l == nil {
					continue
				}
				c.remove(l)
				d.Defer(func() { l.tag = -1 })
				barrier(d)
			}
			return nil
		}
	}
	ns, err := share(searches, steps)
	if err == nil && c.first.next.Load() != nil {
		err = errors.New("elements were not found")
	}
	return ns, err
}
