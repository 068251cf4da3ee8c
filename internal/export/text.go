package export

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	topTags    = 3  // in the short text
	nameWidth  = 44 // of tags
	titleWidth = 60 // of a command line
)

// WriteText writes the summary for people: at most 12 lines of plain text; where there are several processes one for
// each of the largest 20 and at most two more; and as many lines about what was never released and about mistakes of
// the program as these need, at most 19.
func (s *Summary) WriteText(w io.Writer) error {
	lines := []string{s.title()}
	if len(s.Processes) == 0 {
		lines = append(lines, "  no OpenCL call was seen")
	} else {
		lines = append(append(lines, s.figures()...), processLines(s.snapshot)...)
	}
	if file := s.snapshot.Recording.Path; file != "" {
		lines = append(lines, "  more: gpumemtop report "+clean(file))
	}
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// title names the program and says how it ended.
func (s *Summary) title() string {
	title := "gpumemtop: " + commandLine(s.snapshot)
	switch {
	case s.Exit.Signal > 0:
		title += fmt.Sprintf(" was ended by signal %d", s.Exit.Signal)
	case s.Exit.Status >= 0:
		title += fmt.Sprintf(" exited with status %d", s.Exit.Status)
	default:
		title += " ended"
	}
	title += fmt.Sprintf(" after %.2f s", s.WallSeconds)
	if n := len(s.Processes); n > 1 {
		title += fmt.Sprintf(" (%d processes)", n)
	}
	return title
}

// figures are the lines between the title and the last.
func (s *Summary) figures() []string {
	t := &s.snapshot.Totals
	lines := []string{
		"  policy     " + policyText(s.snapshot),
		"  hit rate   " + hitText(t),
		"  driver     " + driverText(t),
		"  memory     " + memoryText(t),
		"  at the end " + endText(t),
	}
	label := "  top tags   "
	for i := range s.PerTag[:min(topTags, len(s.PerTag))] {
		tag := &s.PerTag[i]
		if tag.Tag == slabs {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s%s: peak %s, %s, hit rate %s", label, cut(tag.Tag, nameWidth),
			size.FormatLong(tag.PeakInUse), count(tag.Creates, "create"), percent(tag.HitRate, tag.Hits+tag.Misses)))
		label = "             "
	}
	if t.LiveBuffers > 0 {
		lines = append(lines, leakLines(s.snapshot)...)
	}
	lines = append(lines, mistakeLines(s.snapshot)...)
	if s.LostEvents > 0 {
		lines = append(lines, "  lost       "+count(s.LostEvents, "event")+", missing from these figures")
	}
	return lines
}

// commandLine is the program with its arguments, on one line of bounded length.
func commandLine(s *model.Snapshot) string {
	words := append([]string{s.Program}, s.Arguments...)
	if s.Program == "" {
		words = []string{"the program"}
	}
	return cut(clean(strings.Join(words, " ")), titleWidth)
}

func policyText(s *model.Snapshot) string {
	text := s.Policy
	if text == "" {
		text = "unknown"
	}
	if most, known := s.CachedMost(); known {
		text += ", at most " + size.FormatLong(most) + " cached"
	}
	return text
}

func hitText(t *model.Totals) string {
	if t.Hits+t.Misses == 0 {
		return "no request could have been served from the pool"
	}
	return fmt.Sprintf("%s of %s; steady (later half) %s; %s, %d of them cold",
		percent(t.HitRate(), t.Hits+t.Misses), count(t.Hits+t.Misses, "request"), percent(t.SteadyHitRate(), t.SteadyRequests),
		misses(t.Misses), t.MissReasons[wire.MissCold])
}

func misses(n uint64) string {
	if n == 1 {
		return "1 miss"
	}
	return fmt.Sprintf("%d misses", n)
}

func driverText(t *model.Totals) string {
	text := fmt.Sprintf("%s, %d avoided", count(t.DriverCreates, "create"), t.Hits)
	if t.SavedNS > 0 {
		text += fmt.Sprintf(": ~%s saved (an estimate)", duration(t.SavedNS))
	}
	return text
}

func memoryText(t *model.Totals) string {
	return fmt.Sprintf("peak %s in use, %s reserved", size.FormatLong(t.PeakInUse), size.FormatLong(t.PeakReserved))
}

func endText(t *model.Totals) string {
	return fmt.Sprintf("%s in use (waste %s), %s free in the pool (external fragmentation %s)",
		size.FormatLong(t.InUse), percent(t.Waste(), t.InUse),
		size.FormatLong(t.Cached+t.Cooling), percent(t.ExternalFragmentation(), t.Cached))
}

// leaks returns the tags with objects that were never released, those with the most memory first.
func leaks(tags []model.Tag) []*model.Tag {
	live := slices.DeleteFunc(tagsByPeak(tags), func(t *model.Tag) bool { return t.Live == 0 })
	slices.SortStableFunc(live, func(a, b *model.Tag) int {
		switch {
		case a.InUse > b.InUse:
			return -1
		case a.InUse < b.InUse:
			return 1
		}
		return 0
	})
	return live
}

// count writes a number of things.
func count(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// percent writes a rate; a rate of nothing is no number.
func percent(rate float64, of uint64) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*rate)
}

// duration rounds ns to three digits or so.
func duration(ns uint64) string {
	d := time.Duration(min(ns, 1<<62))
	for unit := time.Second; unit >= time.Microsecond; unit /= 1000 {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// cut bounds text to a number of characters, keeping its beginning.
func cut(text string, most int) string {
	text = clean(text)
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// programName is the last part of a program's path.
func programName(program string) string {
	if program == "" {
		return "-"
	}
	return clean(path.Base(program))
}
