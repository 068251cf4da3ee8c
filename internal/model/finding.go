package model

import (
	"unicode/utf8"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// FindingsMax is how many distinct findings are kept; what comes beyond is only counted.
const FindingsMax = 1000

// findingTextMax bounds the name of a function or kernel, bytes.
const findingTextMax = 256

// Finding is a mistake of the program, counted: the same mistake in the same function, with memory from the same call
// site and with the same kernel, in one process, is one finding.
type Finding struct {
	Kind     wire.Diag
	Function string // OpenCL function that was called
	Tag      string // row of the call site that created the memory; empty when it is unknown
	Process  uint32 // number in the session
	Kernel   string // name; empty when no kernel is concerned or its name is unknown
	Count    uint64 // how often
	First    uint64 // time
	Last     uint64
	Size     uint64 // bytes of the memory, the first time; 0 when unknown
	Status   int32  // what the function returned the first time
}

// Certain reports whether the program is surely wrong. It is not when a kernel may have ignored what it was given, or
// when the driver accepts memory whose create nobody saw.
func (f *Finding) Certain() bool {
	switch f.Kind {
	case wire.DiagStaleArgument:
		return false
	case wire.DiagUnknownMemory:
		return f.Status != 0
	default:
		return true
	}
}

// FindingOf reads a DIAG that tells of a mistake; kernels are those of its process. Tag, Process and times are the
// caller's to add.
func FindingOf(r *wire.Record, kernels *Kernels) Finding {
	return Finding{
		Kind: wire.Diag(r.Op), Function: Clean(short(r.Payload)), Kernel: kernels.Name(r.Link), Count: 1, Size: r.Granted,
		Status: int32(r.Status),
	}
}

// findings folds the DIAG events that tell of mistakes.
type findings struct {
	list   []finding
	places map[findingKey]int // in list
	others uint64             // events that found the list full
	shown  []Finding          // as in the last snapshot, nil when that is out of date
}

// finding is a Finding without its tag: that gets its name, and may be folded into another one, later.
type finding struct {
	Finding
	row *row
}

type findingKey struct {
	kind             wire.Diag
	function, kernel string
	row              *row
	process          uint32
}

// find handles a DIAG that tells of a mistake. Only the first of its kind gets a mark: a mistake in a loop must not
// push everything else out.
func (m *Model) find(p *process, r *wire.Record) {
	f := finding{Finding: FindingOf(r, &p.kernels), row: m.row(p, r.Tag)}
	f.Process, f.First, f.Last = p.shown.Number, m.now, m.now
	key := findingKey{f.Kind, f.Function, f.Kernel, f.row, f.Process}
	all := &m.findings
	if at, known := all.places[key]; known {
		all.list[at].Count++
		all.list[at].Last = m.now
		all.shown = nil
		return
	}
	if len(all.list) == FindingsMax {
		all.others++
		return
	}
	if all.places == nil {
		all.places = map[findingKey]int{}
	}
	all.places[key] = len(all.list)
	all.list = append(all.list, f)
	all.shown = nil
	text := f.Kind.String() + ": " + f.Function
	if f.Kernel != "" {
		text += " of " + f.Kernel
	}
	m.marks.add(m.now, wire.KindDiag, text)
}

// show returns the findings in the order of their first time. The list is shared between snapshots until something
// changes. Tags that were folded since into one row make one finding here.
func (a *findings) show(untagged *row) []Finding {
	if a.shown != nil || len(a.list) == 0 {
		return a.shown
	}
	list := make([]Finding, 0, len(a.list))
	places := make(map[findingKey]int, len(a.list))
	for i := range a.list {
		f := a.list[i].Finding
		w := a.list[i].row.final().whole
		key := findingKey{f.Kind, f.Function, f.Kernel, w, f.Process}
		if at, known := places[key]; known {
			list[at].Count += f.Count
			list[at].Last = max(list[at].Last, f.Last)
			continue
		}
		if w != untagged {
			f.Tag = w.title()
		}
		places[key] = len(list)
		list = append(list, f)
	}
	a.shown = list
	return list
}

// renamed says that a row got its name, or another row.
func (a *findings) renamed() { a.shown = nil }

// short bounds a text from a target, at a character's border, and cuts it at its first NUL.
func short(text []byte) []byte {
	for i, c := range text {
		if c == 0 {
			text = text[:i]
			break
		}
	}
	if len(text) <= findingTextMax {
		return text
	}
	end := findingTextMax
	for end > findingTextMax-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
