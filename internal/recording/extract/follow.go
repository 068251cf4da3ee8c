package extract

import (
	"fmt"
	"math"
	"math/big"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Follower follows a run that goes on, so that parts of it can begin and end at any time. Such a part has the same records as
// one of Range. Take costs O(1); memory grows with the names, which are kept compressed, and by a bit for each process that is
// gone. One goroutine uses it.
type Follower struct {
	old    *old
	names  recording.Log
	tidy   int               // size of names from which those of processes that are gone are dropped
	exits  map[uint32]uint64 // time of the last word of those that exit
	gone   processes         // the session's word
	latest uint64
	part   *following // nil: there is none
}

// following is the part that has begun.
type following struct {
	absent  processes // that had ended
	until   uint64
	unnamed unnamed
}

// processes is a set of a session's processes, with a bit for each number.
type processes struct{ big.Int }

func (p *processes) addProcess(process uint32)      { p.SetBit(&p.Int, int(process), 1) }
func (p *processes) hasProcess(process uint32) bool { return p.Bit(int(process)) == 1 }

// tidyBytes is the least size of names that is worth a second reading.
const tidyBytes = 1 << 20

// NewFollower returns a Follower of a run whose records a heap takes, each before the Follower.
func NewFollower(memory *heap.Heap) *Follower {
	return &Follower{old: newOld(memory), tidy: tidyBytes, exits: map[uint32]uint64{}}
}

// LatestTime returns the time of the last record in ns; no record that follows belongs to an earlier time.
func (f *Follower) LatestTime() uint64 { return f.latest }

// TakeRecord processes the next record of the run, and reports whether it is in the part that has begun. A name that comes after the
// part's end gets the time of that end.
func (f *Follower) TakeRecord(r *wire.Record) bool {
	if !r.Kind.IsMadeLater() {
		f.latest = max(f.latest, r.Time)
	}
	if r.IsDefinition() {
		f.names.Append(r)
	} else {
		f.old.keepIfUnknownToHeap(r)
	}
	if _, exits := f.exits[r.Process]; exits || r.Kind == wire.KindExit {
		f.exits[r.Process] = max(f.exits[r.Process], r.Time)
	}
	if r.Kind == wire.KindExit && r.Thread == 0 {
		f.forgetProcess(r.Process)
	}
	p := f.part
	if p == nil || p.absent.hasProcess(r.Process) || p.until != math.MaxUint64 && !p.unnamed.namesUnnamedSite(r) {
		return false
	}
	r.Time = min(r.Time, p.until)
	p.unnamed.noteRecord(r)
	return true
}

// forgetProcess drops the state of a process that is gone.
func (f *Follower) forgetProcess(process uint32) {
	f.gone.addProcess(process)
	delete(f.exits, process)
	f.old.forgetProcess(process)
	if f.names.Bytes() < f.tidy {
		return
	}
	var kept recording.Log
	if f.names.EachRecord(func(r *wire.Record) error {
		if !f.gone.hasProcess(r.Process) {
			kept.Append(r)
		}
		return nil
	}) == nil {
		f.names, f.tidy = kept, max(tidyBytes, 2*kept.Bytes())
	}
}

// BeginPart begins a part at a time in ns, not earlier than the last record, and calls give with its first records. After an error of
// give there is no part.
func (f *Follower) BeginPart(since uint64, give func(*wire.Record) error) error {
	p := &following{until: math.MaxUint64, unnamed: unnamed{}}
	p.absent.Set(&f.gone.Int)
	for process, time := range f.exits {
		if since-min(time, since) >= heap.Grace {
			p.absent.addProcess(process)
		}
	}
	err := f.names.EachRecord(func(r *wire.Record) error {
		if p.absent.hasProcess(r.Process) {
			return nil
		}
		p.unnamed.noteRecord(r)
		return give(r)
	})
	if err != nil {
		return fmt.Errorf("begin a part: %w", err)
	}
	list := f.old.recordsAtPartStart(since, p.absent.hasProcess)
	for i := range list {
		if err := give(&list[i]); err != nil {
			return err
		}
	}
	f.part = p
	return nil
}

// EndPart ends the part at a time in ns: only names that it lacks may follow.
func (f *Follower) EndPart(until uint64) { f.part.until = until }

// HasAllNames reports whether a part that has ended lacks no names.
func (f *Follower) HasAllNames() bool { return f.part == nil || len(f.part.unnamed) == 0 }

// ForgetPart forgets the part.
func (f *Follower) ForgetPart() { f.part = nil }
