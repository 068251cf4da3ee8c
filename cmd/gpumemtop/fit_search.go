package main

import "math"

// doublings bounds how far beyond the peak the search looks for a first size that works.
const doublings = 3

// bisect looks for the least number of bytes that a program survives with, to within step. It starts at the peak, and
// goes further up, doubling at most three times, until a run survives; then it halves what lies between the largest
// size known to fail below and the least one known to survive, until that is no more than step. found is false when
// nothing survived. What it returns was tried, and is the least of what was tried and survived, even for a program that
// survives with some size and not with a larger one. Neither peak nor step is 0; survives is never asked about 0 bytes.
func bisect(peak, step uint64, survives func(bytes uint64) (bool, error)) (least uint64, found bool, err error) {
	low, high := uint64(0), peak // low fails, or is 0
	for range doublings + 1 {
		if found, err = survives(high); err != nil || found {
			break
		}
		if high > math.MaxUint64/2 {
			break
		}
		low, high = high, 2*high
	}
	if err != nil || !found {
		return 0, false, err
	}
	for high-low > step {
		middle := low + (high-low)/2
		ok, err := survives(middle)
		if err != nil {
			return 0, false, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, true, nil
}
