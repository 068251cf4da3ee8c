package analysis

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Thresholds of what a program does itself.
const (
	partsLeast   = 20  // sub-buffers, and
	partsEach    = 4   // of one buffer on average: fewer are views of parts
	usesLeast    = 100 // in the later half of its calls' time
	usesEach     = 100 // of buffers for each create in that half
	parentsMax   = 4096
	keptPatience = 2  // iterations after which what they kept is no longer used
	keptMany     = 16 // iterations, of a phase that only creates: fewer are the buffers that a program needs
)

// own is what shows that a program reuses its memory itself.
type own struct {
	parts         uint64 // sub-buffers created
	parents       map[uint64]struct{}
	uses, creates uint64 // in the later half of its calls' time
}

// noteRecord looks at a record of the run whose middle is at a time.
func (o *own) noteRecord(r *wire.Record, middle uint64) {
	switch r.Kind {
	case wire.KindUse:
		if r.Time > middle {
			o.uses++
		}
	case wire.KindCreate:
		o.noteCreate(r, middle)
	default:
	}
}

func (o *own) noteCreate(r *wire.Record, middle uint64) {
	c := r.AsCreate()
	switch {
	case c.CarriedOver() || c.Outcome() == wire.OutcomeFailed:
	case c.Memory() != wire.MemorySubBuffer:
		if r.Time > middle {
			o.creates++
		}
	default:
		o.parts++
		if o.parents == nil {
			o.parents = map[uint64]struct{}{}
		}
		if len(o.parents) < parentsMax {
			o.parents[uint64(r.Process)<<48^c.Parent()] = struct{}{}
		}
	}
}

// findProgramsWithOwnPool finds programs in which a pool has little to do.
func findProgramsWithOwnPool(e *Evidence) (Diagnosis, bool) {
	o := &e.Whole.own
	if parents := uint64(len(o.parents)); o.parts >= partsLeast && o.parts >= partsEach*parents && parents < parentsMax {
		return Diagnosis{
			Severity: Note, Title: "the program splits buffers itself",
			Text: fmt.Sprintf("it makes %s of %s: which parts are reused is its own decision, and a pool has little to serve",
				units.Count(o.parts, "sub-buffer"), units.Count(parents, "buffer")),
		}, true
	}
	if o.uses < usesLeast || o.creates*usesEach > o.uses {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Note, Title: "the program keeps its buffers",
		Text: fmt.Sprintf("in the later half of the time from its first call to its last it creates %s and uses existing buffers %s: a pool has little to serve",
			units.Count(o.creates, "buffer"), units.Count(o.uses, "time")),
	}, true
}
