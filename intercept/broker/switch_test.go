package broker

import (
	"runtime"
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// device is a driver whose objects are numbered; it fails the test when one is released twice, or while it is used.
type device struct {
	testing.TB
	mu   sync.Mutex
	next uint64
	uses map[uint64]int // of objects that exist
}

func (d *device) create() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	d.uses[d.next] = 0
	return d.next
}

// use says that the program has an object, or a part of it, or has it no more.
func (d *device) use(handle uint64, by, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, known := d.uses[handle]; !known || n+by < 0 || n+by > most {
		d.Errorf("object %d, which is there: %v, has %d users and gets %d more", handle, known, n, by)
	}
	d.uses[handle] += by
}

// release carries evictions out, and those that did not fit.
func (d *device) release(b *gate, out []Eviction, err error) {
	for ; err == nil && len(out) > 0; out, err = b.More(out[:0]) {
		d.mu.Lock()
		for _, e := range out {
			if n, known := d.uses[e.Handle]; !known || n > 0 {
				d.Errorf("%+v is released, there: %v, with %d users", e, known, n)
			}
			delete(d.uses, e.Handle)
		}
		d.mu.Unlock()
	}
	if err != nil {
		d.Error(err)
	}
}

// cycle creates a buffer and releases it, as the shim does.
func (d *device) cycle(b *gate, req allocator.Request, cools bool) {
	var room [4]Eviction
	decision, n, out, err := ask(b, req, room[:0])
	d.release(b, out, err)
	for tries := 0; decision.Waits && err == nil; tries++ { // for a slab that another goroutine creates
		runtime.Gosched()
		n, out, err = b.Resume(&decision, &req, n, tries == 10, room[:0])
		d.release(b, out, err)
	}
	handle, shared := decision.Handle, 1
	if decision.SlabSize != 0 {
		handle = d.create()
		if _, err := b.SlabCreated(decision.Decision, handle); err != nil {
			d.Error(err)
		}
	}
	switch {
	case decision.Slab != 0:
		shared = 1 << 20
		if _, err := b.Commit(decision.Decision, 0); err != nil {
			d.Error(err)
		}
	case !decision.Hit:
		handle = d.create()
		if _, err := b.Commit(decision.Decision, handle); err != nil {
			d.Error(err)
		}
	}
	d.use(handle, 1, shared)
	d.use(handle, -1, shared)
	out, _, err = b.Free(decision.Block, cools, req.Time, room[:0])
	d.release(b, out, err)
	if cools {
		out, _, err = b.CoolingEnded(decision.Block, req.Time, room[:0])
		d.release(b, out, err)
	}
}

// TestHammerWithSwitches has eight threads create and release while the policy changes: nothing is released while
// in use or twice, and at the end nothing is left.
func TestHammerWithSwitches(t *testing.T) {
	b := newBroker(t, "slab", "")
	d := &device{TB: t, uses: map[uint64]int{}}
	var workers, changer sync.WaitGroup
	for g := range 8 {
		workers.Go(func() {
			for i := range 1500 {
				req := allocator.Request{
					Size: uint64(1+(g*i)%64) << (8 + i%6), Class: allocator.Class(1 + g%3), Tag: allocator.Tag(g), Time: int64(i), Pinned: g%3 == 1,
				}
				if i%4 != 0 {
					req.Align = 128
				}
				d.cycle(b, req, i%5 == 0)
			}
		})
	}
	over := make(chan struct{})
	changes := 0
	changer.Go(func() {
		names := allocator.PolicyNames()
		for ; ; changes++ {
			select {
			case <-over:
				return
			default:
			}
			message := "policy " + names[changes%len(names)]
			if changes%3 == 0 && names[changes%len(names)] != "none" {
				message += " max_cached_bytes=200000"
			}
			_, _, out, err := b.ObeyMessage(message, 0, make([]Eviction, 0, 4))
			d.release(b, out, err)
		}
	})
	workers.Wait()
	close(over)
	changer.Wait()
	for c := range allocator.Class(4) {
		out, _, err := b.DropClass(c, make([]Eviction, 0, 4))
		d.release(b, out, err)
	}
	if s, err := b.Stats(); err != nil || s.Blocks != 0 || s.ReservedBytes() != 0 || len(d.uses) != 0 || changes == 0 {
		t.Errorf("after %d changes %d objects are left, and of the policy %+v (%v)", changes, len(d.uses), s, err)
	}
	if err := b.policy.Validate(); err != nil {
		t.Error(err)
	}
}
