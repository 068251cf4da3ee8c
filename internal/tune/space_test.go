package tune

import (
	"math"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// TestAxesOfAnyPeak: there are few values, whatever the peak of a recording.
func TestAxesOfAnyPeak(t *testing.T) {
	for bit := range 64 {
		for _, peak := range []uint64{1<<bit - 1, 1 << bit, 1<<bit + 1, math.MaxUint64 - 1<<bit} {
			for _, policy := range allocator.PolicyNames() {
				for _, a := range axesToVary(policy, peak) {
					if len(a.values) > 32 {
						t.Fatalf("%s: %s has %d values at a peak of %d B", policy, a.limit.Name, len(a.values), peak)
					}
				}
			}
		}
	}
}

// TestAxesHaveNoLimit: where 0 means no limit it is tried.
func TestAxesHaveNoLimit(t *testing.T) {
	for _, a := range axesToVary("futhark", 1<<20) {
		if (a.values[0] == "0") != (a.limit.Zero == "no limit") {
			t.Errorf("%s: %v", a.limit.Name, a.values)
		}
	}
}
