package curve

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tape holds buffers that are created and released, with an event every 100 µs.
type tape struct {
	*labtest.Tape
	live []uint64
}

func newTape() *tape {
	p := &tape{Tape: labtest.NewTape()}
	p.Step = 100_000
	return p
}

// run makes n requests of random sizes; about full buffers live at a time.
func (p *tape) run(rng *rand.Rand, requests, full int, size func() uint64) {
	for made := 0; made < requests; {
		if len(p.live) > 0 && rng.IntN(2*full) < len(p.live) {
			i := rng.IntN(len(p.live))
			p.AddRelease(p.live[i], wire.OutcomeCached)
			p.live[i] = p.live[len(p.live)-1]
			p.live = p.live[:len(p.live)-1]
			continue
		}
		made++
		p.live = append(p.live, p.CreateBuffer(size(), 0))
	}
}

func octaves(rng *rand.Rand) func() uint64 {
	return func() uint64 { return 1 << (10 + rng.UintN(10)) }
}

// followed plays records through a Live that is viewed, and returns the last view.
func followed(t *testing.T, policy string, records []wire.Record) *view.Curve {
	t.Helper()
	for pause := time.Duration(0); ; pause += time.Millisecond { // a busy machine may play them too late
		if v := followedAt(t, policy, records, pause); v.Missed == 0 {
			return v
		}
	}
}

// followedAt waits after each thousandth record.
func followedAt(t *testing.T, policy string, records []wire.Record, pause time.Duration) *view.Curve {
	t.Helper()
	l, err := NewLive(policy, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var watching sync.WaitGroup
	end := make(chan struct{})
	watching.Go(func() {
		for {
			sound(t, l.View())
			select {
			case <-end:
				return
			default:
			}
		}
	})
	tap := live.Start(l)
	for i := range records {
		tap.TakeRecord(&records[i])
		if i%1000 == 0 {
			tap.Flush()
			time.Sleep(pause)
		}
	}
	tap.Close()
	close(end)
	watching.Wait()
	return l.View()
}

// sound checks what must hold for every view.
func sound(t *testing.T, v *view.Curve) {
	t.Helper()
	last := int64(-1)
	for _, p := range v.Points {
		if int64(p.Limit) <= last || !(p.HitRate >= 0 && p.HitRate <= 1) {
			t.Errorf("limit %d after %d: %g", p.Limit, last, p.HitRate)
		}
		last = int64(p.Limit)
	}
	if !(v.Error >= 0 && v.Error <= 1) || len(v.Exact) > anchorsMax {
		t.Errorf("error %g, %d exact points", v.Error, len(v.Exact))
	}
	through := Snapshot{Points: v.Points}
	for _, e := range v.Exact {
		if got := through.PointAt(e.Limit).HitRate; got != e.HitRate {
			t.Errorf("the curve has %g at %d, where %g is exact", got, e.Limit, e.HitRate)
		}
	}
}

// offBy returns the mean distance of a curve from simulated points, 0…1.
func offBy(v *view.Curve, points []Point) float64 {
	through := &Snapshot{Points: v.Points}
	return through.meanError(points)
}

// TestCurveEqualsReplays: where only blocks of one size serve, the curve equals replays at any limit, not only at the exact points.
func TestCurveEqualsReplays(t *testing.T) {
	racetest.Slow(t)
	rng := rand.New(rand.NewPCG(1, 1))
	p := newTape()
	p.run(rng, 20_000, 40, octaves(rng))
	v := followed(t, "pow2", p.Records)
	if !v.Limits || !v.IsKnown() || v.Error > 0.03 || len(v.Exact) < 3 || v.Missed != 0 || v.LeftOut {
		t.Fatalf("%+v", v)
	}
	m, err := MeasureCurve(p, "pow2", nil)
	if err != nil {
		t.Fatal(err)
	}
	off := offBy(v, m.Exact)
	if off > 0.02 { // it is of the later requests, the replays are of all
		t.Errorf("%.3f off", off)
	}
	t.Logf("%.3f off, said are %.3f; knee %d, replayed %d", off, v.Error, v.Knee.Limit, m.Knee.Limit)
}

// TestLiveExamples: recordings of the examples give a curve. Those with several sizes need the exact points.
func TestLiveExamples(t *testing.T) {
	for file, reader := range labtest.Recordings(t, "../../replay/testdata") {
		var records []wire.Record
		labtest.EachRecord(t, reader, func(r *wire.Record) {
			kept := *r
			kept.Payload = bytes.Clone(r.Payload)
			records = append(records, kept)
		})
		v := followed(t, "futhark", records)
		sound(t, v)
		m, err := MeasureCurve(labtest.RewindSource(t, reader), "futhark", nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Exact) == 0 {
			continue
		}
		end := v.Points[len(v.Points)-1]
		if best := m.Exact[len(m.Exact)-1].HitRate; !v.IsKnown() && math.Abs(end.HitRate-best) > 0.05 {
			t.Errorf("%s: %.3f without a limit, replayed %.3f", file, end.HitRate, best)
		}
		if off := offBy(v, m.Exact); v.IsKnown() && off > v.Error+0.1 {
			t.Errorf("%s: %.3f off, said are %.3f", file, off, v.Error)
		}
		t.Logf("%s: %d requests, error %.3f, %d exact", file, v.Requests, v.Error, len(v.Exact))
	}
}

// TestEachPointEqualsAReplay: every point equals a replay with that limit.
func TestEachPointEqualsAReplay(t *testing.T) {
	racetest.Slow(t)
	rng := rand.New(rand.NewPCG(2, 1))
	p := newTape()
	p.run(rng, 3000, 30, func() uint64 { return 1000 + rng.Uint64N(100_000) })
	m, err := MeasureCurve(p, "futhark", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Exact) < 10 || m.Requests != 3000 || m.Present != 4<<30 || m.Knee.HitRate == 0 || m.Enough.Limit < m.Knee.Limit {
		t.Fatalf("%+v", m)
	}
	for _, e := range m.Exact {
		r, err := replay.Replay(labtest.RewindSource(t, p), optionsAtLimit("futhark", nil, e.Limit))
		if err != nil {
			t.Fatal(err)
		}
		if r.HitRate() != e.HitRate || r.PeakReserved != e.PeakReserved {
			t.Errorf("limit %d: %g, replayed %g", e.Limit, e.HitRate, r.HitRate())
		}
	}
	if m, err := MeasureCurve(p, "none", nil); len(m.Exact) > 0 || err != nil {
		t.Errorf("of a policy that caches nothing: %+v, %v", m, err)
	}
	if m, err := MeasureCurve(newTape(), "futhark", nil); len(m.Exact) > 0 || err != nil {
		t.Errorf("of nothing: %+v, %v", m, err)
	}
	kept := newTape() // which never gives back what could serve again
	for range 100 {
		kept.CreateBuffer(4096, 0)
	}
	if m, err := MeasureCurve(kept, "futhark", nil); err != nil || len(m.Exact) == 0 || m.Enough.HitRate != 0 {
		t.Errorf("where nothing hits: %+v, %v", m, err)
	}
}

// TestLiveRests: where requests come fast, the anchors rest most of the time, and the curve is as good as where they
// come slowly.
func TestLiveRests(t *testing.T) {
	racetest.Slow(t)
	for _, test := range []struct {
		every       uint64 // ns
		most, least float64
	}{
		{500, 0.5, 0.01},
		{100_000, 1, 0.99},
	} {
		rng := rand.New(rand.NewPCG(5, 1))
		p := newTape()
		p.Step = test.every
		p.run(rng, 40_000, 40, octaves(rng))
		l, err := NewLive("pow2", nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.Begin(replay.NewBatch(), 0)
		played, parts := 0, 0
		for part := range slices.Chunk(p.Records, 256) {
			give(l, part)
			parts++
			played += min(1, len(l.anchors.all))
		}
		v := l.currentView()
		sound(t, v)
		m, err := MeasureCurve(p, "pow2", nil)
		if err != nil {
			t.Fatal(err)
		}
		share := float64(played) / float64(parts)
		if off := offBy(v, m.Exact); !v.IsKnown() || off > 0.02 || share > test.most || share < test.least {
			t.Errorf("a record in %d ns: %.3f off, exact points %v, played for %.2f of the time", test.every, off, v.IsKnown(), share)
		}
	}
}

// TestLiveChanges: after a change of the policy the curve is that of the new policy; after a change of a limit that the
// curve does not depend on it continues.
func TestLiveChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	p := newTape()
	p.run(rng, 2000, 40, octaves(rng))
	p.AddLimit("policy=none", 0)
	p.run(rng, 100, 40, octaves(rng))
	if v := followed(t, "pow2", p.Records); v.Limits || v.Policy != "none" {
		t.Errorf("after none: %+v", v)
	}
	p.AddLimit("policy=pow2", 0)
	p.run(rng, 2000, 40, octaves(rng))
	p.AddLimit("max_cached_bytes=4096", 0)
	p.run(rng, 500, 40, octaves(rng))
	v := followed(t, "pow2", p.Records)
	if !v.IsKnown() || v.Policy != "pow2" || v.Requests < 100 || v.Exact[len(v.Exact)-1].HitRate < 0.5 {
		t.Errorf("after pow2: %s, %d requests, exact %+v", v.Policy, v.Requests, v.Exact)
	}
	p.AddLimit("min_block=1MiB", 0)
	p.run(rng, 40, 40, octaves(rng))
	if v := followed(t, "pow2", p.Records); v.IsKnown() || v.Requests > 40 {
		t.Errorf("after another min_block: %+v", v)
	}
}

// TestLiveMissed: after missing records a new curve begins, and the view says so.
func TestLiveMissed(t *testing.T) {
	racetest.Slow(t)
	rng := rand.New(rand.NewPCG(4, 1))
	p := newTape()
	p.run(rng, 20_000, 40, octaves(rng))
	l, err := NewLive("pow2", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Begin(replay.NewBatch(), 0)
	give(l, p.Records)
	if before := l.currentView(); !before.IsKnown() || before.Missed != 0 {
		t.Errorf("before: %+v", before)
	}
	l.Begin(l.batch.Restart(), 7)
	if v := l.currentView(); v.Missed != 7 || v.Requests != 0 || v.IsKnown() {
		t.Errorf("%d missed, %d requests", v.Missed, v.Requests)
	}
	p.Records = p.Records[:0]
	p.run(rng, 20_000, 40, octaves(rng))
	give(l, p.Records)
	v := l.currentView()
	sound(t, v)
	if !v.IsKnown() || v.Error > 0.03 || v.Missed != 7 {
		t.Errorf("after: %+v", v)
	}
	l.EndCurve()
	if l.Play(&live.Part{}) {
		t.Error("it goes on without a reader")
	}
}

// give plays records through a Live without a thread of its own.
func give(l *Live, records []wire.Record) {
	for part := range slices.Chunk(records, 1024) {
		for i := range part {
			l.batch.ReadRecord(&part[i])
		}
		l.Play(&live.Part{Records: len(part), Time: part[len(part)-1].Time})
		l.batch.ForgetReadSteps()
	}
}

// TestLiveUnknown: an unknown policy is an error.
func TestLiveUnknown(t *testing.T) {
	if _, err := NewLive("best", nil, Options{}); err == nil {
		t.Error("no error")
	}
}

// FuzzLive plays random records: no panic, and every view is sound.
func FuzzLive(f *testing.F) {
	f.Add([]byte{1, 20, 3, 2, 20, 3, 5, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := newTape()
		for ; len(data) >= 3; data = data[3:] {
			object, size := uint64(data[1]%32), uint64(1)<<(data[2]%64)+uint64(data[1])
			e := wire.Event{Object: object, Link: object, Size: size, Granted: size, Scope: uint16(data[1] % 3), Access: 1}
			switch data[0] % 8 {
			case 0, 1, 2:
				e.Kind, e.Outcome = wire.KindCreate, wire.OutcomeMiss
			case 3, 4:
				e.Kind, e.Outcome, e.Granted = wire.KindRelease, wire.OutcomeCached, 0
			case 5:
				e.Kind, e.Outcome, e.Granted = wire.KindRelease, wire.OutcomeCooling, 0
			case 6:
				e.Kind = wire.KindCooled
			default:
				e.Kind, e.Op = wire.KindContext, uint8(wire.LifeEnd)
			}
			p.AddEvent(e).Process = uint32(data[2] % 16)
		}
		for _, policy := range []string{"futhark", "mantissa", "slab"} {
			l, err := NewLive(policy, nil, Options{Memory: MemoryMin})
			if err != nil {
				t.Fatal(err)
			}
			tap := live.Start(l)
			for i := range p.Records {
				tap.TakeRecord(&p.Records[i])
			}
			tap.Close()
			sound(t, l.View())
		}
	})
}

// BenchmarkLive measures the time for one record that concerns a policy, with up to four anchors. For a recording of a
// real program it also reports the expected and the real error of the curve, in points of hit rate.
func BenchmarkLive(b *testing.B) {
	p := labtest.NewTapeOfSites(1_000_000, 40, 64)
	for i := range p.Records { // a million in a second
		p.Records[i].Time = 1000 * uint64(i)
	}
	src := labtest.OpenRecordedOr(b, p)
	var records []wire.Record
	labtest.EachRecord(b, src, func(r *wire.Record) {
		if replay.ConcernsPolicy(&r.Event) {
			records = append(records, wire.Record{Event: r.Event, Process: r.Process, Thread: r.Thread})
		}
	})
	for _, policy := range []string{"futhark", "pow2"} {
		b.Run(policy, func(b *testing.B) {
			var v *view.Curve
			for b.Loop() {
				l, err := NewLive(policy, nil, Options{})
				if err != nil {
					b.Fatal(err)
				}
				l.Begin(replay.NewBatch(), 0)
				give(l, records)
				if v = l.currentView(); v.Requests == 0 {
					b.Fatal("no curve")
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N*len(records)), "ns/record")
			if src == recording.Source(p) {
				return
			}
			m, err := MeasureCurve(labtest.RewindSource(b, src), policy, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(100*v.Error, "points-expected")
			b.ReportMetric(100*offBy(v, m.Exact), "points-off")
		})
	}
}

// TestLiveAfterRest: the previous curve is shown until there is a new one, and a fast stream soon allows a pause.
func TestLiveAfterRest(t *testing.T) {
	racetest.Slow(t)
	rng := rand.New(rand.NewPCG(6, 1))
	p := newTape()
	p.Step = 500
	p.run(rng, 200_000, 40, octaves(rng))
	l, err := NewLive("pow2", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Begin(replay.NewBatch(), 0)
	if l.CanSkip() {
		t.Error("canSkip without a request")
	}
	give(l, p.Records)
	before := l.currentView()
	if !l.CanSkip() || !before.IsKnown() {
		t.Fatalf("canSkip %v, %d requests, exact points %v", l.CanSkip(), before.Requests, before.IsKnown())
	}
	l.Begin(l.batch.Restart(), 0)
	if v := l.currentView(); l.CanSkip() || v.Requests != before.Requests || len(v.Points) != len(before.Points) {
		t.Errorf("after the rest: %d requests, %d before", v.Requests, before.Requests)
	}
	give(l, p.Records)
	v := l.currentView()
	sound(t, v)
	if !l.CanSkip() || !v.IsKnown() {
		t.Errorf("with more: canSkip %v, exact points %v", l.CanSkip(), v.IsKnown())
	}
}
