package curve

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// feed tells curves what programs demand, as a policy would meet it: what it rounds sizes up to, which blocks it takes,
// and whose.
type feed struct {
	options Options
	policy  *allocator.Pool // which has nothing
	fit     fit
	made    [256]made
	buffers []buffer
	curves  []*Curve // by process; nil: of one that is left out
	left    bool     // some are
}

// fit is which blocks serve a request, besides those of its size.
type fit struct {
	ratio float64 // less than this many times the request; 0: no others
	small uint64  // or less than this many bytes
	own   bool    // only those of the same call site
}

// made is what is remembered of a request: which size a block has that is made for it.
type made struct {
	class       uint32
	wanted, got uint64
}

// buffer is what the program has, or a place for that.
type buffer struct {
	curve *Curve // nil: nothing is there
	class uint32
	size  uint64 // of the block
}

// newFeed returns one for a policy. An error says what is wrong with it or a setting. Memory is that of all curves.
func newFeed(policy string, settings []allocator.Setting, o Options) (*feed, error) {
	p, err := allocator.New(policy, settings)
	if err != nil {
		return nil, err
	}
	f := &feed{options: o, policy: p}
	for _, l := range p.Limits() {
		switch l.Name {
		case "max_waste_ratio":
			f.fit.ratio = l.Value
		case "min_block":
			f.fit.small = uint64(l.Value)
		case "steal_other_tag":
			f.fit.own = l.Value == 0
		}
	}
	return f, nil
}

// take tells the curves of a demand.
func (f *feed) take(d *replay.Demand) {
	switch d.Kind {
	case replay.Requested:
		f.request(d)
	case replay.Dropped:
		if c := f.curve(d.Process); c != nil {
			c.Drop(d.Class)
		}
	default:
		if int(d.Buffer) >= len(f.buffers) {
			return
		}
		if b := &f.buffers[d.Buffer]; b.curve != nil {
			if d.Kind == replay.Freed {
				b.curve.Free(b.class, b.size, d.Time)
			}
			*b = buffer{}
		}
	}
}

func (f *feed) request(d *replay.Demand) {
	if int(d.Buffer) >= len(f.buffers) {
		f.buffers = append(f.buffers, make([]buffer, int(d.Buffer)+1-len(f.buffers))...)
	}
	c := f.curve(d.Process)
	if c == nil {
		f.buffers[d.Buffer] = buffer{}
		return
	}
	class := d.Class
	if f.fit.own {
		class = uint32(mixed(uint64(class)<<32 | uint64(d.Request.Tag)))
	}
	size := f.size(d)
	got := size
	if served := c.Request(class, size, f.fit.most(size)); served > 0 {
		got = served
	}
	f.buffers[d.Buffer] = buffer{c, class, got}
}

// most returns below which size other blocks serve.
func (f *fit) most(size uint64) uint64 {
	if f.ratio == 0 {
		return 0
	}
	return max(uint64(min(f.ratio*float64(size), 1<<limitBits)), f.small)
}

// size returns the bytes of a block that is made for a request.
func (f *feed) size(d *replay.Demand) uint64 {
	wanted := d.Request.Size
	m := &f.made[(wanted^wanted>>8^wanted>>16^uint64(d.Class))%uint64(len(f.made))]
	if m.got == 0 || m.wanted != wanted || m.class != d.Class {
		request := d.Request
		request.Align = 0 // a block of its own, no part of one
		plan, _ := f.policy.Decide(request, nil)
		f.policy.Abort(plan)
		*m = made{d.Class, wanted, max(plan.Size, 1)}
	}
	return m.got
}

// curve returns that of a process. The first has one half of the memory; of the other half each of the next has as much
// as a curve takes at least, as long as there is some.
func (f *feed) curve(process uint32) *Curve {
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
		f.left = true
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
	return together(slices.DeleteFunc(slices.Clone(f.curves), func(c *Curve) bool { return c == nil })...)
}

// restart counts from here on.
func (f *feed) restart() {
	for _, c := range f.curves {
		if c != nil {
			c.Restart()
		}
	}
}

// requests returns how many there were since then, as far as curves are of them.
func (f *feed) requests() float64 {
	sum := 0.0
	for _, c := range f.curves {
		if c != nil {
			sum += c.tally.requests
		}
	}
	return sum
}
