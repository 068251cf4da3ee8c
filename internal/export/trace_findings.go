package export

import (
	"slices"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// writeFirstMistake writes an instant when a mistake is made for the first time; repeats would hide everything else.
func (x *trace) writeFirstMistake(p *running, r *wire.Record) {
	e := r.AsDiag()
	t := p.tag(e.Tag())
	f := stats.FindingOfDiag(r, &p.kernels)
	if e.Tag() != 0 {
		f.Tag = t.name
	}
	f.SetMemoryKind(p.life.Object(e.Object()))
	key := stats.KeyOfFinding(&f, t)
	if _, known := p.mistakes[key]; known || !t.chosen || len(p.mistakes) == stats.FindingsMax {
		return
	}
	p.mistakes[key] = struct{}{}
	x.out.beginInstant("mistake", quoteJSON(f.Text(units.FormatLong)), "p", x.laneOfThread(p, r.Thread).at, x.timeSinceStart(max(x.heap.Now(), r.Time)))
	x.out.beginArguments()
	x.out.addPlainText(`"kind":`, f.Kind.JSONKey())
	x.out.addText(`"function":`, quoteJSON(f.Function))
	x.out.addText(`"tag":`, t.quoted)
	x.out.addNumber(`"bytes":`, f.Size)
	x.out.addNumber(`"object":`, e.Object())
	x.out.addStatus(f.Status)
	x.out.addBool(`"certain":`, f.IsCertain())
	x.out.endEvent()
}

// writeKilledProcess writes an instant when SIGKILL ended a process that held memory.
func (x *trace) writeKilledProcess(p *running, r *wire.Record) {
	held := heap.NonNegative(p.life.InUse)
	if r.Thread != 0 || r.AsExit().Status() != 128+int16(syscall.SIGKILL) || p.life.Ended || held == 0 {
		return
	}
	text := "killed while it held " + units.FormatLong(held)
	x.out.beginInstant("failure", quoteJSON(text), "p", p.home, x.timeSinceStart(max(x.heap.Now(), r.Time)))
	x.out.beginArguments()
	x.out.addNumber(`"in_use":`, held)
	x.out.addNumber(`"reserved":`, heap.NonNegative(p.life.ReservedBytes()))
	x.out.endEvent()
}

// writeFailedCreate writes an instant when a create of a call site fails for the first time for lack of memory, or with
// another status; a program that tries again and again would hide everything else.
func (x *trace) writeFailedCreate(p *running, r *wire.Record, t *tag) {
	e := r.AsCreate()
	if e.Outcome() != wire.OutcomeFailed || e.CarriedOver() {
		return
	}
	call := stats.FailedCreateOf(e)
	call.Tag = t.name
	text := call.SentenceWithMeaning(units.FormatLong)
	if heap.FailedForLackOrSize(e, 0) {
		call.Status = 0 // one instant for each status of the call site
		text = "create of " + units.FormatLong(e.Requested()) + " at " + t.name + " failed"
	}
	if !t.isFirstFailure(&call) {
		return
	}
	x.beginFailureInstant(p, r, t, text)
	x.out.addNumber(`"bytes":`, e.Requested())
	x.out.addNumber(`"in_use":`, heap.NonNegative(x.heap.InUse))
	x.out.addNumber(`"reserved":`, heap.NonNegative(x.heap.ReservedBytes()))
	x.out.addStatus(wire.CreateStatus(e))
	x.out.endEvent()
}

// writeFailedCall writes an instant when a call site's call fails with a status for the first time.
func (x *trace) writeFailedCall(p *running, r *wire.Record) {
	t, call := p.tag(r.AsDiag().Tag()), stats.FailedCallOf(r)
	if !t.chosen || !t.isFirstFailure(&call) {
		return
	}
	if r.AsDiag().Tag() != 0 {
		call.Tag = t.name
	}
	x.beginFailureInstant(p, r, t, call.SentenceWithMeaning(units.FormatLong))
	x.out.addStatus(call.Status)
	x.out.endEvent()
}

// beginFailureInstant begins an instant about a failed call, up to the tag in its arguments.
func (x *trace) beginFailureInstant(p *running, r *wire.Record, t *tag, text string) {
	x.out.beginInstant("failure", quoteJSON(text), "p", x.laneOfThread(p, r.Thread).at, x.timeSinceStart(max(x.heap.Now(), r.Time)))
	x.out.beginArguments()
	x.out.addText(`"tag":`, t.quoted)
}

// failureOf distinguishes the failed calls of a call site.
type failureOf struct {
	call   string
	status int32
}

// isFirstFailure reports whether a call of the site fails in this way for the first time. If there are many ways, it leaves some
// out.
func (t *tag) isFirstFailure(f *stats.FailedCall) bool {
	this := failureOf{f.Call, f.Status}
	if len(t.failures) == stats.StatusesMax || slices.Contains(t.failures, this) {
		return false
	}
	t.failures = append(t.failures, this)
	return true
}
