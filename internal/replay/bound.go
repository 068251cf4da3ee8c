package replay

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
)

// Bound is what no policy can be below that serves all that a tape asks for, not even one that knows the future: where
// there is any memory that is asked for. Times are ns of the simulated driver, sizes bytes.
type Bound struct {
	Peak   uint64  // reserved, of all processes together: what the program holds at a time
	Whole  float64 // DriverNS of a policy by which each buffer has a block of its own
	Carved float64 // DriverNS of any policy, those that carve buffers out of slabs included
}

// Bound returns what no policy can be below on a device.
//
// A block in use, or cooling, serves no other request, and blocks of one class serve no other class. So by the time
// when the most buffers live that have x bytes or more, as many blocks of x bytes or more were created, for every x:
// the k-th largest block of a class is at least as large as the k-th largest buffer ever was among those that lived
// then. With slabs all of them may be one block, of at least the bytes that lived then. What is created in a context
// that ends is released, except what the program never gave back. First touches count by block, without bytes: a block
// may serve a small buffer first.
func (t *Loaded) Bound(d cost.Device) Bound {
	crowds, peak := t.crowds()
	out := Bound{Peak: peak}
	for _, c := range crowds {
		whole, carved := c.price(&d)
		out.Whole += whole
		out.Carved += carved
	}
	return out
}

// kinship is what blocks have in common that may serve each other's requests.
type kinship struct {
	process uint32
	class   allocator.Class
}

// crowd is the buffers of one kinship: those that live, and those that cool.
type crowd struct {
	sizes   []uint64 // that there are, ascending
	maxTree maxTree  // for each of them: how many there were at a time that have it or more
	bytes   uint64   // now
	high    uint64   // bytes at a time
	live    int      // now
	lost    int      // that the program left unfit for reuse: with slabs, their fate is unknown
	ended   bool     // no more requests: what is released goes to the driver
}

// price returns the least that a driver takes for blocks that serve the crowd, one for each buffer at a time, or as
// many as one likes.
func (c *crowd) price(d *cost.Device) (whole, carved float64) {
	most := c.maxTree.most()
	kept := c.live + c.lost
	created := 0
	for i := len(most) - 1; i >= 0; i-- { // the largest first
		for ; created < most[i]; created++ {
			whole += least(&d.Create, c.sizes[i]) + spread(&d.Touch, 0)
			if c.ended && created >= kept {
				whole += least(&d.Release, c.sizes[i])
			}
		}
	}
	carved = spread(&d.Create, c.high) + spread(&d.Touch, 0)
	if c.ended && kept == 0 {
		carved += spread(&d.Release, c.high)
	}
	return whole, min(whole, carved)
}

// least returns the least ns that a call for that many bytes or more takes: where a line has a break, that may be one
// of more bytes.
func least(l *cost.Line, size uint64) float64 {
	if size < l.Below.Bytes {
		return min(l.NS(size), l.NS(l.Below.Bytes))
	}
	return l.NS(size)
}

// spread returns the least ns that one call or several for that many bytes together take.
func spread(l *cost.Line, bytes uint64) float64 {
	if l.Below.Bytes == 0 {
		return l.A + l.B*float64(bytes)
	}
	return min(l.A, l.Below.A) + min(l.B, l.Below.B)*float64(bytes)
}

func (c *crowd) enter(size uint64) {
	c.live++
	c.bytes += size
	c.high = max(c.high, c.bytes)
	c.maxTree.add(c.place(size), 1)
}

func (c *crowd) leave(size uint64) {
	c.live--
	c.bytes -= size
	c.maxTree.add(c.place(size), -1)
}

func (c *crowd) place(size uint64) int {
	i, _ := slices.BinarySearch(c.sizes, size)
	return i
}

// census finds the crowds, by class of the script and in the order of their first requests, and their sizes.
func (t *Loaded) census() (byClass, crowds []*crowd) {
	byClass = make([]*crowd, len(t.script.classes))
	known := map[kinship]*crowd{}
	for _, ops := range t.chunks {
		for i := range ops {
			step := &ops[i]
			if !step.code.creates() {
				continue
			}
			c := byClass[step.class]
			if c == nil {
				class := &t.script.classes[step.class]
				kin := kinship{class.process, class.request.Class}
				if c = known[kin]; c == nil {
					c = &crowd{}
					known[kin] = c
					crowds = append(crowds, c)
				}
				byClass[step.class] = c
			}
			c.sizes = append(c.sizes, step.size)
		}
	}
	for _, c := range crowds {
		slices.Sort(c.sizes)
		c.sizes = slices.Compact(c.sizes)
		c.maxTree = newMaxTree(len(c.sizes))
	}
	return byClass, crowds
}

// dweller is a buffer of the tape: it is in use, or cools, as in a process that plays it.
type dweller struct {
	crowd   *crowd
	size    uint64
	process uint32
	state   state
}

// gathering is a tape that plays without a policy.
type gathering struct {
	slots []dweller
	raced [][]dweller // by process: those that cool until its next wait
	has   []int64     // bytes that the program has, by process
	held  int64       // bytes of all
	peak  int64
}

// crowds plays the tape without a policy. peak is the most that the program held at a time.
func (t *Loaded) crowds() (crowds []*crowd, peak uint64) {
	byClass, crowds := t.census()
	n := t.script.facts.processes
	g := gathering{slots: make([]dweller, t.script.slots), raced: make([][]dweller, n), has: make([]int64, n)}
	for _, ops := range t.chunks {
		for i := range ops {
			step := &ops[i]
			switch step.code {
			case opCreate, opPlan:
				g.enter(step, byClass[step.class], t.script.classes[step.class].process)
			case opWait:
				for _, d := range g.raced[step.slot] {
					d.crowd.leave(d.size)
				}
				g.raced[step.slot] = g.raced[step.slot][:0]
			case opDrop:
				if c := byClass[step.class]; c != nil {
					c.ended = true
				}
			case opFree, opFreeEarly, opCool, opCooled, opLose, opForget:
				g.release(step)
			case opGone:
				g.slots[step.slot].state = empty
			case opExit:
				g.hold(step.slot, -g.has[step.slot])
			default: // the others change nothing
			}
		}
	}
	return crowds, uint64(g.peak)
}

func (g *gathering) enter(step *op, c *crowd, process uint32) {
	g.slots[step.slot] = dweller{c, step.size, process, inUse}
	c.enter(step.size)
	g.hold(process, int64(step.size))
}

// hold adds to the bytes that a process holds, or subtracts from them.
func (g *gathering) hold(process uint32, bytes int64) {
	g.has[process] += bytes
	g.held += bytes
	g.peak = max(g.peak, g.held)
}

// release does what becomes of a buffer, as player.release does.
func (g *gathering) release(step *op) {
	d := &g.slots[step.slot]
	switch {
	case d.state == cools && step.code == opCooled:
		d.crowd.leave(d.size)
	case d.state == cools:
		g.raced[d.process] = append(g.raced[d.process], *d)
	case d.state == inUse && step.code == opFree:
		g.hold(d.process, -int64(d.size))
		d.crowd.leave(d.size)
	case d.state == inUse && step.code == opFreeEarly:
		g.hold(d.process, -int64(d.size))
		g.raced[d.process] = append(g.raced[d.process], *d)
	case d.state == inUse && step.code == opForget:
		g.hold(d.process, -int64(d.size))
		d.crowd.lost++
		d.crowd.leave(d.size)
	case d.state == inUse && step.code == opCool:
		g.hold(d.process, -int64(d.size))
		d.state = cools
		return
	default:
		return
	}
	d.state = empty
}
