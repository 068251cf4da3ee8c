package watch

import (
	"errors"
	"fmt"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// onDemandName is the template of recordings that the user starts during a run.
const onDemandName = "./gpumemtop.%n.%t.gmt"

// OnDemand records parts of a run that the user starts and stops. It implements session.Switched; a file that cannot be
// written ends the part, not the session's. The collector's goroutine alone uses it, and Close after that.
type OnDemand struct {
	outputs  *Outputs
	follower *extract.Follower
	writer   *recording.Writer // nil: nothing is recorded
	path     string
	since    uint64
	footer   recording.Footer // of a part that has ended
	patience time.Time        // until when that stays open for names of its call sites
}

// RecordOnDemand lets the user start and stop recordings, where everything is not recorded anyway.
func (o *Outputs) RecordOnDemand(model *stats.Model) {
	if !o.IsRecording() {
		d := &OnDemand{outputs: o, follower: extract.NewFollower(model.Heap())}
		o.Recorder, o.files = d, tee{{output: d}}
	}
}

// Append implements session.Recorder. It never fails.
func (d *OnDemand) Append(r *wire.Record) error {
	kept := *r
	if !d.follower.TakeRecord(&kept) || d.writer == nil {
		return nil
	}
	if kept.Kind == wire.KindLost {
		d.footer.Lost += kept.AsLost().Events()
	}
	if err := d.writer.Append(&kept); err != nil {
		d.endPartAfterFailure(err)
	}
	return nil
}

// Flush implements session.Recorder.
func (d *OnDemand) Flush() error {
	switch {
	case d.writer == nil:
	case d.hasEnded() && (d.follower.HasAllNames() || time.Now().After(d.patience)):
		d.completeFile()
	default:
		if err := d.writer.Flush(); err != nil {
			d.endPartAfterFailure(err)
		}
	}
	return nil
}

// Bytes implements session.Recorder.
func (d *OnDemand) Bytes() uint64 {
	if d.writer == nil {
		return 0
	}
	return d.writer.Bytes()
}

// Path implements session.Switched.
func (d *OnDemand) Path() string {
	if d.writer == nil || d.hasEnded() {
		return ""
	}
	return d.path
}

func (d *OnDemand) hasEnded() bool { return d.footer.EndedNS != 0 }

// Toggle implements session.Switched: it begins a part, or ends the one that is being recorded.
func (d *OnDemand) Toggle(until uint64) (text string, err error) {
	now := max(until, d.follower.LatestTime())
	if d.Path() != "" {
		d.follower.EndPart(now)
		d.footer.Status, d.footer.EndedNS, d.footer.Cut = -1, now, true
		d.patience = time.Now().Add(2 * time.Second)
		return fmt.Sprintf("recorded %s: %s", units.Duration(now-min(d.since, now)), d.path), d.Flush()
	}
	d.completeFile() // the trace has ended, and lacks names
	name, err := files.ExpandFileName(onDemandName, d.outputs.subject.Name, time.Now())
	if err != nil {
		return "", err
	}
	if d.writer, err = recording.Create(name.String(), d.outputs.recordingHeader(now), false); err != nil {
		d.writer = nil
		return "", err
	}
	d.path, d.since, d.footer = name.String(), now, recording.Footer{}
	if err := d.follower.BeginPart(now, d.writer.Append); err != nil {
		err = errors.Join(err, d.writer.Close(recording.Footer{Status: -1, EndedNS: now, Cut: true}))
		d.writer = nil
		return "", err
	}
	return "recording into " + d.path + "; r ends it", nil
}

// endPartAfterFailure ends the part after a failed write.
func (d *OnDemand) endPartAfterFailure(err error) {
	d.outputs.Partial = true
	d.outputs.Notes.Add(fmt.Sprintf("%v: the recording ends there, what is in %s is complete", err, d.path))
	_ = d.writer.Close(recording.Footer{}) // says the same again
	d.writer = nil
	d.follower.ForgetPart()
}

// completeFile completes the file, if there is one.
func (d *OnDemand) completeFile() {
	if d.writer == nil {
		return
	}
	if err := d.writer.Close(d.footer); err != nil {
		d.endPartAfterFailure(err)
		return
	}
	d.writer = nil
	d.follower.ForgetPart()
	d.outputs.Notes.Add("the recording is in " + d.path)
}

// Close implements output: it completes a part that is still being recorded when the run ends. It says itself what is missing.
func (d *OnDemand) Close(footer recording.Footer) error {
	if !d.hasEnded() {
		footer.Lost = d.footer.Lost
		d.footer = footer
	}
	d.completeFile()
	return nil
}

var _ session.Switched = (*OnDemand)(nil)
