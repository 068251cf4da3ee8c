package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/allocator/tbuddy"
	"codeberg.org/gpumemtop/gpumemtop/allocator/ualloc"
	"codeberg.org/gpumemtop/gpumemtop/intercept/broker"
)

const (
	// depth is how many blocks each thread holds at a time.
	depth = 8
	// deviceAlign is where parts of slabs may begin, in bytes.
	deviceAlign = 256
	// bigPart is the request of a miss, in bytes: as large as the slab that is made for it, so that nothing else finds
	// room there.
	bigPart = 16 * mib
)

// requestSizes are what a thread asks for, one after the other, in bytes.
var requestSizes = [depth]uint64{64, 128, 192, 256, 384, 512, 768, 1024}

var (
	errRefused = errors.New("refused a request")
	errShared  = errors.New("threads that meet share the tree")
)

// aloneName is the tree buddy allocator as long as no two calls have met.
const aloneName = "[tree buddy, alone]"

// step has a thread allocate and free so often.
type step = func(pairs int) error

// contender hands memory out. Start makes it anew and returns what each thread does, and what is to be checked after so
// many pairs, nil for nothing.
type contender struct {
	name  string
	start func(threads int) (steps []step, check step, err error)
}

// measure returns the ns of one alloc and free, measured for some time, but with so many pairs at least.
func (c contender) measure(threads, pairs int, least time.Duration) (float64, error) {
	steps, check, err := c.start(threads)
	if err != nil {
		return 0, err
	}
	done := 0
	ns, err := lasting(least, pairs, func(pairs int) (float64, error) {
		done += pairs
		return share(pairs, steps)
	})
	if err == nil && check != nil {
		err = check(done)
	}
	return ns, err
}

// rings returns threads that hold depth things each, and give the oldest back before they take the next.
func rings[T any](threads int, take func(thread, slot int) (T, error), give func(thread int, what T)) ([]step, error) {
	steps := make([]step, threads)
	for thread := range steps {
		held := new([depth]T)
		for slot := range held {
			var err error
			if held[slot], err = take(thread, slot); err != nil {
				return nil, err
			}
		}
		steps[thread] = func(pairs int) (err error) {
			for i := range pairs {
				slot := i % depth
				give(thread, held[slot])
				if held[slot], err = take(thread, slot); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return steps, nil
}

// inBroker is a policy as a program uses it: all its requests hit, or it keeps nothing and all of them miss.
func inBroker(policy string, hit bool) contender {
	return contender{policy, func(threads int) ([]step, step, error) {
		limits := ""
		if !hit {
			limits = keepNothing(policy)
		}
		core, err := broker.New(policy, limits)
		if err != nil {
			return nil, nil, err
		}
		callers := make([]*caller, threads)
		for id := range callers {
			callers[id] = &caller{core: core, tag: allocator.Tag(1 + id), big: !hit, out: make([]broker.Eviction, 0, 64)}
		}
		steps, err := rings(threads,
			func(id, slot int) (allocator.Block, error) { return callers[id].alloc(slot) },
			func(id int, block allocator.Block) { callers[id].free(block) })
		if err != nil {
			return nil, nil, err
		}
		before, err := core.Stats()
		return steps, func(pairs int) error { return checkHits(core, before.Hits, pairs, hit) }, err
	}}
}

// checkHits says when more than one request in a hundred went the way that is not measured.
func checkHits(core *broker.Broker, before uint64, pairs int, hit bool) error {
	after, err := core.Stats()
	if err != nil {
		return err
	}
	rate := float64(after.Hits-before) / float64(pairs)
	if hit && rate < 0.99 || !hit && rate > 0.01 {
		return fmt.Errorf("%s of its requests hit", percent(rate))
	}
	return nil
}

// keepNothing returns limits under which every request for bigPart misses: nothing is kept, and a slab holds one part.
func keepNothing(policy string) string {
	var limits []string
	for _, limit := range []struct {
		name  string
		value int
	}{{"max_cached_bytes", 0}, {"max_part", bigPart}, {"slabs_per_heap", 1e6}} {
		if obeys(policy, limit.name) {
			limits = append(limits, fmt.Sprintf("%s=%d", limit.name, limit.value))
		}
	}
	return strings.Join(limits, ",")
}

// obeys says whether a policy has a limit of that name.
func obeys(policy, limit string) bool {
	description, _ := allocator.Describe(policy)
	return slices.ContainsFunc(description.Limits, func(l allocator.Limit) bool { return l.Name == limit })
}

// carves says whether a policy hands out parts of slabs.
func carves(policy string) bool { return obeys(policy, "max_part") }

// caller is one thread of a program, and does for it what the shim does.
type caller struct {
	core *broker.Broker
	tag  allocator.Tag
	big  bool // asks for bigPart
	out  []broker.Eviction
}

func (c *caller) alloc(slot int) (allocator.Block, error) {
	size := requestSizes[slot]
	if c.big {
		size = bigPart
	}
	req := allocator.Request{Size: size, Align: deviceAlign, Class: 1, Tag: c.tag, Pinned: true}
	plan, _, _, err := c.core.Plan(req, c.out[:0])
	if err == nil && plan.SlabSize != 0 {
		_, err = c.core.Grown(plan.Plan, 1)
	}
	if err == nil && (plan.Slab != 0 || !plan.Hit) {
		_, err = c.core.Commit(plan.Plan, 1)
	}
	return plan.Block, err
}

// free gives a block back. When the broker has failed, the next alloc says so.
func (c *caller) free(block allocator.Block) { _, _, _ = c.core.Free(block, false, 0, c.out[:0]) }

// scatter makes threads look in different places of a buddy allocator.
func scatter(thread int) uint64 { return uint64(thread) * 0x9e3779b97f4a7c15 }

// direct are the structures that all threads call by themselves, what these are compared with, and Go's allocator.
func direct() []contender {
	const pages = 1 << 12
	return []contender{
		{"[tree buddy]", func(threads int) ([]step, step, error) { return buddyRings(threads, tbuddy.NewShared(pages)) }},
		{aloneName, func(threads int) ([]step, step, error) {
			if threads > 1 {
				return nil, nil, errShared
			}
			return buddyRings(threads, tbuddy.New(pages))
		}},
		{"[counting buddy]", func(threads int) ([]step, step, error) { return buddyRings(threads, tbuddy.NewCounting(pages)) }},
		{"[mutex buddy]", func(threads int) ([]step, step, error) { return buddyRings(threads, tbuddy.NewMutex(pages)) }},
		{"[ualloc]", func(threads int) ([]step, step, error) {
			al, err := ualloc.New(tbuddy.New(pages), ualloc.Geometry{Unit: 8, Pages: pages}, threads)
			if err != nil {
				return nil, nil, err
			}
			steps, err := rings(threads, func(id, slot int) (uint64, error) {
				offset, _, ok := al.Alloc(id, requestSizes[slot])
				return offset, refusal(ok)
			}, func(_ int, offset uint64) { al.Free(offset) })
			return steps, nil, err
		}},
		{"[Go's make]", func(threads int) ([]step, step, error) {
			steps, err := rings(threads, func(_, slot int) ([]byte, error) { return make([]byte, requestSizes[slot]), nil },
				func(int, []byte) {})
			return steps, nil, err
		}},
	}
}

// buddyRings are threads that take 1, 2, 4 and 8 pages in turn.
func buddyRings(threads int, from ualloc.Coarse) ([]step, step, error) {
	type block struct{ page, order int }
	steps, err := rings(threads, func(id, slot int) (block, error) {
		order := slot % 4
		page, ok := from.Alloc(order, scatter(id))
		return block{page, order}, refusal(ok)
	}, func(_ int, held block) { from.Free(held.page, held.order) })
	return steps, nil, err
}

func refusal(ok bool) error {
	if ok {
		return nil
	}
	return errRefused
}
