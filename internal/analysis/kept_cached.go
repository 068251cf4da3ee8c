package analysis

import (
	"fmt"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Thresholds of blocks that the pool keeps for nothing.
const (
	vainLeast = 1_000_000_000 // ns in the pool, and half of the run
	vainShare = 0.25          // of the most reserved
)

// vain is blocks that stayed in the pool for half of the run or longer and then served no request.
type vain struct {
	blocks, bytes uint64
	shortest      uint64 // stay, ns
}

// end looks at a block that leaves the pool.
func (v *vain) end(x *run, b *heap.Block, how heap.How) {
	if b.State == heap.Slab || b.SubAllocation || how == heap.Reused || how == heap.Unknown {
		return
	}
	stay := relative(max(b.Freed, x.survey.first), x.heap.Now())
	if stay < vainLeast || stay < x.calls()/2 {
		return
	}
	if v.blocks == 0 || stay < v.shortest {
		v.shortest = stay
	}
	v.blocks++
	v.bytes += b.Size
}

// keptForNothing finds free blocks that no request took.
func keptForNothing(e *Evidence) (Diagnosis, bool) {
	v := &e.Whole.vain
	if float64(v.bytes) < max(vainShare*float64(e.Run.Totals.PeakReserved), bytesLeast) || !e.matters(float64(v.bytes)) {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "the pool keeps memory that nothing asks for", Share: share(v.bytes, e.Run.Totals.PeakReserved),
		Text: fmt.Sprintf("%s in %s stayed free for %s or longer, of %s, and served no request after that", units.FormatLong(v.bytes),
			units.Count(v.blocks, "block"), units.Duration(v.shortest), units.Duration(e.Length)),
	}
	if l := limit(e.Run, "max_age"); l != nil && l.Kind == stats.LimitSeconds {
		value := strconv.FormatFloat(max(float64(v.shortest/2/100_000_000)/10, 0.1), 'f', 1, 64)
		d.Knob = Knob{Limit: l.Name, Value: value, Why: "blocks that stay free for longer go back to the driver"}
	}
	return d, true
}
