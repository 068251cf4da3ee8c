package analysis

import (
	"fmt"
	"math"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Thresholds of blocks that the pool keeps for nothing.
const (
	vainLeast = 1_000_000_000  // ns in the pool,
	vainPart  = 3              // and the run divided by this: a loop of more iterations asks for what it needs more often
	vainShare = 0.25           // of the most reserved
	idleLong  = 30_000_000_000 // or, while it goes on, this,
	idleNS    = 10_000_000_000 // and at least this
	idleSoon  = 2_000_000_000  // until it goes back, or since it should have: not worth a word
	ageMost   = 10             // max_age that is advised, s
)

// vain is blocks that stayed in the pool for long and then served no request.
type vain struct {
	blocks, bytes uint64
	shortest      uint64 // stay, ns
	since         uint64 // when the last of them became free
	until         uint64 // when the first of them left
}

// noteBlockLeftPool looks at a block that leaves the pool.
func (v *vain) noteBlockLeftPool(x *run, b *heap.Block, how heap.How) {
	if b.State == heap.Slab || b.SubAllocation || how == heap.Reused || how == heap.Unknown {
		return
	}
	stay := differenceOrZero(max(b.Freed, x.survey.first), x.heap.Now())
	if stay < vainLeast || stay < (x.survey.last-x.survey.first)/vainPart {
		return
	}
	if v.blocks == 0 || stay < v.shortest {
		v.shortest = stay
	}
	if v.blocks == 0 {
		v.until = x.relativeTime(x.heap.Now())
	}
	v.since = max(v.since, x.relativeTime(b.Freed))
	v.blocks++
	v.bytes += b.Size
}

// findUnusedFreeBlocks finds free blocks that no request took.
func findUnusedFreeBlocks(e *Evidence) (Diagnosis, bool) {
	v := &e.Whole.vain
	if float64(v.bytes) < max(vainShare*float64(e.Run.Totals.PeakReserved), bytesLeast) || !e.isSizeWorthwhile(float64(v.bytes)) {
		return Diagnosis{}, false
	}
	when := "all free from " + units.Duration(v.since) + " after the start on"
	if v.until < v.since { // in phases
		when = "not all of them at one time"
	}
	d := Diagnosis{
		Severity: Advice, Title: "the pool keeps memory that nothing asks for", Share: shareOfWhole(v.bytes, e.Run.Totals.PeakReserved),
		Text: fmt.Sprintf("%s in %s, %s, served no request for %s or longer, of %s, and none after that", units.FormatLong(v.bytes),
			units.Count(v.blocks, "block"), when, units.Duration(v.shortest), units.Duration(e.Length)),
	}
	d.explainWhenGivenBack(e, v.shortest)
	return d, true
}

// findIdlePool finds a pool that holds more than half of the peak in use without serving a request from it, while the program runs. Of a
// run that is over findUnusedFreeBlocks knows whether a request came later.
func findIdlePool(e *Evidence) (Diagnosis, bool) {
	idle, peak, long := e.Run.Totals.Idle, e.Run.Totals.PeakInUse, differenceOrZero(e.Run.IdleSince, e.Run.Time)
	if e.State != GoesOn || e.Run.IdleSince == 0 || long < max(min(e.Length/vainPart, idleLong), idleNS) || idle < bytesLeast ||
		!e.isSizeWorthwhile(float64(idle)) {
		return Diagnosis{}, false
	}
	if l := limitNamed(e.Run, "max_age"); l != nil && l.Value > 0 && math.Abs(float64(long)-1e9*l.Value) < idleSoon {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "the pool keeps memory that nothing asks for", Share: shareOfWhole(idle, e.Run.Totals.PeakReserved),
		Text: fmt.Sprintf("more than half of the peak in use (%s) is idle in the pool since %s after the start, %s now", units.FormatLong(peak),
			units.Duration(differenceOrZero(e.Run.Started, e.Run.IdleSince)), units.FormatLong(idle)),
	}
	d.explainWhenGivenBack(e, long)
	return d, true
}

// explainWhenGivenBack says when memory that was idle for long goes back, or which limit makes it.
func (d *Diagnosis) explainWhenGivenBack(e *Evidence, long uint64) {
	switch l := limitNamed(e.Run, "max_age"); {
	case l == nil || l.Kind != stats.LimitSeconds:
	case l.Value > 0:
		d.Text += fmt.Sprintf("; what stays free for %s s goes back (max_age)", l.Text)
	default:
		value := min(max(float64(long/2/100_000_000)/10, 0.1), ageMost)
		d.gain = noLoss
		d.Knob = Knob{Limit: l.Name, Value: strconv.FormatFloat(value, 'f', 1, 64), Why: "blocks that stay free for longer go back to the driver"}
	}
}

// unusedLeast is how many buffers that no command uses are worth a word, if they are most of all.
const unusedLeast = 20

// findUnusedBuffers finds that most buffers are created and released without a use.
func findUnusedBuffers(e *Evidence) (Diagnosis, bool) {
	l := &e.Whole.lag
	all := l.known + l.unused + l.unsure
	if !hasUses(&e.Whole.Run.Header, e.Run) || l.unused < unusedLeast || l.unused <= all/2 {
		return Diagnosis{}, false
	}
	top := l.unusedMost
	d := Diagnosis{
		Severity: Note, Title: "most " + e.memoryNoun() + "s are never used", Tag: top.name, Share: shareOfWhole(l.unused, all),
		Text: fmt.Sprintf("no command used %d of %s that were released", l.unused, units.Count(all, e.memoryNoun())),
	}
	if top.unused < l.unused {
		d.Text += fmt.Sprintf("; %d of these were created at %s", top.unused, top.name)
	}
	return d, true
}

// usesSince is the first version of the format whose recordings have uses, unless they are of attach.
const usesSince = 4

// HasUses reports whether the recording has what commands used, even if that is nothing.
func (a *Analysis) HasUses() bool { return hasUses(&a.Run.Header, a.Snapshot) }

// hasUses is HasUses for a part that is not finished. Logs of other programs and merged recordings have no host.
func hasUses(h *recording.Header, s *stats.Snapshot) bool {
	return s.Totals.Uses > 0 || h.Version >= usesSince && h.Host != "" && !h.Attached && s.Lost == 0
}
