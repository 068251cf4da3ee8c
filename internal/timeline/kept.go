package timeline

import (
	"math"
	"math/bits"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Bounds of what is kept: pictures, and rows in all of them together, which is what they are made of. A few pictures
// there are whatever their size.
const (
	keptMost = 256
	keptRows = 200_000
	keptFew  = 8
)

// firstStep is how far apart pictures are at first where the length of the recording is not known, in ns.
const firstStep = 100_000_000

// kept are pictures of instants that are step apart, the first at from. Whenever there are too many every other one is
// dropped.
type kept struct {
	from, step uint64
	list       []*stats.Snapshot
	rows       int
}

// newKept returns room for the pictures of a recording that ends at until, as far as that is known.
func newKept(from, until uint64) kept {
	k := kept{from: from, step: firstStep}
	if until > from {
		k.step = (until-from)/(keptMost-1) + 1
	}
	return k
}

// timeOfNext is the time of the next picture. There is none behind the largest time, which a damaged event may have.
func (k *kept) timeOfNext() uint64 {
	high, ahead := bits.Mul64(uint64(len(k.list)), k.step)
	if high != 0 || k.from+ahead < k.from {
		return math.MaxUint64
	}
	return k.from + ahead
}

// keepNext keeps the picture of timeOfNext.
func (k *kept) keepNext(s *stats.Snapshot) {
	k.list = append(k.list, s)
	k.rows += countSnapshotRows(s)
	for len(k.list) > keptMost || k.rows > keptRows && len(k.list) > keptFew {
		k.dropEverySecond()
	}
}

func (k *kept) dropEverySecond() {
	short := make([]*stats.Snapshot, 0, keptMost)
	k.rows = 0
	for i := 0; i < len(k.list); i += 2 {
		short = append(short, k.list[i])
		k.rows += countSnapshotRows(k.list[i])
	}
	k.list, k.step = short, 2*k.step
}

// countSnapshotRows is how large a picture is.
func countSnapshotRows(s *stats.Snapshot) int {
	n := len(s.Tags)
	for i := range s.Processes {
		n += 1 + len(s.Processes[i].Tags)
	}
	for i := range s.Tags {
		n += len(s.Tags[i].Free) / 16
	}
	return n
}

func (k *kept) lastKept() *stats.Snapshot {
	if len(k.list) == 0 {
		return nil
	}
	return k.list[len(k.list)-1]
}

// snapshotsAround returns the pictures at or before a time, and behind it, nil where there is none. There must be a picture,
// and the time must not be before it.
func (k *kept) snapshotsAround(at uint64) (before, behind *stats.Snapshot) {
	i := min((at-k.from)/k.step, uint64(len(k.list)-1))
	if i+1 < uint64(len(k.list)) {
		behind = k.list[i+1]
	}
	return k.list[i], behind
}
