package merging

import "slices"

// longest is how far up a chain of copies a source is followed.
const longest = 16

// choose takes the copies that together save most bytes. A chain of copies can go into one block as far as the
// conditions hold for each source and each destination that its bytes pass: one that can go only part of the way
// excludes what would take it further (figure 5.26). As each content has at most one copy that is its last use, copies
// form a forest, on which the best choice is found exactly.
func (k *checker) choose(copies []Copy) {
	out := map[[2]int]int{} // content: the copy that is its last use
	for i := range copies {
		if c := &copies[i]; c.Holds() {
			out[[2]int{c.Source, c.content}] = i
		}
	}
	f := forest{copies: copies, up: make([]int, len(copies)), below: make([][longest + 1]uint64, len(copies))}
	f.value = make([][longest + 1]uint64, len(copies))
	for i := range copies {
		f.up[i] = None
		if c := &copies[i]; c.Holds() {
			if up, ok := out[[2]int{c.Destination, c.host}]; ok && up > i {
				f.up[i] = up
			}
		}
	}
	for i := range copies {
		if copies[i].Holds() {
			copies[i].reach = k.reach(&f, i)
		}
	}
	f.solve(k.worth)
	f.take()
}

// forest is copies, each with the one that copies its destination on.
type forest struct {
	copies []Copy
	up     []int // None at a root
	// value is what can be saved with a copy and all below it when so many in a row above it are taken; below is the
	// same of those below only.
	value, below [][longest + 1]uint64
}

// reach returns how many copies up from one its source can be moved.
func (k *checker) reach(f *forest, i int) int {
	c := &f.copies[i]
	n, at := 1, c.To
	for up := f.up[i]; up != None && n < longest; up = f.up[up] {
		next := &f.copies[up]
		at = next.To + at - next.From
		if !k.fitsAt(c, next, at) {
			break
		}
		n++
	}
	return n
}

// fitsAt reports whether the source of a copy can be made at a byte of the destination of one further up.
func (k *checker) fitsAt(c, up *Copy, at uint64) bool {
	switch {
	case k.Program.Buffers[up.Destination].Created >= c.First, !k.aligned(at):
		return false
	case at != 0 && k.hostRead(c.First, up.Step) != None:
		return false
	case len(k.disturbers(up.Destination, at, at+c.Bytes, c.First, up.Step)) > 0:
		return false
	}
	return k.early(up.Destination, c.Source, c.content) == None
}

// worth returns the bytes that a copy no longer moves and its source no longer needs.
func (k *checker) worth(c *Copy) uint64 {
	if len(k.Lives[c.Source].Contents) > 1 {
		return c.Bytes
	}
	return c.Bytes + k.Program.Buffers[c.Source].Size
}

// solve works from the first copy to the last: those below a copy come before it.
func (f *forest) solve(worth func(*Copy) uint64) {
	for i := range f.copies {
		c := &f.copies[i]
		for run := range longest + 1 {
			f.value[i][run] = f.below[i][0]
			if f.takes(i, run, worth(c)) {
				f.value[i][run] = worth(c) + f.below[i][run+1]
			}
			if f.up[i] != None {
				f.below[f.up[i]][run] += f.value[i][run]
			}
		}
	}
}

// takes reports whether it pays to take a copy when so many in a row above it are taken.
func (f *forest) takes(i, run int, worth uint64) bool {
	c := &f.copies[i]
	return run < c.reach && run < longest && worth+f.below[i][run+1] >= f.below[i][0]
}

// take marks the choice, from the last copy to the first, and where each source ends up.
func (f *forest) take() {
	runs := make([]int, len(f.copies))
	for i := range slices.Backward(f.copies) {
		c, run := &f.copies[i], 0
		if f.up[i] != None {
			run = runs[f.up[i]]
		}
		if run >= c.reach || run >= longest || f.value[i][run] == f.below[i][0] {
			continue
		}
		c.Taken, runs[i] = true, run+1
		c.Into, c.At = c.Destination, c.To
		if up := f.up[i]; up != None && f.copies[up].Taken {
			next := &f.copies[up]
			c.Into, c.At = next.Into, next.At+c.To-next.From
		}
	}
}
