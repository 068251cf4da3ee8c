package analysis

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

const notCertain = " (not certain)"

// mistakeFindings are those of the program.
func mistakeFindings(e *Evidence) (list []Diagnosis) {
	for i := range e.Run.Findings {
		f := &e.Run.Findings[i]
		d := Diagnosis{ // results may be wrong
			Severity: Problem, Title: f.Kind.String(), Text: f.Sentence(units.FormatLong), Tag: f.Tag, Share: 1, placed: f.Who != "",
		}
		if !f.IsCertain() {
			d.Severity, d.Title = Advice, d.Title+notCertain
		}
		if e.Attached { // the library sees mistakes itself; here calls that are lost make others look wrong
			e.downgradeIfEventsLost(&d, "calls that make it correct", f.Kind.String()+notCertain)
		}
		list = append(list, d)
	}
	if n := e.Run.OtherFindings; n > 0 {
		list = append(list, Diagnosis{Severity: Problem, Title: "more mistakes", Text: fmt.Sprintf(
			"%s beyond the %d that are listed", units.Plural(n, "mistake", "mistakes"), len(e.Run.Findings))})
	}
	return list
}

// findMistakes counts the mistakes and describes the first certain one, or else the first.
func findMistakes(e *Evidence) (Diagnosis, bool) {
	findings := e.Run.Findings
	if len(findings) == 0 {
		return Diagnosis{}, false
	}
	at := max(0, slices.IndexFunc(findings, func(f stats.Finding) bool { return f.IsCertain() }))
	total := e.Run.OtherFindings
	for i := range findings {
		total += findings[i].Count
	}
	d, kind := mistakeFindings(e)[at], findings[at].Kind.String()
	d.Text = kind + ": " + d.Text
	d.Title = units.Count(total, "mistake") + " of the program" + strings.TrimPrefix(d.Title, kind)
	return d, true
}

func findLostEvents(e *Evidence) (Diagnosis, bool) {
	s := e.Run
	if s.Lost == 0 {
		return Diagnosis{}, false
	}
	title := units.Count(s.Lost, "event") + " lost"
	if s.LostUses > 0 {
		title += fmt.Sprintf(" (%d of them uses)", s.LostUses)
	}
	return Diagnosis{
		Severity: Note, Title: title,
		Text: "figures may be too high or too low, and memory listed as leaked may have been released",
	}, true
}

// findCopyingCreates finds runs that spend their time in creates that no pool serves.
func findCopyingCreates(e *Evidence) (Diagnosis, bool) {
	copies, all := e.Whole.CopiesNS, e.Run.Totals.DriverNS
	if e.Whole.CopyCost.Calls < requestsLeast || e.Attached || float64(copies) < copyShare*float64(all) || float64(copies) < driverShare*float64(e.Length) {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "creates that copy take the time, and no pool serves them", Share: shareOfWhole(copies, e.Length),
		Text: fmt.Sprintf("%s with CL_MEM_COPY_HOST_PTR took %s of the %s in driver calls: create once and write instead",
			units.Count(e.Whole.CopyCost.Calls, "create"), units.Duration(copies), units.Duration(all)),
	}, true
}

// findHoistableBuffers finds the temporary buffers whose driver calls take the most time.
func findHoistableBuffers(e *Evidence) (Diagnosis, bool) {
	repeats := slices.ContainsFunc(e.Whole.Phases, func(p Phase) bool { return p.Iterations > 0 })
	if len(e.Whole.Temporaries) == 0 || !repeats {
		return Diagnosis{}, false
	}
	top := slices.MaxFunc(e.Whole.Temporaries, func(a, b Temporary) int { return cmp.Compare(a.DriverNS, b.DriverNS) })
	if e.Run.Policy != "none" || float64(top.DriverNS) < driverShare*float64(e.Length) || top.Buffers < growthIterations { // a pool keeps them
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: e.memoryNoun() + "s could be created once, before the loop", Tag: top.Name,
		Share: shareOfWhole(top.DriverNS, e.Length),
		Text: fmt.Sprintf("%s of %s live within one iteration and took the driver %s%s", units.Count(top.Buffers, e.memoryNoun()),
			top.Name, e.callTimeText(top.DriverNS, false), e.partOfRunText(top.DriverNS)),
	}, true
}

// findHeldTooLong finds memory that others could have had.
func findHeldTooLong(e *Evidence) (Diagnosis, bool) {
	idle := &e.Whole.Idle
	if idle.Site == "" || idle.Bytes < max(lagShare*idle.InUse, lagBytes) || !e.isSizeWorthwhile(idle.Bytes) || idle.Median < lagLeast {
		return Diagnosis{}, false
	}
	unused, inUse := units.FormatApart(uint64(idle.Bytes), uint64(idle.InUse))
	held := fmt.Sprintf("half of %d %ss of %s were held %s or longer after their last use", idle.Buffers, e.memoryNoun(), idle.Site, units.Duration(idle.Median))
	if idle.Buffers == 1 {
		held = fmt.Sprintf("one %s of %s was held %s after its last use", e.memoryNoun(), idle.Site, units.Duration(idle.Median))
	}
	return Diagnosis{
		Severity: Advice, Title: "memory is released long after its last use", Tag: idle.Site, Share: idle.Share,
		Text: fmt.Sprintf("%s; in all, at least %s of the %s in use were idle so, on average", held, unused, inUse),
	}, true
}

// findLongUnused finds memory of a run that goes on which no command has used for long, though others ran.
func findLongUnused(e *Evidence) (Diagnosis, bool) {
	u := &e.Run.LongUnused
	if e.State != GoesOn || float64(u.Bytes) < max(lagShare*float64(e.Memory.InUse), lagBytes) || !e.isSizeWorthwhile(float64(u.Bytes)) {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: "memory is held without use", Tag: u.Site, Share: shareOfWhole(u.Bytes, e.Memory.InUse),
		Text: fmt.Sprintf("no command has used %s of %s, %s in all, for %s, though others ran: release what is not used again",
			units.Count(u.Buffers, e.memoryNoun()), u.Site, units.FormatLong(u.Bytes), units.Duration(u.NS)),
	}, true
}

// findHiddenCallers finds a function that creates much of the memory for several callers.
func findHiddenCallers(e *Evidence) (Diagnosis, bool) {
	h := &e.Whole.Hidden
	if h.Site == "" || h.Share < hiddenShare {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Note, Title: "one function creates memory for several places", Tag: h.Site, Share: h.Share,
		Text: fmt.Sprintf("%s call %s: %s names call sites after them", units.Count(uint64(h.Callers), "place"), h.Site,
			callsite.WrapperOption(h.Function)),
	}, true
}

// findShortStacks finds call sites that name only libraries, because stacks were not followed to the program.
func findShortStacks(e *Evidence) (Diagnosis, bool) {
	s := &e.Whole.Ended
	if s.Site == "" || s.Share < hiddenShare {
		return Diagnosis{}, false
	}
	way := fmt.Sprintf(": --stack-depth %d follows them farther", min(3*s.Depth, wire.StackMax))
	if s.Depth >= wire.StackMax {
		way = ", the most that is kept: a build of the library with debug information has names for these"
	}
	return Diagnosis{
		Severity: Note, Title: "call stacks end inside libraries", Tag: s.Site, Share: s.Share,
		Text: fmt.Sprintf("%.0f %% of %s have call sites in libraries alone, as %s, because stacks end after %s%s",
			100*s.Share, s.Of, s.Site, units.Count(uint64(s.Depth), "frame"), way),
	}, true
}

// findFineAlignment finds sub-buffers that are right here and refused by devices with a coarser alignment.
func findFineAlignment(e *Evidence) (Diagnosis, bool) {
	o := &e.Whole.origins
	if o.count == 0 {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Note, Title: "sub-buffers may be refused on other devices", Tag: e.Whole.origin,
		Text: fmt.Sprintf("%s at no multiple of 4.00 KiB, the least aligned at a multiple of %s; devices want multiples of 128 B to 4.00 KiB: round up to "+
			"CL_DEVICE_MEM_BASE_ADDR_ALIGN / 8; gpumemtop fit --on checks one device", units.Plural(o.count, "begins", "begin"), units.FormatLong(o.coarsest)),
	}, true
}

// findCopiedHostMemory finds memory of the program that a driver has to copy to give it to its device. Intel's guide "Getting the Most from
// OpenCL 1.2: How to Increase Performance by Minimizing Buffer Copies on Intel Processor Graphics" wants a multiple of 4096 bytes as
// address and one of 64 bytes as size. Arm's guide for Mali says that its driver may copy whatever the address.
func findCopiedHostMemory(e *Evidence) (Diagnosis, bool) {
	h := &e.Whole.hosted
	if h.bytes < bytesLeast {
		return Diagnosis{}, false
	}
	var what []string
	if h.offPage > 0 {
		what = append(what, units.Count(h.offPage, "buffer")+" at no multiple of 4096 bytes")
	}
	if h.offSize > 0 {
		what = append(what, units.Count(h.offSize, "buffer")+" whose size is no multiple of 64 bytes")
	}
	return Diagnosis{
		Severity: Note, Title: "drivers may copy the program's own memory", Tag: e.Whole.host,
		Text: fmt.Sprintf("CL_MEM_USE_HOST_PTR made %s, %s in all, the largest at %s: on Intel's graphics that takes a copy (on Arm's any may): begin at "+
			"multiples of 4096 bytes and round sizes up to multiples of 64, or use CL_MEM_ALLOC_HOST_PTR", strings.Join(what, " and "), units.FormatLong(h.bytes), e.Whole.host),
	}, true
}
