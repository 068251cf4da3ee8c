package carve

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator/ualloc"
)

// binSlab is one slab of a binned: pages, small parts on some of them, and the books that these two do not keep. It is
// what its allocator of small blocks gets chunks from.
type binSlab struct {
	of       *binned
	geometry ualloc.Geometry
	pages    pages
	small    *ualloc.Allocator
	bins     []bin  // by page
	spare    int    // bins without a class, in chunks
	slots    []int  // free ones, by class
	units    bitset // those that small parts had, by number in the slab
	parts    int
}

// bin is what a page in a chunk is used for.
type bin struct {
	chunk bool // it is in a chunk, and no header
	class int8 // if it has parts
	parts int16
}

func newBinSlab(of *binned, count int) *binSlab {
	s := &binSlab{
		of:       of,
		geometry: of.geometry(count),
		pages:    newPages(count, of.shift, &of.tally),
		bins:     make([]bin, count),
		slots:    make([]int, len(of.small)),
		units:    newBitset(uint64(count) << of.shift / of.unit),
	}
	small, err := ualloc.New(s, s.geometry, 1)
	if err != nil {
		panic("carve: " + err.Error()) // never: NewUAlloc and Add keep to what it wants
	}
	s.small = small
	return s
}

// Alloc implements ualloc.Coarse: a chunk for small parts.
func (s *binSlab) Alloc(order int, _ uint64) (page int, ok bool) {
	if page, ok = s.pages.alloc(order); ok {
		s.chunk(page, 1)
	}
	return page, ok
}

// Free implements ualloc.Coarse: a chunk has no part left.
func (s *binSlab) Free(page, order int) (ok bool) {
	s.chunk(page, -1)
	return s.pages.release(page, order)
}

// chunk adds the bins of a chunk to the spare ones (n = 1), or takes them away (-1).
func (s *binSlab) chunk(page, n int) {
	for i := page + s.geometry.HeaderPages(); i < page+s.geometry.ChunkPages(); i++ {
		s.bins[i].chunk = n > 0
		s.keep(i, n)
	}
}

// keep counts n more spare bins. What one is worth is what it can be filled with.
func (s *binSlab) keep(page, n int) {
	s.spare += n
	s.of.tally.add(s.worth(page), n)
}

func (s *binSlab) worth(page int) uint64 { return uint64(s.capacity(page, 0)) * s.geometry.Unit }

// slot counts n more free slots.
func (s *binSlab) slot(class, n int) {
	s.slots[class] += n
	s.of.tally.add(s.geometry.Unit<<class, n)
}

// capacity returns how many parts of a class the bin at a page holds.
func (s *binSlab) capacity(page, class int) int {
	return s.geometry.Capacity(page, s.geometry.Unit<<class)
}

// room says what the slab has for a class.
func (s *binSlab) room(class int) uint8 {
	switch {
	case s.slots[class] > 0:
		return roomInBin
	case s.spare > 0:
		return roomInChunk
	case 1<<s.pages.rank() > s.geometry.ChunkPages():
		return roomForChunk
	}
	return noRoom
}

func (s *binSlab) carveLarge(size uint64) (Part, bool) {
	order := orderOf(size, s.of.shift)
	page, ok := s.pages.alloc(order)
	if !ok {
		return Part{}, false
	}
	fresh := s.pages.history.hand(uint64(page), order)
	return Part{Offset: uint64(page) << s.of.shift, Size: 1 << (s.of.shift + order), Fresh: fresh}, true
}

func (s *binSlab) freeLarge(p Part) bool {
	order := orderOf(p.Size, s.of.shift)
	return p.Size == 1<<(s.of.shift+order) && s.pages.release(int(p.Offset>>s.of.shift), order)
}

func (s *binSlab) carveSmall(size uint64) (Part, bool) {
	offset, granted, ok := s.small.Alloc(0, size)
	if !ok {
		return Part{}, false
	}
	page, _ := s.geometry.Bin(offset)
	class := s.of.class(granted)
	if s.bins[page].parts == 0 {
		s.keep(page, -1)
		s.bins[page].class = int8(class)
		s.slot(class, s.capacity(page, class))
	}
	s.bins[page].parts++
	s.slot(class, -1)
	return Part{Offset: offset, Size: granted, Fresh: s.hand(offset, granted)}, true
}

// freeSmall gives a small part back. The books come first: the allocator may give a chunk back, with all its bins.
func (s *binSlab) freeSmall(p Part) bool {
	page, ok := s.geometry.Bin(p.Offset)
	if !ok || page >= len(s.bins) || s.bins[page].parts == 0 || p.Size != s.geometry.Unit<<s.bins[page].class {
		return false
	}
	class := int(s.bins[page].class)
	s.bins[page].parts--
	s.slot(class, 1)
	if s.bins[page].parts == 0 {
		s.slot(class, -s.capacity(page, class))
		s.keep(page, 1)
	}
	_, ok = s.small.Free(p.Offset)
	return ok
}

// hand notes that a small part is handed out, and says whether it is fresh: neither it nor the pages around it were
// handed out as a whole, and no small part had any of its units.
func (s *binSlab) hand(offset, size uint64) (fresh bool) {
	page := offset >> s.of.shift
	fresh = !s.pages.history.within(page, 0)
	s.pages.history.touch(page, 0)
	for unit := offset / s.geometry.Unit; unit < (offset+size)/s.geometry.Unit; unit++ {
		fresh = fresh && !s.units.has(unit)
		s.units.set(unit)
	}
	return fresh
}

// validate checks the slab's parts against each other, and adds what is free to a tally.
func (s *binSlab) validate(want *tally) error {
	if err := s.pages.validate(want); err != nil {
		return err
	}
	if err := s.small.Validate(); err != nil {
		return err
	}
	spare, inBins, slots := 0, 0, make([]int, len(s.slots))
	for page, b := range s.bins {
		switch {
		case b.parts > 0:
			free := s.capacity(page, int(b.class)) - int(b.parts)
			slots[b.class] += free
			want.add(s.geometry.Unit<<b.class, free)
			inBins += int(b.parts)
		case b.chunk:
			spare++
			want.add(s.worth(page), 1)
		}
	}
	if stats := s.small.Stats(); spare != s.spare || !slices.Equal(slots, s.slots) || inBins != stats.Small || inBins > s.parts {
		return fmt.Errorf("%d spare bins and slots %v, counted as %d and %v; %d parts in bins of %+v", spare, slots, s.spare, s.slots, inBins, stats)
	}
	return nil
}
