package analysis

import (
	"cmp"
	"maps"
	"slices"
)

// books record what each call site of each process holds.
type books struct {
	sites map[uint64]*site
	cache [256]*site // the latest by tag
}

// held is what a call site holds at one moment. A late event may take it below 0 for a moment.
type held struct{ inUse, requested, buffers int64 }

// site is one call site of one process.
type site struct {
	process, tag uint32
	held
	free           int64 // of its blocks in the pool
	peak, peakFree int64 // the most of its own, in the first pass
	epoch          uint64
	saved          held // at the beginning of the epoch

	row            *row
	creates, total uint64 // of all its buffers
	leaked         leftover
}

// leftover is what a process never released.
type leftover struct{ buffers, bytes, oldest, retained uint64 }

func (b *books) siteOf(process, tag uint32) *site {
	place := &b.cache[(tag^process<<4)&255]
	if s := *place; s != nil && s.tag == tag && s.process == process {
		return s
	}
	key := uint64(process)<<32 | uint64(tag)
	s := b.sites[key]
	if s == nil {
		if b.sites == nil {
			b.sites = map[uint64]*site{}
		}
		s = &site{process: process, tag: tag}
		b.sites[key] = s
	}
	*place = s
	return s
}

// sortedSites returns the sites by process and tag.
func (b *books) sortedSites() []*site {
	return slices.SortedFunc(maps.Values(b.sites), func(a, b *site) int {
		return cmp.Or(cmp.Compare(a.process, b.process), cmp.Compare(a.tag, b.tag))
	})
}

// peak finds what each call site held when the most was in use, in O(1) per event: each new peak begins an epoch, and a
// call site that changes for the first time in an epoch saves what it held before, which is what it held at the peak.
type peak struct {
	epoch    uint64
	time     uint64
	inUse    int64
	reserved int64

	fragmentation float64 // external; below 0: unknown
}

// saveSiteBeforeChange must be called before a call site changes.
func (k *peak) saveSiteBeforeChange(s *site) {
	if s.epoch != k.epoch {
		s.epoch, s.saved = k.epoch, s.held
	}
}

// raisePeak must be called with the sum of all call sites after each change. It reports whether there is a new peak.
func (k *peak) raisePeak(now uint64, inUse, reserved int64) bool {
	if inUse <= k.inUse {
		return false
	}
	k.epoch++
	k.time, k.inUse, k.reserved = now, inUse, reserved
	return true
}

// heldAtPeak returns what a call site held at the peak.
func (k *peak) heldAtPeak(s *site) held {
	switch {
	case k.epoch == 0:
		return held{}
	case s.epoch == k.epoch:
		return s.saved
	}
	return s.held
}
