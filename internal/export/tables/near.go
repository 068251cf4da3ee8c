package tables

import "maps"

// near adds up how long a process had more than nine tenths of its peak in use, exactly. The peak is known at the end only: until
// then it keeps times by levels, of those that are near the peak so far.
type near struct {
	levels      map[int64]uint64 // ns by bytes in use
	kept        int              // levels after the last clean-up
	peak, level int64
	since       uint64 // time from which on level is in use
}

func (n *near) isNear(level int64) bool { return level > n.peak-n.peak/10 }

// note takes what is in use from a time on. A level that never was, as carried memory is not whole yet, is no peak.
func (n *near) note(level int64, now uint64, real bool) {
	if level == n.level && (!real || level <= n.peak) {
		return
	}
	n.count(now)
	if n.level = level; !real || level <= n.peak {
		return
	}
	if n.peak = level; len(n.levels) > 2*n.kept+64 {
		maps.DeleteFunc(n.levels, func(level int64, _ uint64) bool { return !n.isNear(level) })
		n.kept = len(n.levels)
	}
}

func (n *near) count(now uint64) {
	if n.level > 0 && n.isNear(n.level) && now > n.since {
		if n.levels == nil {
			n.levels = map[int64]uint64{}
		}
		n.levels[n.level] += now - n.since
	}
	n.since = max(n.since, now)
}

// end returns the time in ns until the end.
func (n *near) end(now uint64) (sum uint64) {
	n.count(now)
	for level, ns := range n.levels {
		if n.isNear(level) {
			sum += ns
		}
	}
	return sum
}
