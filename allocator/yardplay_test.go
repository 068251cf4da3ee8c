package allocator

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// This file is the part of the yard that plays.

// agree compares what the policy says of itself with what there is.
func (y *yard) agree() {
	y.Helper()
	if err := y.p.Validate(); err != nil {
		y.Fatal(err)
	}
	got, want := y.p.Stats(), y.recount()
	k := &y.peaks
	k.PeakInUse = max(k.PeakInUse, want.BytesInUse)
	k.PeakWanted = max(k.PeakWanted, want.BytesWanted)
	k.PeakCached = max(k.PeakCached, want.BytesCached)
	k.PeakCooling = max(k.PeakCooling, want.BytesCooling)
	k.PeakReserved = max(k.PeakReserved, want.ReservedBytes())
	want.PeakInUse, want.PeakWanted, want.PeakCached = k.PeakInUse, k.PeakWanted, k.PeakCached
	want.PeakCooling, want.PeakReserved = k.PeakCooling, k.PeakReserved
	if y.switches { // other policies hold more for a moment within a call
		want.PeakCached, want.PeakReserved = max(want.PeakCached, got.PeakCached), max(want.PeakReserved, got.PeakReserved)
	}
	if y.p.PolicyName() == "slab" && !y.switches { // its ranges are exactly the gaps
		want.Largest, want.Ranges, want.Squares = 0, 0, 0
		for _, f := range y.free() {
			want.Largest = max(want.Largest, f)
			want.Ranges++
			want.Squares += float64(f) * float64(f)
		}
		if math.Abs(got.Squares-want.Squares) <= 1e-12*want.Squares { // sums of floats depend on their order
			want.Squares = got.Squares
		}
	}
	if got != want {
		y.Fatalf("stats are %+v,\na recount says %+v", got, want)
	}
	if !y.late && got.BytesCached > y.cap() && y.waiting() {
		y.Fatalf("%d bytes are cached, the limit is %d, and something could go", got.BytesCached, y.cap())
	}
}

// settle carries out one open decision, or a step of it, or fails to.
func (y *yard) settle() {
	if len(y.open) == 0 {
		return
	}
	i, how := y.next()%len(y.open), y.next()%8
	o := y.open[i]
	s := y.slabs[o.decision.Slab]
	if o.decision.SlabSize != 0 && !o.dead && !s.grown && how > 0 {
		y.p.SlabCreated(o.decision)
		s.grown, y.late = true, true
		y.agree()
		if how < 3 {
			return // the sub-allocation follows later
		}
	}
	if how > 1 && !o.dead && (s == nil || s.grown) {
		y.p.Commit(o.decision)
		o.b.state, o.b.since = inUse, 0
	} else {
		y.p.Abort(o.decision)
		y.late = true
		y.abort(o)
	}
	y.open = slices.Delete(y.open, i, i+1)
	if y.switches { // what it could not put back goes at once
		y.release(y.p.Trim(math.MaxUint64, nil), false)
	}
}

// abort notes that a decision failed.
func (y *yard) abort(o *opening) {
	s := y.slabs[o.decision.Slab]
	switch {
	case o.dead:
	case s != nil && !s.grown && o.decision.SlabSize != 0: // the slab is gone, for all decisions with it
		for _, x := range y.open {
			x.dead = x.dead || x.decision.Slab == s.block
		}
		delete(y.slabs, s.block)
	case s != nil:
		s.remove(o.b)
		y.settled(s)
	case !o.decision.Hit:
		delete(y.blocks, o.b.block)
	case !y.switches && (y.closed[o.b.class] || y.recount().BytesCached+o.b.size > y.cap()):
		o.b.state = doomed
	default:
		o.b.state, o.b.since = cached, y.now
	}
}

// settled notes when a slab has become idle without a call that could give it up.
func (y *yard) settled(s *yardSlab) {
	s.since = y.now
	s.doomed = !y.switches && s.idle() && (len(s.gaps()) == 0 || y.closed[s.class] || y.recount().BytesCached > y.cap())
}

// holders lists all blocks and sub-allocations, in order of their numbers.
func (y *yard) holders() []*yardBlock {
	all := maps.Clone(y.blocks)
	for _, s := range y.slabs {
		for _, b := range s.parts {
			all[b.block] = b
		}
	}
	var list []*yardBlock
	for _, block := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[block])
	}
	return list
}

func (y *yard) some() *yardBlock {
	i := y.next()
	if list := y.holders(); len(list) > 0 && i < 250 {
		return list[i%len(list)]
	}
	return &yardBlock{block: Block(i)<<32 | Block(i), state: unused}
}

func (y *yard) letGo(b *yardBlock, busy bool, time int64) {
	was := b.state
	s := y.slabs[b.slab]
	if was == inUse {
		switch {
		case busy && !y.closed[b.class]:
			b.state = cooling
		case s != nil:
			s.remove(b)
			s.since = max(y.now, time)
		default:
			b.state, b.since = cached, max(y.now, time)
		}
	}
	y.pass(time)
	y.letSome(y.p.Free(b.block, busy, time, nil))
}

func (y *yard) cooled(b *yardBlock, time int64) {
	if b.state != cooling {
		if out := y.p.CoolingEnded(b.block, time, nil); len(out) != 0 {
			y.Fatalf("a block that does not cool evicts %v", out)
		}
		return
	}
	if s := y.slabs[b.slab]; s != nil {
		s.remove(b)
		s.since = max(y.now, time)
	} else {
		b.state, b.since = cached, max(y.now, time)
	}
	y.pass(time)
	y.letSome(y.p.CoolingEnded(b.block, time, nil))
}

func (y *yard) forget(b *yardBlock) {
	y.p.Forget(b.block)
	if b.state != inUse && b.state != cooling {
		return
	}
	if s := y.slabs[b.slab]; s != nil {
		b.state = doomed // its range stays taken
		y.late = true
		y.settled(s)
		return
	}
	delete(y.blocks, b.block)
}

func (y *yard) drain(need uint64) {
	out := y.p.Drain(need, nil)
	first := slices.IndexFunc(out, func(e Eviction) bool { return e.Reason == wire.EvictDrain })
	if first < 0 {
		first = len(out)
	}
	owed := y.release(out[:first], false) // what earlier calls could not report
	could, drained, sum, last := y.waiting(), out[first:], owed, uint64(0)
	for _, e := range drained {
		last = e.Size
		if s := y.slabs[e.Block]; s != nil { // what is lost of it is not free yet
			for _, b := range s.parts {
				if b.state == doomed {
					last -= b.size
				}
			}
		}
		sum += last
	}
	y.release(drained, !could, wire.EvictDrain)
	switch {
	case could && sum < max(need, 1) && y.waiting():
		y.Fatalf("%d were needed, %d given, and something could go", need, sum)
	case could && len(drained) > 0 && y.text("drain_order") != "all" && sum-last >= max(need, 1):
		y.Fatalf("%d were needed, %d given", need, sum)
	}
	for _, s := range y.slabs {
		if !could && owed == 0 && s.has(cooling) && !s.has(decided, inUse) {
			y.Fatalf("%+v only cools, and is kept", s)
		}
	}
}

func (y *yard) dropClass(c Class) {
	y.closed[c] = true
	y.release(y.p.DropClass(c, nil), true)
	for _, s := range y.slabs {
		if s.class != c {
			continue
		}
		if !s.has(decided, inUse) {
			y.Fatalf("%+v has no user and stays", s)
		}
		for _, b := range slices.Clone(s.parts) {
			if b.state == cooling {
				s.remove(b)
			}
		}
	}
	for _, b := range y.blocks {
		if b.class == c && (b.state == cached || b.state == cooling) {
			y.Fatalf("%+v stays", b)
		}
	}
}

func (y *yard) setLimit() {
	limits := y.p.Limits()
	if len(limits) == 0 {
		return
	}
	name := limits[y.next()%len(limits)].Name
	value, time := values[name][y.next()%len(values[name])], y.clock()
	out, err := y.p.SetLimit(name, value, time, nil)
	if err == nil {
		y.pass(time)
	}
	y.letSome(out)
}

// letSome carries out the evictions of a call of the program: few for the time that has passed.
func (y *yard) letSome(out []Eviction) {
	few := 0
	for _, e := range out {
		if slices.Contains(timed, e.Reason) {
			few++
		}
	}
	if few > requestGives {
		y.Fatalf("evicted %v at once", out)
	}
	y.release(out, false, timed...)
}

// expire leaves the time as it is where nothing was too old.
func (y *yard) expire() {
	time := y.clock()
	out, next := y.p.Expire(time, nil)
	y.release(out, false, timed...)
	due, gone := y.aged(max(y.now, time)), slices.ContainsFunc(out, func(e Eviction) bool { return slices.Contains(timed, e.Reason) })
	if gone {
		y.pass(time)
	}
	if due != next || due != 0 && due <= time && len(out) < idleGives {
		y.Fatalf("expire at %d is due at %d, want %d", time, next, due)
	}
}

func (y *yard) step() {
	switch op := y.next() % 64; {
	case op < 18:
		y.decide()
	case op < 36:
		y.settle()
	case op < 48:
		y.letGo(y.some(), y.next()%4 == 0, y.clock())
	case op < 54:
		y.cooled(y.some(), y.clock())
	case op == 54:
		y.forget(y.some())
	case op == 55:
		y.drain(partSizes[y.next()%len(partSizes)] - 1)
	case op == 56:
		keep := partSizes[y.next()%len(partSizes)] - 1
		y.release(y.p.Trim(keep, nil), false, wire.EvictTrim)
		if y.p.Stats().BytesCached > keep && y.waiting() {
			y.Fatalf("trim to %d left something that could go", keep)
		}
	case op == 57:
		before, need := y.p.Stats().BytesCached, partSizes[y.next()%len(partSizes)]-1
		out := y.p.EvictForOthers(need, 0, y.clock(), nil)
		given := uint64(0)
		for _, e := range out {
			given += e.Size
		}
		y.relieved = true // and may owe from here on
		y.release(out, false, wire.EvictRelief)
		if given < min(need, before) && y.waiting() {
			y.Fatalf("relieve of %d gave %d of %d cached", need, given, before)
		}
	case op == 60 && y.layouts:
		y.install()
	case op == 60 && y.switches:
		y.exchange()
	case op < 61:
		y.setLimit()
	case op == 61:
		y.expire()
	case y.next()%32 == 0:
		y.dropClass(Class(1 + y.next()%3))
	}
}

func runYard(tb testing.TB, name string, ops []byte) {
	tb.Helper()
	newYard(tb, name, ops).run()
}

func (y *yard) run() {
	for y.at < len(y.took) {
		y.step()
		y.agree()
	}
	y.end()
}

// end gives everything back: nothing must be left.
func (y *yard) end() {
	for len(y.open) > 0 {
		y.settle()
		y.agree()
	}
	for _, b := range y.holders() {
		y.letGo(b, false, y.now)
		y.agree()
		y.cooled(b, y.now)
		y.agree()
	}
	y.release(y.p.Trim(0, nil), false, wire.EvictTrim)
	y.agree()
	for c := range Class(4) {
		y.dropClass(c)
	}
	if s := &y.p.slabs; len(s.classes)+len(s.former) != 0 {
		y.Fatalf("%d classes keep their carvers beyond their end, and %d did before", len(s.classes), len(s.former))
	}
	if s := y.p.Stats(); len(y.slabs) != 0 || len(y.blocks) != 0 || s.ReservedBytes() != 0 || s.Ranges != 0 {
		y.Fatalf("at the end there are %d slabs and %d blocks, stats %+v", len(y.slabs), len(y.blocks), s)
	}
}

// carving lists the policies that hand out sub-allocations.
func carving() (names []string) {
	for _, name := range PolicyNames() {
		if findPolicy(name).carver != nil {
			names = append(names, name)
		}
	}
	return names
}

func TestSlabs(t *testing.T) {
	for _, name := range carving() {
		for seed := range uint64(12) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				runYard(t, name, noise(seed, 3000))
			})
		}
	}
}

// TestRandomRunsThatFailed: after a look for old blocks in vain, and with sums of squares beyond 2^53.
func TestRandomRunsThatFailed(t *testing.T) {
	runYard(t, "buddy", noise(100_043, 3000))
	runYard(t, "buddy", noise(100_080, 3000))
	newPlannedYard(t, noise(790, 4000)).run()
	for range 20 { // the order of the sum is random
		runYard(t, "slab", noise(100_878, 1500))
	}
}

func FuzzSlabs(f *testing.F) {
	names := carving()
	for i := range names {
		f.Add(byte(i), noise(uint64(i), 400))
	}
	f.Fuzz(func(t *testing.T, policy byte, ops []byte) {
		runYard(t, names[int(policy)%len(names)], ops[:min(len(ops), 2000)])
	})
}
