package ui

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func mistaken(s *model.Snapshot) *model.Snapshot {
	s.Findings = []model.Finding{
		{
			Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Tag: "blur.c:88 make_tmp", Count: 3, Size: mib,
			First: s.Time - 60e9, Last: s.Time - 1e9,
		},
		{
			Kind: wire.DiagStaleRead, Function: "clEnqueueReadBuffer", Tag: "io.c:12 staging", Count: 1, Size: mib,
			First: s.Time - 50e9, Last: s.Time - 50e9,
		},
	}
	return s
}

func TestMistakesAreShown(t *testing.T) {
	const latest = "! 2 mistakes, the latest: double release: clReleaseMemObject of a 1.00M buffer created at blur.c:88 make_tmp (3 times)"
	s := mistaken(sampleSnapshot())
	if got := screen(newTest((&calls{}).options(), 160, 36, s)); !strings.Contains(got, latest) || !strings.Contains(got, "2 MISTAKES") {
		t.Errorf("no mistakes on\n%s", got)
	}
	for _, size := range [][2]int{{80, 24}, {60, 12}} {
		if got := screen(newTest((&calls{}).options(), size[0], size[1], s)); !strings.Contains(got, "2 MISTAKES") {
			t.Errorf("no mistakes on\n%s", got)
		}
	}
	s.OtherFindings = 1
	if got := screen(newTest((&calls{}).options(), 120, 36, s)); !strings.Contains(got, "over 2 mistakes") {
		t.Errorf("no word of others on\n%s", got)
	}
}

// A mark for a mistake says less than the mistake itself; other messages come first while they are new.
func TestMistakesAndOtherMessages(t *testing.T) {
	s := mistaken(sampleSnapshot())
	s.Findings[1].First, s.Findings[1].Last = s.Time, s.Time
	s.Marks = []model.Mark{{Time: s.Time, Kind: wire.KindDiag, Text: "stale read: clEnqueueReadBuffer"}}
	if got := screen(newTest((&calls{}).options(), 120, 36, s)); !strings.Contains(got, "2 mistakes, the latest: stale read: clEnqueueReadBuffer reads") {
		t.Errorf("no mistakes on\n%s", got)
	}
	s.Marks = append(s.Marks, model.Mark{Time: s.Time - 1, Kind: wire.KindDiag, Text: "panic: core failed"})
	if got := screen(newTest((&calls{}).options(), 120, 36, s)); !strings.Contains(got, "! panic: core failed") {
		t.Errorf("no panic on\n%s", got)
	}
}
