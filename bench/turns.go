package main

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// figure is what one way came to, or why it was not measured.
type figure struct {
	value float64
	err   error
}

// inTurns measures every way, one after the other, so often, and returns the median of each. The ways take turns so that
// whatever else the machine does hits all of them alike. A way that fails is not tried again.
func inTurns(times int, ways []func() (float64, error)) []figure {
	figures, values := make([]figure, len(ways)), make([][]float64, len(ways))
	for range times {
		for i, way := range ways {
			if figures[i].err != nil {
				continue
			}
			value, err := way()
			figures[i].err = err
			values[i] = append(values[i], value)
		}
	}
	for i := range figures {
		figures[i].value = middle(values[i])
	}
	return figures
}

// middle returns the median, the upper one of two.
func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
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
