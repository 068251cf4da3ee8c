package watch

import (
	"errors"
	"io"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// A film is fifteen seconds of a terminal of the size that the dashboard is laid out for.
const (
	filmFrames = 30
	filmEvery  = 500 * time.Millisecond
	filmWidth  = 120
	filmHeight = 36
)

// writeFilm writes a film of a recording.
func (o *ViewOptions) writeFilm(stdout io.Writer, path string) error {
	if err := o.Dashboard.Check(); err != nil {
		return err
	}
	after, err := parseTimeAfterStart(o.At)
	if err != nil {
		return err
	}
	picture, err := renderFilm(path, max(after, 0))
	if err != nil {
		return err
	}
	return o.Film.Write(stdout, func(w io.Writer) error {
		_, err := io.WriteString(w, picture)
		return err
	})
}

// renderFilm returns a moving picture of the dashboard as it was from a time after the start on.
func renderFilm(path string, after time.Duration) (picture string, err error) {
	reader, err := recording.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	header := reader.Header()
	snapshots, err := snapshotsOfFilm(reader, stats.New(modelOptionsOfRecording(header)), header.ClockNS+uint64(after))
	if err != nil {
		return "", err
	}
	return ui.RenderFilm(snapshots, &analysis.Live{Attached: header.Attached}, filmEvery, filmWidth, filmHeight), nil
}

// snapshotsOfFilm returns the snapshots of a film that begins at a time, which CLOCK_MONOTONIC gives: fewer where the recording
// ends before.
func snapshotsOfFilm(source recording.Source, m *stats.Model, next uint64) ([]*stats.Snapshot, error) {
	var out []*stats.Snapshot
	var r wire.Record
	for {
		err := source.Next(&r)
		if errors.Is(err, io.EOF) {
			return append(out, m.Snapshot()), nil
		}
		if err != nil {
			return nil, err
		}
		for ; r.Time >= next; next += uint64(filmEvery) {
			m.AdvanceTime(next)
			if out = append(out, m.Snapshot()); len(out) == filmFrames {
				return out, nil
			}
		}
		m.Apply(&r)
	}
}
