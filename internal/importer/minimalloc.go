package importer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// miniColumns are the columns that have a meaning here, with the names that MiniMalloc knows them by (google/minimalloc,
// converter.cc). Where a solver put a buffer, its alignment and its gaps are not asked for.
var miniColumns = [][]string{{"id", "buffer", "buffer_id"}, {"lower", "begin", "start"}, {"upper", "end"}, {"size"}}

// stepNS is what a step of time is taken for.
const stepNS = 1_000_000

// stepsMax bounds how far apart steps may be.
const stepsMax = 1 << 43

func looksMiniMalloc(line string) bool {
	fields, _ := split(nil, line)
	_, missing := findMiniColumns(fields)
	return missing == ""
}

// findMiniColumns returns where the columns are, and the name of one that is missing.
func findMiniColumns(fields []string) (at [4]int, missing string) {
	for i, names := range miniColumns {
		at[i] = slices.IndexFunc(fields, func(f string) bool { return slices.Contains(names, strings.ToLower(f)) })
		if at[i] < 0 {
			return at, names[0]
		}
	}
	return at, ""
}

// miniBuffer is a buffer of the problem: it is there from lower on, and no more at upper.
type miniBuffer struct {
	id           string
	lower, upper int64
	size         uint64
}

// miniEvent is the beginning or the end of a buffer.
type miniEvent struct {
	time   int64
	phase  uint8 // within a step memory is given back, then taken, then that of buffers that last no time is given back
	buffer int
}

const (
	miniEnd uint8 = iota
	miniBegin
	miniEndAtOnce
)

// mini gives the records of a problem in the order of time: files are in any order, so all of it is in memory.
type mini struct {
	facts   Facts
	buffers []miniBuffer
	events  []miniEvent
	origin  int64
	next    int
	queue   []wire.Record
}

func openMiniMalloc(r io.Reader, facts Facts) (Source, error) {
	t := newTable(r)
	fields, err := t.next()
	if err == io.EOF { //nolint:errorlint // the table returns it as it is
		return nil, fmt.Errorf("nothing is there: want id,lower,upper,size")
	}
	if err != nil {
		return nil, err
	}
	at, missing := findMiniColumns(fields)
	if missing != "" {
		return nil, t.wrong("no column %s: want id,lower,upper,size", missing)
	}
	s := &mini{facts: facts, queue: []wire.Record{introduce(facts)}}
	for {
		fields, err := t.next()
		if err == io.EOF { //nolint:errorlint // the table returns it as it is
			break
		}
		if err != nil {
			return nil, err
		}
		b, err := readMiniBuffer(t, fields, at)
		if err != nil {
			return nil, err
		}
		s.add(b)
	}
	return s, s.order()
}

func readMiniBuffer(t *table, fields []string, at [4]int) (b miniBuffer, err error) {
	if most := slices.Max(at[:]); most >= len(fields) {
		return b, t.wrong("%d columns: want %d", len(fields), most+1)
	}
	b.id = fields[at[0]]
	if b.lower, err = strconv.ParseInt(fields[at[1]], 10, 64); err != nil {
		return b, t.wrong("lower %.40q: want a whole number", fields[at[1]])
	}
	if b.upper, err = strconv.ParseInt(fields[at[2]], 10, 64); err != nil {
		return b, t.wrong("upper %.40q: want a whole number", fields[at[2]])
	}
	if b.size, err = strconv.ParseUint(fields[at[3]], 10, 64); err != nil {
		return b, t.wrong("size %.40q: want bytes", fields[at[3]])
	}
	if b.upper < b.lower {
		return b, t.wrong("upper %d is before lower %d", b.upper, b.lower)
	}
	return b, nil
}

func (s *mini) add(b miniBuffer) {
	at := len(s.buffers)
	s.buffers = append(s.buffers, b)
	end := miniEnd
	if b.lower == b.upper {
		end = miniEndAtOnce
	}
	s.events = append(s.events, miniEvent{b.lower, miniBegin, at}, miniEvent{b.upper, end, at})
}

// order puts the events in order. Steps count from 0, or from the first where that is before.
func (s *mini) order() error {
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

func (s *mini) time(step int64) uint64 { return start + uint64(step-s.origin)*stepNS }

// Header implements Source.
func (s *mini) Header() trace.Header { return header(s.facts) }

// Footer implements Source.
func (s *mini) Footer() trace.Footer {
	footer := trace.Footer{EndedNS: start, Message: "imported from a problem of MiniMalloc"}
	if n := len(s.events); n > 0 {
		footer.EndedNS = s.time(s.events[n-1].time)
	}
	return footer
}

// Next implements Source.
func (s *mini) Next(r *wire.Record) error {
	if len(s.queue) == 0 {
		if s.next == len(s.events) {
			return io.EOF
		}
		e := s.events[s.next]
		s.next++
		b, number, at := &s.buffers[e.buffer], uint64(e.buffer+1), s.time(e.time)
		if e.phase == miniBegin {
			s.queue = append(s.queue, name(at, uint32(number), "buffer "+b.id), create(at, number, b.size, uint32(number), 1))
		} else {
			s.queue = append(s.queue, release(at, number, b.size, uint32(number), 1))
		}
	}
	*r, s.queue = s.queue[0], s.queue[1:]
	return nil
}
