package learn

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// Buffer is a request of an iteration.
type Buffer struct {
	Tag   allocator.Tag
	Class allocator.Class
	Size  uint64 // bytes
	Align uint64 // bytes; 0: no part of a slab can serve it, and its place is a block
	Most  uint64 // bytes: no larger block than this or Size may serve it; 0: any
	Life  uint64 // requests from its own on until its memory is free again; 0: more than an iteration
}

// placeable reports whether a buffer can have a place in an arena.
func (b *Buffer) placeable() bool { return b.Life != 0 }

// iteration returns the iteration of that many requests that the latest ones repeat, nil when too little of it is
// remembered. alternates says that some buffers live on into the next one until after their successors come: in two
// iterations two places take turns.
func (l *Learner) iteration(length uint64) (buffers []Buffer, alternates bool) {
	if l.count < 3*length {
		return nil, false
	}
	buffers = make([]Buffer, length)
	base := l.count - 3*length
	for i := range length {
		r := l.at(base + i)
		b := Buffer{Tag: r.tag, Class: r.class, Size: r.size, Align: r.align, Most: r.most, Life: 1}
		for _, again := range []uint64{0, length} { // of these at least a whole iteration has passed
			is := l.at(base + i + again)
			switch {
			case is.key != r.key:
				return nil, false
			case is.ended == 0 || is.ended-is.number > length:
				b.Life = 0
				alternates = alternates || is.ended != 0 && is.ended-is.number <= 2*length
			case b.Life != 0:
				b.Life = max(b.Life, is.ended-is.number)
			}
		}
		buffers[i] = b
	}
	return turn(buffers), alternates
}

// turn lets an iteration begin where the fewest bytes live on, at a request of a site that makes no other where there is
// a choice: that is how the policy finds the beginning.
func turn(buffers []Buffer) []Buffer {
	n := len(buffers)
	live := make([]int64, n+1) // changes
	sites := map[allocator.Tag]int{}
	for i := range buffers {
		b := &buffers[i]
		sites[b.Tag]++
		if !b.placeable() || b.Life < 2 { // else it lives at the requests i+1 to i+life-1
			continue
		}
		from, to := i+1, i+int(b.Life)
		live[min(from, n)] += int64(b.Size)
		if to <= n {
			live[to] -= int64(b.Size)
			continue
		}
		live[0] += int64(b.Size)
		live[to-n] -= int64(b.Size)
	}
	best, least, alone, now := 0, int64(0), false, int64(0)
	for i := range buffers {
		now += live[i]
		b := &buffers[i]
		only := sites[b.Tag] == 1
		if b.placeable() && (!buffers[best].placeable() || i == 0 || now < least || now == least && only && !alone) {
			best, least, alone = i, now, only
		}
	}
	return append(buffers[best:len(buffers):len(buffers)], buffers[:best]...)
}
