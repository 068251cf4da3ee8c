package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// crowd is a run of n processes; the peak of each is larger than that of the one before.
func crowd(n int) *stats.Snapshot {
	s := &stats.Snapshot{Program: "sh", Policy: "futhark"}
	for i := range n {
		p := stats.Process{Number: uint32(i + 1), PID: 5000 + i, Program: fmt.Sprintf("/bin/worker%d", i), State: stats.Exited}
		p.Totals = stats.Totals{Creates: uint64(10 + i), Hits: 3, Misses: 1, PeakInUse: uint64(i+1) << 20}
		s.Processes = append(s.Processes, p)
	}
	return s
}

func summaryText(t *testing.T, s *stats.Snapshot) string {
	t.Helper()
	summary := NewSummary(s)
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSummaryTellsProcessesApart(t *testing.T) {
	s := crowd(3)
	s.Processes[1].State, s.Processes[1].Status = stats.Signaled, 9
	s.Processes[0].Status, s.Processes[0].Orderly = -1, true
	s.Processes[2].Status = -1
	text := summaryText(t, s)
	golden.RequireEqual(t, []byte(text))
	_, table, _ := strings.Cut(text, "  processes\n")
	for line := range strings.Lines(table) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 60 {
			t.Errorf("%d columns, want at most 60: %q", n, line)
		}
	}
	if text := summaryText(t, crowd(1)); strings.Contains(text, "worker0") || strings.Contains(text, "processes") {
		t.Errorf("one process has a line of its own:\n%s", text)
	}
	s, rank := crowd(1), uint64(3)
	s.Processes[0].Rank = &rank
	if title, _, _ := strings.Cut(summaryText(t, s), "\n"); !strings.HasSuffix(title, " s (rank 3)") {
		t.Errorf("a rank alone: %q", title)
	}
}

// The largest are listed, whatever their number, and the rest is counted.
func TestProcessListsAreBounded(t *testing.T) {
	for _, n := range []int{20, 21, 300, 4096} {
		text := summaryText(t, crowd(n))
		if got := strings.Count(text, "worker"); got != 20 {
			t.Errorf("%d processes: lists %d:\n%s", n, got, text)
		}
		more := fmt.Sprintf("and %d more\n", n-20)
		if strings.Contains(text, more) != (n > 20) {
			t.Errorf("%d processes: want %q only where some are left out:\n%s", n, more, text)
		}
		if largest := fmt.Sprintf("worker%d\n", n-1); !strings.Contains(text, largest) {
			t.Errorf("%d processes: leaves out the largest:\n%s", n, text)
		}
	}
}

// TestSummaryHasWhatAProcessLeft: a process left a buffer, and another one, which released all, ended later.
func TestSummaryHasWhatAProcessLeft(t *testing.T) {
	s := crowd(2)
	rank := uint64(3)
	s.Processes[0].Rank = &rank
	s.Processes[0].Totals.LiveBuffers, s.Processes[0].Tags = 2, []stats.Tag{{Name: "x.c:7 load", Live: 2, InUse: 1 << 20}}
	if text, want := summaryText(t, s), "  leaked     2 buffers (1.00 MiB) never released, all in rank 3 (pid 5000)\n             2 (1.00 MiB) at x.c:7 load\n"; !strings.Contains(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
	s.Processes[0].Totals.LiveBuffers, s.Processes[0].Tags = 0, nil
	if text := summaryText(t, s); strings.Contains(text, "leaked") {
		t.Errorf("nothing is left:\n%s", text)
	}
}
