package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// work is the job's settings, which every worker has. Beam sends it as JSON.
type work struct {
	State   store  // the folder of results
	Run     string // folder in State for results of this run alone
	Command string
	Workers int // goroutines that play one recording; 0: one for each core

	Configurations int    // that are tried on the scouts
	MaxMemory      uint64 // bytes that may be reserved at a time; 0: any
	Scouts         int    // the most recordings of a program that the search uses
}

// entry is a recording, or the first one of a job.
type entry struct {
	Index   int    `json:"index"` // among those of a run
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Version string `json:"version,omitempty"` // until it has a result
	ID      string `json:"id"`                // of the recording
	App     string `json:"app"`
	Job     string `json:"job"`

	Present *replay.Configuration `json:"present,omitempty"` // the configuration of the run
	Plan    string                `json:"plan,omitempty"`    // name of a plan in the store
	Group   string                `json:"group,omitempty"`   // the recordings of a program that count as one
	Result  string                `json:"result,omitempty"`  // name of its result in the store
}

// jobs is a set of job names.
type jobs map[string]bool

// countIfNewJob returns how many jobs a recording adds: none if its job is known, one if it has none.
func (j jobs) countIfNewJob(e *entry) int {
	if e.Job != "" && j[e.Job] {
		return 0
	}
	j[e.Job] = true
	return 1
}

// skip is a recording that was not counted, or only in part.
type skip struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	Part bool   `json:"part"`           // its readable part was counted
	Copy bool   `json:"copy,omitempty"` // another file has the same recording, which counts once
}

// Counters that runners show; progress counts the same in this process.
var (
	lookedAt = beam.NewCounter("gpumemtop", "recordings looked at")
	skipped  = beam.NewCounter("gpumemtop", "recordings skipped")
	worked   = beam.NewCounter("gpumemtop", "recordings done")
	kept     = beam.NewCounter("gpumemtop", "recordings done by an earlier run")
)

// progress counts recordings in this process: all of them, if the runner is in this process.
var progress struct{ looked, skipped, done, kept atomic.Int64 }

// noteSkipped names a recording that cannot be read.
func (w *work) noteSkipped(ctx context.Context, file string, why error) error {
	skipped.Inc(ctx, 1)
	progress.skipped.Add(1)
	text := strings.TrimPrefix(why.Error(), "open ")
	return w.State.writeJSON(ctx, w.Run+"/skipped/"+digestOf(file)+".json", skip{Path: file, Why: units.Clean(text)})
}

// noteDamaged names a recording that is not whole.
func (w *work) noteDamaged(ctx context.Context, file, why string) error {
	return w.State.writeJSON(ctx, w.Run+"/skipped/"+digestOf(file)+".json", skip{Path: file, Why: units.Clean(why), Part: true})
}

// noteDuplicate names a file with a recording that counts already.
func (w *work) noteDuplicate(ctx context.Context, e, of *entry) error {
	return w.State.writeJSON(ctx, w.Run+"/skipped/"+digestOf(e.Path)+".json", skip{Path: e.Path, Why: "the recording is in " + of.Path, Part: true, Copy: true})
}

// storeResult stores the result of a program.
func (w *work) storeResult(ctx context.Context, app string, result any) error {
	return w.State.writeJSON(ctx, w.Run+"/found/"+digestOf(app)+".json", result)
}

// readRecordingHeader sets what a recording's header says.
func (w *work) readRecordingHeader(ctx context.Context, e *entry) (err error) {
	if e.Size, e.Version, err = fileSizeAndVersion(ctx, e.Path); err != nil {
		return err
	}
	err = withLocalCopy(ctx, e.Path, func(local string) error {
		reader, err := recording.Open(local)
		if err != nil {
			return errors.New(strings.ReplaceAll(err.Error(), local, e.Path))
		}
		h := reader.Header()
		e.ID, _ = h.RecordingIDOf(1)
		if e.App, e.Job, err = programAndJob(reader, &h); err != nil {
			return errors.Join(err, reader.Close())
		}
		if w.Command == "tune" {
			e.Present = setting.ConfigurationOfRecording(&h)
		}
		return reader.Close()
	})
	lookedAt.Inc(ctx, 1)
	progress.looked.Add(1)
	return err
}

// programAndJob returns the program and the job of a recording: those of its first process, because the command may have been a launcher.
func programAndJob(reader *recording.Reader, h *recording.Header) (app, job string, err error) {
	names, err := callsite.ReadNames(reader)
	if err != nil {
		return "", "", err
	}
	first := &callsite.ProcessNames{Number: 1}
	if list := names.NamedProcesses(); len(list) > 0 {
		first = list[0]
	}
	if first.Program == "" && h.Program == "" {
		return "unknown", h.Job, nil
	}
	return first.AppName(h), units.Clean(first.IdentityOfRun(h).Job), nil
}

// reuseOrCompute sets the entry's result to that of an earlier run with the same recording and options, or else computes and stores it. ok is
// false if the recording cannot be read: the skips then name it. An error ends the run: the store cannot be written.
func reuseOrCompute[T any](ctx context.Context, w *work, e *entry, options string, read func(*recording.Reader) (*T, error)) (ok bool, err error) {
	e.Result, e.Version = fmt.Sprintf("%s/%.2s/%s.json", w.Command, digestOf(e.Path), digestOf(version, e.Path, e.Version, options)), ""
	result := new(T)
	if w.State.readJSON(ctx, e.Result, result) {
		kept.Inc(ctx, 1)
		progress.kept.Add(1)
		return true, nil
	}
	damage := ""
	err = withLocalCopy(ctx, e.Path, func(local string) error {
		reader, err := recording.Open(local)
		if err != nil {
			return err
		}
		result, err = read(reader)
		damage = reader.Damage()
		return errors.Join(err, reader.Close())
	})
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, w.noteSkipped(ctx, e.Path, err)
	}
	worked.Inc(ctx, 1)
	progress.done.Add(1)
	if damage != "" { // without a result the next run reads, and names, it again
		e.Result = w.Run + "/part/" + digestOf(e.Path) + ".json"
		err = w.noteDamaged(ctx, e.Path, damage)
	}
	return true, errors.Join(err, w.State.writeJSON(ctx, e.Result, result))
}

// version is part of the names of results: results of other versions do not count.
const version = 4

// groupsMost bounds the parts of a program's cross-validation. If there are more jobs, several form one part, by a hash of their names.
const groupsMost = 1024

// groupOfRecording returns the group of a recording: its job, if the program has several jobs; else the recording alone.
func groupOfRecording(e *entry, groups int, byJob bool) string {
	name := e.Path
	if byJob && e.Job != "" {
		name = "job " + e.Job
	}
	if groups <= groupsMost {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("part %d of %d", h.Sum32()%groupsMost+1, groupsMost)
}
