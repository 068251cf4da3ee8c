package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	postMortemWidth = 150 // of a line
	postMortemSites = 3
)

// PostMortem is a post-mortem as text: a title and at most 16 lines, each with a label.
type PostMortem struct {
	Title string
	Lines [][2]string
}

// NewPostMortem writes a post-mortem; its times are since started.
func NewPostMortem(p *stats.PostMortem, started uint64) PostMortem {
	page := PostMortem{Title: fmt.Sprintf("%s, %s after the start", failedCallText(p), units.Duration(p.Time-min(started, p.Time)))}
	if p.Verdict == stats.VerdictKilled { // the end is not known
		page.Title += " or later"
	}
	add := func(label, format string, args ...any) {
		page.Lines = append(page.Lines, [2]string{label, units.Cut(units.Clean(fmt.Sprintf(format, args...)), postMortemWidth)})
	}
	add("verdict", "%s", failureVerdictText(p))
	add("try", "%s", failureAdviceText(p))
	if text := failedCallSiteText(p); text != "" {
		add("call site", "%s", text)
	}
	if text := failedCommandMemoryText(p); text != "" {
		add("given", "%s", text)
	}
	add("memory", "%s", processMemoryLine(p))
	page.addLargestHolders(p, add)
	if p.UsesKnown && p.Idle.Buffers > 0 {
		add("idle", "%s: not used for %s or longer", bytesInBuffersText(p, p.Idle), units.Duration(p.IdleNS()))
	}
	if text := usedLatelyText(&p.Lately, p.InUse, units.FormatLong); text != "" {
		add("lately", "%s", text)
	}
	if p.UsesKnown && p.Untouched.Buffers > 0 {
		add("untouched", "%s: no command has used that memory, and a driver may take it only then (with --eager that of buffers and images at once)", bytesInBuffersText(p, p.Untouched))
	}
	if p.GivenBack.Buffers > 0 {
		add("pool", "gave %s in %s back in vain", units.FormatLong(p.GivenBack.Bytes), units.Count(p.GivenBack.Buffers, "block"))
	}
	if p.LargestCreated > 0 {
		add("largest", "%s: the largest create that had worked until then", units.FormatLong(p.LargestCreated))
	}
	if p.Device.Global > 0 {
		add("device", "%s", deviceOfFailureText(p))
	}
	if p.Repeats > 0 {
		add("again", "%s with about the same in use", units.Count(p.Repeats, "more failure"))
	}
	return page
}

// failedCallSiteText names the call site of the failed call, and says how to distinguish its callers; empty: unknown.
func failedCallSiteText(p *stats.PostMortem) string {
	if p.Command {
		return p.At
	}
	return creatingSiteText(p)
}

// creatingSiteText names the call site that created the memory, or tried to.
func creatingSiteText(p *stats.PostMortem) string {
	if p.Wrapper == "" {
		return p.Tag
	}
	return fmt.Sprintf("%s (%s names its callers)", p.Tag, callsite.WrapperOption(p.Wrapper))
}

// failedCommandMemoryText says where the memory of a failed command was created, and whether the command was the first to use it; empty:
// unknown.
func failedCommandMemoryText(p *stats.PostMortem) string {
	if !p.Command || p.Tag == "" {
		return ""
	}
	text := "memory created at " + creatingSiteText(p)
	if p.Given > 0 {
		text = units.FormatLong(p.Given) + " of " + text
	}
	if p.First {
		text += ", first touched by this command"
	}
	return text
}

// usedLatelyText says how much of the memory in use was used lately; empty: unknown, or perhaps all.
func usedLatelyText(l *stats.Lately, inUse uint64, bytes func(uint64) string) string {
	switch {
	case l.NS == 0 || l.Bytes == inUse:
		return ""
	}
	text := fmt.Sprintf("at most %s of it was used in the last %s", bytes(l.Bytes), units.Duration(l.NS))
	if l.Bytes == 0 {
		text = "none of it was used in the last " + units.Duration(l.NS)
	}
	if l.Iteration {
		text += ", as long as an iteration takes"
	}
	return text
}

// processMemoryLine says how much memory the process has. With --spill there is no pool.
func processMemoryLine(p *stats.PostMortem) string {
	size := units.FormatLong
	text := fmt.Sprintf("%s in use by %s", size(p.InUse), units.Count(p.Buffers, cmp.Or(p.Noun, "buffer")))
	if p.Spilling {
		return fmt.Sprintf("%s: %s on the device, %s spilled to the host", text, size(p.Resident), size(p.Spilled))
	}
	return fmt.Sprintf("%s, %s cached, %s cooling, %s free in slabs: %s reserved", text, size(p.Cached), size(p.Cooling), size(p.SlabFree),
		size(p.ReservedBytes()))
}

// addLargestHolders adds the call sites that hold the most.
func (page *PostMortem) addLargestHolders(p *stats.PostMortem, add func(label, format string, args ...any)) {
	shown, left := units.KeepFirst(p.Holders, postMortemSites)
	label := "held by"
	for i := range shown {
		h := &shown[i]
		age := units.Duration(h.Oldest)
		if h.Buffers > 1 {
			age = units.Duration(h.Newest) + " to " + age
		}
		if p.Verdict == stats.VerdictKilled {
			age = "at least " + age
		}
		add(label, "%s, %s old: %s", bytesInBuffersText(p, h.Part), age, h.Tag)
		label = ""
	}
	if left += p.MoreHolders; left > 0 {
		add("", "and %s", units.Count(uint64(left), "more call site"))
	}
}

// String is the page for a terminal: at most 16 lines.
func (page PostMortem) String() string {
	lines := []string{units.Cut(units.Clean(page.Title), postMortemWidth)}
	for _, line := range page.Lines {
		lines = append(lines, fmt.Sprintf("  %-10s %s", line[0], line[1]))
	}
	return strings.Join(lines, "\n") + "\n"
}

// failedCallText says which call failed, and with what status.
func failedCallText(p *stats.PostMortem) string {
	text := p.FailedText(units.FormatApart)
	if p.Verdict == stats.VerdictKilled {
		return text
	}
	return text + " failed with " + wire.StatusNameAndNumber(int32(p.Status))
}

// failureVerdictText returns the verdict with its reason.
func failureVerdictText(p *stats.PostMortem) string {
	size := units.FormatLong
	switch p.Verdict {
	case stats.VerdictTooLarge:
		if p.Device.Largest > 0 && p.Size > p.Device.Largest {
			_, largest := units.FormatApart(p.Size, p.Device.Largest)
			return fmt.Sprintf("%s: the %s %s at once", p.Verdict, deviceAllowsText(&p.Device), largest)
		}
		return p.Verdict.String() + ", the driver says"
	case stats.VerdictFull:
		text := fmt.Sprintf("%s: %s", p.Verdict, reservedOfDeviceText(p))
		if p.NeededBytes(p.ReservedBytes()) <= p.Device.Global {
			text += "; drivers and other programs need some, too"
		}
		if p.Grew != "" {
			text += fmt.Sprintf("; %s grew the most of late, by %s", p.Grew, size(p.GrewBytes))
		}
		return text
	case stats.VerdictFragmented:
		return fmt.Sprintf("%s: the pool holds %s that it could not give back (%s cooling, %s in slabs)", p.Verdict, size(p.FreeBytes()),
			size(p.Cooling), size(p.SlabFree))
	case stats.VerdictNotMemory:
		return fmt.Sprintf("%s: only %s", p.Verdict, reservedOfDeviceText(p))
	case stats.VerdictKilled:
		return fmt.Sprintf("%s: %s", p.Verdict, whoKilledText(p.OOMKillsNumber))
	}
	if p.Devices > 1 {
		return fmt.Sprintf("%s: %s are reserved on %d devices together, and one of them has %s", p.Verdict,
			size(p.BytesOnDevice()+p.Others), p.Devices, size(p.Device.Global))
	}
	return p.Verdict.String() + ": how much memory the device has is not known"
}

// deviceAllowsText begins what a context's devices allow.
func deviceAllowsText(d *stats.Device) string {
	if d.Devices > 1 {
		return fmt.Sprintf("%d devices allow at most", d.Devices)
	}
	return "device allows"
}

// reservedOfDeviceText says how much of the device's memory is reserved. That may be more than the device has: some drivers give out
// more, and with --device-memory each process has a device of its own.
func reservedOfDeviceText(p *stats.PostMortem) string {
	all := p.BytesOnDevice() + p.Others
	held, device := units.FormatApart(all, p.Device.Global)
	text := fmt.Sprintf("%s of %s are reserved", held, device)
	if all > p.Device.Global {
		text = fmt.Sprintf("%s are reserved, the device has %s", held, device)
	}
	if p.Spilled > 0 {
		text += fmt.Sprintf(", %s are spilled to the host", units.FormatLong(p.Spilled))
	}
	return text
}

// whoKilledText says who may have sent SIGKILL.
func whoKilledText(kills uint64) string {
	switch kills {
	case 0:
		return "who sent the signal is not known"
	case 1:
		return "a person or a program sent the signal; the kernel ended nothing in its control group for lack of memory"
	default:
		return fmt.Sprintf("the kernel's OOM killer ended %s in its control group meanwhile", units.Plural(kills-1, "process", "processes"))
	}
}

// fullDeviceAdvice says what to try when the program itself fills the device.
func fullDeviceAdvice(p *stats.PostMortem) string {
	release, more := "", "; gpumemtop advise shows which could share memory"
	if p.Grew != "" {
		release, more = fmt.Sprintf("release what %s keeps, if it is needed no more; else ", units.Clean(p.Grew)), ""
	}
	switch {
	case p.SpillHelps():
		return release + "--spill, which lets idle buffers wait in host memory" + more
	case p.Spilling:
		return release + "a smaller problem; gpumemtop fit says how much is enough" + more
	}
	if p.Movable == 0 {
		return release + "a smaller problem: --spill could move none of it"
	}
	return release + fmt.Sprintf("a smaller problem: --spill could move only %s of it", units.FormatLong(p.Movable))
}

// failureAdviceText says what to try.
func failureAdviceText(p *stats.PostMortem) string {
	switch p.Verdict {
	case stats.VerdictTooLarge:
		return "split the buffer, or make the problem smaller"
	case stats.VerdictFull:
		if p.PoolToBlame {
			return fmt.Sprintf("the policy's rounding takes %s: --policy none wastes nothing", units.FormatLong(p.InUse-min(p.Requested, p.InUse)))
		}
		return fullDeviceAdvice(p)
	case stats.VerdictFragmented:
		if p.Cooling > p.SlabFree {
			return "wait for the queue (clFinish) before large creates, or keep less in the pool with --max-cached"
		}
		return "--policy futhark, which needs no slabs, or a lower --max-cached"
	case stats.VerdictNotMemory:
		if p.Status == wire.OutOfHostMemory {
			return "the limits of the host: ulimit -v, the cgroup's memory, what other programs use"
		}
		if p.Command {
			return "the kernel's work-group size, local memory and registers; its accesses out of bounds; the driver's log"
		}
		return "what other programs have of the device; the driver's log"
	case stats.VerdictKilled:
		switch p.OOMKillsNumber {
		case 0:
			return "the kernel's log (dmesg), which names processes that the OOM killer ended"
		case 1:
			return "what watches over the program: timeout, a batch system, a container's limits"
		}
		return "a smaller problem, or more memory for the control group (memory.max); gpumemtop advise shows buffers that could share memory"
	}
	if p.Devices > 1 {
		return "a smaller problem, or fewer buffers on one device; gpumemtop advise shows which could share memory"
	}
	return "start the program under gpumemtop, which learns the device's size as attach cannot"
}

func deviceOfFailureText(p *stats.PostMortem) string {
	text := units.FormatLong(p.Device.Global)
	if p.Devices > 1 {
		text = fmt.Sprintf("one of %d has %s", p.Devices, text)
	}
	if p.Device.Largest > 0 {
		text += fmt.Sprintf(", at most %s in one buffer", units.FormatLong(p.Device.Largest))
	}
	if p.Others > 0 {
		text += fmt.Sprintf("; other watched processes reserve %s", units.FormatLong(p.Others))
	}
	return text
}

func bytesInBuffersText(p *stats.PostMortem, part stats.Part) string {
	return fmt.Sprintf("%s in %s", units.FormatLong(part.Bytes), units.Count(part.Buffers, cmp.Or(p.Noun, "buffer")))
}

// outOfMemoryLines are the first lines of a summary: which call failed and why.
func outOfMemoryLines(s *stats.Snapshot) []string {
	var lines []string
	for i := range s.PostMortems {
		if i == 1 {
			lines = append(lines, fmt.Sprintf("             and %s: gpumemtop report shows them", units.Count(uint64(len(s.PostMortems)-1), "later failure")))
			break
		}
		p := &s.PostMortems[i]
		label := "  failed     "
		if p.Verdict == stats.VerdictKilled {
			label = "  killed     "
		}
		lines = append(lines, label+units.Cut(units.Clean(failedCallText(p)), mistakeWidth),
			"             "+units.Cut(units.Clean(failureVerdictText(p)), mistakeWidth))
		if text := failedCallSiteText(p); text != "" {
			lines = append(lines, "             "+units.Cut(units.Clean("call site "+text), mistakeWidth))
		}
		if text := failedCommandMemoryText(p); text != "" {
			if p.First {
				text += ": a driver may take memory only then (--eager has that fail at the create)"
			}
			lines = append(lines, "             "+units.Cut(units.Clean("given "+text), mistakeWidth))
		}
		if then := s.FailedSoonAfterText(p); then != "" {
			lines = append(lines, "             "+units.Cut(units.Clean(then), mistakeWidth))
		}
	}
	return lines
}

// failuresSection shows the post-mortems.
func (v *view) failuresSection() section {
	if len(v.s.PostMortems) == 0 {
		return section{}
	}
	s := section{ID: "failures", Title: "Memory at failures", Intro: "what memory looked like when a call failed, or when the program was killed"}
	switch short := func(p stats.PostMortem) bool { return p.MayLackMemory() }; {
	case v.s.PostMortems[0].Verdict == stats.VerdictKilled: // which comes last
		s.Title = "Killed while it held memory"
	case slices.ContainsFunc(v.s.PostMortems, short):
		s.Title = "Out of memory"
	}
	for i := range v.s.PostMortems {
		page := NewPostMortem(&v.s.PostMortems[i], v.a.Run.Started)
		if then := v.s.FailedSoonAfterText(&v.s.PostMortems[i]); then != "" {
			page.Lines = append(page.Lines, [2]string{"then", units.Cut(units.Clean(then), postMortemWidth)})
		}
		facts := append([][2]string{{"failure", units.Clean(page.Title)}}, page.Lines...)
		if !v.page {
			s.Facts = append(s.Facts, facts...)
			continue
		}
		t := v.newTable(page.Title, len(facts), wordsColumn(""), wordsColumn("what"))
		for _, fact := range facts {
			t.addRow(wordCell(fact[0]), v.nameCell(fact[1], postMortemWidth))
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

// PostMortemSummary is a post-mortem for scripts: the state of memory when a call failed for lack of it.
type PostMortemSummary struct {
	Seconds float64 `json:"seconds"` // after the start
	*stats.PostMortem
	Verdict       string      `json:"verdict"` // "full", "fragmented" and so on
	Why           string      `json:"why"`
	Try           string      `json:"try"`
	Idle          *stats.Part `json:"idle"` // null when unknown, as the next
	Untouched     *stats.Part `json:"untouched"`
	DeviceMemory  uint64      `json:"device_memory"` // 0 when unknown, as the next
	DeviceLargest uint64      `json:"device_largest_buffer"`
	// OOMKills is how many processes of its control group the kernel has ended; null: unknown, or the process was not killed.
	OOMKills *uint64 `json:"oom_kills"`
}

func postMortemSummary(p *stats.PostMortem, started uint64) PostMortemSummary {
	s := PostMortemSummary{
		Seconds: units.SecondsBetween(started, p.Time), PostMortem: p, Verdict: units.JSONKey(p.Verdict.String()), Why: failureVerdictText(p), Try: failureAdviceText(p),
		DeviceMemory: p.Device.Global, DeviceLargest: p.Device.Largest,
	}
	if p.UsesKnown {
		s.Idle, s.Untouched = &p.Idle, &p.Untouched
	}
	if kills := p.OOMKillsNumber - 1; p.OOMKillsNumber > 0 {
		s.OOMKills = &kills
	}
	return s
}
