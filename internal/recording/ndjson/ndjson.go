// Package ndjson writes recordings as lines of JSON, and reads these: a header, a line per record, a footer. Nothing is
// lost either way. docs/EXPORTS.md describes the lines.
package ndjson

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Schema is the version of the lines. What is added to them does not raise it.
const Schema = 1

// Writer writes the lines: Header, then Append for each record, then Footer. One goroutine uses it. After an error it
// writes nothing more, and returns that error.
type Writer struct {
	to     *bufio.Writer
	line   []byte
	events uint64
}

// NewWriter returns a writer that writes to another one.
func NewWriter(w io.Writer) *Writer { return &Writer{to: bufio.NewWriterSize(w, 64<<10)} }

// firstLine and lastLine are the lines around the records.
type (
	firstLine struct {
		Schema int              `json:"schema"`
		Header recording.Header `json:"header"`
	}
	lastLine struct {
		Footer Footer `json:"footer"`
	}
)

// Footer says how a recording ended.
type Footer struct {
	Events  uint64 `json:"events"`
	Lost    uint64 `json:"lost"`
	EndedNS uint64 `json:"ended_ns"`
	Status  int    `json:"status"`
	Signal  int    `json:"signal"`
	Message string `json:"message,omitempty"`
	Cut     bool   `json:"cut,omitempty"`
}

// WriteHeader writes the first line. The version is that of records as they are written here.
func (w *Writer) WriteHeader(h recording.Header) error {
	h.Version = recording.Version
	return w.writeJSON(firstLine{Schema, h})
}

// WriteFooter writes the last line, and everything to the writer below.
func (w *Writer) WriteFooter(f recording.Footer) error {
	line := lastLine{Footer{w.events, f.Lost, f.EndedNS, f.Status, f.Signal, f.Message, f.Cut}}
	if err := w.writeJSON(line); err != nil {
		return err
	}
	if err := w.to.Flush(); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}

func (w *Writer) writeJSON(line any) error {
	encoder := json.NewEncoder(w.to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}

// Append writes a record.
func (w *Writer) Append(r *wire.Record) error {
	w.events++
	b := append(w.line[:0], `{"time":`...)
	b = strconv.AppendUint(b, r.Time, 10)
	b = appendWord(b, "kind", spoken().kinds, uint64(r.Kind), true)
	b = appendNumber(b, "process", uint64(r.Process))
	b = appendNumber(b, "thread", uint64(r.Thread))
	if r.Kind == wire.KindUse && r.Duration > 0 {
		b = strconv.AppendUint(appendKey(b, "argument"), uint64(r.Duration)-1, 10)
	} else {
		b = appendNumber(b, "duration", uint64(r.Duration))
	}
	b = appendNumber(b, "cost", uint64(r.Cost))
	b = appendWord(b, "op", spoken().ops[r.Kind], uint64(r.Op), false)
	b = appendWord(b, "outcome", spoken().outcomes, uint64(r.Outcome), false)
	b = appendWord(b, "reason", spoken().reasons[r.Kind], uint64(r.Reason), false)
	b = appendNumber(b, "flags", uint64(r.Flags))
	if r.Kind == wire.KindCreate && r.AsCreate().Arm() { // for people: a reader has the flag
		b = append(b, `,"arm":1`...)
	}
	b = appendNumber(b, "scope", uint64(r.Scope))
	b = appendNumber(b, "access", uint64(r.Access))
	if r.Status != 0 {
		b = strconv.AppendInt(append(b, `,"status":`...), int64(r.Status), 10)
	}
	b = appendNumber(b, "tag", uint64(r.Tag))
	b = appendNumber(b, "object", r.Object)
	switch {
	case !r.Kind.HasPayload():
		b = appendNumber(b, "size", r.Size)
	case r.Size != uint64(len(r.Payload)):
		b = strconv.AppendUint(append(b, `,"size":`...), r.Size, 10)
	}
	if origin, known := r.OffsetInParent(); known {
		b = strconv.AppendUint(appendKey(b, "offset"), origin, 10)
	} else if hasPlaceInObject(r) {
		b = appendNumber(b, "offset", r.Granted)
	} else {
		b = appendNumber(b, "granted", r.Granted)
	}
	b = appendNumber(b, "link", r.Link)
	if r.Kind.HasPayload() && len(r.Payload) > 0 {
		b = appendPayload(b, r)
	}
	w.line = append(b, "}\n"...)
	if _, err := w.to.Write(w.line); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}

// hasPlaceInObject reports whether a record has the place in an object where a command works.
func hasPlaceInObject(r *wire.Record) bool {
	op := wire.Command(r.Op)
	return r.Kind == wire.KindUse && op != wire.CommandKernel && op != wire.CommandNative
}

func appendNumber(b []byte, name string, v uint64) []byte {
	if v == 0 {
		return b
	}
	return strconv.AppendUint(appendKey(b, name), v, 10)
}

func appendKey(b []byte, name string) []byte {
	b = append(append(b, `,"`...), name...)
	return append(b, `":`...)
}

// appendWord writes a value of an enum, as a number when it has no word.
func appendWord(b []byte, name string, w *words, v uint64, always bool) []byte {
	if v == 0 && !always {
		return b
	}
	b = appendKey(b, name)
	if w != nil {
		if text, ok := w.to(v); ok {
			return append(append(append(b, '"'), text...), '"')
		}
	}
	return strconv.AppendUint(b, v, 10)
}
