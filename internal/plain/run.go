package plain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Policy names the policy of a run, those that it had before, and how much it keeps at most.
func Policy(s *model.Snapshot) string {
	text := s.Policy
	if text == "" {
		text = "unknown"
	}
	if s.Auto != nil && s.Auto.Steers {
		text = "auto: " + text
	}
	if former := s.Change.Former; len(former) > 0 {
		text += " (before that " + strings.Join(former, ", ") + ")"
	}
	if most, known := s.CachedMost(); known {
		text += ", at most " + size.FormatLong(most) + " cached"
	}
	return text
}

// Hits says how many requests the pool served.
func Hits(t *model.Totals) string {
	if t.Hits+t.Misses == 0 {
		return "no request could have been served from the pool"
	}
	return fmt.Sprintf("%s of %s; steady (later half) %s; %s, %d of them cold",
		Percent(t.HitRate(), t.Hits+t.Misses), Count(t.Hits+t.Misses, "request"), Percent(t.SteadyHitRate(), t.SteadyRequests),
		Misses(t.Misses), t.MissReasons[wire.MissCold])
}

// Driver says how many creates reached the driver, and how many did not have to.
func Driver(t *model.Totals) string {
	text := fmt.Sprintf("%s, %d avoided", Count(t.DriverCreates, "create"), t.Hits)
	if t.SavedNS > 0 {
		text += fmt.Sprintf(": ~%s saved (an estimate)", Duration(t.SavedNS))
	}
	return text
}

// Memory says how much was in use at most.
func Memory(t *model.Totals) string {
	return fmt.Sprintf("peak %s in use, %s reserved", size.FormatLong(t.PeakInUse), size.FormatLong(t.PeakReserved))
}

// End says what is held at the end.
func End(t *model.Totals) string {
	return fmt.Sprintf("%s in use (waste %s), %s free in the pool (external fragmentation %s)",
		size.FormatLong(t.InUse), Percent(t.Waste(), t.InUse),
		size.FormatLong(t.Cached+t.Cooling), Percent(t.ExternalFragmentation(), t.Cached))
}

// Watched are Memory and End where programs were only watched. Nothing is in a pool then, and of what was there before
// only that counts which its use has shown.
func Watched(s *model.Snapshot) (memory, end string) {
	least := ""
	if BeforeAttach(s) != nil {
		least = "at least "
	}
	return fmt.Sprintf("peak %s%s in use", least, size.FormatLong(s.Totals.PeakInUse)),
		fmt.Sprintf("%s%s in use by %s", least, size.FormatLong(s.Totals.InUse), Count(s.Totals.LiveBuffers, "buffer"))
}

// BeforeAttach returns the tag of what was there before programs were watched, nil when nothing of it was seen.
func BeforeAttach(s *model.Snapshot) *model.Tag {
	for i := range s.Tags {
		if s.Tags[i].Name == wire.BeforeAttach {
			return &s.Tags[i]
		}
	}
	return nil
}

// Ended says how a process ended, as far as that is known: only a program's parent learns its exit status.
func Ended(p *model.Process) string {
	switch {
	case p.State == model.Running:
		return "running"
	case p.State == model.Signaled:
		return fmt.Sprintf("signal %d", p.Status)
	case p.Status < 0 && p.Orderly:
		return "exited"
	case p.Status < 0:
		return "unknown"
	}
	return fmt.Sprintf("status %d", p.Status)
}

// TagsByPeak sorts without touching the snapshot.
func TagsByPeak(tags []model.Tag) []*model.Tag {
	sorted := pointers(tags)
	slices.SortFunc(sorted, func(a, b *model.Tag) int {
		return cmp.Or(cmp.Compare(b.PeakInUse, a.PeakInUse), cmp.Compare(b.Creates, a.Creates), cmp.Compare(a.Name, b.Name))
	})
	return sorted
}

// ProcessesByPeak sorts without touching the snapshot; equal ones stay in the order of their first call.
func ProcessesByPeak(processes []model.Process) []*model.Process {
	sorted := pointers(processes)
	slices.SortStableFunc(sorted, func(a, b *model.Process) int {
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
