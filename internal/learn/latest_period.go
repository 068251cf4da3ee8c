package learn

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// Buffer is a request of a period.
type Buffer struct {
	Tag      allocator.Tag
	Class    allocator.Class
	Size     uint64 // bytes
	Align    uint64 // bytes; 0: no sub-allocation can serve it, and its place is a block
	BlockMax uint64 // bytes: no block larger than this or Size may serve it; 0: any block may
	Life     uint64 // requests from its own on until its memory is free again; 0: more than a period
}

// hasPlace reports whether a buffer can have a place in an arena.
func (b *Buffer) hasPlace() bool { return b.Life != 0 }

// latestPeriod returns the period of that many requests that the latest requests repeat, nil if too few are remembered
// or they differ. alternates says that some buffers outlive the period until after their successors are created: in a
// layout of two periods two places alternate.
func (l *Learner) latestPeriod(length uint64) (buffers []Buffer, alternates bool) {
	if l.count < 3*length {
		return nil, false
	}
	buffers = make([]Buffer, length)
	base := l.count - 3*length
	for i := range length {
		r := l.requestNumbered(base + i)
		b := Buffer{Tag: r.tag, Class: r.class, Size: r.size, Align: r.align, BlockMax: r.most, Life: 1}
		for _, later := range []uint64{0, length} { // at least a whole period has passed since both
			repeat := l.requestNumbered(base + i + later)
			switch {
			case repeat.key != r.key:
				return nil, false
			case repeat.freed == 0 || repeat.freed-repeat.number > length:
				b.Life = 0
				alternates = alternates || repeat.freed != 0 && repeat.freed-repeat.number <= 2*length
			case b.Life != 0:
				b.Life = max(b.Life, repeat.freed-repeat.number)
			}
		}
		buffers[i] = b
	}
	return rotateToLeastLive(buffers), alternates
}

// rotateToLeastLive lets a period begin where the fewest bytes are live. Where several requests are equal in that, it begins at a
// request whose call site makes no other, because the policy finds the start of a period by its call site.
func rotateToLeastLive(buffers []Buffer) []Buffer {
	n := len(buffers)
	live := make([]int64, n+1) // changes of the live bytes
	sites := map[allocator.Tag]int{}
	for i := range buffers {
		b := &buffers[i]
		sites[b.Tag]++
		if !b.hasPlace() || b.Life < 2 { // other buffers live at the requests i+1 to i+life-1
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
	start, least, startIsOnly, bytes := 0, int64(0), false, int64(0)
	for i := range buffers {
		bytes += live[i]
		b := &buffers[i]
		isOnly := sites[b.Tag] == 1
		if b.hasPlace() && (!buffers[start].hasPlace() || i == 0 || bytes < least || bytes == least && isOnly && !startIsOnly) {
			start, least, startIsOnly = i, bytes, isOnly
		}
	}
	return append(buffers[start:len(buffers):len(buffers)], buffers[:start]...)
}
