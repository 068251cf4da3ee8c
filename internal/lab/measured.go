package lab

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Measured returns the ns that the driver took in a recording for what a policy was asked: creates and releases of blocks,
// slabs and parts, of all threads together. It is what ReplayResult.DriverNS estimates, but for first touches, which no
// recording tells. A create that made a slab has the slab's time in its own. The release of a part counts as much as its
// create, as it does in Tape.Device. It reads the source from where it stands; an error is that of the source.
func Measured(src trace.Source) (ns uint64, err error) {
	type buffer struct {
		process uint32
		object  uint64
	}
	poolable := map[buffer]bool{}
	err = each(src, func(r *wire.Record) error {
		b := buffer{r.Process, r.Object}
		switch r.Kind {
		case wire.KindCreate:
			switch part := r.Flags&wire.FlagPart != 0; {
			case r.Outcome != wire.OutcomeHit && r.Outcome != wire.OutcomeMiss:
			case part && r.Outcome == wire.OutcomeHit:
				ns += 2 * uint64(r.Cost)
			default:
				poolable[b] = !part
				ns += uint64(r.Cost)
			}
		case wire.KindRelease:
			if poolable[b] && r.Granted == 0 { // the last reference
				delete(poolable, b)
				ns += uint64(r.Cost)
			}
		case wire.KindEvict:
			ns += uint64(r.Cost)
		default:
		}
		return nil
	})
	return ns, err
}
