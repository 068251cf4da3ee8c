package measure

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	timesMost  = 1 << 16 // that are kept of a process
	startShare = 10      // a tenth of the creates is the start, in which caches fill
)

// Tempo takes the time of the iterations of a whole run, in the process with the most creates, without the start and the end
// of the run. Pool or no pool, a program makes the same creates, so runs with different configurations compare.
type Tempo struct{ processes map[uint32]*tempo }

// tempo is what a Tempo knows of a process.
type tempo struct {
	blocks experiment.Blocks
	count  uint64
	every  uint64   // creates from one time that is kept to the next
	times  []uint64 // ns when creates were entered
}

// TakeRecord takes a record.
func (t *Tempo) TakeRecord(r *wire.Record) {
	if r.Kind != wire.KindCreate || r.CarriedOver() || r.AsCreate().Outcome() == wire.OutcomeFailed {
		return
	}
	p := t.processes[r.Process]
	if p == nil {
		if len(t.processes) == processesMax {
			return
		}
		if t.processes == nil {
			t.processes = map[uint32]*tempo{}
		}
		p = &tempo{every: 1}
		t.processes[r.Process] = p
	}
	p.takeCreate(r)
}

func (p *tempo) takeCreate(r *wire.Record) {
	c := r.AsCreate()
	p.blocks.Add(c.Requested(), c.Tag(), c.Access(), float64(r.Time))
	if p.count%p.every == 0 {
		if len(p.times) == timesMost {
			for i := range timesMost / 2 {
				p.times[i] = p.times[2*i]
			}
			p.times, p.every = p.times[:timesMost/2], 2*p.every
		}
		p.times = append(p.times, r.Time-min(uint64(c.Duration()), r.Time))
	}
	p.count++
}

// Iterations are those of a run that were timed.
type Iterations struct {
	NS      float64 // of one
	Count   uint64  // 0: the run is too short
	Creates uint64  // of one; 0: they do not repeat, and each counts as one
}

// Iterations returns what the iterations of the run took.
func (t *Tempo) Iterations() (out Iterations) {
	var most *tempo
	for _, p := range t.processes {
		if most == nil || p.count > most.count {
			most = p
		}
	}
	if most == nil {
		return out
	}
	period := uint64(1)
	if plan := most.blocks.Plan(); plan.Iterations > 0 {
		period = plan.Requests / uint64(plan.Iterations)
		out.Creates = period
	}
	from := most.count/startShare + 1
	if out.Count = (most.count - min(most.count, from+1)) / period; out.Count == 0 {
		return Iterations{}
	}
	first, last := from/most.every, (from+out.Count*period)/most.every
	took := most.times[last] - min(most.times[first], most.times[last])
	out.NS = float64(took) / float64((last-first)*most.every) * float64(period)
	return out
}
