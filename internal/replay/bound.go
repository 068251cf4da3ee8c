package replay

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
)

// Bound holds lower bounds for all policies, including one that knows the future, if they serve every request of a
// recording. Times are ns of the simulated driver, sizes are bytes.
type Bound struct {
	Peak   uint64  // reserved, in all processes together: the most that the program holds at one time
	Whole  float64 // DriverNS of a policy that gives each buffer a block of its own
	Carved float64 // DriverNS of any policy, including those that carve slabs
}

// LowerBound returns the lower bounds on a device.
//
// A block in use or cooling serves no other request, and blocks of one class serve no other class. So when the most
// buffers of x bytes or more live, at least that many blocks of x bytes or more were created, for every x: the k-th
// largest block of a class is at least as large as the k-th largest of the buffers that lived then. With slabs one
// block may hold all buffers; it has at least as many bytes as lived then. Blocks of a context that ends are released,
// except those that the program never gave back. First touches count per block, without bytes, because a block may
// serve a small buffer first.
func (l *Loaded) LowerBound(d cost.Device) Bound {
	groups, peak := l.playWithoutPolicy()
	out := Bound{Peak: peak}
	for _, c := range groups {
		whole, carved := c.leastDriverTime(&d)
		out.Whole += whole
		out.Carved += carved
	}
	return out
}

// groupKey identifies the requests that blocks of one group can serve.
type groupKey struct {
	process uint32
	class   allocator.Class
}

// group is a set of buffers whose blocks can serve each other's requests: the buffers in use and those that cool.
type group struct {
	sizes   []uint64 // the sizes that occur, ascending
	maxTree maxTree  // by size: the largest number of buffers of that size or more at one time
	bytes   uint64   // in use or cooling, now
	peak    uint64   // the largest value of bytes
	live    int      // buffers, now
	unfit   int      // buffers whose memory the program left unfit for reuse: with slabs it is unknown when that memory is released
	ended   bool     // no more requests come: released blocks go to the driver
}

// leastDriverTime returns lower bounds for the driver time of the blocks of a group: if each buffer has a block of its own,
// and if blocks may hold any number of buffers.
func (c *group) leastDriverTime(d *cost.Device) (whole, carved float64) {
	most := c.maxTree.peaks()
	kept := c.live + c.unfit
	created := 0
	for i := len(most) - 1; i >= 0; i-- { // the largest first
		for ; created < most[i]; created++ {
			whole += leastCallNS(&d.Create, c.sizes[i]) + leastSplitNS(&d.Touch, 0)
			if c.ended && created >= kept {
				whole += leastCallNS(&d.Release, c.sizes[i])
			}
		}
	}
	carved = leastSplitNS(&d.Create, c.peak) + leastSplitNS(&d.Touch, 0)
	if c.ended && kept == 0 {
		carved += leastSplitNS(&d.Release, c.peak)
	}
	return whole, min(whole, carved)
}

// leastCallNS returns the least time in ns of a call for size bytes or more. Where the cost line has a break, a larger
// call may be faster.
func leastCallNS(l *cost.Line, size uint64) float64 {
	if size < l.Below.Bytes {
		return min(l.CallNS(size), l.CallNS(l.Below.Bytes))
	}
	return l.CallNS(size)
}

// leastSplitNS returns the least time in ns of any number of calls for that many bytes together.
func leastSplitNS(l *cost.Line, bytes uint64) float64 {
	if l.Below.Bytes == 0 {
		return l.A + l.B*float64(bytes)
	}
	return min(l.A, l.Below.A) + min(l.B, l.Below.B)*float64(bytes)
}

func (c *group) addBuffer(size uint64) {
	c.live++
	c.bytes += size
	c.peak = max(c.peak, c.bytes)
	c.maxTree.addToFirst(c.indexOfSize(size), 1)
}

func (c *group) removeBuffer(size uint64) {
	c.live--
	c.bytes -= size
	c.maxTree.addToFirst(c.indexOfSize(size), -1)
}

func (c *group) indexOfSize(size uint64) int {
	i, _ := slices.BinarySearch(c.sizes, size)
	return i
}

// findClassGroups finds the groups, by class of the script and in the order of their first requests, and the sizes that
// occur in each.
func (l *Loaded) findClassGroups() (byClass, groups []*group) {
	byClass = make([]*group, len(l.script.classes))
	known := map[groupKey]*group{}
	for _, ops := range l.chunks {
		for i := range ops {
			step := &ops[i]
			if !step.code.givesBuffer() {
				continue
			}
			c := byClass[step.class]
			if c == nil {
				class := &l.script.classes[step.class]
				key := groupKey{class.process, class.request.Class}
				if c = known[key]; c == nil {
					c = &group{}
					known[key] = c
					groups = append(groups, c)
				}
				byClass[step.class] = c
			}
			c.sizes = append(c.sizes, step.size)
		}
	}
	for _, c := range groups {
		slices.Sort(c.sizes)
		c.sizes = slices.Compact(c.sizes)
		c.maxTree = newMaxTree(len(c.sizes))
	}
	return byClass, groups
}

// groupBuffer is a buffer of the recording, in use or cooling.
type groupBuffer struct {
	group   *group
	size    uint64
	process uint32
	state   bufferState
}

// groupWalk plays a recording without a policy.
type groupWalk struct {
	slots         []groupBuffer
	racing        [][]groupBuffer // by process: buffers that cool until its next wait
	heldByProcess []int64         // bytes that the program holds
	held          int64           // sum of heldByProcess
	peak          int64
}

// playWithoutPolicy plays the recording without a policy. peak is the most that the program held at one time.
func (l *Loaded) playWithoutPolicy() (groups []*group, peak uint64) {
	byClass, groups := l.findClassGroups()
	n := l.script.facts.processes
	walk := groupWalk{slots: make([]groupBuffer, l.script.slots), racing: make([][]groupBuffer, n), heldByProcess: make([]int64, n)}
	for _, ops := range l.chunks {
		for i := range ops {
			step := &ops[i]
			switch step.code {
			case opCreate, opDecide:
				walk.createBuffer(step, byClass[step.class], l.script.classes[step.class].process)
			case opWait:
				for _, d := range walk.racing[step.slot] {
					d.group.removeBuffer(d.size)
				}
				walk.racing[step.slot] = walk.racing[step.slot][:0]
			case opDrop:
				if c := byClass[step.class]; c != nil {
					c.ended = true
				}
			case opFree, opFreeEarly, opCool, opCooled, opLose, opForget:
				walk.releaseBuffer(step)
			case opGone:
				walk.slots[step.slot].state = empty
			case opExit:
				walk.changeHeldBytes(step.slot, -walk.heldByProcess[step.slot])
			default: // other steps change nothing
			}
		}
	}
	return groups, uint64(walk.peak)
}

func (g *groupWalk) createBuffer(step *op, c *group, process uint32) {
	g.slots[step.slot] = groupBuffer{c, step.size, process, inUse}
	c.addBuffer(step.size)
	g.changeHeldBytes(process, int64(step.size))
}

// changeHeldBytes adds bytes, or subtracts a negative number, from what a process holds.
func (g *groupWalk) changeHeldBytes(process uint32, bytes int64) {
	g.heldByProcess[process] += bytes
	g.held += bytes
	g.peak = max(g.peak, g.held)
}

// releaseBuffer updates a buffer as simulation.releaseBuffer does.
func (g *groupWalk) releaseBuffer(step *op) {
	d := &g.slots[step.slot]
	switch {
	case d.state == cooling && step.code == opCooled:
		d.group.removeBuffer(d.size)
	case d.state == cooling:
		g.racing[d.process] = append(g.racing[d.process], *d)
	case d.state == inUse && step.code == opFree:
		g.changeHeldBytes(d.process, -int64(d.size))
		d.group.removeBuffer(d.size)
	case d.state == inUse && step.code == opFreeEarly:
		g.changeHeldBytes(d.process, -int64(d.size))
		g.racing[d.process] = append(g.racing[d.process], *d)
	case d.state == inUse && step.code == opForget:
		g.changeHeldBytes(d.process, -int64(d.size))
		d.group.unfit++
		d.group.removeBuffer(d.size)
	case d.state == inUse && step.code == opCool:
		g.changeHeldBytes(d.process, -int64(d.size))
		d.state = cooling
		return
	default:
		return
	}
	d.state = empty
}
