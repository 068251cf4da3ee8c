package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/edit"
	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TrimRecording writes a part of a recording as a recording.
func TrimRecording(path string, part files.Part, output files.Output) error {
	if err := output.RequireOtherFile(path); err != nil {
		return err
	}
	return files.ReadRecordingPart(path, part, func(in *files.Input) error {
		header := edit.TrimHeader(in.Reader.Header(), in.Extract)
		return output.WriteRecording(header, func(w edit.Sink) (recording.Footer, error) {
			return edit.WritePart(w, in.Reader, in.Source, in.Extract, in.Part.String())
		})
	})
}

// Merge makes one recording of several.
func Merge(paths []string, output files.Output) error {
	if err := output.RequireOtherFile(paths...); err != nil {
		return err
	}
	if err := files.CheckDifferentFiles(paths); err != nil {
		return err
	}
	return mergeRecordings(paths, output, mostOpenRecordings())
}

// fanInMax bounds the recordings that are open together: each keeps an unpacked frame of up to a few MiB.
const fanInMax = 64

// mostOpenRecordings returns how many recordings may be open together: at most half of the files that this process may open.
func mostOpenRecordings() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return fanInMax
	}
	return int(max(2, min(limit.Cur/2, fanInMax)))
}

// mergeRecordings merges recordings, in groups first if there are more than mostOpenRecordings.
func mergeRecordings(paths []string, output files.Output, fanIn int) error {
	plan, err := planMerge(paths)
	if err != nil {
		return err
	}
	return output.WriteRecording(plan.MergedHeader(), func(w edit.Sink) (footer recording.Footer, err error) {
		sources := make([]opener, len(paths))
		for i := range paths {
			sources[i] = func(r *recording.Reader) recording.Source { return plan.MergedSource(i, r) }
		}
		if len(paths) <= fanIn {
			return plan.MergedFooter(), mergeGroup(plan, w, paths, sources)
		}
		folder, err := os.MkdirTemp(filepath.Dir(output.Path), ".gpumemtop-merge-")
		if err != nil {
			return footer, fmt.Errorf("merge %d recordings: %w", len(paths), err)
		}
		tempfile.NoteUnfinished(folder)
		err = mergeInSteps(plan, w, folder, fanIn, paths, sources)
		return plan.MergedFooter(), errors.Join(err, tempfile.FinishWith(folder, func() error { return os.RemoveAll(folder) }))
	})
}

// warningsMax bounds the warnings about damaged recordings.
const warningsMax = 5

// planMerge reads all recordings, one after the other, to plan the merge.
func planMerge(paths []string) (*edit.Plan, error) {
	parts := make([]edit.Part, 0, len(paths))
	damaged := 0
	for _, path := range paths {
		reader, err := recording.Open(path)
		if err != nil {
			return nil, err
		}
		part, err := edit.SurveyRecording(files.TrackReading(reader, path))
		if reader.Damage() != "" {
			if damaged++; damaged <= warningsMax {
				files.WarnDamage(path, reader)
			}
		}
		if err = errors.Join(err, reader.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		parts = append(parts, part)
	}
	if damaged > warningsMax {
		console.SayLine("%d more recordings are not whole", damaged-warningsMax)
	}
	return edit.PlanMerge(parts)
}

// opener makes the source that is merged from an open recording.
type opener func(*recording.Reader) recording.Source

// mergeInSteps merges more recordings than may be open together: groups of them into files of a folder, then these.
func mergeInSteps(plan *edit.Plan, w edit.Sink, folder string, fanIn int, paths []string, openers []opener) error {
	for level := 0; len(paths) > fanIn; level++ {
		var groups []string
		var plain []opener
		for from := 0; from < len(paths); from += fanIn {
			to := min(from+fanIn, len(paths))
			path := filepath.Join(folder, fmt.Sprintf("%d-%d", level, from))
			if err := mergeIntoFile(plan, path, paths[from:to], openers[from:to]); err != nil {
				return err
			}
			groups = append(groups, path)
			plain = append(plain, func(r *recording.Reader) recording.Source { return r })
		}
		if level > 0 {
			for _, path := range paths {
				if err := os.Remove(path); err != nil {
					return fmt.Errorf("merge: %w", err)
				}
			}
		}
		paths, openers = groups, plain
	}
	return mergeGroup(plan, w, paths, openers)
}

func mergeIntoFile(plan *edit.Plan, path string, paths []string, openers []opener) error {
	w, err := recording.Create(path, recording.Header{}, false)
	if err != nil {
		return err
	}
	return errors.Join(mergeGroup(plan, w, paths, openers), w.Close(recording.Footer{}))
}

// mergeGroup merges recordings that may all be open together.
func mergeGroup(plan *edit.Plan, w edit.Sink, paths []string, openers []opener) (err error) {
	sources, group := make([]recording.Source, len(paths)), &group{}
	defer console.Meter().Clear()
	for i, path := range paths {
		reader, openErr := recording.Open(path)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, reader.Close()) }()
		group.readers = append(group.readers, reader)
		group.total += reader.Size()
		sources[i] = member{openers[i](reader), group}
	}
	return plan.WriteMerged(w, sources)
}

// group is recordings that are read together, which the progress line shows.
type group struct {
	readers []*recording.Reader
	total   int64 // bytes
	n       int   // records read
}

// member is one recording of a group.
type member struct {
	recording.Source
	group *group
}

// Next implements recording.Source.
func (m member) Next(r *wire.Record) error {
	g := m.group
	if g.n%files.ProgressEvery == 0 {
		done := int64(0)
		for _, reader := range g.readers {
			done += reader.Offset()
		}
		console.Meter().ShowProgress(fmt.Sprintf("merging %d recordings", len(g.readers)), done, g.total)
	}
	g.n++
	return m.Source.Next(r)
}
