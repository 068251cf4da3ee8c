package main

import "slices"

// middle returns the median, the upper one of two.
func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
