package allocator

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
)

// Description describes a policy.
type Description struct {
	Name    string
	Source  string  // a program, article or seed from which the policy comes
	Summary string  // a paragraph
	Limits  []Limit // the limits that it obeys, with defaults
}

// kind is one policy of the catalogue.
type kind struct {
	Description
	names        []string                                   // limits that it obeys
	defaults     []Setting                                  // that differ from limitTable's
	rule         rule                                       // for whole blocks; nil: it caches nothing
	pinned       bool                                       // caches only host memory that the device accesses directly
	carver       func(align uint64, l *limits) carve.Carver // nil: no slabs
	takesLayouts bool                                       // takes a Layout
}

// cutsSlabs reports whether a policy cuts slabs into sub-allocations.
func (k *kind) cutsSlabs() bool { return k.carver != nil || k.takesLayouts }

// every lists the limits that all caching policies obey.
var every = []string{"max_cached_bytes", "max_cached_fraction", "over_limit", "max_age", "proportion", "drain_order"}

// withLimitsOfAll returns names and the limits in every.
func withLimitsOfAll(names ...string) []string { return append(names, every...) }

// catalogue defines each policy.
var catalogue = [...]kind{
	{
		Description: Description{
			Name:    "none",
			Source:  "no pool",
			Summary: "Only watches: every buffer comes from the driver and goes back to it.",
		},
	},
	{
		Description: Description{
			Name:   "futhark-2018",
			Source: "How Futhark manages GPU memory, Troels Henriksen 2018",
			Summary: "Keeps one free block per call site. It serves the site's next request if it is large enough and at most twice as large; " +
				"otherwise it is released, and a block of exactly the right size is created. A freed block replaces its site's former one. " +
				"Good for loops that request the same sizes at the same places.",
		},
		names: withLimitsOfAll("max_per_tag", "max_waste_ratio", "min_block", "steal_other_tag"),
		defaults: []Setting{
			{"max_per_tag", "1"}, {"min_block", "4"}, {"steal_other_tag", "off"}, {"drain_order", "slot"},
		},
		rule: first2018{},
	},
	{
		Description: Description{
			Name:   "futhark",
			Source: "rts/c/free_list.h, the free list of Futhark's runtime since 2022",
			Summary: "Best fit: the smallest sufficient free block serves if it is small, comes from the same call site, or is less than twice " +
				"the request. Blocks have the requested size, so little is wasted. What the program outgrew or has not " +
				"asked for in 10 seconds goes back, and so does what exceeds 1.5 times its recent peak and 32 MiB. When the driver runs out " +
				"of memory, free blocks go back one by one. The default: it suits most programs.",
		},
		names:    withLimitsOfAll("max_per_tag", "max_waste_ratio", "min_block", "steal_other_tag", "outgrown"),
		defaults: []Setting{{"drain_order", "slot"}, {"max_age", "10"}, {"proportion", "1.5"}, {"outgrown", "on"}},
		rule:     futhark{},
	},
	{
		Description: Description{
			Name:   "pow2",
			Source: "netcl, BufferPool",
			Summary: "Rounds every request up to a power of two and serves it from a free block of exactly that size, the latest first. Few " +
				"misses when sizes vary, but up to half of each block is wasted.",
		},
		names:    withLimitsOfAll("max_per_bucket", "min_block"),
		defaults: []Setting{{"min_block", "4"}},
		rule:     pow2,
	},
	{
		Description: Description{
			Name:   "buckets",
			Source: "netcl, PersistentBufferPool",
			Summary: "Rounds requests up to one of a few sizes, by default 1 KiB to 256 MiB in steps of four, and to powers of two above. Caches " +
				"at most 16 blocks per size and 4 GiB in all. Made for training loops that run for days; up to three quarters of a block " +
				"can be wasted.",
		},
		names:    withLimitsOfAll("bucket_sizes", "max_per_bucket", "min_block"),
		defaults: []Setting{{"max_per_bucket", "16"}, {"min_block", "1"}, {"over_limit", "reject-new"}},
		rule:     listed,
	},
	{
		Description: Description{
			Name:   "pinned",
			Source: "netcl, PinnedBufferPool",
			Summary: "Like pow2, but only for buffers created with CL_MEM_ALLOC_HOST_PTR: host memory that the device accesses directly, which " +
				"is expensive to create and used for transfers. All other buffers come from the driver.",
		},
		names:    withLimitsOfAll("max_per_bucket", "min_block"),
		defaults: []Setting{{"min_block", "4"}},
		rule:     pow2,
		pinned:   true,
	},
	{
		Description: Description{
			Name:   "mantissa",
			Source: "PyOpenCL, MemoryPool",
			Summary: "Sizes with the same leading bits share a bin, whose blocks have the largest of them: with 4 bits after the leading one at " +
				"most a sixteenth is wasted. When the driver runs out of memory, the largest blocks go back first.",
		},
		names:    withLimitsOfAll("mantissa_bits", "max_per_bucket", "min_block"),
		defaults: []Setting{{"min_block", "1"}, {"drain_order", "largest-first"}},
		rule:     mantissa,
	},
	{
		Description: Description{
			Name:   "slab",
			Source: "Vulkan Memory Allocation (Part 1 of N), crush depth",
			Summary: "Sub-allocates from large blocks (slabs): the smallest sufficient free range serves, and free neighbours merge. A slab has " +
				"max(M, H/K) bytes for requests up to M and a heap of H divided into K slabs; unset values come from the program's " +
				"requests. Larger requests get blocks of their own, cached as by futhark. Few driver objects, little waste.",
		},
		names:  withLimitsOfAll("max_part", "heap_bytes", "slabs_per_heap", "outgrown"),
		rule:   futhark{},
		carver: func(align uint64, _ *limits) carve.Carver { return carve.NewBestFit(align) },
	},
	{
		Description: Description{
			Name:   "buddy",
			Source: "TBuddy of Throughput-Oriented GPU Memory Allocation, Gelado and Garland 2019",
			Summary: "Like slab, but each sub-allocation is a power of two of pages, split off a block twice as large and merged with its other " +
				"half, its buddy, when both are free. Searching and merging take a step per doubling, and free memory stays regular; up to " +
				"half of a sub-allocation is wasted.",
		},
		names: withLimitsOfAll("max_part", "heap_bytes", "slabs_per_heap", "page_bytes", "outgrown"),
		rule:  futhark{},
		carver: func(align uint64, l *limits) carve.Carver {
			return carve.NewBuddy(max(l.pageBytes, align))
		},
	},
	{
		Description: Description{
			Name:   "ualloc",
			Source: "UAlloc of Throughput-Oriented GPU Memory Allocation, Gelado and Garland 2019",
			Summary: "Like buddy for large requests. Small ones get a slot in a bin of equal slots, a power of two of the device's alignment, in " +
				"a chunk that buddy serves: many tiny buffers lie close together and take one bit of a bitmap each.",
		},
		names:  withLimitsOfAll("max_part", "heap_bytes", "slabs_per_heap", "outgrown"),
		rule:   futhark{},
		carver: func(align uint64, _ *limits) carve.Carver { return carve.NewUAlloc(max(align, 8)) },
	},
	{
		Description: Description{
			Name:   "arena",
			Source: "gpumemtop's own",
			Summary: "Holds hardly more memory than the program needs at once. Like futhark, but gives blocks back before it holds more, until it " +
				"has a plan of what the program allocates in each iteration. Then each buffer gets its planned place in one slab. What departs " +
				"from the plan is served as before, and goes back to the driver when a few iterations have not needed it.",
		},
		names:        withLimitsOfAll("max_per_tag", "max_waste_ratio", "min_block", "steal_other_tag", "outgrown"),
		defaults:     []Setting{{"drain_order", "slot"}},
		rule:         futhark{},
		takesLayouts: true,
	},
}

// Default is the policy used unless another is named.
const Default = "futhark"

// PolicyNames returns the names of all policies.
func PolicyNames() []string {
	names := make([]string, len(catalogue))
	for i := range catalogue {
		names[i] = catalogue[i].Name
	}
	return names
}

// findPolicy returns a policy of the catalogue, nil when there is none of that name.
func findPolicy(name string) *kind {
	if name == Auto {
		name = AutoBase
	}
	for i := range catalogue {
		if catalogue[i].Name == name {
			return &catalogue[i]
		}
	}
	return nil
}

// defaultLimits returns a policy's defaults.
func (k *kind) defaultLimits() (l limits) {
	for i := range limitTable {
		text := limitTable[i].Text
		for _, s := range k.defaults {
			if s.Name == limitTable[i].Name {
				text = s.Value
			}
		}
		if err := l.setFromText(i, k.Name, text); err != nil {
			panic(err) // a mistake in a table
		}
	}
	return l
}

// listByName returns the limits with those names and their values, in the order of the table.
func (l *limits) listByName(names []string) []Limit {
	var obeyed []Limit
	for i := range limitTable {
		for _, name := range names {
			if name == limitTable[i].Name {
				obeyed = append(obeyed, l.limitAt(i))
			}
		}
	}
	return obeyed
}

// DescribePolicy returns the description of a policy, and whether there is one of that name.
func DescribePolicy(name string) (Description, bool) {
	k := findPolicy(name)
	if k == nil {
		return Description{}, false
	}
	d, defaults := k.Description, k.defaultLimits()
	if name == Auto {
		d = autoDescription
	}
	d.Limits = defaults.listByName(k.names)
	return d, true
}

// UsesSlabs reports whether a policy cuts slabs into sub-allocations.
func UsesSlabs(name string) bool {
	k := findPolicy(name)
	return k != nil && k.cutsSlabs()
}

// New returns a policy with its default limits changed by settings. It is an error if the policy is unknown, if it does
// not obey a limit, or if a value is out of range or contradicts another. The error says what is possible.
func New(name string, settings []Setting) (*Pool, error) {
	k := findPolicy(name)
	if k == nil {
		return nil, fmt.Errorf("unknown policy %q: want one of %s", name, strings.Join(PolicyNames(), ", "))
	}
	p := newPool(k)
	for _, s := range settings {
		i, err := limitIndex(name, k.names, s.Name)
		if err == nil {
			err = p.limits.setFromText(i, name, s.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := p.limits.checkLimitCombination(k.names); err != nil {
		return nil, err
	}
	return p, nil
}
