package broker

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// TestDecisionsAreNumbered one up from 2, and what decides nothing has no number.
func TestDecisionsAreNumbered(t *testing.T) {
	b := newBroker(t, "futhark", "max_age=10")
	var numbers []Number
	count := func(n Number, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	request := func(time int64) Decision {
		decision, n, _, err := ask(b, allocator.Request{Size: 1 << 20, Class: 1, Time: time}, nil)
		count(n, err)
		return decision
	}
	room := make([]Eviction, 0, 4)
	_, n, err := b.Drain(1, room) // there is nothing
	count(n, err)
	block := request(1)
	count(b.Commit(block.Decision, 7))
	count(b.Abort(request(1).Decision))
	_, n, err = b.Free(block.Block, true, 2, room)
	count(n, err)
	_, n, err = b.CoolingEnded(block.Block, 3, room)
	count(n, err)
	if again := request(4); !again.Hit || again.Waived != 0 {
		t.Errorf("%+v, want a hit", again)
	}
	count(b.Forget(block.Block))
	_, n, _, err = b.Expire(5, room) // nothing is too old
	count(n, err)
	_, n, _, err = b.ObeyMessage("trim 0", 6, room)
	count(n, err)
	_, n, err = b.DropClass(1, room)
	count(n, err)
	if want := []Number{0, 2, 3, 4, 5, 6, 7, 8, 9, 0, 10, 11}; !slices.Equal(numbers, want) {
		t.Errorf("numbers %v, want %v", numbers, want)
	}
	if _, n, _, err := b.ObeyMessage("dance", 7, room); n != 0 || err == nil {
		t.Errorf("what was refused has number %d (%v)", n, err)
	}
}

// TestExpire: a block goes at the time that the call before it named.
func TestExpire(t *testing.T) {
	b := newBroker(t, "futhark", "max_age=0.00000001")
	if _, _, err := b.Free(serve(t, b, 7).Block, false, 1, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		time, next int64
		number     Number
	}{{5, 11, 0}, {11, 21, 5}} {
		out, n, next, err := b.Expire(c.time, make([]Eviction, 0, 4))
		if err != nil || n != c.number || next != c.next || (len(out) == 1 && out[0].Handle == 7) != (n != 0) {
			t.Errorf("at %d: evicted %+v, number %d, next at %d, %v; want %+v", c.time, out, n, next, err, c)
		}
	}
}

// TestAPlanThatWaitedForNothingHasThreeNumbers: its own, that by which it was given up, and that of the next.
func TestAPlanThatWaitedForNothingHasThreeNumbers(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b) // 2 and 3
	if n, err := b.Abort(first.Decision); n != 4 || err != nil {
		t.Errorf("the abort is number %d (%v), want 4", n, err)
	}
	n, _, err := b.Resume(&other.decision, &request, other.number, false, nil)
	if other.decision.Waived != 3 || n != 6 || err != nil {
		t.Errorf("number %d, waived %d (%v), want 6 and 3", n, other.decision.Waived, err)
	}
}
