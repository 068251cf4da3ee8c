package curve

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// feed passes a program's demands to the curves of its processes as the policy would serve them: it rounds sizes as the
// policy does, and knows which blocks the policy takes for a request.
type feed struct {
	options   Options
	emptyPool *allocator.Pool // a pool without blocks, which shows how the policy rounds sizes
	rule      servingRule
	sizeCache [256]cachedSize
	buffers   []buffer
	curves    []*Curve // by process; nil: the process is left out
	leftOut   bool     // some processes are left out
}

// servingRule says which blocks serve a request, besides those of its size.
type servingRule struct {
	ratio    float64 // blocks smaller than this many times the request; 0: no others
	minBlock uint64  // or blocks smaller than this
	sameSite bool    // only blocks of the request's call site
}

// cachedSize is the size of the block that the policy would create for a request.
type cachedSize struct {
	class            uint32
	requested, block uint64
}

// buffer is a buffer of the program, or an empty entry.
type buffer struct {
	curve *Curve // nil: the entry is empty
	class uint32
	size  uint64 // of the block
}

// newFeed returns a feed for a policy. Memory in the options is for all curves together. The error reports an invalid
// policy or setting.
func newFeed(policy string, settings []allocator.Setting, o Options) (*feed, error) {
	p, err := allocator.New(policy, settings)
	if err != nil {
		return nil, err
	}
	f := &feed{options: o, emptyPool: p}
	for _, l := range p.Limits() {
		switch l.Name {
		case "max_waste_ratio":
			f.rule.ratio = l.Value
		case "min_block":
			f.rule.minBlock = uint64(l.Value)
		case "steal_other_tag":
			f.rule.sameSite = l.Value == 0
		}
	}
	return f, nil
}

// passDemand passes a demand to the curves.
func (f *feed) passDemand(d *replay.Demand) {
	switch d.Kind {
	case replay.Requested:
		f.noteRequest(d)
	case replay.Dropped:
		if c := f.curveOfProcess(d.Process); c != nil {
			c.DropClass(d.Class)
		}
	default:
		if int(d.Buffer) >= len(f.buffers) {
			return
		}
		if b := &f.buffers[d.Buffer]; b.curve != nil {
			if d.Kind == replay.Freed {
				b.curve.NoteBlockFreed(b.class, b.size, d.Time)
			}
			*b = buffer{}
		}
	}
}

func (f *feed) noteRequest(d *replay.Demand) {
	if int(d.Buffer) >= len(f.buffers) {
		f.buffers = append(f.buffers, make([]buffer, int(d.Buffer)+1-len(f.buffers))...)
	}
	c := f.curveOfProcess(d.Process)
	if c == nil {
		f.buffers[d.Buffer] = buffer{}
		return
	}
	class := d.Class
	if f.rule.sameSite {
		class = uint32(scramble(uint64(class)<<32 | uint64(d.Request.Tag)))
	}
	size := f.blockSize(d)
	got := size
	if served := c.NoteRequest(class, size, f.rule.largestServingSize(size)); served > 0 {
		got = served
	}
	f.buffers[d.Buffer] = buffer{c, class, got}
}

// largestServingSize returns the size below which larger blocks serve a request.
func (f *servingRule) largestServingSize(size uint64) uint64 {
	if f.ratio == 0 {
		return 0
	}
	return max(uint64(min(f.ratio*float64(size), 1<<limitBits)), f.minBlock)
}

// blockSize returns the size of the block that the policy would create for a request.
func (f *feed) blockSize(d *replay.Demand) uint64 {
	wanted := d.Request.Size
	m := &f.sizeCache[(wanted^wanted>>8^wanted>>16^uint64(d.Class))%uint64(len(f.sizeCache))]
	if m.block == 0 || m.requested != wanted || m.class != d.Class {
		request := d.Request
		request.Align = 0 // a block, not a sub-allocation
		plan, _ := f.emptyPool.Decide(request, nil)
		f.emptyPool.Abort(plan)
		*m = cachedSize{d.Class, wanted, max(plan.Size, 1)}
	}
	return m.block
}

// curveOfProcess returns the curve of a process, nil if the process is left out. The first curve has one half of the memory.
// Each later curve takes MemoryMin from the other half while some is left.
func (f *feed) curveOfProcess(process uint32) *Curve {
	if int(process) < len(f.curves) && f.curves[process] != nil {
		return f.curves[process]
	}
	o := f.options
	if o.Memory == 0 {
		o.Memory = MemoryDefault
	}
	o.Memory /= 2
	switch {
	case int(process) > o.Memory/MemoryMin:
		f.leftOut = true
		return nil
	case process > 0:
		o.Memory = MemoryMin
	}
	for len(f.curves) <= int(process) {
		f.curves = append(f.curves, nil)
	}
	f.curves[process] = New(o)
	return f.curves[process]
}

// snapshot returns the curve of all processes.
func (f *feed) snapshot() *Snapshot {
	return combineCurves(slices.DeleteFunc(slices.Clone(f.curves), func(c *Curve) bool { return c == nil })...)
}

// restartCurves counts from here on.
func (f *feed) restartCurves() {
	for _, c := range f.curves {
		if c != nil {
			c.RestartCounting()
		}
	}
}

// countedRequests returns how many requests the curves have counted since restart.
func (f *feed) countedRequests() float64 {
	sum := 0.0
	for _, c := range f.curves {
		if c != nil {
			sum += c.tally.requests
		}
	}
	return sum
}
