package symbol

import (
	"debug/dwarf"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
)

// inline is a call that was inlined into a function, or a block of the function. The calls in it follow, up to the index end.
type inline struct {
	entry  dwarf.Offset
	ranges [][2]uint64
	call   bool
	end    int
}

// inlinedAt returns the function at an address and the calls inlined there, outermost first.
func (d *debugInfo) inlinedAt(u *unit, address uint64, work *budget.Budget) (function *dwarf.Entry, calls []*dwarf.Entry) {
	i := sort.Search(len(u.functions), func(i int) bool { return u.functions[i].low > address }) - 1
	if i < 0 || address >= u.functions[i].high {
		return nil, nil
	}
	at := u.functions[i].entry
	if function = d.entryAt(at, work); function == nil {
		return nil, nil
	}
	list, known := u.inlines[at]
	if !known {
		list = d.readInlines(u, at)
		u.inlines[at] = list
	}
	for k := 0; k < len(list) && len(calls) < inlineMax; {
		n := &list[k]
		if !isInRanges(n.ranges, address) {
			k = n.end
			continue
		}
		if e := d.entryAt(n.entry, work); n.call && e != nil {
			calls = append(calls, e)
		}
		k++
	}
	return function, calls
}

func (d *debugInfo) entryAt(at dwarf.Offset, work *budget.Budget) *dwarf.Entry {
	reader := d.data.Reader()
	reader.Seek(at)
	return readNextEntry(reader, work)
}

// readInlines lists the calls inlined into a function. They are read once, because there may be thousands.
func (d *debugInfo) readInlines(u *unit, at dwarf.Offset) (list []inline) {
	var open []int // indices of the calls whose children are being read
	reader := d.data.Reader()
	reader.Seek(at)
	if function := readNextEntry(reader, d.work); function == nil || !function.Children {
		return nil
	}
	for {
		e := readNextEntry(reader, d.work)
		switch {
		case e == nil || e.Tag == 0 && len(open) == 0:
			return endOpenInlines(list, open)
		case e.Tag == 0:
			list[open[len(open)-1]].end = len(list)
			open = open[:len(open)-1]
		case e.Tag != dwarf.TagInlinedSubroutine && e.Tag != dwarf.TagLexDwarfBlock:
			if !d.skipChildren(reader, e) {
				return endOpenInlines(list, open)
			}
		default:
			ranges := d.codeRanges(u, e)
			if !d.keep.Charge(int64(inlineBytes + rangeBytes*len(ranges))) {
				return endOpenInlines(list, open)
			}
			list = append(list, inline{entry: e.Offset, ranges: ranges, call: e.Tag == dwarf.TagInlinedSubroutine, end: len(list) + 1})
			if e.Children {
				open = append(open, len(list)-1)
			}
		}
	}
}

// endOpenInlines ends the calls that are still open when reading stopped.
func endOpenInlines(list []inline, open []int) []inline {
	for _, at := range open {
		list[at].end = len(list)
	}
	return list
}
