package session

import (
	"math"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	tickNS  = 100_000_000 // publish a snapshot
	rareNS  = 500_000_000 // the same where it costs much
	flushNS = 250_000_000 // hand the recording to the kernel
)

// Recorder keeps every record, as *recording.Writer does.
type Recorder interface {
	Append(*wire.Record) error
	Flush() error
	Bytes() uint64
}

// Switched is a Recorder that users start and stop during the run. One goroutine calls it.
type Switched interface {
	Recorder
	// Toggle starts a recording, or stops the present one. All records up to a time in ns, and perhaps some behind it, have
	// been appended. It returns what to show.
	Toggle(until uint64) (string, error)
	Path() string // of the present recording; empty: there is none
}

// Keeper is a Recorder that wants to know when nothing more will come of a process, which ended with a status: Code is
// -1 when that is not known. Processes that are still there when the session ends have no such call.
type Keeper interface {
	Recorder
	Ended(process uint32, status Status)
}

// Tap gets all records while they come; *live.Tap is one. One goroutine calls it. Take keeps nothing of the record;
// Take and Flush return at once.
type Tap interface {
	Take(*wire.Record)
	Flush() // what was taken is to be looked at soon
	Close() // when nothing more will come
}

// intake is where the records of a session go, whatever source they come from: into model, recording and sites. One
// goroutine uses it.
type intake struct {
	model     *stats.Model
	recorder  Recorder // nil: nothing is recorded, or it broke
	path      string   // of the recording
	tap       Tap      // nil: there is none
	sites     *sites
	sampler   *sampler // nil: there is none
	clock     func() uint64
	published func(things, events, now uint64) // see Options; nil: not called

	places map[uint32]place // of processes whose pools are asked for memory; nil: none is
	timed  map[uint32]*timed

	leaving map[uint32]Status // processes that ended, but some of their call sites may still be named
	failure error             // of the recording
	read    uint64            // until when everything has come in, as far as that is known
	due     struct{ tick, flush, publish uint64 }
}

func newIntake(m *stats.Model, recorder Recorder, path string) intake {
	return intake{
		model: m, recorder: recorder, path: path, sites: newSites(nil), clock: Now, leaving: map[uint32]Status{},
		read: math.MaxUint64,
	}
}

// take takes a record in, and asks for what can be found out about it.
func (in *intake) take(r *wire.Record) {
	if r.Kind != wire.KindModule || !r.AsModule().Script() { // it is part of call sites' names, which are recorded
		in.put(r)
	}
	switch r.Kind {
	case wire.KindProcess, wire.KindTag, wire.KindModule:
		in.sites.add(r)
	case wire.KindDevice:
		in.placeOf(r)
	case wire.KindEvict:
		switch e := r.AsEvict(); {
		case in.places == nil:
		case e.Reason() == wire.EvictRelief:
			in.sampler.relief.paid(r.Process, e.Bytes())
		case e.Reason() == wire.EvictTimed:
			in.wasTimed(e, r.Process)
		}
	default: // needs no name
	}
}

// sampleOf begins or ends the sampling of a process.
func (in *intake) sampleOf(r *wire.Record) {
	switch {
	case in.sampler == nil:
	case r.Kind == wire.KindProcess:
		in.sampler.watch(r.Process, int(r.AsProcess().PID()))
	case r.Kind == wire.KindExit && r.Thread == 0:
		in.sampler.forget(r.Process)
		in.placeGone(r.Process)
	}
}

// applySamples takes what was sampled in.
func (in *intake) applySamples() {
	if in.sampler == nil {
		return
	}
	for _, r := range in.sampler.take() {
		in.put(&r)
	}
}

// put applies and records a record, in this order: the recording asks the model for a summary of what it has got.
func (in *intake) put(r *wire.Record) {
	if r.Kind == wire.KindProcess || r.Kind == wire.KindExit {
		in.sampleOf(r)
	}
	in.model.Apply(r)
	if in.recorder != nil {
		if err := in.recorder.Append(r); err != nil {
			in.broken(err)
		}
	}
	if in.tap != nil {
		in.tap.Take(r)
	}
}

// broken ends the recording after a failed write; the program goes on.
func (in *intake) broken(err error) {
	in.failure, in.recorder = err, nil
}

func (in *intake) applySites() {
	for _, r := range in.sites.take() {
		if r.Kind == wire.KindExit {
			in.left(r.Process)
			continue
		}
		r.Time = in.clock()
		in.put(&r)
	}
}

// exited says that a process is gone, at a time in ns. Its own EXIT says only that its exit handlers run: without a
// second one a reader of the recording would count its memory as in use for longer than the model here.
func (in *intake) exited(process uint32, status Status, time uint64) {
	kills := uint64(0)
	if in.sampler != nil && status.Signal == int(syscall.SIGKILL) {
		kills = in.sampler.oomKills(process)
	}
	in.model.ProcessEnded(process, stats.End{Status: status.Code, Signal: status.Signal, OOMKillsNumber: kills}, time)
	in.put(&wire.Record{Process: process, Event: wire.ExitFields{Time: time, Status: int16(status.Shell()), OOMKillsNumber: kills}.Event()})
	in.leaving[process] = status
	if !in.sites.add(&wire.Record{Process: process, Event: wire.ExitFields{}.Event()}) {
		in.left(process)
	}
}

// left tells the recorder that nothing more will come of a process.
func (in *intake) left(process uint32) {
	status := in.leaving[process]
	delete(in.leaving, process)
	if keeper, ok := in.recorder.(Keeper); ok {
		keeper.Ended(process, status)
	}
}

// chores are what happens by the clock.
func (in *intake) chores() {
	in.applySamples()
	now := in.clock()
	if now >= in.due.flush {
		in.due.flush = now + flushNS
		in.flush()
	}
	if now >= in.due.tick {
		in.due.tick = now + tickNS
		if in.tap != nil {
			in.tap.Flush()
		}
		in.publish(now)
		in.offerPools()
		in.timeReleases(now)
	}
}

// publishShare is the part of the time that goes into snapshots: rings fill while a snapshot is made, which takes a tenth
// of a second with 100,000 call sites.
const publishShare = 20

// publish publishes a snapshot, unless the last one cost so much that it is too early.
func (in *intake) publish(now uint64) {
	if now < in.due.publish {
		return
	}
	in.model.Tick(min(now, in.read)) // beyond that events would come late, and count in a later slot than their own
	s := in.model.Publish()
	if in.published != nil {
		in.published(max(uint64(in.model.CallSites()), s.Totals.LiveBuffers), s.Events, now)
	}
	cost := in.clock() - min(now, in.clock())
	in.due.publish = now + min(publishShare*cost, rareNS)
}

func (in *intake) flush() {
	if in.recorder == nil {
		return
	}
	if err := in.recorder.Flush(); err != nil {
		in.broken(err)
		return
	}
	path := in.path
	if switched, ok := in.recorder.(Switched); ok {
		path = switched.Path()
	}
	in.model.SetRecording(path, in.recorder.Bytes())
}

// end brings recording and model to an end once no record follows.
func (in *intake) end() {
	if in.sampler != nil {
		in.sampler.finish()
	}
	in.sites.finish()
	in.applySites()
	for process := range in.leaving { // their names did not come in time
		in.left(process)
	}
	in.chores()
	in.flush()
	if in.tap != nil {
		in.tap.Close()
	}
	in.model.Tick(in.clock())
	in.model.Publish()
}
