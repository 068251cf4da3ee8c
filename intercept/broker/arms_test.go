package broker

import (
	"errors"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestAnExperiment: an arm decides from just the request on that its message names, and keeps its blocks. The arm without a
// pool gives them up when they are released, and no release is noted for later.
func TestAnExperiment(t *testing.T) {
	b := newBroker(t, "futhark", "")
	var room [8]Eviction
	say := func(message, want string) []Eviction {
		t.Helper()
		reply, n, out, err := b.ObeyMessage(message, 1, room[:0])
		if err != nil || reply != want || n == 0 {
			t.Fatalf("%q: %q, number %d, %v; want %q", message, reply, n, err, want)
		}
		return out
	}
	pooled := serve(t, b, 7)
	say("arms pow2 min_block=64,max_per_bucket=9", "arms=pow2,min_block=64,max_per_bucket=9,request=1")
	say("arms +max_age=3", "arms=+max_age=3,request=1")
	say("arms none", "arms=none,request=1")
	say("arm 1 3", "arm=1,request=3")
	say("arm 0 5", "arm=0,request=5")
	var blocks []allocator.Block
	for i, arm := range []int{0, 1, 1, 0} {
		d := serve(t, b, uint64(10+i))
		if d.Block.Arm() != arm || d.Hit || (d.Reason == wire.MissPolicy) != (arm == 1) {
			t.Errorf("request %d: %+v, want one of arm %d", i+2, d, arm)
		}
		blocks = append(blocks, d.Block)
	}
	for i, gone := range []bool{false, true, true, false} {
		noted := b.noted
		out, _, err := b.Free(blocks[i], false, 2, room[:0])
		if err != nil || gone != (len(out) == 1 && out[0].Handle == uint64(10+i) && out[0].Reason == wire.EvictPolicy) {
			t.Errorf("block %d: evicted %+v, %v", i, out, err)
		}
		if gone && b.noted != noted {
			t.Error("a release was noted that must reach the driver")
		}
	}
	if _, _, err := b.Free(pooled.Block, false, 3, room[:0]); err != nil {
		t.Fatal(err)
	}
	say("arms", "arms=off,request=5")
	if d := serve(t, b, 99); !d.Hit || d.Block.Arm() != allocator.Present {
		t.Errorf("%+v after the experiment, want a block of the pool", d)
	}
}

// TestARetryIsNoNewRequest: not the shim's, and not the broker's own when a slab was waited for in vain.
func TestARetryIsNoNewRequest(t *testing.T) {
	b := newBroker(t, "slab", "")
	first, other := wait(t, b)
	if _, err := b.Abort(first.Decision); err != nil {
		t.Fatal(err)
	}
	again := request
	again.Again, again.Align = true, 0
	if _, _, _, err := ask(b, again, nil); err != nil {
		t.Fatal(err)
	}
	if other.resume(false).Waived == 0 {
		t.Fatal("the other decision waits on")
	}
	if n := b.policy.RequestCount(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// TestMessagesOfExperimentsThatAreRefused say why, and change nothing.
func TestMessagesOfExperimentsThatAreRefused(t *testing.T) {
	b := newBroker(t, "futhark", "")
	var room [8]Eviction
	refuse := func(message, why string) {
		t.Helper()
		if reply, n, _, err := b.ObeyMessage(message, 1, room[:0]); err == nil || n != 0 || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %q, number %d, %v; want %q", message, reply, n, err, why)
		}
	}
	refuse("arm 1 1", "no experiment")
	refuse("arms +max_age=1", "no experiment")
	refuse("arms nonsense", "unknown policy")
	if _, _, _, err := b.ObeyMessage("arms none", 1, room[:0]); err != nil {
		t.Fatal(err)
	}
	serve(t, b, 7)
	serve(t, b, 8)
	refuse("arm 1 2", "request 2 has passed: the program has made 2")
	refuse("arm 2 9", "is no arm")
	refuse("arm 1 x", "no number of a request")
	refuse("arm 1", "no number of a request")
	refuse("arms +max_age=1", "has no limit") // of none
	if _, _, _, err := b.ObeyMessage("arm 1 3", 1, room[:0]); err != nil {
		t.Fatal(err)
	}
	refuse("arm 0 3", "does not come after")
	if d := serve(t, b, 9); d.Block.Arm() != allocator.Alternative {
		t.Errorf("%+v, want one of the alternative: refused messages change nothing", d)
	}
}

// FuzzControl sends anything: the broker survives, and what it refuses changes neither blocks nor requests.
func FuzzControl(f *testing.F) {
	for _, text := range []string{
		"arms none\narm 1 3\narm 0 5", "arms pow2 min_block=64\n\n\narms +max_age=1\narm 1 9\n\narms", "policy pow2\narms arena\narm 1 2\n\ntrim 0",
		"limit max_cached_bytes=1\narms futhark\narm 1 18446744073709551615", "arms \narm\narm  \narms +", "plan new\nplan end 0",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := newBroker(t, "futhark", "")
		var live []allocator.Block
		for message := range strings.SplitSeq(text[:min(len(text), 2000)], "\n") {
			if message == "" {
				d, _, _, err := ask(b, allocator.Request{Size: 4096, Class: 1}, nil)
				if err == nil && !d.Hit {
					_, err = b.Commit(d.Decision, 1)
				}
				if err != nil {
					t.Fatal(err)
				}
				if live = append(live, d.Block); len(live) > 3 {
					if _, _, err := b.Free(live[0], false, 1, make([]Eviction, 0, 64)); err != nil {
						t.Fatal(err)
					}
					live = live[1:]
				}
				continue
			}
			before, err := b.Stats() // with what was freed last
			if err != nil {
				t.Fatal(err)
			}
			requests := b.policy.RequestCount()
			_, n, _, err := b.ObeyMessage(message, 1, make([]Eviction, 0, 64))
			if errors.Is(err, ErrFailed) || b.policy.RequestCount() != requests || (err == nil) != (n != 0) {
				t.Fatalf("%q: number %d, %v", message, n, err)
			}
			if after := b.policy.Stats(); err != nil && after != before {
				t.Fatalf("%q is refused, and changes %+v to %+v", message, before, after)
			}
			if err := b.policy.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
