package analysis

import (
	"cmp"
	"slices"
)

// framesMax bounds the nodes of a call tree. Further nodes are counted in a node "others" where they branch off.
const framesMax = 4096

// callTree returns the call tree of the selected call sites, nil if no stack is known.
func (x *run) callTree() *Frame {
	root, known := &Frame{}, false
	tree := frames{}
	for _, s := range x.books.sortedSites() {
		w := x.rowOf(s)
		if !w.wanted {
			continue
		}
		stack := x.survey.names.Process(s.process).Site(s.tag).Stack
		known = known || len(stack) > 0
		if len(stack) == 0 {
			stack = []string{w.name}
		}
		at := root
		at.addSite(s, &x.peak)
		for _, name := range slices.Backward(stack) {
			at = tree.childNamed(at, name)
			at.addSite(s, &x.peak)
			if at.Name == others {
				break
			}
		}
	}
	if !known {
		return nil
	}
	root.sortChildren()
	return root
}

func (f *Frame) addSite(s *site, k *peak) {
	f.Peak += nonNegative(k.heldAtPeak(s).inUse)
	f.Total += s.total
	f.Creates += s.creates
	f.Leaked += s.leaked.bytes
}

// frames are the nodes of a tree without its root, by parent and name.
type frames map[branch]*Frame

type branch struct {
	above *Frame
	name  string
}

// childNamed returns the node with a name below f. It makes one while there is room.
func (t frames) childNamed(f *Frame, name string) *Frame {
	at := branch{f, name}
	if t[at] == nil && len(t) >= framesMax-1 {
		at.name = others
	}
	c := t[at]
	if c == nil {
		c = &Frame{Name: at.name}
		f.Children = append(f.Children, c)
		t[at] = c
	}
	return c
}

func (f *Frame) sortChildren() {
	slices.SortFunc(f.Children, func(a, b *Frame) int {
		return cmp.Or(cmp.Compare(b.Peak, a.Peak), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range f.Children {
		c.sortChildren()
	}
}
