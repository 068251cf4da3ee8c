package export

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Bounds of the short text.
const (
	topFindings  = 4
	stackLines   = 3
	mistakeWidth = 240
)

// FindingSummary is one mistake of the program, counted.
type FindingSummary struct {
	Kind     string `json:"kind"` // "double_release" and so on
	Function string `json:"function"`
	Tag      string `json:"tag"` // call site that created the memory, empty when unknown
	Count    uint64 `json:"count"`
	Size     uint64 `json:"size"`    // bytes, of the first; 0 when unknown
	Kernel   string `json:"kernel"`  // empty when none is concerned
	Process  int    `json:"process"` // pid, 0 when unknown
	Status   int32  `json:"status"`  // that the function returned, the first time
	Certain  bool   `json:"certain"`
}

// LeakSummary is what one call site left behind.
type LeakSummary struct {
	Tag     string   `json:"tag"`
	Stack   []string `json:"stack,omitempty"` // innermost first
	Buffers uint64   `json:"buffers"`
	Bytes   uint64   `json:"bytes"`
}

// mistakes takes findings and leaks over.
func (s *Summary) mistakes(from *model.Snapshot) {
	s.Findings, s.Leaks, s.OtherFindings = []FindingSummary{}, []LeakSummary{}, from.OtherFindings
	pids := map[uint32]int{}
	for i := range from.Processes {
		pids[from.Processes[i].Number] = from.Processes[i].PID
	}
	for i := range from.Findings {
		f := &from.Findings[i]
		s.Findings = append(s.Findings, FindingSummary{
			Kind: findingKey(f.Kind), Function: f.Function, Tag: f.Tag, Count: f.Count, Size: f.Size, Kernel: f.Kernel,
			Process: pids[f.Process], Status: f.Status, Certain: f.Certain(),
		})
	}
	for _, t := range leaks(from.Tags) {
		s.Leaks = append(s.Leaks, LeakSummary{Tag: t.Name, Stack: t.Stack, Buffers: t.Live, Bytes: t.InUse})
	}
}

// findingKey is a kind as a JSON key: "double_release".
func findingKey(kind wire.Diag) string { return strings.ReplaceAll(kind.String(), " ", "_") }

// mistakeLines are the first mistakes of a run, for the summary.
func mistakeLines(s *model.Snapshot) []string {
	var lines []string
	label := "  mistakes   "
	for i := range s.Findings[:min(topFindings, len(s.Findings))] {
		lines = append(lines, label+plain.Cut(s.Findings[i].Text(size.FormatLong), mistakeWidth))
		label = "             "
	}
	if left := len(s.Findings) - topFindings; left > 0 {
		lines = append(lines, fmt.Sprintf("%sand %d more", label, left))
	}
	return lines
}

// leakLines tell how much was never released and where it came from: each of the first call sites with its callers.
func leakLines(s *model.Snapshot) []string {
	lines := []string{fmt.Sprintf("  leaked     %s (%s) never released", plain.Count(s.Totals.LiveBuffers, "buffer"),
		size.FormatLong(s.Totals.InUse))}
	tags := leaks(s.Tags)
	for _, tag := range tags[:min(topTags, len(tags))] {
		lines = append(lines, fmt.Sprintf("             %d (%s) at %s", tag.Live, size.FormatLong(tag.InUse), plain.Cut(tag.Name, nameWidth)))
		for _, frame := range tag.Stack[:min(stackLines, len(tag.Stack))] {
			lines = append(lines, "               "+plain.Cut(frame, mistakeWidth))
		}
	}
	if len(tags) > topTags {
		lines = append(lines, "             and "+plain.Count(uint64(len(tags)-topTags), "more tag"))
	}
	return lines
}

// mistakeKey tells findings apart in a trace.
type mistakeKey struct {
	kind             uint8
	function, kernel string
	tag              *tag
}

// mistake writes an instant where a mistake is made for the first time; the others would hide everything else.
func (x *chrome) mistake(p *running, r *wire.Record) {
	t := p.tag(r.Tag)
	f := model.FindingOf(r, &p.kernels)
	if r.Tag != 0 {
		f.Tag = t.name
	}
	key := mistakeKey{r.Op, f.Function, f.Kernel, t}
	if _, known := p.mistakes[key]; known || !t.chosen || len(p.mistakes) == model.FindingsMax {
		return
	}
	p.mistakes[key] = struct{}{}
	x.out.event(`{"ph":"i","cat":"mistake","name":`, quote(f.Text(size.FormatLong)), x.lane(p, r.Thread).at, x.at(max(x.fold.Now, r.Time)))
	x.out.raw(`,"s":"p"`)
	x.out.args()
	x.out.word(`"kind":`, findingKey(f.Kind))
	x.out.raw(`,"function":` + quote(f.Function))
	x.out.raw(`,"tag":` + t.quoted)
	x.out.number(`,"bytes":`, f.Size)
	x.out.number(`,"object":`, r.Object)
	x.out.signed(`,"status":`, int64(f.Status))
	x.out.truth(`,"certain":`, f.Certain())
	x.out.close()
}
