package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const pageLines = 16

func TestPostMortemText(t *testing.T) {
	const mib = 1 << 20
	p := stats.PostMortem{
		Time: 5_000_000_000, Age: 4_000_000_000, PID: 7, Call: "clEnqueueNDRangeKernel", Command: true, Kernel: "step\x1b[31m",
		Status: -5, Tag: "a.c:9 weights", At: "a.c:20 train", Given: 64 << 10, First: true, Repeats: 3, InUse: 900 * mib, Requested: 800 * mib, Cached: 1, Cooling: 2, SlabFree: 3,
		Buffers: 12, Others: 5 * mib, MoreHolders: 1, Grew: "a.c:9 weights", GrewBytes: 400 * mib, UsesKnown: true,
		Idle: stats.Part{Buffers: 2, Bytes: 3 * mib}, Untouched: stats.Part{Buffers: 1, Bytes: mib}, GivenBack: stats.Part{Buffers: 4, Bytes: 8 * mib},
		LargestCreated: 64 * mib, Movable: 800 * mib, Device: stats.Device{Global: 1000 * mib, Largest: 250 * mib}, Verdict: stats.VerdictFull,
		Holders: []stats.Holder{
			{Tag: "a.c:9 weights", Part: stats.Part{Buffers: 9, Bytes: 700 * mib}, Oldest: 3_000_000_000, Newest: 1_000_000},
			{Tag: "b.c:3 scratch", Part: stats.Part{Buffers: 1, Bytes: 100 * mib}, Oldest: 2_000_000, Newest: 2_000_000},
			{Tag: "c.c:3", Part: stats.Part{Buffers: 1, Bytes: 60 * mib}}, {Tag: "d.c:3", Part: stats.Part{Buffers: 1, Bytes: 40 * mib}},
		},
	}
	text := NewPostMortem(&p, 1_000_000_000).String()
	if n := strings.Count(text, "\n"); n > pageLines {
		t.Errorf("%d lines", n)
	}
	golden.RequireEqual(t, text)
}

// TestPostMortemOfSeveralDevices: no sentence says what is true of one device alone.
func TestPostMortemOfSeveralDevices(t *testing.T) {
	p := stats.PostMortem{
		Call: "create of a buffer", Status: -4, Size: 1 << 20, InUse: 3 << 20, Others: 1 << 20, Devices: 2,
		Device: stats.Device{Global: 4 << 20, Largest: 2 << 20, Devices: 2},
	}
	text := NewPostMortem(&p, 0).String()
	p.Verdict, p.Size = stats.VerdictTooLarge, 3<<20
	text += NewPostMortem(&p, 0).String()
	for _, want := range []string{
		"unknown: 4.00 MiB are reserved on 2 devices together, and one of them has 4.00 MiB\n",
		"try        a smaller problem, or fewer buffers on one device; gpumemtop advise",
		"device     one of 2 has 4.00 MiB, at most 2.00 MiB in one buffer; other",
		"the 2 devices allow at most 2.00 MiB at once\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// No page puts more memory "of" a device than it has: with --spill a program may hold more.
func TestVerdictOfMoreThanTheDeviceHas(t *testing.T) {
	const kib = 1 << 10
	for name, test := range map[string]struct {
		p             stats.PostMortem
		verdict, says string // in the page
	}{
		"spilled": {
			stats.PostMortem{InUse: 1000 * kib, Buffers: 16, Spilling: true, Resident: 64 * kib, Spilled: 900 * kib, Verdict: stats.VerdictFull},
			"full: 64.0 KiB of 96.0 KiB are reserved, 900.0 KiB are spilled to the host",
			"1000.0 KiB in use by 16 buffers: 64.0 KiB on the device, 900.0 KiB spilled to the host\n",
		},
		"nothing spilled": {
			stats.PostMortem{InUse: 90 * kib, Buffers: 1, Spilling: true, Resident: 40 * kib, Others: 10 * kib, Verdict: stats.VerdictNotMemory},
			"probably not memory: only 50.0 KiB of 96.0 KiB are reserved", "40.0 KiB on the device, 0 B spilled to the host\n",
		},
		"the driver gives more": {
			stats.PostMortem{InUse: 90 * kib, Buffers: 1, Others: 7 * kib, Verdict: stats.VerdictFull},
			"full: 97.0 KiB are reserved, the device has 96.0 KiB", ": 90.0 KiB reserved\n",
		},
	} {
		test.p.Device.Global = 96 * kib
		if got := failureVerdictText(&test.p); got != test.verdict {
			t.Errorf("%s: %q", name, got)
		}
		if got := NewPostMortem(&test.p, 0).String(); !strings.Contains(got, test.says) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// A buffer that is a little too large does not look as large as the device allows.
func TestTooLargeLooksLarger(t *testing.T) {
	p := stats.PostMortem{Call: "create of a buffer", Status: -61, Size: 8<<30 + 4096, Device: stats.Device{Largest: 8 << 30}, Verdict: stats.VerdictTooLarge}
	if got := failedCallText(&p); got != "create of a buffer of 8.000004 GiB failed with CL_INVALID_BUFFER_SIZE (-61)" {
		t.Error(got)
	}
	if got := failureVerdictText(&p); !strings.HasSuffix(got, "the device allows 8.000000 GiB at once") {
		t.Error(got)
	}
}

// Why a program was killed is the first thing that its page says, and what it held is no leak.
func TestKilledInHTML(t *testing.T) {
	run := []wire.Record{
		{Process: 1, Thread: 1, Event: wire.Event{
			Kind: wire.KindCreate, Time: randomrun.Start, Outcome: wire.OutcomeMiss, Object: 1, Link: 1, Size: 4096, Granted: 4096, Tag: 1,
		}},
		{Process: 1, Event: wire.ExitFields{Time: randomrun.Start + 9, Status: 137}.Event()},
	}
	a, err := analysis.Analyse(&randomrun.Tape{Records: run}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var html bytes.Buffer
	if err := WriteHTML(&html, a, Options{}); err != nil {
		t.Fatal(err)
	}
	page := html.String()
	if at, next := strings.Index(page, `<section id="failures">`), strings.Index(page, `<section id="findings">`); at < 0 || next < at {
		t.Errorf("the failure is at %d, the findings at %d", at, next)
	}
	if strings.Contains(page, "<dt>leaked") || !strings.Contains(page, "<dt>held at exit</dt>") {
		t.Errorf("what it held is a leak:\n%s", page[strings.Index(page, "Key figures"):][:800])
	}
}

// TestKilledBesideALeak: where one process leaks, what another held that was killed is no leak.
func TestKilledBesideALeak(t *testing.T) {
	var run []wire.Record
	for i, status := range []int16{137, 0} {
		process, size := uint32(i+1), uint64(4096)<<i
		run = append(run, wire.Record{Process: process, Thread: 1, Event: wire.Event{
			Kind: wire.KindCreate, Time: randomrun.Start, Outcome: wire.OutcomeMiss, Object: 1, Link: 1, Size: size, Granted: size, Tag: 1,
		}}, wire.Record{Process: process, Event: wire.ExitFields{Time: randomrun.Start + 9, Status: status}.Event()})
	}
	tape := &randomrun.Tape{Records: run}
	a, err := analysis.Analyse(tape, analysis.Options{Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	d := NewData(a)
	leaked := figures.Leaked.ValueOf(figures.SubjectOfRecording(a)).Exact
	if len(d.Leaks) != 1 || d.Leaks[0].Bytes != 8192 || len(d.Summary.Leaks) != 1 || d.Summary.Leaks[0].Bytes != 8192 || d.HeldAtExit || leaked != 8192 {
		t.Errorf("%+v, %+v, leaked %d", d.Leaks, d.Summary.Leaks, leaked)
	}
	if text := strings.Join(leakLines(a.Snapshot), "\n"); !strings.Contains(text, "1 buffer (8.00 KiB) never released") {
		t.Error(text)
	}
	tape.Records = run[:2] // held by one that was killed
	if a, err = analysis.Analyse(tape, analysis.Options{Whole: true}); err != nil || figures.Leaked.ValueOf(figures.SubjectOfRecording(a)).Exact != 0 || len(a.Leaks) != 1 {
		t.Errorf("%v, leaked %v", err, a.Leaks)
	}
}

func TestFullAdvice(t *testing.T) {
	const spill = "--spill, which lets idle buffers wait in host memory; gpumemtop advise shows which could share memory"
	full := func(movable uint64) *stats.PostMortem {
		return &stats.PostMortem{
			Verdict: stats.VerdictFull, InUse: 20 << 20, Movable: movable, Size: 2 << 20, Device: stats.Device{Global: 20 << 20},
		}
	}
	leak, svm, busy := full(20<<20), full(0), full(0)
	leak.Grew, svm.Grew, busy.Spilling = "a.c:9 make", "a.c:9 make", true
	for want, p := range map[string]*stats.PostMortem{
		spill: full(2 << 20),
		"a smaller problem: --spill could move only 1.00 MiB of it":                                                         full(1 << 20),
		"release what a.c:9 make keeps, if it is needed no more; else --spill, which lets idle buffers wait in host memory": leak,
		"release what a.c:9 make keeps, if it is needed no more; else a smaller problem: --spill could move none of it":     svm,
		"a smaller problem; gpumemtop fit says how much is enough; gpumemtop advise shows which could share memory":         busy,
	} {
		if got := failureAdviceText(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Whatever fails, and whenever, the page is short, and a report of the run shows it.
func TestPostMortemOfAnyRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := randomrun.DrawRun(t, randomrun.Options{})
		device := wire.DeviceFields{
			Device: 1, Memory: rapid.Uint64Range(0, 1<<24).Draw(t, "memory"), LargestAlloc: rapid.Uint64Range(0, 1<<22).Draw(t, "largest"),
		}.Record([]byte("card\x001\x00"))
		device.Time, device.Process, device.Thread = randomrun.Start, 1, 1
		run = append([]wire.Record{device}, run...)
		for range rapid.IntRange(1, 8).Draw(t, "failures") {
			at := rapid.IntRange(1, len(run)).Draw(t, "at")
			status := rapid.SampledFrom([]int16{-4, -5, -6, -40, -61, -30}).Draw(t, "status")
			failed := wire.Record{Process: 1, Thread: 1, Event: wire.CreateFields{
				Outcome: wire.OutcomeFailed, Status: status, Scope: 1, Tag: 1, Requested: rapid.Uint64().Draw(t, "size"),
				Memory: wire.Memory(rapid.IntRange(0, 9).Draw(t, "memory")),
			}.Event()}
			if rapid.Bool().Draw(t, "command") {
				failed = wire.DiagFields{Diag: wire.DiagOutOfMemory, Status: status}.Record([]byte("clFinish"))
				failed.Process, failed.Thread = 1, 1
			}
			failed.Time = run[at-1].Time
			run = append(run[:at:at], append([]wire.Record{failed}, run[at:]...)...)
		}
		a, err := analysis.Analyse(&randomrun.Tape{Records: run}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range a.Snapshot.PostMortems {
			if page := NewPostMortem(&a.Snapshot.PostMortems[i], a.Run.Started).String(); strings.Count(page, "\n") > pageLines {
				t.Errorf("too long:\n%s", page)
			}
		}
		var text, html bytes.Buffer
		if err := WriteText(&text, a, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := WriteHTML(&html, a, Options{}); err != nil {
			t.Fatal(err)
		}
		title := "Memory at failures"
		if slices.ContainsFunc(a.Snapshot.PostMortems, func(p stats.PostMortem) bool { return p.MayLackMemory() }) {
			title = "Out of memory"
		}
		shown := strings.Contains(text.String(), strings.ToUpper(title)) && strings.Contains(html.String(), title)
		if shown != (len(a.Snapshot.PostMortems) > 0) {
			t.Errorf("shown %v, there are %d", shown, len(a.Snapshot.PostMortems))
		}
		if shown && strings.Contains(text.String(), "nothing was found") {
			t.Errorf("a failure is nothing:\n%s", text.String())
		}
	})
}

func TestLatelyText(t *testing.T) {
	for want, l := range map[string]stats.Lately{
		"":                                     {NS: 1e7, Bytes: 4 << 20},
		"none of it was used in the last 10ms": {NS: 1e7},
		"at most 1.00 MiB of it was used in the last 10ms, as long as an iteration takes": {NS: 1e7, Bytes: 1 << 20, Iteration: true},
	} {
		if got := usedLatelyText(&l, 4<<20, units.FormatLong); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
