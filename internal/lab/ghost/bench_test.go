package ghost

import (
	"runtime"
	"testing"
)

// BenchmarkTake is what ghosts cost the goroutine that collects records, for each record that says something to them.
func BenchmarkTake(b *testing.B) {
	g, _, err := assemble(nil, Options{Present: futhark()}, 1)
	if err != nil {
		b.Fatal(err)
	}
	r := churn(1).records[2]
	for b.Loop() {
		g.Take(&r)
		if len(g.queue) > 0 {
			g.spare <- <-g.queue
		}
	}
}

// BenchmarkGhosts is what the default ghosts take for a record, all of them together: ns of the processor.
func BenchmarkGhosts(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	src := churn(500_000)
	for b.Loop() {
		g, p, err := assemble(Default(futhark()), Options{Present: futhark()}, len(src.records)/batchSize+1)
		if err != nil {
			b.Fatal(err)
		}
		for i := range src.records {
			g.Take(&src.records[i])
		}
		g.Flush()
		start := spent()
		heard := 0
		for len(g.queue) > 0 {
			batch := <-g.queue
			heard += len(batch)
			p.take(batch)
		}
		b.ReportMetric(float64(spent()-start)/float64(heard), "ns/record")
	}
}
