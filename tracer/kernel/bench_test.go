package kernel

import (
	"fmt"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// BenchmarkCall measures what a probed call costs the program, while a reader empties the ring. Each iteration is a call
// of create, which does almost nothing itself.
func BenchmarkCall(b *testing.B) {
	returns := wire.Shape{Flags: wire.ShapeReturn, Error: 5}
	stack := wire.Shape{Flags: wire.ShapeReturn | wire.ShapeStack, Error: 5}
	costs := []struct {
		name    string
		shape   wire.Shape
		watched bool
	}{
		{"unwatched", returns, false}, {"entry", wire.Shape{}, true}, {"return", returns, true}, {"stack", stack, true},
	}
	d := drive(b)
	b.Run("bare", func(b *testing.B) { d.time(b) })
	for _, single := range []bool{false, true} {
		for _, cost := range costs {
			b.Run(fmt.Sprintf("%s/single=%v", cost.name, single), func(b *testing.B) {
				k := open(b, Options{Shapes: []wire.Shape{cost.shape}, RingBytes: ringBytes, Stacks: true, single: single})
				if cost.watched {
					judge(b, k, d.pid, Watch)
				}
				attach(b, k, d.pid, create)
				defer read(b, k)()
				d.time(b)
			})
		}
	}
}

// read polls during the benchmark, until the returned function is called.
func read(b *testing.B, k *Kernel) (stop func()) {
	b.Helper()
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stopped:
				return
			default:
			}
			if _, err := k.Poll(time.Second, func(*wire.Sample) {}); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	return func() {
		close(stopped)
		k.WakePoll()
		<-done
	}
}

func (d *driver) time(b *testing.B) {
	b.Helper()
	d.SendLine(fmt.Sprint("time ", b.N))
	var ns float64
	if _, err := fmt.Sscan(d.NextLine(), &ns); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(ns/float64(b.N), "ns/op")
}
