package symbol

import (
	"bytes"
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
)

// Bounds on the work and memory that debug information may take.
const (
	stringMax     = 32 << 10 // bytes of a text: longer ones are cut
	attributesMax = 256      // of an entry
	inlineMax     = 64       // functions inlined into one another
	originMax     = 8        // steps from an inlined function to its name

	workLeast  = 1 << 30 // bytes that may be allocated to read a module once
	workShare  = 64      // the same, for each byte of the module
	lookupWork = 4 << 20 // the same, for the name of one address
)

// Memory taken by an element, in bytes.
const (
	unitBytes      = 512
	abbrevBytes    = 128
	attributeBytes = 64
	rangeBytes     = 16
	spanBytes      = 24
	inlineBytes    = 64
	listShare      = 8 // most that a list of ranges takes, for each of its bytes in the file
)

// debugInfo is a module's DWARF. It reads a compilation unit when an address in it is looked up.
type debugInfo struct {
	data               *dwarf.Data
	line, lineStr, str []byte
	units              []*unit
	indexed            bool // the ranges of units are known
	lines              map[int64]*lineTable
	keep               *budget.Budget // for what is kept of the module
	work               *budget.Budget // for all that is allocated to read it, kept or not: never given back
}

// unit is one compilation unit.
type unit struct {
	root      dwarf.Offset
	cost      int64 // memory to read its root entry
	ranges    [][2]uint64
	read      bool
	lines     *lineTable
	functions []codeSpan // sorted by start
	inlines   map[dwarf.Offset][]inline
}

// codeSpan is a range of code of the function whose entry is at an offset.
type codeSpan struct {
	low, high uint64
	entry     dwarf.Offset
}

// readDebugSections reads the debug sections that names need; nil if there are none, or no room.
func readDebugSections(f *elf.File, keep *budget.Budget) *debugInfo {
	sections := map[string][]byte{}
	work := int64(workLeast)
	for _, name := range []string{"info", "abbrev", "str", "line", "line_str", "ranges", "rnglists", "addr", "str_offsets"} {
		s := f.Section(".debug_" + name)
		if s == nil {
			continue
		}
		size := int64(min(s.Size, math.MaxInt64/workShare))
		share := int64(1)
		if name == "ranges" || name == "rnglists" {
			share += listShare
		}
		if size > math.MaxInt64/workShare-work || !keep.Charge(share*size) {
			return nil
		}
		work += size * workShare
		data, err := s.Data()
		if err != nil {
			return nil
		}
		sections[name] = data
	}
	shortenLongTexts(sections["str"])
	shortenLongTexts(sections["line_str"])
	d := &debugInfo{
		line: sections["line"], lineStr: sections["line_str"], str: sections["str"],
		lines: map[int64]*lineTable{}, keep: keep, work: budget.New(work),
	}
	if len(sections["info"]) == 0 || !d.findAndChargeUnits(sections["info"], sections["abbrev"]) {
		return nil
	}
	var err error
	d.data, err = dwarf.New(sections["abbrev"], nil, nil, sections["info"], nil, nil, sections["ranges"], sections["str"])
	for _, name := range []string{"line_str", "rnglists", "addr", "str_offsets"} {
		if data := sections[name]; err == nil && data != nil {
			err = d.data.AddSection(".debug_"+name, data)
		}
	}
	if err != nil {
		return nil
	}
	return d
}

// shortenLongTexts shortens texts that are too long, because many entries can refer to a text and each gets a copy.
func shortenLongTexts(texts []byte) {
	for from := 0; from+stringMax <= len(texts); {
		end := bytes.LastIndexByte(texts[from:from+stringMax], 0)
		if end < 0 {
			end = stringMax - 1
			texts[from+end] = 0
		}
		from += end + 1
	}
}

// readNextEntry reads an entry. It returns nil after the last, and when the budget for work is used up.
func readNextEntry(reader *dwarf.Reader, work *budget.Budget) *dwarf.Entry {
	e, err := reader.Next()
	if err != nil || e == nil || !work.Charge(memoryOfEntry(e)) {
		return nil
	}
	return e
}

// memoryOfEntry returns about how much memory reading an entry takes.
func memoryOfEntry(e *dwarf.Entry) int64 {
	bytes := int64(attributeBytes * (1 + len(e.Field)))
	for i := range e.Field {
		if text, ok := e.Field[i].Val.(string); ok {
			bytes += int64(len(text))
		}
	}
	return bytes
}

// skipChildren passes over the children of an entry. It does not recurse as debug/dwarf does, which could exhaust the stack.
func (d *debugInfo) skipChildren(reader *dwarf.Reader, e *dwarf.Entry) bool {
	for depth := 0; ; {
		sibling, ok := e.Val(dwarf.AttrSibling).(dwarf.Offset)
		switch {
		case e.Tag == 0:
			depth--
		case e.Children && ok && sibling > e.Offset:
			reader.Seek(sibling)
		case e.Children:
			depth++
		}
		if depth == 0 {
			return true
		}
		if e = readNextEntry(reader, d.work); e == nil {
			return false
		}
	}
}

// codeRanges returns the code ranges of a unit's entry. Many entries may share one list.
func (d *debugInfo) codeRanges(u *unit, e *dwarf.Entry) [][2]uint64 {
	if e.AttrField(dwarf.AttrRanges) != nil && !d.work.Charge(u.cost) {
		return nil
	}
	ranges, err := d.data.Ranges(e)
	if err != nil || !d.work.Charge(int64(rangeBytes*len(ranges))) {
		return nil
	}
	return ranges
}

// indexUnits reads the code ranges of all units.
func (d *debugInfo) indexUnits() {
	d.indexed = true
	reader := d.data.Reader()
	for _, u := range d.units {
		reader.Seek(u.root)
		e := readNextEntry(reader, d.work)
		if e == nil || e.Tag == 0 {
			return
		}
		u.cost = memoryOfEntry(e)
		if ranges := d.codeRanges(u, e); d.keep.Charge(int64(rangeBytes * len(ranges))) {
			u.ranges = ranges
		}
	}
}

func isInRanges(ranges [][2]uint64, address uint64) bool {
	return slices.ContainsFunc(ranges, func(r [2]uint64) bool { return r[0] <= address && address < r[1] })
}

// framesAtAddress returns the functions at an address, innermost first.
func (d *debugInfo) framesAtAddress(address uint64) []Frame {
	if !d.indexed {
		d.indexUnits()
	}
	at := slices.IndexFunc(d.units, func(u *unit) bool { return isInRanges(u.ranges, address) })
	if at < 0 {
		return nil
	}
	u := d.units[at]
	if !u.read {
		d.readUnit(u)
	}
	work := budget.New(lookupWork)
	place := u.lines.lineAt(address)
	var frames []Frame
	function, calls := d.inlinedAt(u, address, work)
	for _, call := range slices.Backward(calls) {
		place.Function = d.nameOfEntry(call, work)
		frames = append(frames, place)
		place = u.placeOfInlinedCall(call)
	}
	if function != nil {
		place.Function = d.nameOfEntry(function, work)
	}
	if place == (Frame{}) && len(frames) == 0 {
		return nil
	}
	return append(frames, place)
}

// readUnit reads a unit's line table and finds its functions.
func (d *debugInfo) readUnit(u *unit) {
	u.read, u.lines, u.inlines = true, &lineTable{}, map[dwarf.Offset][]inline{}
	reader := d.data.Reader()
	reader.Seek(u.root)
	root := readNextEntry(reader, d.work)
	if root == nil {
		return
	}
	if offset, ok := root.Val(dwarf.AttrStmtList).(int64); ok {
		if d.lines[offset] == nil {
			folder, _ := root.Val(dwarf.AttrCompDir).(string)
			d.lines[offset] = d.readLines(uint64(offset), folder)
		}
		u.lines = d.lines[offset]
	}
	for depth := 0; depth >= 0; { // debug/dwarf returns the end of a list for ever where a unit ends within a number
		e := readNextEntry(reader, d.work)
		if e == nil || e.Tag == dwarf.TagCompileUnit {
			break
		}
		if e.Tag != dwarf.TagSubprogram {
			if e.Tag == 0 {
				depth--
			} else if e.Children {
				depth++
			}
			continue
		}
		ranges := d.codeRanges(u, e)
		if !d.keep.Charge(int64(spanBytes * len(ranges))) {
			break
		}
		for _, r := range ranges {
			u.functions = append(u.functions, codeSpan{low: r[0], high: r[1], entry: e.Offset})
		}
		if !d.skipChildren(reader, e) {
			break
		}
	}
	slices.SortFunc(u.functions, func(a, b codeSpan) int { return cmp.Compare(a.low, b.low) })
}

// placeOfInlinedCall returns the file and line that an inlined function was called from.
func (u *unit) placeOfInlinedCall(call *dwarf.Entry) Frame {
	var f Frame
	if i, ok := call.Val(dwarf.AttrCallFile).(int64); ok {
		f.File = u.lines.fileName(i)
	}
	if line, ok := call.Val(dwarf.AttrCallLine).(int64); ok && line > 0 {
		f.Line = int(line)
	}
	return f
}

// nameOfEntry returns the name of a function or inlined call, which is often at the entry that it refers to.
func (d *debugInfo) nameOfEntry(e *dwarf.Entry, work *budget.Budget) string {
	plain := ""
	reader := d.data.Reader()
	for range originMax {
		if linkage, ok := e.Val(dwarf.AttrLinkageName).(string); ok && linkage != "" {
			return shortDemangled(linkage)
		}
		if name, ok := e.Val(dwarf.AttrName).(string); ok && plain == "" {
			plain = name
		}
		origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			origin, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			break
		}
		reader.Seek(origin)
		if e = readNextEntry(reader, work); e == nil {
			break
		}
	}
	return plain
}
