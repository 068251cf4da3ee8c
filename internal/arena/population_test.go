package arena

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

var (
	turnsFlag    = flag.Int("turns", 1, "instances of each family")
	patienceFlag = flag.Duration("patience", 0, "processor time for each instance; 0: a few steps")
	seedFlag     = flag.Uint64("seed", 0, "of the searches")
	familyFlag   = flag.String("family", "", "only families whose names have this")
)

// processorTime returns the processor time of this process, because the machine may do other work.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// How many of each family are solved within 1, 5 and 30 s of processor time with one goroutine:
//
//	go test ./internal/arena -run Population -v -turns 5 -patience 30s -seed 1
//
// Whatever was found, no bound is above the placement that is known.
func TestPopulation(t *testing.T) {
	racetest.Slow(t)
	counts := map[string][4]int{}
	over := map[string]float64{}
	for _, m := range population(t, *turnsFlag) {
		if !strings.Contains(m.family, *familyFlag) {
			continue
		}
		o := Options{Capacity: m.capacity, Workers: 1, Seed: *seedFlag, Steps: 1 << 12}
		ctx, cancel := context.WithCancel(t.Context())
		start := processorTime()
		if *patienceFlag > 0 {
			o.Steps = 0
			go func() {
				for ctx.Err() == nil && processorTime()-start < *patienceFlag {
					time.Sleep(5 * time.Millisecond)
				}
				cancel()
			}()
		}
		s, err := PlaceBuffers(ctx, m.buffers, o)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if s.Bound > m.capacity {
			t.Errorf("%s %d: bound %d, and there is a placement of %d", m.family, m.turn, s.Bound, m.capacity)
		}
		took := processorTime() - start
		c := counts[m.family]
		c[0]++
		if s.Height <= m.capacity {
			for i, limit := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
				if took <= limit {
					c[i+1]++
				}
			}
		}
		counts[m.family] = c
		over[m.family] += float64(s.Height)/float64(s.Bound) - 1
		t.Logf("%-16s %d %3d buffers load %.3f height %.4f %8d steps %6.2f s %s", m.family, m.turn, len(m.buffers), float64(s.Bound)/float64(m.capacity),
			float64(s.Height)/float64(m.capacity), s.Steps, took.Seconds(), s.Method)
	}
	var text strings.Builder
	all := [4]int{}
	for _, f := range families {
		c := counts[f.name]
		if c[0] == 0 {
			continue
		}
		for i := range c {
			all[i] += c[i]
		}
		fmt.Fprintf(&text, "%-18s %3d: %3d %3d %3d  mean over bound %.3f %%\n", f.name, c[0], c[1], c[2], c[3], 100*over[f.name]/float64(c[0]))
	}
	t.Logf("\n%sall %v", text.String(), all)
}
