package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// lasts is how long a figure of threads is measured at least. Threads take some ms to start and to meet.
const lasts = 100 * time.Millisecond

// figure is what one way came to, or why it was not measured.
type figure struct {
	value  float64   // the median
	values []float64 // of each turn
	err    error
}

// over shows how many times another figure this one is: by the medians, and the lowest and highest of one turn.
func (f figure) over(other figure) string {
	each := make([]float64, len(f.values))
	for i := range each {
		each[i] = f.values[i] / other.values[i]
	}
	return fmt.Sprintf("%s (%s to %s)", fixed(f.value/other.value, 2), fixed(slices.Min(each), 2), fixed(slices.Max(each), 2))
}

// inTurns measures every way, one after the other, so often, and returns the median of each. The ways take turns so that
// whatever else the machine does hits all of them alike. A way that fails is not tried again.
func inTurns(times int, ways []func() (float64, error)) []figure {
	figures := make([]figure, len(ways))
	for range times {
		for i, way := range ways {
			if figures[i].err != nil {
				continue
			}
			value, err := way()
			figures[i].err = err
			figures[i].values = append(figures[i].values, value)
		}
	}
	for i := range figures {
		figures[i].value = middle(figures[i].values)
	}
	return figures
}

// middle returns the median, the upper one of two.
func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// lasting measures more and more operations until that takes as long as it should, and returns the last figure.
func lasting(least time.Duration, operations int, measure func(operations int) (float64, error)) (float64, error) {
	for {
		ns, err := measure(operations)
		took := ns * float64(operations)
		if err != nil || took >= float64(least) {
			return ns, err
		}
		operations = int(float64(operations) * min(64, max(2, 1.2*float64(least)/took)))
	}
}

// repeated measures the same operations, of which there can only be so many at a time, until that has taken as long as it
// should, and returns the mean.
func repeated(least time.Duration, operations int, measure func() (float64, error)) (float64, error) {
	sum := 0.0
	for times := 1.0; ; times++ {
		ns, err := measure()
		if err != nil {
			return 0, err
		}
		if sum += ns; sum*float64(operations) >= float64(least) {
			return sum / times, nil
		}
	}
}

// share has every thread do its part of so many operations at the same time, and returns the ns that all of them took,
// by operation: what two threads do side by side counts half.
func share(operations int, threads []func(n int) error) (float64, error) {
	runtime.GC() // what the last one left is not this one's
	errs := make([]error, len(threads))
	var all sync.WaitGroup
	gate := make(chan struct{})
	for i, thread := range threads {
		all.Go(func() {
			<-gate
			errs[i] = thread((operations + i) / len(threads))
		})
	}
	start := time.Now()
	close(gate)
	all.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return float64(took) / float64(operations), nil
}

// beside shows a figure, and how many times another one that is.
func beside(value, base float64) string { return counted(value) + " ×" + times(value, base) }
