package importer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/arena"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// stepNS is the assumed duration of a step, ns.
const stepNS = 1_000_000

// stepsMax bounds the distance between steps.
const stepsMax = 1 << 43

// miniEvent is the beginning or the end of a buffer.
type miniEvent struct {
	time   int64
	phase  uint8 // order within a step: releases, then creates, then releases of buffers that last no time
	buffer int
}

const (
	miniEnd uint8 = iota
	miniBegin
	miniEndAtOnce
)

// mini returns the records of a problem in the order of time. A file may have any order, so all of it is in memory. Offsets of a
// solution, alignments and gaps are ignored.
type mini struct {
	facts   Facts
	table   *table
	buffers []arena.Buffer
	events  []miniEvent
	origin  int64
	next    int
	queue   []wire.Record
}

func openMiniMalloc(r io.Reader, facts Facts) (Source, error) {
	s := &mini{facts: facts, table: newTable(r, "MiniMalloc", "want id,lower,upper,size", facts), queue: []wire.Record{processRecord(facts)}}
	fields, err := s.table.nextLine()
	if err != nil {
		return nil, err
	}
	width := len(fields)
	columns, err := arena.FindColumns(fields)
	if err != nil {
		return nil, s.table.lineError("%w", err)
	}
	s.table.taken = 0
	for {
		fields, err := s.table.nextLine()
		if err == io.EOF { //nolint:errorlint // the table returns io.EOF itself
			return s, s.sortEvents()
		}
		if err != nil {
			return nil, err
		}
		b, err := columns.ReadBuffer(fields)
		switch {
		case err == nil && s.table.open && len(fields) < width:
			err = fmt.Errorf("%d columns: want %d", len(fields), width)
		case err == nil && b.Upper < b.Lower:
			err = fmt.Errorf("upper %d is before lower %d", b.Upper, b.Lower)
		}
		if err != nil {
			s.table.skipAndNoteError(err)
			continue
		}
		if s.table.chargeLineIfRoom(bufferBytes + len(b.ID)) {
			s.addLifetime(b)
		}
	}
}

// bufferBytes is the memory that a buffer takes with its two events, while lists grow.
const bufferBytes = 512

func (s *mini) addLifetime(b arena.Buffer) {
	at := len(s.buffers)
	b.ID = strings.Clone(b.ID) // does not keep the whole line
	s.buffers = append(s.buffers, b)
	end := miniEnd
	if b.Lower == b.Upper {
		end = miniEndAtOnce
	}
	s.events = append(s.events, miniEvent{b.Lower, miniBegin, at}, miniEvent{b.Upper, end, at})
}

// sortEvents sorts the events. Steps count from 0, or from the first one if that is negative.
func (s *mini) sortEvents() error {
	slices.SortStableFunc(s.events, func(a, b miniEvent) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.phase, b.phase))
	})
	if len(s.events) == 0 {
		return nil
	}
	s.origin = min(s.events[0].time, 0)
	if last := s.events[len(s.events)-1].time; uint64(last)-uint64(s.origin) > stepsMax {
		return fmt.Errorf("steps from %d to %d: want at most %d of them", s.origin, last, stepsMax)
	}
	return nil
}

func (s *mini) timeOfStep(step int64) uint64 { return start + uint64(step-s.origin)*stepNS }

// Header implements Source.
func (s *mini) Header() recording.Header { return importedHeader(s.facts) }

// Footer implements Source.
func (s *mini) Footer() recording.Footer {
	footer := recording.Footer{EndedNS: start, Message: "imported from a problem of MiniMalloc", Cut: s.table.cut}
	if n := len(s.events); n > 0 {
		footer.EndedNS = s.timeOfStep(s.events[n-1].time)
	}
	return footer
}

// Remarks implements Source.
func (s *mini) Remarks() []string { return s.table.remarks() }

// Next implements Source.
func (s *mini) Next(r *wire.Record) error {
	if len(s.queue) == 0 {
		if s.next == len(s.events) {
			return io.EOF
		}
		e := s.events[s.next]
		s.next++
		b, number, at := &s.buffers[e.buffer], uint64(e.buffer+1), s.timeOfStep(e.time)
		if e.phase == miniBegin {
			s.queue = append(s.queue, nameRecord(at, uint32(number), "buffer "+b.ID), createRecord(at, number, b.Size, uint32(number), 1))
		} else {
			s.queue = append(s.queue, releaseRecord(at, number, b.Size, uint32(number), 1))
		}
	}
	*r, s.queue = s.queue[0], s.queue[1:]
	return nil
}
