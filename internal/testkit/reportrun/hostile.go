package reportrun

import (
	"math"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Evil is a name that, if not escaped, loads a picture and runs a script.
const Evil = "</script></title></style></svg><img src=http://192.0.2.1/x onerror=alert(1)>\"'`--><script>alert(2)</script>" +
	"{{.}}\x00\x01\x1b[31m\u202e\u2028&lt;\xff<!--"

// HostileAnalysis returns an analysis with lists far beyond their bounds and names of 5000 characters.
func HostileAnalysis() *analysis.Analysis {
	long := (Evil + strings.Repeat(`"<&'`, 1250))[:5000]
	frames := make([]string, 40)
	for i := range frames {
		frames[i] = long
	}
	a := &analysis.Analysis{
		Damage:   long,
		Run:      hostileRun(long),
		Snapshot: hostileSnapshot(long),
		Peak:     analysis.Peak{Time: math.MaxUint64, InUse: math.MaxUint64, Reserved: 1, Buffers: math.MaxUint64},
		Lag:      analysis.Lag{Known: 1, P50: math.MaxUint64, ByteSeconds: math.Inf(1)},
		Timeline: hostileTimeline(long),
		Flame:    hostileTree(long),
	}
	knob := analysis.Knob{Limit: long, Value: long, Why: long}
	for i := range 300 {
		n := uint64(300 - i)
		a.Peak.Tags = append(a.Peak.Tags, analysis.PeakTag{Name: long, Stack: frames, InUse: n})
		a.Leaks = append(a.Leaks, analysis.Leak{Name: long, Stack: frames, Bytes: n, Buffers: n})
		a.Temporaries = append(a.Temporaries, analysis.Temporary{Name: long, Bytes: n})
		a.Misses = append(a.Misses, analysis.Miss{Reason: analysis.Reason(long), Count: n, Knob: knob})
		a.Lag.Tags = append(a.Lag.Tags, analysis.LagTag{Name: long, ByteSeconds: math.NaN()})
		a.Phases = append(a.Phases, analysis.Phase{Start: n, End: uint64(i), Iterations: n, Growth: math.MinInt64})
		a.Diagnoses = append(a.Diagnoses, analysis.Diagnosis{Severity: analysis.Severity(long), Title: long, Text: long, Tag: long, Knob: knob})
	}
	for i := range 200 {
		bin := analysis.Bin{From: 1 << (i % 64), To: math.MaxUint64 >> (i % 64), Count: math.MaxUint64, Bytes: math.MaxUint64}
		a.Sizes, a.Lifetimes = append(a.Sizes, bin), append(a.Lifetimes, bin)
		a.CreateCost.Points = append(a.CreateCost.Points, analysis.CostPoint{Size: uint64(i), NS: math.Inf(1), StdDev: math.NaN()})
	}
	a.ReleaseCost = analysis.CostCurve{A: math.NaN(), B: math.Inf(-1), Points: []analysis.CostPoint{{}}}
	return a
}

func hostileRun(long string) analysis.Run {
	run := analysis.Run{
		Header:  recording.Header{Host: long, Program: long, Arguments: []string{long, long, "`id`", "$(id)"}, Policy: long, Limits: recording.Limits{}, Scrub: long},
		Footer:  recording.Footer{Message: long, EndedNS: 1},
		Started: math.MaxUint64, Since: math.MinInt64, Until: time.Hour, Process: long, Tag: long,
	}
	for i := range 300 {
		run.Header.Limits[strings.Repeat("x", i)+long] = long
		run.Header.Merged = append(run.Header.Merged, recording.Origin{Host: long, Program: long, First: uint32(i), Last: uint32(i)})
	}
	return run
}

func hostileSnapshot(long string) *stats.Snapshot {
	s := &stats.Snapshot{
		Program: long, Arguments: []string{long}, Device: stats.Device{Name: long, Driver: long, Global: 1}, Lost: math.MaxUint64, LostUses: 1, Unknown: 1,
		Totals: stats.Totals{Hits: math.MaxUint64, Misses: math.MaxUint64, PeakInUse: math.MaxUint64, DriverNS: math.MaxUint64, Saved: stats.SavedCalls{NS: math.MaxUint64}},
	}
	for i := range 300 {
		s.Processes = append(s.Processes, stats.Process{PID: -1, Number: uint32(i), Program: long})
		s.Findings = append(s.Findings, stats.Finding{Kind: wire.Diag(i), Function: long, Tag: long, Kernel: long, Count: 2, Size: math.MaxUint64})
		s.Marks = append(s.Marks, stats.Mark{Time: uint64(i), Kind: wire.Kind(i % 25), Text: long})
	}
	return s
}

func hostileTimeline(long string) analysis.Timeline {
	var t analysis.Timeline
	full := make([]uint64, 5000)
	rates := make([]float64, 5000)
	for i := range full {
		full[i] = math.MaxUint64 / uint64(1+i%7)
		rates[i] = []float64{math.NaN(), math.Inf(1), -1, 0.123456789}[i%4]
	}
	t.Step = 1 << 50
	t.InUse, t.Cached, t.Cooling, t.Hits, t.Misses = full, full, full, full, full
	t.Fragmentation, t.Waste = rates, rates
	for range 100 {
		t.Tags = append(t.Tags, analysis.Series{Name: long, Values: full})
		t.Free = append(t.Free, analysis.Series{Name: long, Values: full})
	}
	return t
}

// hostileTree is wide, and deeper than any view draws.
func hostileTree(long string) *analysis.Frame {
	root := &analysis.Frame{Peak: 10_000, Total: 10_000, Leaked: 10_000}
	for range 2000 {
		root.Children = append(root.Children, &analysis.Frame{Name: long, Peak: 10, Total: 20, Leaked: 10})
	}
	for at, depth := root.Children[0], 0; depth < 1000; depth++ {
		child := &analysis.Frame{Name: long, Peak: 10, Total: 20, Leaked: 10}
		at.Children = []*analysis.Frame{child}
		at = child
	}
	return root
}
