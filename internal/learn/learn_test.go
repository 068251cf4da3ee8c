package learn

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// item is a request of a loop, and the number of requests until its memory is free.
type item struct {
	tag  allocator.Tag
	size uint64
	life int
}

// learningPool plays requests through a policy that gets the learned layouts.
type learningPool struct {
	testing.TB
	Learner
	pool     *allocator.Pool
	ends     map[int][]live // by request before which they do
	made     int
	reserved uint64
	align    uint64
	plans    []*Layout
}

type live struct {
	block  allocator.Block
	number uint64
}

func newLearningPool(t testing.TB) *learningPool {
	t.Helper()
	pool, err := allocator.New("arena", nil)
	if err != nil {
		t.Fatal(err)
	}
	return &learningPool{TB: t, pool: pool, ends: map[int][]live{}, align: 256}
}

func (p *learningPool) run(times int, loop []item) {
	p.Helper()
	for range times {
		for _, it := range loop {
			for _, l := range p.ends[p.made] {
				p.pool.Free(l.block, false, 0, nil)
				p.NoteRequestFreed(l.number)
			}
			delete(p.ends, p.made)
			p.request(it)
		}
	}
	if err := p.pool.Validate(); err != nil {
		p.Fatal(err)
	}
}

func (p *learningPool) request(it item) {
	req := allocator.Request{Size: it.size, Align: p.align, Class: 1, Tag: it.tag}
	plan, _ := p.pool.Decide(req, nil)
	if plan.SlabSize != 0 {
		p.pool.SlabCreated(plan)
	}
	p.pool.Commit(plan)
	s := p.pool.Stats()
	p.reserved = max(p.reserved, s.ReservedBytes())
	p.made++
	p.ends[p.made-1+it.life] = append(p.ends[p.made-1+it.life], live{plan.Block, p.AddRequest(&req)})
	if learned, ok := p.LayoutIfNew(); ok {
		if _, err := p.pool.InstallLayout(learned.Layout, nil); err != nil {
			p.Fatal(err)
		}
		p.plans = append(p.plans, learned)
	}
}

// departed returns how many requests of further periods the layout does not serve, and the bytes reserved then.
func (p *learningPool) departed(times int, loop []item) (requests, reserved uint64) {
	p.Helper()
	before := p.pool.Stats().Planned
	p.reserved = 0
	p.run(times, loop)
	return uint64(times*len(loop)) - (p.pool.Stats().Planned - before), p.reserved
}

func randomLoop(rng *rand.Rand, most int) []item {
	loop := make([]item, 1+rng.IntN(40))
	for i := range loop {
		loop[i] = item{allocator.Tag(1 + rng.IntN(len(loop))), 1 + rng.Uint64N(100_000), 1 + rng.IntN(max(most*len(loop)/4, 1))}
	}
	return loop
}

// TestLearnedLayoutServesEveryRequest plays loops of random requests; many outlive a period. A learned layout then serves every request, and no
// more is reserved than its size.
func TestLearnedLayoutServesEveryRequest(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 3))
		loop := randomLoop(rng, 4)
		p := newLearningPool(t)
		p.run(1, randomLoop(rng, 1))
		p.run(8+64/len(loop), loop)
		if len(p.plans) == 0 {
			t.Fatalf("%d: no plan of %v", seed, loop)
		}
		p.run(4, loop)
		plan := p.plans[len(p.plans)-1]
		if n, reserved := p.departed(5, loop); n != 0 || reserved != plan.Size || plan.Bound > plan.Size {
			t.Errorf("%d: %d departures, %d bytes, the plan has %d of at least %d: %v", seed, n, reserved, plan.Size, plan.Bound, loop)
		}
	}
}

// TestAlternates: a buffer that lives until its successor is created has two places, and none once it lives for more than
// two periods.
func TestAlternates(t *testing.T) {
	for _, c := range []struct{ life, period, outside int }{{2, 2, 0}, {3, 4, 0}, {4, 4, 0}, {5, 2, 1}} {
		loop := []item{{1, 4096, c.life}, {2, 8192, 1}}
		p := newLearningPool(t)
		p.run(40, loop)
		if n, _ := p.departed(5, loop); n != uint64(5*c.outside) || p.plans[0].Period != c.period || p.plans[0].Outside != c.outside {
			t.Errorf("a life of %d: %d departures, plan %+v", c.life, n, p.plans[0])
		}
	}
}

// TestLongPeriods: a period is at most a quarter of what is remembered, and two in a row that have one layout are at most a
// third of it.
func TestLongPeriods(t *testing.T) {
	for _, c := range []struct{ length, life, period int }{
		{window / 4, 1, window / 4}, {window/4 + 1, 1, 0}, {window / 6, window/6 + 1, window / 6 * 2}, {window/6 + 1, window/6 + 2, window/6 + 1},
	} {
		loop := make([]item, c.length)
		for i := range loop {
			loop[i] = item{allocator.Tag(i + 1), 256, 1}
		}
		loop[0].life = c.life
		p := newLearningPool(t)
		p.align = 0
		p.run(7, loop)
		if len(p.plans) != min(c.period, 1) || c.period != 0 && p.plans[0].Period != c.period {
			t.Errorf("%d requests, the first lives for %d: %d plans, want one of %d requests", c.length, c.life, len(p.plans), c.period)
		}
	}
}

// TestThreePeriods: a layout comes with the last request of the third period.
func TestThreePeriods(t *testing.T) {
	loop := make([]item, 100)
	for i := range loop {
		loop[i] = item{allocator.Tag(i + 1), 256, 1}
	}
	p := newLearningPool(t)
	p.run(2, loop)
	p.run(1, loop[:99])
	if p.run(1, loop[99:]); len(p.plans) != 1 || p.nextTry != 400 {
		t.Errorf("%d plans, the next at request %d", len(p.plans), p.nextTry)
	}
}

// TestLooksAgain: a request after a layout the period is looked at again, and then after four more periods, eight, and so on.
func TestLooksAgain(t *testing.T) {
	p := newLearningPool(t)
	var waits []uint64
	last := uint64(0)
	for range 300 {
		next := p.nextTry
		if p.run(1, []item{{1, 4096, 1}}); p.nextTry != next {
			waits, last = append(waits, p.count-last), p.count
		}
	}
	if want := []uint64{1, 4, 8, 16, 32, 64}; len(p.plans) != 1 || !slices.Equal(waits[1:7], want) {
		t.Errorf("%d plans, looked %v requests after each other, want %v after the first", len(p.plans), waits, want)
	}
}

// TestBeginsWhereLeastIsLive compares the begin of random periods with all other begins.
func TestBeginsWhereLeastIsLive(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 5000 {
		buffers := make([]Buffer, 1+rng.IntN(6))
		n := len(buffers)
		for i := range buffers {
			buffers[i] = Buffer{Tag: allocator.Tag(rng.IntN(4)), Size: 1 + rng.Uint64N(3), BlockMax: uint64(i), Life: rng.Uint64N(uint64(n) + 1)}
		}
		rank := func(begin int) (live, more uint64) {
			for i := range buffers {
				b := &buffers[i]
				if after := (begin - i + n) % n; after > 0 && uint64(after) < b.Life {
					live += b.Size
				}
				if i != begin && b.Tag == buffers[begin].Tag {
					more = 1
				}
			}
			return live, more
		}
		want := -1
		for i := range buffers {
			live, more := rank(i)
			if want < 0 && buffers[i].Life != 0 {
				want = i
			} else if want >= 0 && buffers[i].Life != 0 {
				if l, m := rank(want); cmp.Or(cmp.Compare(live, l), cmp.Compare(more, m)) < 0 {
					want = i
				}
			}
		}
		for i, b := range rotateToLeastLive(buffers) {
			if b != buffers[(max(want, 0)+i)%n] {
				t.Fatalf("%+v begins at %d, want %d", buffers, b.BlockMax, want)
			}
		}
	}
}

// TestArenas: each class has an arena, two if only some of its buffers can be sub-allocations, until there are as many as a
// layout may have.
func TestArenas(t *testing.T) {
	const some = allocator.ArenasMax + 2
	var buffers []Buffer
	for i := range uint64(2 * some) {
		b := Buffer{Tag: allocator.Tag(i), Class: allocator.Class(i % some / 2), Size: 100, Life: 1}
		if i%2 == 0 {
			b.Align = 256 << (i / some)
		}
		buffers = append(buffers, b)
	}
	plan := MakeLayout([][]Buffer{buffers})
	if plan == nil || len(plan.Arenas) != allocator.ArenasMax || plan.Arenas[0].Align != 512 || plan.Arenas[1].Align != 0 || plan.Outside != 4 {
		t.Errorf("%+v", plan)
	}
}

// TestNeeded: when buffers need their memory, and that those of a site share a range until two need it at once.
func TestNeeded(t *testing.T) {
	buffer := func(index int, life uint64) arenaBuffer { return arenaBuffer{&Buffer{Tag: 1, Life: life}, index, 64} }
	for _, c := range []struct {
		items  []arenaBuffer
		spans  int
		groups int
	}{
		{[]arenaBuffer{buffer(0, 1), buffer(1, 2)}, 2, 1},
		{[]arenaBuffer{buffer(0, 2), buffer(1, 2)}, 2, 2},
		{[]arenaBuffer{buffer(1, 1), buffer(2, 2)}, 3, 1},
		{[]arenaBuffer{buffer(1, 1), buffer(2, 3)}, 3, 2},
	} {
		spans := 0
		for i := range c.items {
			spans += len(c.items[i].neededSpans(3))
		}
		if groups := groupBuffersOfSites(c.items, 3); spans != c.spans || len(groups) != c.groups {
			t.Errorf("%+v: %d spans in %d groups", c, spans, len(groups))
		}
	}
}

// TestStaysOutside: a buffer that lives longer than a period has no place, the others have.
func TestStaysOutside(t *testing.T) {
	loop := []item{{1, 4096, 1}, {2, 8192, 1 << 20}, {3, 512, 2}}
	p := newLearningPool(t)
	p.run(40, loop)
	if n, _ := p.departed(5, loop); n != 5 || p.plans[0].Outside != 1 || p.plans[0].Period != 3 {
		t.Errorf("%d departures of 15, plan %+v", n, p.plans[0])
	}
}

func TestNoPlan(t *testing.T) {
	p := newLearningPool(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		p.run(1, []item{{1, 1 + rng.Uint64N(1<<20), 1}})
	}
	if len(p.plans) != 0 {
		t.Errorf("a plan %+v of requests in no order", p.plans[0])
	}
}

// TestLearnsAgain: sizes change, or lives become longer: there is a new layout. Otherwise there is none.
func TestLearnsAgain(t *testing.T) {
	first, second := []item{{1, 4096, 2}, {2, 8192, 1}}, []item{{1, 4096, 2}, {2, 9000, 1}}
	longer := []item{{1, 4096, 2}, {2, 9000, 2}}
	p := newLearningPool(t)
	for i, loop := range [][]item{first, second, longer} {
		p.run(200, loop)
		if n, _ := p.departed(5, loop); n != 0 || len(p.plans) != i+1 {
			t.Errorf("loop %d: %d departures, %d plans", i, n, len(p.plans))
		}
	}
}

// TestTwoPhases: two phases that alternate keep their places, in an arena that is large enough for each.
func TestTwoPhases(t *testing.T) {
	first, second := []item{{1, 4096, 2}, {2, 8192, 1}}, []item{{3, 65536, 1}, {4, 512, 3}, {5, 1024, 2}}
	p := newLearningPool(t)
	for range 2 {
		p.run(30, first)
		p.run(30, second)
	}
	if len(p.plans) != 2 || p.plans[1].Size != p.plans[1].Bound || p.plans[1].Size != 65536+1024+512 {
		t.Fatalf("%d plans of two phases, the last of %+v", len(p.plans), p.plans[len(p.plans)-1])
	}
	for range 3 {
		for _, loop := range [][]item{first, second} {
			if n, _ := p.departed(30, loop); n > 1 { // where a buffer of the other phase still is
				t.Errorf("%d departures after a change of phase", n)
			}
		}
	}
}

// TestBoundedLayouts: a program whose loops keep changing does not get a layout for each, and needs longer loops for
// each further one.
func TestBoundedLayouts(t *testing.T) {
	p := newLearningPool(t)
	for i := range uint64(2 * layoutsMax) {
		p.run(64, []item{{1, 1000 * (i + 1), 1}})
	}
	if n := len(p.plans); n < layoutsPerStep || n > 2*layoutsPerStep {
		t.Errorf("%d plans", n)
	}
	for i := range uint64(layoutsPerStep) {
		p.run(400, []item{{1, 1_000_000 + i, 1}})
	}
	if n := len(p.plans); n < 2*layoutsPerStep {
		t.Errorf("%d plans, and no more for longer loops", n)
	}
}

func BenchmarkRequest(b *testing.B) {
	var l Learner
	req := allocator.Request{Size: 4096, Align: 256, Class: 1}
	b.ReportAllocs()
	for i := range b.N {
		req.Tag = allocator.Tag(1 + i%50)
		l.NoteRequestFreed(l.AddRequest(&req))
		l.LayoutIfNew()
	}
}

// TestOneRange: the buffers of a site that are never needed at the same time share one range, whatever their sizes.
func TestOneRange(t *testing.T) {
	loop := []item{{1, 8192, 1}, {2, 4096, 2}, {1, 1000, 1}, {3, 512, 3}, {1, 6000, 1}}
	p := newLearningPool(t)
	p.run(40, loop)
	if n, reserved := p.departed(5, loop); n != 0 || reserved != p.plans[0].Bound {
		t.Errorf("%d departures, %d bytes, at least %d", n, reserved, p.plans[0].Bound)
	}
	offsets := map[allocator.Tag]map[uint64]bool{}
	for _, place := range p.plans[0].Places {
		if offsets[place.Tag] == nil {
			offsets[place.Tag] = map[uint64]bool{}
		}
		offsets[place.Tag][place.Offset] = true
	}
	if len(offsets[1]) != 1 || len(offsets) != 3 {
		t.Errorf("offsets by site %v, want one of site 1", offsets)
	}
}

// TestTwoRangesWhereOneCosts: a site gets two ranges where one would make the arena larger.
func TestTwoRangesWhereOneCosts(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		buffers := make([]Buffer, 1+rng.IntN(12))
		for i := range buffers {
			buffers[i] = Buffer{Tag: allocator.Tag(rng.IntN(4)), Class: 1, Size: 256 * (1 + rng.Uint64N(8)), Align: 256, Life: 1 + rng.Uint64N(uint64(len(buffers)))}
		}
		plan := MakeLayout([][]Buffer{buffers})
		for i := range buffers {
			buffers[i].Tag = allocator.Tag(100 + i)
		}
		if alone := MakeLayout([][]Buffer{buffers}); plan.Size > alone.Size || plan.Bound != alone.Bound {
			t.Errorf("%d: %d bytes of at least %d, with a site each %d of %d: %+v", seed, plan.Size, plan.Bound, alone.Size, alone.Bound, buffers)
		}
	}
}

// TestOddIterations: an iteration that differs now and then brings no new layout.
func TestOddIterations(t *testing.T) {
	loop, odd := []item{{1, 4096, 2}, {2, 8192, 1}}, []item{{1, 5000, 2}, {2, 8192, 1}, {3, 700, 1}}
	p := newLearningPool(t)
	p.run(100, loop)
	for i := range 20 {
		p.run(1, odd)
		p.run(4+i, loop)
	}
	if n, _ := p.departed(10, loop); n != 0 || len(p.plans) != 1 {
		t.Errorf("%d departures, %d plans", n, len(p.plans))
	}
}
