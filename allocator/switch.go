package allocator

import (
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// SwitchPolicy replaces the policy and its limits by those of next, at any time and as often as the caller likes. next comes
// from New; SwitchPolicy only copies its rule and limits.
//
// A block outside slabs stays if the new policy would have created a block of exactly that size, because creating it
// again would cost time. Every other block goes back to the driver, because no request would find it: at once if it is
// cached, in the drain_order of the former policy, otherwise when it comes back. The Eviction's Reason is
// wire.EvictPolicy.
//
// A pinned policy keeps no blocks, because blocks do not record whether they are host memory. A policy that sub-allocates
// keeps only blocks larger than its sub-allocations. A slab of a former policy goes with its last sub-allocation; until
// then its free ranges count as cached although they serve no request.
//
// Ids of blocks stay unique, open decisions may still be committed or aborted, dropped classes stay dropped, and
// counters and peaks continue. Only the record of evicted blocks, which explains misses, begins empty.
func (p *Pool) SwitchPolicy(next *Pool, time int64, out []Eviction) []Eviction {
	out = p.expireBlocks(time, p.evictDoomed(out))
	p.markStaleBlocks(next)
	out = p.evictStale(out)
	p.adoptRuleAndLimits(next)
	return p.evictBeyondLimits(p.giveBackExcess(0, 0, out))
}

// CarriedSettings returns the settings of policy from that stay in force under policy to: those that differ from their
// defaults, if policy to has the limit as well, and accepts the value together with the settings before it.
func CarriedSettings(from string, present []Setting, to string) (carried []Setting) {
	was, _ := DescribePolicy(from)
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

// markStaleBlocks marks the blocks that another policy would not have created.
func (p *Pool) markStaleBlocks(next *Pool) {
	for i := int32(1); i < p.made; i++ {
		e := p.entryAt(i)
		if e.state == unused {
			continue
		}
		stale := wire.EvictPolicy
		if !e.isSlab && next.createsBlocksOfSize(e.size) {
			stale = wire.EvictNone
		}
		p.setLeavesOnReturn(e, false, stale)
	}
}

// createsBlocksOfSize reports whether the policy creates blocks of a size for some request, and caches them.
func (p *Pool) createsBlocksOfSize(size uint64) bool {
	if p.rule == nil || p.pinned || p.carver != nil && !exceedsBound(size, p.limits.largestSubAlloc()) {
		return false
	}
	return p.rule.grantedSize(&Request{Size: size}, &p.limits) == size
}

// adoptRuleAndLimits adopts another policy's rule and limits, and sorts the free lists as the rule needs. No cached block may be
// stale, and no slab may be cached.
func (p *Pool) adoptRuleAndLimits(next *Pool) {
	for i := range p.made {
		p.entryAt(i).class &^= ofArena // rebuildFreeLists sorts blocks by these classes
	}
	p.endLayout()
	p.kind, p.limits, p.layouts = next.kind, next.limits, next.layouts
	p.rebuildFreeLists(p.rule)
	switch {
	case p.maySlabsExist():
		p.slabs.retireCarvers()
	case p.kind.cutsSlabs():
		p.prepareForSlabs()
	}
}

// retireCarvers makes the present carvers former ones.
func (sl *slabs) retireCarvers() {
	for _, c := range sl.classes {
		if c.slabs > 0 {
			sl.former = append(sl.former, c)
		}
	}
	clear(sl.classes)
	sl.last = nil
}
