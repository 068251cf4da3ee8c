package merging

import "sort"

// Condition is a condition under which a copy's source can be created in place at the destination. The first five are
// the thesis' safety conditions, as far as a run shows them.
type Condition uint8

// The conditions.
const (
	LastUse     Condition = iota + 1 // C1: the source is not used after the copy
	Allocated                        // C2: the destination is created before the source's first use
	Undisturbed                      // C3: the destination's bytes are not used from then until the copy
	OwnMemory                        // C4: the source is a plain buffer with memory of its own
	Addressable                      // C5: the offset is known by then and a sub-buffer can begin there
	Agreement                        // C6: the other conditions hold each time the program comes there
	Order                            // commands of different queues certainly do not run at the same time
)

var conditions = [...]string{"", "C1", "C2", "C3", "C4", "C5", "C6", "order"}

// String returns the thesis' number, or a word for a condition that the thesis does not have.
func (c Condition) String() string { return conditions[min(int(c), len(conditions)-1)] }

// Failure is a condition that a copy does not meet.
type Failure struct {
	Condition Condition
	Step      int // where it failed, None if not at a step
	// Producer is set for Undisturbed if the only kernels that use the destination also use the source, as in the
	// thesis' LUD benchmark.
	Producer bool
}

// Hoist is what would have to happen earlier for a copy to meet all conditions. Hoisting is legal as far as the run
// shows: the host learns nothing between the two steps.
type Hoist uint8

// The hoists, as bits.
const (
	HoistCreate Hoist = 1 << iota // creating the destination
	HoistFill                     // filling the destination
)

// Copy is the analysis of one copy between buffers.
type Copy struct {
	Step                int
	Source, Destination int    // roots
	From, To            uint64 // first bytes in the roots
	Bytes               uint64
	First               int  // step of the source's first use
	NoOp                bool // the copy is from a place to itself
	OtherClass          bool // context or flags differ: the destination must allow everything that is done to the source
	Failed              []Failure
	Hoist               Hoist // what would make all conditions hold; 0: hoisting would not
	// Taken is set for the copies that are chosen together. The source is then created in Into, at byte At.
	Taken bool
	Into  int
	At    uint64

	sourceContent, destinationContent int // indices of the contents of source and destination
	reach                             int // how many copies up a chain the source could be moved
}

// MeetsConditions reports whether a copy meets all conditions on its own.
func (c *Copy) MeetsConditions() bool { return !c.NoOp && len(c.Failed) == 0 }

// scanBudget bounds how many uses the checks of all copies inspect. If it is used up, condition C3 counts as failed.
const scanBudget = 1 << 27

// stepsMax bounds how many steps that disturb a copy are inspected. Beyond that we do not claim that all steps agree.
const stepsMax = 16

// checker checks a program's copies.
type checker struct {
	*Analysis
	maps          [][]int32    // by root: indices of the touches that are maps
	hasOtherParts map[int]bool // roots with sub-objects that are not plain buffers, such as images: many drivers cannot create these on sub-buffers
	budget        int          // uses that may still be inspected
}

// CheckCopies checks each copy between buffers, in the order of the steps, and chooses the copies that together save the
// most bytes.
func (a *Analysis) CheckCopies() []Copy {
	k := &checker{Analysis: a, maps: make([][]int32, len(a.Program.Buffers)), hasOtherParts: map[int]bool{}, budget: scanBudget}
	for i := range a.Program.Buffers {
		if !a.isRoot(i) && a.Program.Buffers[i].Pinned != Free {
			k.hasOtherParts[int(a.roots[i].root)] = true
		}
		for j, t := range a.touchesOf(i) {
			if t.until > t.step {
				k.maps[i] = append(k.maps[i], int32(j))
			}
		}
	}
	var copies []Copy
	for i := range a.Program.Steps {
		if s := &a.Program.Steps[i]; s.Kind == KindCopy && len(s.Uses) == 2 {
			copies = append(copies, k.checkCopy(i))
		}
	}
	k.chooseCopiesToTake(copies)
	return copies
}

func (k *checker) checkCopy(step int) Copy {
	s := &k.Program.Steps[step]
	src, dst := s.Uses[0], s.Uses[1]
	from, to := k.roots[src.Buffer], k.roots[dst.Buffer]
	c := Copy{
		Step: step, Source: int(from.root), Destination: int(to.root), From: from.offset + src.Offset,
		To: to.offset + dst.Offset, Bytes: dst.Bytes, Into: None,
	}
	c.OtherClass = k.Program.Buffers[c.Source].Class != k.Program.Buffers[c.Destination].Class
	c.NoOp = c.Source == c.Destination && c.From == c.To && src.Extent == Range && dst.Extent == Range
	c.sourceContent, c.destinationContent = k.contentAt(c.Source, step), k.contentAt(c.Destination, step)
	c.First = k.Lives[c.Source].Contents[c.sourceContent].First
	if c.NoOp {
		return c
	}
	last := k.checkLastUse(&c)
	k.checkAllocated(&c)
	if c.Source != c.Destination {
		k.checkUndisturbed(&c)
	}
	k.checkOwnMemory(&c, src.Buffer)
	k.checkSubBufferFits(&c, src, dst, last)
	if last {
		k.checkOrder(&c)
	}
	c.Hoist = k.neededHoist(&c)
	return c
}

// contentAt returns the index of the content of a root that a step touches. If a step ends one content and begins
// another, it is the latter.
func (k *checker) contentAt(root, step int) int {
	contents := k.Lives[root].Contents
	return sort.Search(len(contents), func(i int) bool { return contents[i].First > step }) - 1
}

func (c *Copy) addFailure(condition Condition, step int) {
	c.Failed = append(c.Failed, Failure{Condition: condition, Step: step})
}

// checkLastUse checks C1. A full overwrite after the copy begins another content, which may be in other memory.
func (k *checker) checkLastUse(c *Copy) bool {
	content := &k.Lives[c.Source].Contents[c.sourceContent]
	touches := k.touchesOf(c.Source)
	if last := int(touches[content.end-1].step); last > c.Step {
		c.addFailure(LastUse, int(touches[k.firstTouchFrom(c.Source, c.Step+1)].step))
		return false
	}
	for _, t := range touches[content.begin:content.end] {
		if int(t.until) > c.Step { // the content is still mapped
			c.addFailure(LastUse, int(t.step))
			return false
		}
	}
	return true
}

// checkAllocated checks C2.
func (k *checker) checkAllocated(c *Copy) {
	if created := k.Program.Buffers[c.Destination].Created; created >= c.First && c.Source != c.Destination {
		c.addFailure(Allocated, created)
	}
}

// checkUndisturbed checks C3.
func (k *checker) checkUndisturbed(c *Copy) {
	found := k.disturbingSteps(c.Destination, c.To, c.To+c.Bytes, c.First, c.Step)
	if len(found) == 0 {
		return
	}
	f := Failure{Condition: Undisturbed, Step: found[0], Producer: k.budget > 0 && len(found) < stepsMax}
	for _, step := range found {
		f.Producer = f.Producer && k.Program.Steps[step].Kind == KindKernel && k.touchesRoot(c.Source, step)
	}
	c.Failed = append(c.Failed, f)
}

// disturbingSteps returns steps in [from, to) that touch bytes of a root, about stepsMax at most. An open map counts as the
// step that began it. If the budget is used up, disturbingSteps returns from, too.
func (k *checker) disturbingSteps(root int, lo, hi uint64, from, to int) []int {
	var found []int
	touches := k.touchesOf(root)
	for _, m := range k.maps[root] {
		if t := &touches[m]; int(t.step) < from && int(t.until) >= from && t.lo < hi && lo < t.hi {
			found = append(found, int(t.step))
		}
		if k.budget--; k.budget <= 0 {
			return append(found, from)
		}
	}
	for i := k.firstTouchFrom(root, from); i < len(touches) && int(touches[i].step) < to && len(found) < stepsMax; i++ {
		if k.budget--; k.budget <= 0 {
			return append(found, from)
		}
		if touches[i].lo < hi && lo < touches[i].hi {
			found = append(found, int(touches[i].step))
		}
	}
	return found
}

// touchesRoot reports whether a step touches a root.
func (k *checker) touchesRoot(root, step int) bool {
	i := k.firstTouchFrom(root, step)
	touches := k.touchesOf(root)
	return i < len(touches) && int(touches[i].step) == step
}

// checkOwnMemory checks C4: a sub-buffer has no memory of its own, nor has a buffer with an image on it. A create that
// brings data cannot bring them to a part of another buffer.
func (k *checker) checkOwnMemory(c *Copy, used int) {
	switch {
	case c.Source == c.Destination, used != c.Source, k.Program.Buffers[c.Source].Pinned != Free, k.hasOtherParts[c.Source]:
		c.addFailure(OwnMemory, None)
	case k.Program.Steps[c.First].Kind == KindCreate:
		c.addFailure(OwnMemory, c.First)
	}
}

// checkSubBufferFits checks C5: the copied bytes are known, contiguous, and all that matters of the source; a sub-buffer
// can begin at their offset; and the offset does not depend on anything that the host reads after the source's first
// use. last says that the copy is the source's last use; otherwise it is not worth inspecting all uses.
func (k *checker) checkSubBufferFits(c *Copy, src, dst Use, last bool) {
	inPieces := src.Extent != Range || dst.Extent != Range || src.Bytes != dst.Bytes
	switch {
	case k.Program.Buffers[c.Destination].Pinned != Free, inPieces, !k.coversContent(c, last), !k.isAligned(c.To):
		c.addFailure(Addressable, None)
	case c.To != 0 && k.lastHostRead(c.First, c.Step) != None:
		c.addFailure(Addressable, k.lastHostRead(c.First, c.Step))
	}
}

// coversContent reports whether the copied bytes are the whole source, or all of it that is ever used.
func (k *checker) coversContent(c *Copy, last bool) bool {
	if c.From == 0 && c.Bytes == k.Program.Buffers[c.Source].Size {
		return true
	}
	content := &k.Lives[c.Source].Contents[c.sourceContent]
	if !last || k.hasParts[c.Source] {
		return false
	}
	for _, t := range k.touchesOf(c.Source)[content.begin:content.end] {
		if t.lo < c.From || t.hi > c.From+c.Bytes {
			return false
		}
	}
	return true
}

// isAligned reports whether a sub-buffer can begin at an offset. If the device's rule is unknown, the advice mentions
// that.
func (k *checker) isAligned(offset uint64) bool {
	return k.Program.Align == 0 || offset%k.Program.Align == 0
}

// checkOrder checks that commands of different queues do not meet in the shared memory: the uses of the source end
// before the copy begins, and earlier uses of the destination end before the source's first use.
func (k *checker) checkOrder(c *Copy) {
	content := &k.Lives[c.Source].Contents[c.sourceContent]
	for _, t := range k.touchesOf(c.Source)[content.begin:content.end] {
		if int(t.step) < c.Step && !k.endsBefore(int(t.step), c.Step) {
			c.addFailure(Order, int(t.step))
			return
		}
	}
	if step := k.unfinishedDestinationUse(c.Destination, c.Source, c.sourceContent); step != None {
		c.addFailure(Order, step)
	}
}

// unfinishedDestinationUse returns a use of a destination before a source's first use that may not have ended by then, None if
// there is none.
func (k *checker) unfinishedDestinationUse(dst, src, content int) int {
	sources := k.Lives[src].Contents[content]
	if q := k.queues[dst]; q == noUser || q == k.queues[src] && q != severalUsers {
		return None
	}
	first := int32(sources.First)
	touches := k.touchesOf(dst)
	late := k.latestDone[k.touchStarts[dst]:]
	for i := k.firstTouchFrom(dst, sources.First) - 1; i >= 0 && late[i] > first; i-- {
		if k.budget--; k.budget <= 0 {
			return int(touches[i].step)
		}
		if !k.endsBeforeContent(int(touches[i].step), src, sources) {
			return int(touches[i].step)
		}
	}
	return None
}

// endsBeforeContent reports whether a step has certainly ended when any use of a content begins.
func (k *checker) endsBeforeContent(step, src int, content Content) bool {
	if k.stepKnownCompleted(step) <= content.First {
		return true
	}
	for _, t := range k.touchesOf(src)[content.begin:content.end] {
		if k.budget--; k.budget <= 0 || !k.endsBefore(step, int(t.step)) {
			return false
		}
	}
	return true
}

// neededHoist returns what would make all conditions hold.
func (k *checker) neededHoist(c *Copy) Hoist {
	var h Hoist
	for _, f := range c.Failed {
		switch {
		case f.Condition == Allocated && k.lastHostRead(c.First, f.Step) == None:
			h |= HoistCreate
		case f.Condition == Undisturbed && k.isOnlyFilled(c):
			h |= HoistFill
		default:
			return 0
		}
	}
	return h
}

// isOnlyFilled reports whether all steps that disturb a copy's destination only fill it with data that are known before.
func (k *checker) isOnlyFilled(c *Copy) bool {
	found := k.disturbingSteps(c.Destination, c.To, c.To+c.Bytes, c.First, c.Step)
	for _, step := range found {
		s := &k.Program.Steps[step]
		known := s.Kind == KindFill || s.Kind == KindWrite || s.Kind == KindCreate
		if !known || step < c.First || k.lastHostRead(c.First, step) != None {
			return false
		}
	}
	return len(found) < stepsMax
}
