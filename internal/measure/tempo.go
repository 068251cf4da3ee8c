package measure

import (
	"cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/experiment"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	timesMost  = 1 << 16 // that are kept of a process
	startShare = 10      // a tenth of the creates is the start, in which caches fill
	lagShare   = 8       // an eighth of the requests' time is what the device may be behind at their end
)

// Tempo takes the time of the iterations of a whole run, in the process with the most creates, without the start and the end
// of the run. Pool or no pool, a program makes the same creates, so runs with different configurations compare.
type Tempo struct{ processes map[uint32]*tempo }

// lag shows how far the device is behind a program's requests: times of the first and last, and ns of the longest wait since.
type lag struct{ first, last, wait uint64 }

func (l *lag) takeRecord(r *wire.Record) {
	switch {
	case r.Kind == wire.KindCreate:
		l.first, l.last, l.wait = cmp.Or(l.first, r.Time), r.Time, 0
	case isWait(r):
		l.wait = max(l.wait, uint64(r.AsSync().Duration()))
	}
}

func isWait(r *wire.Record) bool {
	return r.Kind == wire.KindSync && r.AsSync().Sync() != wire.SyncFlush
}

// tempo is what a Tempo knows of a process.
type tempo struct {
	lag
	blocks experiment.Blocks
	count  uint64
	every  uint64   // creates from one time that is kept to the next
	times  []uint64 // ns when creates were entered
}

// TakeRecord takes a record.
func (t *Tempo) TakeRecord(r *wire.Record) {
	if p := t.processes[r.Process]; p != nil {
		p.lag.takeRecord(r)
	}
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
	p.blocks.AddRequest(c.Requested(), c.Tag(), c.Access(), float64(r.Time))
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
	Count   uint64  // 0: the run is too short, or the device was far behind
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
	if plan := most.blocks.BlockPlan(); plan.Iterations > 0 {
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
	if float64(most.wait) > 2*out.NS && most.wait > (most.last-most.first)/lagShare { // the times are those of the requests, and not what an iteration takes
		return Iterations{}
	}
	return out
}
