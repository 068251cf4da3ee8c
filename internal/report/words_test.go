package report

import (
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestPolicyNamesTheLowerLimit names the lower of both limits on what is cached.
func TestPolicyNamesTheLowerLimit(t *testing.T) {
	s := &stats.Snapshot{Policy: "pow2", Device: stats.Device{Global: 512 << 20}, Limits: []stats.Limit{
		{Name: "max_cached_bytes", Value: 512 << 20}, {Name: "max_cached_fraction", Value: 0.25},
	}}
	if got, want := policyText(s), "pow2, at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Change.Former = []string{"futhark", "slab"}
	if got, want := policyText(s), "pow2 (before that futhark, slab), at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Auto = &stats.Auto{Steers: true}
	if got, want := policyText(s), "auto: pow2 (before that futhark, slab), at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Auto.Steers = false; strings.Contains(policyText(s), "auto") {
		t.Errorf("%q, but the policy was changed", policyText(s))
	}
	carves := &stats.Snapshot{Policy: "slab", WholeBlocks: "why"}
	if got, want := policyText(carves), "slab; no sub-allocations: why"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if carves.Policy = "futhark"; policyText(carves) != "futhark" {
		t.Errorf("%q, but futhark makes none", policyText(carves))
	}
	forged := policyText(&stats.Snapshot{Policy: "slab\x1b[2J\n", Change: stats.PolicyChange{Former: []string{"\x1b]0;title\a"}}})
	if strings.ContainsAny(forged, "\x1b\n\a") {
		t.Errorf("%q reaches the terminal", forged)
	}
	if got := policyText(&stats.Snapshot{}); got != "unknown" {
		t.Errorf("%q", got)
	}
}

// Hazards are releases whose blocks a pool held back: without a pool there is nothing to count.
func TestHazardsNeedAPool(t *testing.T) {
	a := analysed(t, "testdata/churn.gmt")
	for want, count := range map[string]uint64{
		"hazards      0 blocks held back until commands that used them had ended\n": 0,
		"hazards      1 block held back until commands that used them had ended\n":  1,
	} {
		a.Snapshot.Totals.HazardsAvoided = count
		if text := textOf(t, WriteText, a, Options{All: true}); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	a.Run.Header.Policy, a.Snapshot.Totals.HazardsAvoided = "none", 0
	if text := textOf(t, WriteText, a, Options{All: true}); strings.Contains(text, "hazards") {
		t.Errorf("hazards without a pool:\n%s", text)
	}
}

// TestRecycledAddresses: a line names the recycled memory whose exposure is not watched.
func TestRecycledAddresses(t *testing.T) {
	for want, kinds := range map[string][]stats.Kind{
		"not watched 5 recycled allocations of SVM or USM, which": {{Memory: wire.MemorySVM, Share: stats.Share{Hits: 2}}, {Memory: wire.MemoryUSMShared, Share: stats.Share{Hits: 3}}},
		"": {{Memory: wire.MemoryBuffer, Share: stats.Share{Hits: 2}}, {Memory: wire.MemorySVM, Share: stats.Share{Misses: 3}}},
	} {
		a := &analysis.Analysis{Snapshot: &stats.Snapshot{Kinds: kinds, Totals: stats.Totals{Creates: 1}, Processes: []stats.Process{{}}}}
		text := strings.Join(strings.Fields(textOf(t, WriteText, a, Options{All: true})), " ")
		if !strings.Contains(text, want) || strings.Contains(text, "not watched") != (want != "") {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

// One of a thing is no plural.
func TestOneOfAThing(t *testing.T) {
	a := analysed(t, "testdata/churn.gmt")
	a.Snapshot.Unknown = 1
	text := textOf(t, WriteText, a, Options{All: true})
	for _, want := range []string{"unknown      1 event about unknown objects\n", " in 1 create and 1 release; "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// A speed is that of the bytes that were timed, and a map need not move any.
func TestSpeeds(t *testing.T) {
	f := stats.Flow{Calls: 21, Bytes: 84 << 20, Profiled: 20, ProfiledBytes: 80 << 20, ProfiledNS: 2_000_000}
	if got, want := transferSpeedText(&f), " at 39.1 GiB/s, as far as profiled (80.0 MiB)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	a := analysed(t, "testdata/churn.gmt")
	a.Snapshot.Transfers = stats.Transfers{Sites: []stats.TransferSite{{Name: "here", Command: wire.CommandMap}}}
	for d, shown := range map[stats.Direction]bool{stats.ToHost: true, stats.Mapped: false} {
		all := &a.Snapshot.Transfers.Directions
		clear(all[:])
		all[d] = stats.Flow{Calls: 1, Bytes: 1 << 30, Blocking: 1, TimedBytes: 1 << 30, NS: 1e9}
		if text := textOf(t, WriteText, a, Options{All: true}); strings.Contains(text, "≥ 1.0 GiB/s") != shown {
			t.Errorf("direction %d: a speed, want %t, in\n%s", d, shown, text)
		}
	}
}

// A sentence about what happened keeps its beginning.
func TestWhatHappenedIsCutAtItsEnd(t *testing.T) {
	a := analysed(t, "testdata/churn.gmt")
	a.Snapshot.Marks = []stats.Mark{{Kind: wire.KindDiag, Text: "forked: forked after its first OpenCL call; the child is not watched unless it executes a program"}}
	if text := textOf(t, WriteText, a, Options{All: true}); !strings.Contains(text, "  diag  forked: forked after its first OpenCL call; the child is not watched unless ") {
		t.Errorf("not at its end:\n%s", text)
	}
}

func TestAlternativeText(t *testing.T) {
	a := analysed(t, "testdata/churn.gmt")
	const want = "besides, an experiment's alternative served 7 requests"
	if text := textOf(t, WriteText, a, Options{All: true}); strings.Contains(text, "alternative") {
		t.Errorf("an alternative without an experiment:\n%s", text)
	}
	a.Snapshot.Totals.Alternative = 7
	if text := textOf(t, WriteText, a, Options{All: true}); !strings.Contains(text,
		"the experiment's alternative decided on 7, which are") {
		t.Errorf("call sites do not say which creates have no hit rate:\n%s", text)
	}
	if text := textOf(t, WriteText, a, Options{All: true}); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// Of the phases in which nothing repeats, the report has only those in which more was in use than in all that repeat.
func TestSmallPhasesAreLeftOut(t *testing.T) {
	a := analysed(t, "testdata/churn.gmt")
	a.Phases = []analysis.Phase{
		{End: 1, PeakInUse: 300 << 20}, {Start: 1, End: 2, Iterations: 7, PeakInUse: 200 << 20}, {Start: 2, End: 3, PeakInUse: 100 << 20},
	}
	text := textOf(t, WriteText, a, Options{All: true})
	_, text, _ = strings.Cut(text, "\nPHASES\n")
	text, _, _ = strings.Cut(text, "\n\n")
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, "300.0M") || !strings.Contains(text, "200.0M") {
		t.Errorf("%s\nwant the heading and the first two", text)
	}
}

// Sizes that differ look different.
func TestMemoryText(t *testing.T) {
	a := analysed(t, "testdata/churn.gmt")
	a.Snapshot.Totals.PeakInUse, a.Snapshot.Totals.PeakReserved, a.Snapshot.Lost = 20<<20-16<<10, 20<<20, 1
	if got, want := mostInUseText(figures.SubjectOfRecording(a)), "peak ~19.98 MiB in use (at most ~4.00 KiB requested), ~20.00 MiB reserved"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p := &stats.PostMortem{InUse: 20<<20 - 16<<10, Device: stats.Device{Global: 20 << 20}}
	if got, want := reservedOfDeviceText(p), "19.98 MiB of 20.00 MiB are reserved"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Names of call sites keep beginning and end in a summary, and those that look the same are numbered.
func TestNamesInSummaries(t *testing.T) {
	long := "error.c:12 create_the_error_of_this_layer_before_the_last"
	tags := []stats.Tag{{Name: "a.c:9 f", PeakInUse: 3 << 20, Creates: 1}, {Name: long, PeakInUse: 2 << 20, Creates: 1}, {Name: "a.c:9 f", PeakInUse: 1 << 20, Creates: 1}}
	s := NewSummary(&stats.Snapshot{Tags: tags})
	lines := s.appendLastLines(nil, func(*stats.Tag) string { return "" })
	want := []string{
		"  top tags   a.c:9 f #1: peak 3.00 MiB, 1 create",
		"             error.c:12 …or_of_this_layer_before_the_last: peak 2.00 MiB, 1 create",
		"             a.c:9 f #2: peak 1.00 MiB, 1 create",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}

func TestHosted(t *testing.T) {
	s := NewSummary(&stats.Snapshot{Hosted: stats.Part{Buffers: 2, Bytes: 3 << 20}})
	want := "  hosted     2 creates (3.00 MiB) got the host's memory, which is slower: the device lacked what the pool wasted"
	if lines := s.appendLastLines(nil, nil); !slices.Contains(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	if s = NewSummary(&stats.Snapshot{}); s.Hosted != nil {
		t.Errorf("%+v", s.Hosted)
	}
}

// TestPeakSaysWhereMemoryWas: what --spill took from the device was not reserved, and without it all of it was.
func TestPeakSaysWhereMemoryWas(t *testing.T) {
	for want, spill := range map[string]*stats.Spill{", on device and host.": {}, ", 2.00 MiB reserved.": nil} {
		a := &analysis.Analysis{Snapshot: &stats.Snapshot{Spill: spill}}
		a.Peak = analysis.Peak{InUse: 1 << 20, Reserved: 2 << 20, Buffers: 1, Tags: []analysis.PeakTag{{Name: "a.c:1 a"}}}
		if s := newView(a, Options{}, true).peakSection(); !strings.HasSuffix(strings.ReplaceAll(s.Intro, "\u202f", " "), want) {
			t.Errorf("%q does not end with %q", s.Intro, want)
		}
	}
}

// TestReasonsOfUnknownLags: a recording that a session wrote has all uses, one that was imported may have none.
func TestReasonsOfUnknownLags(t *testing.T) {
	for want, host := range map[string]string{"never used: ": "a", "unknown: ": ""} {
		a := &analysis.Analysis{Snapshot: &stats.Snapshot{Totals: stats.Totals{Releases: 1}}}
		a.Run.Header.Host, a.Run.Header.Version = host, recording.Version
		if s := newView(a, Options{}, false).lagSection(); len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], want) {
			t.Errorf("%q, want %q", s.Notes, want)
		}
	}
}

// Exposed buffers get a line where new memory was zero.
func TestExposedNeedsZeroMemory(t *testing.T) {
	s := NewSummary(&stats.Snapshot{Totals: stats.Totals{Exposed: 3, ExposedNewZero: 3}})
	want := "  exposed    kernels were the first to use 3 recycled buffers, which nothing had written; the driver's new memory was zero (gpumemtop compare --outputs)"
	if lines := s.appendLastLines(nil, nil); !slices.Contains(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	s = NewSummary(&stats.Snapshot{Totals: stats.Totals{Exposed: 3, ExposedNewZero: 3, LiveBuffers: 1}}) // which may be exposed as well
	if lines := s.appendLastLines(nil, nil); !slices.Contains(lines, strings.Replace(want, "use 3", "use at least 3", 1)) {
		t.Errorf("%q, want at least 3", lines)
	}
	run := &stats.Snapshot{Totals: stats.Totals{Exposed: 3}, Tags: []stats.Tag{{Name: "a.c:1 a", Exposed: 1}, {Name: "b.c:2 b"}, {Name: "c.c:3 c", Exposed: 2}}}
	want = "3 recycled buffers that kernels were the first to use and may read: 2 of c.c:3 c, 1 of a.c:1 a; trials show that new memory would have been zero for 0 of them"
	if got := exposedBuffersText(run); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	more := &stats.Snapshot{Totals: stats.Totals{Exposed: 8}, Tags: append([]stats.Tag{{Name: "d.c:4 d", Exposed: 2}, {Name: "e.c:5 e", Exposed: 3}}, run.Tags...)}
	want = "8 recycled buffers that kernels were the first to use and may read: 3 of e.c:5 e, 2 of d.c:4 d, 2 of c.c:3 c, and 1 of others; trials show that new memory would have been zero for 0 of them"
	if got := exposedBuffersText(more); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s = NewSummary(&stats.Snapshot{Totals: run.Totals}) // new memory was not zero
	if lines := s.appendLastLines(nil, nil); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
}

func TestEnded(t *testing.T) {
	for want, p := range map[string]stats.Process{
		"running": {}, "signal 9": {State: stats.Signaled, Status: 9}, "status 7": {State: stats.Exited, Status: 7},
		"exited": {State: stats.Exited, Status: -1, Orderly: true}, "unknown": {State: stats.Exited, Status: -1},
	} {
		if got := howProcessEndedText(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTouchesText(t *testing.T) {
	for want, touches := range map[string]stats.Touches{
		"about 2ms saved in first writes to new memory (estimated from 3 new and 4 reused buffers of this run)":                                           {NS: 2e6, Hits: 9, Fresh: 3, Reused: 4},
		"about 0s saved in first writes to new memory (estimated from 3 new and 4 reused buffers of this run, for the sizes of 5 of the creates avoided)": {Hits: 5, Fresh: 3, Reused: 4},
		"about 2ms saved in first writes to new memory (by the probe of a card)":                                                                          {NS: 2e6, Hits: 9, Device: "a card"},
	} {
		if got := savedTouchesText(&stats.Totals{Hits: 9, SavedTouches: touches}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSavedText(t *testing.T) {
	for want, totals := range map[string]stats.Totals{
		"4 creates, 0 avoided": {DriverCreates: 4},
		"1 create, 5 avoided, 4 served by new sub-buffers (--measure measures what that gains)": {DriverCreates: 1, Hits: 9, SubBufferHits: 4},
		"0 creates, 9 avoided (--measure measures what that gains)":                             {Hits: 9},
		"0 creates, 9 avoided: about 1ms saved in creates (estimated; releases and first touches not counted: gpumemtop compare measures the whole gain)": {
			Hits: 9, Saved: stats.SavedCalls{NS: 1e6},
		},
		"0 creates, 9 avoided: about 1ms saved in driver calls (estimated; first touches not counted: gpumemtop compare measures the whole gain)": {
			Hits: 9, Saved: stats.SavedCalls{NS: 1e6, Releases: true},
		},
		"0 creates, 9 avoided: about 2ms saved in first writes to new memory (by the probe of a card)": {
			Hits: 9, SavedTouches: stats.Touches{NS: 2e6, Hits: 9, Device: "a card"},
		},
		"0 creates, 9 avoided: about 1ms saved in driver calls (by the probe of a card), about 2ms saved in first writes to new memory (by the probe of a card)": {
			Hits: 9, Saved: stats.SavedCalls{NS: 1e6, Releases: true, Device: "a card"}, SavedTouches: stats.Touches{NS: 2e6, Hits: 9, Device: "a card"},
		},
	} {
		if got := driverCreatesText(figures.SubjectOfSnapshot(&stats.Snapshot{Totals: totals})); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestEndText(t *testing.T) {
	for want, totals := range map[string]stats.Totals{
		"nothing in use, nothing in the pool":                          {},
		"1.00 KiB in use (waste 50.0 %), 0 B free in the pool":         {InUse: 1024, Requested: 512},
		"0 B in use, 2.00 KiB free in the pool (fragmentation 50.0 %)": {Cached: 2048, LargestCached: 1024},
		"0 B in use, 2.00 KiB free in the pool":                        {Cooling: 2048},
	} {
		if got := heldAtEndText(figures.SubjectOfSnapshot(&stats.Snapshot{Totals: totals})); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What calls block for is among the figures however short it is: a share just below that of a finding is nothing that a reader should miss.
func TestBlockingText(t *testing.T) {
	s := &stats.Snapshot{Time: 1e9}
	if got := blockedByTransfersText(s); got != "" {
		t.Errorf("%q of a run without transfers", got)
	}
	s.Transfers.Directions[stats.ToHost] = stats.Flow{Calls: 9, Blocking: 3, NS: 99e6}
	if got, want := blockedByTransfersText(s), "99ms of all threads in 3 blocking transfers, with waits for earlier commands; the run took 1s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDevicesText: several devices of one name are distinguished by their address, else the report says that they are not.
func TestDevicesText(t *testing.T) {
	for want, names := range map[string][]string{
		"": {"card"}, "card at 0000:03:00.0, card at 0000:04:00.0": {"card at 0000:03:00.0", "card at 0000:04:00.0"},
		"card #1, card #2; the driver gives no PCI address of those with a number, which is the process's own": {"card #1", "card #2"},
	} {
		s := &stats.Snapshot{}
		for _, name := range names {
			s.Devices = append(s.Devices, stats.Named{Name: name})
		}
		if got := devicesText(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A request that memory of another kind would have served may have found nothing of its own kind, too.
func TestNothingFreeOfTheirKind(t *testing.T) {
	for reason, want := range map[wire.Miss]string{
		wire.MissOtherClass: "; 2 misses", wire.MissTooSmall: "; 2 misses, 1 with nothing free of their kind",
	} {
		s := &stats.Snapshot{Policy: "slab"}
		s.Totals.Misses, s.Totals.PeakSlabs = 2, 1
		s.Totals.MissReasons[wire.MissCold], s.Totals.MissReasons[reason] = 1, 1
		if got := servedRequestsText(figures.SubjectOfSnapshot(s)); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

// Without a pool images and SVM are no requests, though a pool may serve them.
func TestNothingRequested(t *testing.T) {
	for policy, want := range map[string]string{
		"none": "no request was seen for a buffer that a pool serves; images and SVM count only with a pool", "slab": "no request was seen of a kind and size that a pool serves",
	} {
		if got := servedRequestsText(figures.SubjectOfSnapshot(&stats.Snapshot{Policy: policy})); got != want {
			t.Errorf("%s: %q, want %q", policy, got, want)
		}
	}
}
