package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Thresholds of findings about transfers.
const (
	movesLeast    = 4        // fewer may be a start
	moveShare     = 0.05     // of the bytes that went the same way, or of the time from the first to the last
	smallMost     = 16 << 10 // bytes: what a call costs is more than what such a transfer does
	smallRun      = 8        // neighbours in a row
	smallLeast    = 32       // calls in such rows
	roundsLeast   = 8        // blocking reads with commands before each: fewer may be the results of a program without a loop
	blockingShare = 0.1      // of the time from the first to the last, waiting in them
	runPart       = 0.2      // of a share of that time, that calls take of the run as well: a loop may come after a slow start
	coldShare     = 0.5      // of the pages looked at
	copyHostLeast = 1 << 20  // bytes
	copyHostShare = 0.1      // of the peak
)

// TransferKind is what is wrong with transfers.
type TransferKind string

// The kinds of findings about transfers.
const (
	Rewritten   TransferKind = "same bytes written again"
	ReadBack    TransferKind = "read back what was just written"
	Unchanged   TransferKind = "read of what had not changed"
	Copied      TransferKind = "copy on unified memory where a map would do"
	SecondOne   TransferKind = "COPY_HOST_PTR makes a second copy"
	ColdRead    TransferKind = "cold readback"
	Small       TransferKind = "many small transfers that could be one"
	Blocking    TransferKind = "blocking read inside the loop"
	BlockingMap TransferKind = "blocking map inside the loop"
	Returned    TransferKind = "contents move between devices and back"
)

// TransferFinding is transfers of one call site that could go or be faster.
type TransferFinding struct {
	Kind    TransferKind `json:"finding"`
	Name    string       `json:"site"`
	Stack   []string     `json:"stack"` // innermost first
	Count   uint64       `json:"calls"`
	Bytes   uint64       `json:"bytes"`
	NS      uint64       `json:"ns"`      // in these calls, where they block; 0: unknown
	Share   float64      `json:"share"`   // how much it matters: of the time from the first to the last, of the bytes that went the same way, or of the calls
	Advice  string       `json:"advice"`  // what to do
	Certain bool         `json:"certain"` // false: samples of the bytes were equal; of ColdRead: the pages of some reads were not looked at
	Waited  bool         `json:"-"`       // calls also waited for commands that were queued before
	within  float64      // of the time from the end of the first of the calls to that of the last, in them; of several processes the most
	several bool         // threads were in these calls at the same time
	rate    float64      // of Copied: bytes per second of calls that waited for none; 0: there were none
}

// dependent is advice for loops in which an iteration needs the bytes that the iteration before it read: no recording shows whether it does.
const dependent = "; where the bytes decide how the loop goes on, look at them every few iterations, if the iterations between do no harm"

var transferAdvice = map[TransferKind]string{
	Rewritten:   "write only what has changed",
	ReadBack:    "keep the bytes on the host",
	Unchanged:   "keep what the last read returned, or what the buffer was made of",
	Copied:      "memory with CL_MEM_ALLOC_HOST_PTR or CL_MEM_USE_HOST_PTR can be mapped, where nothing else needs the copy",
	SecondOne:   "free the source, or create with CL_MEM_USE_HOST_PTR, or with CL_MEM_ALLOC_HOST_PTR and fill through a map",
	ColdRead:    "read into memory that is kept, or mapped, instead of allocated for each read",
	Small:       "collect the bytes on the host, or use a Rect command",
	Blocking:    "read without blocking and look at the event one iteration later" + dependent,
	BlockingMap: "map without blocking and look at the event one iteration later" + dependent,
	Returned:    "keep what works on a buffer on one device, or give each device a buffer or sub-buffer of its own",
}

// transferFindings returns the findings that matter, the largest share first.
func (x *run) transferFindings(a *Analysis) []TransferFinding {
	m := &x.moves
	for _, t := range m.threads {
		m.endSmallTransfers(t)
	}
	unified := x.snapshot.Transfers.Unified
	rows := map[moveKey]*TransferFinding{}
	names := map[string]int{}
	warm := map[*TransferFinding]*stats.Flow{}
	sum := func(kind TransferKind, process, tag uint32, f *move) {
		site := x.survey.names.Process(process).Site(tag)
		if _, known := names[site.Name]; !known {
			names[site.Name] = len(names)
		}
		key := moveKey{kind: kind, tag: uint32(names[site.Name])}
		row := rows[key]
		if row == nil {
			row = &TransferFinding{Kind: kind, Name: site.Name, Stack: site.Stack, Advice: transferAdvice[kind], Certain: true}
			rows[key], warm[row] = row, &stats.Flow{}
		}
		row.Count += f.count
		row.Bytes += f.bytes
		row.NS += f.ns
		row.Certain, row.Waited = row.Certain && !f.sampled, row.Waited || f.waited
		row.several = row.several || f.busy.several || row.Count > f.count // of several processes
		row.within = max(row.within, f.busy.callShare())
		warm[row].AddFlow(&f.warm)
	}
	for key, f := range m.found {
		if key.kind != Copied || unified {
			sum(key.kind, key.process, key.tag, f)
		}
	}
	if here := m.mostHere; unified && here.bytes > 0 && float64(here.bytes) >= copyHostShare*float64(a.Peak.InUse) {
		sum(SecondOne, uint32(m.mostOf>>32), uint32(m.mostOf), &move{count: nonNegative(here.buffers), bytes: nonNegative(here.bytes)})
	}
	var list []TransferFinding
	for _, row := range rows {
		if row.Kind == Copied {
			row.rate = warm[row].BytesPerSecond()
		}
		if x.weighFinding(row, warm[row], a) {
			row.compareWithWarmReads(warm[row])
			list = append(list, *row)
		}
	}
	list = append(list, findReturnedContents(&x.snapshot.Transfers)...)
	slices.SortFunc(list, func(a, b TransferFinding) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// findReturnedContents finds buffers whose contents went back to a device that had had them.
func findReturnedContents(t *stats.Transfers) (list []TransferFinding) {
	var all uint64
	for i := range t.Directions {
		all += t.Directions[i].Bytes
	}
	for i := range t.Sites {
		s := &t.Sites[i]
		if part := shareOfWhole(s.Bytes, all); s.Between && s.Again >= movesLeast && s.Bytes >= bytesLeast && part >= moveShare {
			list = append(list, TransferFinding{
				Kind: Returned, Name: s.Name, Stack: s.Stack, Count: s.Calls, Bytes: s.Bytes, Share: moveShare * part, Advice: transferAdvice[Returned],
				Certain: true,
			})
		}
	}
	return list
}

// compareWithWarmReads says how much faster reads into warm memory are, if they are.
func (f *TransferFinding) compareWithWarmReads(warm *stats.Flow) {
	if f.Kind != ColdRead || f.NS == 0 || f.Waited {
		return
	}
	if cold := float64(f.Bytes) / units.SecondsBetween(0, f.NS); warm.BytesPerSecond() > cold {
		f.Advice += fmt.Sprintf(" (%s, into warm memory %s)", units.FormatRate(cold), units.FormatRate(warm.BytesPerSecond()))
	}
}

// weighFinding sets the share of a finding, and reports whether it is worth a line. warm are reads into warm memory at its site.
func (x *run) weighFinding(f *TransferFinding, warm *stats.Flow, a *Analysis) bool {
	all := &x.snapshot.Transfers.Directions
	matters := func(ns uint64, least float64) bool { // of the time of the calls
		f.Share = f.within * shareOfWhole(ns, f.NS)
		return f.Share >= least && shareOfWhole(ns, x.duration()) >= runPart*least
	}
	switch f.Kind {
	case SecondOne:
		f.Share = shareOfWhole(f.Bytes, a.Peak.InUse)
		return true
	case Blocking, BlockingMap:
		return f.Count >= roundsLeast && matters(f.NS, blockingShare)
	case Small:
		ofCalls := shareOfWhole(f.Count, all[stats.ToDevice].Calls+all[stats.ToHost].Calls)
		inTime := matters(f.NS, moveShare)
		f.Share = max(f.Share, ofCalls)
		return f.Count >= smallLeast && (inTime || ofCalls >= moveShare)
	case Copied:
		return f.Count >= movesLeast && matters(f.copyingNS(), moveShare)
	case ColdRead: // likewise: at most what fresh pages take, half of that, and what is longer than into warm memory
		most := f.Bytes / 2
		if f.Waited {
			most = f.Bytes / 4
		}
		return f.Count >= movesLeast && (matters(min(f.NS, most, nsBeyondFlow(f, warm)), driverShare) || f.NS == 0)
	}
	way := &all[stats.ToHost]
	if f.Kind == Rewritten {
		way = &all[stats.ToDevice]
	}
	ofBytes := shareOfWhole(f.Bytes, way.Bytes)
	f.Share = max(min(shareOfWhole(f.NS, x.duration()), ofBytes), moveShare*ofBytes)
	return f.Count >= movesLeast && f.Bytes >= bytesLeast && ofBytes >= moveShare
}

// copyingNS is how many ns of the calls count as copying: much of their time may be waiting for other commands, so at most what
// such calls took that had none to wait for, and at most 1 ns per byte.
func (f *TransferFinding) copyingNS() uint64 {
	most := f.Bytes
	if f.rate > 0 {
		most = min(most, uint64(float64(f.Bytes)/f.rate*1e9))
	}
	return min(f.NS, most)
}

// nsBeyondFlow returns by how many ns the calls are longer than reads of as many bytes at a known rate: all of it where that is unknown.
func nsBeyondFlow(f *TransferFinding, than *stats.Flow) uint64 {
	rate := than.BytesPerSecond()
	if rate == 0 {
		return f.NS
	}
	return f.NS - min(f.NS, uint64(float64(f.Bytes)/rate*1e9))
}

// transferRule returns the rule for one kind of finding about transfers: its largest site. A snapshot of a run whose commands are
// events shows only what returned.
func transferRule(kind TransferKind) func(*Evidence) (Diagnosis, bool) {
	return func(e *Evidence) (Diagnosis, bool) {
		var list []TransferFinding
		if e.Whole != nil {
			list = e.Whole.Transfers
		} else {
			list = findReturnedContents(&e.Run.Transfers)
		}
		f := largestUnreported(list, kind)
		if f == nil {
			return Diagnosis{}, false
		}
		if kind == SecondOne && !e.isSizeWorthwhile(float64(f.Bytes)) {
			return Diagnosis{}, false
		}
		d := Diagnosis{Severity: Advice, Title: string(kind), Tag: f.Name, Share: f.Share, Text: f.findingText(e)}
		if kind == Returned && e.Run.Transfers.Unified {
			d.Severity = Note
			d.Text += "; here the devices share the host's memory, and little may be copied"
		}
		if kind != Copied && kind != SecondOne && kind != ColdRead {
			e.downgradeIfEventsLost(&d, "commands in between", string(kind)+", perhaps")
		}
		return d, true
	}
}

// findBlockingReads finds the call site whose reads keep a run that goes on waiting for earlier commands the longest.
func findBlockingReads(e *Evidence) (Diagnosis, bool) {
	t := &e.Run.Transfers
	if e.State != GoesOn || !t.OwnSites {
		return Diagnosis{}, false
	}
	for i := range t.Sites { // the most time first
		s := &t.Sites[i]
		share := shareOfWhole(s.NS, e.Length)
		if s.Command != wire.CommandRead || s.Waits < roundsLeast || share < blockingShare {
			continue
		}
		f := TransferFinding{Kind: Blocking, Name: s.Name, Count: s.Blocking, Bytes: s.TimedBytes, NS: s.NS, Advice: transferAdvice[Blocking], Certain: true}
		d := Diagnosis{Severity: Advice, Title: string(Blocking), Tag: s.Name, Share: share, Text: f.findingText(e)}
		e.downgradeIfEventsLost(&d, "commands in between", string(Blocking)+", perhaps")
		return d, true
	}
	return Diagnosis{}, false
}

// largestUnreported returns the largest finding of a kind whose calls no larger finding is about; nil: there is none.
func largestUnreported(list []TransferFinding, kind TransferKind) *TransferFinding {
	var larger []*TransferFinding
	for i := range list {
		f := &list[i]
		if slices.ContainsFunc(larger, func(l *TransferFinding) bool { return l.Kind == f.Kind || l.hasSameCalls(f) }) {
			continue
		}
		if f.Kind == kind {
			return f
		}
		larger = append(larger, f)
	}
	return nil
}

// hasSameCalls reports whether two findings are about the same calls: blocking reads are copies.
func (f *TransferFinding) hasSameCalls(o *TransferFinding) bool {
	both := func(k TransferKind) bool { return f.Kind == k || o.Kind == k }
	return f.Name == o.Name && both(Copied) && both(Blocking)
}

// findingText says what was found, and what to do.
func (f *TransferFinding) findingText(e *Evidence) string {
	if f.Kind == Returned {
		return fmt.Sprintf("%s a command on one device needed what only another had, %s in all, of buffers from %s: drivers copy it then; %s",
			units.Count(f.Count, "time"), units.FormatLong(f.Bytes), f.Name, f.Advice)
	}
	what := fmt.Sprintf("%s, %s in all", units.Count(f.Count, "call"), units.FormatLong(f.Bytes))
	if f.Kind == SecondOne {
		what = units.FormatLong(f.Bytes) + " at most, in memory that host and device share"
	}
	took := e.callTimeText(f.NS, f.several)
	switch {
	case f.NS == 0:
	case f.Kind == Copied: // a map waits for commands as well
		what += ", a map may save up to " + units.Duration(f.copyingNS()) + " (estimated)" + f.partOfWindowText()
	case f.Waited || f.Kind == Blocking || f.Kind == BlockingMap:
		what += fmt.Sprintf(", %s including waits for earlier commands%s", took, f.partOfWindowText())
	default:
		what += ", " + took
	}
	switch {
	case f.Certain:
	case f.Kind == ColdRead:
		what = "at least " + what
	default:
		what += ", as far as samples of the bytes show (--hash-writes is certain)"
	}
	return fmt.Sprintf("%s at %s: %s", what, f.Name, f.Advice)
}

// partOfWindowText says which part of the time the calls took once the first, which may wait for anything, was done, where the finding goes
// by it.
func (f *TransferFinding) partOfWindowText() string {
	if f.within == 0 || f.Kind == ColdRead {
		return ""
	}
	return ", " + units.Percent(f.Share, f.Count) + " of the time after the first call"
}
