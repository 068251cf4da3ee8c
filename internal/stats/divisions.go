package stats

import (
	"cmp"
	"math/bits"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap/table"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// kinds is how many kinds of memory there are.
const kinds = wire.MemoryExternal + 1

// kindIndex returns an index for a kind. A kind that this version does not know counts as external.
func kindIndex(m wire.Memory) uint8 { return uint8(min(m, kinds-1)) }

// shares divide objects and free blocks by size, kind, class, thread and device, each in O(1). In each division the counters and
// gauges of the shares add up to those of the share of everything.
type shares struct {
	clock     *clock
	divisions [divisions][]share // by the places of a division
	divided   []uint8            // the divisions that are not nil
	begun     bool
	// As long as a division has had memory at one place only, the share at that place equals the share of everything. Such a
	// division is nil, is not counted, and has its bits in open.
	open    places
	only    places // the places in open divisions
	classes keys
	threads keys
	devices keys // their keys are places in names
	names   []string

	objects []places // by the places of objects in the heap
	blocks  []places // by the places of blocks in the heap
}

// The divisions.
const (
	undivided = iota // everything, at place 0
	bySize           // by bits.Len64 of the size
	byKind           // by wire.Memory
	byClass          // by place of the key
	byThread         // likewise
	byDevice         // likewise
	divisions
)

// places are the places of an object or a block in all divisions, one byte for each division from the lowest byte on. An array of bytes would be
// written one by one and read as a whole soon after, which stalls.
type places uint64

// everywhere are the bits of all divisions except for the undivided one, whose place is always 0.
const everywhere places = 1<<(8*divisions) - 1<<(8*bySize)

// placeInDivision returns the place in a division.
func (p places) placeInDivision(division uint8) uint8 { return uint8(p >> (8 * division)) }

// placesMax is the number of places in a division: there are 65 sizes.
const placesMax = ClassesMax + 1

func newShares(c *clock, seed uint64) shares {
	s := shares{clock: c, divided: []uint8{undivided}}
	s.divisions[undivided] = make([]share, 1)
	for _, k := range [...]*keys{&s.classes, &s.threads, &s.devices} {
		k.index.Seed = seed
	}
	return s
}

// notePlaces notes the places of a new object.
func (s *shares) notePlaces(at places) {
	if !s.begun {
		s.begun, s.only, s.open = true, at, everywhere
	}
	if (at^s.only)&s.open != 0 {
		s.splitDivisions(at)
	}
}

// splitDivisions makes the shares of open divisions in which an object comes to a second place.
func (s *shares) splitDivisions(at places) {
	for i := uint8(bySize); i < divisions; i++ {
		if s.divisions[i] != nil || at.placeInDivision(i) == s.only.placeInDivision(i) {
			continue
		}
		s.divisions[i] = make([]share, placesMax)
		s.divisions[i][s.only.placeInDivision(i)] = *s.wholeShare()
		s.divided = append(s.divided, i)
		s.open &^= 0xff << (8 * i)
	}
}

// wholeShare returns the share of everything.
func (s *shares) wholeShare() *share { return &s.divisions[undivided][0] }

// shareAt returns the share of a division at the place there.
func (s *shares) shareAt(division uint8, at places) *share {
	return &s.divisions[division][at.placeInDivision(division)]
}

// shareForSnapshot returns the share at a place of a division, false when that share is empty.
func (s *shares) shareForSnapshot(by, place int) (Share, bool) {
	x := s.wholeShare()
	switch {
	case s.divisions[by] != nil:
		x = &s.divisions[by][place]
	case !s.begun || place != int(s.only.placeInDivision(uint8(by))):
		return Share{}, false
	}
	if *x == (share{}) {
		return Share{}, false
	}
	return x.shareForSnapshot(s.clock), true
}

// countCreated counts a new object that has memory of its own. The block of the object gets the same places.
func (s *shares) countCreated(p *process, o *heap.Object, b *heap.Block) {
	var at places
	if o.Owns {
		at = s.addObject(p, o)
	}
	*elementAt(&s.objects, o.Place) = at
	if b != nil {
		*elementAt(&s.blocks, b.Place) = at
	}
}

// addObject counts an object with its memory, and returns its places.
func (s *shares) addObject(p *process, o *heap.Object) places {
	at := places(bits.Len64(o.Granted))<<(8*bySize) | places(kindIndex(o.Memory))<<(8*byKind) |
		places(s.classes.placeOfKey(classKey(o)))<<(8*byClass) | places(s.threads.placeOfKey(uint64(o.Thread)))<<(8*byThread) |
		places(s.devicePlace(p, o.Scope))<<(8*byDevice)
	s.notePlaces(at)
	for _, i := range s.divided {
		x := s.shareAt(i, at)
		if !o.CarriedOver {
			x.countCreate(o.PresentOutcome(), s.clock.slot)
		}
		x.changeHeld(int64(o.Granted), int64(o.Size), 1, s.clock.second)
	}
	return at
}

// removeObject takes the memory of an object off its shares.
func (s *shares) removeObject(o *heap.Object) {
	at := s.objects[o.Place]
	for _, i := range s.divided {
		s.shareAt(i, at).changeHeld(int64(o.Granted), int64(o.Size), -1, s.clock.second)
	}
}

// changePooledOfShares adds a free block to its shares, or takes it off.
func (s *shares) changePooledOfShares(b *heap.Block, sign int64) {
	at, cools := s.blocks[b.Place], b.State == heap.Cooling
	for _, i := range s.divided {
		s.shareAt(i, at).changeFreeBlocks(cools, sign*int64(b.Size), sign)
	}
}

// noteBlockCooled notes a free block that is cached from now on.
func (s *shares) noteBlockCooled(b *heap.Block) {
	at := s.blocks[b.Place]
	for _, i := range s.divided {
		x := s.shareAt(i, at)
		x.changeFreeBlocks(true, -int64(b.Size), 0)
		x.changeFreeBlocks(false, int64(b.Size), 1)
	}
}

// devicePlace returns the place of the device of a context.
func (s *shares) devicePlace(p *process, scope uint16) uint8 {
	if r := &p.devices.latest; r.known && r.scope == scope {
		return r.place
	}
	name := cmp.Or(p.devices.deviceTitle(scope), "device unknown")
	at := slices.Index(s.names, name)
	if at < 0 && len(s.names) < ClassesMax {
		at, s.names = len(s.names), append(s.names, name)
	}
	var place uint8
	if at >= 0 {
		place = s.devices.placeOfKey(uint64(at))
	}
	p.devices.latest = placedScope{known: true, scope: scope, place: place}
	return place
}

// elementAt returns a place in a list, which grows as needed.
func elementAt[T any](list *[]T, place int32) *T {
	if int(place) >= len(*list) {
		*list = append(*list, make([]T, int(place)+1-len(*list))...)
	}
	return &(*list)[place]
}

// keys gives each key a place. All keys beyond the first ClassesMax share place 0.
type keys struct {
	keys  [placesMax]uint64 // by place
	index table.Table       // key to place
	known int32
}

// placeOfKey returns the place of a key, 0 when there are too many keys.
func (k *keys) placeOfKey(key uint64) uint8 {
	if k.known > 0 && k.keys[k.known] == key {
		return uint8(k.known)
	}
	if place := k.index.PlaceOf(key); place >= 0 {
		return uint8(place)
	}
	if k.known == ClassesMax {
		return 0
	}
	k.known++
	k.keys[k.known] = key
	k.index.Put(key, k.known)
	return uint8(k.known)
}

func classKey(o *heap.Object) uint64 {
	return uint64(o.Memory)<<32 | uint64(o.Scope)<<16 | uint64(o.Access)
}
