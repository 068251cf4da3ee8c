package e2e

import (
	"encoding/json"
	"testing"
)

// Recycled buffers that a kernel is the first to use are counted, by call site, and no others. Where PoCL's new memory is zero, which
// it always is from 64 MiB on, the summary says so.
func TestExposedBuffersAreCounted(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"futhark", "slab", "arena"} {
		for _, size := range []string{"64M", "1M", "4K"} {
			for kind, want := range map[string]uint64{"add": 5, "fill": 0, "write": 0, "only": 0, "part": 0} {
				result, sum := runUnder(t, policy, command{args: []string{fault("accumulate"), kind, size, "6"}})
				if result.code != 0 || sum.Exposed != want || exposedBySite(t, &sum, "create_numbers") != want {
					t.Errorf("%s, %s of %s: %s, %d exposed, want %d\n%s", policy, kind, size, result, sum.Exposed, want, result.stderr)
				}
				if noted := contains(result.stderr, "new memory was zero"); noted != (sum.ExposedNewZero > 0) || size == "64M" && sum.ExposedNewZero != sum.Exposed {
					t.Errorf("%s, %s of %s: %d exposed, %d where new memory was zero\n%s", policy, kind, size, sum.Exposed, sum.ExposedNewZero, result.stderr)
				}
			}
		}
	}
}

// exposedBySite adds up what the summary has by call site, which all must be in one function.
func exposedBySite(t *testing.T, sum *summary, function string) (all uint64) {
	t.Helper()
	for _, raw := range sum.PerTag {
		var tag struct {
			Tag     string
			Exposed uint64
		}
		if err := json.Unmarshal(raw, &tag); err != nil {
			t.Fatal(err)
		}
		if tag.Exposed > 0 && !contains([]byte(tag.Tag), function) {
			t.Errorf("%d exposed at %s", tag.Exposed, tag.Tag)
		}
		all += tag.Exposed
	}
	return all
}
