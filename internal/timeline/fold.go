package timeline

import (
	"context"
	"errors"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// lookEvery is how many events are folded between two looks at everything else.
const lookEvery = 4096

// foldRecording folds the whole recording and keeps pictures on the way.
func (v *Viewer) foldRecording(ctx context.Context, reader *recording.Reader) {
	defer reader.Close() //nolint:errcheck // only read
	m, slabs := v.newModel()
	v.keepNextSnapshot(m)
	started, events := v.options.Now(), 0
	var record wire.Record
	var err error
	for {
		if events%lookEvery == 0 {
			if ctx.Err() != nil {
				return
			}
			v.offset.Store(reader.Offset())
			v.noteFoldingRate(events, v.options.Now().Sub(started).Seconds())
		}
		if err = reader.Next(&record); err != nil {
			break
		}
		if !record.Kind.IsMadeLater() { // else what follows it may have been before
			v.keepSnapshotsUntil(ctx, m, record.Time)
		}
		if ctx.Err() != nil {
			return
		}
		slabs.Take(&record)
		m.Apply(&record)
		events++
	}
	v.keepLastSnapshot(ctx, m, reader, err)
}

// newModel returns a model of the recording that has seen nothing yet, and the source of the model's map of slabs.
func (v *Viewer) newModel() (*stats.Model, slabs) {
	m := stats.New(v.options.Model(v.header))
	var s slabs
	if v.options.Slabs != nil {
		s.SlabMapper = v.options.Slabs(v.header)
	}
	if s.SlabMapper != nil {
		m.SetHeapMapSource(s.CurrentHeapMap)
	}
	return m, s
}

// slabs may be none.
type slabs struct{ *replay.SlabMapper }

// Take takes a record.
func (s slabs) Take(r *wire.Record) {
	if s.SlabMapper != nil {
		s.SlabMapper.PlayRecord(r)
	}
}

// keepNextSnapshot takes a picture for the next instant.
func (v *Viewer) keepNextSnapshot(m *stats.Model) {
	s := m.Snapshot()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept.keepNext(s)
}

// keepSnapshotsUntil takes the pictures of all instants before a time, unless the viewer is closed: with many call sites each takes a
// while. Only the folding changes what is kept.
func (v *Viewer) keepSnapshotsUntil(ctx context.Context, m *stats.Model, time uint64) {
	for next := v.kept.timeOfNext(); time > next && ctx.Err() == nil; next = v.kept.timeOfNext() {
		m.AdvanceTime(next)
		v.keepNextSnapshot(m)
	}
}

func (v *Viewer) noteFoldingRate(events int, seconds float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seconds > 0 && events > 0 {
		v.rate = float64(events) / seconds
	}
}

// keepLastSnapshot takes the last picture.
func (v *Viewer) keepLastSnapshot(ctx context.Context, m *stats.Model, reader *recording.Reader, err error) {
	if v.whole {
		v.keepSnapshotsUntil(ctx, m, v.footer.EndedNS)
		m.AdvanceTime(v.footer.EndedNS)
		m.NoteEndOfRun(v.footer.EndedNS)
	}
	s := m.Snapshot()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.final, v.until, v.damage = s, s.Time, reader.Damage()
	if !errors.Is(err, io.EOF) {
		v.damage = err.Error()
	}
}

// foldToWantedTimes folds up to times that are wanted exactly.
func (v *Viewer) foldToWantedTimes(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-v.wants:
			if s := v.exactSnapshot(ctx, at); s != nil {
				v.mu.Lock()
				v.exact, v.exactOf = s, at
				v.mu.Unlock()
			}
		}
	}
}

// exactSnapshot returns the picture of a time, nil when that is no longer wanted or cannot be had. It is made as
// extract.CutRange cuts: of all events before the first that is later.
func (v *Viewer) exactSnapshot(ctx context.Context, at uint64) *stats.Snapshot {
	reader, err := recording.Open(v.path)
	if err != nil {
		return nil
	}
	defer reader.Close() //nolint:errcheck // only read
	m, slabs := v.newModel()
	var record wire.Record
	for n := 0; ; n++ {
		if n%lookEvery == 0 && (ctx.Err() != nil || v.wanted.Load() != at) {
			return nil
		}
		if err := reader.Next(&record); err != nil || record.Time > at && !record.Kind.IsMadeLater() {
			break
		}
		slabs.Take(&record)
		m.Apply(&record)
	}
	m.AdvanceTime(at)
	return m.Snapshot()
}
