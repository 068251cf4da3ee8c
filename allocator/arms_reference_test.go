package allocator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// alone are two pools that know nothing of each other. Each gets the requests of its turns, by a clock of its own.
type alone struct {
	pools  [2]*Pool
	active int
	since  int64    // when the other one began to wait
	stood  [2]int64 // how long each clock has stood still
}

func (a *alone) clock(arm int, now int64) int64 {
	if arm != a.active {
		return a.since - a.stood[arm]
	}
	return now - a.stood[arm]
}

func (a *alone) activate(arm int, now int64) {
	if arm != a.active {
		a.stood[arm] += now - a.since
		a.active, a.since = arm, now
	}
}

// own returns a block as the pool that made it alone numbers it.
func own(b Block) Block { return b &^ ArmBit }

func ownEvictions(out []Eviction) (list []Eviction) {
	for _, e := range out {
		e.Block = own(e.Block)
		list = append(list, e)
	}
	return list
}

// TestArmsDecideAsPoolsAlone: the other arm changes nothing, on a device with memory for both. The alternative decides as a
// pool that went from none to its policy.
func TestArmsDecideAsPoolsAlone(t *testing.T) {
	for i, policy := range PolicyNames() {
		for seed, other := range PolicyNames() {
			t.Run(policy+" or "+other, func(t *testing.T) {
				limits := ""
				if policy != "none" && seed%2 == 0 {
					limits = "max_age=0.0000002"
				}
				playAlone(t, policy, other, limits, uint64(seed+20*i))
			})
		}
	}
}

func playAlone(t *testing.T, policy, other, limits string, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	arms := NewArms(newPolicy(t, policy, limits))
	apart := &alone{pools: [2]*Pool{newPolicy(t, policy, limits), newPolicy(t, "none", "")}}
	arms.BeginExperiment(newPolicy(t, other, ""), 0, nil)
	apart.pools[Alternative].SwitchPolicy(newPolicy(t, other, ""), 0, nil)
	var used, cooling []Block
	same := func(got, want []Eviction) {
		t.Helper()
		if !slices.Equal(ownEvictions(got), want) {
			t.Fatalf("evicted %v, want %v", got, want)
		}
	}
	next, arm := uint64(1), Present
	for now := range int64(4000) {
		switch n := r.IntN(20); {
		case n < 9:
			if arms.RequestCount()+1 == next {
				arm = r.IntN(2)
				if err := arms.LetArmDecideFrom(arm, next); err != nil {
					t.Fatal(err)
				}
				apart.activate(arm, now)
				next += uint64(1 + r.IntN(30))
			}
			req := Request{Size: uint64(1+r.IntN(9)) << (6 + r.IntN(8)), Class: Class(1 + r.IntN(2)), Tag: Tag(r.IntN(3)), Align: 256, Pinned: true, Time: now}
			var got Decision
			out := arms.DecideInto(&got, &req, nil)
			req.Time = apart.clock(arm, now)
			want, evicted := apart.pools[arm].Decide(req, nil)
			same(out, evicted)
			if got.Block.Arm() != arm {
				t.Fatalf("arm %d decided, want %d", got.Block.Arm(), arm)
			}
			if mine := (Decision{
				got.Hit, own(got.Block), got.Size, got.Reason, got.Tag, own(got.Slab), got.Offset, got.SlabSize, got.Route, got.Fresh,
			}); mine != want {
				t.Fatalf("request %d: %+v, alone %+v", arms.RequestCount(), mine, want)
			}
			if got.SlabSize != 0 {
				arms.SlabCreated(got)
				apart.pools[arm].SlabCreated(want)
			}
			arms.Commit(got)
			apart.pools[arm].Commit(want)
			used = append(used, got.Block)
		case n < 17 && len(used) > 0:
			i, busy := r.IntN(len(used)), r.IntN(3) == 0
			b := used[i]
			used = slices.Delete(used, i, i+1)
			same(arms.Free(b, busy, now, nil), apart.pools[b.Arm()].Free(own(b), busy, apart.clock(b.Arm(), now), nil))
			if busy {
				cooling = append(cooling, b)
			}
		case n < 19 && len(cooling) > 0:
			b := cooling[0]
			cooling = cooling[1:]
			same(arms.CoolingEnded(b, now, nil), apart.pools[b.Arm()].CoolingEnded(own(b), apart.clock(b.Arm(), now), nil))
		}
	}
	sum := apart.pools[Present].Stats()
	rest := apart.pools[Alternative].Stats()
	got := arms.Stats()
	if got.Hits != sum.Hits+rest.Hits || got.Misses != sum.Misses+rest.Misses ||
		got.ReservedBytes() != sum.ReservedBytes()+rest.ReservedBytes() ||
		got.Evictions != sum.Evictions+rest.Evictions || got.PeakReserved > sum.PeakReserved+rest.PeakReserved {
		t.Errorf("%+v, want the sum of %+v and %+v", got, sum, rest)
	}
}

// TestArmsWithoutAnExperimentAreAPool, before the first one and when the blocks of the last one are gone.
func TestArmsWithoutAnExperimentAreAPool(t *testing.T) {
	arms, pool := NewArms(newPolicy(t, "futhark", "")), newPolicy(t, "futhark", "")
	round := func() {
		t.Helper()
		for i := range 100 {
			req := Request{Size: uint64(1+i%7) << 12, Class: 1, Tag: Tag(i % 3), Time: int64(i)}
			var got Decision
			arms.DecideInto(&got, &req, nil)
			want, _ := pool.Decide(req, nil)
			if got != want {
				t.Fatalf("%+v, a pool says %+v", got, want)
			}
			arms.Commit(got)
			pool.Commit(want)
			arms.Free(got.Block, false, int64(i), nil)
			pool.Free(want.Block, false, int64(i), nil)
		}
		if got, want := arms.Stats(), pool.Stats(); got.Hits != want.Hits || got.ReservedBytes() != want.ReservedBytes() || arms.FreeableBytes()[Present] != pool.FreeableBytes() {
			t.Fatalf("%+v, a pool says %+v", got, want)
		}
	}
	round()
	arms.BeginExperiment(newPolicy(t, "pow2", ""), 200, nil)
	round() // no turn was scheduled: the present configuration decides
	arms.EndExperiment(300, nil)
	round()
	if arms.split {
		t.Error("the alternative is gone, and each call still looks for it")
	}
}

// TestTurnOutOfOrderIsRefused: a turn that has passed, or does not come after the others, is refused and changes nothing.
func TestTurnOutOfOrderIsRefused(t *testing.T) {
	arms := NewArms(newPolicy(t, "futhark", ""))
	refused := func(arm int, from uint64) {
		t.Helper()
		before := fmt.Sprint(arms.turns)
		if err := arms.LetArmDecideFrom(arm, from); err == nil || fmt.Sprint(arms.turns) != before {
			t.Errorf("arm %d from %d on: %v, turns %v", arm, from, err, arms.turns)
		}
	}
	refused(Alternative, 1)
	arms.BeginExperiment(newPolicy(t, "none", ""), 0, nil)
	for range 3 {
		d := Decision{}
		arms.DecideInto(&d, &Request{Size: 1, Class: 1}, nil)
		arms.Commit(d)
	}
	refused(Alternative, 3)
	refused(2, 9)
	refused(-1, 9)
	for n := range uint64(TurnsMax) {
		if err := arms.LetArmDecideFrom(int(n%2), 10+n); err != nil {
			t.Fatal(err)
		}
		refused(0, 10+n)
	}
	refused(0, 1000)
}

// TestArmWithoutAPoolReleasesAtOnce: nothing of it may be noted for later.
func TestArmWithoutAPoolReleasesAtOnce(t *testing.T) {
	arms := NewArms(newPolicy(t, "futhark", ""))
	arms.BeginExperiment(newPolicy(t, "none", ""), 0, nil)
	if err := arms.LetArmDecideFrom(Alternative, 1); err != nil {
		t.Fatal(err)
	}
	var d Decision
	arms.DecideInto(&d, &Request{Size: 4096, Class: 1}, nil)
	arms.Commit(d)
	if room := arms.FreeableBytes(); room[Alternative] != 0 || room[Present] == 0 {
		t.Errorf("room for %v bytes", room)
	}
	out := arms.Free(d.Block, true, 1, nil)
	if len(out) != 1 || out[0].Reason != wire.EvictPolicy || d.Reason != wire.MissPolicy {
		t.Errorf("%+v, freed: %v", d, out)
	}
}

// TestArmsAllocateNothing while turns come and go.
func TestArmsAllocateNothing(t *testing.T) {
	arms := NewArms(newPolicy(t, "futhark", ""))
	arms.BeginExperiment(newPolicy(t, "pow2", ""), 0, nil)
	out := make([]Eviction, 0, 64)
	cycle := func() {
		if err := arms.LetArmDecideFrom(int(arms.RequestCount()%2), arms.RequestCount()+1); err != nil {
			t.Fatal(err)
		}
		var d Decision
		out = arms.DecideInto(&d, &Request{Size: 4096, Class: 1, Time: int64(arms.RequestCount())}, out[:0])
		arms.Commit(d)
		out = arms.Free(d.Block, false, int64(arms.RequestCount()), out[:0])
	}
	for range 100 {
		cycle()
	}
	if n := testing.AllocsPerRun(1000, cycle); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestArmsShareADevice: what the program holds from one arm is not there for the waste of the other, nor for its idea of how much
// the device had when it ran out of memory.
func TestArmsShareADevice(t *testing.T) {
	arms := NewArms(newPolicy(t, "futhark", ""))
	ask := func(size uint64) Decision {
		var d Decision
		arms.DecideInto(&d, &Request{Size: size, Class: 1, Heap: 512 * mib, Max: 512 * mib}, nil)
		arms.Commit(d)
		return d
	}
	ask(400 * mib)
	arms.BeginExperiment(newPolicy(t, "pow2", ""), 0, nil)
	if err := arms.LetArmDecideFrom(Alternative, 2); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		arms.Free(ask(4096).Block, false, 0, nil)
	}
	if d := ask(65 * mib); d.Block.Arm() != Alternative || d.Size != 65*mib {
		t.Errorf("%+v: there is no room to round up", d)
	}
	arms.Drain(1, nil)
	if p := arms.pools[Alternative]; p.short < 465*mib {
		t.Errorf("the device is thought to have %d bytes", p.short)
	}
}
