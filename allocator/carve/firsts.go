package carve

// firsts gives each slab a rank, and finds the lowest slab with at least some rank in O(log n) of the number of slabs,
// by a binary tree of maxima. A slab has rank 0 until it gets another.
type firsts struct {
	ranks []uint8 // [1] is the root, the children of i are 2i and 2i+1; the slabs are the second half
}

// setRank gives a slab its rank.
func (f *firsts) setRank(slab int32, rank uint8) {
	for int(slab) >= len(f.ranks)/2 {
		f.growRanks()
	}
	i := len(f.ranks)/2 + int(slab)
	f.ranks[i] = rank
	for i /= 2; i > 0; i /= 2 {
		most := max(f.ranks[2*i], f.ranks[2*i+1])
		if f.ranks[i] == most {
			return
		}
		f.ranks[i] = most
	}
}

// growRanks doubles the number of slabs.
func (f *firsts) growRanks() {
	old := f.ranks
	f.ranks = make([]uint8, max(16, 2*len(old)))
	leaves := len(f.ranks) / 2
	copy(f.ranks[leaves:], old[len(old)/2:])
	for i := leaves - 1; i > 0; i-- {
		f.ranks[i] = max(f.ranks[2*i], f.ranks[2*i+1])
	}
}

// lowestWithRank returns the lowest slab with at least that rank, which is above 0; 0 if there is none.
func (f *firsts) lowestWithRank(rank uint8) int32 {
	if f.highestRank() < rank {
		return 0
	}
	i := 1
	for i < len(f.ranks)/2 {
		i *= 2
		if f.ranks[i] < rank {
			i++
		}
	}
	return int32(i - len(f.ranks)/2)
}

// highestRank returns the highest rank.
func (f *firsts) highestRank() uint8 {
	if len(f.ranks) == 0 {
		return 0
	}
	return f.ranks[1]
}

// rankOf returns a slab's rank.
func (f *firsts) rankOf(slab int32) uint8 {
	if leaves := len(f.ranks) / 2; int(slab) < leaves {
		return f.ranks[leaves+int(slab)]
	}
	return 0
}
