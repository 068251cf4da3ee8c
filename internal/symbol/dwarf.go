package symbol

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"slices"
	"sort"
	"strings"
)

// Bounds on the work for one compilation unit.
const (
	entriesMax = 2_000_000 // debugging entries read to find its functions
	rowsMax    = 8_000_000 // rows of its line table
	inlineMax  = 64        // functions inlined into one another
	originMax  = 8         // steps from an inlined function to its name
)

// debugInfo is a module's DWARF. Compilation units are read when an address falls into them.
type debugInfo struct {
	data  *dwarf.Data
	units map[dwarf.Offset]*unit
}

// unit is one compilation unit.
type unit struct {
	files     []*dwarf.LineFile
	rows      []row      // sorted by address
	functions []codeSpan // sorted by start
	inlines   map[dwarf.Offset][]inline
}

// row says that the code from address on belongs to a line, up to the next row.
type row struct {
	address uint64
	file    *dwarf.LineFile // nil after the end of a sequence
	line    int
}

// codeSpan is a range of code of the function whose entry is at an offset.
type codeSpan struct {
	low, high uint64
	entry     dwarf.Offset
}

// readDebug reads the debug sections of a file; nil when there are none, or too much.
func readDebug(f *elf.File) *debugInfo {
	if f.Section(".debug_info") == nil {
		return nil
	}
	var total uint64
	for _, s := range f.Sections {
		if strings.HasPrefix(s.Name, ".zdebug_") { // compressed the old way: not written for a decade
			return nil
		}
		if strings.HasPrefix(s.Name, ".debug_") {
			total += min(s.Size, debugBytesMax+1)
		}
	}
	if total > debugBytesMax {
		return nil
	}
	data, err := f.DWARF()
	if err != nil {
		return nil
	}
	return &debugInfo{data: data, units: map[dwarf.Offset]*unit{}}
}

// frames returns the functions at an address, innermost first.
func (d *debugInfo) frames(address uint64) []Frame {
	reader := d.data.Reader()
	root, err := reader.SeekPC(address)
	if err != nil {
		return nil
	}
	u := d.units[root.Offset]
	if u == nil {
		u = d.readUnit(reader, root)
		d.units[root.Offset] = u
	}
	place := u.line(address)
	var frames []Frame
	function, calls := d.inlined(u, address)
	for _, call := range slices.Backward(calls) {
		place.Function = d.name(call)
		frames = append(frames, place)
		place = u.callSite(call)
	}
	if function != nil {
		place.Function = d.name(function)
	}
	if place == (Frame{}) && len(frames) == 0 {
		return nil
	}
	return append(frames, place)
}

// readUnit reads a unit's line table and finds its functions. reader stands behind the unit's root.
func (d *debugInfo) readUnit(reader *dwarf.Reader, root *dwarf.Entry) *unit {
	u := &unit{inlines: map[dwarf.Offset][]inline{}}
	if lines, err := d.data.LineReader(root); err == nil && lines != nil {
		u.readLines(lines)
	}
	for range entriesMax {
		e, err := reader.Next()
		if err != nil || e == nil || e.Tag == dwarf.TagCompileUnit {
			break
		}
		if e.Tag != dwarf.TagSubprogram {
			continue
		}
		if ranges, err := d.data.Ranges(e); err == nil {
			for _, r := range ranges {
				u.functions = append(u.functions, codeSpan{low: r[0], high: r[1], entry: e.Offset})
			}
		}
		reader.SkipChildren()
	}
	slices.SortFunc(u.functions, func(a, b codeSpan) int { return cmp.Compare(a.low, b.low) })
	return u
}

// readLines reads the line table. Sequences that begin at 0 belong to functions that the linker threw away.
func (u *unit) readLines(lines *dwarf.LineReader) {
	var e dwarf.LineEntry
	begins, dropped := true, false
	for range rowsMax {
		if lines.Next(&e) != nil {
			break
		}
		if begins {
			dropped = e.Address == 0
		}
		begins = e.EndSequence
		if dropped {
			continue
		}
		r := row{address: e.Address, file: e.File, line: e.Line}
		if e.EndSequence {
			r.file = nil
		}
		u.rows = append(u.rows, r)
	}
	u.files = lines.Files()
	// Where one sequence ends and another begins, the beginning counts: it has to be the later row.
	slices.SortStableFunc(u.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(known(a.file), known(b.file)))
	})
}

func known(f *dwarf.LineFile) int {
	if f == nil {
		return 0
	}
	return 1
}

// line returns file and line of an address.
func (u *unit) line(address uint64) Frame {
	i := sort.Search(len(u.rows), func(i int) bool { return u.rows[i].address > address }) - 1
	if i < 0 || u.rows[i].file == nil {
		return Frame{}
	}
	return Frame{File: u.rows[i].file.Name, Line: u.rows[i].line}
}

// callSite returns the file and line that an inlined function was called from.
func (u *unit) callSite(call *dwarf.Entry) Frame {
	var f Frame
	if i, ok := call.Val(dwarf.AttrCallFile).(int64); ok && i >= 0 && i < int64(len(u.files)) && u.files[i] != nil {
		f.File = u.files[i].Name
	}
	if line, ok := call.Val(dwarf.AttrCallLine).(int64); ok && line > 0 {
		f.Line = int(line)
	}
	return f
}

// name returns the name of a function or inlined call: it is often at the entry it was made from.
func (d *debugInfo) name(e *dwarf.Entry) string {
	plain := ""
	reader := d.data.Reader()
	for range originMax {
		if linkage, ok := e.Val(dwarf.AttrLinkageName).(string); ok && linkage != "" {
			return demangled(linkage)
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
		next, err := reader.Next()
		if err != nil || next == nil {
			break
		}
		e = next
	}
	return plain
}
