package allocator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// effects has for each limit a value that must make a difference, and the other limits under which it does: those that
// all who have this one obey, and max_part where there are slabs.
var effects = map[string]struct{ value, base, part string }{
	"max_cached_bytes":    {"200000", "", "0"},
	"max_cached_fraction": {"0.0001", "", "0"},
	"over_limit":          {"", "max_cached_bytes=3000000", "1048576"}, // the other choice
	"max_per_tag":         {"2", "", "0"},
	"max_per_bucket":      {"2", "", "0"},
	"max_waste_ratio":     {"1", "", "0"},
	"min_block":           {"65536", "", "0"},
	"steal_other_tag":     {"", "", "0"},
	"mantissa_bits":       {"1", "", "0"},
	"bucket_sizes":        {"3000:5000:500000", "", "0"},
	"max_age":             {"0.000000005", "", "0"},
	"proportion":          {"1", "", "0"},
	"outgrown":            {"", "", "4096"},
	"drain_order":         {"", "", "1048576"},
	"max_part":            {"4096", "", "0"},
	"heap_bytes":          {"1073741824", "", "0"},
	"slabs_per_heap":      {"1", "", "0"},
	"page_bytes":          {"65536", "", "0"},
}

// story is a fixed sequence of requests of seven call sites, which lets everything go and in its second half runs
// short of memory now and then. It returns all that the policy says.
func (d *driver) story() string {
	rng := rand.New(rand.NewPCG(9, 9))
	var log strings.Builder
	var live []Block
	for i := range 400 {
		req := d.request(1+rng.Uint64N(64)<<rng.IntN(16), 1, Tag(rng.IntN(7)))
		req.Heap = 4096 * mib
		decision, out := d.policy.Decide(req, nil)
		d.release(out)
		d.commit(decision, 1)
		fmt.Fprint(&log, decision, out)
		live = append(live, decision.Block)
		keep := 40
		if i%50 == 49 {
			keep = 0
		}
		for len(live) > keep {
			at := rng.IntN(len(live))
			fmt.Fprint(&log, d.free(live[at], false))
			live = slices.Delete(live, at, at+1)
		}
		if i%50 == 49 && i > 200 {
			out := d.policy.Drain(1, nil)
			d.release(out)
			fmt.Fprint(&log, out)
		}
	}
	d.check()
	return log.String()
}

// TestEveryLimitHasAnEffect in every policy that takes it: some outcome is another one.
func TestEveryLimitHasAnEffect(t *testing.T) {
	for _, name := range PolicyNames() {
		for _, l := range newDriver(t, name, "").policy.Limits() {
			c, there := effects[l.Name]
			if !there {
				t.Fatalf("%s has no value that should make a difference", l.Name)
			}
			values := []string{c.value}
			if l.Choices != nil {
				values = l.Choices
			}
			story := func(value string) string {
				d := newDriver(t, name, c.base)
				d.policy.beyond = 0 // the story is a small one
				if findPolicy(name).carver != nil {
					d.align = 64
					d.set("max_part", c.part)
				}
				d.set(l.Name, value)
				return d.story()
			}
			usual := story(l.Text)
			for _, value := range values {
				if value != l.Text && story(value) == usual {
					t.Errorf("%s: with %s=%s the same happens as with %s", name, l.Name, value, l.Text)
				}
			}
		}
	}
}
