package allocator

// shelf indexes free blocks of all classes, so that a rule finds the best one in O(log n). Each block stands in two
// orders: among its class, and among its class and tag.
type shelf struct {
	classes map[Class]*section
	bySize  forest
	byTag   forest
}

// section is one class on a shelf.
type section struct {
	all  tree
	tags map[Tag]*tree
}

func newShelf() shelf { return shelf{classes: map[Class]*section{}} }

func (s *shelf) put(i int32, class Class, tag Tag, size, order uint64) {
	c := s.classes[class]
	if c == nil {
		c = &section{tags: map[Tag]*tree{}}
		s.classes[class] = c
	}
	t := c.tags[tag]
	if t == nil {
		t = &tree{}
		c.tags[tag] = t
	}
	s.bySize.grow(int(i))
	s.byTag.grow(int(i))
	s.bySize.insert(&c.all, i, size, order)
	s.byTag.insert(t, i, size, order)
}

func (s *shelf) take(i int32, class Class, tag Tag) {
	c := s.classes[class]
	s.bySize.remove(&c.all, i)
	s.byTag.remove(c.tags[tag], i)
}

// first returns the smallest block of a class with at least size bytes, 0 when there is none.
func (s *shelf) first(class Class, size uint64) int32 {
	if c := s.classes[class]; c != nil {
		return s.bySize.atLeast(&c.all, size)
	}
	return 0
}

// firstOfTag is first among the blocks of one tag.
func (s *shelf) firstOfTag(class Class, tag Tag, size uint64) int32 {
	if c := s.classes[class]; c != nil {
		if t := c.tags[tag]; t != nil {
			return s.byTag.atLeast(t, size)
		}
	}
	return 0
}

func (s *shelf) empty(class Class) bool {
	c := s.classes[class]
	return c == nil || c.all.count == 0
}

func (s *shelf) sizeOf(i int32) uint64 { return s.bySize.nodes[i].size }

// drop forgets an empty class.
func (s *shelf) drop(class Class) { delete(s.classes, class) }
