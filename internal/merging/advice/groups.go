package advice

import (
	"cmp"
	"slices"
	"strings"
)

// Group is blocks that serve buffers of the same call sites.
type Group struct {
	Sites   []string `json:"sites"`   // by the order of their buffers in the first of the blocks
	Blocks  int      `json:"blocks"`  // each serves two buffers or more, one after the other
	Buffers int      `json:"buffers"` // that these serve
	Bytes   uint64   `json:"bytes"`   // of the blocks
}

// Groups returns the blocks of a run's plan by the call sites whose buffers they serve, those that serve most buffers first.
func (r *Run) Groups() []Group {
	var groups []Group
	at := map[string]int{}
	for _, members := range r.Found.Reuse.Groups {
		var sites []string
		var most uint64
		for _, buffer := range members {
			b := &r.Program.Buffers[buffer]
			most = max(most, b.Size)
			if name := r.Program.Name(b.Site); !slices.Contains(sites, name) {
				sites = append(sites, name)
			}
		}
		key := strings.Join(slices.Sorted(slices.Values(sites)), "\x00")
		i, seen := at[key]
		if !seen {
			i = len(groups)
			at[key] = i
			groups = append(groups, Group{Sites: sites})
		}
		g := &groups[i]
		g.Blocks++
		g.Buffers += len(members)
		g.Bytes += most
	}
	slices.SortStableFunc(groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(y.Buffers, x.Buffers), cmp.Compare(y.Bytes, x.Bytes))
	})
	return groups
}

// left returns how many copies between buffers remain.
func (r *Run) left() int {
	return r.Found.Copies - r.Found.NoOps - r.Found.Merged.Coalescings
}
