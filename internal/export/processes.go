package export

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

const (
	topProcesses = 20 // lines for processes in the short text, which fit 60 columns
	programWidth = 15 // of a program's name there
)

// processLines tell processes apart where there are several: a line for each of the largest, by peak.
func processLines(s *model.Snapshot) []string {
	if len(s.Processes) < 2 {
		return nil
	}
	processes, left := topOf(processesByPeak(s.Processes), topProcesses)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "pid\tcreates\thit rate\tpeak\tended\t  program")
	for _, p := range processes {
		t := &p.Totals
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t  %s\n", p.PID, t.Creates, percent(t.HitRate(), t.Hits+t.Misses),
			size.Format(t.PeakInUse), endedText(p), cut(programName(p.Program), programWidth))
	}
	_ = w.Flush() // a strings.Builder takes everything
	lines := []string{"  processes  the largest first"}
	if left == 0 {
		lines[0] = "  processes"
	}
	for line := range strings.Lines(b.String()) {
		lines = append(lines, "  "+strings.TrimRight(line, " \n"))
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("    and %d more", left))
	}
	return lines
}

// processesByPeak sorts without touching the snapshot; equal ones stay in the order of their first call.
func processesByPeak(processes []model.Process) []*model.Process {
	sorted := make([]*model.Process, len(processes))
	for i := range processes {
		sorted[i] = &processes[i]
	}
	slices.SortStableFunc(sorted, func(a, b *model.Process) int {
		return cmp.Or(cmp.Compare(b.Totals.PeakInUse, a.Totals.PeakInUse), cmp.Compare(b.Totals.Creates, a.Totals.Creates))
	})
	return sorted
}

func reportProcesses(b *bytes.Buffer, s *model.Snapshot, most int) {
	if len(s.Processes) < 2 {
		return
	}
	heading(b, "processes, by peak")
	processes, left := topOf(processesByPeak(s.Processes), most)
	table(b, func(w io.Writer) {
		fmt.Fprintln(w, "pid\tcreates\thits\thit rate\tpeak\tin use\tended\t  program")
		for _, p := range processes {
			t := &p.Totals
			fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%s\t%s\t%s\t  %s\n", p.PID, t.Creates, t.Hits, percent(t.HitRate(), t.Hits+t.Misses),
				size.Format(t.PeakInUse), size.Format(t.InUse), endedText(p), cut(programName(p.Program), nameWidth))
		}
	})
	reportMore(b, left)
}

// endedText says how a process ended, as far as that is known: only a program's parent learns its exit status.
func endedText(p *model.Process) string {
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
