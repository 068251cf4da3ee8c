package broker

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ask returns the decision on a request.
func ask(b *gate, req allocator.Request, out []Eviction) (decision Decision, n Number, _ []Eviction, err error) {
	n, out, err = b.Decide(&decision, &req, out)
	return decision, n, out, err
}

// serve does what the shim does: decide, create on a miss, commit.
func serve(t testing.TB, b *gate, handle uint64) Decision {
	t.Helper()
	decision, _, out, err := ask(b, allocator.Request{Size: 1 << 20, Class: 1, Tag: 1}, nil)
	if err != nil || len(out) > 0 {
		t.Fatalf("decide: %v, evictions %v", err, out)
	}
	if !decision.Hit {
		decision.Handle = handle
		if _, err := b.Commit(decision.Decision, handle); err != nil {
			t.Fatal(err)
		}
	}
	return decision
}

func TestHitCarriesTheDriversObject(t *testing.T) {
	b := newBroker(t, "futhark", "")
	first := serve(t, b, 0xabc)
	if first.Hit {
		t.Fatal("the first request cannot hit")
	}
	if out, _, err := b.Free(first.Block, false, 1, nil); err != nil || len(out) > 0 {
		t.Fatalf("free: %v %v", out, err)
	}
	second := serve(t, b, 0xdef)
	if !second.Hit || second.Handle != 0xabc || second.Block != first.Block {
		t.Fatalf("got %+v, want a hit on object 0xabc", second)
	}
}

func TestEvictionsCarryObjectsAndOverflowToMore(t *testing.T) {
	b := newBroker(t, "futhark", "")
	want := map[uint64]bool{}
	var blocks []allocator.Block
	for i := range uint64(10) {
		blocks = append(blocks, serve(t, b, 100+i).Block)
		want[100+i] = true
	}
	for _, block := range blocks {
		if _, _, err := b.Free(block, false, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	var room [4]Eviction
	got, _, err := b.DropClass(1, room[:0])
	if len(got) != len(room) {
		t.Errorf("%d evictions, want as many as there is room for", len(got))
	}
	for err == nil && len(got) > 0 {
		for _, e := range got {
			if !want[e.Handle] {
				t.Fatalf("object %d evicted twice or never created", e.Handle)
			}
			delete(want, e.Handle)
		}
		if got, err = b.More(room[:1]); len(got) > len(room) {
			t.Errorf("%d evictions in room for %d", len(got), len(room))
		}
		got = got[1:]
	}
	if err != nil || len(want) > 0 || b.HasPendingEvictions() {
		t.Fatalf("err %v, still missing %v", err, want)
	}
}

func TestControl(t *testing.T) {
	b := newBroker(t, "futhark", "")
	block := serve(t, b, 7).Block
	if _, _, err := b.Free(block, false, 1, nil); err != nil {
		t.Fatal(err)
	}
	var room [4]Eviction
	reply, _, out, err := b.ObeyMessage("limit max_cached_bytes=1024", 2, room[:0])
	if err != nil || reply != "max_cached_bytes=1024" {
		t.Fatalf("reply %q, err %v", reply, err)
	}
	if len(out) != 1 || out[0].Handle != 7 || out[0].Reason != wire.EvictLimit {
		t.Fatalf("lowering the cap evicted %+v, want object 7", out)
	}
	for _, bad := range []string{"limit max_cached_bytes=-1", "limit nonsense=1", "limit max_cached_bytes=abc", "dance", "trim x", "relieve", "relieve 1", "relieve x short", "relieve 1 why"} {
		if _, _, _, err := b.ObeyMessage(bad, 3, room[:0]); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// TestControlRelieves: the answer says how much went.
func TestControlRelieves(t *testing.T) {
	b := newBroker(t, "futhark", "")
	block := serve(t, b, 7).Block
	if _, _, err := b.Free(block, false, 1, nil); err != nil {
		t.Fatal(err)
	}
	for _, given := range []uint64{1 << 20, 0} {
		r := wire.Relief{Asked: 1, Why: wire.ReliefAsked}
		reply, _, out, err := b.ObeyMessage(r.MessageText(), 2, make([]Eviction, 0, 4))
		r.Given = given
		if err != nil || reply != r.AnswerText() || len(out) != int(min(given, 1)) {
			t.Errorf("answered %q with %v, %v; want %q", reply, out, err, r.AnswerText())
		}
	}
	b = newBroker(t, "futhark", "")
	if _, _, err := b.Free(serve(t, b, 8).Block, false, 3, nil); err != nil {
		t.Fatal(err)
	}
	r := wire.Relief{Asked: 1 << 20, Given: 1 << 20, Why: wire.ReliefTimed}
	reply, _, out, err := b.ObeyMessage(r.MessageText(), 4, make([]Eviction, 0, 4))
	if err != nil || reply != r.AnswerText() || len(out) != 1 || out[0].Reason != wire.EvictTimed {
		t.Errorf("answered %q with %v, %v; want %q", reply, out, err, r.AnswerText())
	}
}

func TestControlChangesThePolicy(t *testing.T) {
	b := newBroker(t, "futhark", "")
	block, used := serve(t, b, 7).Block, serve(t, b, 8).Block
	if _, _, err := b.Free(block, false, 1, nil); err != nil {
		t.Fatal(err)
	}
	var room [4]Eviction
	for _, bad := range []string{"policy", "policy nonsense", "policy pow2 max_per_tag=1", "policy pow2 min_block"} {
		if _, _, out, err := b.ObeyMessage(bad, 2, room[:0]); err == nil || len(out) > 0 || b.policy.PresentPool().PolicyName() != "futhark" {
			t.Errorf("%q was accepted", bad)
		}
	}
	reply, _, out, err := b.ObeyMessage("policy mantissa mantissa_bits=2,max_per_bucket=3", 3, room[:0])
	if err != nil || reply != "policy=mantissa,mantissa_bits=2,max_per_bucket=3" || b.policy.PresentPool().PolicyName() != "mantissa" {
		t.Fatalf("reply %q, err %v, policy %s", reply, err, b.policy.PresentPool().PolicyName())
	}
	if len(out) != 1 || out[0].Handle != 7 || out[0].Reason != wire.EvictPolicy {
		t.Fatalf("evicted %+v, want object 7, which mantissa would not have made", out)
	}
	if out, _, err = b.Free(used, false, 4, room[:0]); err != nil || len(out) != 1 || out[0].Handle != 8 {
		t.Fatalf("evicted %+v (%v), want object 8", out, err)
	}
	if reply, _, _, err = b.ObeyMessage("policy none", 5, room[:0]); err != nil || reply != "policy=none" {
		t.Fatalf("reply %q, err %v", reply, err)
	}
	if _, _, _, err = b.ObeyMessage("limit min_block=1", 6, room[:0]); err == nil {
		t.Error("a limit of the former policy was accepted")
	}
}

func TestPanicBecomesLastingFailure(t *testing.T) {
	b := newBroker(t, "futhark", "")
	b.policy = nil // the next call panics
	_, _, _, err := ask(b, allocator.Request{Size: 1, Class: 1}, nil)
	if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "nil pointer") {
		t.Fatalf("err = %v", err)
	}
	if _, _, err := b.Free(1, false, 0, nil); !errors.Is(err, ErrFailed) {
		t.Fatalf("after a failure Free returned %v", err)
	}
}

func TestBadSettings(t *testing.T) {
	for _, c := range [][2]string{{"nonsense", ""}, {"futhark", "nonsense=1"}, {"futhark", "max_cached_bytes"}} {
		if _, err := New(c[0], c[1], new(Ledger)); err == nil {
			t.Errorf("New(%q, %q) worked", c[0], c[1])
		}
	}
}

func TestHammer(t *testing.T) {
	b := newBroker(t, "pow2", "max_cached_bytes=67108864")
	var live sync.Map // handle → in use
	var mu sync.Mutex
	next := uint64(0)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				decision, _, _, err := ask(b, allocator.Request{Size: uint64(1+(g*i)%64) << 12, Class: 1, Tag: allocator.Tag(g)}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				handle := decision.Handle
				if !decision.Hit {
					mu.Lock()
					next++
					handle = next
					mu.Unlock()
					if _, err := b.Commit(decision.Decision, handle); err != nil {
						t.Error(err)
						return
					}
				}
				if _, taken := live.LoadOrStore(handle, true); taken {
					t.Errorf("object %d handed out twice", handle)
					return
				}
				live.Delete(handle)
				if _, _, err := b.Free(decision.Block, false, int64(i), make([]Eviction, 0, 64)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := b.policy.Validate(); err != nil {
		t.Fatal(err)
	}
}
