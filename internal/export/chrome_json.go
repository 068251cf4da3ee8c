package export

import (
	"bytes"
	"io"
	"slices"
	"strconv"
)

const (
	// linesFlush is how many bytes are gathered before they are written.
	linesFlush = 64 << 10
	// pageBytes is what the kernel writes at once, at least: a kill may come between two pages of one write.
	pageBytes = 4 << 10
)

// lines writes the events of a trace, one per line, in the array form: it can be read up to wherever it was cut off.
// An event is the calls from event to close; its keys are appended in between. Errors are kept for finish.
type lines struct {
	w      io.Writer
	b      []byte
	start  int // of the event that is being written, in b
	events uint64
	err    error

	paged bool // no event reaches over the end of a page, unless it is longer than one
	at    int  // where in a page the next write begins
}

// place is where an event shows: `,"pid":7,"tid":8`.
type place string

func placeOf(pid, tid uint64) place {
	return place(`,"pid":` + strconv.FormatUint(pid, 10) + `,"tid":` + strconv.FormatUint(tid, 10))
}

// event begins an event: head is `{"ph":"X","name":` or the like. name is JSON already; ns are relative to the start.
func (l *lines) event(head, name string, at place, ns uint64) {
	l.begin(head, name, at)
	l.micros(`,"ts":`, ns)
}

// begin begins an event without a time.
func (l *lines) begin(head, name string, at place) {
	separator := ",\n"
	if l.events == 0 {
		separator = "[\n"
	}
	l.start = len(l.b)
	l.events++
	l.b = append(l.b, separator...)
	l.b = append(l.b, head...)
	l.b = append(l.b, name...)
	l.b = append(l.b, at...)
}

// args begins the arguments; from there on keys belong to them. A key is written with what separates it.
func (l *lines) args() { l.b = append(l.b, `,"args":{`...) }

// close ends an event with its arguments.
func (l *lines) close() {
	l.b = append(l.b, "}}"...)
	if l.paged {
		l.turn()
	}
	if len(l.b) >= linesFlush {
		l.flush()
	}
}

// turn moves the last event to the next page when it does not fit: spaces fill what is left.
func (l *lines) turn() {
	from := (l.at + l.start) % pageBytes
	if from > 0 && from+len(l.b)-l.start > pageBytes {
		l.b = slices.Insert(l.b, l.start, blank[from:]...)
	}
}

// blank is an empty page.
var blank = bytes.Repeat([]byte{' '}, pageBytes)

// finish ends the trace.
func (l *lines) finish() error {
	l.b = append(l.b, "\n]\n"...)
	l.flush()
	return l.err
}

// flush writes what was gathered: whole events.
func (l *lines) flush() {
	if l.err == nil && len(l.b) > 0 {
		_, l.err = l.w.Write(l.b)
	}
	l.at = (l.at + len(l.b)) % pageBytes
	l.b, l.start = l.b[:0], 0
}

func (l *lines) raw(text string) { l.b = append(l.b, text...) }

func (l *lines) number(key string, n uint64) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendUint(l.b, n, 10)
}

func (l *lines) status(code int32) {
	l.raw(`,"status":`)
	l.b = strconv.AppendInt(l.b, int64(code), 10)
}

// hex appends a number as Perfetto takes ids: in base 16, as a string.
func (l *lines) hex(key string, n uint64) {
	l.b = append(l.b, key...)
	l.b = append(l.b, `"0x`...)
	l.b = strconv.AppendUint(l.b, n, 16)
	l.b = append(l.b, '"')
}

// id appends the number of an async track within its process.
func (l *lines) id(n uint64) {
	l.hex(`,"id2":{"local":`, n)
	l.b = append(l.b, '}')
}

// word appends a string that needs no escapes.
func (l *lines) word(key, text string) {
	l.b = append(l.b, key...)
	l.b = append(l.b, '"')
	l.b = append(l.b, text...)
	l.b = append(l.b, '"')
}

func (l *lines) truth(key string, value bool) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendBool(l.b, value)
}

// micros appends ns as microseconds with three decimals.
func (l *lines) micros(key string, ns uint64) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendUint(l.b, ns/1000, 10)
	rest := ns % 1000
	l.b = append(l.b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// hundredths appends n/100 with two decimals.
func (l *lines) hundredths(key string, n uint64) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendUint(l.b, n/100, 10)
	l.b = append(l.b, '.', byte('0'+n/10%10), byte('0'+n%10))
}

// parts returns the hundredths of a percent that part is of whole, 0 of nothing.
func parts(part, whole uint64) uint64 {
	if whole == 0 {
		return 0
	}
	return uint64(10000*(float64(part)/float64(whole)) + 0.5)
}
