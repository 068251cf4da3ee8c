package ui

import (
	"fmt"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// sampleSnapshot is a moment of a program that blurs pictures: the same on every call.
func sampleSnapshot() *stats.Snapshot {
	const started, now = 1000e9, 1083e9
	s := &stats.Snapshot{
		Time: now, Started: started,
		Program: "./blur", Arguments: []string{"4096", "--iters", "500"}, Policy: "futhark",
		Limits: []stats.Limit{
			{Name: "max_cached_bytes", Value: 512 * mib, Max: math.MaxUint64, Kind: stats.LimitBytes},
			{Name: "max_waste_ratio", Value: 2, Min: 1, Max: 16},
			{Name: "max_per_tag", Value: 64, Min: 0, Max: 4096, Kind: stats.LimitCount, Zero: noLimit},
			{Name: "min_block", Value: 4 * kib, Min: 1, Max: gib, Kind: stats.LimitBytes},
			{Name: "max_age", Value: 90, Max: 3600, Kind: stats.LimitSeconds, Zero: noLimit},
			{Name: "drain_order", Value: 1, Kind: stats.LimitChoice, Choices: []string{"slot", "largest-first", "oldest-first", "all"}},
			{Name: "steal_other_tag", Value: 1, Kind: stats.LimitSwitch, Choices: []string{"off", "on"}},
			{Name: "max_cached_fraction", Value: 0.25, Max: 1},
			{Name: "bucket_sizes", Text: "1024:4096", Value: 2, Kind: stats.LimitSizes},
		},
		Device:    stats.Device{Name: "pocl-cpu Ryzen 7", Driver: "3.1", Global: 16 * gib},
		Processes: []stats.Process{{Number: 1, PID: 4711, Program: "./blur", Started: started, Status: -1, DeviceMemory: 16 * gib}},
		Totals: stats.Totals{
			Hits: 98213, Misses: 6604, SteadyHits: 51800, SteadyRequests: 52408, Creates: 105003, Releases: 104890,
			DriverCreates: 6790, InUse: 1464 * mib, Requested: 1404 * mib, Cached: 384 * mib, Cooling: 48 * mib,
			PeakInUse: 2160 * mib, PeakInUseTime: started + 41e9, PeakReserved: 2410 * mib, LargestCached: 320 * mib,
			LiveBuffers: 113, CachedBlocks: 92, Saved: stats.SavedCalls{NS: 6e9, Releases: true}, CreateP50NS: 420, CreateP99NS: 9100,
			DriverCreateP50: 61e3, DriverCreateP99: 410e3,
		},
		Window:    stats.Rates{NS: 1e9, Hits: 1165, Misses: 35, Creates: 1207, Releases: 1199, Events: 9e3, DriverCreates: 38, DriverNanos: 41e6},
		Recording: stats.Recording{Path: "/home/u/blur.gmt", Bytes: 13_003_000},
		Events:    1483020,
	}
	s.Totals.MissReasons[wire.MissCold] = 122
	s.Totals.MissReasons[wire.MissTooWasteful] = 4811
	s.Totals.MissReasons[wire.MissTooSmall] = 1402
	s.Totals.MissReasons[wire.MissCooling] = 257
	s.Totals.MissReasons[wire.MissLimit] = 12
	s.History = sampleHistory(now)
	s.Tags = sampleTags(now)
	for i, size := range []uint64{64 * kib, mib, 4 * mib, 16 * mib, 64 * mib} {
		n := uint64(i + 1)
		share := stats.Share{Hits: 4000 * n, Misses: 7000 / n, InUse: 290 * n / 3 * mib, Cached: 77 * (6 - n) / 3 * mib, Blocks: 60 / n}
		if i == 1 {
			share.Cooling = 48 * mib
		}
		s.Buckets = append(s.Buckets, stats.Bucket{Smallest: size, Largest: 2*size - 1, Share: share})
	}
	for i := range uint64(stats.MissesMax) {
		t := &s.Tags[[]int{0, 1, 4}[i%3]]
		s.Misses = append(s.Misses, stats.Miss{
			Time: now - 1e8 - i*37e8, Size: mib + i*3*mib/2, Reason: wire.Miss(1 + i%4), Tag: t.Name, Process: 1,
		})
	}
	s.Marks = []stats.Mark{{Time: now - 22e9, Kind: wire.KindLimit, Text: "max_cached_bytes=536870912"}}
	return s
}

func sampleHistory(now uint64) []stats.Sample {
	const n = 600
	h := make([]stats.Sample, n)
	for i := range h {
		x := float64(i) / n
		wave := 0.5 + 0.5*math.Sin(x*17) + 0.15*math.Sin(x*63)
		h[i] = stats.Sample{
			Time:    now - uint64(n-1-i)*1e8,
			InUse:   uint64((0.3 + 0.9*x + 0.35*wave) * gib),
			Cached:  uint64((0.25 + 0.3*(1-wave/1.3)) * gib * min(1, x*4)),
			Cooling: uint64(0.05 * gib * min(1, x*4)),
			Hits:    uint64(40 + 80*min(1, x*5)), Misses: uint64(3 + 60*math.Exp(-x*9)),
		}
		h[i].Creates = h[i].Hits + h[i].Misses + uint64(30*wave)
	}
	return h
}

func sampleTags(now uint64) []stats.Tag {
	rows := []struct {
		name                 string
		live, inUse, cached  uint64
		free, hits, misses   uint64
		window, requestedPct uint64
	}{
		{"blur.c:88 make_tmp", 12, 768 * mib, 192 * mib, 51, 41000, 372, 410, 100},
		{"conv.c:203 im2col", 8, 412 * mib, 127 * mib, 3, 36210, 1352, 388, 94},
		{"main.c:140 upload", 2, 144 * mib, 0, 0, 2, 2, 2, 100},
		{"reduce.c:51 partials", 64, 96 * mib, 32 * mib, 21, 19030, 1882, 301, 88},
		{"scan.c:77 tmp_flags", 31, 31 * mib, 32 * mib, 30, 1971, 2646, 96, 52},
		{"io.c:12 staging", 1, 8 * mib, 0, 0, 0, 1, 0, 100},
		{"init.c:9 lut", 6, 4 * mib, 0, 0, 0, 6, 0, 100},
		{"fft.c:301 twiddle", 2, 412 * kib, 200 * kib, 4, 88, 12, 11, 99},
		{"libvendor.so.4+0x1f3a0", 1, 64 * kib, 0, 0, 0, 1, 0, 100},
	}
	var tags []stats.Tag
	for i, r := range rows {
		t := stats.Tag{
			ID: uint32(i + 1), Name: r.name, Live: r.live, InUse: r.inUse, Requested: r.inUse / 100 * r.requestedPct,
			Cached: r.cached, CachedCount: r.free, Hits: r.hits, Misses: r.misses, Creates: r.hits + r.misses,
			Window: r.window, PeakInUse: r.inUse + r.cached/2,
			Stack: []string{r.name, "pipeline.c:31 run_stage", "main.c:202 main"},
		}
		if r.requestedPct == 100 {
			t.Requested = r.inUse
		}
		trend := make([]uint64, 60)
		for k := range trend {
			trend[k] = uint64(float64(r.inUse) * (0.6 + 0.4*math.Sin(float64(k*(i+2))/25)))
		}
		t.Trend = stats.TrendOf(trend)
		tags = append(tags, t)
	}
	tags[4].MissReasons[wire.MissTooWasteful] = 2400
	tags[4].MissReasons[wire.MissTooSmall] = 246
	tags[0].MissReasons[wire.MissCold] = 22
	tags[0].MissReasons[wire.MissCooling] = 250
	tags[0].MissReasons[wire.MissTooWasteful] = 100
	tags[0].Free = []stats.FreeClass{
		{Size: 64 * kib, Blocks: 12, Oldest: now - 2e8}, {Size: mib, Blocks: 28, Cooling: 4, Oldest: now - 11e8},
		{Size: 4 * mib, Blocks: 9, Oldest: now - 49e8}, {Size: 64 * mib, Blocks: 2, Cooling: 1, Oldest: now - 8e9},
	}
	for i := range 13 {
		tags = append(tags, stats.Tag{
			ID: uint32(100 + i), Name: fmt.Sprintf("stage%02d.c:%d step", i, 40+i), Live: 1, InUse: uint64(13-i) * 8 * kib,
			Requested: uint64(13-i) * 8 * kib, Hits: 30, Misses: 4, Creates: 34, PeakInUse: uint64(13-i) * 8 * kib,
			Trend: stats.TrendOf([]uint64{1, 2, 3, 4, 5, 6, 7, 8}),
		})
	}
	return tags
}

func sampleOutput() []view.OutputLine {
	return []view.OutputLine{
		{Text: "loading 4096 pictures"}, {Text: "warning: no GPU, using the CPU", Stderr: true},
		{Text: "\x1b[32miter 212/500\x1b[0m  12.4 ms"}, {Text: "iter 213/500\t12.1 ms\r"},
	}
}
