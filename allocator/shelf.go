package allocator

import "codeberg.org/gpumemtop/gpumemtop/allocator/treap"

// shelf indexes free blocks of all classes, so that a rule finds the best one in O(log n). Each block stands in two
// orders: among its class, and among its class and tag.
type shelf struct {
	classes map[Class]*section
	bySize  treap.Forest
	byTag   treap.Forest
}

// section is one class on a shelf.
type section struct {
	all  treap.Tree
	tags map[Tag]*treap.Tree
}

func newShelf() shelf { return shelf{classes: map[Class]*section{}} }

func (s *shelf) put(i int32, class Class, tag Tag, size, order uint64) {
	c := s.classes[class]
	if c == nil {
		c = &section{tags: map[Tag]*treap.Tree{}}
		s.classes[class] = c
	}
	t := c.tags[tag]
	if t == nil {
		t = &treap.Tree{}
		c.tags[tag] = t
	}
	s.bySize.Grow(int(i))
	s.byTag.Grow(int(i))
	s.bySize.Insert(&c.all, i, size, order)
	s.byTag.Insert(t, i, size, order)
}

func (s *shelf) take(i int32, class Class, tag Tag) {
	c := s.classes[class]
	s.bySize.Remove(&c.all, i)
	s.byTag.Remove(c.tags[tag], i)
}

// first returns the smallest block of a class with at least size bytes, 0 when there is none.
func (s *shelf) first(class Class, size uint64) int32 {
	if c := s.classes[class]; c != nil {
		return s.bySize.AtLeast(&c.all, size)
	}
	return 0
}

// firstOfTag is first among the blocks of one tag.
func (s *shelf) firstOfTag(class Class, tag Tag, size uint64) int32 {
	if c := s.classes[class]; c != nil {
		if t := c.tags[tag]; t != nil {
			return s.byTag.AtLeast(t, size)
		}
	}
	return 0
}

func (s *shelf) empty(class Class) bool {
	c := s.classes[class]
	return c == nil || c.all.Count == 0
}

func (s *shelf) sizeOf(i int32) uint64 { return s.bySize.Size(i) }

// drop forgets an empty class.
func (s *shelf) drop(class Class) { delete(s.classes, class) }
