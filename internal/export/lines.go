package export

import (
	"io"
	"strconv"
)

// linesFlush is how many bytes are gathered before they are written.
const linesFlush = 64 << 10

// lines writes the events of a trace, one per line, in the array form: it can be read up to wherever it was cut off.
// An event is the calls from event to close; its keys are appended in between. Errors are kept for finish.
type lines struct {
	w      io.Writer
	b      []byte
	events uint64
	err    error
}

// place is where an event shows.
type place struct{ pid, tid uint64 }

// event begins an event. name is JSON already; ns are relative to the start.
func (l *lines) event(phase, category, name string, at place, ns uint64) {
	separator := ",\n{"
	if l.events == 0 {
		separator = "[\n{"
	}
	l.b = append(l.b, separator...)
	l.events++
	l.b = append(l.b, `"ph":"`...)
	l.b = append(l.b, phase...)
	if category != "" {
		l.b = append(l.b, `","cat":"`...)
		l.b = append(l.b, category...)
	}
	l.b = append(l.b, `","name":`...)
	l.b = append(l.b, name...)
	l.number(`,"pid":`, at.pid)
	l.number(`,"tid":`, at.tid)
	if phase != "M" {
		l.micros(`,"ts":`, ns)
	}
}

// args begins the arguments; from there on keys belong to them. A key is written with what separates it.
func (l *lines) args() { l.b = append(l.b, `,"args":{`...) }

// close ends an event with its arguments.
func (l *lines) close() {
	l.b = append(l.b, "}}"...)
	if len(l.b) >= linesFlush {
		l.flush()
	}
}

// finish ends the trace.
func (l *lines) finish() error {
	l.b = append(l.b, "\n]\n"...)
	l.flush()
	return l.err
}

func (l *lines) flush() {
	if l.err == nil {
		_, l.err = l.w.Write(l.b)
	}
	l.b = l.b[:0]
}

func (l *lines) raw(text string) { l.b = append(l.b, text...) }

func (l *lines) number(key string, n uint64) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendUint(l.b, n, 10)
}

func (l *lines) signed(key string, n int64) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendInt(l.b, n, 10)
}

// id appends the number of an async track within its process. Perfetto takes ids in base 16.
func (l *lines) id(n uint64) {
	l.b = append(l.b, `,"id2":{"local":"0x`...)
	l.b = strconv.AppendUint(l.b, n, 16)
	l.b = append(l.b, '"')
}

// word appends a string that needs no escapes.
func (l *lines) word(key, text string) {
	l.b = append(l.b, key...)
	l.b = append(l.b, '"')
	l.b = append(l.b, text...)
	l.b = append(l.b, '"')
}

// micros appends ns as microseconds with three decimals.
func (l *lines) micros(key string, ns uint64) {
	l.b = append(l.b, key...)
	l.b = strconv.AppendUint(l.b, ns/1000, 10)
	rest := ns % 1000
	l.b = append(l.b, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}
