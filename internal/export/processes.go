package export

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

const (
	topProcesses = 20 // lines for processes in the short text, which fit 60 columns
	programWidth = 15 // of a program's name there
)

// processLines tell processes apart where there are several: a line for each of the largest, by peak,
// with what a pool has served it if there is one.
func processLines(s *model.Snapshot, pool bool) []string {
	if len(s.Processes) < 2 {
		return nil
	}
	processes, left := plain.Top(plain.ProcessesByPeak(s.Processes), topProcesses)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	rate := ""
	if pool {
		rate = "hit rate\t"
	}
	fmt.Fprintf(w, "pid\tcreates\t%speak\tended\t  program\n", rate)
	for _, p := range processes {
		t := &p.Totals
		if pool {
			rate = plain.Percent(t.HitRate(), t.Hits+t.Misses) + "\t"
		}
		fmt.Fprintf(w, "%d\t%d\t%s%s\t%s\t  %s\n", p.PID, t.Creates, rate,
			size.Format(t.PeakInUse), plain.Ended(p), plain.Cut(plain.ProgramName(p.Program), programWidth))
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
