// Package lab asks what would have been: it plays recordings through policies. It reads no clock and does no I/O; time
// is in the events.
package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ReplayOptions say what a recording is played through.
type ReplayOptions struct {
	Policy   string
	Settings []allocator.Setting
	Capacity uint64 // bytes that each process may have from the driver; 0: any
}

// Replay feeds the poolable requests, releases and coolings of each recorded process to a policy of its own and returns
// what that did with them.
//
// Time does not change: buffers come, go and cool when they did in the recording, however long a create would have
// taken. Where the recording does not tell when a buffer had cooled, as under a policy that does not pool, what commands
// still used cools at the process's next wait or finish. What was not poolable in the recording is left out, and
// so are changes of limits and of the policy during it. A class is a context with its flags; what the device can do comes from the
// context's first device.
//
// An error is that of the source, or says what is wrong with the policy or a setting.
func Replay(src trace.Source, o ReplayOptions) (*ReplayResult, error) {
	policy, err := allocator.New(o.Policy, o.Settings)
	if err != nil {
		return nil, err
	}
	r := &replay{options: o, processes: map[uint32]*process{}}
	r.result.Policy, r.result.Limits, r.result.Capacity = o.Policy, policy.Limits(), o.Capacity
	var record wire.Record
	for {
		err := src.Next(&record)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the recording: %w", err)
		}
		if err := r.take(&record); err != nil {
			return nil, err
		}
	}
	r.finish()
	return &r.result, nil
}

// replay is a recording as far as it has been played.
type replay struct {
	options   ReplayOptions
	processes map[uint32]*process
	order     []*process
	result    ReplayResult

	inUse, wanted, reserved uint64 // of all processes, now
}

// take plays one record.
func (r *replay) take(record *wire.Record) error {
	if record.Kind == wire.KindLost {
		r.result.Lost += record.Size
		return nil
	}
	p, err := r.process(record.Process)
	if err != nil {
		return err
	}
	p.time = max(p.time, int64(record.Time))
	e := &record.Event
	switch e.Kind {
	case wire.KindDevice:
		p.device(e)
	case wire.KindContext:
		p.context(e)
	case wire.KindCreate:
		p.create(e)
	case wire.KindRelease:
		p.release(e)
	case wire.KindCooled:
		p.cooled(e.Link)
	case wire.KindEvict:
		p.evicted(e)
	case wire.KindLimit:
		if e.Status == 0 && bytes.HasPrefix(record.Payload, []byte("policy=")) {
			r.result.Switches++
		}
	case wire.KindSync:
		if wire.Sync(e.Op) != wire.SyncFlush {
			p.coolAll()
		}
	}
	return nil
}

func (r *replay) process(number uint32) (*process, error) {
	if p := r.processes[number]; p != nil {
		return p, nil
	}
	policy, err := allocator.New(r.options.Policy, r.options.Settings)
	if err != nil {
		return nil, err
	}
	p := &process{
		replay: r, policy: policy, capacity: r.options.Capacity, classes: map[uint32]allocator.Class{},
		objects: map[uint64]held{}, cooling: map[uint64]allocator.Block{}, refused: map[uint64]held{},
		devices: map[uint64]device{}, contexts: map[uint16]uint64{},
	}
	r.processes[number] = p
	r.order = append(r.order, p)
	return p, nil
}

// hold notes what a process has in use and reserved after a step, by what it had before.
func (r *replay) hold(p *process) {
	r.inUse += p.inUse - p.was.inUse
	r.wanted += p.wanted - p.was.wanted
	r.reserved += p.reserved - p.was.reserved
	p.was = p.holdings
	if r.inUse > r.result.PeakInUse {
		r.result.PeakInUse, r.result.WantedAtPeak = r.inUse, r.wanted
	}
	r.result.PeakReserved = max(r.result.PeakReserved, r.reserved)
}

// finish adds the processes' figures up.
func (r *replay) finish() {
	out := &r.result
	out.Processes = len(r.order)
	for _, p := range r.order {
		s := p.policy.Stats()
		out.Hits += s.Hits
		out.Misses += s.Misses
		for i, n := range s.MissReasons {
			out.MissReasons[i] += n
		}
		out.BytesRequested += s.BytesRequested
		out.BytesAllocated += s.BytesAllocated
		out.InUse += s.BytesInUse
		out.Wanted += s.BytesWanted
		out.Cached += s.BytesCached
		out.Cooling += s.BytesCooling
		p.note()
		out.Free += p.fullest.BytesCached
		out.Largest = max(out.Largest, p.fullest.Largest)
		out.Squares += p.fullest.Squares
		out.Slabs += p.fullest.Slabs
	}
}
