package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The recordings in testdata are of the examples, without a word of the machine that made them. These commands make them again:
//
//	go test ./internal/report -run TestScrub -scrub train.gmt,leak.gmt
//	go test ./internal/report -run TestTiny -tiny
var (
	scrub = flag.String("scrub", "", "recordings to take into testdata, separated by commas")
	tiny  = flag.Bool("tiny", false, "write testdata/tiny.gmt")
)

// TestScrub does nothing unless a flag names recordings.
func TestScrub(t *testing.T) {
	for name := range strings.SplitSeq(*scrub, ",") {
		if name != "" {
			take(t, name)
		}
	}
}

func take(t *testing.T, name string) {
	t.Helper()
	r, err := recording.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header()
	h.Host, h.Environment, h.Created = "host", nil, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h.Program = "/opt/examples/" + path.Base(h.Program)
	w, err := recording.Create(filepath.Join("testdata", filepath.Base(name)), h, true)
	if err != nil {
		t.Fatal(err)
	}
	var record wire.Record
	for {
		err := r.Next(&record)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			neutral(&record)
			err = w.Append(&record)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	footer, _ := r.Footer()
	if err := errors.Join(w.Close(footer), r.Close()); err != nil {
		t.Fatal(err)
	}
}

// neutral takes paths and the device's name out of a payload.
func neutral(r *wire.Record) {
	switch r.Kind {
	case wire.KindProcess:
		program, arguments, _ := bytes.Cut(r.Payload, []byte{0})
		r.Payload = fmt.Appendf(nil, "/opt/examples/%s\x00%s", path.Base(string(program)), arguments)
	case wire.KindModule:
		r.Payload = []byte("/opt/examples/" + path.Base(strings.TrimRight(string(r.Payload), "\x00")))
	case wire.KindSite:
		var lines []string
		for line := range strings.Lines(string(r.Payload)) {
			fields := strings.Split(strings.TrimRight(line, "\n\x00"), "\t")
			for i := 1; i < len(fields); i++ {
				if fields[i] != "" {
					fields[i] = path.Base(fields[i])
				}
			}
			lines = append(lines, strings.Join(fields, "\t"))
		}
		r.Payload = []byte(strings.Join(lines, "\n"))
	case wire.KindDevice:
		r.Payload = []byte("device\x001.0")
	default:
		return
	}
	r.Size = uint64(len(r.Payload))
}

// TestRecordingsAreNeutral finds no path of a machine in what is committed.
func TestRecordingsAreNeutral(t *testing.T) {
	for _, name := range recordings(t) {
		r, err := recording.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if h := r.Header(); h.Host != "host" || len(h.Environment) > 0 || strings.HasPrefix(h.Program, "/") && !strings.HasPrefix(h.Program, "/opt/") {
			t.Errorf("%s: header %+v", name, h)
		}
		var record wire.Record
		for r.Next(&record) == nil {
			for _, word := range []string{"/tmp", "/home", "/work", "/root", "/usr", "/build"} {
				if bytes.Contains(record.Payload, []byte(word)) {
					t.Errorf("%s: %s %q", name, record.Kind, record.Payload)
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if r.Size() > 60<<10 {
			t.Errorf("%s has %d bytes", name, r.Size())
		}
	}
}

// recordings are the names of what is in testdata.
func recordings(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.gmt")
	if err != nil || len(names) < 6 {
		t.Fatalf("recordings: %v, %v", names, err)
	}
	return names
}

const (
	origin = 5_000_000_000
	mib    = 1 << 20
)

// tape is a small recording in memory.
type tape struct{ records.Tape }

// put appends a record, with its time in microseconds after the start.
func (t *tape) put(us uint64, process uint32, e wire.Event, payload string) {
	e.Time = origin + 1000*us
	if e.Kind.HasPayload() {
		e.Size = uint64(len(payload))
	}
	t.Records = append(t.Records, wire.Record{Event: e, Process: process, Thread: 100 + process, Payload: []byte(payload)})
}

// story is what an importer might make: no call stacks but one, no uses, no costs; names that try to break out;
// mistakes, lost events, a slab, two processes.
func story() *tape {
	t := &tape{}
	t.put(0, 1, wire.Event{Kind: wire.KindProcess, Object: 4242, Link: 1}, "/opt/a|b\x00<i>\x00\x1b[31m")
	t.put(0, 2, wire.Event{Kind: wire.KindProcess, Object: 4243, Link: 4242}, "/opt/child\x00")
	t.put(1, 1, wire.Event{Kind: wire.KindSite, Tag: 1}, "pipe|`tick`*star*\t|.c\t7\tx+0x1\n<script>\tmain.c\t9\tx+0x2\n")
	t.put(1, 1, wire.Event{Kind: wire.KindTag, Tag: 2, Op: uint8(wire.TagsSize), Link: 2 * mib}, "")
	create := func(us uint64, process uint32, object uint64, outcome wire.Outcome, tag uint32, size, block uint64) {
		e := wire.Event{Kind: wire.KindCreate, Outcome: outcome, Object: object, Tag: tag, Size: size, Granted: size + size/4, Link: block}
		if outcome == wire.OutcomeMiss {
			e.Reason = uint8(wire.MissCold)
		}
		t.put(us, process, e, "")
	}
	create(10, 1, 1, wire.OutcomeMiss, 1, 4*mib, 1)
	create(20, 1, 2, wire.OutcomeMiss, 2, 2*mib, 2)
	create(30, 2, 1, wire.OutcomeDriver, 3, mib, 0)
	t.put(40, 1, wire.Event{Kind: wire.KindRelease, Object: 1, Outcome: wire.OutcomeCached, Link: 1}, "")
	create(50, 1, 3, wire.OutcomeHit, 1, 4*mib, 1)
	t.put(60, 1, wire.Event{Kind: wire.KindSlab, Link: 9, Granted: 8 * mib}, "")
	t.put(61, 1, wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: 4, Tag: 2, Size: mib, Granted: mib, Link: 10, Flags: wire.FlagSubAlloc, Reason: 1}, "")
	t.put(70, 1, wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagDoubleRelease), Tag: 1, Object: 1, Granted: 4 * mib, Status: -38}, "clReleaseMemObject")
	t.put(71, 1, wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagStaleArgument), Tag: 2, Granted: 2 * mib}, "clEnqueueNDRangeKernel")
	t.put(80, 1, wire.Event{Kind: wire.KindLost, Size: 12, Granted: 3}, "")
	t.put(90, 2, wire.Event{Kind: wire.KindRelease, Object: 1, Outcome: wire.OutcomeDriver}, "")
	t.put(95, 1, wire.Event{Kind: wire.KindLimit}, "max_cached_bytes=1024")
	t.put(99, 2, wire.Event{Kind: wire.KindExit}, "")
	t.put(99, 1, wire.Event{Kind: wire.KindExit}, "")
	return t
}

// TestTiny writes a recording of the story when a flag asks for it.
func TestTiny(t *testing.T) {
	if !*tiny {
		return
	}
	header := recording.Header{
		ClockNS: origin, Host: "host", Program: "/opt/a|b", Arguments: []string{"<i>", "\x1b[31m"}, Policy: "slab",
		Limits: recording.Limits{"max_cached_bytes": "1048576"}, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	labtest.Write(t, "testdata/tiny.gmt", header, story().Records, recording.Footer{EndedNS: origin + 100_000, Status: 3})
}
