package analysis

import (
	"cmp"
	"slices"
)

// framesMax bounds the nodes of a call tree; what would be beyond is added to a node "others" where it branches off.
const framesMax = 4096

// flame makes the call tree of the sites that were asked for, nil when no stack is known.
func (x *run) flame() *Frame {
	root, nodes, known := &Frame{}, 1, false
	for _, s := range x.books.sorted() {
		w := x.row(s)
		if !w.wanted {
			continue
		}
		stack := x.survey.names.Process(s.process).Site(s.tag).Stack
		known = known || len(stack) > 0
		if len(stack) == 0 {
			stack = []string{w.name}
		}
		at := root
		at.add(s, &x.peak)
		for _, name := range slices.Backward(stack) {
			at = at.child(name, &nodes)
			at.add(s, &x.peak)
			if at.Name == others {
				break
			}
		}
	}
	if !known {
		return nil
	}
	root.sort()
	return root
}

func (f *Frame) add(s *site, k *peak) {
	f.Peak += count(k.at(s).inUse)
	f.Total += s.total
	f.Creates += s.creates
	f.Leaked += s.leaked
}

// child returns the node of a name below f, which it makes while there is room.
func (f *Frame) child(name string, nodes *int) *Frame {
	if *nodes >= framesMax && !slices.ContainsFunc(f.Children, func(c *Frame) bool { return c.Name == name }) {
		name = others
	}
	for _, c := range f.Children {
		if c.Name == name {
			return c
		}
	}
	c := &Frame{Name: name}
	f.Children = append(f.Children, c)
	*nodes++
	return c
}

func (f *Frame) sort() {
	slices.SortFunc(f.Children, func(a, b *Frame) int {
		return cmp.Or(cmp.Compare(b.Peak, a.Peak), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	for _, c := range f.Children {
		c.sort()
	}
}
