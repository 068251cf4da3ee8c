package ndjson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// LineMax is the longest line that is read, in bytes. A header may have a long command line.
const LineMax = 16 << 20

// Reader reads the lines. One goroutine uses it. Errors name the line, and what was expected there.
type Reader struct {
	lines  *bufio.Scanner
	number int
	header recording.Header
	footer *recording.Footer
	last   uint64 // latest time
	cut    bool   // the last line is not whole
}

// NewReader reads the first line.
func NewReader(r io.Reader) (*Reader, error) {
	n := &Reader{lines: bufio.NewScanner(r)}
	n.lines.Buffer(nil, LineMax)
	text, err := n.nextLine()
	if errors.Is(err, io.EOF) {
		return nil, errors.New(`nothing is there: want a first line with "schema" and "header"`)
	}
	if err != nil {
		return nil, err
	}
	var first struct {
		Schema int               `json:"schema"`
		Header *recording.Header `json:"header"`
	}
	if err := json.Unmarshal(text, &first); err != nil {
		return nil, n.lineError(explainJSONError(err))
	}
	switch {
	case first.Header == nil:
		return nil, n.lineError(`want "schema" and "header" first`)
	case first.Schema != Schema:
		return nil, n.lineError(fmt.Sprintf("schema %d: want %d", first.Schema, Schema))
	}
	n.header, n.last = *first.Header, first.Header.ClockNS
	return n, nil
}

// Header returns what was recorded.
func (n *Reader) Header() recording.Header { return n.header }

// Footer returns how the recording ended. Without a footer that is unknown. It is complete once Next has returned EOF.
func (n *Reader) Footer() recording.Footer {
	if n.footer == nil {
		return recording.Footer{Status: -1, EndedNS: n.last, Message: "imported lines without a footer", Cut: true}
	}
	return *n.footer
}

// Remarks says what is missing. It is complete once Next has returned EOF.
func (n *Reader) Remarks() []string {
	if n.cut {
		return []string{fmt.Sprintf("cut off in line %d", n.number)}
	}
	return nil
}

// nextLine returns the next line that is not blank.
func (n *Reader) nextLine() ([]byte, error) {
	for n.lines.Scan() {
		n.number++
		if text := bytes.TrimSpace(n.lines.Bytes()); len(text) > 0 {
			return text, nil
		}
	}
	return nil, n.endOfFileError()
}

// endOfFileError returns io.EOF, or why the file cannot be read to its end. What is there of a packed one is read.
func (n *Reader) endOfFileError() error {
	err := n.lines.Err()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		n.cut = true
	case errors.Is(err, bufio.ErrTooLong):
		n.number++
		return n.lineError(fmt.Sprintf("more than %d bytes: want a record per line", LineMax))
	case err != nil:
		return fmt.Errorf("read lines: %w", err)
	}
	return io.EOF
}

func (n *Reader) lineError(what string) error { return fmt.Errorf("line %d: %s", n.number, what) }

// explainJSONError says what is wrong with a line in our words.
func explainJSONError(err error) string {
	var value *json.UnmarshalTypeError
	if errors.As(err, &value) {
		return fmt.Sprintf("%s cannot be a %s: see docs/EXPORTS.md", value.Field, value.Value)
	}
	return "no JSON object: " + err.Error()
}

// record is a line that is neither the first nor the last.
type record struct {
	Footer   *Footer         `json:"footer"`
	Kind     json.RawMessage `json:"kind"`
	Time     uint64          `json:"time"`
	Process  uint32          `json:"process"`
	Thread   uint32          `json:"thread"`
	Duration uint32          `json:"duration"`
	Argument *uint32         `json:"argument"`
	Cost     uint32          `json:"cost"`
	Op       json.RawMessage `json:"op"`
	Outcome  json.RawMessage `json:"outcome"`
	Reason   json.RawMessage `json:"reason"`
	Flags    uint8           `json:"flags"`
	Scope    uint16          `json:"scope"`
	Access   uint16          `json:"access"`
	Status   int16           `json:"status"`
	Tag      uint32          `json:"tag"`
	Object   uint64          `json:"object"`
	Size     *uint64         `json:"size"`
	Granted  uint64          `json:"granted"`
	Offset   *uint64         `json:"offset"`
	Link     uint64          `json:"link"`
	payload
}

// Next reads the next record, io.EOF after the last.
func (n *Reader) Next(r *wire.Record) error {
	text, err := n.nextLine()
	if err != nil {
		return err
	}
	if n.footer != nil {
		return n.lineError("want nothing behind the footer")
	}
	var l record
	if err := json.Unmarshal(text, &l); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset == int64(len(text)) && text[0] == '{' && !n.lines.Scan() {
			n.cut = true
			return n.endOfFileError()
		}
		return n.lineError(explainJSONError(err))
	}
	if l.Footer != nil {
		f := l.Footer
		n.footer = &recording.Footer{Lost: f.Lost, EndedNS: f.EndedNS, Status: f.Status, Signal: f.Signal, Message: f.Message, Cut: f.Cut}
		return n.Next(r)
	}
	if err := l.fillRecord(r); err != nil {
		return n.lineError(err.Error())
	}
	if n.header.Version > 0 { // else the lines are hand-written, in the present version
		recording.UpgradeRecord(n.header.Version, r)
	}
	n.last = max(n.last, r.Time)
	return nil
}

func (l *record) fillRecord(r *wire.Record) error {
	if l.Kind == nil {
		return errors.New(`want a "kind"`)
	}
	kind, err := parseWordOrNumber("kind", l.Kind, spoken().kinds, 1<<16-1)
	if err != nil {
		return err
	}
	*r = wire.Record{Process: l.Process, Thread: l.Thread, Event: wire.Event{
		Time: l.Time, Duration: l.Duration, Cost: l.Cost, Kind: wire.Kind(kind), Flags: l.Flags, Scope: l.Scope,
		Access: l.Access, Status: l.Status, Tag: l.Tag, Object: l.Object, Granted: l.Granted, Link: l.Link,
	}}
	op, err := parseWordOrNumber("op", l.Op, spoken().ops[r.Kind], 1<<8-1)
	if err != nil {
		return err
	}
	outcome, err := parseWordOrNumber("outcome", l.Outcome, spoken().outcomes, 1<<8-1)
	if err != nil {
		return err
	}
	reason, err := parseWordOrNumber("reason", l.Reason, spoken().reasons[r.Kind], 1<<8-1)
	if err != nil {
		return err
	}
	r.Op, r.Outcome, r.Reason = uint8(op), wire.Outcome(outcome), uint8(reason)
	if r.Payload, err = l.readPayload(r.Kind); err != nil {
		return err
	}
	switch {
	case l.Size != nil:
		r.Size = *l.Size
	case r.Kind.HasPayload():
		r.Size = uint64(len(r.Payload))
	}
	return l.readUseFields(r)
}

// readUseFields reads what only uses have, and sub-buffers.
func (l *record) readUseFields(r *wire.Record) error {
	if l.Argument != nil {
		if r.Kind != wire.KindUse || *l.Argument == math.MaxUint32 {
			return fmt.Errorf("a record of kind %s has no argument %d", r.Kind, *l.Argument)
		}
		r.Duration = *l.Argument + 1
	}
	if l.Offset != nil {
		switch {
		case hasPlaceInObject(r):
			r.Granted = *l.Offset
		case r.Kind == wire.KindCreate && wire.Memory(r.Op) == wire.MemorySubBuffer && *l.Offset < math.MaxUint64:
			r.Granted = *l.Offset + 1
		default:
			return fmt.Errorf("a record of kind %s, with this op, has no offset", r.Kind)
		}
	}
	return nil
}

// parseWordOrNumber reads a word of an enum, or a number up to most.
func parseWordOrNumber(name string, text json.RawMessage, w *words, most uint64) (uint64, error) {
	if len(text) == 0 {
		return 0, nil
	}
	var v uint64
	if json.Unmarshal(text, &v) == nil && v <= most {
		return v, nil
	}
	var word string
	if json.Unmarshal(text, &word) == nil && w != nil {
		if v, ok := w.of[word]; ok {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%s %.40s is unknown: want one of docs/EXPORTS.md, or a number up to %d", name, text, most)
}
