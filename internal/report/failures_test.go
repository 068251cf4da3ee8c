package report

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// refusals is a run with creates that worked and failures by status; those with status 0 are not counted apart.
func refusals(creates uint64, failures ...stats.StatusCount) *stats.Snapshot {
	s := &stats.Snapshot{Policy: "futhark", Processes: []stats.Process{{State: stats.Exited}}, Totals: stats.Totals{Creates: creates, Hits: creates}}
	for i, f := range failures {
		s.Totals.Failures += f.Count
		if f.Status != 0 {
			s.Totals.FailedWith[i] = f
		}
	}
	return s
}

// Creates and those of them that failed add up, and the codes have names, in all texts.
func TestFailuresText(t *testing.T) {
	status := func(status int32, count uint64) stats.StatusCount {
		return stats.StatusCount{Status: status, Count: count}
	}
	for _, test := range []struct {
		snapshot             *stats.Snapshot
		count, how, statuses string
	}{
		{refusals(0, status(-61, 1)), "1 create", "it failed", "1 with CL_INVALID_BUFFER_SIZE (-61)"},
		{refusals(0, status(-37, 2)), "2 creates", "all of them failed", "2 with CL_INVALID_HOST_PTR (-37)"},
		{refusals(9, status(-4, 1)), "10 creates", "1 of them failed", "1 with CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)"},
		{refusals(0, status(wire.ReturnedNULL, 2)), "2 creates", "all of them failed", "2 with NULL"},
		{
			refusals(1, status(-13, 1), status(-61, 2), status(-1234, 3), status(-30, 1), status(0, 2)), "10 creates", "9 of them failed",
			"3 with -1234, 2 with CL_INVALID_BUFFER_SIZE (-61), 1 with CL_MISALIGNED_SUB_BUFFER_OFFSET (-13), 3 with others",
		},
	} {
		number, _, _ := strings.Cut(test.count, " ")
		report := textOf(t, WriteText, &analysis.Analysis{Snapshot: test.snapshot}, Options{})
		for want, text := range map[string]string{
			"\n  creates    " + number + ", " + test.how + ": " + test.statuses + "\n":                           writtenText(t, NewSummary(test.snapshot)),
			"\n  creates    " + number + " (" + test.how + "), 0 releases\n             " + test.statuses + "\n": writtenText(t, NewWatchSummary(test.snapshot, 0)),
			"creates      " + number + " (" + test.how + ", 0 never eligible), 0 releases\n":                     report,
			"\nfailed with  ": report,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
	noCode := NewSummary(refusals(0, status(wire.ReturnedNULL, 2)))
	var figures bytes.Buffer
	if err := noCode.WriteJSON(&figures); err != nil || !strings.Contains(figures.String(), "\"status\": null,\n      \"name\": \"NULL\"") {
		t.Errorf("%v: no null in %s", err, figures.String())
	}
	if text := writtenText(t, NewSummary(refusals(1))); strings.Contains(text, "failed") {
		t.Errorf("nothing failed in\n%s", text)
	}
}

// Sub-buffers are neither requests nor memory that no pool serves.
func TestCreatesOfParts(t *testing.T) {
	for want, all := range map[string]uint64{"6 (0 failed, 1 never eligible), 5 releases": 6, "10 (0 failed, 1 never eligible, 4 without memory of their own), 5 releases": 10} {
		if got := createsAndReleasesText(&stats.Totals{Creates: all, Hits: 2, Misses: 2, Alternative: 1, Unpooled: 1, Releases: 5}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func writtenText(t *testing.T, summary Summary) string {
	t.Helper()
	var b bytes.Buffer
	if err := summary.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCallersOfFailuresAreOffered: a function that several callers fail through is proposed as a wrapper, once.
func TestCallersOfFailuresAreOffered(t *testing.T) {
	s := refusals(1)
	s.FailedCalls = []stats.FailedCall{
		{Call: "create of a buffer", Tag: "a.c:1 make", Wrapper: "make", Status: -61, Count: 3, Create: true},
		{Call: "create of an image", Tag: "a.c:1 make", Wrapper: "make", Status: -39, Count: 1, Create: true},
		{Call: "clCreateKernel", Tag: "b.c:1 main", Status: -46, Count: 1},
	}
	s.PostMortems = []stats.PostMortem{{Call: "create of a buffer", Tag: "c.c:7 get", Wrapper: "get", Status: -4}}
	s.FailedCalls[2].Who = "rank 3 (pid 12)"
	if who := NewSummary(s).FailedCalls[2].Who; who != "rank 3 (pid 12)" {
		t.Errorf("in JSON: %q", who)
	}
	text := writtenText(t, NewSummary(s))
	for _, want := range []string{
		"             several callers come there: --wrapper '^make$' names call sites after them\n",
		"             call site c.c:7 get (--wrapper '^get$' names its callers)\n",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("not once %q in\n%s", want, text)
		}
	}
	s.FailedCalls[0].Wrapper, s.FailedCalls[1].Wrapper, s.PostMortems[0].Wrapper = "", "", ""
	if text := writtenText(t, NewSummary(s)); strings.Contains(text, "--wrapper") {
		t.Error(text)
	}
}
