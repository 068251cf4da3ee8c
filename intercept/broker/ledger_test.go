package broker

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// gate is what the shim puts before a broker: one thread at a time calls it, and notes what it frees if there is room.
type gate struct {
	*Broker
	mu    sync.Mutex
	sizes [2][]uint64 // by Block.Arm and Block.Index
	noted int
}

func newBroker(t testing.TB, policy, limits string) *gate {
	t.Helper()
	b, err := New(policy, limits, new(Ledger))
	if err != nil {
		t.Fatal(err)
	}
	return &gate{Broker: b}
}

// remember notes how large a block is, if there is one.
func (g *gate) remember(decision *Decision) {
	if decision.Block == 0 {
		return
	}
	sizes, i := &g.sizes[decision.Block.Arm()], decision.Block.Index()
	for len(*sizes) <= i {
		*sizes = append(*sizes, 0)
	}
	(*sizes)[i] = decision.Size
}

// note is the shim's.
func (g *gate) note(block allocator.Block, time int64) (n Number, ok bool) {
	l := g.ledger
	room := &l.Room[block.Arm()]
	if *room == 0 || l.Count == LedgerSize || g.sizes[block.Arm()][block.Index()] > *room || time >= l.Due {
		return 0, false
	}
	*room -= g.sizes[block.Arm()][block.Index()]
	l.Freed[l.Count] = Freed{block, time}
	l.Count++
	g.noted++
	return l.Latest + Number(l.Count), true
}

func (g *gate) Free(block allocator.Block, busy bool, time int64, out []Eviction) (_ []Eviction, n Number, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !busy {
		if n, ok := g.note(block, time); ok {
			return out, n, nil
		}
	}
	return g.Broker.Free(block, busy, time, out)
}

func (g *gate) Decide(decision *Decision, req *allocator.Request, out []Eviction) (n Number, _ []Eviction, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, out, err = g.Broker.Decide(decision, req, out)
	g.remember(decision)
	return n, out, err
}

func (g *gate) Resume(decision *Decision, req *allocator.Request, n Number, late bool, out []Eviction) (_ Number, _ []Eviction, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, out, err = g.Broker.Resume(decision, req, n, late, out)
	g.remember(decision)
	return n, out, err
}

func (g *gate) SlabCreated(decision allocator.Decision, handle uint64) (n Number, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Broker.SlabCreated(decision, handle)
}

func (g *gate) Commit(decision allocator.Decision, handle uint64) (n Number, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Broker.Commit(decision, handle)
}

func (g *gate) CoolingEnded(block allocator.Block, time int64, out []Eviction) (_ []Eviction, n Number, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Broker.CoolingEnded(block, time, out)
}

func (g *gate) More(out []Eviction) (_ []Eviction, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Broker.MoreEvictions(out)
}

func (g *gate) ObeyMessage(text string, time int64, out []Eviction) (reply string, n Number, _ []Eviction, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.Broker.ObeyMessage(text, time, out)
}

// freer is a broker that learns at once what was freed, or through its ledger.
type freer interface {
	Decide(decision *Decision, req *allocator.Request, out []Eviction) (Number, []Eviction, error)
	SlabCreated(decision allocator.Decision, handle uint64) (Number, error)
	Commit(decision allocator.Decision, handle uint64) (Number, error)
	Abort(decision allocator.Decision) (Number, error)
	Free(block allocator.Block, busy bool, time int64, out []Eviction) ([]Eviction, Number, error)
	CoolingEnded(block allocator.Block, time int64, out []Eviction) ([]Eviction, Number, error)
	Drain(need uint64, out []Eviction) ([]Eviction, Number, error)
	DropClass(class allocator.Class, out []Eviction) ([]Eviction, Number, error)
	Expire(time int64, out []Eviction) ([]Eviction, Number, int64, error)
	ObeyMessage(text string, time int64, out []Eviction) (string, Number, []Eviction, error)
	Stats() (allocator.Stats, error)
}

// experiment returns a message about an experiment, after about as many requests as half of the calls.
func experiment(r *rand.Rand, calls int64) string {
	switch r.IntN(8) {
	case 0:
		return "arms"
	case 1:
		return "arms " + allocator.PolicyNames()[r.IntN(len(allocator.PolicyNames()))]
	case 2:
		return "arms +max_age=50ns"
	}
	return fmt.Sprintf("arm %d %d", r.IntN(2), calls*45/100+int64(r.IntN(20)))
}

// play makes the same calls for the same seed, and returns what each answered.
func play(b freer, seed uint64) (answers []any) {
	r := rand.New(rand.NewPCG(seed, 1))
	room := make([]Eviction, 0, 1<<16)
	var used, cooling []allocator.Block
	say := func(results ...any) { answers = append(answers, fmt.Sprintf("%+v", results)) }
	const calls = 2000                                           // each at a time of its own
	classes, next := []allocator.Class{1, 2}, allocator.Class(3) // of two contexts, which come and go
	for now := range int64(calls) {
		switch what := r.IntN(100); {
		case what < 45:
			var p Decision
			req := allocator.Request{
				Size: 1 << r.IntN(14) * uint64(1+r.IntN(3)), Class: classes[r.IntN(2)], Tag: allocator.Tag(r.IntN(4)),
				Time: now, Pinned: r.IntN(2) == 0, Align: uint64(r.IntN(2)) * 128, Heap: 1 << 30,
			}
			n, out, err := b.Decide(&p, &req, room)
			say(n, out, err, p)
			switch {
			case p.SlabSize == 0 && (p.Hit && p.Slab == 0 || p.Committed != 0):
			case r.IntN(20) == 0:
				n, err := b.Abort(p.Decision)
				say(n, err)
				continue
			default:
				if p.SlabSize != 0 {
					n, err := b.SlabCreated(p.Decision, uint64(now+1))
					say(n, err)
				}
				n, err := b.Commit(p.Decision, uint64(now+1))
				say(n, err)
			}
			used = append(used, p.Block)
		case what < 90 && len(used) > 0:
			i := r.IntN(len(used))
			busy := r.IntN(4) == 0
			out, n, err := b.Free(used[i], busy, now, room)
			say(out, n, err)
			if busy {
				cooling = append(cooling, used[i])
			}
			used[i] = used[len(used)-1]
			used = used[:len(used)-1]
		case what < 94 && len(cooling) > 0:
			out, n, err := b.CoolingEnded(cooling[0], now, room)
			say(out, n, err)
			cooling = cooling[1:]
		case what < 96:
			out, n, err := b.Drain(1<<10, room)
			say(out, n, err)
		case what < 97:
			out, n, next, err := b.Expire(now, room)
			say(out, n, next, err)
		case what < 98 && r.IntN(5) == 0:
			i := r.IntN(2)
			out, n, err := b.DropClass(classes[i], room)
			say(out, n, err)
			classes[i] = next
			next++
		case what < 99:
			limits := []string{"limit max_cached_bytes=100000", "limit max_cached_bytes=max", "trim 5000", "relieve 5000 short", "relieve 0 short", "relieve 5000 idle", "relieve 5000 timed", "limit max_age=0.00000005", "limit max_age=0", "limit proportion=1", "limit proportion=0", "limit outgrown=on", "period 30", "period 0"}
			reply, n, out, err := b.ObeyMessage(limits[r.IntN(len(limits))], now, room)
			say(reply, n, out, err)
		case r.IntN(4) == 0:
			names := allocator.PolicyNames()
			reply, n, out, err := b.ObeyMessage("policy "+names[r.IntN(len(names))], now, room)
			say(reply, n, out, err)
		default:
			reply, n, out, err := b.ObeyMessage(experiment(r, now), now, room)
			say(reply, n, out, err)
		}
	}
	s, err := b.Stats()
	say(s, err)
	return answers
}

// TestNoOneSeesTheLedger makes random calls of two brokers that differ only in how they learn what was freed.
func TestNoOneSeesTheLedger(t *testing.T) {
	racetest.Slow(t)
	noted, turns := 0, 0
	for _, policy := range allocator.PolicyNames() {
		for seed := range uint64(20) {
			direct, err := New(policy, "", new(Ledger))
			if err != nil {
				t.Fatal(err)
			}
			gated := newBroker(t, policy, "")
			want, got := play(direct, seed), play(gated, seed)
			for i := range want {
				if i >= len(got) || !reflect.DeepEqual(want[i], got[i]) {
					t.Fatalf("%s, seed %d, call %d: %v\nwith the ledger: %v", policy, seed, i, want[i], got[i])
				}
			}
			noted += gated.noted
			for _, answer := range want {
				if strings.HasPrefix(answer.(string), "[arm=1") {
					turns++
				}
			}
		}
	}
	if noted < 1000 || turns < 100 {
		t.Errorf("only %d blocks were noted, and %d turns of an alternative", noted, turns)
	}
}
