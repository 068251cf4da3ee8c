package trace

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// Upgrade makes a record of an earlier version one of the current version, so that whoever reads it, or writes it again,
// need not know where it comes from. Before version 4 a use did not tell where in its object it was, and that of a copy
// had the tag of the memory: both are unknown now.
func Upgrade(version int, r *wire.Record) {
	if version >= 4 || r.Kind != wire.KindUse {
		return
	}
	switch wire.Command(r.Op) {
	case wire.CommandKernel, wire.CommandNative:
		return
	case wire.CommandCopy:
		r.Tag = 0
	default:
	}
	r.Granted = 0
	r.Flags |= wire.FlagScattered
}
