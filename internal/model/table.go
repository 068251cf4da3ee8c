package model

// table maps object and block numbers to places in an arena. Go's map allocates now and then under a steady stream
// of new keys that replace old ones, which is what numbers that are never reused are; this one does not: it is open
// addressing with linear probing, and a deletion moves later entries back instead of leaving tombstones.
// The zero table is empty and ready for use once seed is set.
type table struct {
	seed  uint64 // differs per model, so that no stream can be built to collide
	slots []slot
	count int
}

type slot struct {
	key   uint64
	place int32 // plus one: 0 marks an empty slot
}

const tableMin = 8 // slots of the first allocation

// get returns the place stored for key, -1 when there is none.
func (t *table) get(key uint64) int32 {
	if t.count == 0 {
		return -1
	}
	for i := t.home(key); ; i = t.after(i) {
		s := &t.slots[i]
		if s.place == 0 {
			return -1
		}
		if s.key == key {
			return s.place - 1
		}
	}
}

// put stores a place for a key that is not in the table.
func (t *table) put(key uint64, place int32) {
	if (t.count+1)*2 > len(t.slots) {
		t.grow()
	}
	t.insert(slot{key: key, place: place + 1})
	t.count++
}

// remove deletes a key; one that is not there is ignored.
func (t *table) remove(key uint64) {
	if t.count == 0 {
		return
	}
	hole := t.home(key)
	for t.slots[hole].key != key || t.slots[hole].place == 0 {
		if t.slots[hole].place == 0 {
			return
		}
		hole = t.after(hole)
	}
	t.count--
	for i := t.after(hole); t.slots[i].place != 0; i = t.after(i) {
		if t.distance(i, t.home(t.slots[i].key)) >= t.distance(i, hole) {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = slot{}
}

// all calls f for every place. f must not change the table.
func (t *table) all(f func(key uint64, place int32)) {
	for _, s := range t.slots {
		if s.place != 0 {
			f(s.key, s.place-1)
		}
	}
}

func (t *table) clear() {
	t.slots, t.count = nil, 0
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, max(tableMin, 2*len(old)))
	for _, s := range old {
		if s.place != 0 {
			t.insert(s)
		}
	}
}

func (t *table) insert(s slot) {
	i := t.home(s.key)
	for t.slots[i].place != 0 {
		i = t.after(i)
	}
	t.slots[i] = s
}

// home is where a key's search begins: multiplicative hashing, once by the seed, which makes it unpredictable, and
// once by 2^64 divided by the golden ratio, which spreads it whatever the seed.
func (t *table) home(key uint64) int {
	h := key * (t.seed | 1)
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	return int(h >> 32 & uint64(len(t.slots)-1))
}

func (t *table) after(i int) int { return (i + 1) & (len(t.slots) - 1) }

// distance counts the steps from slot a back to slot b.
func (t *table) distance(a, b int) int { return (a - b) & (len(t.slots) - 1) }

// arena holds values at places that stay the same until they are given back; given-back places are used again.
// A pointer from at is valid until the next take.
type arena[T any] struct {
	items []T
	spare []int32
}

func (s *arena[T]) take(value T) int32 {
	if n := len(s.spare); n > 0 {
		place := s.spare[n-1]
		s.spare = s.spare[:n-1]
		s.items[place] = value
		return place
	}
	s.items = append(s.items, value)
	return int32(len(s.items) - 1)
}

func (s *arena[T]) give(place int32) {
	var zero T
	s.items[place] = zero
	s.spare = append(s.spare, place)
}

func (s *arena[T]) at(place int32) *T { return &s.items[place] }
