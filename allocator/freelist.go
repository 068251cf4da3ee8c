package allocator

// freeList orders free blocks by size: all blocks of a class and, where tags matter, also those of each tag in it.
type freeList struct {
	classes map[Class]*section
	all     index
	tagged  *index    // nil: tags do not matter
	tags    []*tagged // by number of their section in the index tagged
	byAge   bool      // blocks of each tag are listed by age
	byTag   chain     // the lists by age

	latest Class      // the class that was looked up last
	last   *section   // its section
	filled []*section // sections with blocks, in no particular order
}

// section is one class on a freeList.
type section struct {
	class Class
	all   int32           // number of its section in freeList.all
	place int             // its index in freeList.filled
	tags  []*tagged       // tags below tagsMax, by tag
	rare  map[Tag]*tagged // other tags that have blocks: there may be 100,000
	free  int             // number of blocks
}

// tagsMax bounds the tables by tag. Callers number tags from 1.
const tagsMax = 1 << 12

// blocksOfTag returns the blocks of a tag, nil when it has none.
func (c *section) blocksOfTag(tag Tag) *tagged {
	if int(tag) < len(c.tags) {
		return c.tags[tag]
	}
	return c.rare[tag]
}

// addTag adds a tag.
func (c *section) addTag(t *tagged) {
	if t.tag >= tagsMax {
		c.rare[t.tag] = t
		return
	}
	for len(c.tags) <= int(t.tag) {
		c.tags = append(c.tags, nil)
	}
	c.tags[t.tag] = t
}

// eachTagOfClass visits the tags whose blocks the class may have.
func (c *section) eachTagOfClass(visit func(*tagged)) {
	for _, t := range c.tags {
		if t != nil {
			visit(t)
		}
	}
	for _, t := range c.rare {
		visit(t)
	}
}

// tagged are the blocks of one tag in one class.
type tagged struct {
	class   Class
	tag     Tag
	section int32 // number of its section in freeList.tagged
	ages    ages
}

func newFreeList(byTag bool) freeList {
	s := freeList{classes: map[Class]*section{}, all: newIndex()}
	if byTag {
		x := newIndex()
		s.tagged, s.tags = &x, make([]*tagged, 1)
	}
	return s
}

// sectionOf returns the section of a class, nil when it has none.
func (s *freeList) sectionOf(sectionOf Class) *section {
	if s.last == nil || s.latest != sectionOf {
		s.latest, s.last = sectionOf, s.classes[sectionOf]
	}
	return s.last
}

// blocksWithTagOf returns the blocks of a block's tag and class.
func (s *freeList) blocksWithTagOf(c *section, i int32, e *entry) *tagged {
	if int(e.tag) >= len(c.tags) { // perhaps a rare one
		if t := s.tags[s.tagged.sectionOf(i)]; t != nil && t.class == e.class && t.tag == e.tag {
			return t
		}
	}
	t := c.blocksOfTag(e.tag)
	if t == nil {
		t = &tagged{class: e.class, tag: e.tag, section: s.tagged.newSection()}
		c.addTag(t)
		for len(s.tags) <= int(t.section) {
			s.tags = append(s.tags, nil)
		}
		s.tags[t.section] = t
	}
	return t
}

// addBlock adds a block.
func (s *freeList) addBlock(i int32, e *entry) {
	c := s.sectionOf(e.class)
	if c == nil {
		c = &section{class: e.class, all: s.all.newSection(), rare: map[Tag]*tagged{}}
		s.classes[e.class], s.last = c, c
	}
	if c.free++; c.free == 1 {
		c.place = len(s.filled)
		s.filled = append(s.filled, c)
	}
	s.all.addBlock(c.all, i, e.size)
	if s.tagged == nil {
		return
	}
	t := s.blocksWithTagOf(c, i, e)
	s.tagged.addBlock(t.section, i, e.size)
	if s.byAge {
		s.byTag.addAsNewest(&t.ages, i)
	}
}

// removeBlock removes a block.
func (s *freeList) removeBlock(i int32, e *entry) {
	if c := s.sectionOf(e.class); c.free == 1 {
		c.free = 0
		s.unlistSection(c)
	} else {
		c.free--
	}
	s.all.removeBlock(i)
	if s.byAge {
		s.byTag.removeEntry(&s.tags[s.tagged.sectionOf(i)].ages, i)
	}
	if s.tagged != nil {
		if emptied := s.tagged.removeBlock(i); emptied != 0 {
			s.forgetRareTag(s.tags[emptied])
		}
	}
}

// forgetRareTag forgets a tag without blocks, if it is a rare one.
func (s *freeList) forgetRareTag(t *tagged) {
	if t.tag < tagsMax {
		return
	}
	delete(s.sectionOf(t.class).rare, t.tag)
	s.tagged.forgetSection(t.section)
	s.tags[t.section] = nil
}

// unlistSection takes a class that has become empty off the list of sections with blocks.
func (s *freeList) unlistSection(c *section) {
	last := s.filled[len(s.filled)-1]
	s.filled[c.place], last.place = last, c.place
	s.filled = s.filled[:len(s.filled)-1]
}

// startListingByAge starts to list the blocks of each tag by age. It gets the present blocks, the oldest first.
func (s *freeList) startListingByAge(blocks []int32) {
	s.byAge = true
	for _, i := range blocks {
		s.byTag.addAsNewest(&s.tags[s.tagged.sectionOf(i)].ages, i)
	}
}

// blocksOfTagByAge returns the blocks of one tag by age, if they are listed so.
func (s *freeList) blocksOfTagByAge(class Class, tag Tag) ages {
	if c := s.sectionOf(class); c != nil {
		if t := c.blocksOfTag(tag); t != nil {
			return t.ages
		}
	}
	return ages{}
}

// countAndOldestOfSize returns how many blocks of a class have one size, and the oldest of them.
func (s *freeList) countAndOldestOfSize(class Class, size uint64) (count, oldest int32) {
	if c := s.sectionOf(class); c != nil {
		return s.all.countAndOldestOfSize(c.all, size)
	}
	return 0, 0
}

// smallestAtLeast returns the smallest block of a class with at least size bytes, the latest among equal blocks; 0 if there is
// none.
func (s *freeList) smallestAtLeast(class Class, size uint64) int32 {
	if c := s.sectionOf(class); c != nil {
		return s.all.smallestAtLeast(c.all, size)
	}
	return 0
}

// smallestOfTag is smallestAtLeast among the blocks of one tag.
func (s *freeList) smallestOfTag(class Class, tag Tag, size uint64) int32 {
	if c := s.sectionOf(class); c != nil {
		if t := c.blocksOfTag(tag); t != nil {
			return s.tagged.smallestAtLeast(t.section, size)
		}
	}
	return 0
}

// largestOfTag returns the largest block of one tag, 0 if there is none.
func (s *freeList) largestOfTag(class Class, tag Tag) int32 {
	if c := s.sectionOf(class); c != nil {
		if t := c.blocksOfTag(tag); t != nil {
			return s.tagged.latestOfLargest(t.section)
		}
	}
	return 0
}

// firstAmongLargest returns the block that order puts first among the largest of each class, 0 when there is none. It visits every
// class.
func (s *freeList) firstAmongLargest(order func(i, j int32) int) (found int32) {
	for _, c := range s.filled {
		if i := s.all.latestOfLargest(c.all); found == 0 || order(i, found) < 0 {
			found = i
		}
	}
	return found
}

// isClassEmpty reports whether a class has no blocks.
func (s *freeList) isClassEmpty(class Class) bool {
	c := s.sectionOf(class)
	return c == nil || c.free == 0
}

func (s *freeList) sizeOf(i int32) uint64 { return s.all.sizeOf(i) }

// forgetClass forgets an empty class.
func (s *freeList) forgetClass(class Class) {
	c := s.sectionOf(class)
	if c == nil {
		return
	}
	s.last = nil
	s.all.forgetSection(c.all)
	c.eachTagOfClass(func(t *tagged) {
		s.tagged.forgetSection(t.section)
		s.tags[t.section] = nil
	})
	delete(s.classes, class)
}
