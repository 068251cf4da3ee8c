package twostage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var accountings = map[string]func(batch int) Accounting{
	"bulk":     NewBulk,
	"counting": func(int) Accounting { return NewCounting() },
}

var errEmpty = errors.New("nothing left to grow from")

type pool interface {
	Get() (int, bool)
	Put(unit int)
}

// get calls Get in a thread of its own.
func get(p pool) chan bool {
	done := make(chan bool, 1)
	go func() {
		_, ok := p.Get()
		done <- ok
	}()
	return done
}

// gate stops a thread until the test has looked.
type gate struct{ reached, open chan bool }

func newGate() gate { return gate{make(chan bool), make(chan bool)} }

func (g gate) pass() {
	g.reached <- true
	<-g.open
}

// watched tells when a thread is in Take.
type watched struct {
	Accounting
	begun atomic.Int32
}

func (w *watched) Take() bool {
	w.begun.Add(1)
	return w.Accounting.Take()
}

// comes lets a second thread come to a pool whose first one is growing, and go as far as it can by then. It tells nothing
// that a result depends on: only that the second has been there.
func (w *watched) comes(done chan bool) {
	for w.begun.Load() < 2 {
		runtime.Gosched()
	}
	for range 100 {
		if len(done) > 0 {
			return
		}
		runtime.Gosched()
	}
}

// TestNaivePoolStarves: a thread is cutting the only block, which has a unit for another thread too; that one is told
// that there is no memory.
func TestNaivePoolStarves(t *testing.T) {
	g := newGate()
	p := NewNaive([]int{1, 2}, func(block []int) (int, []int) {
		g.pass()
		return block[0], block[1:]
	})
	first := get(p)
	<-g.reached
	if _, ok := p.Get(); ok {
		t.Fatal("the naive pool has served a second thread: it starves nobody, and the next tests show nothing")
	}
	close(g.open)
	if !<-first {
		t.Fatal("the first thread got nothing")
	}
	last := get(p)
	<-g.reached
	if !<-last {
		t.Error("the unit was there, and is lost")
	}
}

// TestTwoStagesDoNotStarve: the same schedule with accounts; the second thread waits and is served.
func TestTwoStagesDoNotStarve(t *testing.T) {
	for name, accounts := range accountings {
		t.Run(name, func(t *testing.T) {
			g, grown := newGate(), 0
			w := &watched{Accounting: accounts(2)}
			p := New(w, &Stack[int]{}, func() ([]int, error) {
				grown++
				g.pass()
				return []int{1, 2}, nil
			})
			first := get(p)
			<-g.reached
			second := get(p)
			w.comes(second)
			close(g.open)
			if !<-first || !<-second {
				t.Error("out of memory with a unit on its way")
			}
			if grown != 1 {
				t.Errorf("grew %d times", grown)
			}
		})
	}
}

// TestWaiterGrows: the first grower fails while a second thread waits for it. That one grows itself: it is served if
// there is something by then, and told so if not.
func TestWaiterGrows(t *testing.T) {
	for name, accounts := range accountings {
		for _, refilled := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				g := newGate()
				var calls atomic.Int32
				w := &watched{Accounting: accounts(2)}
				p := New(w, &Stack[int]{}, func() ([]int, error) {
					if calls.Add(1) == 1 {
						g.pass()
						return nil, errEmpty
					}
					if refilled {
						return []int{1}, nil // and fewer than promised
					}
					return nil, nil
				})
				first := get(p)
				<-g.reached
				second := get(p)
				w.comes(second)
				close(g.open)
				if <-first || <-second != refilled || calls.Load() != 2 {
					t.Errorf("refilled %v: %d threads grew", refilled, calls.Load())
				}
			})
		}
	}
}

// diary notes in which order a pool adds units and says so.
type diary struct {
	Accounting
	Stack[int]
	log []string
}

func (d *diary) Put(unit int) {
	d.log = append(d.log, "put")
	d.Stack.Put(unit)
}

func (d *diary) Grown(n int) {
	d.log = append(d.log, fmt.Sprint("grown ", n))
	d.Accounting.Grown(n)
}

func (d *diary) Give() {
	d.log = append(d.log, "give")
	d.Accounting.Give()
}

// trackerOf keeps apart the two that both have a Take.
type trackerOf struct{ *diary }

func (t trackerOf) Take() (int, bool) { return t.Stack.Take() }

type accountsOf struct{ *diary }

func (a accountsOf) Take() bool { return a.Accounting.Take() }

// TestUnitsAreThereBeforeTheyCount: each unit is in the tracker when the accounts hear of it, and counts once.
func TestUnitsAreThereBeforeTheyCount(t *testing.T) {
	for name, accounts := range accountings {
		t.Run(name, func(t *testing.T) {
			made := 0
			d := &diary{Accounting: accounts(3)}
			p := New(accountsOf{d}, trackerOf{d}, func() ([]int, error) {
				made += 3
				return []int{made - 2, made - 1, made}, nil
			})
			seen := map[int]bool{}
			for range 4 {
				unit, ok := p.Get()
				if !ok || seen[unit] {
					t.Errorf("unit %d, %v, after %v", unit, ok, seen)
				}
				seen[unit] = true
			}
			p.Put(1)
			if want := []string{"put", "put", "grown 2", "put", "put", "grown 2", "put", "give"}; !slices.Equal(d.log, want) {
				t.Errorf("%q", d.log)
			}
		})
	}
}

func TestGrowPanics(t *testing.T) {
	for name, accounts := range accountings {
		t.Run(name, func(t *testing.T) {
			first := true
			p := New(accounts(4), &Stack[int]{}, func() ([]int, error) {
				if first {
					first = false
					panic("no")
				}
				return []int{1}, nil
			})
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic is lost")
					}
				}()
				p.Get()
			}()
			if _, ok := p.Get(); !ok {
				t.Error("the pool waits for a grower that is gone")
			}
		})
	}
}

// TestHammer: threads take and give back; each unit has one owner, none is lost, and nobody fails while the units made
// are enough.
func TestHammer(t *testing.T) {
	const threads, batch, most = 24, 3, 60
	for name, accounts := range accountings {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int32
			owned := make([]atomic.Bool, most)
			stack := &Stack[int]{}
			p := New(accounts(batch), stack, func() (units []int, err error) {
				end := int(made.Add(batch))
				if end > most {
					return nil, errEmpty
				}
				return []int{end - 3, end - 2, end - 1}, nil
			})
			var wg sync.WaitGroup
			for seed := range uint64(threads) {
				wg.Go(func() { holdTwo(t, p, owned, rand.New(rand.NewPCG(seed, 9))) })
			}
			wg.Wait()
			count := 0
			for _, ok := stack.Take(); ok; _, ok = stack.Take() {
				count++
			}
			if count != int(made.Load()) {
				t.Errorf("%d units made, %d found", made.Load(), count)
			}
		})
	}
}

// holdTwo holds up to two units at a time.
func holdTwo(t *testing.T, p *Pool[int], owned []atomic.Bool, rng *rand.Rand) {
	var held []int
	give := func() {
		owned[held[0]].Store(false)
		p.Put(held[0])
		held = held[1:]
	}
	for range 400 {
		if len(held) == 2 || len(held) == 1 && rng.IntN(2) == 0 {
			give()
			continue
		}
		unit, ok := p.Get()
		if !ok || owned[unit].Swap(true) {
			t.Errorf("unit %d: served %v, or it has an owner", unit, ok)
			return
		}
		held = append(held, unit)
	}
	for len(held) > 0 {
		give()
	}
}

// TestPutWhileGrowingFails: what others put back while a thread finds out that there is nothing to grow from is found.
func TestPutWhileGrowingFails(t *testing.T) {
	for name, accounts := range accountings {
		t.Run(name, func(t *testing.T) {
			meanwhile := func() {}
			batch := []int{1, 2}
			p := New(accounts(2), &Stack[int]{}, func() ([]int, error) {
				if batch == nil {
					meanwhile()
					return nil, errEmpty
				}
				got := batch
				batch = nil
				return got, nil
			})
			first, _ := p.Get()
			second, _ := p.Get()
			meanwhile = func() { p.Put(second) }
			if unit, ok := p.Get(); !ok || unit != second {
				t.Errorf("unit %d, %v: want the one that was put back", unit, ok)
			}
			meanwhile = func() {}
			if unit, ok := p.Get(); ok || unit != 0 {
				t.Errorf("unit %d of an empty pool", unit)
			}
			p.Put(first)
			if unit, ok := p.Get(); !ok || unit != first {
				t.Errorf("unit %d, %v: want the one that was put back", unit, ok)
			}
		})
	}
}
