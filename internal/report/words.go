package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// hostedText says what happened where the pool's waste left too little of the device.
func hostedText(p *stats.Part) string {
	return fmt.Sprintf("%s (%s) got the host's memory, which is slower: the device lacked what the pool wasted", units.Count(p.Buffers, "create"),
		units.FormatLong(p.Bytes))
}

// policyText names the policy of a run, those that it had before, how much it keeps at most, and why it cannot do its work.
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
	if most, known := s.CachedMost(); known {
		text += ", at most " + units.FormatLong(most) + " cached"
	}
	if why := s.CarvesNothing(); why != "" {
		text += "; no sub-allocations: " + why
	}
	return text
}

// hitsText says how many requests the pool served.
func hitsText(t *stats.Totals) string {
	requests := t.Hits + t.Misses
	if requests == 0 {
		return "nothing was requested that a pool could serve"
	}
	text := units.Percent(t.HitRate(), requests) + " of " + units.Count(requests, "request")
	if t.SteadyRequests > 0 {
		text += ", " + units.Percent(t.SteadyHitRate(), t.SteadyRequests) + " of the later half"
	}
	text += "; " + units.Plural(t.Misses, "miss", "misses")
	if n := t.MissReasons[wire.MissCold]; n > 0 {
		text += fmt.Sprintf(", %d with nothing to reuse yet", n)
	}
	return text
}

// driverText says how many creates reached the driver, how many did not have to, and what that saved.
func driverText(t *stats.Totals) string {
	text := fmt.Sprintf("%s, %d avoided", units.Count(t.DriverCreates, "create"), t.Hits)
	if t.Hits == 0 {
		return text
	}
	text += ": " + savedText(t)
	switch {
	case t.SavedTouches.Hits > 0:
		return text + ", " + touchesText(t)
	case !t.SavedKnown:
		return text + " (gpumemtop compare measures it)"
	}
	return text + " (estimated; gpumemtop compare measures the whole gain)"
}

// touchesText says what hits saved in first touches.
func touchesText(t *stats.Totals) string {
	s := &t.SavedTouches
	text := fmt.Sprintf("about %s in first writes to new memory ", units.Duration(s.NS))
	if s.Device != "" {
		return text + "(by the probe of " + units.Clean(s.Device) + ")"
	}
	text += fmt.Sprintf("(estimated from %d new and %d reused buffers of this run", s.Fresh, s.Reused)
	if s.Hits < t.Hits {
		text += fmt.Sprintf(", for the sizes of %d of the creates avoided", s.Hits)
	}
	return text + ")"
}

// savedText says what hits saved in driver calls.
func savedText(t *stats.Totals) string {
	switch {
	case !t.SavedKnown:
		return "time saved unknown, as only slow first calls were timed"
	case t.SavedNS == 0:
		return "no time saved in driver calls"
	}
	return fmt.Sprintf("about %s saved in driver calls", units.Duration(t.SavedNS))
}

// memoryText says how much was in use at most. What --spill took from the device was not reserved all the time.
func memoryText(s *stats.Snapshot) string {
	text := fmt.Sprintf("peak %s in use", sizeText(s, s.Totals.PeakInUse))
	if s.Spill != nil {
		return text + ", on device and host"
	}
	return text + fmt.Sprintf(", %s reserved", sizeText(s, s.Totals.PeakReserved))
}

// sizeText is an amount of memory that follows from creates and releases: some may be among lost events.
func sizeText(s *stats.Snapshot, bytes uint64) string {
	if s.Lost > 0 {
		return "~" + units.FormatLong(bytes)
	}
	return units.FormatLong(bytes)
}

// endText says what is held at the end.
func endText(s *stats.Snapshot) string {
	t := &s.Totals
	free := t.Cached + t.Cooling
	if t.InUse+free == 0 {
		return "nothing in use, nothing in the pool"
	}
	text := sizeText(s, t.InUse) + " in use"
	if t.InUse > 0 {
		text += " (waste " + units.Percent(t.Waste(), t.InUse) + ")"
	}
	text += ", " + sizeText(s, free) + " free in the pool"
	if t.Cached > 0 {
		text += " (fragmentation " + units.Percent(t.ExternalFragmentation(), t.Cached) + ")"
	}
	return text
}

// watchedText are Memory and End where programs were only watched. Nothing is in a pool then, and of what was there before
// only that counts which its use has shown.
func watchedText(s *stats.Snapshot) (memory, end string) {
	least := ""
	if s.BeforeAttach() != nil && s.Lost == 0 { // else it may also be less
		least = "at least "
	}
	return fmt.Sprintf("peak %s%s in use", least, sizeText(s, s.Totals.PeakInUse)),
		fmt.Sprintf("%s%s in use by %s", least, sizeText(s, s.Totals.InUse), units.Count(s.Totals.LiveBuffers, "buffer"))
}

// endedText says how a process ended, as far as that is known: only a program's parent learns its exit status.
func endedText(p *stats.Process) string {
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

// tagsByPeak sorts without touching the snapshot.
func tagsByPeak(tags []stats.Tag) []*stats.Tag {
	sorted := pointers(tags)
	slices.SortFunc(sorted, func(a, b *stats.Tag) int {
		return cmp.Or(cmp.Compare(b.PeakInUse, a.PeakInUse), cmp.Compare(b.Creates, a.Creates), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// processesByPeak sorts without touching the snapshot; equal ones stay in the order of their first call.
func processesByPeak(processes []stats.Process) []*stats.Process {
	sorted := pointers(processes)
	slices.SortStableFunc(sorted, func(a, b *stats.Process) int {
		return cmp.Or(cmp.Compare(b.Totals.PeakInUse, a.Totals.PeakInUse), cmp.Compare(b.Totals.Creates, a.Totals.Creates))
	})
	return sorted
}

func pointers[T any](list []T) []*T {
	sorted := make([]*T, len(list))
	for i := range list {
		sorted[i] = &list[i]
	}
	return sorted
}
