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
	// Toggle starts a recording, or stops the present one. The caller has appended all records up to until, in ns, and perhaps
	// later ones. Toggle returns a text to show.
	Toggle(until uint64) (string, error)
	Path() string // of the present recording; empty: there is none
}

// Keeper is a Recorder that wants to know when a process has ended and no record of it follows. The status has Code -1 if
// unknown. Processes that outlive the session have no such call.
type Keeper interface {
	Recorder
	Ended(process uint32, status Status)
}

// Tap gets all records as they arrive; *live.Tap is one. One goroutine calls it. Take must not keep the record; Take and Flush
// must not wait.
type Tap interface {
	TakeRecord(*wire.Record)
	Flush() // the taken records should be processed soon
	Close() // no record follows
}

// intake passes the records of a session, from any source, to model, recording and sites. One goroutine uses it.
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

	leaving map[uint32]Status // processes that ended while call sites of theirs may still get names
	failure error             // of the recording
	read    uint64            // all records up to this time have arrived, as far as that is known
	due     struct{ tick, flush, publish uint64 }
}

func newIntake(m *stats.Model, recorder Recorder, path string) intake {
	return intake{
		model: m, recorder: recorder, path: path, sites: newSiteNamer(nil), clock: MonotonicNow, leaving: map[uint32]Status{},
		read: math.MaxUint64,
	}
}

// acceptRecord applies a record, and asks sites and sampler for more about it.
func (in *intake) acceptRecord(r *wire.Record) {
	if r.Kind != wire.KindModule || !r.AsModule().Script() { // it is part of call sites' names, which are recorded
		in.applyAndRecord(r)
	}
	switch r.Kind {
	case wire.KindProcess, wire.KindTag, wire.KindModule:
		in.sites.queueRequest(r)
	case wire.KindDevice:
		in.noteDevicePlace(r)
	case wire.KindEvict:
		switch e := r.AsEvict(); {
		case in.places == nil:
		case e.Reason() == wire.EvictRelief:
			in.sampler.relief.notePoolGave(r.Process, e.Bytes())
		case e.Reason() == wire.EvictTimed:
			in.countTimedRelease(e, r.Process)
		}
	default: // needs no name
	}
}

// updateSampling begins or ends the sampling of a process.
func (in *intake) updateSampling(r *wire.Record) {
	switch {
	case in.sampler == nil:
	case r.Kind == wire.KindProcess:
		in.sampler.addProcess(r.Process, int(r.AsProcess().PID()))
	case r.Kind == wire.KindExit && r.Thread == 0:
		in.sampler.removeProcess(r.Process)
		in.forgetProcess(r.Process)
	}
}

// applySamples takes what was sampled in.
func (in *intake) applySamples() {
	if in.sampler == nil {
		return
	}
	for _, r := range in.sampler.takeReadyRecords() {
		in.applyAndRecord(&r)
	}
}

// applyAndRecord applies a record and then records it: the recording asks the model for a summary of all records in it.
func (in *intake) applyAndRecord(r *wire.Record) {
	if r.Kind == wire.KindProcess || r.Kind == wire.KindExit {
		in.updateSampling(r)
	}
	in.model.Apply(r)
	if in.recorder != nil {
		if err := in.recorder.Append(r); err != nil {
			in.endRecordingAfterFailure(err)
		}
	}
	if in.tap != nil {
		in.tap.TakeRecord(r)
	}
}

// endRecordingAfterFailure ends the recording after a failed write; the program goes on.
func (in *intake) endRecordingAfterFailure(err error) {
	in.failure, in.recorder = err, nil
}

func (in *intake) applySiteAnswers() {
	for _, r := range in.sites.takeReadyRecords() {
		if r.Kind == wire.KindExit {
			in.tellRecorderOfExit(r.Process)
			continue
		}
		r.Time = in.clock()
		in.applyAndRecord(&r)
	}
}

// recordExit records that a process is gone, at a time in ns. Its own EXIT says only that its exit handlers run: without a
// second EXIT, a reader of the recording would count its memory as in use for longer than the model does.
func (in *intake) recordExit(process uint32, status Status, time uint64) {
	kills := uint64(0)
	if in.sampler != nil && status.Signal == int(syscall.SIGKILL) {
		kills = in.sampler.oomKillsSinceStart(process)
	}
	in.model.NoteProcessEnded(process, stats.End{Status: status.Code, Signal: status.Signal, OOMKillsNumber: kills}, time)
	in.applyAndRecord(&wire.Record{Process: process, Event: wire.ExitFields{Time: time, Status: int16(status.ShellCode()), OOMKillsNumber: kills}.Event()})
	in.leaving[process] = status
	if !in.sites.queueRequest(&wire.Record{Process: process, Event: wire.ExitFields{}.Event()}) {
		in.tellRecorderOfExit(process)
	}
}

// tellRecorderOfExit informs the recorder that no record of a process follows.
func (in *intake) tellRecorderOfExit(process uint32) {
	status := in.leaving[process]
	delete(in.leaving, process)
	if keeper, ok := in.recorder.(Keeper); ok {
		keeper.Ended(process, status)
	}
}

// publishNameSampleAndFlush does the periodic work: snapshots, names, samples and flushes.
func (in *intake) publishNameSampleAndFlush() {
	in.applySamples()
	now := in.clock()
	if now >= in.due.flush {
		in.due.flush = now + flushNS
		in.flushRecorder()
	}
	if now >= in.due.tick {
		in.due.tick = now + tickNS
		if in.tap != nil {
			in.tap.Flush()
		}
		in.publishSnapshot(now)
		in.givePoolsToSampler()
		in.askForTimedReleases(now)
	}
}

// publishShare is the part of the time that goes into snapshots: rings fill while a snapshot is made, which takes a tenth
// of a second with 100,000 call sites.
const publishShare = 20

// publishSnapshot publishes a snapshot, unless the last one cost so much that it is too early.
func (in *intake) publishSnapshot(now uint64) {
	if now < in.due.publish {
		return
	}
	in.model.AdvanceTime(min(now, in.read)) // beyond that events would come late, and count in a later slot than their own
	s := in.model.PublishSnapshot()
	if in.published != nil {
		in.published(max(uint64(in.model.CallSiteCount()), s.Totals.LiveBuffers), s.Events, now)
	}
	cost := in.clock() - min(now, in.clock())
	in.due.publish = now + min(publishShare*cost, rareNS)
}

func (in *intake) flushRecorder() {
	if in.recorder == nil {
		return
	}
	if err := in.recorder.Flush(); err != nil {
		in.endRecordingAfterFailure(err)
		return
	}
	path := in.path
	if switched, ok := in.recorder.(Switched); ok {
		path = switched.Path()
	}
	in.model.SetRecording(path, in.recorder.Bytes())
}

// completeRecordingAndModel completes recording and model. No record may follow.
func (in *intake) completeRecordingAndModel() {
	if in.sampler != nil {
		in.sampler.endSampler()
	}
	in.sites.waitForAnswers()
	in.applySiteAnswers()
	for process := range in.leaving { // names of their call sites did not come in time
		in.tellRecorderOfExit(process)
	}
	in.publishNameSampleAndFlush()
	in.flushRecorder()
	if in.tap != nil {
		in.tap.Close()
	}
	in.model.AdvanceTime(in.clock())
	in.model.PublishSnapshot()
}
