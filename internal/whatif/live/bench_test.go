package live

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// BenchmarkPlanner measures the processor time for learning plans: for one record that matters to a policy, and as a share
// of one core while the recorded program ran.
func BenchmarkPlanner(b *testing.B) {
	file, err := recording.Open("../../replay/testdata/train.slab.gmt")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	var records []wire.Record
	labtest.EachRecord(b, labtest.OpenRecordedOr(b, file), func(r *wire.Record) {
		if replay.ConcernsPolicy(&r.Event) {
			records = append(records, *r)
			records[len(records)-1].Payload = bytes.Clone(r.Payload)
		}
	})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent, plans := time.Duration(0), 0
	for b.Loop() {
		planner := NewPlanner(replay.Configuration{Policy: replay.LayoutPolicy}, func(uint32, *learn.Layout) { plans++ })
		batch := replay.NewBatch()
		start := ThreadTime()
		planner.Begin(batch, 0)
		for part := range slices.Chunk(records, 1024) {
			for i := range part {
				batch.ReadRecord(&part[i])
			}
			if !planner.Play(&Part{}) {
				b.Fatal("it has stopped")
			}
			batch.ForgetReadSteps()
		}
		spent += ThreadTime() - start
	}
	ran := records[len(records)-1].Time - records[0].Time
	b.ReportMetric(float64(spent)/float64(b.N*len(records)), "ns/record")
	b.ReportMetric(100*float64(spent)/float64(uint64(b.N)*ran), "%core")
	b.ReportMetric(float64(plans)/float64(b.N), "plans")
}
