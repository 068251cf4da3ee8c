package ui

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func mistaken(s *stats.Snapshot) *stats.Snapshot {
	s.Findings = []stats.Finding{
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
	const latest = "✗ double release at make_tmp · stale read at staging"
	s := mistaken(sampleSnapshot())
	shows(t, newTest((&calls{}).options(), 160, 36, s), latest, "2 MISTAKES")
	for _, size := range [][2]int{{80, 24}, {60, 12}} {
		shows(t, newTest((&calls{}).options(), size[0], size[1], s), "2 MISTAKES")
	}
	s.OtherFindings = 1
	shows(t, newTest((&calls{}).options(), 120, 36, s), "OVER 2 MISTAKES")
}

// A mark for a mistake says less than the mistake itself; other messages come first while they are new.
func TestMistakesAndOtherMessages(t *testing.T) {
	s := mistaken(sampleSnapshot())
	s.Findings[1].First, s.Findings[1].Last = s.Time, s.Time
	s.Marks = []stats.Mark{{Time: s.Time, Kind: wire.KindDiag, Text: "stale read: clEnqueueReadBuffer"}}
	shows(t, newTest((&calls{}).options(), 120, 36, s), "✗ double release at make_tmp")
	s.Marks = append(s.Marks, stats.Mark{Time: s.Time - 1, Kind: wire.KindDiag, Text: "panic: core failed"})
	shows(t, newTest((&calls{}).options(), 120, 36, s), "• panic: core failed")
}

// Who sent SIGKILL is not known: memory was short where the kernel says so.
func TestKilledIsNotOutOfMemory(t *testing.T) {
	s := sampleSnapshot()
	s.PostMortems = []stats.PostMortem{{Time: s.Time, Call: "SIGKILL", Command: true, PID: 7, Verdict: stats.VerdictKilled, OOMKillsNumber: 1}}
	d := newTest((&calls{}).options(), 160, 36, s)
	shows(t, d, "SIGKILL ended process 7")
	hides(t, d, "OUT OF MEMORY", "CALL FAILED")
	s.PostMortems[0].OOMKillsNumber = 2
	shows(t, newTest((&calls{}).options(), 160, 36, s), "OUT OF MEMORY")
	s.PostMortems[0] = stats.PostMortem{Time: s.Time, Call: "create of a buffer", Size: 1 << 40, Status: -61, Verdict: stats.VerdictTooLarge}
	d = newTest((&calls{}).options(), 160, 36, s)
	shows(t, d, "CALL FAILED")
	hides(t, d, "OUT OF MEMORY")
}

// The first failure for lack of memory stays on the screen, before what follows from it.
func TestOutOfMemoryIsShown(t *testing.T) {
	s := mistaken(sampleSnapshot())
	s.PostMortems = []stats.PostMortem{
		{
			Time: s.Time, Call: "create of a buffer", Size: 64 * mib, Status: -4, Tag: "grow.c:12 step", InUse: 960 * mib,
			Verdict: stats.VerdictFull,
		},
		{Time: s.Time, Call: "clFinish", Command: true, Status: -5},
	}
	s.Marks = []stats.Mark{{Time: s.Time, Kind: wire.KindDiag, Text: "out of memory: create of a buffer"}}
	const first = "✗ create of a buffer of 64.0 MiB failed · clFinish failed · "
	shows(t, newTest((&calls{}).options(), 160, 36, s), first, "OUT OF MEMORY")
	for _, size := range [][2]int{{80, 24}, {60, 12}} {
		shows(t, newTest((&calls{}).options(), size[0], size[1], s), "OUT OF MEMORY")
	}
	d := newTest((&calls{}).options(), 80, 24, s)
	press(d, "m")
	shows(t, d, "post-mortem of 2 failures", "create of a buffer failed", "verdict    full", "held by    grow.c:12 step", "clFinish failed")
	small := newTest((&calls{}).options(), 60, 12, s)
	press(small, "m", "G")
	shows(t, small, "clFinish failed")
	press(small, "g")
	shows(t, small, "create of a buffer failed", "below")
	press(d, "m")
	if strings.Contains(screen(d), "smaller buffers") {
		t.Error("the same key does not close the pane")
	}
	s.Marks = nil
	s.PostMortems = []stats.PostMortem{{
		Time: s.Time - 60e9, Call: "clEnqueueNDRangeKernel", Kernel: "blur", Command: true, Status: -5, Verdict: stats.VerdictNotMemory,
	}}
	shows(t, newTest((&calls{}).options(), 160, 36, s), "✗ clEnqueueNDRangeKernel of blur failed · ")
}

// TestLostEventsAreSaid: the last line does not deny what the first one says.
func TestLostEventsAreSaid(t *testing.T) {
	s := sampleSnapshot()
	s.Lost = 40303
	d := newTest((&calls{}).options(), 120, 36, s)
	shows(t, d, "LOST 40 303 events", "events, 40 303 lost")
	hides(t, d, "none lost")
}

// TestBeforeTheFirstCreate: a screen that is frozen at that moment has the device, and the scale of what the chart shows.
func TestBeforeTheFirstCreate(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	d.freezeAt(&stats.Snapshot{Policy: "futhark", Started: d.live.Started, Time: d.live.Started + 1})
	hides(t, d, "of the device is not known", "│      ┤")
	shows(t, d, "16.0G free of 16.0G", "0┤")
}
