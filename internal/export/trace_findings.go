package export

import (
	"slices"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// writeMistake writes an instant when a mistake is made for the first time; repeats would hide everything else.
func (x *trace) writeMistake(p *running, r *wire.Record) {
	e := r.AsDiag()
	t := p.tag(e.Tag())
	f := stats.FindingOf(r, &p.kernels)
	if e.Tag() != 0 {
		f.Tag = t.name
	}
	f.SetMemoryKind(p.life.Object(e.Object()))
	key := stats.KeyOf(&f, t)
	if _, known := p.mistakes[key]; known || !t.chosen || len(p.mistakes) == stats.FindingsMax {
		return
	}
	p.mistakes[key] = struct{}{}
	x.out.beginInstant("mistake", quote(f.Text(units.FormatLong)), "p", x.laneOf(p, r.Thread).at, x.relativeTime(max(x.heap.Now(), r.Time)))
	x.out.beginArgs()
	x.out.addPlainText(`"kind":`, f.Kind.Key())
	x.out.addText(`"function":`, quote(f.Function))
	x.out.addText(`"tag":`, t.quoted)
	x.out.addNumber(`"bytes":`, f.Size)
	x.out.addNumber(`"object":`, e.Object())
	x.out.addStatus(f.Status)
	x.out.addBool(`"certain":`, f.IsCertain())
	x.out.endEvent()
}

// writeKilled writes an instant when SIGKILL ended a process that held memory.
func (x *trace) writeKilled(p *running, r *wire.Record) {
	held := heap.NonNegative(p.life.InUse)
	if r.Thread != 0 || r.AsExit().Status() != 128+int16(syscall.SIGKILL) || p.exited || held == 0 {
		return
	}
	text := "killed while it held " + units.FormatLong(held)
	x.out.beginInstant("failure", quote(text), "p", p.home, x.relativeTime(max(x.heap.Now(), r.Time)))
	x.out.beginArgs()
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
	text := call.Sentence(units.FormatLong)
	if stats.FailsForSize(e, stats.Device{}) {
		call.Status = 0 // one instant for each status of the call site
		text = "create of " + units.FormatLong(e.Requested()) + " at " + t.name + " failed"
	}
	if !t.isNewFailure(&call) {
		return
	}
	x.beginFailure(p, r, t, text)
	x.out.addNumber(`"bytes":`, e.Requested())
	x.out.addNumber(`"in_use":`, heap.NonNegative(x.heap.InUse))
	x.out.addNumber(`"reserved":`, heap.NonNegative(x.heap.ReservedBytes()))
	x.out.addStatus(wire.CreateStatus(e))
	x.out.endEvent()
}

// writeFailedCall writes an instant when a call site's call fails with a status for the first time.
func (x *trace) writeFailedCall(p *running, r *wire.Record) {
	t, call := p.tag(r.AsDiag().Tag()), stats.FailedCallOf(r)
	if !t.chosen || !t.isNewFailure(&call) {
		return
	}
	if r.AsDiag().Tag() != 0 {
		call.Tag = t.name
	}
	x.beginFailure(p, r, t, call.Sentence(units.FormatLong))
	x.out.addStatus(call.Status)
	x.out.endEvent()
}

// beginFailure begins an instant about a failed call, up to the tag in its arguments.
func (x *trace) beginFailure(p *running, r *wire.Record, t *tag, text string) {
	x.out.beginInstant("failure", quote(text), "p", x.laneOf(p, r.Thread).at, x.relativeTime(max(x.heap.Now(), r.Time)))
	x.out.beginArgs()
	x.out.addText(`"tag":`, t.quoted)
}

// failureOf distinguishes the failed calls of a call site.
type failureOf struct {
	call   string
	status int32
}

// isNewFailure reports whether a call of the site fails in this way for the first time. If there are many ways, it leaves some
// out.
func (t *tag) isNewFailure(f *stats.FailedCall) bool {
	this := failureOf{f.Call, f.Status}
	if len(t.failures) == stats.StatusesMax || slices.Contains(t.failures, this) {
		return false
	}
	t.failures = append(t.failures, this)
	return true
}
