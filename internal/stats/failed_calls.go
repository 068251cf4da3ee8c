package stats

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// FailedCallsMax bounds the failed calls that are counted apart. Further failures are only counted.
const FailedCallsMax = 100

// FailedCall is a call that failed, counted: the same call with the same status at the same call site is one.
type FailedCall struct {
	Call    string // what it was to do, "create of a buffer", or the OpenCL function
	Why     string // where the OpenCL standard has the status there, and what speaks against that; empty: nowhere
	Tag     string // call site; empty: unknown
	Wrapper string // the function that calls there, if it has several callers
	Status  int32
	Count   uint64
	Create  bool   // of memory
	Size    uint64 // bytes that the first of them asked for; 0 where there are none, and of an image that the driver did not size
	Last    uint64 // bytes that the last of them asked for
	Short   bool   // for lack of memory: the post-mortems say more
	Time    uint64 // of the first
	Process uint32 // of the first, number in the session
	Who     string // names the process where there are several and one alone had these failures; else empty
}

// Text says what failed, where and how often. bytes writes a size.
func (f *FailedCall) Text(bytes func(uint64) string) string {
	text := f.TextWithSizes(bytes)
	if f.Tag != "" {
		text += " at " + f.Tag
	}
	text += " failed"
	if f.Status != 0 { // else attach did not see it
		text += " with " + wire.StatusNameAndNumber(f.Status)
	}
	if f.Count > 1 {
		text += fmt.Sprintf(" (%d times)", f.Count)
	}
	if f.Who != "" {
		text += ", in " + f.Who
	}
	return text
}

// SentenceWithMeaning adds what the status means.
func (f *FailedCall) SentenceWithMeaning(bytes func(uint64) string) string {
	if meaning := f.StatusMeaning(); meaning != "" {
		return f.Text(bytes) + ": " + meaning
	}
	return f.Text(bytes)
}

// StatusMeaning says what the status means: drivers return some for reasons that the standard does not name.
func (f *FailedCall) StatusMeaning() string {
	switch {
	case f.Call == createCallText(wire.MemoryImage) && wire.IsUnlistedStatus(wire.MemoryImage, f.Status):
		return "the standard does not have this code for this call"
	case f.Why == "" || f.Call == createCallText(wire.MemorySVM): // whose status is the library's
		return f.Why
	}
	return "the standard has this code where " + f.Why
}

// TextWithSizes says what failed and which sizes it asked for.
func (f *FailedCall) TextWithSizes(bytes func(uint64) string) string {
	sizes := f.SizesText(bytes)
	if sizes == "" {
		return f.Call
	}
	return f.Call + " of " + sizes
}

// SizesText are the sizes that the first and the last asked for; empty where there are none.
func (f *FailedCall) SizesText(bytes func(uint64) string) string {
	switch {
	case !f.HasSize():
		return ""
	case f.Size != f.Last:
		return bytes(f.Size) + ", then " + bytes(f.Last)
	}
	return bytes(f.Size)
}

// HasSize reports whether the sizes are known: only a driver that makes an image knows its size.
func (f *FailedCall) HasSize() bool {
	return f.Create && (f.Size > 0 || f.Last > 0 || f.Call == createCallText(wire.MemoryBuffer) ||
		f.Call == createCallText(wire.MemorySubBuffer))
}

// createCallText names a create of memory of a kind.
func createCallText(m wire.Memory) string { return "create of " + kindWithArticle(m) }

// RefusedCalls returns the calls that failed for what was asked, not for lack of memory, nor after a call had failed for that.
func (s *Snapshot) RefusedCalls() (list []FailedCall) {
	for i := range s.FailedCalls {
		if f := &s.FailedCalls[i]; !f.Short && !s.isAfterFailure(f) {
			list = append(list, *f)
		}
	}
	return list
}

// FailedSoonAfterText says which call began to fail how long after a call of the same process had failed for lack of memory, and how many others:
// what needs the memory that is missing fails as well, but other causes have the same statuses. Empty: none did.
func (s *Snapshot) FailedSoonAfterText(p *PostMortem) string {
	text, others := "", uint64(0)
	for i := range s.FailedCalls {
		switch f := &s.FailedCalls[i]; {
		case !f.followsFailure(p):
		case text == "":
			own := *f
			own.Who = "" // the post-mortem names the process
			text = units.Duration(f.Time-p.Time) + " later " + own.Text(nil)
		default:
			others += f.Count
		}
	}
	switch {
	case others == 0:
		return text
	case s.OtherFailed > 0: // some of these may follow as well
		text += ", and after it at least"
	default:
		text += ", and after it"
	}
	if others == 1 {
		return text + " 1 more call"
	}
	return text + fmt.Sprintf(" %d more calls", others)
}

func (s *Snapshot) isAfterFailure(f *FailedCall) bool {
	return slices.ContainsFunc(s.PostMortems, func(p PostMortem) bool { return f.followsFailure(&p) })
}

func (f *FailedCall) followsFailure(p *PostMortem) bool {
	return p.Verdict != VerdictKilled && !f.Create && !f.Short && wire.IsAboutMissingObject(f.Status) && f.Process == p.Process &&
		f.Time >= p.Time
}

// failedCalls collects the calls that failed.
type failedCalls struct {
	list   []failedCall
	places map[failedKey]int // in list
	others uint64            // that found the list full
	named  bool              // shown names processes
	shown  []FailedCall      // in the last snapshot; nil: the failed calls, or names of call sites, have changed since
}

// failedCall is a FailedCall without its tag: the name of its call site may come later.
type failedCall struct {
	FailedCall
	name  string // of its process among several
	site  *processSite
	image *process // that asked for an image; nil: for no image
}

// evidenceAgainstUsualCause says what the run knows that speaks against the cause that the standard has; empty: nothing.
func (f *failedCall) evidenceAgainstUsualCause() string {
	if f.image != nil && f.Status == wire.InvalidOperation && f.image.images {
		return ", but the process made other images"
	}
	return ""
}

type failedKey struct {
	memory   wire.Memory // of a create
	function string      // of another call
	status   int32
	short    bool
	site     *processSite
}

// countCreate counts a create that failed.
func (all *failedCalls) countCreate(m *Model, p *process, c wire.CreateView) {
	key := failedKey{
		memory: c.Memory(), status: int32(c.Status()), short: heap.FailedForLackOrSize(c, p.devices.shownDeviceOf(c.Scope()).Largest), site: m.sites.siteOfTag(p, c.Tag()),
	}
	f := all.countFailure(m, p, key)
	if f == nil {
		return
	}
	if f.Count == 1 {
		made := FailedCreateOf(c)
		f.Call, f.Create, f.Size, f.Status, f.Why = made.Call, made.Create, made.Size, made.Status, made.Why
	}
	f.Last = c.Requested()
	if c.Memory() == wire.MemoryImage {
		f.image = p
	}
}

// noteHasImages notes that a process has images.
func (all *failedCalls) noteHasImages(p *process) {
	p.images, all.shown = true, nil
}

// countCall counts another call that failed.
func (all *failedCalls) countCall(m *Model, p *process, r *wire.Record) {
	d := FailedCallOf(r)
	if f := all.countFailure(m, p, failedKey{function: d.Call, status: d.Status, short: d.Short, site: m.sites.siteOfTag(p, r.AsDiag().Tag())}); f != nil {
		f.Call, f.Why = d.Call, d.Why
	}
	p.shortage.failed = &failedAt{d.Call, d.Status, r.Thread, r.Time, m.sites.siteOfTag(p, r.AsDiag().Tag())}
}

// FailedCallOf reads a DIAG that reports a failed call. The caller adds the rest.
func FailedCallOf(r *wire.Record) FailedCall {
	function, status := callsite.CleanFunctionName(r.Payload), int32(r.AsDiag().Status())
	return FailedCall{
		Call: function, Status: status, Count: 1, Why: wire.WhyCallRefused(function, status),
		Short: status == wire.MemObjectAllocationFailure || status == wire.OutOfResources || status == wire.OutOfHostMemory,
	}
}

// FailedCreateOf returns what a CREATE says of its failure. The caller adds the rest.
func FailedCreateOf(c wire.CreateView) FailedCall {
	return FailedCall{
		Call: createCallText(c.Memory()), Create: true, Size: c.Requested(), Last: c.Requested(), Status: wire.CreateStatus(c), Count: 1,
		Why: wire.WhyCreateRefused(c.Memory(), int32(c.Status())),
	}
}

// countFailure counts a failure; nil: there is no room for it.
func (all *failedCalls) countFailure(m *Model, p *process, key failedKey) *failedCall {
	all.shown = nil
	if at, known := all.places[key]; known {
		all.list[at].Count++
		return &all.list[at]
	}
	if len(all.list) == FailedCallsMax {
		all.others++
		return nil
	}
	if all.places == nil {
		all.places = map[failedKey]int{}
	}
	all.places[key] = len(all.list)
	all.list = append(all.list, failedCall{
		FailedCall: FailedCall{Status: key.status, Count: 1, Short: key.short, Time: m.heap.Now(), Process: p.shown.Number}, name: p.shown.TitleAmongSeveral(), site: key.site,
	})
	return &all.list[len(all.list)-1]
}

// listCalls returns the failed calls in the order of their first. Those at tags that were folded into one call site since then are one.
func (all *failedCalls) listCalls(untagged *site, several bool) []FailedCall {
	if all.shown != nil && all.named == several || len(all.list) == 0 {
		return all.shown
	}
	all.named, all.shown = several, nil
	type key struct {
		call   string
		why    string
		status int32
		short  bool
		site   *site
	}
	places := map[key]int{}
	for i := range all.list {
		f, s := all.list[i].FailedCall, all.list[i].site.finalSite().site
		f.Why += all.list[i].evidenceAgainstUsualCause()
		k := key{f.Call, f.Why, f.Status, f.Short, s}
		if at, known := places[k]; known {
			all.shown[at].Count += f.Count
			all.shown[at].Last = f.Last
			if all.shown[at].Process != f.Process {
				all.shown[at].Who = ""
			}
			continue
		}
		if s != untagged {
			f.Tag, f.Wrapper = s.siteTitle(), s.wrapper
		}
		if several {
			f.Who = all.list[i].name
		}
		places[k] = len(all.shown)
		all.shown = append(all.shown, f)
	}
	return all.shown
}
