package replay

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Measured returns the ns that the driver took in a recording for what a policy was asked: creates and releases of
// blocks, slabs and parts, of all threads together. It is what Result.DriverNS estimates, except first touches, which
// no recording tells. A create that made a slab has the slab's time in its own. The release of a part counts as much as
// its create, as it does in Tape.Device. An error is that of the source.
func Measured(src recording.Source) (ns uint64, err error) {
	type buffer struct {
		process uint32
		object  uint64
	}
	poolable := map[buffer]bool{}
	err = each(src, func(r *wire.Record) error {
		switch r.Kind {
		case wire.KindCreate:
			e := r.AsCreate()
			switch {
			case !e.Pooled():
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
