// Package reportrun makes analyses for tests of reports: one like that of a real run, and one that fills every list with the worst
// possible content of a recording.
package reportrun

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	mib     = 1 << 20
	second  = uint64(time.Second)
	started = 5_000 * second
	length  = 42 * second
	points  = analysis.PointsMax
)

// SampleAnalysis returns an analysis like that of a training run of 42 s with two phases, a leak and some mistakes.
func SampleAnalysis() *analysis.Analysis {
	return &analysis.Analysis{
		Run: sampleRun(), Snapshot: sampleSnapshot(), Peak: samplePeak(), Timeline: sampleTimeline(), Phases: samplePhases(), Flame: sampleCallTree(),
		Leaks: []analysis.Leak{
			{Name: "loader.c:114 stage_batch", Stack: sampleStack("loader.c:114 stage_batch"), Buffers: 12, Bytes: 48 * mib, Oldest: 12 * second},
			{Name: "main.c:61 warm_up", Stack: sampleStack("main.c:61 warm_up"), Buffers: 1, Bytes: 64 << 10, Oldest: second / 10},
		},
		Temporaries: []analysis.Temporary{
			{Name: "conv.c:88 im2col", Buffers: 18_200, Creates: 18_204, Bytes: 18_200 * 24 * mib, LifeP50: 1_900_000, DriverNS: second},
			{Name: "softmax.c:31 scratch", Buffers: 9100, Creates: 9100, Bytes: 9100 * mib / 2, LifeP50: 310_000, DriverNS: second / 20},
		},
		Misses: []analysis.Miss{
			{Reason: "limit", Count: 412, Bytes: 412 * 24 * mib, LostNS: 1_830_000_000, Knob: analysis.Knob{Limit: "max_cached_bytes", Value: "536870912", Why: "412 misses found that their block had been evicted; 512 MiB would have kept all of them."}},
			{Reason: "cold", Count: 61, Bytes: 61 * 8 * mib, LostNS: 190_000_000},
			{Reason: "too wasteful", Count: 19, Bytes: 19 * mib, LostNS: 9_400_000, Knob: analysis.Knob{Limit: "max_waste_ratio", Value: "0.6", Why: "The free blocks were at most 2.4 times as large as asked for."}},
		},
		Sizes: makeBins(6, 29, func(i int) float64 { return 9000 * math.Exp(-math.Pow(float64(i)-20, 2)/14) }),
		Lifetimes: makeBins(10, 35, func(i int) float64 {
			return 8000*math.Exp(-math.Pow(float64(i)-21, 2)/5) + 300*math.Exp(-math.Pow(float64(i)-31, 2)/3)
		}),
		Lag: analysis.Lag{Known: 26_000, Unused: 310, P50: 420_000, P99: 31_000_000, ByteSeconds: 9.1e9, Tags: []analysis.LagTag{
			{Name: "optimizer.c:203 moments", Known: 400, P50: 12_000_000, P99: 90_000_000, ByteSeconds: 6.2e9},
			{Name: "conv.c:88 im2col", Known: 18_200, P50: 300_000, P99: 2_100_000, ByteSeconds: 2.4e9},
			{Name: "softmax.c:31 scratch", Known: 7400, P50: 120_000, P99: 900_000, ByteSeconds: 3.1e8},
		}},
		CreateCost: makeCostCurve(31_000, 0.0118), ReleaseCost: makeCostCurve(9000, 0.0021),
		Diagnoses: sampleDiagnoses(),
	}
}

func sampleRun() analysis.Run {
	return analysis.Run{
		Header: recording.Header{
			Version: 4, Created: time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC), ClockNS: started, Host: "node17",
			Program: "/home/ada/net/train", Arguments: []string{"--epochs", "3", "--data", "cifar 10/train.bin"}, Policy: "futhark",
			Limits: recording.Limits{"max_cached_bytes": "268435456", "max_cached_fraction": "1", "max_waste_ratio": "0.5", "drain_order": "one"},
			Tags:   "stack",
		},
		Footer: recording.Footer{Events: 412_000, EndedNS: started + length}, Whole: true, Started: started,
	}
}

func sampleSnapshot() *stats.Snapshot {
	s := &stats.Snapshot{
		Time: started + length, Started: started, Program: "/home/ada/net/train", Policy: "futhark", Lost: 3,
		Device: stats.Device{Name: "Radeon Instinct MI100", Driver: "3452.0 (HSA1.1,LC)", Global: 1024 * mib},
		Totals: stats.Totals{
			Hits: 27_004, Misses: 492, SteadyHits: 13_702, SteadyRequests: 13_748, Creates: 27_520, Releases: 27_507, DriverCreates: 516, DriverReleases: 480,
			DriverNS: 2_140_000_000, Saved: stats.SavedCalls{NS: 14_300_000_000, Releases: true}, PeakInUse: 612 * mib, PeakReserved: 803 * mib, InUse: 48*mib + 64<<10, LiveBuffers: 13,
			Failures: 2, FailedWith: [stats.StatusesMax]stats.StatusCount{{Status: wire.InvalidBufferSize, Count: 2}},
		},
		Findings: []stats.Finding{
			{Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Tag: "optimizer.c:203 moments", Process: 1, Count: 3, First: started + 9*second, Last: started + 20*second, Size: 8 * mib, Status: -38},
			{Kind: wire.DiagStaleArgument, Function: "clEnqueueNDRangeKernel", Kernel: "softmax", Tag: "softmax.c:31 scratch", Process: 1, Count: 41, First: started + 14*second, Size: mib / 2},
		},
		Marks: []stats.Mark{
			{Time: started + 9*second, Kind: wire.KindDiag, Text: "double release: clReleaseMemObject"},
			{Time: started + 14*second, Kind: wire.KindDiag, Text: "stale argument: clEnqueueNDRangeKernel of softmax"},
			{Time: started + 25*second, Kind: wire.KindLimit, Text: "max_cached_bytes=268435456"},
			{Time: started + 33*second, Kind: wire.KindLost, Text: "3 events lost"},
			{Time: started + length, Kind: wire.KindExit, Text: "process 4711 exited with status 0"},
		},
	}
	for i, name := range []string{"/home/ada/net/train", "/home/ada/net/loader"} {
		s.Processes = append(s.Processes, stats.Process{
			Number: uint32(i + 1), PID: 4711 + i, Program: name, State: stats.Exited, Started: started + uint64(i)*second, Ended: started + length, Orderly: true,
			Totals: stats.Totals{Hits: 27_000 - uint64(i)*26_000, Misses: 400, Creates: 27_400 - uint64(i)*26_000, PeakInUse: (560 - 500*uint64(i)) * mib},
		})
	}
	return s
}

// sites are the call sites of the sample, with the MiB that they hold at the peak.
var sites = []struct {
	name string
	held uint64
}{
	{"optimizer.c:203 moments", 192}, {"conv.c:88 im2col", 144}, {"layers.c:57 weights", 96}, {"layers.c:71 gradients", 96}, {"loader.c:114 stage_batch", 36},
	{"softmax.c:31 scratch", 20}, {"batchnorm.cpp:140 nn::BatchNorm<float, 4>::reserve(unsigned long)", 12}, {"libclblast.so.1+0x4f2a10", 8}, {"metrics.c:19 counters", 4}, {"others", 4},
}

func sampleStack(site string) []string {
	return []string{site, "net.c:310 forward", "train.c:122 step", "train.c:88 epoch", "main.c:44 main", "libc.so.6+0x2724a"}
}

func samplePeak() analysis.Peak {
	p := analysis.Peak{Time: 21 * second, InUse: 612 * mib, Reserved: 790 * mib, Buffers: 341}
	for i, site := range sites {
		p.Tags = append(p.Tags, analysis.PeakTag{Name: site.name, Stack: sampleStack(site.name), InUse: site.held * mib,
			Requested: site.held * mib * 15 / 16, Buffers: uint64(90 - 8*i)})
	}
	return p
}

func sampleTimeline() analysis.Timeline {
	r := rand.New(rand.NewPCG(1, 2))
	t := analysis.Timeline{Step: length / points}
	for i := range sites {
		t.Tags = append(t.Tags, analysis.Series{Name: sites[i].name, Values: make([]uint64, points)})
		if i < 6 {
			t.Free = append(t.Free, analysis.Series{Name: sites[i].name, Values: make([]uint64, points)})
		}
	}
	for i := range points {
		part := float64(i) / points
		busy := min(1, part*8) * map[bool]float64{true: 1, false: 0.55}[part < 0.62]
		var sum uint64
		for j := range sites {
			wave := 1.0
			if j%2 == 1 {
				wave = 0.5 + 0.5*math.Abs(math.Sin(part*40+float64(j)))
			}
			value := uint64(busy * wave * float64(sites[j].held*mib))
			t.Tags[j].Values[i] = value
			sum += value
			if j < len(t.Free) {
				t.Free[j].Values[i] = uint64(busy*(1.1-wave)*float64(sites[j].held*mib)) + mib
			}
		}
		t.InUse = append(t.InUse, sum)
		t.Cached = append(t.Cached, uint64(min(1, part*6)*130*mib))
		t.Cooling = append(t.Cooling, uint64(r.Float64()*18*mib))
		t.Idle = append(t.Idle, uint64(part*40*mib))
		hits := uint64(46 * min(1, part*12))
		if i > 360 && i < 380 {
			hits = 0
		}
		misses := uint64(0)
		if hits > 0 {
			misses = uint64(r.ExpFloat64() * (0.5 + 20*max(0, 0.1-part)))
		}
		t.Hits, t.Misses = append(t.Hits, hits), append(t.Misses, misses)
		t.Fragmentation = append(t.Fragmentation, min(1, part*5)*(0.6+0.05*r.Float64()))
		t.Waste = append(t.Waste, 0.06+0.01*math.Sin(part*30))
	}
	return t
}

func samplePhases() []analysis.Phase {
	return []analysis.Phase{
		{Process: 1, Thread: 4711, Start: 0, End: 4 * second, PeakInUse: 180 * mib},
		{Process: 1, Thread: 4711, Start: 4 * second, End: 26 * second, Iterations: 3100, Period: 7_050_000, Creates: 9, PeakInUse: 612 * mib, Growth: 4 * mib, Mean: 4 * mib},
		{Process: 1, Thread: 4711, Start: 26 * second, End: 42 * second, Iterations: 2280, Period: 7_010_000, Creates: 7, PeakInUse: 340 * mib, Growth: -4096},
		{Process: 2, Thread: 4712, Start: 2 * second, End: 40 * second, Iterations: 90, Period: 420_000_000, Creates: 1, PeakInUse: 60 * mib},
	}
}

// makeBins makes a histogram from one power of two to another.
func makeBins(from, to int, count func(int) float64) []analysis.Bin {
	var list []analysis.Bin
	for i := from; i < to; i++ {
		if n := uint64(count(i)); n > 0 {
			list = append(list, analysis.Bin{From: 1 << i, To: 1<<(i+1) - 1, Count: n, Bytes: n << i})
		}
	}
	return list
}

func makeCostCurve(a, b float64) analysis.CostCurve {
	c := analysis.CostCurve{Calls: 516, A: a, B: b, R2: 0.982, P50: 61_000, P99: 1_900_000}
	for i := 10; i < 28; i++ {
		size := uint64(3) << (i - 1)
		wobble := 1 + 0.18*math.Sin(float64(i)*2.1)
		usual := (a + b*float64(size)) * wobble
		c.Points = append(c.Points, analysis.CostPoint{
			Size: size, NS: usual, Calls: uint64(4 * i), StdDev: usual * 0.15, P25: uint64(0.9 * usual), P50: uint64(usual), P75: uint64(1.1 * usual),
		})
	}
	return c
}

func sampleDiagnoses() []analysis.Diagnosis {
	return []analysis.Diagnosis{
		{Severity: analysis.Problem, Title: "loader.c:114 leaks 4 MiB per epoch", Tag: "loader.c:114 stage_batch",
			Text: "12 buffers (48.0 MiB) were never released; in use grows by 4.00 MiB per iteration of phase 2."},
		{Severity: analysis.Advice, Title: "The pool is too small for one iteration", Text: "412 of 492 misses found that max_cached_bytes had evicted their block; they took the driver 1.83 s, 4.4 % of the run.",
			Knob: analysis.Knob{Limit: "max_cached_bytes", Value: "536870912", Why: "512 MiB would have kept all of them."}},
		{Severity: analysis.Note, Title: "im2col creates its scratch memory again each step", Tag: "conv.c:88 im2col", Text: "18 200 buffers lived for one iteration only; one that is kept would do."},
	}
}

// sampleCallTree returns a call tree like that of a few thousand call stacks.
func sampleCallTree() *analysis.Frame {
	root := &analysis.Frame{}
	growCallTree(root, 0, 612*mib, rand.New(rand.NewPCG(3, 4)))
	return root
}

var frameNames = []string{"main.c:44 main", "train.c:88 epoch", "train.c:122 step", "net.c:310 forward", "net.c:355 backward", "conv.c:88 im2col", "layers.c:57 weights", "nn::Tensor<float>::allocate(std::span<unsigned long const>, nn::Device&)", "cl::Buffer::Buffer"}

func growCallTree(f *analysis.Frame, depth int, bytes uint64, r *rand.Rand) {
	f.Peak, f.Total, f.Creates = bytes, bytes*uint64(3+depth), bytes>>18+1
	if depth > 0 {
		f.Name = frameNames[(depth*3+r.IntN(4))%len(frameNames)] + fmt.Sprintf(" #%d", r.IntN(30))
	}
	if depth%3 == 2 {
		f.Leaked = bytes / 16
	}
	for left := bytes; depth < 8 && left > bytes/8+64<<10; {
		part := uint64(float64(left) * (0.3 + 0.6*r.Float64()))
		child := &analysis.Frame{}
		growCallTree(child, depth+1, part, r)
		f.Children = append(f.Children, child)
		f.Leaked = max(f.Leaked, child.Leaked)
		left -= part
	}
}
