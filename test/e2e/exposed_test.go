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

// With --scrub auto a kernel finds zero in recycled memory that nothing wrote, and programs that write first are left alone.
func TestAutoClearsWhatNothingWrote(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"futhark", "slab", "arena"} {
		way := served{policy: policy, flags: []string{"--scrub", "auto"}}
		for kind, want := range map[string]uint64{"add": 2, "fill": 0, "write": 0, "only": 0, "part": 0} {
			result, sum := way.run(t, command{args: []string{fault("accumulate"), kind}})
			if result.code != 0 || string(result.stdout) != "round 1: 1024\nround 2: 1024\nround 3: 1024\n" || sum.Cleared != want || sum.Exposed != 0 || sum.Hits != 2 {
				t.Errorf("%s, %s: %s, %d cleared, want %d, %d exposed, %q\n%s", way, kind, result, sum.Cleared, want, sum.Exposed, result.stdout, result.stderr)
			}
		}
		for _, kind := range []string{"floats", "image"} {
			if result, _ := way.run(t, command{args: []string{fault("stale"), kind}}); result.code != 0 || string(result.stdout) != "0\n" {
				t.Errorf("%s, %s: %s, prints %q\n%s", way, kind, result, result.stdout, result.stderr)
			}
		}
	}
	for _, args := range [][]string{{example("pipeline"), "5", "1M"}, {example("multiqueue"), "5"}, {example("threads")}, {testProgram("tiles"), "4"}} {
		result, _ := served{policy: "futhark", flags: []string{"--scrub", "auto"}}.run(t, command{args: args})
		if difference := differs(runBare(t, args...), result); difference != "" {
			t.Errorf("%v %s", args, difference)
		}
	}
}
