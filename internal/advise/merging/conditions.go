package merging

import "sort"

// Condition is one that a copy must meet so that its source can be made where it puts it. The first five are the
// thesis' safety conditions as far as a run shows them.
type Condition uint8

// The conditions.
const (
	LastUse     Condition = iota + 1 // C1: nothing touches the source after the copy
	Allocated                        // C2: the destination is created before the source's first use
	Undisturbed                      // C3: nothing touches the destination's bytes from then until the copy
	OwnMemory                        // C4: the source is a plain buffer with memory of its own
	Addressable                      // C5: the new place is known by then and can be a sub-buffer
	Agreement                        // C6: it holds each time the program comes there
	Order                            // commands of different queues are surely not at work at once
)

var conditions = [...]string{"", "C1", "C2", "C3", "C4", "C5", "C6", "order"}

// String returns the thesis' number, or a word for what the thesis does not have.
func (c Condition) String() string { return conditions[min(int(c), len(conditions)-1)] }

// Failure is a condition that a copy does not meet.
type Failure struct {
	Condition Condition
	Step      int // that broke it, None when it was none
	// Producer is set for Undisturbed when only kernels that also make the source touch the destination: the case of
	// the thesis' LUD benchmark.
	Producer bool
}

// Hoist says what would have to happen earlier for a copy to meet all conditions. It is legal as far as the run shows:
// the host learns nothing between the two places.
type Hoist uint8

// The hoists, as bits.
const (
	HoistCreate Hoist = 1 << iota // the destination's create
	HoistFill                     // what fills the destination
)

// Copy is what became of one copy between buffers.
type Copy struct {
	Step                int
	Source, Destination int    // roots
	From, To            uint64 // first bytes in the roots
	Bytes               uint64
	First               int  // step of the source's first use
	NoOp                bool // from a place to itself
	OtherClass          bool // context or flags differ: the destination must allow what is done to the source
	Failed              []Failure
	Hoist               Hoist // that would undo all of Failed; 0: none would
	// Taken is set for the choice of copies that saves most. The source is then made in Into at the byte At.
	Taken bool
	Into  int
	At    uint64

	content, host int // of the source, the destination
	reach         int // how many copies up a chain of them the source could go
}

// Holds reports whether a copy meets all conditions on its own.
func (c *Copy) Holds() bool { return !c.NoOp && len(c.Failed) == 0 }

// scanBudget is how many uses the checks of all copies look at; what is left then fails C3.
const scanBudget = 1 << 27

// fewSteps is how many steps in the way of a copy are looked at: of more it is not said that they are all alike.
const fewSteps = 16

// checker checks a program's copies.
type checker struct {
	*Analysis
	maps  [][]int32    // of each root that was mapped: indexes of the maps
	shown map[int]bool // roots that have parts that are no plain buffers: many drivers make none of sub-buffers
	left  int
}

// Copies checks each copy between buffers, in the order of the steps, and chooses those that together save most bytes.
func (a *Analysis) Copies() []Copy {
	k := &checker{Analysis: a, maps: make([][]int32, len(a.Program.Buffers)), shown: map[int]bool{}, left: scanBudget}
	for i := range a.Program.Buffers {
		if !a.root(i) && a.Program.Buffers[i].Pinned != Free {
			k.shown[int(a.roots[i].root)] = true
		}
		for j, t := range a.touches(i) {
			if t.until > t.step {
				k.maps[i] = append(k.maps[i], int32(j))
			}
		}
	}
	var copies []Copy
	for i := range a.Program.Steps {
		if s := &a.Program.Steps[i]; s.Kind == KindCopy && len(s.Uses) == 2 {
			copies = append(copies, k.check(i))
		}
	}
	k.choose(copies)
	return copies
}

func (k *checker) check(step int) Copy {
	s := &k.Program.Steps[step]
	src, dst := s.Uses[0], s.Uses[1]
	from, to := k.roots[src.Buffer], k.roots[dst.Buffer]
	c := Copy{
		Step: step, Source: int(from.root), Destination: int(to.root), From: from.offset + src.Offset,
		To: to.offset + dst.Offset, Bytes: dst.Bytes, Into: None,
	}
	c.OtherClass = k.Program.Buffers[c.Source].Class != k.Program.Buffers[c.Destination].Class
	c.NoOp = c.Source == c.Destination && c.From == c.To && src.Extent == Range && dst.Extent == Range
	c.content, c.host = k.contentAt(c.Source, step), k.contentAt(c.Destination, step)
	c.First = k.Lives[c.Source].Contents[c.content].First
	if c.NoOp {
		return c
	}
	last := k.lastUse(&c)
	k.allocated(&c)
	if c.Source != c.Destination {
		k.undisturbed(&c)
	}
	k.ownMemory(&c, src.Buffer)
	k.addressable(&c, src, dst, last)
	if last {
		k.ordered(&c)
	}
	c.Hoist = k.hoist(&c)
	return c
}

// contentAt returns which of a root's contents a step touches, the latter of two.
func (k *checker) contentAt(root, step int) int {
	contents := k.Lives[root].Contents
	return sort.Search(len(contents), func(i int) bool { return contents[i].First > step }) - 1
}

func (c *Copy) fail(condition Condition, step int) {
	c.Failed = append(c.Failed, Failure{Condition: condition, Step: step})
}

// lastUse checks C1. A full overwrite after the copy begins another content, which may be elsewhere.
func (k *checker) lastUse(c *Copy) bool {
	content := &k.Lives[c.Source].Contents[c.content]
	touches := k.touches(c.Source)
	if last := int(touches[content.end-1].step); last > c.Step {
		c.fail(LastUse, int(touches[k.since(c.Source, c.Step+1)].step))
		return false
	}
	for _, t := range touches[content.begin:content.end] {
		if int(t.until) > c.Step { // still mapped
			c.fail(LastUse, int(t.step))
			return false
		}
	}
	return true
}

// allocated checks C2.
func (k *checker) allocated(c *Copy) {
	if created := k.Program.Buffers[c.Destination].Created; created >= c.First && c.Source != c.Destination {
		c.fail(Allocated, created)
	}
}

// undisturbed checks C3.
func (k *checker) undisturbed(c *Copy) {
	found := k.disturbers(c.Destination, c.To, c.To+c.Bytes, c.First, c.Step)
	if len(found) == 0 {
		return
	}
	f := Failure{Condition: Undisturbed, Step: found[0], Producer: k.left > 0 && len(found) < fewSteps}
	for _, step := range found {
		f.Producer = f.Producer && k.Program.Steps[step].Kind == KindKernel && k.touchesIn(c.Source, step)
	}
	c.Failed = append(c.Failed, f)
}

// disturbers returns steps in [from, to) that touch bytes of a root, fewSteps of them at most or so; a map that is open
// counts as the step that began it. With the budget used up it returns from itself.
func (k *checker) disturbers(root int, lo, hi uint64, from, to int) []int {
	var found []int
	touches := k.touches(root)
	for _, m := range k.maps[root] {
		if t := &touches[m]; int(t.step) < from && int(t.until) >= from && t.lo < hi && lo < t.hi {
			found = append(found, int(t.step))
		}
		if k.left--; k.left <= 0 {
			return append(found, from)
		}
	}
	for i := k.since(root, from); i < len(touches) && int(touches[i].step) < to && len(found) < fewSteps; i++ {
		if k.left--; k.left <= 0 {
			return append(found, from)
		}
		if touches[i].lo < hi && lo < touches[i].hi {
			found = append(found, int(touches[i].step))
		}
	}
	return found
}

// touchesIn reports whether a step touches a root.
func (k *checker) touchesIn(root, step int) bool {
	i := k.since(root, step)
	touches := k.touches(root)
	return i < len(touches) && int(touches[i].step) == step
}

// ownMemory checks C4: a sub-buffer has none, nor has a buffer that an image shows. Data that come with the create cannot
// come with a part of another buffer.
func (k *checker) ownMemory(c *Copy, used int) {
	switch {
	case c.Source == c.Destination, used != c.Source, k.Program.Buffers[c.Source].Pinned != Free, k.shown[c.Source]:
		c.fail(OwnMemory, None)
	case k.Program.Steps[c.First].Kind == KindCreate:
		c.fail(OwnMemory, c.First)
	}
}

// addressable checks C5: known bytes in one piece, all that matter of the source, at a place where a sub-buffer can begin and
// that depends on nothing which the host reads after the source's first use. last says that the copy is the source's last
// use, so that looking at all its uses is worth it.
func (k *checker) addressable(c *Copy, src, dst Use, last bool) {
	inPieces := src.Extent != Range || dst.Extent != Range || src.Bytes != dst.Bytes
	switch {
	case k.Program.Buffers[c.Destination].Pinned != Free, inPieces, !k.whole(c, last), !k.aligned(c.To):
		c.fail(Addressable, None)
	case c.To != 0 && k.hostRead(c.First, c.Step) != None:
		c.fail(Addressable, k.hostRead(c.First, c.Step))
	}
}

// whole reports whether the copied bytes are all that matter of the source: all there are, or all that anything
// touches.
func (k *checker) whole(c *Copy, last bool) bool {
	if c.From == 0 && c.Bytes == k.Program.Buffers[c.Source].Size {
		return true
	}
	content := &k.Lives[c.Source].Contents[c.content]
	if !last || k.parts[c.Source] {
		return false
	}
	for _, t := range k.touches(c.Source)[content.begin:content.end] {
		if t.lo < c.From || t.hi > c.From+c.Bytes {
			return false
		}
	}
	return true
}

// aligned reports whether a sub-buffer can begin at a byte; if the device's rule is unknown, the advice mentions that.
func (k *checker) aligned(offset uint64) bool {
	return k.Program.Align == 0 || offset%k.Program.Align == 0
}

// ordered checks that one memory in the place of two brings no commands of different queues together: the source's uses
// end before the copy begins, and the destination's before the source's first use.
func (k *checker) ordered(c *Copy) {
	content := &k.Lives[c.Source].Contents[c.content]
	for _, t := range k.touches(c.Source)[content.begin:content.end] {
		if int(t.step) < c.Step && !k.before(int(t.step), c.Step) {
			c.fail(Order, int(t.step))
			return
		}
	}
	if step := k.early(c.Destination, c.Source, c.content); step != None {
		c.fail(Order, step)
	}
}

// early returns a use of a destination, before a source's first one, that may not have ended by then or by a later one
// on another queue; None when there is none.
func (k *checker) early(dst, src, content int) int {
	sources := k.Lives[src].Contents[content]
	if q := k.queues[dst]; q == noUser || q == k.queues[src] && q != many {
		return None
	}
	first := int32(sources.First)
	touches := k.touches(dst)
	late := k.late[k.starts[dst]:]
	for i := k.since(dst, sources.First) - 1; i >= 0 && late[i] > first; i-- {
		if k.left--; k.left <= 0 {
			return int(touches[i].step)
		}
		if !k.beforeAll(int(touches[i].step), src, sources) {
			return int(touches[i].step)
		}
	}
	return None
}

// beforeAll reports whether a step has surely ended when any use of a content begins. All on one queue is looked at
// once.
func (k *checker) beforeAll(step, src int, content Content) bool {
	if k.done(step) <= content.First {
		return true
	}
	for _, t := range k.touches(src)[content.begin:content.end] {
		if k.left--; k.left <= 0 || !k.before(step, int(t.step)) {
			return false
		}
	}
	return true
}

// hoist returns what would make all conditions hold.
func (k *checker) hoist(c *Copy) Hoist {
	var h Hoist
	for _, f := range c.Failed {
		switch {
		case f.Condition == Allocated && k.hostRead(c.First, f.Step) == None:
			h |= HoistCreate
		case f.Condition == Undisturbed && k.fills(c):
			h |= HoistFill
		default:
			return 0
		}
	}
	return h
}

// fills reports whether all that disturbs a copy's destination only fills it with what is known before.
func (k *checker) fills(c *Copy) bool {
	found := k.disturbers(c.Destination, c.To, c.To+c.Bytes, c.First, c.Step)
	for _, step := range found {
		s := &k.Program.Steps[step]
		known := s.Kind == KindFill || s.Kind == KindWrite || s.Kind == KindCreate
		if !known || step < c.First || k.hostRead(c.First, step) != None {
			return false
		}
	}
	return len(found) < fewSteps
}
