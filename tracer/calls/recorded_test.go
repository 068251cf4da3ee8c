package calls_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the synthetic recording, and the events of all recordings")

// testdata/NAME.calls is a recording of raw calls of one process: for each sample its length in bytes, as 32 bits
// little-endian, and the sample as wire.AppendSample writes it. testdata/NAME.events has the events that a tracker makes
// of them, one a line. Functions are numbered by their index in calls.Functions, so recordings must be made again when that
// changes; the test of the synthetic one fails then.

// readCalls passes the samples of a recording to sink.
func readCalls(r io.Reader, sink func(*wire.Sample)) error {
	for n := 0; ; n++ {
		var length uint32
		switch err := binary.Read(r, binary.LittleEndian, &length); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("length of sample %d: %w", n, err)
		case length > wire.SizeofCall+wire.CallData+wire.CallStack:
			return fmt.Errorf("sample %d of %d bytes", n, length)
		}
		raw := make([]byte, length)
		if _, err := io.ReadFull(r, raw); err != nil {
			return fmt.Errorf("sample %d: %w", n, err)
		}
		var s wire.Sample
		if err := wire.DecodeSample(raw, &s); err != nil {
			return fmt.Errorf("sample %d: %w", n, err)
		}
		sink(&s)
	}
}

func appendCall(b []byte, s *wire.Sample) []byte {
	raw := wire.AppendSample(nil, s)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(raw))), raw...)
}

// synthetic is a small program that uses objects from before attach.
func synthetic(tb testing.TB) (b []byte) {
	tb.Helper()
	now := uint64(1000)
	for _, c := range []call{
		{name: "clEnqueueWriteBuffer", args: []uint64{queue, buf, 1, 0, 4096}},
		{name: "clCreateContext", result: ctx},
		{name: "clCreateCommandQueue", result: queue + 1, args: []uint64{ctx, 1, 1}},
		{name: "clCreateBuffer", result: buf + 1, args: []uint64{ctx, 1, 8192, 0}},
		{name: "clCreateBuffer", args: []uint64{ctx, 1, 1 << 40, 0}, err: -61},
		{name: "clCreateSubBuffer", result: buf + 2, args: []uint64{buf + 1, 0, 0x1220, 9}, copies: [2][]byte{words(4096, 1024)}},
		{name: "clCreateImage", result: buf + 3, args: []uint64{ctx, 1, 8, 9, 0}, copies: [2][]byte{format(0x10B5, 0x10DA), desc(image2D, 64, 16, 0, 0, 0, 0, 0)}},
		{name: "clCreateKernel", result: kern, args: []uint64{1, 2}, copies: [2][]byte{[]byte("saxpy\x00")}},
		{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(buf + 1)}},
		{name: "clSetKernelArg", args: []uint64{kern, 1, 4, 9}},
		{name: "clEnqueueNDRangeKernel", args: []uint64{queue + 1, kern}},
		{name: "clEnqueueReadBuffer", args: []uint64{queue + 1, buf + 2, 1, 0, 1024}},
		{name: "clFinish", args: []uint64{queue + 1}},
		{name: "clReleaseMemObject", args: []uint64{buf + 1}},
		{name: "clReleaseMemObject", args: []uint64{buf + 2}},
		{name: "clReleaseMemObject", args: []uint64{buf + 2}},
		{name: "clReleaseMemObject", args: []uint64{buf}},
	} {
		now += 20
		s := c.sample(tb, now, 7)
		s.Memory = make([]byte, now%3*8) // of the stack, which the tracker ignores
		b = appendCall(b, s)
	}
	return b
}

// TestRecordings replays every recording.
func TestRecordings(t *testing.T) {
	const first = "testdata/synthetic.calls"
	want := synthetic(t)
	if *update {
		if err := os.WriteFile(first, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(first); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what this test writes with -update: %v; other recordings are out of date, too", first, err)
	}
	files, err := filepath.Glob("testdata/*.calls")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { replay(t, file) })
	}
}

func replay(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := newFromStart(t)
	if err := readCalls(bytes.NewReader(raw), p.tracker.HandleCall); err != nil {
		t.Fatal(err)
	}
	got, golden := text(p.records), strings.TrimSuffix(file, ".calls")+".events"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestReadCalls: a truncated or damaged recording is an error.
func TestReadCalls(t *testing.T) {
	whole := synthetic(t)
	for _, damaged := range [][]byte{whole[:2], whole[:100], whole[:len(whole)-1], {255, 255, 255, 255}, {1, 0, 0, 0, 9}} {
		if err := readCalls(bytes.NewReader(damaged), func(*wire.Sample) {}); err == nil {
			t.Errorf("%d bytes are read without an error", len(damaged))
		}
	}
}
