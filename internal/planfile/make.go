package planfile

import (
	"errors"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
)

// Run is a recorded run of a program.
type Run struct {
	Layout *learn.Layout
	Sites  map[allocator.Tag]Site // by the run's tags
}

// Reasons why a request has no place; plan files contain them.
const (
	livesOn  = "is needed for longer than an iteration"
	noArena  = "there are too many classes of buffers"
	notInAll = "is not the same in each recording"
)

// ErrNothing says that no plan can be made.
var ErrNothing = errors.New("nothing repeats in the same way in each recording: no plan can be made; record longer runs, or runs with the same sizes")

// MakePlan makes a plan that is valid for every run. Requests that differ between runs are left out.
func MakePlan(runs []Run) (*Plan, error) {
	m := &maker{tags: map[string]allocator.Tag{}}
	var phases [][]learn.Buffer
	for i := range runs {
		common := m.commonPhases(&runs[i])
		if i == 0 {
			phases = common
			continue
		}
		phases = commonPhasesOfRuns(phases, common)
	}
	if len(phases) == 0 {
		return nil, ErrNothing
	}
	solved := learn.MakeLayout(phases)
	if solved == nil {
		return nil, ErrNothing
	}
	p := m.planOfLayout(solved)
	p.Version, p.Recordings = version, len(runs)
	return p, nil
}

// maker gives the call sites of several runs common tags.
type maker struct {
	tags  map[string]allocator.Tag // by key; they count from 1
	sites []Site                   // by tag - 1
}

func (m *maker) tagOfSite(s Site) allocator.Tag {
	tag, known := m.tags[s.keyOfSite()]
	if !known {
		m.sites = append(m.sites, s)
		tag = allocator.Tag(len(m.sites))
		m.tags[s.keyOfSite()] = tag
	}
	return tag
}

// commonPhases returns a run's phases with common tags. It leaves out call sites that cannot be found in another run.
func (m *maker) commonPhases(r *Run) (phases [][]learn.Buffer) {
	for _, buffers := range r.Layout.Phases {
		hasNoFrames := func(b *learn.Buffer) bool { return len(r.Sites[b.Tag].Frames) == 0 }
		kept := leaveOutRequests(buffers, hasNoFrames)
		for i := range kept {
			kept[i].Tag = m.tagOfSite(r.Sites[kept[i].Tag])
		}
		if len(kept) > 0 {
			phases = append(phases, kept)
		}
	}
	return phases
}

// leaveOutRequests leaves requests out of a period. The lives of the others count only the requests that stay.
func leaveOutRequests(buffers []learn.Buffer, leftOut func(*learn.Buffer) bool) (kept []learn.Buffer) {
	n := len(buffers)
	stayBefore := make([]uint64, 2*n+1) // how many stay before a request of two periods
	for i := range 2 * n {
		stayBefore[i+1] = stayBefore[i]
		if !leftOut(&buffers[i%n]) {
			stayBefore[i+1]++
		}
	}
	for i := range buffers {
		b := buffers[i]
		if leftOut(&b) {
			continue
		}
		if b.Life > 0 {
			b.Life = stayBefore[min(i+int(b.Life), 2*n)] - stayBefore[i]
		}
		kept = append(kept, b)
	}
	return kept
}

// commonPhasesOfRuns returns what the phases of two runs have in common.
func commonPhasesOfRuns(phases, others [][]learn.Buffer) (common [][]learn.Buffer) {
	for _, phase := range phases {
		var best []learn.Buffer
		for _, other := range others {
			if both := commonRequests(phase, other); len(both) > len(best) {
				best = both
			}
		}
		if len(best) > 0 {
			common = append(common, best)
		}
	}
	return common
}

// commonRequests returns the requests of the call sites that make the same requests in two periods, in the same order.
// Each request has the longer of its two lives.
func commonRequests(first, second []learn.Buffer) []learn.Buffer {
	excluded := map[allocator.Tag]bool{}
	isExcluded := func(b *learn.Buffer) bool { return excluded[b.Tag] }
	sizes := sizesBySite(first)
	for tag, list := range sizesBySite(second) {
		excluded[tag] = !slices.Equal(sizes[tag], list)
		delete(sizes, tag)
	}
	for tag := range sizes {
		excluded[tag] = true
	}
	for {
		a, b := leaveOutRequests(first, isExcluded), leaveOutRequests(second, isExcluded)
		if len(a) == 0 {
			return nil
		}
		shift, same := rotationWithMostEqual(a, b)
		if same == len(a) {
			for i := range a {
				tightenRequirements(&a[i], &b[(i+shift)%len(b)])
			}
			return a
		}
		excluded[a[same].Tag] = true // then try again; few programs need that
	}
}

// sizesBySite returns the sizes that each call site requests, ascending.
func sizesBySite(buffers []learn.Buffer) map[allocator.Tag][]uint64 {
	sizes := map[allocator.Tag][]uint64{}
	for i := range buffers {
		sizes[buffers[i].Tag] = append(sizes[buffers[i].Tag], buffers[i].Size)
	}
	for _, list := range sizes {
		slices.Sort(list)
	}
	return sizes
}

// rotationWithMostEqual returns by how much to rotate b so that as many of its first requests as possible equal those of a, and
// the number of these requests.
func rotationWithMostEqual(a, b []learn.Buffer) (shift, same int) {
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

// tightenRequirements gives a request the stricter requirements of two runs.
func tightenRequirements(b, other *learn.Buffer) {
	larger := func(a, b uint64) uint64 {
		if a == 0 || b == 0 {
			return 0
		}
		return max(a, b)
	}
	b.Life, b.Align = larger(b.Life, other.Life), larger(b.Align, other.Align)
}

// planOfLayout converts a layout to a plan.
func (m *maker) planOfLayout(solved *learn.Layout) *Plan {
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
				p.Outside = append(p.Outside, Outside{m.sites[b.Tag-1].Name, i + 1, phase + 1, b.Size, whyUnplaced(b)})
				continue
			}
			place := solved.Places[next]
			next++
			placed[b.Tag-1] = append(placed[b.Tag-1], Place{phase + 1, i + 1, place.Arena + 1, place.Size, place.Offset, b.Life})
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

// whyUnplaced returns the reason why a request has no place.
func whyUnplaced(b *learn.Buffer) string {
	if b.Life == 0 {
		return livesOn
	}
	return noArena
}
