package allocator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// stage plays a program and its driver for two arms, and knows which arm made each block.
type stage struct {
	*testing.T
	*rand.Rand
	arms     *Arms
	blocks   map[Block]*staged
	ever     map[Block]bool // ids that were ever given
	open     []Decision
	classes  map[Block]Class // of open decisions
	requests uint64
	turns    []turn
	active   int
	running  bool
	now      int64
	since    int64    // when the other arm began to wait
	waited   [2]int64 // by arm
	heard    [2]int64 // the latest time that each arm has, by its clock
	dropped  map[Class]bool
}

// clock returns the time of an arm, which has passed only while it was active.
func (s *stage) clock(arm int) int64 {
	if arm != s.active {
		return s.since - s.waited[arm]
	}
	return s.now - s.waited[arm]
}

func (s *stage) activate(arm int) {
	if arm != s.active {
		s.waited[arm] += s.now - s.since
		s.active, s.since = arm, s.now
	}
}

// staged is a driver object, or a sub-allocation.
type staged struct {
	size  uint64
	slab  Block // 0: a driver object
	whole bool  // a slab
	parts int   // of a slab, that are in use or cool
	state state
	class Class
	since int64 // when it became cached, by the clock of its arm
}

func newStage(t *testing.T, policy string, seed uint64) *stage {
	t.Helper()
	return &stage{
		T: t, Rand: rand.New(rand.NewPCG(seed, 52)), arms: NewArms(newPolicy(t, policy, "")),
		blocks: map[Block]*staged{}, ever: map[Block]bool{}, classes: map[Block]Class{}, dropped: map[Class]bool{},
	}
}

// decide makes a request. It checks that the arm decides whose turn it is, and with blocks of its own.
func (s *stage) decide() {
	class := Class(1 + s.IntN(3))
	request := Request{
		Size: 1 << s.IntN(16) * uint64(1+s.IntN(3)), Class: class, Tag: Tag(s.IntN(4)), Align: uint64(s.IntN(2)) * 256,
		Heap: uint64(s.IntN(2)) << 30, Pinned: s.IntN(2) == 0, Time: s.now, Again: s.IntN(20) == 0,
	}
	if !request.Again {
		s.requests++
		for len(s.turns) > 0 && s.turns[0].from <= s.requests {
			s.activate(s.turns[0].arm)
			s.turns = s.turns[1:]
		}
	}
	s.heard[s.active] = s.clock(s.active)
	var d Decision
	s.release(s.arms.DecideInto(&d, &request, nil), "decide")
	b := s.blocks[d.Block]
	switch {
	case s.arms.RequestCount() != s.requests:
		s.Fatalf("%d requests, counted as %d", s.requests, s.arms.RequestCount())
	case d.Block.Arm() != s.active || d.Slab != 0 && d.Slab.Arm() != s.active:
		s.Fatalf("request %d: arm %d decided %+v, and it is the turn of %d", s.requests, d.Block.Arm(), d, s.active)
	case d.Hit && d.Slab == 0 && (b == nil || b.state != cached || b.class != class):
		s.Fatalf("hit on %+v", b)
	case (!d.Hit || d.Slab != 0) && s.ever[d.Block]:
		s.Fatalf("block %d is new and was there before", d.Block)
	case d.SlabSize == 0 && d.Slab != 0 && !s.growing(d.Slab) && (s.blocks[d.Slab] == nil || s.blocks[d.Slab].class != class):
		s.Fatalf("%+v is a part of %+v", d, s.blocks[d.Slab])
	}
	if b != nil {
		b.state = decided
	}
	s.ever[d.Block] = true
	s.open = append(s.open, d)
	s.classes[d.Block] = class
}

// growing reports whether a slab is the one of an open decision.
func (s *stage) growing(slab Block) bool {
	return slices.ContainsFunc(s.open, func(d Decision) bool { return d.Slab == slab && d.SlabSize != 0 })
}

// carryOut commits or aborts an open decision.
func (s *stage) carryOut() {
	if len(s.open) == 0 {
		return
	}
	i := s.IntN(len(s.open))
	d := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	class := s.classes[d.Block]
	waits := d.Slab != 0 && d.SlabSize == 0 && s.blocks[d.Slab] == nil // its slab does not exist: not yet, or it was refused
	switch {
	case s.IntN(8) == 0 || waits:
		s.arms.Abort(d)
		if b := s.blocks[d.Block]; b != nil {
			b.state, b.since = cached, s.heard[d.Block.Arm()]
		}
		if d.SlabSize != 0 { // no decision that waits for it may be committed
			s.ever[d.Slab] = true
		}
		return
	case d.SlabSize != 0:
		s.arms.SlabCreated(d)
		s.ever[d.Slab] = true
		s.blocks[d.Slab] = &staged{size: d.SlabSize, whole: true, state: inUse, class: class}
	}
	s.arms.Commit(d)
	if s.blocks[d.Block] == nil {
		s.blocks[d.Block] = &staged{size: d.Size, slab: d.Slab, class: class}
	}
	if d.Slab != 0 {
		s.blocks[d.Slab].parts++
	}
	s.blocks[d.Block].state = inUse
}

// some returns a block in a state, 0 if there is none.
func (s *stage) some(want state) Block {
	var list []Block
	for _, b := range slices.Sorted(maps.Keys(s.blocks)) {
		if h := s.blocks[b]; h.state == want && !h.whole {
			list = append(list, b)
		}
	}
	if len(list) == 0 {
		return 0
	}
	return list[s.IntN(len(list))]
}

// leave notes that nothing uses a block. A sub-allocation is gone then.
func (s *stage) leave(b Block) {
	h := s.blocks[b]
	s.heard[b.Arm()] = s.clock(b.Arm())
	if h.state, h.since = cached, s.clock(b.Arm()); h.slab != 0 {
		s.blocks[h.slab].parts--
		s.blocks[h.slab].since = h.since
		delete(s.blocks, b)
	}
}

func (s *stage) free() {
	b, busy := s.some(inUse), s.IntN(4) == 0
	if b == 0 {
		return
	}
	if h := s.blocks[b]; busy && (h.slab == 0 || !s.dropped[h.class]) {
		h.state = cooling
	} else {
		s.leave(b)
	}
	s.release(s.arms.Free(b, busy, s.now, nil), "free")
}

func (s *stage) cool() {
	if b := s.some(cooling); b != 0 {
		s.leave(b)
		s.release(s.arms.CoolingEnded(b, s.now, nil), "cooled")
	}
}

// release carries out evictions: none of a block that is in use, each once. None goes for an age that it has only because its
// arm waited.
func (s *stage) release(out []Eviction, why string) {
	s.Helper()
	for _, e := range out {
		h := s.blocks[e.Block]
		if h == nil || h.size != e.Size || h.slab != 0 || h.state == inUse && h.parts > 0 && why != "drain" && why != "drop" || h.state == decided {
			s.Fatalf("%s evicts %+v, which is %+v", why, e, h)
		}
		if e.Reason == wire.EvictAge && s.clock(e.Block.Arm())-h.since < 50 {
			s.Fatalf("%s: %+v became too old in %d ns", why, e, s.clock(e.Block.Arm())-h.since)
		}
		delete(s.blocks, e.Block)
		for b, part := range s.blocks {
			if part.slab == e.Block && part.state == inUse {
				s.Fatalf("%s: block %d is in use in slab %d, which goes", why, b, e.Block)
			}
			if part.slab == e.Block {
				delete(s.blocks, b)
			}
		}
	}
}

// drain checks that the arm that waits gives up cached blocks first.
func (s *stage) drain() {
	waiting, active := s.arms.pools[1-s.active].stats, s.arms.pools[s.active].stats
	need := uint64(1 + s.IntN(1<<18))
	out := s.arms.Drain(need, nil)
	last, given := -1, uint64(0)
	for i, e := range out {
		if e.Reason == wire.EvictDrain && e.Block.Arm() != s.active {
			last = i
			if !s.blocks[e.Block].whole { // a slab gives less than it has
				given += e.Size
			}
		}
	}
	first := slices.IndexFunc(out, func(e Eviction) bool { return e.Reason == wire.EvictDrain && e.Block.Arm() == s.active })
	if s.running && first >= 0 && first < last && waiting.BytesCached > 0 {
		s.Fatalf("%v: block %d of the active arm goes before one of the other", out, first)
	}
	if s.running && first >= 0 && given >= need {
		s.Fatalf("%d bytes were needed, the arm that waits gave %d, and the active one block %d", need, given, first)
	}
	if len(out) == 0 && waiting.BytesCached-waiting.InSlabs.Bytes+active.BytesCached > 0 && s.cachedBlocks() > 0 {
		s.Fatalf("nothing goes, and %+v and %+v are there", waiting, active)
	}
	s.release(out, "drain")
}

// cachedBlocks counts blocks that could go at once.
func (s *stage) cachedBlocks() (n int) {
	for _, h := range s.blocks {
		if h.state == cached {
			n++
		}
	}
	return n
}

// experiment begins one, ends it or schedules turns.
func (s *stage) experiment() {
	switch n := s.IntN(10); {
	case n == 0:
		s.release(s.arms.EndExperiment(s.now, nil), "end")
		s.activate(Present)
		s.turns, s.running = nil, false
		if got := s.arms.pools[Alternative].stats.BytesCached; s.arms.pools[Alternative] != s.arms.pools[Present] && got != s.arms.pools[Alternative].Stats().InSlabs.Bytes {
			s.Fatalf("the alternative has ended, and caches %d bytes", got)
		}
	case n < 3:
		name := PolicyNames()[s.IntN(len(PolicyNames()))]
		limits := ""
		if name != "none" && s.IntN(2) == 0 {
			limits = []string{"max_age=0.00000005", "max_cached_bytes=100000"}[s.IntN(2)]
		}
		s.activate(Present)
		s.turns = nil
		s.release(s.arms.BeginExperiment(newPolicy(s.T, name, limits), s.now, nil), "begin")
		s.running = true
	default:
		arm, from := s.IntN(2), s.requests+uint64(s.IntN(20))
		err := s.arms.LetArmDecideFrom(arm, from)
		last := uint64(0)
		if len(s.turns) > 0 {
			last = s.turns[len(s.turns)-1].from
		}
		if ok := s.running && from > s.requests && from > last && len(s.turns) < TurnsMax; ok != (err == nil) {
			s.Fatalf("turn of %d from %d on, after %d requests and %v: %v", arm, from, s.requests, s.turns, err)
		}
		if err == nil {
			s.turns = append(s.turns, turn{arm, from})
		}
	}
}

func (s *stage) step() {
	s.now += int64(s.IntN(4))
	switch n := s.IntN(100); {
	case n < 30:
		s.decide()
	case n < 58:
		s.carryOut()
	case n < 78:
		s.free()
	case n < 84:
		s.cool()
	case n < 86:
		s.drain()
	case n < 87:
		keep := uint64(s.IntN(1 << 17))
		s.release(s.arms.Trim(keep, nil), "trim")
		if got := s.arms.Stats(); got.BytesCached-got.InSlabs.Bytes > keep {
			s.Fatalf("trimmed to %d, and %d are cached", keep, got.BytesCached)
		}
	case n < 88:
		out, _ := s.arms.Expire(s.now, nil)
		s.release(out, "expire")
	case n < 89 && s.IntN(6) == 0:
		c := Class(1 + s.IntN(3))
		s.dropped[c] = true
		for b, h := range s.blocks {
			if h.class == c && h.slab != 0 && h.state == cooling {
				s.leave(b)
			}
		}
		s.release(s.arms.DropClass(c, nil), "drop")
	case n < 90:
		if out, err := s.arms.SetLimit("max_age", []string{"0", "0.00000005"}[s.IntN(2)], s.now, nil); err == nil {
			s.release(out, "limit")
		}
	case n < 91 && s.IntN(3) == 0:
		s.release(s.arms.SwitchPolicy(newPolicy(s.T, PolicyNames()[s.IntN(len(PolicyNames()))], ""), s.now, nil), "policy")
	default:
		s.experiment()
	}
}

// check compares the sums of both arms with what there is.
func (s *stage) check() {
	s.Helper()
	if err := s.arms.Validate(); err != nil {
		s.Fatal(err)
	}
	var want Stats
	for _, h := range s.blocks {
		if h.slab == 0 {
			want.Blocks++
			want.BytesAllocated += h.size
		}
		if h.slab != 0 {
			want.Parts++
		}
	}
	got := s.arms.Stats()
	if got.Blocks != want.Blocks || got.ReservedBytes() > want.BytesAllocated || got.Parts != want.Parts ||
		got.PeakReserved < got.ReservedBytes() {
		s.Fatalf("%d driver objects of %d bytes, %d parts, and the arms have %+v", want.Blocks, want.BytesAllocated, want.Parts, got)
	}
}

// end gives everything back: nothing may be left.
func (s *stage) end() {
	s.release(s.arms.EndExperiment(s.now, nil), "end")
	s.activate(Present)
	for len(s.open) > 0 {
		s.carryOut()
	}
	for b := s.some(inUse); b != 0; b = s.some(inUse) {
		s.free()
	}
	for b := s.some(cooling); b != 0; b = s.some(cooling) {
		s.cool()
	}
	s.release(s.arms.Trim(0, nil), "trim")
	for c := range Class(4) {
		s.release(s.arms.DropClass(c, nil), "drop")
	}
	s.check()
	if got := s.arms.Stats(); len(s.blocks) != 0 || got.ReservedBytes() != 0 || got.Blocks != 0 {
		s.Fatalf("%d blocks are left, and of the arms %+v", len(s.blocks), got)
	}
}

// TestNoBlockServesTheOtherArm plays random programs with random experiments: each turn begins with its request, no block serves the other arm, each
// is given up once, and nothing is left.
func TestNoBlockServesTheOtherArm(t *testing.T) {
	for _, policy := range PolicyNames() {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("%s/%d", policy, seed), func(t *testing.T) {
				s := newStage(t, policy, seed)
				for range 1500 {
					s.step()
					s.check()
				}
				s.end()
			})
		}
	}
}

// TestArmsRelieve: the arm that waits gives before the active one, and what both lack both owe.
func TestArmsRelieve(t *testing.T) {
	arms := NewArms(newPolicy(t, "futhark", ""))
	request := func(time int64) Block {
		var d Decision
		arms.DecideInto(&d, &Request{Size: 1 << 20, Class: 1, Time: time}, nil)
		arms.Commit(d)
		return d.Block
	}
	waiting := request(1)
	arms.BeginExperiment(newPolicy(t, "futhark", ""), 2, nil)
	if err := arms.LetArmDecideFrom(Alternative, 2); err != nil {
		t.Fatal(err)
	}
	active, late := request(3), request(4)
	arms.Free(active, false, 5, nil)
	arms.Free(waiting, false, 6, nil)
	if out := arms.EvictForOthers(wire.Relief{Asked: 1 << 20, Why: wire.ReliefTimed}, 7, nil); len(out) != 0 {
		t.Errorf("%+v went in an experiment, so that its release is timed", out)
	}
	for _, want := range [][]Block{{waiting}, {active}} {
		out := arms.EvictForOthers(wire.Relief{Asked: 1 << 20, Why: wire.ReliefShort}, 7, nil)
		if len(out) != 1 || out[0].Block != want[0] || out[0].Reason != wire.EvictRelief {
			t.Errorf("relieved by %+v, want %v", out, want)
		}
	}
	arms.EvictForOthers(wire.Relief{Asked: 1, Why: wire.ReliefShort}, 8, nil)
	if out := arms.Free(late, false, 9, nil); len(out) != 1 || out[0].Block != late {
		t.Errorf("%+v: it was owed", out)
	}
}
