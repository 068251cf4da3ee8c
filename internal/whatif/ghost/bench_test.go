package ghost

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	batchRecords = 1024               // that ghosts play at a time
	pace         = 16 * batchRecords  // that come before all are played
	queueRecords = 200 * batchRecords // that may wait without any ghost being stopped
)

// heard returns the records that ghosts play.
func heard(b *testing.B) []wire.Record {
	b.Helper()
	var records []wire.Record
	labtest.EachRecord(b, labtest.OpenRecordedOr(b, churn(200_000)), func(r *wire.Record) {
		if replay.ConcernsPolicy(&r.Event) {
			records = append(records, wire.Record{Event: r.Event, Process: r.Process, Thread: r.Thread})
		}
	})
	return records
}

// takeAll returns the processor time for handing records to ghosts, few enough at a time that the ghosts can keep up.
func takeAll(b *testing.B, records []wire.Record) (spent time.Duration) {
	b.Helper()
	for part := range slices.Chunk(records, queueRecords) {
		g, err := New(nil, Options{Current: futhark()})
		if err != nil {
			b.Fatal(err)
		}
		tap := live.Start(g)
		start := live.ThreadTime()
		for i := range part {
			tap.TakeRecord(&part[i])
		}
		spent += live.ThreadTime() - start
		tap.Close()
	}
	return spent
}

// playThrough returns the processor time for reading records, and for playing them through each of the default ghosts.
func playThrough(b *testing.B, records []wire.Record) []time.Duration {
	b.Helper()
	batch, ghosts := replay.NewBatch(), DefaultConfigurations(futhark())
	for _, c := range ghosts {
		if _, err := batch.AddSimulation(replay.Options{Policy: c.Policy, Settings: c.Settings, HoldSettings: true}); err != nil {
			b.Fatal(err)
		}
	}
	spent := make([]time.Duration, 1+len(ghosts))
	now := live.ThreadTime()
	lap := func(at int) {
		then := now
		now = live.ThreadTime()
		spent[at] += now - then
	}
	for part := range slices.Chunk(records, batchRecords) {
		for i := range part {
			batch.ReadRecord(&part[i])
		}
		lap(0)
		for i := range ghosts {
			if err := batch.PlayMember(i); err != nil {
				b.Fatal(err)
			}
			lap(1 + i)
		}
		batch.ForgetReadSteps()
	}
	return spent
}

// playWithCurve returns the processor time of this process for playing records through eight ghosts with the curve of
// hit rates beside them, as a dashboard does, if a million records come per second.
func playWithCurve(b *testing.B, records []wire.Record) time.Duration {
	b.Helper()
	records = slices.Clone(records)
	for i := range records {
		records[i].Time = uint64(i) * uint64(time.Microsecond)
	}
	eighth := replay.Configuration{Policy: "futhark", Settings: []allocator.Setting{{Name: "max_cached_bytes", Value: "67108864"}}}
	g, err := New(append(DefaultConfigurations(futhark()), eighth), Options{Current: futhark()})
	if err != nil {
		b.Fatal(err)
	}
	c, err := curve.NewLive("futhark", nil, curve.Options{})
	if err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	start := processTime()
	tap := live.Start(g, c)
	for part := range slices.Chunk(records, pace) {
		for i := range part {
			tap.TakeRecord(&part[i])
		}
		before := g.Leaderboard()
		for tap.Flush(); g.Leaderboard() == before; {
			time.Sleep(50 * time.Microsecond)
		}
	}
	tap.Close()
	spent := processTime() - start
	if rows := g.Leaderboard().Rows; len(rows) != 8 || g.Leaderboard().Leader() == nil || !c.View().IsKnown() {
		b.Fatalf("%d ghosts, exact points %v: not all took part", len(rows), c.View().IsKnown())
	}
	return spent
}

// processTime returns the processor time of this process.
func processTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0 // every Linux has this clock
	}
	return time.Duration(t.Nano())
}

// BenchmarkGhosts measures the processor time for one record that matters to a policy: Take is what the collecting
// goroutine pays, Read looks a record up once for all ghosts, and each ghost plays it. EightAndCurve is all of that for
// eight ghosts and the curve of hit rates, where a million records come per second.
func BenchmarkGhosts(b *testing.B) {
	records := heard(b)
	costs := []struct {
		name    string
		records int
		measure func() time.Duration
	}{
		{"Take", len(records), func() time.Duration { return takeAll(b, records) }},
		{"Read", len(records), func() time.Duration { return playThrough(b, records)[0] }},
	}
	for i, c := range DefaultConfigurations(futhark()) {
		costs = append(costs, costs[0])
		costs[i+2].name, costs[i+2].measure = c.String(), func() time.Duration { return playThrough(b, records)[i+1] }
	}
	some := records[:min(len(records), queueRecords)]
	costs = append(costs, costs[0], costs[0])
	costs[len(costs)-2].name, costs[len(costs)-2].measure = "AllButTake", func() (all time.Duration) {
		for _, spent := range playThrough(b, records) {
			all += spent
		}
		return all
	}
	costs[len(costs)-1].name, costs[len(costs)-1].records = "EightAndCurve", len(some)
	costs[len(costs)-1].measure = func() time.Duration { return playWithCurve(b, some) }
	for _, c := range costs {
		b.Run(c.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			spent := time.Duration(0)
			for b.Loop() {
				spent += c.measure()
			}
			b.ReportMetric(float64(spent)/float64(b.N*c.records), "ns/record")
		})
	}
}
