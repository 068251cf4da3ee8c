package allocator

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Switchable is a policy that can be exchanged for another at any time, as often as one likes. It costs nothing while it
// is not: it is the same pool, whose rule changes.
//
// One rule decides about every block that is not a part of a slab, be it cached, cooling or in use when the policy
// changes: the new policy keeps it if it would have created a block of just that size itself, so that such a block is as
// good as one of its own, and its limits then decide how many of these stay. Every other block goes back to the driver,
// at once when it is cached, in the drain_order of the former policy, else when it comes back; that Eviction's Reason is
// wire.EvictPolicy. To create them anew would cost the program what the pool is there to save; to keep the others would
// fill the new policy's shelves with blocks that its requests never find.
//
// A pinned policy takes none over: which of the others are of host memory nobody has noted. Nor does a policy that carves
// slabs take over blocks that it would have carved, or anybody slabs: a slab of a former policy goes with its last part.
// Free ranges in it count as cached until then, though they serve nobody.
//
// Numbers of blocks stay unique across switches, plans that are open may be carried out or aborted as if nothing had
// happened, dropped classes stay dropped, and counters, peaks and Rows go on (by bucket, gauges alone). What a miss can
// be blamed on begins anew.
type Switchable struct{ *pool }

// NewSwitchable makes a policy, which New has returned, exchangeable. From here on p belongs to it.
func NewSwitchable(p Policy) *Switchable { return &Switchable{poolOf(p)} }

// Switch goes over to another policy with its limits. to comes from New and only says what to do from here on: it is not
// used, nor kept.
func (s *Switchable) Switch(to Policy, time int64, out []Eviction) []Eviction {
	next := poolOf(to)
	out = s.expire(time, s.flush(out))
	s.disown(next)
	out = s.evictStale(out)
	s.follow(next)
	return s.fit(s.expire(time, out))
}

// Carried returns which limits of a policy, with their present values, hold for another that takes its place: those that
// somebody changed, the other has, too, and can obey together with those before.
func Carried(from string, present []Setting, to string) (carried []Setting) {
	was, _ := Describe(from)
	for _, s := range present {
		isDefault := slices.ContainsFunc(was.Limits, func(l Limit) bool { return l.Name == s.Name && l.Text == s.Value })
		if isDefault {
			continue
		}
		if _, err := New(to, append(carried, s)); err == nil {
			carried = append(carried, s)
		}
	}
	return carried
}

// poolOf returns the pool of a policy that New, or NewSwitchable, made. There are no others.
func poolOf(p Policy) *pool {
	switch p := p.(type) {
	case *pool:
		return p
	case *Switchable:
		return p.pool
	}
	panic(fmt.Sprintf("allocator: %T is no policy of this package", p))
}

// disown marks the blocks that another policy would not have made.
func (p *pool) disown(next *pool) {
	for i := 1; i < len(p.entries); i++ {
		e := &p.entries[i]
		if e.state == unused {
			continue
		}
		e.passes, e.stale = false, wire.EvictPolicy
		if !e.isSlab && next.makes(e.size) {
			e.stale = wire.EvictNone
		}
	}
}

// makes reports whether blocks of a size are what the policy creates for some request, and keeps.
func (p *pool) makes(size uint64) bool {
	if p.rule == nil || p.pinned || p.carver != nil && !over(size, p.limits.mostPart()) {
		return false
	}
	return p.rule.grant(&Request{Size: size}, &p.limits) == size
}

// follow takes on what another policy is and makes order by its rule. No cached block is stale, and no slab is cached.
func (p *pool) follow(next *pool) {
	p.kind, p.limits = next.kind, next.limits
	p.putUpShelves()
	for i := p.cachedByAge.oldest; i != 0; i = p.chain[i].newer {
		p.free.put(i, &p.entries[i])
	}
	for i := p.coolingByAge.oldest; i != 0; i = p.chain[i].newer {
		p.warm.put(i, &p.entries[i])
	}
	switch {
	case p.slabs != nil:
		p.slabs.retire()
	case p.carver != nil:
		p.slabs = newSlabs()
	}
	p.rebucket()
}

// retire keeps carvers for as long as they have slabs, and lets nobody carve these any more.
func (s *slabs) retire() {
	for _, c := range s.classes {
		if c.slabs > 0 {
			s.former = append(s.former, c)
		}
	}
	clear(s.classes)
}
