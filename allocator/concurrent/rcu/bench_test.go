package rcu

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// list is a doubly linked list that readers walk forwards while writers, one at a time, unlink.
type list struct {
	head  atomic.Pointer[element]
	mutex sync.Mutex
}

type element struct {
	tag      int
	next     atomic.Pointer[element]
	previous *element // for writers
}

// newList returns a list with the tags 0 to n-1.
func newList(n int) *list {
	l := &list{}
	for i := range n {
		first := l.head.Load()
		e := &element{tag: n - 1 - i}
		e.next.Store(first)
		if first != nil {
			first.previous = e
		}
		l.head.Store(e)
	}
	return l
}

func (l *list) find(d *Domain, tag int) *element {
	r := d.Enter()
	defer d.Exit(r)
	for e := l.head.Load(); e != nil; e = e.next.Load() {
		if e.tag == tag {
			return e
		}
	}
	return nil
}

// unlink takes e out. Its forward pointer stays, for readers that have reached it.
func (l *list) unlink(e *element) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	next := e.next.Load()
	if next != nil {
		next.previous = e.previous
	}
	if e.previous != nil {
		e.previous.next.Store(next)
	} else {
		l.head.Store(next)
	}
}

// search is one run of the benchmark of seed 001 §5.2: goroutines share a vector of tags, search the list for each and
// take out what they find. It returns how many barriers were left to others.
func search(l *list, tags, goroutines int, conditional bool) int64 {
	d := New()
	var next, delegated atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for {
				// An odd factor visits all tags of a power of two, in an order unlike that of the list.
				i := next.Add(1) - 1
				if i >= int64(tags) {
					return
				}
				e := l.find(d, int(i*2654435761&int64(tags-1)))
				if e == nil {
					continue
				}
				l.unlink(e)
				d.Defer(func() { e.tag = -1 })
				if !conditional {
					d.Barrier()
				} else if !d.TryBarrier() {
					delegated.Add(1)
				}
			}
		})
	}
	all.Wait()
	return delegated.Load()
}

// BenchmarkRemove measures delegation against full barriers: the vector holds ratio times as many tags as the list,
// so that one search in ratio becomes a writer.
func BenchmarkRemove(b *testing.B) {
	const tags = 1 << 13
	for _, ratio := range []int{1, 2, 4, 16, 64} {
		for _, goroutines := range []int{2, 8, 32, 128} {
			for _, kind := range []string{"plain", "delegated"} {
				b.Run(fmt.Sprintf("ratio=%d/goroutines=%d/%s", ratio, goroutines, kind), func(b *testing.B) {
					var delegated int64
					for b.Loop() {
						b.StopTimer()
						l := newList(tags / ratio)
						b.StartTimer()
						delegated += search(l, tags, goroutines, kind == "delegated")
						if l.head.Load() != nil {
							b.Fatal("not all elements were taken out")
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tags), "ns/tag")
					b.ReportMetric(float64(delegated)/float64(b.N*tags/ratio), "left-to-others/writer")
				})
			}
		}
	}
}
