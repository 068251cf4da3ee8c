package measure

import (
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/period"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Pools keep blocks for seconds without a message. So only iterations of seconds matter, which a look at few requests finds.
const (
	periodLeast  = 3_000_000_000 // ns of an iteration that a pool shall know of
	periodCreate = 6             // requests in a row that must have repeated
	periodOver   = 3             // iterations without a repetition, after which they are over
	lookedAt     = 8192          // requests of a process in a second that are looked at, and in an iteration that can be found
)

// Periods tells pools how long an iteration of their program takes, where it takes seconds.
type Periods struct {
	Send      func(process uint32, text string)
	processes map[uint32]*repeating
}

// repeating is what is known of a process.
type repeating struct {
	finder period.Finder
	times  []uint64 // of the latest requests, at their numbers modulo lookedAt
	count  uint64   // requests
	second uint64   // of the latest of them
	inIt   int      // requests of that second
	steady uint64   // when they repeated last
	known  uint64   // ns of an iteration
}

// TakeRecord takes a record.
func (p *Periods) TakeRecord(r *wire.Record) {
	switch r.Kind {
	case wire.KindCreate:
		if c := r.AsCreate(); (c.Outcome() == wire.OutcomeHit || c.Outcome() == wire.OutcomeMiss) && !c.CarriedOver() {
			p.takeRequest(r)
		}
	case wire.KindExit:
		delete(p.processes, r.Process)
	default:
	}
}

func (p *Periods) takeRequest(r *wire.Record) {
	x := p.processes[r.Process]
	if x == nil {
		if len(p.processes) >= processesMax {
			return
		}
		if p.processes == nil {
			p.processes = map[uint32]*repeating{}
		}
		x = &repeating{}
		p.processes[r.Process] = x
	}
	if second := r.Time / 1e9; second != x.second {
		p.sendPeriod(r.Process, x, r.Time)
		x.second, x.inIt = second, 0
	}
	if x.inIt++; x.inIt > lookedAt {
		if x.inIt == lookedAt+1 {
			x.finder, x.times, x.count = period.Finder{}, nil, 0
		}
		return
	}
	c := r.AsCreate()
	x.finder.AddCreate(period.KeyOfCreate(c.Tag(), c.Requested(), uint32(c.Access())))
	if len(x.times) < lookedAt {
		x.times = append(x.times, 0)
	}
	x.times[x.count%lookedAt] = r.Time
	x.count++
}

// sendPeriod sends how long an iteration takes, if the pool does not know about that.
func (p *Periods) sendPeriod(process uint32, x *repeating, now uint64) {
	ns := uint64(0)
	if requests := x.finder.SteadyPeriod(periodCreate); requests > 0 {
		last := x.times[(x.count-1)%lookedAt]
		ns, x.steady = last-min(x.times[(x.count-1-requests)%lookedAt], last), now
	} else if now-x.steady < periodOver*x.known {
		return // an iteration may differ now and then
	}
	if ns < periodLeast {
		ns = 0
	}
	if ns > x.known+x.known/4 || ns < x.known/2 {
		x.known = ns
		p.Send(process, wire.PeriodSetting+" "+strconv.FormatUint(ns, 10))
	}
}
