package convert

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/flight"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// notInLake are the flags that only concern one recording.
var notInLake = []string{"since", "until", "process", "tag", "wrapper"}

// ExportToLake adds recordings and flight logs to a folder that many share. A file that is no recording, or cannot be read, is skipped and named,
// and is an error at the end.
func ExportToLake(paths []string, o *ExportOptions, given func(flag string) bool) (err error) {
	if err := checkLakeOptions(paths, o, given); err != nil {
		return err
	}
	l, err := parquet.OpenLake(o.Output.Path, o.Output.Force, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	paths, skipped := recordingsMissingInLake(l, paths)
	read := 0
	for i, next := range collectAllRows(paths) {
		console.Meter().ShowProgress("reading "+path.Base(paths[i]), int64(i), int64(len(paths)))
		if next.err != nil {
			skipped++
			console.SayLine("skipped %s: %v", paths[i], next.err)
			continue
		}
		if len(next.rows) == 0 {
			console.SayLine("%s has no processes: nothing of it is added", paths[i])
		}
		if err := l.AddRows(next.rows); err != nil {
			return fmt.Errorf("%s: %w", paths[i], err)
		}
		read++
	}
	console.Meter().Clear()
	added, err := l.Commit()
	if err != nil {
		return err
	}
	if added.New+added.Replaced+added.Known > 0 {
		console.SayLine("%s: %s added, %d replaced, %d there already%s", o.Output.Path, units.Plural(uint64(added.New), "recording", "recordings"),
			added.Replaced, added.Known, copiesInLakeText(added.Copies))
	}
	if skipped > 0 {
		return fmt.Errorf("%s skipped: the others are in %s", units.Plural(uint64(skipped), "file", "files"), o.Output.Path)
	}
	return nil
}

// copiesInLakeText names the first files whose recordings are there from other files.
func copiesInLakeText(files []string) string {
	const most = 3
	if len(files) == 0 {
		return ""
	}
	text := fmt.Sprintf("; %s of recordings that are there: %s", units.Plural(uint64(len(files)), "file is a copy", "files are copies"), strings.Join(files[:min(len(files), most)], ", "))
	if len(files) > most {
		text += ", …"
	}
	return text
}

func checkLakeOptions(paths []string, o *ExportOptions, given func(flag string) bool) error {
	switch {
	case o.Format != "parquet" && len(paths) == 1:
		return fmt.Errorf("--lake is for --format parquet, not %s", o.Format)
	case o.Format != "parquet":
		return fmt.Errorf("--format %s writes one recording, not %d: merge makes one of several", o.Format, len(paths))
	case o.Output.Path == "" || o.Output.Path == "-":
		return errors.New("no folder to write into: name one with -o")
	}
	for _, flag := range notInLake {
		if given(flag) {
			return fmt.Errorf("--%s is for one recording without --lake: leave it out", flag)
		}
	}
	for flag, only := range formatsOf {
		if given(flag) && !slices.Contains(only, "parquet") {
			return fmt.Errorf("--%s is for --format %s, not parquet: leave it out", flag, strings.Join(only, " or "))
		}
	}
	return nil
}

// recordingsMissingInLake returns the recordings that a lake lacks, by program, job and time, so that like rows are near each other.
// Those without a header are named and skipped.
func recordingsMissingInLake(l *parquet.Lake, paths []string) (list []string, skipped int) {
	keys := map[string]string{}
	for _, p := range paths {
		key, err := lakeSortKey(l, p)
		switch {
		case err != nil:
			console.SayLine("skipped: %s", strings.TrimPrefix(err.Error(), "open "))
			skipped++
		case key != "":
			keys[p] = key
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(keys[a], keys[b]) })
	return list, skipped
}

// lakeSortKey returns the place of a recording among others; empty: the lake has it.
func lakeSortKey(l *parquet.Lake, name string) (string, error) {
	if strings.HasSuffix(name, wire.FlightSuffix) {
		rows, err := collectFlightRows(name)
		if err != nil {
			return "", err
		}
		r := &rows[0].Run
		if !l.WantsRecording(r.Recording, r.Events, r.Ending) {
			l.CountUnwanted(r.Recording, r.Path)
			return "", nil
		}
		return strings.Join([]string{r.App, r.Job, time.UnixMicro(r.Started).UTC().Format(time.RFC3339Nano)}, "\x00"), nil
	}
	reader, err := recording.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = reader.Close() }() // nothing was written
	h := reader.Header()
	id, _ := h.RecordingIDOf(1)
	if file := describeLakeFile(name, reader); len(h.Merged) == 0 && !l.WantsRecording(id, int64(file.Events), file.EndingText()) {
		l.CountUnwanted(id, file.Path)
		return "", nil
	}
	return strings.Join([]string{path.Base(h.Program), h.Job, h.Created.UTC().Format(time.RFC3339Nano)}, "\x00"), nil
}

// describeLakeFile says what file a recording lies in, without reading its events.
func describeLakeFile(name string, reader *recording.Reader) (f lake.File) {
	f.Path = absolutePath(name)
	if f.Footer, f.Whole = reader.Footer(); len(reader.Header().Merged) > 0 {
		return f
	}
	if f.Events = f.Footer.Events; f.Whole {
		return f
	}
	blocks, _ := reader.Blocks() // reading the events says what is wrong
	for i := range blocks {
		f.Events += blocks[i].Events
	}
	return f
}

func absolutePath(name string) string {
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

type collected struct {
	rows []*lake.Rows
	err  error
}

// collectAllRows reads as many recordings at once as there are processors, and yields them in the order of paths.
func collectAllRows(paths []string) func(yield func(int, collected) bool) {
	return func(yield func(int, collected) bool) {
		ahead := runtime.GOMAXPROCS(0)
		futures := make([]chan collected, len(paths))
		start := func(i int) {
			if i >= len(paths) {
				return
			}
			futures[i] = make(chan collected, 1)
			go func() {
				rows, err := collectRows(paths[i])
				futures[i] <- collected{rows, err}
			}()
		}
		for i := range min(ahead, len(paths)) {
			start(i)
		}
		for i := range paths {
			next := <-futures[i]
			futures[i] = nil
			start(i + ahead)
			if !yield(i, next) {
				return
			}
		}
	}
}

func collectRows(name string) ([]*lake.Rows, error) {
	if strings.HasSuffix(name, wire.FlightSuffix) {
		return collectFlightRows(name)
	}
	reader, err := recording.Open(name)
	if err != nil {
		return nil, err
	}
	file := describeLakeFile(name, reader)
	rows, err := lake.CollectRows(reader, reader.Header())
	file.SetFileOfRows(rows)
	if damage := reader.Damage(); err == nil && damage != "" {
		console.SayLine("%s is not whole: %s", name, damage)
	}
	return rows, errors.Join(err, reader.Close())
}

// collectFlightRows makes the row of a process that left a flight log.
func collectFlightRows(name string) ([]*lake.Rows, error) {
	p, err := flight.ReadProcess(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	id := fmt.Sprintf("%s-%d-%d", p.Host, p.PID, p.Started) // as its file is named at first
	begun := time.Unix(0, int64(p.Started)).UTC()
	r := lake.Run{
		Run: id + "-1", Schema: lake.Schema, Recording: id, Number: 1, Host: p.Host, PID: int64(p.PID), Step: p.Step, Rank: p.Rank, Program: p.Path,
		Policy: "none", Device: p.Device, Driver: p.Driver, Started: begun.UnixMicro(), Seconds: p.Seconds, App: p.Program,
		Job: cmp.Or(p.Job, "none"), Date: begun.Format(time.DateOnly), Path: absolutePath(name), Ending: lake.Log,
		Labels: map[string]string{},
		Events: int64(p.Counts.Creates + p.Counts.Failed + p.Counts.Releases),
	}
	for pair := range strings.SplitSeq(p.Labels, ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			r.Labels[name] = value
		}
	}
	if status := int64(p.Status); p.Signal > 0 || status >= 0 {
		if p.Signal > 0 {
			status = 128 + int64(p.Signal)
		}
		r.Status = &status
	}
	r.SetFlightFigures(&p.Counts)
	return []*lake.Rows{{Run: r}}, nil
}
