package broker

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

const (
	heldBlocks = 8        // by each thread at a time
	wholeSlab  = 16 << 20 // bytes: as large as the slab that a miss makes, so that no other request fits there
)

// requestSizes are the sizes that a thread requests in turn, in bytes.
var requestSizes = [heldBlocks]uint64{64, 128, 192, 256, 384, 512, 768, 1024}

// client does for one thread of a program what the shim does.
type client struct {
	core *gate
	tag  allocator.Tag
	miss bool
	held [heldBlocks]allocator.Block
	out  []Eviction
}

func (c *client) alloc(slot int) error {
	size := requestSizes[slot]
	if c.miss {
		size = wholeSlab
	}
	decision, _, _, err := ask(c.core, allocator.Request{Size: size, Align: 256, Class: 1, Tag: c.tag, Pinned: true}, c.out[:0])
	if err == nil && decision.SlabSize != 0 {
		_, err = c.core.SlabCreated(decision.Decision, 1)
	}
	if err == nil && (decision.Slab != 0 || !decision.Hit) {
		_, err = c.core.Commit(decision.Decision, 1)
	}
	c.held[slot] = decision.Block
	return err
}

// run releases the oldest block and allocates another, n times.
func (c *client) run(n int) error {
	for i := range n {
		slot := i % heldBlocks
		if _, _, err := c.core.Free(c.held[slot], false, 0, c.out[:0]); err != nil {
			return err
		}
		if err := c.alloc(slot); err != nil {
			return err
		}
	}
	return nil
}

// keepNothing returns limits under which every request for wholeSlab misses.
func keepNothing(policy string) string {
	description, _ := allocator.DescribePolicy(policy)
	var limits []string
	for _, limit := range []struct {
		name  string
		value int
	}{{"max_cached_bytes", 0}, {"max_part", wholeSlab}, {"slabs_per_heap", 1e6}} {
		if slices.ContainsFunc(description.Limits, func(l allocator.Limit) bool { return l.Name == limit.name }) {
			limits = append(limits, fmt.Sprintf("%s=%d", limit.name, limit.value))
		}
	}
	return strings.Join(limits, ",")
}

// BenchmarkServe measures one allocation and release by threads that share a policy behind the broker's mutex, as in a
// program. All requests hit, or all miss and create a block or a slab. The driver, the shim and the clock are left out.
func BenchmarkServe(b *testing.B) {
	for _, outcome := range []string{"hit", "miss"} {
		for _, policy := range allocator.PolicyNames() {
			if policy == "none" && outcome == "hit" {
				continue // never hits
			}
			for _, threads := range []int{1, 2, 4, 8} {
				b.Run(fmt.Sprintf("%s/%s/threads=%d", outcome, policy, threads), func(b *testing.B) {
					benchmarkServe(b, policy, threads, outcome == "miss")
				})
			}
		}
	}
}

func benchmarkServe(b *testing.B, policy string, threads int, miss bool) {
	b.Helper()
	limits := ""
	if miss {
		limits = keepNothing(policy)
	}
	core := newBroker(b, policy, limits)
	clients := make([]*client, threads)
	for id := range clients {
		clients[id] = &client{core: core, tag: allocator.Tag(1 + id), miss: miss, out: make([]Eviction, 0, 64)}
		for slot := range heldBlocks {
			if err := clients[id].alloc(slot); err != nil {
				b.Fatal(err)
			}
		}
	}
	before, err := core.Stats()
	if err != nil {
		b.Fatal(err)
	}
	var all sync.WaitGroup
	b.ResetTimer()
	for id, c := range clients {
		all.Go(func() {
			if err := c.run((b.N + id) / threads); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	after, err := core.Stats()
	if err != nil {
		b.Fatal(err)
	}
	if rate := float64(after.Hits-before.Hits) / float64(b.N); b.N > 1000 && (miss && rate > 0.01 || !miss && rate < 0.99) {
		b.Errorf("%.1f %% of the requests hit", 100*rate)
	}
}
