package planfile

import (
	"errors"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
)

// Run is what a recorded run of a program has shown.
type Run struct {
	Plan  *learn.Layout
	Sites map[allocator.Tag]Site // by the run's tags
}

// Why a request has no place.
const (
	livesOn  = "is needed for longer than an iteration"
	noArena  = "there are too many classes of buffers"
	notInAll = "is not the same in each recording"
)

// ErrNothing says that no plan can be made.
var ErrNothing = errors.New("nothing repeats in the same way in each recording: no plan can be made; record longer runs, or runs with the same sizes")

// Make makes a plan that holds in each run: what holds in some only is left out.
func Make(runs []Run) (*Plan, error) {
	m := &maker{tags: map[string]allocator.Tag{}}
	var phases [][]learn.Buffer
	for i := range runs {
		own := m.common(&runs[i])
		if i == 0 {
			phases = own
			continue
		}
		phases = inBoth(phases, own)
	}
	if len(phases) == 0 {
		return nil, ErrNothing
	}
	solved := learn.Solve(phases)
	if solved == nil {
		return nil, ErrNothing
	}
	p := m.plan(solved)
	p.Version, p.Recordings = version, len(runs)
	return p, nil
}

// maker gives the call sites of several runs tags that they have in common.
type maker struct {
	tags  map[string]allocator.Tag // by key; they count from 1
	sites []Site                   // by tag - 1
}

func (m *maker) tag(s Site) allocator.Tag {
	tag, known := m.tags[s.key()]
	if !known {
		m.sites = append(m.sites, s)
		tag = allocator.Tag(len(m.sites))
		m.tags[s.key()] = tag
	}
	return tag
}

// common returns a run's phases with common tags. Sites that another run could not have are left out.
func (m *maker) common(r *Run) (phases [][]learn.Buffer) {
	for _, buffers := range r.Plan.Phases {
		lacks := func(b *learn.Buffer) bool { return len(r.Sites[b.Tag].Frames) == 0 }
		kept := without(buffers, lacks)
		for i := range kept {
			kept[i].Tag = m.tag(r.Sites[kept[i].Tag])
		}
		if len(kept) > 0 {
			phases = append(phases, kept)
		}
	}
	return phases
}

// without leaves requests out of an iteration. The lives of others count those that stay.
func without(buffers []learn.Buffer, left func(*learn.Buffer) bool) (kept []learn.Buffer) {
	n := len(buffers)
	before := make([]uint64, 2*n+1) // how many stay before a request of two iterations
	for i := range 2 * n {
		before[i+1] = before[i]
		if !left(&buffers[i%n]) {
			before[i+1]++
		}
	}
	for i := range buffers {
		b := buffers[i]
		if left(&b) {
			continue
		}
		if b.Life > 0 {
			b.Life = before[min(i+int(b.Life), 2*n)] - before[i]
		}
		kept = append(kept, b)
	}
	return kept
}

// inBoth returns what two runs have in common of their phases.
func inBoth(some, others [][]learn.Buffer) (common [][]learn.Buffer) {
	for _, one := range some {
		var best []learn.Buffer
		for _, other := range others {
			if both := agreed(one, other); len(both) > len(best) {
				best = both
			}
		}
		if len(best) > 0 {
			common = append(common, best)
		}
	}
	return common
}

// agreed returns the requests of the call sites that make the same ones in two iterations, in the same order, with the
// longer of both lives.
func agreed(one, other []learn.Buffer) []learn.Buffer {
	gone := map[allocator.Tag]bool{}
	left := func(b *learn.Buffer) bool { return gone[b.Tag] }
	sizes := bySite(one)
	for tag, list := range bySite(other) {
		gone[tag] = !slices.Equal(sizes[tag], list)
		delete(sizes, tag)
	}
	for tag := range sizes {
		gone[tag] = true
	}
	for {
		a, b := without(one, left), without(other, left)
		if len(a) == 0 {
			return nil
		}
		shift, same := aligned(a, b)
		if same == len(a) {
			for i := range a {
				join(&a[i], &b[(i+shift)%len(b)])
			}
			return a
		}
		gone[a[same].Tag] = true // and try again: few programs need that
	}
}

// bySite returns the sizes that each call site asks for, in ascending order.
func bySite(buffers []learn.Buffer) map[allocator.Tag][]uint64 {
	sizes := map[allocator.Tag][]uint64{}
	for i := range buffers {
		sizes[buffers[i].Tag] = append(sizes[buffers[i].Tag], buffers[i].Size)
	}
	for _, list := range sizes {
		slices.Sort(list)
	}
	return sizes
}

// aligned returns how far to turn b so that most of its first requests are those of a, and how many these are.
func aligned(a, b []learn.Buffer) (shift, same int) {
	for by := range b {
		n := 0
		for n < len(a) && a[n].Tag == b[(n+by)%len(b)].Tag && a[n].Size == b[(n+by)%len(b)].Size {
			n++
		}
		if n > same {
			shift, same = by, n
		}
	}
	return shift, same
}

// join makes a request what it is in one of two runs or the other.
func join(b, other *learn.Buffer) {
	larger := func(a, b uint64) uint64 {
		if a == 0 || b == 0 {
			return 0
		}
		return max(a, b)
	}
	b.Life, b.Align = larger(b.Life, other.Life), larger(b.Align, other.Align)
}

// plan says in a file's words what was solved.
func (m *maker) plan(solved *learn.Layout) *Plan {
	p := &Plan{}
	for _, a := range solved.Arenas {
		p.Arenas = append(p.Arenas, Arena{a.Size, a.Align, a.Bound})
	}
	placed := make([][]Place, len(m.sites))
	known, next := make([]bool, len(m.sites)), 0
	for phase, buffers := range solved.Phases {
		for i := range buffers {
			b := &buffers[i]
			known[b.Tag-1] = true
			if !solved.HasPlace(b) {
				p.Outside = append(p.Outside, Outside{m.sites[b.Tag-1].Name, i + 1, phase + 1, b.Size, why(b)})
				continue
			}
			at := solved.Places[next]
			next++
			placed[b.Tag-1] = append(placed[b.Tag-1], Place{phase + 1, i + 1, at.Arena + 1, at.Size, at.Offset, b.Life})
		}
	}
	for i, site := range m.sites {
		switch {
		case len(placed[i]) > 0:
			p.Sites = append(p.Sites, Placed{site, placed[i]})
		case !known[i]:
			p.Outside = append(p.Outside, Outside{Name: site.Name, Phase: 1, Why: notInAll})
		}
	}
	return p
}

// why says why a request has no place.
func why(b *learn.Buffer) string {
	if b.Life == 0 {
		return livesOn
	}
	return noArena
}
