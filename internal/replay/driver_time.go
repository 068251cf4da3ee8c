package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MeasuredDriverNS returns the driver time in ns of a recording for what a policy was asked: creates and releases of
// blocks, slabs and sub-allocations, of all threads together. Result.DriverNS estimates the same, plus first touches,
// which a recording does not show. A create that made a slab includes the slab's time. The release of a sub-allocation
// counts as much as its create, as in Loaded.DriverCosts. The error is that of the source.
func MeasuredDriverNS(src recording.Source) (ns uint64, err error) {
	type buffer struct {
		process uint32
		object  uint64
	}
	poolable := map[buffer]bool{}
	err = eachRecord(src, func(r *wire.Record) error {
		switch r.Kind {
		case wire.KindCreate:
			e := r.AsCreate()
			switch {
			case !e.WasPooled():
			case e.SubAllocation() && e.Outcome() == wire.OutcomeHit:
				ns += 2 * uint64(e.Cost())
			default:
				poolable[buffer{r.Process, e.Object()}] = !e.SubAllocation()
				ns += uint64(e.Cost())
			}
		case wire.KindRelease:
			e := r.AsRelease()
			if b := (buffer{r.Process, e.Object()}); poolable[b] && e.References() == 0 {
				delete(poolable, b)
				ns += uint64(e.Cost())
			}
		case wire.KindEvict:
			ns += uint64(r.AsEvict().Cost())
		default:
		}
		return nil
	})
	return ns, err
}
