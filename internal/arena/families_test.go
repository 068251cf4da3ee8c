package arena

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// lying is a set of buffers with a known placement. Changes that keep the placement valid keep it solvable within the
// capacity.
type lying struct {
	buffers  []Buffer
	offsets  []uint64
	capacity uint64
}

func (l *lying) add(lower, upper int64, offset, size uint64) {
	l.buffers = append(l.buffers, Buffer{Lower: lower, Upper: upper, Size: size})
	l.offsets = append(l.offsets, offset)
}

// solvedInstance returns an instance of testdata with a placement.
func solvedInstance(t testing.TB, name string) *lying {
	t.Helper()
	l := &lying{buffers: instance(t, name+".1048576"), capacity: 1 << 20}
	s := place(t, l.buffers, Options{Capacity: l.capacity, Workers: 1, Steps: 1 << 24})
	if s.Height > l.capacity {
		t.Fatalf("%s has no placement to start from", name)
	}
	l.offsets = s.Offsets
	return l
}

// times returns all moments at which something changes.
func (l *lying) times() []int64 {
	var all []int64
	for i := range l.buffers {
		all = append(all, l.buffers[i].Lower, l.buffers[i].Upper)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// room returns the ranges that are free from one time to another.
func (l *lying) room(lower, upper int64) []placedRange {
	var taken, free []placedRange
	for i := range l.buffers {
		if b := &l.buffers[i]; b.Lower < upper && b.Upper > lower {
			taken = append(taken, placedRange{int32(i), int64(l.offsets[i]), int64(l.offsets[i] + b.Size)})
		}
	}
	slices.SortFunc(taken, func(a, b placedRange) int { return cmp.Compare(a.lo, b.lo) })
	at := int64(0)
	for _, r := range append(taken, placedRange{-1, int64(l.capacity), int64(l.capacity)}) {
		if r.lo > at {
			free = append(free, placedRange{-1, at, r.lo})
		}
		at = max(at, r.hi)
	}
	return free
}

// fill puts a buffer into every free range, for as long as it is free, so that the load is the capacity at all times.
func (l *lying) fill(least int64) {
	times := l.times()
	for i := range len(times) - 1 {
		for _, r := range l.room(times[i], times[i+1]) {
			if r.hi-r.lo < least {
				continue
			}
			end := i + 1
			for end+1 < len(times) && slices.ContainsFunc(l.room(times[end], times[end+1]), func(f placedRange) bool { return f.lo <= r.lo && f.hi >= r.hi }) {
				end++
			}
			l.add(times[i], times[end], uint64(r.lo), uint64(r.hi-r.lo))
		}
	}
}

// grow lets buffers live longer, up to the next buffer in the same range.
func (l *lying) grow(random *rand.Rand) {
	times := l.times()
	for _, i := range random.Perm(len(l.buffers)) {
		b := &l.buffers[i]
		fits := func(lower, upper int64) bool {
			return slices.ContainsFunc(l.room(lower, upper), func(f placedRange) bool {
				return f.lo <= int64(l.offsets[i]) && f.hi >= int64(l.offsets[i]+b.Size)
			})
		}
		for at, _ := slices.BinarySearch(times, b.Upper); at+1 < len(times) && fits(times[at], times[at+1]); at++ {
			b.Upper = times[at+1]
		}
		for at, _ := slices.BinarySearch(times, b.Lower); at > 0 && fits(times[at-1], times[at]); at-- {
			b.Lower = times[at-1]
		}
	}
}

// remove removes random buffers.
func (l *lying) remove(random *rand.Rand, n int) {
	for range n {
		i := random.IntN(len(l.buffers))
		l.buffers, l.offsets = slices.Delete(l.buffers, i, i+1), slices.Delete(l.offsets, i, i+1)
	}
}

// split cuts buffers in two, in size or in time.
func (l *lying) split(random *rand.Rand, n int, inTime bool) {
	for range n {
		i := random.IntN(len(l.buffers))
		b := l.buffers[i]
		switch {
		case inTime && b.Upper-b.Lower > 1:
			at := b.Lower + 1 + random.Int64N(b.Upper-b.Lower-1)
			l.buffers[i].Upper = at
			l.add(at, b.Upper, l.offsets[i], b.Size)
		case !inTime && b.Size > 1:
			at := 1 + random.Uint64N(b.Size-1)
			l.buffers[i].Size = at
			l.add(b.Lower, b.Upper, l.offsets[i]+at, b.Size-at)
		}
	}
}

// warp stretches random ranges of the arena, so that sizes have no common divisor.
func (l *lying) warp(random *rand.Rand) {
	edges := []uint64{0, l.capacity}
	for i := range l.buffers {
		edges = append(edges, l.offsets[i], l.offsets[i]+l.buffers[i].Size)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	to := make([]uint64, len(edges))
	for i := 1; i < len(edges); i++ {
		to[i] = to[i-1] + 1 + uint64(float64(edges[i]-edges[i-1])*(0.5+random.Float64()))
	}
	at := func(edge uint64) uint64 {
		i, _ := slices.BinarySearch(edges, edge)
		return to[i]
	}
	for i := range l.buffers {
		end := at(l.offsets[i] + l.buffers[i].Size)
		l.offsets[i] = at(l.offsets[i])
		l.buffers[i].Size = end - l.offsets[i]
	}
	l.capacity = at(l.capacity)
}

// reverse reverses time.
func (l *lying) reverse() {
	for i := range l.buffers {
		b := &l.buffers[i]
		b.Lower, b.Upper = -b.Upper, -b.Lower
	}
}

// stack places another set above.
func (l *lying) stack(other *lying) {
	for i, b := range other.buffers {
		l.add(b.Lower, b.Upper, other.offsets[i]+l.capacity, b.Size)
	}
	l.capacity += other.capacity
}

// chain appends another set of the same capacity in time. Some buffers live through both, above all others.
func (l *lying) chain(other *lying, through int) {
	times, next := l.times(), other.times()
	shift := times[len(times)-1] - next[0]
	for i, b := range other.buffers {
		l.add(b.Lower+shift, b.Upper+shift, other.offsets[i], b.Size)
	}
	for range through {
		l.add(times[0]+int64(len(l.buffers)), next[len(next)-1]+shift, l.capacity, l.capacity/16)
		l.capacity += l.capacity / 16
	}
}

// guillotine cuts a rectangle from edge to edge.
func guillotine(random *rand.Rand, n int, unit int64) *lying {
	return pinwheels(random, n, unit, 0)
}

// pinwheels cuts rectangles in two, or a share of them in five around a middle, which cuts from edge to edge cannot
// make. Larger rectangles are cut more often.
func pinwheels(random *rand.Rand, n int, unit int64, share float64) *lying {
	type rectangle struct{ l, u, a, b int64 }
	const side = 1 << 12
	all := []rectangle{{0, side, 0, side}}
	within := func(from, to int64) int64 { return from + 1 + random.Int64N(to-from-1) }
	for len(all) < n {
		i := random.IntN(len(all))
		for range 2 {
			if j := random.IntN(len(all)); (all[j].u-all[j].l)*(all[j].b-all[j].a) > (all[i].u-all[i].l)*(all[i].b-all[i].a) {
				i = j
			}
		}
		q := all[i]
		switch wide, high := q.u-q.l, q.b-q.a; {
		case wide > 3 && high > 3 && random.Float64() < share:
			t1, o1 := within(q.l, q.u-1), within(q.a, q.b-1)
			t2, o2 := within(t1, q.u), within(o1, q.b)
			all[i] = rectangle{q.l, t2, q.a, o1}
			all = append(all, rectangle{t2, q.u, q.a, o2}, rectangle{t1, q.u, o2, q.b}, rectangle{q.l, t1, o1, q.b}, rectangle{t1, t2, o1, o2})
		case wide > 1 && random.IntN(2) == 0:
			at := within(q.l, q.u)
			all[i].u = at
			all = append(all, rectangle{at, q.u, q.a, q.b})
		case high > 1:
			at := within(q.a, q.b)
			all[i].b = at
			all = append(all, rectangle{q.l, q.u, at, q.b})
		}
	}
	l := &lying{capacity: uint64(side * unit)}
	for _, q := range all {
		l.add(q.l, q.u, uint64(q.a*unit), uint64((q.b-q.a)*unit))
	}
	return l
}

// network is what an allocator may meet in a neural network: few sizes, many short lives, some weights that stay, some
// skip connections. A buffer that does not fit is left out.
func network(random *rand.Rand, n int) *lying {
	l := &lying{capacity: 1 << 20}
	sizes := make([]uint64, 12)
	for i := range sizes {
		sizes[i] = 512 * (1 + uint64(random.ExpFloat64()*120))
	}
	for now := int64(0); len(l.buffers) < n; now++ {
		for range 1 + random.IntN(6) {
			size, life := sizes[random.IntN(len(sizes))], 1+int64(random.ExpFloat64()*5)
			if random.IntN(8) == 0 {
				life *= 12
			}
			var fitting []placedRange
			for _, r := range l.room(now, now+life) {
				if r.hi-r.lo >= int64(size) {
					fitting = append(fitting, r)
				}
			}
			if len(fitting) == 0 {
				continue
			}
			r := fitting[random.IntN(len(fitting))]
			at := uint64(r.lo)
			if random.IntN(2) == 0 {
				at = uint64(r.hi) - size
			}
			l.add(now, now+life, at, size)
		}
	}
	return l
}

// member is an instance of a family.
type member struct {
	family string
	turn   int
	*lying
}

// population makes n instances of every family, the same at each call.
func population(t testing.TB, turns int) []member {
	t.Helper()
	var all []member
	five := make([]*lying, len(challenging))
	for i, name := range challenging {
		five[i] = solvedInstance(t, name)
	}
	for turn := range turns {
		for f, family := range families {
			random := rand.New(rand.NewPCG(uint64(f), uint64(turn)))
			copied := func(i int) *lying {
				l := *five[i%len(five)]
				l.buffers, l.offsets = slices.Clone(l.buffers), slices.Clone(l.offsets)
				return &l
			}
			l := family.make(random, copied(turn), func() *lying { return copied(random.IntN(len(five))) })
			random.Shuffle(len(l.buffers), func(i, j int) {
				l.buffers[i], l.buffers[j] = l.buffers[j], l.buffers[i]
				l.offsets[i], l.offsets[j] = l.offsets[j], l.offsets[i]
			})
			for i := range l.buffers {
				l.buffers[i].ID = fmt.Sprint(i)
			}
			if height, err := ValidatePlacement(l.buffers, l.offsets); err != nil || height > l.capacity {
				t.Fatalf("%s %d: the placement that is known is wrong: height %d of %d, %v", family.name, turn, height, l.capacity, err)
			}
			all = append(all, member{family.name, turn, l})
		}
	}
	return all
}

// family makes instances from nothing, or from placements of challenging instances.
type family struct {
	name string
	make func(random *rand.Rand, l *lying, other func() *lying) *lying
}

// families are all of them.
var families = append([]family{
	{"guillotine", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		return guillotine(random, 150+random.IntN(250), 256)
	}},
	{"guillotine 97 %", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		l := guillotine(random, 200+random.IntN(250), 256)
		l.remove(random, len(l.buffers)/25)
		return l
	}},
	{"pinwheels", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		return pinwheels(random, 150+random.IntN(250), 256, 0.4)
	}},
	{"pinwheels 97 %", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		l := pinwheels(random, 200+random.IntN(250), 256, 0.4)
		l.remove(random, len(l.buffers)/25)
		return l
	}},
	{"network, grown", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		l := network(random, 150+random.IntN(350))
		l.grow(random)
		return l
	}},
	{"network, filled", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		l := network(random, 150+random.IntN(150))
		l.fill(32 << 10)
		return l
	}},
	{"reversed", func(_ *rand.Rand, l *lying, _ func() *lying) *lying { l.reverse(); return l }},
	{"split in size", func(random *rand.Rand, l *lying, _ func() *lying) *lying { l.split(random, 40, false); return l }},
	{"split in time", func(random *rand.Rand, l *lying, _ func() *lying) *lying { l.split(random, 40, true); return l }},
	{"warped", func(random *rand.Rand, l *lying, _ func() *lying) *lying { l.warp(random); return l }},
	{"grown", func(random *rand.Rand, l *lying, _ func() *lying) *lying { l.grow(random); return l }},
	{"grown, warped", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.grow(random)
		l.warp(random)
		return l
	}},
	{"slivers", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.remove(random, 20)
		l.fill(4096)
		return l
	}},
	{"all slivers", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.grow(random)
		l.fill(1)
		return l
	}},
	{"stacked", func(random *rand.Rand, l *lying, other func() *lying) *lying {
		next := other()
		if random.IntN(2) == 0 {
			next.reverse()
		}
		times, others := l.times(), next.times()
		for i := range next.buffers {
			next.buffers[i].Lower += times[0] - others[0]
			next.buffers[i].Upper += times[0] - others[0]
		}
		l.stack(next)
		return l
	}},
	{"chained", func(_ *rand.Rand, l *lying, other func() *lying) *lying {
		l.chain(other(), 2)
		return l
	}},
}, realistic...)
