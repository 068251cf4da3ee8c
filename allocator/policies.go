package allocator

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator/carve"
)

// Description says what a policy is.
type Description struct {
	Name    string
	Source  string  // where it comes from
	Summary string  // a paragraph
	Limits  []Limit // that it obeys, with defaults
}

// kind is one policy of the catalogue.
type kind struct {
	Description
	names    []string                                   // of the limits that it obeys
	defaults []Setting                                  // where they differ from the table's
	rule     rule                                       // of whole blocks; nil caches nothing
	pinned   bool                                       // caches host memory that the device reaches by itself, and nothing else
	carver   func(align uint64, l *limits) carve.Carver // nil: no slabs
}

// every policy that caches obeys these.
var every = []string{"max_cached_bytes", "max_cached_fraction", "over_limit", "max_age", "drain_order"}

// with returns the limits that every policy obeys and some more.
func with(names ...string) []string { return append(names, every...) }

// catalogue lists the policies once.
var catalogue = [...]kind{
	{
		Description: Description{
			Name:    "none",
			Source:  "no pool",
			Summary: "Observes only: every buffer comes from the driver and goes back to it.",
		},
	},
	{
		Description: Description{
			Name:   "futhark-2018",
			Source: "How Futhark manages GPU memory, Troels Henriksen 2018",
			Summary: "One free block for each call site. It serves the next request of that site if it is at least as large as that and " +
				"at most twice; otherwise it is released, and a block of just the right size is created. A freed block takes the " +
				"place of the one that its site had. Good when a loop asks for the same sizes again and again at the same places.",
		},
		names: with("max_per_tag", "max_waste_ratio", "min_block", "steal_other_tag"),
		defaults: []Setting{
			{"max_per_tag", "1"}, {"min_block", "4"}, {"steal_other_tag", "off"}, {"drain_order", "slot"},
		},
		rule: first2018{},
	},
	{
		Description: Description{
			Name:   "futhark",
			Source: "rts/c/free_list.h, the free list of Futhark's runtime since 2022",
			Summary: "Best fit: the smallest free block that is large enough serves, if it is small, or comes from the same call site, or is " +
				"less than twice the request. Blocks have the size that was asked for, so little is wasted. When the driver has no memory " +
				"left, free blocks go back one by one. The default: it suits programs that nobody knows.",
		},
		names:    with("max_per_tag", "max_waste_ratio", "min_block", "steal_other_tag"),
		defaults: []Setting{{"drain_order", "slot"}},
		rule:     futhark{},
	},
	{
		Description: Description{
			Name:   "pow2",
			Source: "netcl, BufferPool",
			Summary: "Every request is rounded up to a power of two and served by a free block of exactly that size, the latest first. Few " +
				"misses when sizes vary, at the price of up to half of each block.",
		},
		names:    with("max_per_bucket", "min_block"),
		defaults: []Setting{{"min_block", "4"}},
		rule:     pow2,
	},
	{
		Description: Description{
			Name:   "buckets",
			Source: "netcl, PersistentBufferPool",
			Summary: "Requests are rounded up to one of a few sizes, by default 1 KiB to 256 MiB in steps of four, and to powers of two above. At " +
				"most 16 blocks of a size wait, and 4 GiB in all; what is freed beyond that goes to the driver. Made for training loops " +
				"that run for days; up to three quarters of a block can be waste.",
		},
		names:    with("bucket_sizes", "max_per_bucket", "min_block"),
		defaults: []Setting{{"max_per_bucket", "16"}, {"min_block", "1"}, {"over_limit", "reject-new"}},
		rule:     listed,
	},
	{
		Description: Description{
			Name:   "pinned",
			Source: "netcl, PinnedBufferPool",
			Summary: "Like pow2, but for buffers made with CL_MEM_ALLOC_HOST_PTR alone: host memory that the device reaches by itself, which is " +
				"dear to make and is used for transfers. All other buffers come from the driver.",
		},
		names:    with("max_per_bucket", "min_block"),
		defaults: []Setting{{"min_block", "4"}},
		rule:     pow2,
		pinned:   true,
	},
	{
		Description: Description{
			Name:   "mantissa",
			Source: "PyOpenCL, MemoryPool",
			Summary: "Sizes with the same leading bits share a bin, and its blocks have the largest of them: with 4 bits behind the leading one a " +
				"sixteenth is wasted at most. When the driver has no memory left, the largest blocks go back first.",
		},
		names:    with("mantissa_bits", "max_per_bucket", "min_block"),
		defaults: []Setting{{"min_block", "1"}, {"drain_order", "largest-first"}},
		rule:     mantissa,
	},
	{
		Description: Description{
			Name:   "slab",
			Source: "Vulkan Memory Allocation (Part 1 of N), crush depth",
			Summary: "Buffers are parts of large blocks: the smallest free range that is large enough serves, and neighbours that are free are " +
				"joined. A slab has max(M, H/K) bytes for requests of up to M, a heap of H and K slabs of it; what is not set comes from what " +
				"the program asks for. Larger requests get blocks of their own, kept as futhark does. Few driver objects, little waste.",
		},
		names:  with("max_part", "heap_bytes", "slabs_per_heap"),
		rule:   futhark{},
		carver: func(align uint64, _ *limits) carve.Carver { return carve.NewBestFit(align) },
	},
	{
		Description: Description{
			Name:   "buddy",
			Source: "TBuddy of Throughput-Oriented GPU Memory Allocation, Gelado and Garland 2019",
			Summary: "Buffers are parts of slabs, as with slab, but of a power of two of pages each: a part is split off a block twice as large " +
				"and joined with its other half, its buddy, when both are free. Finding and joining take a step per doubling, and what is " +
				"free is never cut up oddly; up to half of a part is waste.",
		},
		names: with("max_part", "heap_bytes", "slabs_per_heap", "page_bytes"),
		rule:  futhark{},
		carver: func(align uint64, l *limits) carve.Carver {
			return carve.NewBuddy(max(l.pageBytes, align))
		},
	},
	{
		Description: Description{
			Name:   "ualloc",
			Source: "UAlloc of Throughput-Oriented GPU Memory Allocation, Gelado and Garland 2019",
			Summary: "Like buddy for large requests. Small ones get a slot in a bin, which has slots of one size, a power of two of the device's " +
				"alignment, in a chunk that buddy serves: many tiny buffers lie close together and take a bit of a bitmap each.",
		},
		names:  with("max_part", "heap_bytes", "slabs_per_heap"),
		rule:   futhark{},
		carver: func(align uint64, _ *limits) carve.Carver { return carve.NewUAlloc(max(align, 8)) },
	},
}

// Default is the policy that serves where nobody names one.
const Default = "futhark"

// Names returns the names of all policies.
func Names() []string {
	names := make([]string, len(catalogue))
	for i := range catalogue {
		names[i] = catalogue[i].Name
	}
	return names
}

// find returns a policy of the catalogue, nil when there is none of that name.
func find(name string) *kind {
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

// limits returns a policy's defaults.
func (k *kind) limits() (l limits) {
	for i := range limitTable {
		text := limitTable[i].Text
		for _, s := range k.defaults {
			if s.Name == limitTable[i].Name {
				text = s.Value
			}
		}
		if err := l.set(i, k.Name, text); err != nil {
			panic(err) // a mistake in a table
		}
	}
	return l
}

// list returns the limits of those names with their values, in the order of the table.
func (l *limits) list(names []string) []Limit {
	var obeyed []Limit
	for i := range limitTable {
		for _, name := range names {
			if name == limitTable[i].Name {
				obeyed = append(obeyed, l.get(i))
			}
		}
	}
	return obeyed
}

// Describe returns what the policy of that name is, and whether there is one.
func Describe(name string) (Description, bool) {
	k := find(name)
	if k == nil {
		return Description{}, false
	}
	d, defaults := k.Description, k.limits()
	if name == Auto {
		d = autoDescription
	}
	d.Limits = defaults.list(k.names)
	return d, true
}

// New returns a policy with its default limits changed by settings. An unknown policy, or a limit that it does not
// obey, that is out of range or contradicts another one, is an error that says what there is.
func New(name string, settings []Setting) (Policy, error) {
	k := find(name)
	if k == nil {
		return nil, fmt.Errorf("unknown policy %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	p := newPool(k)
	for _, s := range settings {
		i, err := lookup(name, k.names, s.Name)
		if err == nil {
			err = p.limits.set(i, name, s.Value)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := p.limits.contradiction(k.names); err != nil {
		return nil, err
	}
	return p, nil
}
