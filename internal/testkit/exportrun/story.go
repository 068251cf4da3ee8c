package exportrun

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MiB is the unit of the story's sizes.
const MiB = 1 << 20

// NewRecord makes a record of process 1, thread 101, at a time in µs after Origin.
func NewRecord(us uint64, kind wire.Kind, set func(*wire.Record)) wire.Record {
	r := wire.Record{Process: 1, Thread: 101}
	r.Time, r.Kind = Origin+us*1000, kind
	if set != nil {
		set(&r)
	}
	if r.Kind.HasPayload() {
		r.Size = uint64(len(r.Payload))
	}
	return r
}

// NewTextRecord makes a record with a payload.
func NewTextRecord(us uint64, kind wire.Kind, payload string) wire.Record {
	return NewRecord(us, kind, func(r *wire.Record) { r.Payload = []byte(payload) })
}

// NewCreate makes a record of a create call that requested three quarters of the granted bytes.
func NewCreate(us, object, block, granted uint64, outcome wire.Outcome, tag uint32) wire.Record {
	return NewRecord(us, wire.KindCreate, func(r *wire.Record) {
		r.Object, r.Link, r.Granted, r.Size, r.Outcome, r.Tag = object, block, granted, granted-granted/4, outcome, tag
		r.Duration, r.Cost = 1500, 1000
		if outcome == wire.OutcomeMiss {
			r.Reason = uint8(wire.MissCold)
		}
	})
}

// NewRelease makes a record of a release call.
func NewRelease(us, object, block uint64, outcome wire.Outcome) wire.Record {
	return NewRecord(us, wire.KindRelease, func(r *wire.Record) {
		r.Object, r.Link, r.Outcome, r.Duration = object, block, outcome, 500
	})
}

// StoryRecords is a run in which everything happens once.
func StoryRecords() []wire.Record {
	sub := NewCreate(700, 4, 1, MiB, wire.OutcomeDriver, 1)
	sub.Op = uint8(wire.MemorySubBuffer)
	failed := NewCreate(2600, 9, 0, 64*MiB, wire.OutcomeFailed, 2)
	failed.Status = -4
	return []wire.Record{
		NewRecord(0, wire.KindProcess, func(r *wire.Record) { r.Object, r.Link, r.Payload = 4242, 1, []byte("/opt/app\x00-n\x005") }),
		NewRecord(10, wire.KindSite, func(r *wire.Record) {
			r.Thread, r.Tag = 0, 1
			r.Payload = []byte("cl::Buffer::Buffer\t/usr/include/CL/opencl.hpp\t3000\tapp+0x10\nblur<\"x\">\t/src/canny.c\t88\tapp+0x20\n")
		}),
		NewRecord(20, wire.KindTag, func(r *wire.Record) { r.Tag, r.Op, r.Link, r.Payload = 2, uint8(wire.TagsSize), 2*MiB, nil }),
		NewCreate(100, 1, 1, 4*MiB, wire.OutcomeMiss, 1),
		NewCreate(101, 2, 2, 2*MiB, wire.OutcomeMiss, 2), // its start lies within the previous call
		NewCreate(300, 3, 0, MiB, wire.OutcomeDriver, 3),
		sub,
		NewRecord(800, wire.KindSync, func(r *wire.Record) { r.Op, r.Link, r.Duration = uint8(wire.SyncFinish), 1, 100_000 }),
		NewRelease(1200, 1, 1, wire.OutcomePinned),
		NewRelease(1210, 4, 0, wire.OutcomeDriver),
		NewRelease(1220, 1, 1, wire.OutcomeCooling),
		NewRelease(1300, 2, 2, wire.OutcomeCached),
		NewRecord(1900, wire.KindCooled, func(r *wire.Record) { r.Link, r.Granted = 1, 4*MiB }),
		NewTextRecord(2000, wire.KindLimit, "max_cached_bytes=1024"),
		NewRecord(2100, wire.KindEvict, func(r *wire.Record) { r.Link, r.Granted, r.Reason = 2, 2*MiB, uint8(wire.EvictLimit) }),
		NewCreate(2500, 5, 1, 4*MiB, wire.OutcomeHit, 1),
		failed,
		NewRecord(2700, wire.KindDiag, func(r *wire.Record) { r.Op, r.Payload = uint8(wire.DiagTagsFull), []byte("too \x1b[31mmany\x7f") }),
		NewRecord(2800, wire.KindLost, func(r *wire.Record) { r.Size, r.Granted, r.Process, r.Thread = 12, 3, 0, 0 }),
		NewCreate(2900, 6, 6, 8*MiB, wire.OutcomeMiss, 2),
		NewRelease(3000, 6, 6, wire.OutcomeRefused),
		NewRecord(3001, wire.KindEvict, func(r *wire.Record) { r.Link, r.Granted = 6, 8*MiB }),
		NewRecord(9000, wire.KindExit, nil),
	}
}

// StorySnapshot returns the model's snapshot of the records.
func StorySnapshot(records []wire.Record) *stats.Snapshot {
	m := stats.New(stats.Options{Program: "/opt/app", Arguments: []string{"-n", "5"}, Policy: "futhark", Started: Origin})
	for i := range records {
		m.Apply(&records[i])
	}
	return m.Snapshot()
}

// NewMistake makes a record of a mistake that the program made.
func NewMistake(us uint64, kind wire.Diag, function string, tag uint32, kernel uint64, status int16) wire.Record {
	return NewRecord(us, wire.KindDiag, func(r *wire.Record) {
		r.Op, r.Payload, r.Tag, r.Link, r.Status = uint8(kind), []byte(function), tag, kernel, status
		r.Thread = 202 // a thread that makes no other call
		if kind != wire.DiagUnknownMemory {
			r.Object, r.Granted = 1, 4*MiB
		}
	})
}

// MisuseRecords is the Story of a program that makes every kind of mistake.
func MisuseRecords() []wire.Record {
	records := StoryRecords()
	end := records[len(records)-1]
	records = append(records[:len(records)-1],
		NewRecord(3100, wire.KindKernel, func(r *wire.Record) { r.Object, r.Payload = 7, []byte("step\x00") }),
		NewMistake(3200, wire.DiagDoubleRelease, "clReleaseMemObject", 1, 0, -38),
		NewMistake(3300, wire.DiagDoubleRelease, "clReleaseMemObject", 1, 0, -38),
		NewMistake(3400, wire.DiagDoubleRelease, "clReleaseMemObject", 1, 0, -38),
		NewMistake(3500, wire.DiagStaleArgument, "clEnqueueNDRangeKernel", 2, 7, 0),
		NewMistake(3600, wire.DiagStaleRead, "clEnqueueReadBuffer", 2, 0, 0),
		NewMistake(3700, wire.DiagUnknownMemory, "clRetainMemObject", 0, 0, -38),
		NewMistake(3800, wire.DiagUseAfterRelease, "clEnqueueFillBuffer", 1, 0, -38),
		NewMistake(3900, wire.DiagWrongContext, "clSetKernelArg", 1, 7, 0),
		NewMistake(4000, wire.DiagStillMapped, "clReleaseMemObject", 1, 0, 0))
	return append(records, end)
}
