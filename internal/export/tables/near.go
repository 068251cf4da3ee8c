package tables

import "maps"

// near adds up how long a process had more than nine tenths of its peak in use. The peak is known only at the end, so until then
// near keeps times by level, for levels that are near the peak so far. With up to levelsMost/2 levels that is exact. With more,
// adjacent levels share an entry, and an entry may count although a part of it, less than a two-thousandth of the peak, is not
// near.
type near struct {
	levels      map[int64]uint64 // ns by bytes in use, rounded up
	grain       int64            // width of an entry in bytes, minus one
	peak, level int64
	since       uint64 // time from which on level is in use
}

// levelsMost bounds the levels of a process.
const levelsMost = 4096

func (n *near) isLevelNearPeak(level int64) bool { return level > n.peak-n.peak/10 }

// noteLevel takes the bytes in use from a time on. A level that is not real, as while carried memory is incomplete, is no peak.
func (n *near) noteLevel(level int64, now uint64, real bool) {
	if level == n.level && (!real || level <= n.peak) {
		return
	}
	n.countTimeNearPeak(now)
	if n.level = level; real {
		n.peak = max(n.peak, level)
	}
}

func (n *near) countTimeNearPeak(now uint64) {
	if n.level > 0 && n.isLevelNearPeak(n.level) && now > n.since {
		if n.levels == nil {
			n.levels = map[int64]uint64{}
		}
		if n.levels[n.level|n.grain] += now - n.since; len(n.levels) > levelsMost {
			n.dropFarLevels()
		}
	}
	n.since = max(n.since, now)
}

// dropFarLevels forgets levels that are no longer near, and merges others while there are too many.
func (n *near) dropFarLevels() {
	maps.DeleteFunc(n.levels, func(level int64, _ uint64) bool { return !n.isLevelNearPeak(level) })
	for len(n.levels) > levelsMost/2 {
		n.grain = 2*n.grain + 1
		fewer := make(map[int64]uint64, len(n.levels))
		for level, ns := range n.levels {
			fewer[level|n.grain] += ns
		}
		n.levels = fewer
	}
}

// timeNearPeak returns the time in ns until the end.
func (n *near) timeNearPeak(now uint64) (sum uint64) {
	n.countTimeNearPeak(now)
	for level, ns := range n.levels {
		if n.isLevelNearPeak(level) {
			sum += ns
		}
	}
	return sum
}
