// Package importer converts logs of other tools about memory to the records of a recording. It does no I/O of its own and reads
// no clock.
package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/foreign"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/ndjson"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Source gives the records of a foreign file. One goroutine uses it.
type Source interface {
	Header() recording.Header
	// Next gives the next record, io.EOF after the last. Its payload is valid until the following call. Errors name the
	// line that is wrong.
	Next(*wire.Record) error
	// Footer is complete once Next has returned EOF.
	Footer() recording.Footer
	// Remarks name the parts of the file that were skipped or corrected. They are complete once Next has returned EOF.
	Remarks() []string
}

// Facts are details about a file that it does not contain.
type Facts struct {
	Name     string    // of the file; the program's name if the format has none
	Modified time.Time // time of the last change

	chosen bool           // the user named the format
	looks  string         // what the file seems to be instead
	keep   *budget.Budget // bounds the memory for data from the file
}

// Format is a format that can be imported.
type Format struct {
	Name, Help string
	open       func(io.Reader, Facts) (Source, error)
}

// Formats are all formats that can be imported.
var Formats = []Format{
	{"ndjson", "lines of JSON, as export writes them", openNDJSON},
	{"rmm", "the CSV log of the RAPIDS Memory Manager", openRMM},
	{"clintercept", "the call log of the Intercept Layer for OpenCL Applications: its buffers", openIntercept},
	{"minimalloc", "CSV of MiniMalloc, a step of time taken for 1 ms", openMiniMalloc},
}

// FormatNames returns the names of the formats.
func FormatNames() []string {
	names := make([]string, len(Formats))
	for i := range Formats {
		names[i] = Formats[i].Name
	}
	return names
}

const (
	// lineMax is the longest line of a CSV file.
	lineMax = 64 << 10
	// start is the time at which imported runs begin, in ns: time 0 would mean unknown.
	start = 1_000_000_000
)

// OpenLog reads a file of a format; with an empty name it detects the format. It unpacks gzip.
func OpenLog(format string, r io.Reader, facts Facts) (Source, error) {
	facts.keep = budget.New(budget.Session).NewPart(keepLeast)
	packed := &counter{in: r, keep: facts.keep}
	in := bufio.NewReaderSize(packed, lineMax)
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("unpack: %w", err)
		}
		in = bufio.NewReaderSize(&unpacker{in: unpacked, packed: packed}, lineMax)
	}
	head, err := in.Peek(lineMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read: %w", err)
	}
	if bytes.HasPrefix(head, []byte("GMTREC\r\n")) {
		return nil, errors.New("this is a recording already")
	}
	if len(bytes.Trim(head, "\ufeff \t\r\n")) == 0 && err != nil && format == "" {
		return nil, errors.New("nothing is there: the file has no text")
	}
	kind := foreign.KindOfFile(bytes.NewReader(head))
	facts.chosen = format != ""
	format = cmp.Or(format, kind.ImportFormat())
	if format == "" || format != kind.ImportFormat() {
		facts.looks = kind.String()
	}
	for _, f := range Formats {
		if f.Name == format {
			return f.open(in, facts)
		}
	}
	what := "this looks like none of " + strings.Join(FormatNames(), ", ")
	if facts.looks != "" {
		return nil, fmt.Errorf("%s: it is %s", what, facts.looks)
	}
	return nil, errors.New(what + ": name its format with --format")
}

// Bounds on memory and on unpacked bytes: a small file gets little.
const (
	keepLeast   = 48 << 20
	keepShare   = 64 // for each byte of the file
	unpackLeast = 64 << 20
	unpackShare = 64 // for each byte of the file
)

// counter counts the bytes of a file.
type counter struct {
	in   io.Reader
	keep *budget.Budget
	read int64
}

// Read implements io.Reader.
func (c *counter) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	c.read += int64(n)
	c.keep.GrowBy(keepShare * int64(n))
	return n, err
}

var errUnpacks = fmt.Errorf("it unpacks to more than %d times its size", unpackShare)

// unpacker ends a file that unpacks to too many bytes for its size.
type unpacker struct {
	in     io.Reader
	packed *counter
	read   int64
}

// Read implements io.Reader.
func (u *unpacker) Read(b []byte) (int, error) {
	if u.read > unpackLeast+unpackShare*u.packed.read {
		return 0, errUnpacks
	}
	n, err := u.in.Read(b)
	u.read += int64(n)
	return n, err
}

func openNDJSON(r io.Reader, _ Facts) (Source, error) {
	in, err := ndjson.NewReader(r)
	if err != nil {
		return nil, err // a nil *Reader would not be a nil Source
	}
	return in, nil
}

// importedHeader returns the header of a run that no session of ours recorded.
func importedHeader(facts Facts) recording.Header {
	return recording.Header{Program: facts.Name, Policy: "none", Tags: "caller", Created: facts.Modified.UTC(), ClockNS: start}
}

// processRecord returns the record that names the process.
func processRecord(facts Facts) wire.Record {
	return recordOfThread(1, wire.ProcessFields{Time: start}.Record(wire.AppendProcess(nil, []string{facts.Name})))
}

// recordOfThread returns a record of a thread of the one process that a log has.
func recordOfThread(thread uint32, r wire.Record) wire.Record {
	r.Process, r.Thread = 1, thread
	return r
}

// nameRecord returns the record that names a tag.
func nameRecord(time uint64, tag uint32, title string) wire.Record {
	title = strings.Map(func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}, title)
	frame := wire.SiteFrame{Function: title[:min(len(title), 200)]}
	return recordOfThread(1, wire.SiteFields{Time: time, Tag: tag}.Record(wire.AppendSiteFrame(nil, frame)))
}

// createRecord returns the create of a buffer under policy none: the driver serves it, though a pool could have. So replays can try
// pools.
func createRecord(time, object, size uint64, tag, thread uint32) wire.Record {
	e := wire.CreateFields{
		Time: time, Outcome: wire.OutcomeMiss, Reason: wire.MissPolicy, Access: readWrite, Tag: tag, Object: object,
		Requested: size, Granted: size,
	}.Event()
	return recordOfThread(thread, wire.Record{Event: e})
}

func failedCreateRecord(time, size uint64, tag, thread uint32, code int16) wire.Record {
	e := wire.CreateFields{
		Time: time, Outcome: wire.OutcomeFailed, Access: readWrite, Status: code, Tag: tag, Requested: size,
	}.Event()
	return recordOfThread(thread, wire.Record{Event: e})
}

// allocationFailure is CL_MEM_OBJECT_ALLOCATION_FAILURE.
const allocationFailure = -4

// readWrite is CL_MEM_READ_WRITE (OpenCL 3.0 §5.2.1).
const readWrite = 1

// releaseRecord returns the release of a buffer to the driver.
func releaseRecord(time, object, size uint64, tag, thread uint32) wire.Record {
	e := wire.ReleaseFields{Time: time, Tag: tag, Object: object, Requested: size}.Event()
	return recordOfThread(thread, wire.Record{Event: e})
}
