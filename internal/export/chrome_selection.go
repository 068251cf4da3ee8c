package export

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// aliveMax is how many lifetimes of one name are open at once. Perfetto gives each a lane, and looks through the lanes
// of a name, one after the other, for each event of it.
const aliveMax = 4096

// choose applies the options to the tags.
func (x *chrome) choose() {
	var top map[string]bool
	if x.opts.Lifetimes > 0 {
		top = x.seen.largest(x.opts.Lifetimes)
	}
	for _, p := range x.seen.processes {
		p.slabs()
		for _, t := range p.tags {
			t.alive = 0
			t.stackWritten = t.stack == ""
			t.chosen = x.opts.Tag == nil || x.opts.Tag.MatchString(t.name)
			t.shown = t.chosen && !x.opts.NoLifetimes && (top == nil || top[t.name])
		}
	}
}

func (x *chrome) full() bool { return x.opts.MaxEvents > 0 && x.out.events >= x.opts.MaxEvents }

// lifetime reports whether a lifetime is to be begun now; alive counts those of its name.
func (x *chrome) lifetime(t *tag, bytes uint64, alive *int) bool {
	if x.opts.NoLifetimes {
		return false
	}
	if !t.shown || bytes < x.opts.MinSize || x.full() || *alive >= aliveMax {
		x.report.DroppedLifetimes++
		return false
	}
	*alive++
	x.report.Lifetimes++
	return true
}

// pools are the names under which blocks in the pool show, made once for each size.
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

// pool is one name.
type pool struct {
	begin, end, quoted string
	alive              int
}

// poolOf returns the tag and the name of a block's stay in the pool.
func (x *chrome) poolOf(p *running, b *heap.Block) (*tag, *pool) {
	slab := b.State == heap.Slab
	t := p.tag(b.Tag)
	if slab {
		t = p.slabs()
	}
	key := poolKey{p.number, slab, b.Size}
	group := x.pools.bySize[key]
	if group == nil {
		group = x.pools.add(key)
	}
	return t, group
}

func (s *pools) add(key poolKey) *pool {
	if s.byName == nil {
		s.byName = map[poolName]*pool{}
	}
	if s.bySize == nil || len(s.bySize) >= poolsMax {
		s.bySize = map[poolKey]*pool{}
	}
	category, word := "cache", "free "
	if key.slab {
		category, word = "slab", "slab "
	}
	name := poolName{key.process, `"` + word + units.Format(key.size) + `"`}
	group := s.byName[name]
	if group == nil {
		group = &pool{
			begin: `{"ph":"b","cat":"` + category + `","name":`, end: `{"ph":"e","cat":"` + category + `","name":`, quoted: name.quoted,
		}
		s.byName[name] = group
	}
	s.bySize[key] = group
	return group
}
