package allocator

import (
	"fmt"
	"slices"
	"strings"
)

// Description says what a policy is.
type Description struct {
	Name    string
	Source  string  // where it comes from
	Summary string  // a sentence or two
	Limits  []Limit // that it obeys, with defaults
}

// catalogue lists the policies once (futhark: seed 000; pow2: seed 003): their text, their limits (with a default where it differs from the table's),
// and their rule; nil caches nothing.
var catalogue = [...]struct {
	Description
	names    []string
	defaults []Setting
	rule     rule
}{
	{
		Description: Description{
			Name:    "none",
			Source:  "no pool",
			Summary: "Observes only: every buffer comes from the driver and goes back to it.",
		},
	},
	{
		Description: Description{
			Name:    "futhark",
			Source:  "the free list of Futhark, as its runtime has it today",
			Summary: "Best fit among free blocks that are small, or come from the same call site, or waste little; blocks have the size that was asked for.",
		},
		names: []string{"max_cached_bytes", "max_waste_ratio", "min_block"},
		rule:  futhark{},
	},
	{
		Description: Description{
			Name:    "pow2",
			Source:  "the BufferPool of netcl",
			Summary: "Rounds every request up to a power of two and reuses blocks of exactly that size: few misses when sizes vary, at the price of up to half of each block.",
		},
		names:    []string{"max_cached_bytes", "min_block"},
		defaults: []Setting{{"min_block", "4"}},
		rule:     pow2{},
	},
}

// Names returns the names of all policies.
func Names() []string {
	names := make([]string, len(catalogue))
	for i := range catalogue {
		names[i] = catalogue[i].Name
	}
	return names
}

// Describe returns what the policy of that name is, and whether there is one.
func Describe(name string) (Description, bool) {
	for i := range catalogue {
		if catalogue[i].Name == name {
			d := catalogue[i].Description
			d.Limits = newPool(i).Limits()
			return d, true
		}
	}
	return Description{}, false
}

// New returns a policy with its default limits changed by settings. An unknown policy, or a limit that it does not
// obey or that is out of range, is an error that says what there is.
func New(name string, settings []Setting) (Policy, error) {
	i := slices.Index(Names(), name)
	if i < 0 {
		return nil, fmt.Errorf("unknown policy %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	p := newPool(i)
	for _, s := range settings {
		if _, err := p.SetLimit(s.Name, s.Value, 0, nil); err != nil {
			return nil, err
		}
	}
	return p, nil
}
