package importer

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// rmmColumns are the columns of RMM's log, in their usual order (rapidsai/rmm,
// logging_resource_adaptor.hpp).
var rmmColumns = []string{"thread", "time", "action", "pointer", "size", "stream"}

// rmmWants describes a line, for errors.
const rmmWants = "want Thread,Time,Action,Pointer,Size,Stream"

type rmmAction uint8

const (
	rmmAllocate rmmAction = 1 + iota
	rmmFailure
	rmmFree
)

var rmmActions = map[string]rmmAction{
	"allocate": rmmAllocate, "allocate failure": rmmFailure, "free": rmmFree, "deallocate": rmmFree,
}

// liveBytes is the memory that a buffer, thread or stream takes, besides its name.
const liveBytes = 128

// rmm reads RMM's log. Memory grows with live buffers, threads and streams.
type rmm struct {
	table   *table
	facts   Facts
	columns []int // positions of rmmColumns in a line
	width   int   // number of columns of a complete line
	clock   rmmClock
	last    uint64
	object  uint64
	live    map[uint64]rmmBuffer // by pointer
	threads map[string]uint32
	streams map[string]uint32
	queue   []wire.Record // not returned yet
	lost    tally         // buffers whose frees the log lacks
	unknown tally         // frees of buffers from before the log
}

type rmmBuffer struct {
	object, size uint64
	tag          uint32
}

func openRMM(r io.Reader, facts Facts) (Source, error) {
	return &rmm{
		table: newTable(r, "RMM's log", rmmWants, facts), facts: facts, columns: []int{0, 1, 2, 3, 4, 5}, width: len(rmmColumns), last: start,
		live: map[uint64]rmmBuffer{}, threads: map[string]uint32{}, streams: map[string]uint32{}, queue: []wire.Record{processRecord(facts)},
	}, nil
}

// readColumnNames takes the names of the columns.
func (s *rmm) readColumnNames(fields []string) error {
	columns := make([]int, len(rmmColumns))
	for i, name := range rmmColumns {
		columns[i] = slices.IndexFunc(fields, func(f string) bool { return strings.EqualFold(f, name) })
		if columns[i] < 0 && name != "stream" && name != "thread" {
			return fmt.Errorf("no column %s: %s", name, rmmWants)
		}
	}
	s.columns, s.width = columns, len(fields)
	s.table.taken-- // it has no memory
	return nil
}

// Header implements Source.
func (s *rmm) Header() recording.Header { return importedHeader(s.facts) }

// Footer implements Source.
func (s *rmm) Footer() recording.Footer {
	return recording.Footer{EndedNS: s.last, Message: "imported from RMM's log", Cut: s.table.cut}
}

// Remarks implements Source.
func (s *rmm) Remarks() []string {
	list := s.table.remarks()
	if t := s.lost; t.count > 0 {
		list = append(list, fmt.Sprintf("%s added: allocated again before, first in line %d", units.Count(t.count, "free"), t.first))
	}
	if t := s.unknown; t.count > 0 {
		list = append(list, fmt.Sprintf("%s of what the log does not allocate, first in line %d", units.Count(t.count, "free"), t.first))
	}
	return list
}

// Next implements Source.
func (s *rmm) Next(r *wire.Record) error {
	for len(s.queue) == 0 {
		fields, err := s.table.nextLine()
		if err != nil {
			return err
		}
		if err := s.readLine(fields); err != nil {
			s.table.skipAndNoteError(err)
		}
	}
	*r, s.queue = s.queue[0], s.queue[1:]
	return nil
}

// fieldOfColumn returns a column of a line, empty when it has none.
func (s *rmm) fieldOfColumn(fields []string, column int) string {
	if at := s.columns[column]; at >= 0 && at < len(fields) {
		return fields[at]
	}
	return ""
}

// readLine takes a line. With an error it has changed nothing.
func (s *rmm) readLine(fields []string) error {
	if slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, "action") }) {
		return s.readColumnNames(fields)
	}
	action := rmmActions[strings.ToLower(s.fieldOfColumn(fields, 2))]
	if action == 0 {
		return fmt.Errorf("action %.40q: want allocate, allocate failure or free", s.fieldOfColumn(fields, 2))
	}
	size, err := strconv.ParseUint(s.fieldOfColumn(fields, 4), 0, 64)
	if err != nil {
		return fmt.Errorf("size %.40q: want bytes", s.fieldOfColumn(fields, 4))
	}
	pointer, err := parsePointerText(s.fieldOfColumn(fields, 3))
	if err != nil {
		return fmt.Errorf("pointer %.40q: want a hexadecimal number", s.fieldOfColumn(fields, 3))
	}
	if s.table.open && len(fields) < s.width {
		return fmt.Errorf("%d columns: want %d", len(fields), s.width) // the size may be cut off, too
	}
	since, ok := s.clock.nsSinceFirst(s.fieldOfColumn(fields, 1))
	if !ok {
		return fmt.Errorf("time %.40q: want HH:MM:SS.microseconds, or seconds", s.fieldOfColumn(fields, 1))
	}
	at := uint64(max(start+since, 0))
	s.last = max(s.last, at)
	s.emitAction(action, at, pointer, size, s.threadNumber(s.fieldOfColumn(fields, 0)), s.tagOfStream(at, s.fieldOfColumn(fields, 5)))
	return nil
}

func (s *rmm) emitAction(action rmmAction, at, pointer, size uint64, thread, tag uint32) {
	was, known := s.live[pointer]
	if action != rmmFailure && known { // the log lacks the free of the former buffer
		if action == rmmAllocate {
			s.lost.noteLine(s.table.number)
		}
		s.queue = append(s.queue, releaseRecord(at, was.object, was.size, was.tag, thread))
		delete(s.live, pointer)
		s.table.facts.keep.Release(liveBytes)
	}
	switch {
	case action == rmmFailure:
		s.queue = append(s.queue, failedCreateRecord(at, size, tag, thread, allocationFailure))
	case pointer == 0: // a buffer of 0 bytes
	case action == rmmAllocate && s.table.chargeLineIfRoom(liveBytes):
		s.object++
		s.live[pointer] = rmmBuffer{s.object, size, tag}
		s.queue = append(s.queue, createRecord(at, s.object, size, tag, thread))
	case action == rmmAllocate:
	case !known: // from before the log: the model counts it as unknown
		s.unknown.noteLine(s.table.number)
		s.queue = append(s.queue, releaseRecord(at, 0, size, tag, thread))
	}
}

// threadNumber numbers the threads from 1, because the log's ids may have too many bits.
func (s *rmm) threadNumber(word string) uint32 {
	if s.threads[word] == 0 && s.table.chargeLineIfRoom(liveBytes+len(word)) {
		s.threads[strings.Clone(word)] = uint32(len(s.threads) + 1)
	}
	return s.threads[word]
}

// tagOfStream numbers the streams from 1. They stand for call sites, which the log lacks.
func (s *rmm) tagOfStream(at uint64, stream string) uint32 {
	if stream == "" {
		return 0
	}
	if s.streams[stream] == 0 && s.table.chargeLineIfRoom(liveBytes+len(stream)) {
		s.streams[strings.Clone(stream)] = uint32(len(s.streams) + 1)
		s.queue = append(s.queue, nameRecord(at, s.streams[stream], "stream "+stream))
	}
	return s.streams[stream]
}

// parsePointerText reads a pointer as printf's %p or spdlog writes it.
func parsePointerText(text string) (uint64, error) {
	text = strings.ToLower(text)
	if text == "(nil)" || text == "nullptr" {
		return 0, nil
	}
	return strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 64)
}

// rmmClock reads times of day, also across midnight, and seconds since any time.
type rmmClock struct {
	begun       bool
	first, last int64 // ns
	days        int64
}

const day = int64(24 * time.Hour)

// secondsMax bounds times, so that sums do not overflow.
const secondsMax = 1 << 33

// nsSinceFirst returns the ns from the first time to another one.
func (c *rmmClock) nsSinceFirst(text string) (int64, bool) {
	ns, ofDay, ok := parseTime(text)
	if !ok {
		return 0, false
	}
	if ofDay {
		ns += c.days
		if c.begun && ns < c.last-day/2 { // a slightly earlier time is another thread's, not the next day's
			ns += day
			c.days += day
		}
	}
	if !c.begun {
		c.begun, c.first = true, ns
	}
	c.last = ns
	return ns - c.first, true
}

// parseTime reads "12:34:56.123456", "12:34:56:123456" and "1634567890.123456" as ns.
func parseTime(text string) (ns int64, ofDay, ok bool) {
	if at := strings.LastIndexByte(text, ' '); at >= 0 { // a date
		text = text[at+1:]
	}
	parts := strings.Split(text, ":")
	var fraction string
	switch len(parts) {
	case 4:
		parts, fraction = parts[:3], parts[3]
		if len(fraction) > 6 || fraction == "" {
			return 0, false, false
		}
		fraction = strings.Repeat("0", 6-len(fraction)) + fraction
	case 1, 3:
		last := len(parts) - 1
		parts[last], fraction, _ = strings.Cut(parts[last], ".")
	default:
		return 0, false, false
	}
	for i, part := range parts {
		value, err := strconv.ParseUint(part, 10, 64)
		if err != nil || value >= secondsMax || len(parts) > 1 && value >= [...]uint64{24, 60, 61}[i] {
			return 0, false, false
		}
		ns = ns*60 + int64(value)
	}
	nano, err := strconv.ParseUint((fraction + "000000000")[:9], 10, 64)
	return ns*int64(time.Second) + int64(nano), len(parts) > 1, err == nil
}
