// Package table holds what the folds over records keep things in: a hash table and an arena that allocate nothing once
// they have grown to the most that was in them at once.
package table

import "math/bits"

// Table maps numbers to places in an Arena. Go's map allocates now and then under a steady stream of new keys that
// replace old ones, which is what ids that are never reused are. This one does not: it is open addressing with linear
// probing, and a deletion moves later entries back instead of leaving tombstones.
//
// The zero Table is empty and ready for use once Seed is set. Seed should be random, so that no stream of keys can be
// built to collide.
type Table struct {
	Seed  uint64
	slots []slot
	count int
	shift uint8 // 64 less log2 of the slots
}

type slot struct {
	key   uint64
	place int32 // plus one: 0 marks an empty slot
}

const slotsMin = 8 // of the first allocation

// Len returns how many keys are in the table.
func (t *Table) Len() int { return t.count }

// PlaceOf returns the place stored for key, -1 when there is none.
func (t *Table) PlaceOf(key uint64) int32 {
	if t.count == 0 {
		return -1
	}
	for i := t.slotToSearchFrom(key); ; i = t.nextSlot(i) {
		s := &t.slots[i]
		if s.place == 0 {
			return -1
		}
		if s.key == key {
			return s.place - 1
		}
	}
}

// Put stores a place for a key that is not in the table.
func (t *Table) Put(key uint64, place int32) {
	if (t.count+1)*2 > len(t.slots) {
		t.grow()
	}
	t.insert(slot{key: key, place: place + 1})
	t.count++
}

// Remove deletes a key if it is in the table.
func (t *Table) Remove(key uint64) {
	if t.count == 0 {
		return
	}
	hole := t.slotToSearchFrom(key)
	for t.slots[hole].key != key || t.slots[hole].place == 0 {
		if t.slots[hole].place == 0 {
			return
		}
		hole = t.nextSlot(hole)
	}
	t.count--
	for i := t.nextSlot(hole); t.slots[i].place != 0; i = t.nextSlot(i) {
		if t.stepsBack(i, t.slotToSearchFrom(t.slots[i].key)) >= t.stepsBack(i, hole) {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = slot{}
}

// FreeIfEmpty gives up the memory of a table that is empty.
func (t *Table) FreeIfEmpty() {
	if t.count == 0 {
		*t = Table{Seed: t.Seed}
	}
}

// EachKey calls f for every key, in no particular order. f must not change the table.
func (t *Table) EachKey(f func(key uint64, place int32)) {
	for _, s := range t.slots {
		if s.place != 0 {
			f(s.key, s.place-1)
		}
	}
}

// Clear removes all keys and frees the memory.
func (t *Table) Clear() { t.slots, t.count = nil, 0 }

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]slot, max(slotsMin, 2*len(old)))
	t.shift = uint8(bits.LeadingZeros64(uint64(len(t.slots)))) + 1
	for _, s := range old {
		if s.place != 0 {
			t.insert(s)
		}
	}
}

func (t *Table) insert(s slot) {
	i := t.slotToSearchFrom(s.key)
	for t.slots[i].place != 0 {
		i = t.nextSlot(i)
	}
	t.slots[i] = s
}

// golden is 2^64 divided by the golden ratio: its multiples spread keys that follow each other evenly, as ids do.
const golden = 0x9e3779b97f4a7c15

// slotToSearchFrom returns where the search for a key begins: the highest bits of the product with a number near golden. Its lower
// bits, from the seed, make the result unpredictable for keys that are far apart.
func (t *Table) slotToSearchFrom(key uint64) int {
	const low = 1<<40 - 1
	return int(key * (golden&^low | t.Seed&low | 1) >> (t.shift & 63))
}

func (t *Table) nextSlot(i int) int { return (i + 1) & (len(t.slots) - 1) }

// stepsBack counts the steps from slot a back to slot b.
func (t *Table) stepsBack(a, b int) int { return (a - b) & (len(t.slots) - 1) }

// Arena holds values at places that do not change until they are given back. It uses returned places again. The zero
// Arena is empty.
type Arena[T any] struct {
	items []T
	spare []int32
}

// TakePlace returns a place and its value, which is zero or what the place had last.
func (s *Arena[T]) TakePlace() (place int32, value *T) {
	if n := len(s.spare); n > 0 {
		place = s.spare[n-1]
		s.spare = s.spare[:n-1]
		return place, &s.items[place]
	}
	var zero T
	s.items = append(s.items, zero)
	place = int32(len(s.items) - 1)
	return place, &s.items[place]
}

// ReturnPlace returns a place. The value stays until the place is taken again.
func (s *Arena[T]) ReturnPlace(place int32) { s.spare = append(s.spare, place) }

// TakenPlaces returns how many places are taken.
func (s *Arena[T]) TakenPlaces() int { return len(s.items) - len(s.spare) }

// At returns the value at a place. The pointer is valid until the next Take.
func (s *Arena[T]) At(place int32) *T { return &s.items[place] }
