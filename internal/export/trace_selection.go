package export

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// aliveMax bounds the lifetimes of one name that are open at once. Perfetto gives each a lane, and searches the lanes of a name
// one after the other for each of its events.
const aliveMax = 4096

// chooseTagsByOptions applies the options to the tags.
func (x *trace) chooseTagsByOptions() {
	var top map[string]bool
	if x.opts.Lifetimes > 0 {
		top = x.seen.namesOfLargestTags(x.opts.Lifetimes)
	}
	for _, p := range x.seen.processes {
		p.slabTag()
		for _, t := range p.tags {
			t.alive, t.stackID, t.inUse, t.counted = 0, 0, 0, false
			t.stackWritten = t.stack == ""
			t.chosen = x.opts.Tag == nil || x.opts.Tag.MatchString(t.name)
			t.shown = t.chosen && !x.opts.NoLifetimes && (top == nil || top[t.name])
		}
	}
}

// countersOfSites bounds the call sites with a counter of their own. They are those that created the most bytes, each more than
// a hundredth of all.
const countersOfSites = 8

// chooseCountedSites chooses the call sites with a counter of their own.
func (x *trace) chooseCountedSites() {
	top, all := x.seen.namesOfLargestTags(countersOfSites), uint64(0)
	for _, p := range x.seen.processes {
		for _, t := range p.tags {
			all += t.bytes
		}
	}
	for _, p := range x.seen.processes {
		p.counted = nil
		for _, t := range p.tags {
			if t.counted = top[t.name] && t.bytes > all/100; t.counted {
				p.counted = append(p.counted, t)
			}
		}
		slices.SortFunc(p.counted, func(a, b *tag) int { return cmp.Compare(a.name, b.name) })
	}
}

func (x *trace) hasMaxEvents() bool {
	return x.opts.MaxEvents > 0 && x.out.eventCount() >= x.opts.MaxEvents
}

// shouldBeginLifetime reports whether to begin a lifetime; alive counts the open ones of its name.
func (x *trace) shouldBeginLifetime(t *tag, bytes uint64, alive *int) bool {
	if x.opts.NoLifetimes {
		return false
	}
	if !t.shown || bytes < x.opts.MinSize || x.hasMaxEvents() || *alive >= aliveMax {
		x.report.DroppedLifetimes++
		return false
	}
	*alive++
	x.report.Lifetimes++
	return true
}

// pools has the names under which blocks in the pool show, made once for each size.
type pools struct {
	bySize map[poolKey]*pool
	byName map[poolName]*pool
}

// poolsMax bounds the sizes that are remembered; names are few.
const poolsMax = 1 << 12

type poolKey struct {
	process uint32
	slab    bool
	size    uint64
}

type poolName struct {
	process uint32
	quoted  string
}

// pool is a name under which blocks show.
type pool struct {
	category category
	quoted   string
	alive    int
}

// tagAndPoolOfBlock returns the tag and the name of a block's stay in the pool.
func (x *trace) tagAndPoolOfBlock(p *running, b *heap.Block) (*tag, *pool) {
	slab := b.State == heap.Slab
	t := p.tag(b.Tag)
	if slab {
		t = p.slabTag()
	}
	key := poolKey{p.number, slab, b.Size}
	group := x.pools.bySize[key]
	if group == nil {
		group = x.pools.addPool(key)
	}
	return t, group
}

func (s *pools) addPool(key poolKey) *pool {
	if s.byName == nil {
		s.byName = map[poolName]*pool{}
	}
	if s.bySize == nil || len(s.bySize) >= poolsMax {
		s.bySize = map[poolKey]*pool{}
	}
	category, word := inCache, "free "
	if key.slab {
		category, word = slabs, "slab "
	}
	name := poolName{key.process, `"` + word + units.Format(key.size) + `"`}
	group := s.byName[name]
	if group == nil {
		group = &pool{category: category, quoted: name.quoted}
		s.byName[name] = group
	}
	s.bySize[key] = group
	return group
}
