package allocator

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// shelved is a block in the plain model of an index: a list in which later ones come later.
type shelved struct {
	section, block int32
	size           uint64
}

// indexGame plays an index against a list.
type indexGame struct {
	testing.TB
	x        index
	sections []int32
	list     []shelved
}

func (g *indexGame) in(section int32, most func(a, b uint64) int, accept func(size uint64) bool) int32 {
	found := shelved{}
	for _, s := range g.list { // of equal ones the latest
		if s.section == section && accept(s.size) && (found.block == 0 || most(s.size, found.size) <= 0) {
			found = s
		}
	}
	return found.block
}

// agree asks both the same questions.
func (g *indexGame) agree(size uint64) {
	for _, section := range g.sections {
		want := g.in(section, cmp.Compare[uint64], func(s uint64) bool { return s >= size })
		if got := g.x.smallestAtLeast(section, size); got != want {
			g.Fatalf("the first of at least %d bytes is %d, want %d of %v", size, got, want, g.list)
		}
		want = g.in(section, func(a, b uint64) int { return cmp.Compare(b, a) }, func(uint64) bool { return true })
		if got := g.x.latestOfLargest(section); got != want {
			g.Fatalf("the last is %d, want %d of %v", got, want, g.list)
		}
		n, first := int32(0), int32(0)
		for _, s := range g.list {
			if s.section == section && s.size == size {
				n++
				if first == 0 {
					first = s.block
				}
			}
		}
		if count, oldest := g.x.countAndOldestOfSize(section, size); count != n || oldest != first {
			g.Fatalf("%d bytes: %d blocks, the oldest %d, want %d and %d", size, count, oldest, n, first)
		}
	}
	for _, s := range g.list {
		if g.x.sizeOf(s.block) != s.size || g.x.sectionOf(s.block) != s.section {
			g.Fatalf("block %d has %d bytes in %d, want %+v", s.block, g.x.sizeOf(s.block), g.x.sectionOf(s.block), s)
		}
	}
	g.bounded()
}

// bounded checks what is kept of sizes without blocks: no more than a strip has places for.
func (g *indexGame) bounded() {
	x := &g.x
	known, strips := 0, 0
	for _, section := range g.sections {
		if err := x.validate(section); err != nil {
			g.Fatal(err)
		}
		for _, strip := range x.sections[section].strips {
			known += len(x.strips[strip].nodes)
			strips++
		}
	}
	if len(x.nodes)-1 != known+len(x.spare) {
		g.Fatalf("%d nodes, %d of them known and %d spare", len(x.nodes)-1, known, len(x.spare))
	}
	if len(x.strips)-1 != strips+len(x.unused) {
		g.Fatalf("%d strips, %d of them known and %d unused", len(x.strips)-1, strips, len(x.unused))
	}
}

func (g *indexGame) step(rng *rand.Rand, block int32, sizes uint64) {
	section, size := g.sections[rng.IntN(len(g.sections))], 1+rng.Uint64N(sizes)
	at := slices.IndexFunc(g.list, func(s shelved) bool { return s.block == block })
	if at < 0 {
		g.x.addBlock(section, block, size)
		g.list = append(g.list, shelved{section, block, size})
	} else {
		g.x.removeBlock(block)
		g.list = slices.Delete(g.list, at, at+1)
	}
	g.agree(size)
}

// drop ends one section and begins another.
func (g *indexGame) drop() {
	section := g.sections[0]
	for _, s := range g.list {
		if s.section == section {
			g.x.removeBlock(s.block)
		}
	}
	g.list = slices.DeleteFunc(g.list, func(s shelved) bool { return s.section == section })
	g.x.forgetSection(section)
	g.sections[0] = g.x.newSection()
}

// TestIndex has few sizes, so that blocks share them, and many, so that those without blocks have to go; and few blocks
// and enough of them to split strips and free them again.
func TestIndex(t *testing.T) {
	for _, sizes := range []uint64{3, 40, 100_000} {
		for _, blocks := range []int32{60, 1200} {
			rng := rand.New(rand.NewPCG(sizes, uint64(blocks)))
			g := &indexGame{TB: t, x: newIndex()}
			for range 3 {
				g.sections = append(g.sections, g.x.newSection())
			}
			most := 0
			for i := range 4000 {
				g.step(rng, 1+rng.Int32N(blocks), sizes)
				most = max(most, len(g.x.strips)-1-len(g.x.unused))
				if i%1000 == 999 {
					g.drop()
					g.agree(1)
				}
			}
			if len(g.x.sections) > 5 {
				t.Errorf("%d sections were made for 3", len(g.x.sections))
			}
			if parted := most > len(g.sections); parted != (sizes > 100 && blocks > 100) {
				t.Errorf("%d sizes of %d blocks stood on %d strips at most", sizes, blocks, most)
			}
		}
	}
}

// TestSizesLinger: taking a block and giving it back moves nothing, and strips go with their last block.
func TestSizesLinger(t *testing.T) {
	x := newIndex()
	section := x.newSection()
	const blocks = 1000
	for i := range int32(blocks) {
		x.addBlock(section, i+1, uint64(i+1))
	}
	strips := len(x.strips)
	for i := range int32(blocks) {
		x.removeBlock(i + 1)
		x.addBlock(section, i+1, uint64(i+1))
	}
	if len(x.spare) != 0 || len(x.strips) != strips || len(x.unused) != 0 {
		t.Errorf("%d sizes were forgotten, there are %d strips, there were %d", len(x.spare), len(x.strips), strips)
	}
	for i := range int32(blocks) {
		x.removeBlock(i + 1)
	}
	if known := len(x.nodes) - 1 - len(x.spare); known > stripMax || len(x.sections[section].strips) != 1 {
		t.Errorf("%d sizes without blocks linger on %d strips", known, len(x.sections[section].strips))
	}
	x.addBlock(section, 1, 7)
	if x.smallestAtLeast(section, 1) != 1 || x.smallestAtLeast(section, 8) != 0 {
		t.Error("what comes then is not found")
	}
}

// TestSlotsFindWhatAScanFinds compares the bitmaps with an array that is scanned, as Futhark does it.
func TestSlotsFindWhatAScanFinds(t *testing.T) {
	var s slots
	var plain []int32
	rng := rand.New(rand.NewPCG(2, 2))
	scan := func(want func(block int32) bool) int { return slices.IndexFunc(plain, want) }
	taken := func(b int32) bool { return b != 0 }
	for i := range int32(60_000) {
		// It grows beyond 64 * 64, so that there are three levels, and shrinks to nothing again.
		if grow := 30; i/10_000%2 == 0 && rng.IntN(100) < 100-grow || rng.IntN(100) < grow || scan(taken) < 0 {
			want := scan(func(b int32) bool { return b == 0 })
			if want < 0 {
				want = len(plain)
				plain = append(plain, 0)
			}
			plain[want] = i + 1
			if got := s.occupySlot(i + 1); int(got) != want {
				t.Fatalf("block %d took slot %d, want %d", i+1, got, want)
			}
		} else {
			at := rng.IntN(len(plain))
			if plain[at] == 0 || i%3 == 0 {
				at = scan(taken)
			}
			s.vacateSlot(int32(at))
			plain[at] = 0
		}
		want := int32(0)
		if at := scan(taken); at >= 0 {
			want = plain[at]
		}
		if got := s.blockInLowestSlot(); got != want {
			t.Fatalf("the first is %d, want %d", got, want)
		}
	}
	if len(s.taken) != 3 {
		t.Errorf("%d levels were tried, want 3", len(s.taken))
	}
}

// someTags are tags of random programs; the free list keeps the blocks of these tags in different ways.
var someTags = [...]Tag{0, 1, tagsMax}

// TestRareTagsLeaveNothing: a hundred thousand tags without blocks take no memory.
func TestRareTagsLeaveNothing(t *testing.T) {
	s := newFreeList(true)
	for tag := range Tag(100_000) {
		e := &entry{tag: tag, size: 1 + uint64(tag%3)}
		s.addBlock(1, e)
		s.addBlock(2, e)
		s.removeBlock(1, e)
		if found := s.smallestOfTag(0, tag, 1); found != 2 {
			t.Fatalf("tag %d has block %d, want 2", tag, found)
		}
		s.removeBlock(2, e)
	}
	if c := s.sectionOf(0); len(c.rare) > 0 || len(s.tags) > tagsMax+2 || len(s.tagged.sections) > tagsMax+2 || len(s.tagged.nodes) > 3*tagsMax {
		t.Errorf("%d rare tags, room for %d, %d sections, %d nodes", len(c.rare), len(s.tags), len(s.tagged.sections), len(s.tagged.nodes))
	}
}
