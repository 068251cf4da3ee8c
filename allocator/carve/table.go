package carve

import "math/bits"

// table finds numbers by place. It is a hash table with open addressing. remove leaves no marker in a slot, so the table
// does not grow while the number of entries stays the same.
type table struct {
	slots []slot // a power of two of them, at most half in use; place 0 is none
	count int
}

type slot struct {
	place uint64
	value int32
}

// slotToSearchFrom returns the slot where the search for a place begins (Fibonacci hashing: the multiplier is 2^64 over the golden
// ratio).
func (t *table) slotToSearchFrom(place uint64) int {
	return int(place * 0x9e3779b97f4a7c15 >> (64 - bits.TrailingZeros(uint(len(t.slots)))))
}

// findSlot returns the slot of a place, or the free slot for it.
func (t *table) findSlot(place uint64) int {
	i := t.slotToSearchFrom(place)
	for t.slots[i].place != 0 && t.slots[i].place != place {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

// numberAtPlace returns the number at a place, 0 when there is none.
func (t *table) numberAtPlace(place uint64) int32 {
	if len(t.slots) == 0 {
		return 0
	}
	return t.slots[t.findSlot(place)].value
}

// addPlace adds a place that is not in the table.
func (t *table) addPlace(place uint64, value int32) {
	if 2*t.count >= len(t.slots) {
		old := t.slots
		t.slots = make([]slot, max(16, 2*len(old)))
		for _, s := range old {
			if s.place != 0 {
				t.slots[t.findSlot(s.place)] = s
			}
		}
	}
	t.slots[t.findSlot(place)] = slot{place, value}
	t.count++
}

// removePlace removes a place and returns its number, 0 if the place is not in the table. Entries that a search would no
// longer reach across the gap move into it.
func (t *table) removePlace(place uint64) int32 {
	if len(t.slots) == 0 {
		return 0
	}
	mask := len(t.slots) - 1
	gap := t.findSlot(place)
	value := t.slots[gap].value
	if value == 0 {
		return 0
	}
	for i := (gap + 1) & mask; t.slots[i].place != 0; i = (i + 1) & mask {
		if home := t.slotToSearchFrom(t.slots[i].place); (i-home)&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = slot{}
	t.count--
	return value
}
