package symbol

import (
	"cmp"
	"math"
	"path"
	"slices"
	"sort"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
)

// lineTable maps code to lines. It is read here, not by debug/dwarf, which copies a folder's name for each of its files, and
// believes any number of files that a table claims. Names are slices of the sections.
type lineTable struct {
	version int
	folders [][]byte
	files   []lineFile
	rows    []row // by address
}

type lineFile struct{ folder, name []byte }

// row says that the code from address on belongs to a line, up to the next row.
type row struct {
	address uint64
	file    int32 // in files; noFile after the end of a sequence
	line    int32
}

const noFile = -1

// Memory taken by an element, in bytes.
const (
	rowBytes  = 16
	textBytes = 24
	fileBytes = 2 * textBytes
)

// program runs the instructions of a line table (DWARF 5, 6.2).
type program struct {
	cursor
	table *lineTable
	keep  *budget.Budget

	folder                         []byte // of the compilation
	minLength, opsMax              uint64
	lineBase, lineRange, firstUser int64
	lengths                        []byte // of standard instructions

	address, op     uint64
	file, line      int64
	begins, dropped bool // the sequence has no row yet; is about code that the linker dropped
}

// readLines reads a line table, or as much as there is room for.
func (d *debugInfo) readLines(offset uint64, folder string) *lineTable {
	p := program{cursor: cursorAt(d.line, offset), table: &lineTable{}, keep: d.keep, folder: []byte(folder)}
	size, offsetSize := p.length()
	p.rest = p.take(size)
	if !d.work.Charge(int64(len(p.rest))) || !p.header(d, offsetSize) {
		return p.table
	}
	for p.reset(); len(p.rest) > 0 && !p.short && p.step(); {
	}
	// Where one sequence ends and another begins, the beginning counts, so it must be the later row.
	slices.SortStableFunc(p.table.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(min(a.file, 0), min(b.file, 0)))
	})
	return p.table
}

func (p *program) header(d *debugInfo, offsetSize uint64) bool {
	p.table.version = int(p.number(2))
	if p.table.version >= 5 {
		p.take(2) // sizes of an address and a segment
	}
	instructions := cursorAt(p.rest, offsetSize)
	size := p.number(offsetSize)
	instructions.take(size)
	p.minLength, p.opsMax = p.number(1), 1
	if p.table.version >= 4 {
		p.opsMax = p.number(1)
	}
	p.take(1) // whether rows are statements
	p.lineBase, p.lineRange, p.firstUser = int64(int8(p.number(1))), int64(p.number(1)), int64(p.number(1))
	p.lengths = p.take(uint64(max(0, p.firstUser-1)))
	if p.short || instructions.short || p.table.version < 2 || p.table.version > 5 || p.lineRange == 0 || p.opsMax == 0 {
		return false
	}
	read := p.names
	if p.table.version >= 5 {
		read = func() bool { return p.entries(d, offsetSize, p.addFolder) && p.entries(d, offsetSize, p.addFile) }
	}
	if !read() || p.short {
		return false
	}
	p.rest = instructions.rest
	return true
}

// names reads folders and files as before DWARF 5: numbers begin at 1.
func (p *program) names() bool {
	p.addFolder(p.folder, 0)
	p.addFile(nil, 0)
	for {
		folder := p.text()
		if len(folder) == 0 {
			break
		}
		if !p.addFolder(folder, 0) {
			return false
		}
	}
	for {
		name := p.text()
		if len(name) == 0 {
			return !p.short
		}
		if !p.readFileEntry(name) {
			return false
		}
	}
}

// readFileEntry reads what comes after the name of a file.
func (p *program) readFileEntry(name []byte) bool {
	folder := p.unsigned()
	p.unsigned() // time of modification
	p.unsigned() // size of the file
	return p.addFile(name, folder)
}

func (p *program) addFolder(name []byte, _ uint64) (ok bool) {
	p.table.folders, ok = budget.Append(p.keep, p.table.folders, textBytes, name)
	return ok
}

func (p *program) addFile(name []byte, folder uint64) (ok bool) {
	f := lineFile{name: name}
	if folder < uint64(len(p.table.folders)) {
		f.folder = p.table.folders[folder]
	}
	p.table.files, ok = budget.Append(p.keep, p.table.files, fileBytes, f)
	return ok
}

// entries reads a list of DWARF 5: the format of its entries, their number, and the entries.
func (p *program) entries(d *debugInfo, offsetSize uint64, add func(name []byte, folder uint64) bool) bool {
	const content, folderIndex = 1, 2 // DW_LNCT_path, DW_LNCT_directory_index
	type field struct{ content, form uint64 }
	fields := make([]field, p.number(1))
	for i := range fields {
		fields[i] = field{p.unsigned(), p.unsigned()}
	}
	for n := p.unsigned(); n > 0 && !p.short; n-- {
		var name []byte
		var folder uint64
		for _, f := range fields {
			text, value, ok := p.value(d, f.form, offsetSize)
			if !ok {
				return false
			}
			switch f.content {
			case content:
				name = text
			case folderIndex:
				folder = value
			}
		}
		if !add(name, folder) {
			return false
		}
	}
	return true
}

// value reads a field in one of the forms that entries may have.
func (p *program) value(d *debugInfo, form, offsetSize uint64) (text []byte, value uint64, ok bool) {
	switch form {
	case 0x08: // DW_FORM_string
		text = p.text()
	case 0x0e: // DW_FORM_strp
		named := cursorAt(d.str, p.number(offsetSize))
		text = named.text()
	case 0x1f: // DW_FORM_line_strp
		named := cursorAt(d.lineStr, p.number(offsetSize))
		text = named.text()
	case 0x0b: // DW_FORM_data1
		value = p.number(1)
	case 0x05: // DW_FORM_data2
		value = p.number(2)
	case 0x06: // DW_FORM_data4
		value = p.number(4)
	case 0x07: // DW_FORM_data8
		value = p.number(8)
	case 0x1e: // DW_FORM_data16
		p.take(16)
	case 0x0f: // DW_FORM_udata
		value = p.unsigned()
	case 0x09: // DW_FORM_block
		p.take(p.unsigned())
	default:
		return nil, 0, false
	}
	return text, value, d.work.Charge(int64(len(text)))
}

// reset begins a sequence.
func (p *program) reset() {
	p.address, p.op, p.file, p.line, p.begins = 0, 0, 1, 1, true
}

// step runs an instruction. False: there is no room for its row.
func (p *program) step() bool {
	switch code := int64(p.number(1)); {
	case code >= p.firstUser:
		p.advance(uint64((code - p.firstUser) / p.lineRange))
		p.line += p.lineBase + (code-p.firstUser)%p.lineRange
		return p.emit(false)
	case code == 0:
		return p.extended()
	case code == 1: // DW_LNS_copy
		return p.emit(false)
	case code == 2: // DW_LNS_advance_pc
		p.advance(p.unsigned())
	case code == 3: // DW_LNS_advance_line
		p.line += p.signed()
	case code == 4: // DW_LNS_set_file
		p.file = int64(p.unsigned())
	case code == 8: // DW_LNS_const_add_pc
		p.advance(uint64((255 - p.firstUser) / p.lineRange))
	case code == 9: // DW_LNS_fixed_advance_pc
		p.address += p.number(2)
	default:
		for range p.lengths[code-1] {
			p.unsigned()
		}
	}
	return true
}

func (p *program) extended() bool {
	size := p.unsigned()
	arguments := cursor{rest: p.take(size)}
	switch arguments.number(1) {
	case 1: // DW_LNE_end_sequence
		ok := p.emit(true)
		p.reset()
		return ok
	case 2: // DW_LNE_set_address
		p.address = arguments.number(uint64(len(arguments.rest)))
	case 3: // DW_LNE_define_file
		instructions := p.cursor
		p.cursor = arguments
		ok := p.readFileEntry(p.text())
		p.cursor = instructions
		return ok
	}
	return true
}

func (p *program) advance(by uint64) {
	op := p.op + by
	p.address += p.minLength * (op / p.opsMax)
	p.op = op % p.opsMax
}

// emit adds a row. Sequences that begin at 0 belong to functions that the linker dropped.
func (p *program) emit(end bool) (ok bool) {
	r := row{address: p.address, file: noFile, line: int32(max(math.MinInt32, min(p.line, math.MaxInt32)))}
	first := int64(0)
	if p.table.version < 5 {
		first = 1
	}
	if !end && p.file >= first && p.file < int64(len(p.table.files)) {
		r.file = int32(p.file)
	}
	if p.begins {
		p.begins, p.dropped = false, p.address == 0
	}
	if p.dropped {
		return true
	}
	p.table.rows, ok = budget.Append(p.keep, p.table.rows, rowBytes, r)
	return ok
}

// lineAt returns file and line of an address.
func (t *lineTable) lineAt(address uint64) Frame {
	i := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].address > address }) - 1
	if i < 0 || t.rows[i].file == noFile {
		return Frame{}
	}
	return Frame{File: t.fileName(int64(t.rows[i].file)), Line: int(t.rows[i].line)}
}

// fileName returns the path of the file with a number, as the compiler wrote it; empty: none.
func (t *lineTable) fileName(number int64) string {
	if number < 0 || number >= int64(len(t.files)) {
		return ""
	}
	f := t.files[number]
	switch {
	case len(f.name) == 0:
		return ""
	case len(f.folder) == 0 || f.name[0] == '/':
		return string(f.name)
	case t.version < 5 && f.folder[0] != '/':
		return path.Join(string(t.folders[0]), string(f.folder), string(f.name))
	}
	return path.Join(string(f.folder), string(f.name))
}
