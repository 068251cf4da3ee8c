package ghost

import (
	"runtime"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/live"
)

// BenchmarkGhosts is what the default ghosts take for a record, all of them together: ns of the processor.
func BenchmarkGhosts(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	src := churn(500_000)
	for b.Loop() {
		g, err := New(Default(futhark()), Options{Present: futhark()})
		if err != nil {
			b.Fatal(err)
		}
		c := lab.NewChorus()
		g.Begin(c, 0)
		start := live.Spent()
		for i := range src.Records {
			if r := &src.Records[i]; lab.Hears(&r.Event) {
				c.Read(r)
			}
			if c.Events() == 1024 {
				g.Play(&live.Part{Records: 1024})
				c.Clear()
			}
		}
		b.ReportMetric(float64(live.Spent()-start)/float64(len(src.Records)), "ns/record")
	}
}
