package portable

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Verdict of a check.
type Verdict string

// Verdicts.
const (
	Fits    Verdict = "fits"
	Fails   Verdict = "fails"
	Unknown Verdict = "unknown" // the profile or the recording does not say
)

// Check holds one limit against a recording.
type Check struct {
	What    string  `json:"what"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"` // why, with figures
	Failure *Place  `json:"failure,omitempty"`
	Remedy  string  `json:"remedy,omitempty"` // what would save it
}

// Place is where a limit is first exceeded.
type Place struct {
	Site string `json:"site"`
	Time uint64 `json:"time_ns"` // after the start
}

// Result says whether a recording would run on a device.
type Result struct {
	Device  *Profile `json:"device"`
	Verdict Verdict  `json:"verdict"`
	First   string   `json:"first,omitempty"` // what fails first
	Checks  []Check  `json:"checks"`
}

// Run holds a recording against a profile. It reads the source several times; memory grows with live buffers and call
// sites, not with records. Errors are those of the source.
func Run(src recording.Source, start uint64, p *Profile) (*Result, error) {
	x := &fold{profile: p, names: callsite.NewNames(), start: start}
	x.heap = heap.New(heap.Options{EndProcesses: true}, x)
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		x.step(r)
	}
	totals := map[string]uint64{}
	for _, policy := range pools {
		if err := src.Rewind(); err != nil {
			return nil, err
		}
		result, err := replay.Replay(src, replay.Options{Policy: policy, HoldSettings: true})
		if err != nil {
			return nil, err
		}
		totals[policy] = result.PeakReserved
	}
	return x.result(totals), nil
}

// pools are the policies whose memory is compared with that without a pool.
var pools = []string{"none", "futhark", "arena"}

// spot is the first or the largest of something.
type spot struct {
	found   bool
	process uint32
	tag     uint32
	time    uint64
	bytes   uint64
}

// fold follows a run.
type fold struct {
	heap.Base
	profile *Profile
	names   *callsite.Names
	heap    *heap.Heap
	start   uint64

	largest, tooLarge spot // creates with memory of their own
	image             spot // the largest
	firstImage        spot
	constant          spot   // the largest buffer that a kernel reads and does not write
	parts             uint64 // sub-buffers whose origin is known
	blind             uint64 // those whose origin is not
	misplaced         spot   // the first; bytes is its origin
	common            uint64 // 1 bit: the greatest power of two that divides all origins; 0: all are 0
	inUse, peak       uint64 // bytes asked for
	full              spot   // the first create that finds no room; bytes is what is in use with it
	objects           map[object]uint64
}

type object struct {
	process uint32
	id      uint64
}

func (x *fold) step(r *wire.Record) {
	x.names.Add(r)
	switch r.Kind {
	case wire.KindCreate:
		x.create(r)
	case wire.KindUse:
		x.use(r)
	}
	x.heap.Apply(r)
}

// create looks at a sub-buffer, and at what the driver refused.
func (x *fold) create(r *wire.Record) {
	c := r.AsCreate()
	if c.Memory() != wire.MemorySubBuffer {
		return
	}
	number := c.OriginNumber()
	if number == 0 || c.CarriedOver() {
		x.blind++
		return
	}
	x.parts++
	origin := number - 1
	if low := origin & -origin; low > 0 && (x.common == 0 || low < x.common) {
		x.common = low
	}
	if align := x.profile.Align / 8; align > 0 && origin%align != 0 && !x.misplaced.found {
		x.misplaced = spot{true, r.Process, c.Tag(), r.Time, origin}
	}
}

// use looks at what a kernel reads and does not write: it may be a __constant argument.
func (x *fold) use(r *wire.Record) {
	u := r.AsUse()
	if u.Command() != wire.CommandKernel || !u.Reads() || u.Writes() {
		return
	}
	size := x.objects[object{r.Process, u.Object()}]
	if size > x.constant.bytes {
		x.constant = spot{true, r.Process, u.Tag(), r.Time, size}
	}
}

// Allocated implements heap.Observer.
func (x *fold) Allocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	if x.objects == nil {
		x.objects = map[object]uint64{}
	}
	x.objects[object{p.Number, o.ID}] = o.Size
	here := spot{true, p.Number, o.Tag, o.Started, o.Size}
	if o.Memory == wire.MemoryImage {
		if !x.firstImage.found {
			x.firstImage = here
		}
		if o.Size > x.image.bytes || !x.image.found {
			x.image = here
		}
	}
	if !o.Owns {
		return
	}
	if o.Size > x.largest.bytes {
		x.largest = here
	}
	if x.profile.Largest > 0 && o.Size > x.profile.Largest && !x.tooLarge.found {
		x.tooLarge = here
	}
	x.inUse += o.Size
	x.peak = max(x.peak, x.inUse)
	if x.profile.Memory > 0 && x.inUse > x.profile.Memory && !x.full.found {
		x.full = here
		x.full.bytes = x.inUse
	}
}

// Freed implements heap.Observer.
func (x *fold) Freed(p *heap.Process, o *heap.Object, _ heap.How) {
	delete(x.objects, object{p.Number, o.ID})
	if o.Owns {
		x.inUse -= min(o.Size, x.inUse)
	}
}

func (x *fold) place(s spot) *Place {
	return &Place{Site: x.names.Process(s.process).Site(s.tag).Name, Time: s.time - min(x.start, s.time)}
}

// result makes the checks.
func (x *fold) result(totals map[string]uint64) *Result {
	r := &Result{Device: x.profile, Verdict: Fits, Checks: []Check{
		x.buffers(), x.origins(), x.total(totals), x.images(), x.constants(),
	}}
	first := ^uint64(0)
	for i := range r.Checks {
		c := &r.Checks[i]
		switch {
		case c.Verdict == Fails:
			if r.Verdict = Fails; c.Failure.Time < first {
				first, r.First = c.Failure.Time, c.What
			}
		case c.Verdict == Unknown && r.Verdict == Fits:
			r.Verdict = Unknown
		}
	}
	return r
}

func (x *fold) buffers() Check {
	c := Check{What: "largest buffer", Verdict: Fits, Text: "it makes none"}
	most := units.FormatLong(x.profile.Largest)
	switch {
	case !x.largest.found:
	case x.profile.Largest == 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("its largest is %s; the profile has no largest_buffer", units.FormatLong(x.largest.bytes))
	case x.tooLarge.found:
		c.Verdict, c.Failure = Fails, x.place(x.tooLarge)
		c.Text = fmt.Sprintf("%s, and at most %s is allowed there", units.FormatLong(x.tooLarge.bytes), most)
		c.Remedy = fmt.Sprintf("split it into %d parts", (x.largest.bytes-1)/x.profile.Largest+1)
	default:
		c.Text = fmt.Sprintf("%s of at most %s", units.FormatLong(x.largest.bytes), most)
	}
	return c
}

func (x *fold) origins() Check {
	c := Check{What: "origins of sub-buffers", Verdict: Fits, Text: "it makes no sub-buffers"}
	align := x.profile.Align / 8
	switch {
	case x.parts+x.blind == 0:
	case x.misplaced.found:
		c.Verdict, c.Failure = Fails, x.place(x.misplaced)
		c.Text = fmt.Sprintf("origin %d is no multiple of %s: CL_MISALIGNED_SUB_BUFFER_OFFSET", x.misplaced.bytes, units.FormatLong(align))
		c.Remedy = fmt.Sprintf("round origins up to multiples of CL_DEVICE_MEM_BASE_ADDR_ALIGN / 8: here to %d",
			(x.misplaced.bytes+align-1)/align*align)
	case x.common == 0 && x.blind == 0:
		c.Text = "all begin at 0"
	case align == 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("all begin at multiples of %s; the profile has no base_alignment_bits", units.FormatLong(x.common))
	case x.blind > 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("the origins of %s were not recorded", units.Count(x.blind, "sub-buffer"))
	default:
		c.Text = fmt.Sprintf("all begin at multiples of %s; %s is needed there", units.FormatLong(x.common), units.FormatLong(align))
	}
	return c
}

// total holds all memory against the device's. What no pool serves counts as without one.
func (x *fold) total(totals map[string]uint64) Check {
	c := Check{What: "memory", Verdict: Fits}
	rest := x.peak - min(totals["none"], x.peak)
	pool, arena := totals["futhark"]+rest, totals["arena"]+rest
	c.Text = fmt.Sprintf("%s without a pool, about %s with one (futhark), %s in an arena",
		units.FormatLong(x.peak), units.FormatLong(pool), units.FormatLong(arena))
	memory := x.profile.Memory
	if memory == 0 {
		c.Verdict = Unknown
		c.Text += "; the profile has no global_memory"
		return c
	}
	c.Text += fmt.Sprintf("; there are %s", units.FormatLong(memory))
	if x.full.found {
		c.Verdict, c.Failure = Fails, x.place(x.full)
		c.Remedy = fmt.Sprintf("free %s before it; gpumemtop advise names buffers that could share memory", units.FormatLong(x.peak-memory))
		if arena <= memory {
			c.Remedy = "an arena would fit: --policy arena"
		}
	} else if pool > memory {
		c.Remedy = fmt.Sprintf("a pool must hand memory back: --set max_cached_bytes=%d", memory-x.peak)
	}
	return c
}

// images: a recording has an image's bytes, and not how wide it is.
func (x *fold) images() Check {
	c := Check{What: "images", Verdict: Fits, Text: "it makes none"}
	p := x.profile
	side := min(p.Width, p.Height)
	switch {
	case !x.image.found:
	case p.Images != nil && !*p.Images:
		c.Verdict, c.Failure = Fails, x.place(x.firstImage)
		c.Text, c.Remedy = "the device has no images", "use buffers"
	case side == 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("the largest has %s; the profile has no image_width and image_height", units.FormatLong(x.image.bytes))
	case x.image.bytes <= side: // a pixel has a byte at least
		c.Text = fmt.Sprintf("the largest has %s, and %d × %d pixels are allowed there", units.FormatLong(x.image.bytes), p.Width, p.Height)
	default:
		c.Verdict = Unknown
		c.Text = fmt.Sprintf("the largest has %s, of unknown width and height; %d × %d pixels are allowed there",
			units.FormatLong(x.image.bytes), p.Width, p.Height)
	}
	return c
}

// constants: a recording shows which arguments a kernel only reads, and not which of them are __constant.
func (x *fold) constants() Check {
	c := Check{What: "constant memory", Verdict: Fits, Text: "no kernel is known to read a buffer without writing it"}
	read := fmt.Sprintf("the largest that a kernel only reads has %s", units.FormatLong(x.constant.bytes))
	switch most := x.profile.Constant; {
	case !x.constant.found:
	case most == 0:
		c.Verdict, c.Text = Unknown, read+"; the profile has no constant_buffer"
	case x.constant.bytes <= most:
		c.Text = read + fmt.Sprintf(" of at most %s", units.FormatLong(most))
	default:
		c.Verdict = Unknown
		c.Text = read + fmt.Sprintf(": as a __constant argument it may have %s there, as __global more", units.FormatLong(most))
	}
	return c
}
