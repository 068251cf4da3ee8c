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
	usesLeast    = 100 // in the later half of the run
	usesEach     = 100 // of buffers for each create in that half
	parentsMax   = 4096
	keptPatience = 2  // iterations after which what they kept is no longer used
	keptMany     = 16 // iterations, of a phase that only creates: fewer are the buffers that a program needs
)

// own is what shows that a program reuses its memory itself.
type own struct {
	parts         uint64 // sub-buffers created
	parents       map[uint64]struct{}
	uses, creates uint64 // in the later half of the run
}

// see looks at a record of the run whose middle is at a time.
func (o *own) see(r *wire.Record, middle uint64) {
	switch r.Kind {
	case wire.KindUse:
		if r.Time > middle {
			o.uses++
		}
	case wire.KindCreate:
		o.create(r, middle)
	default:
	}
}

func (o *own) create(r *wire.Record, middle uint64) {
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

// hasOwnPool finds programs in which a pool has little to do.
func hasOwnPool(x *run, _ *Analysis) (Diagnosis, bool) {
	o := &x.own
	if parents := uint64(len(o.parents)); o.parts >= partsLeast && o.parts >= partsEach*parents && parents < parentsMax {
		return Diagnosis{
			Severity: Note, Title: "the program has a pool of its own",
			Text: fmt.Sprintf("it makes %s of %s: what is reused is its own decision, and a pool below it gains little",
				units.Count(o.parts, "sub-buffer"), units.Count(parents, "buffer")),
		}, true
	}
	if o.uses < usesLeast || o.creates*usesEach > o.uses {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Note, Title: "the program keeps its buffers",
		Text: fmt.Sprintf("in the later half of the run it creates %s and uses what it has %s: a pool has little to serve",
			units.Count(o.creates, "buffer"), units.Count(o.uses, "time")),
	}, true
}

// keeping returns the index of the phase whose iterations keep the most memory that the program releases only when it
// uses none of its memory any more; -1 if none does. A phase that fills something is followed by uses, or is short and
// releases nothing meanwhile.
func (x *run) keeping(a *Analysis) int {
	kept, at := uint64(0), -1
	lastUse := x.survey.lastUse - min(x.started, x.survey.lastUse)
	for i := range a.Phases {
		p := &a.Phases[i]
		if p.Growth <= 0 || p.Iterations < growthIterations || lastUse == 0 || lastUse > p.End+keptPatience*p.Period {
			continue
		}
		if !p.Recycles && p.Iterations < keptMany {
			continue
		}
		if all := uint64(p.Growth) * p.Iterations; all > kept && all >= a.Peak.InUse/2 {
			kept, at = all, i
		}
	}
	return at
}

// memoryIsKept finds iterations that keep memory that nothing uses later, in a program that releases it at its end.
func memoryIsKept(x *run, a *Analysis) (Diagnosis, bool) {
	at := x.keeping(a)
	if at < 0 || x.growing(a) >= 0 {
		return Diagnosis{}, false
	}
	p := &a.Phases[at]
	d := Diagnosis{
		Severity: Advice, Title: "every iteration keeps memory",
		Text: fmt.Sprintf("each of %s leaves %s more in use, which is released when nothing is used any more",
			units.Count(p.Iterations, "iteration"), units.FormatLong(uint64(p.Growth))),
		Share: share(uint64(p.Growth)*p.Iterations, a.Peak.InUse),
	}
	if len(a.Peak.Tags) > 0 {
		d.Tag = a.Peak.Tags[0].Name
		d.Text += fmt.Sprintf("; most at the peak comes from %s", d.Tag)
	}
	x.doubt(&d, "releases", "every iteration may keep memory")
	return d, true
}

// hosted finds memory that is slow because of the pool.
func hosted(x *run, a *Analysis) (Diagnosis, bool) {
	h := x.snapshot.Hosted
	return Diagnosis{
		Severity: Advice, Title: "buffers are in the host's memory", Share: share(h.Bytes, a.Peak.InUse),
		Text: fmt.Sprintf("%s (%s) got it, as the device lacked what the pool wasted; it is slower: choose a policy that wastes less (--policy futhark)",
			units.Count(h.Buffers, "create"), units.FormatLong(h.Bytes)),
	}, h.Buffers > 0
}
