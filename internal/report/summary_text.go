package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	topTags    = 3  // call sites in the short text
	nameWidth  = 44 // of tags
	titleWidth = 60 // of a command line

	topFindings  = 4
	stackLines   = 3
	mistakeWidth = 240

	topProcesses = 20 // lines about processes, each within 60 columns
	programWidth = 15 // of a program's name in these lines
)

// WriteText writes the summary as at most 15 lines of plain text. If memory ran out, four more lines and the machine's figures
// follow; if there are several processes, a line for each of the largest 20 and at most two more. Leaks and mistakes of the
// program take at most 22 lines.
func (s *Summary) WriteText(w io.Writer) error {
	lines := []string{s.titleText()}
	switch {
	case len(s.Processes) == 0 && !s.Attached:
		lines = append(lines, "  "+units.Cut(NoContextText(s.snapshot.Asked), mistakeWidth))
	case len(s.Processes) == 0:
	case s.Attached && s.hasCountedNothing():
		lines = append(lines, "  no OpenCL call that concerns memory was seen")
	case s.Attached:
		lines = append(append(append(lines, outOfMemoryLines(s.snapshot)...), s.watchedFigureLines()...),
			processLines(s.snapshot, false)...)
	default:
		lines = append(append(append(lines, outOfMemoryLines(s.snapshot)...), s.figureLines()...), processLines(s.snapshot, true)...)
	}
	if file := s.snapshot.Recording.Path; file != "" {
		lines = append(lines, "  more: gpumemtop report "+units.Clean(file))
	}
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// titleText names the program and says how it ended.
func (s *Summary) titleText() string {
	if s.Attached {
		return s.watchedTitle()
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
	title += fmt.Sprintf(" after %.2f s", s.runSeconds())
	switch n := s.snapshot.ProcessCount(); {
	case n > 1:
		title += fmt.Sprintf(" (%d processes)", n)
	case n == 1 && s.snapshot.Processes[0].Rank != nil:
		title += fmt.Sprintf(" (rank %d)", *s.snapshot.Processes[0].Rank)
	}
	return title
}

// watchedTitle returns the title for programs that were only watched.
func (s *Summary) watchedTitle() string {
	n := s.snapshot.ProcessCount()
	if n == 0 && s.snapshot.Program == "" {
		return fmt.Sprintf("gpumemtop: watched for %.2f s: no matching process called OpenCL", s.runSeconds())
	}
	title := fmt.Sprintf("gpumemtop: attached to %s for %.2f s", commandLine(s.snapshot), s.runSeconds())
	switch {
	case n > 1 && s.Running == 0:
		title += fmt.Sprintf(" (%d processes, which all ended)", n)
	case n > 1:
		title += fmt.Sprintf(" (%d processes, %s)", n, continuingProcessesText(s.Running))
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

// runSeconds returns the duration of the run.
func (s *Summary) runSeconds() float64 {
	return units.SecondsBetween(s.snapshot.Started, s.snapshot.EndTime())
}

// continuingProcessesText says how many processes continue.
func continuingProcessesText(n int) string {
	if n == 1 {
		return "1 goes on"
	}
	return fmt.Sprintf("%d go on", n)
}

// hasCountedNothing reports whether nothing was counted.
func (s *Summary) hasCountedNothing() bool {
	t := &s.snapshot.Totals
	return t.Creates+t.Failures+t.Releases+t.Uses+t.LiveBuffers+s.snapshot.Lost == 0
}

// watchedFigureLines returns the lines of figures for programs that were only watched: without a pool they have no hit rate, and their
// memory from before the attach is known only in part.
func (s *Summary) watchedFigureLines() []string {
	t := figures.SubjectOfSnapshot(s.snapshot)
	memory, end := watchedMemoryAndEndLines(t)
	lines := []string{
		fmt.Sprintf("  %-10s %d (%s), %s", figures.Creates.Name, t.Creates+t.Failures, failedCreatesText(t.Totals), units.Count(t.Releases, "release")),
	}
	if t.Failures > 0 {
		lines = append(lines, "             "+failureStatusesText(t.Totals))
	}
	lines = append(append(lines, "  memory     "+memory, "  at the end "+end), append(releasedInFlightLines(t), transferLines(s.snapshot)...)...)
	if before := s.snapshot.TagBeforeAttach(); before != nil {
		lines = append(lines, fmt.Sprintf("  before     sizes from before attach are known only as far as used: %s, %s live",
			units.FormatLong(before.InUse), units.Count(before.Live, "buffer")))
	}
	return s.appendLastLines(append(lines, linesWithLabel("machine", machineFigureTexts(s.snapshot))...), func(*stats.Tag) string { return "" })
}

// figureLines returns the lines between the title and the last one.
func (s *Summary) figureLines() []string {
	run := figures.SubjectOfSnapshot(s.snapshot)
	lines := append([]string{"  policy     " + policyText(s.snapshot)}, linesWithLabel("auto", autoDecisionTexts(s.snapshot))...)
	lines = append(lines, fmt.Sprintf("  %-10s %s", figures.HitRate.Name, servedRequestsText(run)))
	if run.Failures > 0 {
		lines = append(lines, fmt.Sprintf("  %-10s %d, %s: %s", figures.Creates.Name, run.Creates+run.Failures, failedCreatesText(run.Totals), failureStatusesText(run.Totals)))
	}
	lines = append(append(lines, servedKindLines(s.snapshot.Kinds)...),
		"  driver     "+driverCreatesText(run))
	lines = append(append(lines, linesWithLabel("measured", experimentTexts(s.snapshot))...),
		"  memory     "+mostInUseText(run))
	if text := runPlansText(s.snapshot); text != "" {
		lines = append(lines, "  plan       "+text)
	}
	lines = append(lines, "  at the end "+heldAtEndText(run))
	lines = append(append(append(lines, releasedInFlightLines(run)...), transferLines(s.snapshot)...), linesWithLabel("spilled", spillTexts(s.snapshot.Spill))...)
	return s.appendLastLines(append(lines, linesWithLabel("machine", machineFigureTexts(s.snapshot))...), func(tag *stats.Tag) string {
		if tag.Hits+tag.Misses == 0 {
			return ""
		}
		return ", " + figures.HitRate.Name + " " + plain.formatFigure(figures.HitRate, figures.HitRate.ValueOfSite(run, tag))
	})
}

// linesWithLabel returns texts as lines; the first has a label.
func linesWithLabel(label string, texts []string) []string {
	var lines []string
	for _, text := range texts {
		lines = append(lines, fmt.Sprintf("  %-10s ", label)+text)
		label = ""
	}
	return lines
}

// servedKindLines say how the pool served each kind of memory besides buffers.
func servedKindLines(kinds []stats.Kind) []string {
	var lines []string
	for i := range kinds {
		k := &kinds[i]
		said := func(f *figures.Figure) string { return plain.formatFigure(f, f.ValueOfShare(&k.Share)) }
		if k.Memory != wire.MemoryBuffer && k.Hits+k.Misses > 0 {
			lines = append(lines, fmt.Sprintf("  %-10s %s, %s %s, %s %s", k.Memory, units.Count(k.Creates, "create"),
				figures.HitRate.Name, said(figures.HitRate), said(figures.Cached), figures.Cached.Name))
		}
	}
	return lines
}

// appendLastLines adds the lines with which all summaries end. more returns further words about a tag.
func (s *Summary) appendLastLines(lines []string, more func(*stats.Tag) string) []string {
	label := "  top tags   "
	tags := tagsByPeak(s.snapshot.Tags)[:min(topTags, len(s.snapshot.Tags))]
	names := distinctNames(tags, func(t **stats.Tag) string { return (*t).Name })
	for i, tag := range tags {
		if tag.Name == callsite.Slabs {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s%s: peak %s, %s%s", label, names[i],
			sizeText(s.snapshot, tag.PeakInUse), units.Count(tag.Creates, "create"), more(tag)))
		label = "             "
	}
	if s.Running == 0 {
		lines = append(lines, leakLines(s.snapshot)...)
	}
	if given := s.snapshot.Totals.Relieved; given > 0 {
		lines = append(lines, "  gave back  "+units.FormatLong(given)+", because other programs lacked memory")
	}
	if s.Hosted != nil {
		lines = append(lines, "  hosted     "+hostMemoryText(s.Hosted))
	}
	if t := &s.snapshot.Totals; t.ExposedNewZero > 0 {
		lines = append(lines, "  exposed    "+analysis.ExposedText(t)+" (gpumemtop compare --outputs)")
	}
	if text := unseenLibrariesText(s.snapshot); text != "" {
		lines = append(lines, "  unwatched  "+units.Cut(text, mistakeWidth)+": all figures leave them out")
	}
	lines = append(append(lines, s.objectLines()...), s.unpairedLines()...)
	lines = append(lines, refusedCallLines(s.snapshot)...)
	lines = append(lines, mistakeLines(s.snapshot)...)
	if text := estimatedPeaksText(s.snapshot); text != "" {
		lines = append(lines, "  order      "+text)
	}
	if s.snapshot.Lost > 0 {
		lines = append(lines, "  lost       "+units.Count(s.snapshot.Lost, "event")+": counts are too low, memory in use may be too high")
	}
	return lines
}

// commandLine returns the program with its arguments, on one line of bounded length.
func commandLine(s *stats.Snapshot) string {
	words := append([]string{s.Program}, s.Arguments...)
	if s.Program == "" {
		words = []string{"the program"}
	}
	return units.Cut(units.Clean(strings.Join(words, " ")), titleWidth)
}

// leakingTags returns the tags with objects that were never released, those with the most memory first.
func leakingTags(s *stats.Snapshot) []*stats.Tag {
	live := tagsByPeak(s.MemoryLeftBehind())
	slices.SortStableFunc(live, func(a, b *stats.Tag) int { return cmp.Compare(b.InUse, a.InUse) })
	return live
}

// mistakeLines are the first mistakes of a run, for the summary.
func mistakeLines(s *stats.Snapshot) []string {
	var lines []string
	label := "  mistakes   "
	for i := range s.Findings[:min(topFindings, len(s.Findings))] {
		lines = append(lines, label+units.Cut(s.Findings[i].Text(units.FormatLong), mistakeWidth))
		label = "             "
	}
	if left := len(s.Findings) - topFindings; left > 0 {
		lines = append(lines, fmt.Sprintf("%sand %d more", label, left))
	}
	return lines
}

// leakLines list memory that was never released, by its first call sites, each with its callers.
func leakLines(s *stats.Snapshot) []string {
	label, how := "leaked", "never released"
	if s.WasAllHeldByKilled() {
		label, how = "held", "in use when "+s.AbortedText()
	}
	switch {
	case s.Lost > 0 && s.WasAllHeldByKilled():
		how = "perhaps " + how + ": their releases may be among the lost events"
	case s.Lost > 0:
		how = "perhaps not released: their releases may be among the lost events"
	}
	var buffers, bytes uint64
	tags := leakingTags(s)
	if len(tags) == 0 {
		return nil
	}
	for _, t := range tags {
		buffers, bytes = buffers+t.Live, bytes+t.InUse
	}
	if in := analysis.LeftByProcessText(s, analysis.LeaksOfEndedProcesses(s)); in != "" {
		how += ", " + in
	}
	lines := []string{fmt.Sprintf("  %-10s %s (%s) %s", label, units.Count(buffers, stats.NounForMemory(s.Kinds, true)), sizeText(s, bytes), how)}
	shown, _ := units.KeepFirst(tags, topTags)
	names := distinctNames(shown, func(t **stats.Tag) string { return (*t).Name })
	for i, tag := range shown {
		lines = append(lines, fmt.Sprintf("             %d (%s) at %s", tag.Live, units.FormatLong(tag.InUse), names[i]))
		for _, frame := range tag.Stack[:min(stackLines, len(tag.Stack))] {
			lines = append(lines, "               "+units.Cut(frame, mistakeWidth))
		}
		if text := distinguishCallersText(tag.Wrapper); text != "" {
			lines = append(lines, "               "+text)
		}
	}
	if len(tags) > topTags {
		lines = append(lines, "             and "+units.Count(uint64(len(tags)-topTags), "more tag"))
	}
	return lines
}

// processIDText returns the id of a process, empty if the row sums up several.
func processIDText(p *stats.Process) string {
	if p.Folded > 0 {
		return ""
	}
	if p.Rank != nil {
		return fmt.Sprintf("rank %d, %d", *p.Rank, p.PID)
	}
	return fmt.Sprint(p.PID)
}

// processLines returns a line for each of the largest processes by peak, if there are several, with its hits if there is a pool.
func processLines(s *stats.Snapshot, pool bool) []string {
	if len(s.Processes) < 2 {
		return nil
	}
	processes, left := units.KeepFirst(processesByPeak(s.Processes), topProcesses)
	align := "rrrrrl"
	if !pool {
		align = "rrrrl"
	}
	table := units.Table{Align: align, Indent: "    "}
	row := func(pid, creates, rate, peak, ended, program string) {
		cells := []string{pid, creates, rate, peak, ended, program}
		if !pool {
			cells = slices.Delete(cells, 2, 3)
		}
		table.Add(cells...)
	}
	row("pid", figures.Creates.ColumnTitle(), figures.HitRate.ColumnTitle(), figures.PeakInUse.ColumnTitle(), "ended", "program")
	for _, p := range processes {
		process := figures.SubjectOfProcess(p, s.Time)
		text := func(f *figures.Figure) string { return plain.cellOfFigure(f, f.ValueOf(process)).Text }
		row(processIDText(p), text(figures.Creates), text(figures.HitRate), text(figures.PeakInUse), howProcessEndedText(p),
			units.Cut(units.ProgramName(p.Program), programWidth))
	}
	lines := []string{"  processes  the largest first"}
	if left == 0 {
		lines[0] = "  processes"
	}
	lines = append(lines, strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")...)
	if left > 0 {
		lines = append(lines, fmt.Sprintf("    and %d more", left))
	}
	return lines
}
