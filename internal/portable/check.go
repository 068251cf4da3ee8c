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

// Verdict is the result of a check.
type Verdict string

// Verdicts.
const (
	Fits    Verdict = "fits"
	Fails   Verdict = "fails"
	Unknown Verdict = "unknown" // the profile or the recording lacks a figure
)

// Check compares a recording with one limit.
type Check struct {
	What    string  `json:"what"`
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"` // why, with figures
	Failure *Place  `json:"failure,omitempty"`
	Remedy  string  `json:"remedy,omitempty"` // what would help
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

// CompareWithProfile compares a recording with a profile. It reads the source several times. Memory grows with live buffers and call
// sites, not with records. Errors are those of the source.
func CompareWithProfile(src recording.Source, start uint64, p *Profile) (*Result, error) {
	f := &fold{profile: p, names: callsite.NewNames(), start: start}
	f.heap = heap.New(heap.Options{EndProcesses: true}, f)
	for r, err := range recording.Records(src) {
		if err != nil {
			return nil, err
		}
		f.takeRecord(r)
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
	return f.makeResult(totals), nil
}

// pools are the policies whose memory is compared with that of a program without a pool.
var pools = []string{"none", "futhark", "arena"}

// occurrence is where the first or the largest of something occurred.
type occurrence struct {
	found   bool
	process uint32
	tag     uint32
	time    uint64
	bytes   uint64
}

// fold collects the figures of a recording.
type fold struct {
	heap.Base
	profile *Profile
	names   *callsite.Names
	heap    *heap.Heap
	start   uint64

	largest, tooLarge occurrence // creates with memory of their own
	image             occurrence // the largest
	firstImage        occurrence
	constant          occurrence // the largest buffer that a kernel reads and does not write
	subBuffers        uint64     // with a known origin
	unknownOrigins    uint64     // sub-buffers without a known origin
	misplaced         occurrence // the first; bytes is its origin
	commonAlign       uint64     // the greatest power of two that divides all origins; 0: all are 0
	inUse, peak       uint64     // requested bytes
	exceeded          occurrence // the first create that does not fit; bytes is what would be in use
	objects           map[object]uint64
}

type object struct {
	process uint32
	id      uint64
}

func (f *fold) takeRecord(r *wire.Record) {
	f.names.AddRecord(r)
	switch r.Kind {
	case wire.KindCreate:
		f.noteSubBufferOrigin(r)
	case wire.KindUse:
		f.noteConstantCandidates(r)
	}
	f.heap.Apply(r)
}

// noteSubBufferOrigin notes the origin of a sub-buffer.
func (f *fold) noteSubBufferOrigin(r *wire.Record) {
	c := r.AsCreate()
	if c.Memory() != wire.MemorySubBuffer {
		return
	}
	number := c.OriginNumber()
	if number == 0 || c.CarriedOver() {
		f.unknownOrigins++
		return
	}
	f.subBuffers++
	origin := number - 1
	if low := origin & -origin; low > 0 && (f.commonAlign == 0 || low < f.commonAlign) {
		f.commonAlign = low
	}
	if align := f.profile.Align / 8; align > 0 && origin%align != 0 && !f.misplaced.found {
		f.misplaced = occurrence{true, r.Process, c.Tag(), r.Time, origin}
	}
}

// noteConstantCandidates notes buffers that a kernel reads and does not write: they may be __constant arguments.
func (f *fold) noteConstantCandidates(r *wire.Record) {
	u := r.AsUse()
	if u.Command() != wire.CommandKernel || !u.Reads() || u.Writes() {
		return
	}
	size := f.objects[object{r.Process, u.Object()}]
	if size > f.constant.bytes {
		f.constant = occurrence{true, r.Process, u.Tag(), r.Time, size}
	}
}

// ObjectAllocated implements heap.Observer.
func (f *fold) ObjectAllocated(p *heap.Process, o *heap.Object, _ *heap.Block) {
	if f.objects == nil {
		f.objects = map[object]uint64{}
	}
	f.objects[object{p.Number, o.ID}] = o.Size
	created := occurrence{true, p.Number, o.Tag, o.Started, o.Size}
	if o.Memory == wire.MemoryImage {
		if !f.firstImage.found {
			f.firstImage = created
		}
		if o.Size > f.image.bytes || !f.image.found {
			f.image = created
		}
	}
	if !o.Owns {
		return
	}
	if o.Size > f.largest.bytes {
		f.largest = created
	}
	if f.profile.Largest > 0 && o.Size > f.profile.Largest && !f.tooLarge.found {
		f.tooLarge = created
	}
	f.inUse += o.Size
	f.peak = max(f.peak, f.inUse)
	if f.profile.Memory > 0 && f.inUse > f.profile.Memory && !f.exceeded.found {
		f.exceeded = created
		f.exceeded.bytes = f.inUse
	}
}

// MemoryFreed implements heap.Observer.
func (f *fold) MemoryFreed(p *heap.Process, o *heap.Object, _ heap.How) {
	delete(f.objects, object{p.Number, o.ID})
	if o.Owns {
		f.inUse -= min(o.Size, f.inUse)
	}
}

func (f *fold) siteAndTimeOf(s occurrence) *Place {
	return &Place{Site: f.names.Process(s.process).Site(s.tag).Name, Time: s.time - min(f.start, s.time)}
}

// makeResult makes the checks.
func (f *fold) makeResult(totals map[string]uint64) *Result {
	r := &Result{Device: f.profile, Verdict: Fits, Checks: []Check{
		f.checkLargestBuffer(), f.checkSubBufferOrigins(), f.checkAllMemory(totals), f.checkImageLimits(), f.checkConstantArguments(),
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

func (f *fold) checkLargestBuffer() Check {
	c := Check{What: "largest buffer", Verdict: Fits, Text: "it makes none"}
	most := units.FormatLong(f.profile.Largest)
	switch {
	case !f.largest.found:
	case f.profile.Largest == 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("its largest is %s; the profile has no largest_buffer", units.FormatLong(f.largest.bytes))
	case f.tooLarge.found:
		c.Verdict, c.Failure = Fails, f.siteAndTimeOf(f.tooLarge)
		c.Text = fmt.Sprintf("%s, and at most %s is allowed there", units.FormatLong(f.tooLarge.bytes), most)
		c.Remedy = fmt.Sprintf("split it into %d parts", (f.largest.bytes-1)/f.profile.Largest+1)
	default:
		c.Text = fmt.Sprintf("%s of at most %s", units.FormatLong(f.largest.bytes), most)
	}
	return c
}

func (f *fold) checkSubBufferOrigins() Check {
	c := Check{What: "origins of sub-buffers", Verdict: Fits, Text: "it makes no sub-buffers"}
	align := f.profile.Align / 8
	switch {
	case f.subBuffers+f.unknownOrigins == 0:
	case f.misplaced.found:
		c.Verdict, c.Failure = Fails, f.siteAndTimeOf(f.misplaced)
		c.Text = fmt.Sprintf("origin %d is no multiple of %s: CL_MISALIGNED_SUB_BUFFER_OFFSET", f.misplaced.bytes, units.FormatLong(align))
		c.Remedy = fmt.Sprintf("round origins up to multiples of CL_DEVICE_MEM_BASE_ADDR_ALIGN / 8: here to %d",
			(f.misplaced.bytes+align-1)/align*align)
	case f.commonAlign == 0 && f.unknownOrigins == 0:
		c.Text = "all begin at 0"
	case align == 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("all begin at multiples of %s; the profile has no base_alignment_bits", units.FormatLong(f.commonAlign))
	case f.unknownOrigins > 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("the origins of %s were not recorded", units.Count(f.unknownOrigins, "sub-buffer"))
	default:
		c.Text = fmt.Sprintf("all begin at multiples of %s; %s is needed there", units.FormatLong(f.commonAlign), units.FormatLong(align))
	}
	return c
}

// checkAllMemory compares all memory with the device's. What no pool serves counts as without a pool.
func (f *fold) checkAllMemory(totals map[string]uint64) Check {
	c := Check{What: "memory", Verdict: Fits}
	rest := f.peak - min(totals["none"], f.peak)
	pool, arena := totals["futhark"]+rest, totals["arena"]+rest
	c.Text = fmt.Sprintf("%s without a pool, about %s with one (futhark), %s in an arena",
		units.FormatLong(f.peak), units.FormatLong(pool), units.FormatLong(arena))
	memory := f.profile.Memory
	if memory == 0 {
		c.Verdict = Unknown
		c.Text += "; the profile has no global_memory"
		return c
	}
	c.Text += fmt.Sprintf("; there are %s", units.FormatLong(memory))
	if f.exceeded.found {
		c.Verdict, c.Failure = Fails, f.siteAndTimeOf(f.exceeded)
		c.Remedy = fmt.Sprintf("free %s before it; gpumemtop advise names buffers that could share memory", units.FormatLong(f.peak-memory))
		if arena <= memory {
			c.Remedy = "an arena would fit: --policy arena"
		}
	} else if pool > memory {
		c.Remedy = fmt.Sprintf("a pool must hand memory back: --set max_cached_bytes=%d", memory-f.peak)
	}
	return c
}

// checkImageLimits compares images with the device's limits. A recording has an image's bytes, but not its width.
func (f *fold) checkImageLimits() Check {
	c := Check{What: "images", Verdict: Fits, Text: "it makes none"}
	p := f.profile
	side := min(p.Width, p.Height)
	switch {
	case !f.image.found:
	case p.Images != nil && !*p.Images:
		c.Verdict, c.Failure = Fails, f.siteAndTimeOf(f.firstImage)
		c.Text, c.Remedy = "the device has no images", "use buffers"
	case side == 0:
		c.Verdict, c.Text = Unknown, fmt.Sprintf("the largest has %s; the profile has no image_width and image_height", units.FormatLong(f.image.bytes))
	case f.image.bytes <= side: // a pixel has a byte at least
		c.Text = fmt.Sprintf("the largest has %s, and %d × %d pixels are allowed there", units.FormatLong(f.image.bytes), p.Width, p.Height)
	default:
		c.Verdict = Unknown
		c.Text = fmt.Sprintf("the largest has %s, of unknown width and height; %d × %d pixels are allowed there",
			units.FormatLong(f.image.bytes), p.Width, p.Height)
	}
	return c
}

// checkConstantArguments compares arguments with the device's constant memory. A recording shows which arguments a kernel only
// reads, but not which of them are __constant.
func (f *fold) checkConstantArguments() Check {
	c := Check{What: "constant memory", Verdict: Fits, Text: "no kernel is known to read a buffer without writing it"}
	read := fmt.Sprintf("the largest that a kernel only reads has %s", units.FormatLong(f.constant.bytes))
	switch most := f.profile.Constant; {
	case !f.constant.found:
	case most == 0:
		c.Verdict, c.Text = Unknown, read+"; the profile has no constant_buffer"
	case f.constant.bytes <= most:
		c.Text = read + fmt.Sprintf(" of at most %s", units.FormatLong(most))
	default:
		c.Verdict = Unknown
		c.Text = read + fmt.Sprintf(": as a __constant argument it may have %s there, as __global more", units.FormatLong(most))
	}
	return c
}
