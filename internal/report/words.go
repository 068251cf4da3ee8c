package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// hostMemoryText counts creates that got host memory because the pool's waste left too little of the device's.
func hostMemoryText(p *stats.Part) string {
	return fmt.Sprintf("%s (%s) got the host's memory, which is slower: the device lacked what the pool wasted", units.Count(p.Buffers, "create"),
		units.FormatLong(p.Bytes))
}

// exposedBuffersText counts buffers that kernels may have read before anything wrote them, and names the call sites with the most.
func exposedBuffersText(s *stats.Snapshot) string {
	sites := slices.DeleteFunc(slices.Clone(s.Tags), func(t stats.Tag) bool { return t.Exposed == 0 })
	slices.SortStableFunc(sites, func(a, b stats.Tag) int { return cmp.Compare(b.Exposed, a.Exposed) })
	text := analysis.ExposedCountText(&s.Totals) + " that kernels were the first to use and may read"
	named := uint64(0)
	shown, _ := units.KeepFirst(sites, topTags)
	names := distinctNames(shown, func(t *stats.Tag) string { return t.Name })
	for i, t := range shown {
		text += fmt.Sprintf("%s %d of %s", []string{":", ",", ","}[i], t.Exposed, names[i])
		named += t.Exposed
	}
	if others := s.Totals.Exposed - min(named, s.Totals.Exposed); named > 0 && others > 0 {
		text += fmt.Sprintf(", and %d of others", others)
	}
	return text + fmt.Sprintf("; trials show that new memory would have been zero for %d of them", s.Totals.ExposedNewZero)
}

// countRecycledAddresses returns how often the pool served memory that has addresses in the program: exposure of such memory is not watched.
func countRecycledAddresses(s *stats.Snapshot) (n uint64) {
	for i := range s.Kinds {
		if k := &s.Kinds[i]; k.Memory >= wire.MemorySVM && k.Memory <= wire.MemoryUSMShared {
			n += k.Hits
		}
	}
	return n
}

// distinctNames returns the names in a list, cut so that they differ.
func distinctNames[T any](list []T, name func(*T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = name(&list[i])
	}
	return units.CutNames(names, nameWidth)
}

// policyText names the policy of a run and its former ones, and says how much it keeps at most, and why it cannot work.
func policyText(s *stats.Snapshot) string {
	text := units.Clean(s.Policy)
	if text == "" {
		text = "unknown"
	}
	if s.Auto != nil && s.Auto.Steers {
		text = "auto: " + text
	}
	if former := s.Change.Former; len(former) > 0 {
		text += " (before that " + units.Clean(strings.Join(former, ", ")) + ")"
	}
	if most, known := s.MaxCachedBytes(); known {
		text += ", at most " + units.FormatLong(most) + " cached"
	}
	if why := s.WhyNothingCarved(); why != "" {
		text += "; no sub-allocations: " + why
	}
	return text
}

func runFigureText(f *figures.Figure, run *figures.Subject) string {
	return plain.formatFigure(f, f.ValueOf(run))
}

// unseenLibrariesText names the libraries that the program may call past gpumemtop; empty: none is known.
func unseenLibrariesText(s *stats.Snapshot) string {
	if len(s.Unseen) == 0 {
		return ""
	}
	return "calls through " + units.Clean(strings.Join(s.Unseen, ", ")) + " are not watched"
}

// noRequestsText says which requests there were none of. run is of a whole run.
func noRequestsText(run *figures.Subject) string {
	if text := unseenLibrariesText(run.Run); text != "" {
		return "no request was seen: " + text
	}
	if run.Run.Policy == "none" {
		return "no request was seen for a buffer that a pool serves; images and SVM count only with a pool"
	}
	return "no request was seen of a kind and size that a pool serves"
}

// servedRequestsText says how many requests the pool served. run is of a whole run.
func servedRequestsText(run *figures.Subject) string {
	requests := run.Hits + run.Misses
	if requests+run.Alternative == 0 {
		return noRequestsText(run)
	}
	text := runFigureText(figures.HitRate, run) + " of " + units.Count(requests, "request")
	if run.SteadyRequests > 0 {
		text += ", " + runFigureText(figures.SteadyHitRate, run) + " of the later half"
	}
	text += "; " + units.Plural(run.Misses, "miss", "misses")
	// With slabs, a miss that memory of another kind would have served may have had nothing of its own kind, too.
	if n := run.MissReasons[wire.MissCold]; n > 0 && (run.PeakSlabs == 0 || run.MissReasons[wire.MissOtherClass] == 0) {
		text += fmt.Sprintf(", %d with nothing free", n)
		if run.PeakSlabs > 0 { // free ranges of slabs do not serve large requests
			text += " of their kind"
		}
	}
	if run.Alternative > 0 {
		text += fmt.Sprintf("; besides, an experiment's alternative served %s", units.Count(run.Alternative, "request"))
	}
	return text
}

// driverCreatesText says how many creates reached the driver, how many hits replaced, and how much time that saved.
func driverCreatesText(run *figures.Subject) string {
	text := fmt.Sprintf("%s, %d avoided", units.Count(run.DriverCreates, "create"), run.HitsWithoutDriverCall())
	if run.SubBufferHits > 0 {
		text += fmt.Sprintf(", %d served by new sub-buffers", run.SubBufferHits)
	}
	if run.Hits == 0 {
		return text
	}
	calls, touches := run.Run.WorthwhileSavings()
	var saved []string
	if calls {
		saved = append(saved, savedCallTimeText(run))
	}
	if touches {
		saved = append(saved, savedTouchesText(run.Totals))
	}
	switch {
	case run.Run.Measured.LatestKnown() != nil: // a measurement makes an estimate superfluous
		return text
	case saved == nil && len(run.Run.Measured) > 0: // the experiment says why it measured nothing
		return text
	case saved == nil:
		return text + " (--measure measures what that gains)"
	case touches:
		return text + ": " + strings.Join(saved, ", ")
	case !run.Saved.Releases:
		return text + ": " + saved[0] + " (estimated; releases and first touches not counted: gpumemtop compare measures the whole gain)"
	}
	return text + ": " + saved[0] + " (estimated; first touches not counted: gpumemtop compare measures the whole gain)"
}

// savedTouchesText says how much time hits saved in first touches.
func savedTouchesText(t *stats.Totals) string {
	s := &t.SavedTouches
	text := fmt.Sprintf("about %s saved in first writes to new memory ", units.Duration(s.NS))
	if s.Device != "" {
		return text + "(by the probe of " + units.Clean(s.Device) + ")"
	}
	text += fmt.Sprintf("(estimated from %d new and %d reused buffers of this run", s.Fresh, s.Reused)
	if s.Hits < t.Hits {
		text += fmt.Sprintf(", for the sizes of %d of the creates avoided", s.Hits)
	}
	return text + ")"
}

// savedCallTimeText says how much time hits saved in driver calls.
func savedCallTimeText(run *figures.Subject) string {
	text := fmt.Sprintf("about %s saved in ", runFigureText(figures.Saved, run))
	if run.Saved.Releases {
		text += "driver calls"
	} else {
		text += "creates"
	}
	if run.Saved.Device != "" {
		text += " (by the probe of " + units.Clean(run.Saved.Device) + ")"
	}
	return text
}

// idleBytes is the least idle memory, in bytes, that a text mentions.
const idleBytes = 64 << 10

// mostInUseText says how much memory was in use at most. With --spill, memory was not reserved all the time.
func mostInUseText(run *figures.Subject) string {
	if run.Evidence.Run.Spill != nil {
		return fmt.Sprintf("peak %s in use, on device and host", memoryFigureText(figures.PeakInUse, run))
	}
	inUse, reserved := units.FormatApart(figures.PeakInUse.ValueOf(run).Exact, figures.PeakReserved.ValueOf(run).Exact)
	if run.Evidence.Run.Lost > 0 {
		inUse, reserved = "~"+inUse, "~"+reserved
	}
	text := "peak " + inUse + " in use"
	if asked := memoryFigureText(figures.PeakRequested, run); run.PeakRequested > 0 && run.PeakRequested < run.PeakInUse && asked != inUse {
		text += " (at most " + asked + " requested)" // what a policy adds is waste
	}
	text += ", " + reserved + " reserved"
	if run.PeakIdle >= idleBytes {
		text += ", at least " + memoryFigureText(figures.PeakIdle, run) + " idle in the pool at one time (no request got it for 10 s, or a quarter of the run until then)"
	}
	if run.Evidence.Run.Totals.Alternative > 0 {
		text += "; the experiment keeps blocks for both configurations"
	}
	return text
}

// memoryFigureText writes a figure of a run's memory.
func memoryFigureText(f *figures.Figure, run *figures.Subject) string {
	return sizeText(run.Evidence.Run, f.ValueOf(run).Exact)
}

// sizeText writes an amount of memory, marked as uncertain if events were lost, among which creates and releases may be.
func sizeText(s *stats.Snapshot, bytes uint64) string {
	if s.Lost > 0 {
		return "~" + units.FormatLong(bytes)
	}
	return units.FormatLong(bytes)
}

// estimatedPeaksText says why peaks and their times are estimates; empty: they are exact.
func estimatedPeaksText(s *stats.Snapshot) string {
	if s.Disordered == 0 {
		return ""
	}
	return units.Plural(s.Disordered, "create or release", "creates and releases") +
		" came after later records of other threads or processes: what was in use at once, and when, is estimated"
}

// heldAtEndText says how much memory is held at the end.
func heldAtEndText(run *figures.Subject) string {
	free := run.Cached + run.Cooling
	if run.InUse+free == 0 {
		return "nothing in use, nothing in the pool"
	}
	text := memoryFigureText(figures.InUse, run) + " in use"
	if run.InUse > 0 {
		text += " (waste " + runFigureText(figures.Waste, run) + ")"
	}
	text += ", " + sizeText(run.Evidence.Run, free) + " free in the pool"
	if run.Idle > 0 {
		text += ", " + memoryFigureText(figures.Idle, run) + " of it idle"
	}
	if run.Cached > 0 {
		text += " (fragmentation " + runFigureText(figures.ExternalFragmentation, run) + ")"
	}
	return text
}

// watchedMemoryAndEndLines returns the lines Memory and End for programs that were only watched. There is no pool then, and
// memory from before the attach counts only if its use has shown it.
func watchedMemoryAndEndLines(run *figures.Subject) (memory, end string) {
	least := ""
	if s := run.Evidence.Run; s.TagBeforeAttach() != nil && s.Lost == 0 { // otherwise it may also be less
		least = "at least "
	}
	return fmt.Sprintf("peak %s%s in use", least, memoryFigureText(figures.PeakInUse, run)),
		fmt.Sprintf("%s%s in use by %s", least, memoryFigureText(figures.InUse, run),
			units.Count(run.LiveBuffers, stats.NounForMemory(run.Run.Kinds, true)))
}

// howProcessEndedText says how a process ended, if known: only a program's parent learns its exit status.
func howProcessEndedText(p *stats.Process) string {
	switch {
	case p.State == stats.Running:
		return "running"
	case p.State == stats.Signaled:
		return fmt.Sprintf("signal %d", p.Status)
	case p.Status < 0 && p.Orderly:
		return "exited"
	case p.Status < 0:
		return "unknown"
	}
	return fmt.Sprintf("status %d", p.Status)
}

// tagsByPeak returns the call sites by peak, and leaves the snapshot's order as it is.
func tagsByPeak(tags []stats.Tag) []*stats.Tag {
	sorted := pointersTo(tags)
	slices.SortFunc(sorted, func(a, b *stats.Tag) int {
		return cmp.Or(cmp.Compare(b.PeakInUse, a.PeakInUse), cmp.Compare(b.Creates, a.Creates), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// processesByPeak returns the processes by peak, those with equal peaks in the order of their first call. It leaves the
// snapshot's order as it is.
func processesByPeak(processes []stats.Process) []*stats.Process {
	sorted := pointersTo(processes)
	slices.SortStableFunc(sorted, func(a, b *stats.Process) int {
		return cmp.Or(cmp.Compare(b.Totals.PeakInUse, a.Totals.PeakInUse), cmp.Compare(b.Totals.Creates, a.Totals.Creates))
	})
	return sorted
}

func pointersTo[T any](list []T) []*T {
	sorted := make([]*T, len(list))
	for i := range list {
		sorted[i] = &list[i]
	}
	return sorted
}
