package analysis

import (
	"fmt"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// findMemoryGrowth finds iterations, or seconds, that leave more in use than before.
func findMemoryGrowth(e *Evidence) (Diagnosis, bool) {
	r := e.Rise
	if r == nil {
		return Diagnosis{}, false
	}
	bytes := units.FormatLong(uint64(r.Bytes))
	d := Diagnosis{
		Severity: Problem, Title: "memory grows " + bytes + "/s", Text: r.perSecondText(), Tag: r.Site, Share: r.Share,
	}
	if r.Fills { // as a program does that loads what it works on
		d.Severity = Advice
		d.Text += "; nothing was released yet"
	}
	doubted := "memory may grow"
	if r.Iterations > 0 {
		how := "with every iteration"
		if !r.Even {
			how = "over the iterations"
		}
		d.Title, d.Text, doubted = "memory grows "+how, r.perIterationText(e.memoryNoun(), bytes, e.inProcessText(r.Process)),
			"memory may grow "+how
		d.placed = e.inProcessText(r.Process) != ""
	}
	certain := d.Title
	e.downgradeIfEventsLost(&d, "releases", doubted)
	if r.Iterations == 0 && d.Title == certain {
		d.Brief = "+" + bytes + "/s at " + r.Site
		if full := r.fullInText(); full != "" {
			d.Brief += ", " + full
		}
	}
	return d, true
}

func (r *Rise) perSecondText() string {
	text := ""
	if full := r.fullInText(); full != "" {
		text = "at this rate the device is " + full + "; "
	}
	if r.Part >= wholeShare {
		return text + "all of it at " + r.Site
	}
	return text + fmt.Sprintf("%s of it at %s", units.Percent(r.Part, 1), r.Site)
}

// fullInText says in how long the device is full, if that is soon.
func (r *Rise) fullInText() string {
	if r.Room < 0 || r.Room >= soonSeconds {
		return ""
	}
	return "full in " + units.DurationLong(1e9*r.Room)
}

// iterationsLeaveText says what iterations left, in all and each.
func iterationsLeaveText(iterations, left uint64, kept int64, noun, each string, even bool) string {
	if even {
		return fmt.Sprintf("each of %s leaves %s more in use", units.Count(iterations, "iteration"), each)
	}
	text := fmt.Sprintf("%s leave %s more in use", units.Count(iterations, "iteration"), units.FormatLong(left))
	if kept > 0 {
		text += " in " + units.Count(uint64(kept), "more "+noun)
	}
	return text + ", about " + each + " an iteration"
}

// foreseen is how many times as many iterations as were seen a sentence foretells.
const foreseen = 1000

func (r *Rise) perIterationText(noun, bytes, in string) string {
	text := iterationsLeaveText(r.Iterations, r.Left, r.Kept, noun, bytes, r.Even) + in
	if r.Room >= 1 && r.Room <= foreseen*float64(r.Iterations) {
		text += fmt.Sprintf("; after %s the device is full", units.Count(uint64(r.Room), "more iteration"))
	}
	if r.Site != "" {
		text += "; most of what is left comes from " + r.Site
	}
	return text
}

// findMemoryKeptByIterations finds iterations that keep memory that nothing uses later, in a program that releases it at its end.
func findMemoryKeptByIterations(e *Evidence) (Diagnosis, bool) {
	p := e.Whole.Keeps
	if p == nil || e.Rise != nil {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "every iteration keeps memory",
		Text:  iterationsLeaveText(p.Iterations, p.Left, p.Kept, e.memoryNoun(), units.FormatLong(p.leftPerIteration()), p.GrowsEvenly()) + e.inProcessText(p.Process) + heldUntilText(e, p),
		Share: shareOfWhole(p.totalGrowth(), e.Run.Totals.PeakInUse), placed: e.inProcessText(p.Process) != "",
	}
	doubted := "every iteration may keep memory"
	if !p.GrowsEvenly() {
		d.Title, doubted = "iterations keep memory", "iterations may keep memory"
	}
	if tags := e.Whole.Peak.Tags; len(tags) > 0 {
		d.Tag = tags[0].Name
		d.Text += fmt.Sprintf("; most at the peak comes from %s", d.Tag)
	}
	e.downgradeIfEventsLost(&d, "releases", doubted)
	return d, true
}

func findLeaks(e *Evidence) (Diagnosis, bool) {
	var buffers, bytes, retained uint64
	for i := range e.Leaks {
		retained += e.Leaks[i].Retained
		buffers += e.Leaks[i].Buffers
		bytes += e.Leaks[i].Bytes
	}
	if bytes == 0 { // those whose sizes are not known may be none
		return Diagnosis{}, false
	}
	top := &e.Leaks[0]
	severity, how, noun := Problem, "never released", stats.NounForMemory(e.Run.Kinds, true)
	if e.State == BrokenOff {
		severity, how = Note, "in use where the recording ends"
	}
	if e.Run.WasAllHeldByKilled() {
		severity, how = Note, "held when "+e.Run.AbortedText()
	}
	d := Diagnosis{
		Severity: severity, Tag: top.Name, Title: fmt.Sprintf("%s %s", units.Count(buffers, noun), how),
		Text: units.FormatLong(bytes) + " in all", Share: shareOfWhole(bytes, e.Run.Totals.PeakInUse),
	}
	if top.Name != "" && top.Bytes > 0 {
		d.Text += fmt.Sprintf("; %s of it from %s", units.FormatLong(top.Bytes), top.Name)
	}
	if e.Whole != nil {
		d.Text += fmt.Sprintf(", the oldest created %s after the start", units.Duration(top.Oldest))
	}
	if in := LeftByProcessText(e.Run, e.Leaks); in != "" {
		d.Text, d.placed = d.Text+"; "+in, true
	}
	if retained > 0 && severity == Problem {
		which := fmt.Sprintf("%d of them were", retained)
		if retained == 1 {
			which = "one was"
		}
		d.Text += "; " + which + " retained, and released too few times for that"
	}
	e.downgradeIfEventsLost(&d, "releases", fmt.Sprintf("%s perhaps %s", units.Count(buffers, noun), how))
	return d, true
}

// heldUntilText says how long what a phase keeps stays in use.
func heldUntilText(e *Evidence, p *Phase) string {
	if q := processOf(e.Run, p.Process); q != nil && q.Totals.InUse >= p.totalGrowth()/2 {
		return ", which is in use at the end"
	}
	return ", which is released once nothing is used"
}

// findFullDevice judges each process by its own device memory.
func findFullDevice(e *Evidence) (Diagnosis, bool) {
	if p := e.Run.Spill; p != nil { // the device is meant to be full
		return e.diagnoseSpill(p)
	}
	p, reserved, inUse := e.fullestProcess()
	if p == nil || float64(reserved) < deviceShare*float64(p.DeviceMemory) {
		return Diagnosis{}, false
	}
	text, several := "at most %s of %s were reserved, and %s in use", "at most %s were reserved on %d devices together, and %s in use; one of them has %s"
	if e.State == GoesOn {
		text, several = "%s of %s are reserved, and %s in use", "%s are reserved on %d devices together, and %s in use; one of them has %s"
	}
	held, device := units.FormatApart(reserved, p.DeviceMemory)
	_, used := units.FormatApart(reserved, inUse)
	d := Diagnosis{
		Severity: Advice, Title: "device memory is nearly full", Share: shareOfWhole(reserved, p.DeviceMemory), Text: fmt.Sprintf(text, held, device, used),
	}
	if p.Devices > 1 {
		d.Severity, d.Title = Note, "device memory may be nearly full"
		d.Text = fmt.Sprintf(several, held, p.Devices, used, device)
	}
	if name := p.TitleAmongSeveral(); name != "" && len(e.Run.Processes) > 1 {
		d.Text += ", by " + name
	}
	room := differenceOrZero(inUse, uint64(deviceShare*float64(p.DeviceMemory)))
	if l := limitNamed(e.Run, stats.MaxCachedBytes); l != nil && room > 0 && float64(room) < l.Value {
		d.Knob = Knob{Limit: l.Name, Value: strconv.FormatUint(room, 10), Why: "this is what remains beside the memory in use"}
	}
	return d, true
}

// diagnoseSpill judges what --spill moved.
func (e *Evidence) diagnoseSpill(p *stats.Spill) (Diagnosis, bool) {
	waited := shareOfWhole(p.Stalls.NS, e.Length)
	if !p.Thrashing && waited < stallShare {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "calls wait for spilled buffers", Share: waited,
		Text: fmt.Sprintf("%s%s, while buffers moved", e.callTimeText(p.Stalls.NS, false), e.partOfRunText(p.Stalls.NS)),
	}
	if p.WorkingSet > p.PeakResident {
		needed, held := units.FormatApart(p.WorkingSet, p.PeakResident)
		d.Title = "--spill moves the same buffers again and again"
		d.Text = fmt.Sprintf("to keep nine in ten of those that came back takes %s, and the device held %s: calls waited %s for buffers to move",
			needed, held, e.callTimeText(p.Stalls.NS, false))
		d.Brief = "--spill needs " + needed + ", and has " + held
	}
	if len(p.Sites) > 0 {
		d.Tag = p.Sites[0].Tag
		d.Text += ", most of them from " + d.Tag
	}
	return d, true
}

func findHighWaste(e *Evidence) (Diagnosis, bool) {
	m := e.Memory
	wasted := differenceOrZero(m.Requested, m.InUse)
	rate := wasteOf(int64(m.InUse), int64(m.Requested))
	if rate < wasteHigh || wasted < bytesLeast || !e.isSizeWorthwhile(float64(wasted)) {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "blocks are much larger than requested", Share: rate,
		Text: fmt.Sprintf("%s of the %s in use %s are waste, %s", units.FormatLong(wasted), units.FormatLong(m.InUse), m.When,
			units.Percent(rate, 1)),
	}
	if l := limitNamed(e.Run, "mantissa_bits"); l != nil && l.Value < l.Max {
		d.Knob = Knob{Limit: l.Name, Value: strconv.Itoa(int(l.Value) + 1), Why: "more bits waste less"}
	} else if l := limitNamed(e.Run, "max_waste_ratio"); l != nil && l.Value > wasteRatio && e.Run.Policy == "futhark-2018" {
		// With futhark the limit concerns only blocks of other call sites.
		d.Knob = Knob{Limit: l.Name, Value: strconv.FormatFloat(wasteRatio, 'f', -1, 64), Why: "larger blocks then serve no such request"}
	}
	return d, true
}

// findFragmentation judges free memory. In a run that goes on it counts only once pieces were too small: while a pool fills, some
// always are.
func findFragmentation(e *Evidence) (Diagnosis, bool) {
	if e.Run.WholeBlocks != "" {
		return Diagnosis{}, false // slabs cannot help
	}
	if l := e.Late; l != nil && (l.Filling || l.Reasons[wire.MissTooSmall] == 0) {
		return Diagnosis{}, false
	}
	m := e.Memory
	free := differenceOrZero(m.InUse, m.Reserved)
	if m.Fragmentation < fragmentationHigh || free < bytesLeast || !e.isSizeWorthwhile(float64(free)) || float64(free) < idleShare*float64(m.Reserved) {
		return Diagnosis{}, false
	}
	text := units.FormatLong(free) + " is free"
	if m.When != now {
		text = m.When + " " + units.FormatLong(free) + " was free"
	}
	d := Diagnosis{
		Severity: Advice, Title: "free memory is fragmented " + m.When, Share: shareOfWhole(free, m.Reserved),
		Text: fmt.Sprintf("%s beside %s in use, no piece larger than %s of it", text, units.FormatLong(m.InUse), units.Percent(1-m.Fragmentation, free)),
	}
	d.nameLeanestGhost(e)
	return d, true
}

// findSlowPoolMemory finds memory that is slow because of the pool.
func findSlowPoolMemory(e *Evidence) (Diagnosis, bool) {
	h := e.Run.Hosted
	d := Diagnosis{
		Severity: Advice, Title: "buffers are in the host's memory", Share: shareOfWhole(h.Bytes, e.Run.Totals.PeakInUse),
		Text: fmt.Sprintf("%s (%s) got it, as the device lacked what the pool wasted; it is slower", units.Count(h.Buffers, "create"), units.FormatLong(h.Bytes)),
	}
	d.offerBestPolicy(lessMemory, "futhark")
	return d, h.Buffers > 0
}
