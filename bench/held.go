package main

import (
	"errors"
	"io"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The most that a proportional pool holds: a multiple of the most in use in the last minute, plus a constant.
const (
	proportionMost = 1.5
	proportionRest = 32 << 20
	peakSeconds    = 61 // a second counts until it is a minute ago as a whole
)

// lately is the most that a process had in use in each of the last seconds.
type lately [peakSeconds]struct{ second, inUse uint64 }

// noteInUse notes the bytes in use now, and returns the most of the last minute.
func (l *lately) noteInUse(time, inUse uint64) (most uint64) {
	second := time / 1e9
	if at := &l[second%peakSeconds]; at.second != second {
		at.second, at.inUse = second, inUse
	} else {
		at.inUse = max(at.inUse, inUse)
	}
	for _, s := range l {
		if s.second+peakSeconds > second {
			most = max(most, s.inUse)
		}
	}
	return most
}

// readRecordedFigures finds in the recording how many bytes the pool held beyond that, and how long creates took.
func (r *result) readRecordedFigures() error {
	file, err := recording.Open(r.file)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	h, recent := heap.New(heap.Options{}), map[*heap.Process]*lately{}
	var creates []uint32
	for {
		var record wire.Record
		if err := file.Next(&record); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		p := h.Apply(&record)
		if p == nil {
			continue
		}
		if recent[p] == nil {
			recent[p] = new(lately)
		}
		if record.Kind == wire.KindCreate {
			creates = append(creates, record.AsCreate().Duration())
		}
		most := recent[p].noteInUse(h.Now(), heap.NonNegative(p.InUse))
		r.beyond = max(r.beyond, float64(p.ReservedBytes()-p.Cooling)-proportionMost*float64(most)-proportionRest)
	}
	if slices.Sort(creates); len(creates) > 0 {
		r.slowCreate = float64(creates[len(creates)*99/100])
	}
	return nil
}
