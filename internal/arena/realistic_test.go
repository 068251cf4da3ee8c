package arena

import (
	"context"
	"math/rand/v2"
	"slices"
)

// realistic are families that resemble what compilers of models produce: the placements of the challenging instances
// with small changes, and synthetic models. In most of them some moments need all of the capacity, as in the hardest
// known instances, and others leave room.
var realistic = []family{
	{"pinned", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.pin(random, 1+random.IntN(6))
		return l
	}},
	{"stretched", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.stretch(random, len(l.buffers)/4)
		l.pin(random, 3)
		return l
	}},
	{"nudged", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.pin(random, 3)
		l.nudge(random, 200)
		return l
	}},
	{"window", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.window(random, 0.5+0.4*random.Float64())
		l.pin(random, 3)
		return l
	}},
	{"woven", func(random *rand.Rand, l *lying, other func() *lying) *lying {
		l.window(random, 0.5)
		for range 1 + random.IntN(2) {
			next := other()
			if random.IntN(2) == 0 {
				next.reverse()
			}
			next.window(random, 0.5)
			l.chain(next, 1+random.IntN(4))
		}
		l.stretch(random, len(l.buffers)/5)
		l.pin(random, 4)
		return l
	}},
	{"mixture", func(random *rand.Rand, l *lying, _ func() *lying) *lying {
		l.split(random, 15, false)
		l.split(random, 15, true)
		l.stretch(random, len(l.buffers)/8)
		l.nudge(random, 100)
		l.pin(random, 3)
		return l
	}},
	{"model", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		l := model(random, 60+random.IntN(120))
		l.pin(random, 4)
		return l
	}},
	{"model, tight", func(random *rand.Rand, _ *lying, _ func() *lying) *lying {
		l := model(random, 60+random.IntN(120))
		l.stretch(random, len(l.buffers)/3)
		l.pin(random, 12)
		return l
	}},
}

// pin fills the arena at some moments. The new buffers live around that moment as long as chance and room allow.
func (l *lying) pin(random *rand.Rand, moments int) {
	times := l.times()
	for range moments {
		at := random.IntN(len(times) - 1)
		for _, r := range l.room(times[at], times[at+1]) {
			fits := func(i int) bool {
				return slices.ContainsFunc(l.room(times[i], times[i+1]), func(f placedRange) bool { return f.lo <= r.lo && f.hi >= r.hi })
			}
			from, to := at, at+1
			for most := random.IntN(1 + len(times)/4); most > 0 && from > 0 && fits(from-1); most-- {
				from--
			}
			for most := random.IntN(1 + len(times)/4); most > 0 && to+1 < len(times) && fits(to); most-- {
				to++
			}
			l.add(times[from], times[to], uint64(r.lo), uint64(r.hi-r.lo))
		}
	}
}

// stretch lets some buffers live longer, by a share of the room that they have.
func (l *lying) stretch(random *rand.Rand, n int) {
	times := l.times()
	for range n {
		i := random.IntN(len(l.buffers))
		b := &l.buffers[i]
		fits := func(lower, upper int64) bool {
			return slices.ContainsFunc(l.room(lower, upper), func(f placedRange) bool {
				return f.lo <= int64(l.offsets[i]) && f.hi >= int64(l.offsets[i]+b.Size)
			})
		}
		at, _ := slices.BinarySearch(times, b.Upper)
		for most := random.IntN(len(times)); most > 0 && at+1 < len(times) && fits(times[at], times[at+1]); most-- {
			at++
			b.Upper = times[at]
		}
	}
}

// nudge moves edges slightly: the edge of a buffer in the arena or in time, together with the edges that touch it. A
// move that would make buffers overlap is undone.
func (l *lying) nudge(random *rand.Rand, n int) {
	for range n {
		before, lay := slices.Clone(l.buffers), slices.Clone(l.offsets)
		i := random.IntN(len(l.buffers))
		if random.IntN(2) == 0 {
			l.moveTop(i, (random.Int64N(9)-4)*1024)
		} else {
			l.moveEnd(i, (random.Int64N(65)-32)*1024)
		}
		if height, err := ValidatePlacement(l.buffers, l.offsets); err != nil || height > l.capacity ||
			slices.ContainsFunc(l.buffers, func(b Buffer) bool { return b.Upper <= b.Lower || b.Size == 0 || b.Size > 1<<40 }) {
			l.buffers, l.offsets = before, lay
		}
	}
}

// moveTop moves the top of a buffer, and all edges at that height that it touches.
func (l *lying) moveTop(i int, by int64) {
	edge := l.offsets[i] + l.buffers[i].Size
	if edge == l.capacity || edge+uint64(by) > l.capacity {
		return
	}
	for _, j := range l.touching(i, func(j int) bool { return l.offsets[j]+l.buffers[j].Size == edge || l.offsets[j] == edge }, func(a, b int) bool {
		return l.buffers[a].Lower < l.buffers[b].Upper && l.buffers[b].Lower < l.buffers[a].Upper
	}) {
		if l.offsets[j] == edge {
			l.offsets[j] += uint64(by)
			l.buffers[j].Size -= uint64(by)
		} else {
			l.buffers[j].Size += uint64(by)
		}
	}
}

// moveEnd moves the end of a life, and all lives that begin or end then and touch it.
func (l *lying) moveEnd(i int, by int64) {
	edge := l.buffers[i].Upper
	for _, j := range l.touching(i, func(j int) bool { return l.buffers[j].Upper == edge || l.buffers[j].Lower == edge }, func(a, b int) bool {
		return l.offsets[a] < l.offsets[b]+l.buffers[b].Size && l.offsets[b] < l.offsets[a]+l.buffers[a].Size
	}) {
		if l.buffers[j].Lower == edge {
			l.buffers[j].Lower += by
		} else {
			l.buffers[j].Upper += by
		}
	}
}

// touching returns the buffers at an edge that are connected with one of them.
func (l *lying) touching(i int, at func(int) bool, touch func(a, b int) bool) []int {
	found := []int{i}
	for k := 0; k < len(found); k++ {
		for j := range l.buffers {
			if at(j) && !slices.Contains(found, j) && touch(found[k], j) {
				found = append(found, j)
			}
		}
	}
	return found
}

// window keeps a share of the time.
func (l *lying) window(random *rand.Rand, share float64) {
	times := l.times()
	n := int(share * float64(len(times)-1))
	first := random.IntN(len(times) - n)
	lower, upper := times[first], times[first+n]
	kept := lying{capacity: l.capacity}
	for i, b := range l.buffers {
		if b.Lower < upper && b.Upper > lower {
			kept.add(max(b.Lower, lower), min(b.Upper, upper), l.offsets[i], b.Size)
		}
	}
	*l = kept
}

// model makes the tensors of a synthetic model: stages of operators with few sizes, which halve at the end of a stage
// and double again in a decoder; residual and skip connections, scratch memory, and weights that stay. A quick
// heuristic gives the placement.
func model(random *rand.Rand, operators int) *lying {
	l := &lying{}
	size := uint64(1024 * (32 + random.IntN(128)))
	var skips []int // tensors that a decoder uses
	stage := 6 + random.IntN(10)
	for op := range operators {
		now := int64(2 * op)
		if op%stage == stage-1 {
			skips = append(skips, len(l.buffers))
			if op < operators/2 {
				size = max(size*5/8/1024, 2) * 1024
			} else {
				size = size * 3 / 2 / 1024 * 1024
			}
		}
		life := int64(3)
		if random.IntN(4) == 0 { // a residual connection
			life += 2 * int64(1+random.IntN(5))
		}
		wide := size * uint64(1+random.IntN(4)/3*(1+random.IntN(3)))
		l.add(now, now+life, 0, wide)
		if random.IntN(3) == 0 { // scratch memory
			l.add(now, now+1, 0, 1024*(1+random.Uint64N(64)))
		}
		if random.IntN(6) == 0 { // fetched early
			l.add(max(0, now-int64(random.IntN(40))), now+1, 0, 1024*(1+random.Uint64N(24)))
		}
	}
	for _, i := range skips {
		l.buffers[i].Upper = max(2*int64(operators)-l.buffers[i].Lower, l.buffers[i].Upper)
	}
	for range 4 + random.IntN(12) {
		l.add(0, 2*int64(operators), 0, 1024*(1+random.Uint64N(12)))
	}
	p, _ := newProblem(l.buffers)
	sc := newScales(p, l.buffers)
	for _, o := range orders {
		offsets, _ := p.greedyFit(context.Background(), sc.itemsSortedBy(p.order, o.by, 0, nil), true)
		lay := make([]uint64, len(offsets))
		for i := range offsets {
			lay[i] = uint64(offsets[i])
		}
		if height, err := ValidatePlacement(l.buffers, lay); err == nil && (l.capacity == 0 || height < l.capacity) {
			l.offsets, l.capacity = lay, height
		}
	}
	return l
}
