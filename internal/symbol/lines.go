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
	size, offsetSize := p.readUnitLength()
	p.rest = p.nextBytes(size)
	if !d.work.Charge(int64(len(p.rest))) || !p.readHeader(d, offsetSize) {
		return p.table
	}
	for p.beginSequence(); len(p.rest) > 0 && !p.short && p.runLineInstruction(); {
	}
	// Where one sequence ends and another begins, the beginning counts, so it must be the later row.
	slices.SortStableFunc(p.table.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(min(a.file, 0), min(b.file, 0)))
	})
	return p.table
}

func (p *program) readHeader(d *debugInfo, offsetSize uint64) bool {
	p.table.version = int(p.readNumber(2))
	if p.table.version >= 5 {
		p.nextBytes(2) // sizes of an address and a segment
	}
	instructions := cursorAt(p.rest, offsetSize)
	size := p.readNumber(offsetSize)
	instructions.nextBytes(size)
	p.minLength, p.opsMax = p.readNumber(1), 1
	if p.table.version >= 4 {
		p.opsMax = p.readNumber(1)
	}
	p.nextBytes(1) // whether rows are statements
	p.lineBase, p.lineRange, p.firstUser = int64(int8(p.readNumber(1))), int64(p.readNumber(1)), int64(p.readNumber(1))
	p.lengths = p.nextBytes(uint64(max(0, p.firstUser-1)))
	if p.short || instructions.short || p.table.version < 2 || p.table.version > 5 || p.lineRange == 0 || p.opsMax == 0 {
		return false
	}
	read := p.readFoldersAndFiles
	if p.table.version >= 5 {
		read = func() bool {
			return p.readEntries(d, offsetSize, p.addFolder) && p.readEntries(d, offsetSize, p.addFile)
		}
	}
	if !read() || p.short {
		return false
	}
	p.rest = instructions.rest
	return true
}

// readFoldersAndFiles reads folders and files as before DWARF 5: numbers begin at 1.
func (p *program) readFoldersAndFiles() bool {
	p.addFolder(p.folder, 0)
	p.addFile(nil, 0)
	for {
		folder := p.readText()
		if len(folder) == 0 {
			break
		}
		if !p.addFolder(folder, 0) {
			return false
		}
	}
	for {
		name := p.readText()
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
	folder := p.readUnsigned()
	p.readUnsigned() // time of modification
	p.readUnsigned() // size of the file
	return p.addFile(name, folder)
}

func (p *program) addFolder(name []byte, _ uint64) (ok bool) {
	p.table.folders, ok = budget.AppendIfRoom(p.keep, p.table.folders, textBytes, name)
	return ok
}

func (p *program) addFile(name []byte, folder uint64) (ok bool) {
	f := lineFile{name: name}
	if folder < uint64(len(p.table.folders)) {
		f.folder = p.table.folders[folder]
	}
	p.table.files, ok = budget.AppendIfRoom(p.keep, p.table.files, fileBytes, f)
	return ok
}

// readEntries reads a list of DWARF 5: the format of its entries, their number, and the entries.
func (p *program) readEntries(d *debugInfo, offsetSize uint64, add func(name []byte, folder uint64) bool) bool {
	const content, folderIndex = 1, 2 // DW_LNCT_path, DW_LNCT_directory_index
	type field struct{ content, form uint64 }
	fields := make([]field, p.readNumber(1))
	for i := range fields {
		fields[i] = field{p.readUnsigned(), p.readUnsigned()}
	}
	for n := p.readUnsigned(); n > 0 && !p.short; n-- {
		var name []byte
		var folder uint64
		for _, f := range fields {
			text, value, ok := p.readFieldOfForm(d, f.form, offsetSize)
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

// readFieldOfForm reads a field in one of the forms that entries may have.
func (p *program) readFieldOfForm(d *debugInfo, form, offsetSize uint64) (text []byte, readValue uint64, ok bool) {
	switch form {
	case 0x08: // DW_FORM_string
		text = p.readText()
	case 0x0e: // DW_FORM_strp
		named := cursorAt(d.str, p.readNumber(offsetSize))
		text = named.readText()
	case 0x1f: // DW_FORM_line_strp
		named := cursorAt(d.lineStr, p.readNumber(offsetSize))
		text = named.readText()
	case 0x0b: // DW_FORM_data1
		readValue = p.readNumber(1)
	case 0x05: // DW_FORM_data2
		readValue = p.readNumber(2)
	case 0x06: // DW_FORM_data4
		readValue = p.readNumber(4)
	case 0x07: // DW_FORM_data8
		readValue = p.readNumber(8)
	case 0x1e: // DW_FORM_data16
		p.nextBytes(16)
	case 0x0f: // DW_FORM_udata
		readValue = p.readUnsigned()
	case 0x09: // DW_FORM_block
		p.nextBytes(p.readUnsigned())
	default:
		return nil, 0, false
	}
	return text, readValue, d.work.Charge(int64(len(text)))
}

// beginSequence begins a sequence.
func (p *program) beginSequence() {
	p.address, p.op, p.file, p.line, p.begins = 0, 0, 1, 1, true
}

// runLineInstruction runs an instruction. False: there is no room for its row.
func (p *program) runLineInstruction() bool {
	switch code := int64(p.readNumber(1)); {
	case code >= p.firstUser:
		p.advanceAddress(uint64((code - p.firstUser) / p.lineRange))
		p.line += p.lineBase + (code-p.firstUser)%p.lineRange
		return p.addLineRow(false)
	case code == 0:
		return p.runExtendedLineInstruction()
	case code == 1: // DW_LNS_copy
		return p.addLineRow(false)
	case code == 2: // DW_LNS_advance_pc
		p.advanceAddress(p.readUnsigned())
	case code == 3: // DW_LNS_advance_line
		p.line += p.readSigned()
	case code == 4: // DW_LNS_set_file
		p.file = int64(p.readUnsigned())
	case code == 8: // DW_LNS_const_add_pc
		p.advanceAddress(uint64((255 - p.firstUser) / p.lineRange))
	case code == 9: // DW_LNS_fixed_advance_pc
		p.address += p.readNumber(2)
	default:
		for range p.lengths[code-1] {
			p.readUnsigned()
		}
	}
	return true
}

func (p *program) runExtendedLineInstruction() bool {
	size := p.readUnsigned()
	arguments := cursor{rest: p.nextBytes(size)}
	switch arguments.readNumber(1) {
	case 1: // DW_LNE_end_sequence
		ok := p.addLineRow(true)
		p.beginSequence()
		return ok
	case 2: // DW_LNE_set_address
		p.address = arguments.readNumber(uint64(len(arguments.rest)))
	case 3: // DW_LNE_define_file
		instructions := p.cursor
		p.cursor = arguments
		ok := p.readFileEntry(p.readText())
		p.cursor = instructions
		return ok
	}
	return true
}

func (p *program) advanceAddress(by uint64) {
	op := p.op + by
	p.address += p.minLength * (op / p.opsMax)
	p.op = op % p.opsMax
}

// addLineRow adds a row. Sequences that begin at 0 belong to functions that the linker dropped.
func (p *program) addLineRow(end bool) (ok bool) {
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
	p.table.rows, ok = budget.AppendIfRoom(p.keep, p.table.rows, rowBytes, r)
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
