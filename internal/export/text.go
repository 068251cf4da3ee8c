package export

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
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
	switch {
	case len(s.Processes) == 0 && !s.Attached:
		lines = append(lines, "  no OpenCL call was seen")
	case len(s.Processes) == 0:
	case s.Attached && s.silent():
		lines = append(lines, "  no OpenCL call that concerns memory was seen")
	case s.Attached:
		lines = append(append(lines, s.watchedFigures()...), processLines(s.snapshot, false)...)
	default:
		lines = append(append(lines, s.figures()...), processLines(s.snapshot, true)...)
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
	if s.Attached {
		return s.watched()
	}
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

// watched is the title where programs were only watched.
func (s *Summary) watched() string {
	n := len(s.Processes)
	if n == 0 && s.snapshot.Program == "" {
		return fmt.Sprintf("gpumemtop: watched for %.2f s: no process came that was asked for and calls OpenCL", s.WallSeconds)
	}
	title := fmt.Sprintf("gpumemtop: attached to %s for %.2f s", commandLine(s.snapshot), s.WallSeconds)
	switch {
	case n > 1 && s.Running == 0:
		title += fmt.Sprintf(" (%d processes, which all ended)", n)
	case n > 1:
		title += fmt.Sprintf(" (%d processes, %s)", n, goOn(s.Running))
	case s.Running > 0:
		title += ", which goes on"
	case s.Exit.Signal > 0:
		title += fmt.Sprintf(", which was ended by signal %d", s.Exit.Signal)
	case s.Exit.Status >= 0:
		title += fmt.Sprintf(", which exited with status %d", s.Exit.Status)
	case n > 0:
		title += ", which ended"
	}
	return title
}

// goOn says how many processes do.
func goOn(n int) string {
	if n == 1 {
		return "1 goes on"
	}
	return fmt.Sprintf("%d go on", n)
}

// silent reports whether nothing was seen that could be counted.
func (s *Summary) silent() bool {
	t := &s.snapshot.Totals
	return t.Creates+t.Failures+t.Releases+t.Uses+t.LiveBuffers+s.LostEvents == 0
}

// watchedFigures are those of programs that were only watched: no pool serves them, so there is no rate of hits, and what
// they had before is known in part.
func (s *Summary) watchedFigures() []string {
	t := &s.snapshot.Totals
	memory, end := plain.Watched(s.snapshot)
	lines := []string{
		fmt.Sprintf("  creates    %d (%d failed), %s", t.Creates, t.Failures, plain.Count(t.Releases, "release")),
		"  memory     " + memory,
		"  at the end " + end,
	}
	if before := plain.BeforeAttach(s.snapshot); before != nil {
		lines = append(lines, fmt.Sprintf("  before     sizes from before attach are known as far as used: %s, %s live",
			size.FormatLong(before.InUse), plain.Count(before.Live, "buffer")))
	}
	return s.concluding(lines, func(*TagSummary) string { return "" })
}

// figures are the lines between the title and the last.
func (s *Summary) figures() []string {
	t := &s.snapshot.Totals
	lines := []string{
		"  policy     " + plain.Policy(s.snapshot),
		"  hit rate   " + plain.Hits(t),
		"  driver     " + plain.Driver(t),
		"  memory     " + plain.Memory(t),
		"  at the end " + plain.End(t),
	}
	return s.concluding(lines, func(tag *TagSummary) string {
		return ", hit rate " + plain.Percent(tag.HitRate, tag.Hits+tag.Misses)
	})
}

// concluding adds what all summaries end with. Of a tag more may be said.
func (s *Summary) concluding(lines []string, more func(*TagSummary) string) []string {
	label := "  top tags   "
	for i := range s.PerTag[:min(topTags, len(s.PerTag))] {
		tag := &s.PerTag[i]
		if tag.Tag == model.SlabsName {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s%s: peak %s, %s%s", label, plain.Cut(tag.Tag, nameWidth),
			size.FormatLong(tag.PeakInUse), plain.Count(tag.Creates, "create"), more(tag)))
		label = "             "
	}
	if s.snapshot.Totals.LiveBuffers > 0 && s.Running == 0 {
		lines = append(lines, leakLines(s.snapshot)...)
	}
	lines = append(lines, mistakeLines(s.snapshot)...)
	if s.LostEvents > 0 {
		lines = append(lines, "  lost       "+plain.Count(s.LostEvents, "event")+", missing from these figures")
	}
	return lines
}

// commandLine is the program with its arguments, on one line of bounded length.
func commandLine(s *model.Snapshot) string {
	words := append([]string{s.Program}, s.Arguments...)
	if s.Program == "" {
		words = []string{"the program"}
	}
	return plain.Cut(clean(strings.Join(words, " ")), titleWidth)
}

// leaks returns the tags with objects that were never released, those with the most memory first.
func leaks(tags []model.Tag) []*model.Tag {
	live := slices.DeleteFunc(plain.TagsByPeak(tags), func(t *model.Tag) bool { return t.Live == 0 })
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
