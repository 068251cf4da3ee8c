package analysis

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Thresholds of memory that is reserved beyond what is in use, of the most reserved.
const (
	beyondShare = 0.25    // where it matters beside the device
	beyondMuch  = 0.5     // elsewhere: a note
	beyondLeast = 1 << 20 // bytes of a note
)

// findOverReserved finds a pool that reserves much more at once than the program ever has in use at once. An experiment makes any pool do
// so.
func findOverReserved(e *Evidence) (Diagnosis, bool) {
	m, inUse := e.Whole.most, e.Run.Totals.PeakInUse
	most := reservedBytes(&m)
	beyond := differenceOrZero(inUse, most)
	d := Diagnosis{Severity: Advice, Title: "the pool reserves much more than is in use", Share: shareOfWhole(beyond, most)}
	if d.Share < beyondShare || beyond < bytesLeast || e.Run.Spill != nil || e.Run.Lost > 0 || e.Run.Totals.Alternative > 0 || e.isFreeExplained() {
		return Diagnosis{}, false
	}
	if !e.isSizeWorthwhile(float64(beyond)) {
		if d.Severity = Note; d.Share < beyondMuch || beyond < beyondLeast {
			return Diagnosis{}, false
		}
	}
	d.Text = fmt.Sprintf("at most %s reserved for at most %s in use; when most was reserved, at most %s in use", units.FormatLong(most),
		units.FormatLong(inUse), units.FormatLong(nonNegative(m.InUse)))
	if waste := m.InUse - m.Requested; waste > 0 {
		d.Text += fmt.Sprintf(" (%s of it waste)", units.FormatLong(nonNegative(waste)))
	}
	d.Text += fmt.Sprintf(", %s free in the pool", units.FormatLong(nonNegative(m.Cached+m.Room)))
	if m.Cooling > 0 {
		d.Text += fmt.Sprintf(", %s released but still used by commands", units.FormatLong(nonNegative(m.Cooling)))
	}
	d.nameLeanestGhost(e)
	return d, true
}

// isFreeExplained reports whether another rule says why so much is free or wasted.
func (e *Evidence) isFreeExplained() bool {
	for _, rule := range []func(*Evidence) (Diagnosis, bool){findUnusedFreeBlocks, findFragmentation, findHighWaste} {
		if _, found := rule(e); found {
			return true
		}
	}
	return false
}

// reservedBytes adds up what the driver has given out.
func reservedBytes(g *heap.Gauges) uint64 {
	return nonNegative(g.InUse + g.Cached + g.Cooling + g.Room)
}
