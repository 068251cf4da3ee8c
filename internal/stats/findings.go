package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// FindingsMax is how many distinct findings are kept. Further findings are only counted.
const FindingsMax = 1000

// Finding is a mistake of the program, counted: the same mistake in the same function, with memory from the same call
// site and with the same kernel, in one process, is one finding.
type Finding struct {
	Kind     wire.Diag   `json:"kind"`
	Function string      `json:"function"`       // OpenCL function that was called
	Tag      string      `json:"tag"`            // call site that created the memory; empty when it is unknown
	Count    uint64      `json:"count"`          // how often
	Size     uint64      `json:"size"`           // bytes of the memory, the first time; 0 when unknown
	Varied   bool        `json:"-"`              // the size was another one later
	Memory   wire.Memory `json:"-"`              // its kind; a buffer if unknown
	AnyKind  bool        `json:"-"`              // it is gone, and its call site makes several kinds
	Kernel   string      `json:"kernel"`         // name; empty when no kernel is concerned or its name is unknown
	PID      int         `json:"process"`        // 0 when unknown
	Rank     *uint64     `json:"rank,omitempty"` // of the process in its job
	Who      string      `json:"-"`              // names the process where there are several, or it has a rank: "rank 2 (pid 4711)"; empty: there is one
	Status   int32       `json:"status"`         // what the function returned the first time
	Process  uint32      `json:"-"`              // number in the session
	First    uint64      `json:"-"`              // time
	Last     uint64      `json:"-"`
}

// MarshalJSON adds whether the finding is certain.
func (f Finding) MarshalJSON() ([]byte, error) {
	type fields Finding
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // a caller that wants < of C++ names escaped does it
	err := encoder.Encode(struct {
		fields
		Certain bool `json:"certain"`
	}{fields(f), f.IsCertain()})
	return b.Bytes(), err
}

// IsCertain reports whether the program is surely wrong. It may be right when a kernel may have ignored the memory, or when the
// driver accepts memory whose create we did not see.
func (f *Finding) IsCertain() bool {
	switch f.Kind {
	case wire.DiagStaleArgument:
		return false
	case wire.DiagUnknownMemory:
		return f.Status != 0
	default:
		return true
	}
}

// FindingOfDiag reads a DIAG that reports a mistake. kernels are the kernels of its process. The caller adds Tag, Process and the
// times.
func FindingOfDiag(r *wire.Record, kernels *callsite.Kernels) Finding {
	e := r.AsDiag()
	return Finding{
		Kind: e.Diag(), Function: callsite.CleanFunctionName(r.Payload), Kernel: kernels.Name(e.Kernel()), Count: 1, Size: e.Bytes(),
		Status: int32(e.Status()),
	}
}

// SetMemoryKind notes of what kind the memory is, if it is known.
func (f *Finding) SetMemoryKind(o *heap.Object) {
	if o != nil {
		f.Memory = o.Memory
	}
}

// memoryKinds has a bit for each kind of memory that a call site makes.
type memoryKinds uint16

// kindUnlessSeveral returns the kind where there is one, or that there are several.
func (k memoryKinds) kindUnlessSeveral() (kind wire.Memory, several bool) {
	if k == 0 || k&(k-1) != 0 {
		return wire.MemoryBuffer, k != 0
	}
	return wire.Memory(bits.TrailingZeros16(uint16(k))), false
}

// findings collects the DIAG events that report mistakes.
type findings struct {
	list   []finding
	places map[FindingKey[*processSite]]int // in list
	others uint64                           // events that found the list full
	named  bool                             // shown names processes
	shown  []Finding                        // in the last snapshot; nil: the findings, or names of call sites, have changed since
}

// finding is a Finding without its tag: the name of its call site may come later.
type finding struct {
	Finding
	name string // of its process among several
	site *processSite
}

// FindingKey distinguishes findings, with a call site for the tag, whose name may change.
type FindingKey[R comparable] struct {
	kind             wire.Diag
	function, kernel string
	memory           wire.Memory
	site             R
	process          uint32
}

// KeyOfFinding returns the key of a finding about memory of a call site.
func KeyOfFinding[R comparable](f *Finding, site R) FindingKey[R] {
	return FindingKey[R]{f.Kind, f.Function, f.Kernel, f.Memory, site, f.Process}
}

// noteMistake handles a DIAG that reports a mistake. Only the first of its kind gets a mark: a mistake in a loop must not
// push all other marks out.
func (m *Model) noteMistake(p *process, r *wire.Record) {
	f := finding{Finding: FindingOfDiag(r, &p.kernels), site: m.sites.siteOfTag(p, r.AsDiag().Tag())}
	f.name = p.shown.TitleAmongSeveral()
	f.Process, f.PID, f.Rank, f.First, f.Last = p.shown.Number, p.shown.PID, p.shown.Rank, m.heap.Now(), m.heap.Now()
	if o := p.heap.Object(r.AsDiag().Object()); o != nil {
		f.SetMemoryKind(o)
	} else if r.AsDiag().Tag() != 0 {
		f.Memory, f.AnyKind = f.site.kinds.kindUnlessSeveral()
	}
	key := KeyOfFinding(&f.Finding, f.site)
	all := &m.findings
	if at, known := all.places[key]; known {
		all.list[at].Count++
		all.list[at].Last = m.heap.Now()
		all.list[at].Varied = all.list[at].Varied || all.list[at].Size != f.Size
		all.shown = nil
		return
	}
	if len(all.list) == FindingsMax {
		all.others++
		return
	}
	if all.places == nil {
		all.places = map[FindingKey[*processSite]]int{}
	}
	all.places[key] = len(all.list)
	all.list = append(all.list, f)
	all.shown = nil
	text := f.Kind.String() + ": " + f.Function
	if f.Kernel != "" {
		text += " of " + f.Kernel
	}
	m.marks.addMark(m.heap.Now(), wire.KindDiag, text)
}

// listInOrder returns the findings in the order of their first time. Snapshots share the list until it changes. Findings at
// tags that were folded into one call site since then are one finding here.
func (a *findings) listInOrder(untagged *site, several bool) []Finding {
	if a.shown != nil && a.named == several || len(a.list) == 0 {
		return a.shown
	}
	a.named = several
	list := make([]Finding, 0, len(a.list))
	places := make(map[FindingKey[*site]]int, len(a.list))
	for i := range a.list {
		f := a.list[i].Finding
		s := a.list[i].site.finalSite().site
		key := KeyOfFinding(&f, s)
		if at, known := places[key]; known {
			list[at].Count += f.Count
			list[at].Last = max(list[at].Last, f.Last)
			list[at].Varied = list[at].Varied || f.Varied || list[at].Size != f.Size
			continue
		}
		if s != untagged {
			f.Tag = s.siteTitle()
		}
		if several || f.Rank != nil {
			f.Who = a.list[i].name
		}
		places[key] = len(list)
		list = append(list, f)
	}
	a.shown = list
	return list
}

// Text says in one line what was wrong and how often. bytes writes a size.
func (f *Finding) Text(bytes func(uint64) string) string {
	return f.Kind.String() + ": " + f.Sentence(bytes)
}

// Sentence says what was wrong and how often, without the kind.
func (f *Finding) Sentence(bytes func(uint64) string) string {
	text := f.sentence(bytes)
	switch {
	case f.Kind == wire.DiagUseAfterFork && f.Who != "":
		text += ", in a child of " + f.Who
	case f.Who != "":
		text += ", in " + f.Who
	}
	switch {
	case f.Count > 1 && f.Varied:
		text += fmt.Sprintf(" (%d times, also with other sizes)", f.Count)
	case f.Count > 1:
		text += fmt.Sprintf(" (%d times)", f.Count)
	}
	return text
}

func (f *Finding) sentence(bytes func(uint64) string) string {
	function, memory := f.Function, f.memoryText(bytes)
	if function == "" {
		function = "a call"
	}
	if f.Kernel != "" && f.Kind != wire.DiagStaleArgument {
		function += " of " + f.Kernel
	}
	switch f.Kind {
	case wire.DiagUnknownMemory:
		if f.Status == 0 {
			return function + " was given something that no create seen here returned, and that the driver accepts"
		}
		return function + " was given something that no create returned"
	case wire.DiagUseAfterRelease:
		return function + " on " + memory + ", after its last release"
	case wire.DiagWrongContext:
		return function + " with " + memory + ", which belongs to another context"
	case wire.DiagStillMapped:
		return function + " of " + memory + " that is still mapped"
	case wire.DiagStaleRead:
		return function + " reads a recycled block before anything wrote it (certain): " + memory
	case wire.DiagUseAfterFork:
		return function + " in a child that was forked once its parent had a context, which may hang or fail: start it with spawn, or before the first OpenCL call"
	case wire.DiagStaleArgument:
		if f.Kernel == "" {
			return memory + " given to a kernel that cannot write it, before anything wrote it: the kernel may read it"
		}
		return fmt.Sprintf("%s given to kernel %s, which cannot write it, before anything wrote it: %s may read it", memory, f.Kernel, f.Kernel)
	default: // double release, and whatever a later version finds
		return function + " of " + memory
	}
}

// memoryText describes the memory by its size and call site, as far as these are known.
func (f *Finding) memoryText(bytes func(uint64) string) string {
	kind, text := "buffer", "a "
	switch {
	case f.AnyKind:
		kind = "memory object"
	case f.Memory == wire.MemoryImage && f.Size == 0:
		kind, text = "image", "an "
	case f.Memory == wire.MemoryImage, f.Memory == wire.MemoryPipe:
		kind = f.Memory.String()
	case f.Memory > wire.MemoryPipe:
		kind = "block of " + f.Memory.String() + " memory"
	}
	if f.Size > 0 {
		text += bytes(f.Size) + " "
	}
	text += kind
	if f.Tag != "" {
		text += " created at " + f.Tag
	}
	return text
}

// marks keeps the last MarksMax things worth a line, oldest first.
type marks struct {
	list []Mark
	lost uint64 // events that the last mark counts, if its kind is Lost

	relief wire.Relief // what the last mark sums up, if it is about that
}

func (m *marks) addMark(time uint64, kind wire.Kind, text string) {
	if len(m.list) == MarksMax {
		copy(m.list, m.list[1:])
		m.list = m.list[:MarksMax-1]
	}
	m.list = append(m.list, Mark{Time: time, Kind: kind, Text: text})
	m.lost, m.relief = 0, wire.Relief{}
}

// addMarkOfAnswer marks what a process answers to a message of the session.
func (m *Model) addMarkOfAnswer(r *wire.Record) {
	name, value := wire.ParseLimit(r.Payload)
	switch {
	case r.AsLimit().Status() != 0:
	case wire.IsLimitWithoutEffect(r.Payload), string(name) == wire.ArmsSetting: // of an experiment, which a message announces and ends
		return
	case string(name) == wire.RelieveSetting:
		if relief, ok := wire.ParseReliefValue(string(value)); ok && relief.Given > 0 && relief.Why != wire.ReliefTimed {
			m.marks.addRelief(m.heap.Now(), relief)
		}
		return
	}
	text := callsite.CleanText(r.Payload)
	if ns, err := strconv.ParseUint(string(value), 10, 64); string(name) == wire.PeriodSetting && err == nil && r.AsLimit().Status() == 0 {
		text = "iterations are over"
		if ns > 0 {
			text = "iterations take " + units.Duration(ns) + ": blocks stay for three of them"
		}
	}
	m.marks.addMark(m.heap.Now(), r.Kind, text)
}

// addRelief marks memory that went back for other programs. Where they lack it for long, the last mark is extended.
func (m *marks) addRelief(time uint64, r wire.Relief) {
	if m.relief.Given == 0 || (m.relief.Why == wire.ReliefAsked) != (r.Why == wire.ReliefAsked) {
		m.addMark(time, wire.KindLimit, "")
		m.relief = wire.Relief{Why: r.Why}
	}
	m.relief.Given += r.Given
	why := "little memory was free"
	if r.Why == wire.ReliefAsked {
		why = "another program needed it"
	}
	m.list[len(m.list)-1].Text = fmt.Sprintf("gave %s back: %s", units.FormatLong(m.relief.Given), why)
}

// addLostEvents marks lost events. Under overload they come many times a second: if the last mark is of lost events, they extend it,
// so that they do not push all other marks out.
func (m *marks) addLostEvents(time, events uint64) {
	if events == 0 {
		return
	}
	if m.lost == 0 {
		m.addMark(time, wire.KindLost, "")
	}
	m.lost += events
	last := &m.list[len(m.list)-1]
	last.Text = fmt.Sprintf("%d events lost", m.lost)
}
