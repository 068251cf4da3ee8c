package allocator

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// yard plays the driver and the program for a policy that carves. It knows every range of every slab, and where a
// sub-allocation must not be; where it is to be is the carver's choice.
type yard struct {
	relieved bool // others lacked memory once
	testing.TB
	dice
	p      *Pool
	slabs  map[Block]*yardSlab
	blocks map[Block]*yardBlock // whole ones
	open   []*opening
	closed map[Class]bool
	heap   uint64
	now    int64
	peaks  Stats
	evicts uint64
	late   bool // the last call could not report evictions

	switches bool // other policies take the place of p
	layouts  bool // layouts are installed; p may also hold more for a moment then
}

// yardBlock is a block, or a sub-allocation.
type yardBlock struct {
	block  Block
	slab   Block // 0: a whole block
	offset uint64
	size   uint64
	wanted uint64
	class  Class
	state  state // a sub-allocation that is doomed is lost
	passes bool  // the policy that made it does not cache it, and has it still
	since  int64
}

type yardSlab struct {
	block   Block
	size    uint64
	class   Class
	grown   bool
	former  bool // another policy's
	doomed  bool // an abort left it without sub-allocations and without a place
	since   int64
	parts   []*yardBlock
	touched []bool // by unit: was ever part of a decision
}

// opening is a decision that is not carried out yet.
type opening struct {
	decision Decision
	b        *yardBlock
	dead     bool // its slab was not created
}

const unit = 256

// alignment of the sub-allocations of a class.
func alignment(c Class) uint64 {
	if c == 3 {
		return 4 * unit
	}
	return unit
}

func newYard(tb testing.TB, name string, ops []byte) *yard {
	tb.Helper()
	p, err := New(name, nil)
	if err != nil {
		tb.Fatal(err)
	}
	p.beyond = duelBeyond
	return &yard{
		TB: tb, dice: dice{took: ops}, p: p,
		slabs: map[Block]*yardSlab{}, blocks: map[Block]*yardBlock{}, closed: map[Class]bool{},
	}
}

// text returns the value of a limit.
func (y *yard) text(name string) string {
	for _, l := range y.p.Limits() {
		if l.Name == name {
			return l.Text
		}
	}
	y.Fatalf("%s has no limit %s", y.p.PolicyName(), name)
	return ""
}

func (y *yard) limit(name string) float64 {
	value, err := strconv.ParseFloat(y.text(name), 64)
	if err != nil {
		y.Fatal(err)
	}
	return value
}

func (y *yard) cap() uint64 {
	if y.p.PolicyName() == "none" {
		return math.MaxUint64
	}
	most := y.limit("max_cached_bytes")
	if share := y.limit("max_cached_fraction"); share < 1 && y.heap != 0 {
		most = min(most, share*float64(y.heap))
	}
	return uint64(most)
}

// remove takes a sub-allocation out of its slab.
func (s *yardSlab) remove(b *yardBlock) {
	s.parts = slices.DeleteFunc(s.parts, func(x *yardBlock) bool { return x == b })
}

// has reports whether the slab has a sub-allocation in one of some states.
func (s *yardSlab) has(states ...state) bool {
	return slices.ContainsFunc(s.parts, func(b *yardBlock) bool { return slices.Contains(states, b.state) })
}

// idle reports whether a slab waits in the pool: it has no sub-allocation, nor will it.
func (s *yardSlab) idle() bool { return s.grown && !s.has(decided, inUse, cooling) }

// gaps returns the free ranges of a slab.
func (s *yardSlab) gaps() (list []uint64) {
	slices.SortFunc(s.parts, func(a, b *yardBlock) int { return cmp.Compare(a.offset, b.offset) })
	end := uint64(0)
	for _, b := range s.parts {
		if b.offset > end {
			list = append(list, b.offset-end)
		}
		end = b.offset + b.size
	}
	if end < s.size {
		list = append(list, s.size-end)
	}
	return list
}

// waiting reports whether there is anything to give up.
func (y *yard) waiting() bool {
	for _, s := range y.slabs {
		if s.idle() && !s.doomed {
			return true
		}
	}
	for _, b := range y.blocks {
		if b.state == cached {
			return true
		}
	}
	return false
}

// release carries out evictions. Parts that cool go with their slab where the driver may be left to wait for them.
func (y *yard) release(out []Eviction, mayCool bool, reasons ...wire.Evict) (sum uint64) {
	y.late = false
	for _, e := range out {
		y.evicts++
		sum += e.Size
		owed := e.Reason == wire.EvictLimit || e.Reason == wire.EvictContext || e.Reason == wire.EvictState // by an earlier call
		owed = owed || y.switches && (e.Reason == wire.EvictPolicy || e.Reason == wire.EvictTagCap || e.Reason == wire.EvictMisfit)
		owed = owed || y.relieved && e.Reason == wire.EvictRelief
		if !owed && !slices.Contains(reasons, e.Reason) {
			y.Fatalf("%+v for no such reason", e)
		}
		if b := y.blocks[e.Block]; b != nil {
			if b.size != e.Size || b.state == decided || b.state == inUse && e.Reason != wire.EvictPolicy ||
				b.state == cooling && !mayCool && !b.passes {
				y.Fatalf("%+v is evicted: %+v", b, e)
			}
			delete(y.blocks, e.Block)
			continue
		}
		s := y.slabs[e.Block]
		if s == nil || s.size != e.Size || !s.grown || s.has(decided, inUse) || s.has(cooling) && !mayCool {
			y.Fatalf("%+v is evicted: %+v", s, e)
		}
		delete(y.slabs, e.Block)
	}
	return sum
}

// pass notes the time of a call.
func (y *yard) pass(time int64) { y.now = max(y.now, time) }

// timed are the reasons for evictions by max_age, proportion and outgrown.
var timed = []wire.Evict{wire.EvictAge, wire.EvictProportion, wire.EvictOutgrown}

// aged returns when something has waited for too long at a time, or a peak is a minute ago.
func (y *yard) aged(now int64) (next int64) {
	if y.p.PolicyName() == "none" {
		return 0
	}
	falls := int64(math.MaxInt64)
	if y.limit("proportion") != 0 {
		falls = y.p.peaks.highestPeakEnd(now)
	}
	age := int64(math.Round(y.limit("max_age") * 1e9))
	switch {
	case age != 0:
	case falls == math.MaxInt64:
		return 0
	default:
		return falls
	}
	oldest := int64(math.MaxInt64)
	for _, s := range y.slabs {
		if s.idle() && !s.doomed {
			oldest = min(oldest, s.since)
		}
	}
	for _, b := range y.blocks {
		if b.state == cached {
			oldest = min(oldest, b.since)
		}
	}
	if oldest == math.MaxInt64 {
		oldest = now
	}
	return min(oldest+age, falls)
}

// recount says what the statistics must be.
func (y *yard) recount() Stats {
	s := y.p.Stats()
	want := s // what happened is not the yard's business
	want.BytesInUse, want.BytesWanted, want.BytesCached, want.BytesCooling = 0, 0, 0, 0
	want.Blocks, want.Slabs, want.Parts, want.Evictions = 0, 0, 0, y.evicts
	count := func(b *yardBlock) {
		switch b.state {
		case inUse:
			want.BytesInUse += b.size
			want.BytesWanted += b.wanted
		case cooling, doomed:
			want.BytesCooling += b.size
		case cached:
			want.BytesCached += b.size
		}
		if b.slab != 0 && (b.state == inUse || b.state == cooling) {
			want.Parts++
		}
	}
	for _, b := range y.blocks {
		if b.state == doomed { // a whole one: in limbo until the next call
			want.BytesCooling -= b.size
		}
		if b.state != decided || b.since >= 0 {
			want.Blocks++
		}
		count(b)
	}
	for _, slab := range y.slabs {
		if !slab.grown {
			continue
		}
		want.Blocks++
		want.Slabs++
		want.BytesCached += slab.size
		for _, b := range slab.parts {
			want.BytesCached -= b.size
			count(b)
		}
	}
	return want
}
