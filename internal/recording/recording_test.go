package recording

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/disk"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func anyRecord(t *rapid.T) wire.Record {
	r := wire.Record{
		Event: wire.Event{
			Time: rapid.Uint64().Draw(t, "time"), Duration: rapid.Uint32().Draw(t, "duration"), Cost: rapid.Uint32().Draw(t, "cost"),
			Kind: wire.Kind(rapid.OneOf(rapid.IntRange(0, int(wire.KindGauge)), rapid.IntRange(0, 1<<16-1)).Draw(t, "kind")),
			Op:   rapid.Uint8().Draw(t, "op"), Outcome: wire.Outcome(rapid.Uint8().Draw(t, "outcome")),
			Reason: rapid.Uint8().Draw(t, "reason"), Flags: rapid.Uint8().Draw(t, "flags"), Scope: rapid.Uint16().Draw(t, "scope"), Access: rapid.Uint16().Draw(t, "access"),
			Status: rapid.Int16().Draw(t, "status"), Tag: rapid.Uint32().Draw(t, "tag"), Object: rapid.Uint64().Draw(t, "object"),
			Size: rapid.Uint64().Draw(t, "size"), Granted: rapid.Uint64().Draw(t, "granted"), Link: rapid.Uint64().Draw(t, "link"),
		},
		Process: rapid.Uint32Range(0, 3).Draw(t, "process"),
		Thread:  rapid.Uint32().Draw(t, "thread"),
	}
	if r.Kind.HasPayload() {
		r.Payload = rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "payload")
	}
	return r
}

func write(t testing.TB, path string, records []wire.Record, frame int) {
	t.Helper()
	w, err := Create(path, Header{Program: "test", Policy: "futhark", Created: time.Unix(1, 0).UTC()}, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
		if frame > 0 && (i+1)%frame == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(Footer{Status: 3}); err != nil {
		t.Fatal(err)
	}
}

func readAll(t testing.TB, r *Reader) []wire.Record {
	t.Helper()
	var out []wire.Record
	for {
		var rec wire.Record
		err := r.Next(&rec)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.Payload != nil {
			rec.Payload = slices.Clone(rec.Payload)
		}
		out = append(out, rec)
	}
}

func opened(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	rapid.Check(t, func(rt *rapid.T) {
		var want []wire.Record
		for range rapid.IntRange(0, 50).Draw(rt, "n") {
			want = append(want, anyRecord(rt))
		}
		write(t, path, want, rapid.IntRange(0, 20).Draw(rt, "frame"))
		r, err := Open(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		empty := cmp.Transformer("payload", func(b []byte) string { return string(b) })
		got := readAll(t, r)
		if diff := cmp.Diff(want, got, empty); diff != "" {
			rt.Fatalf("read back differently:\n%s", diff)
		}
		if r.Damage() != "" {
			rt.Fatalf("damage %q", r.Damage())
		}
		if f, ok := r.Footer(); !ok || f.Status != 3 || f.Events != uint64(len(want)) {
			rt.Fatalf("footer %+v, %v", f, ok)
		}
		if err := r.Rewind(); err != nil || len(readAll(t, r)) != len(want) {
			rt.Fatal("a second reading differs")
		}
	})
}

// sample is what a training loop looks like: creates and releases of a few sizes by two threads, with durations
// that vary, and uses between them.
func sample(n int) []wire.Record {
	rng := rand.New(rand.NewPCG(1, 2))
	var records []wire.Record
	now, object := uint64(1e12), uint64(0)
	for len(records) < n {
		now += 200 + rng.Uint64N(2000)
		object++
		size := uint64(1+rng.IntN(12)) << 18
		tag := uint32(1 + rng.IntN(9))
		at := func(kind wire.Kind, e wire.Event) {
			now += 100 + rng.Uint64N(900)
			e.Kind, e.Time, e.Scope, e.Tag, e.Object, e.Size = kind, now, 1, tag, object, size
			records = append(records, wire.Record{Event: e, Process: 1, Thread: 100 + uint32(object%2)})
		}
		d := uint32(200 + rng.IntN(800))
		at(wire.KindCreate, wire.Event{Duration: d, Cost: d - 100, Outcome: wire.OutcomeHit, Granted: size, Link: uint64(tag)<<32 | 7})
		for range 3 {
			at(wire.KindUse, wire.Event{Op: uint8(wire.CommandKernel), Link: 1})
		}
		at(wire.KindRelease, wire.Event{Duration: d / 2, Outcome: wire.OutcomeCached, Link: uint64(tag)<<32 | 7})
	}
	return records
}

func TestBytesPerEvent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(100_000)
	write(t, path, records, 0)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	each := float64(info.Size()) / float64(len(records))
	t.Logf("%.1f bytes per event", each)
	if each > 16 {
		t.Errorf("%.1f bytes per event, want at most 16", each)
	}
}

// TestCutAnywhere cuts a recording at every byte: what was whole before the cut is read, and the loss is reported.
func TestCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.gmt")
	records := sample(60)
	write(t, whole, records, 10)
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.gmt")
	most := 0
	for n := range data {
		if err := os.WriteFile(cut, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(cut)
		if err != nil {
			if !errors.Is(err, ErrNotRecording) {
				t.Fatalf("cut at %d: %v", n, err)
			}
			continue
		}
		got := readAll(t, r)
		if len(got) < most || len(got)%10 != 0 {
			t.Fatalf("cut at %d: %d events, an earlier cut had %d", n, len(got), most)
		}
		most = len(got)
		for i := range got {
			if got[i].Event != records[i].Event {
				t.Fatalf("cut at %d: event %d differs", n, i)
			}
		}
		if r.Damage() == "" {
			t.Fatalf("cut at %d: no damage reported", n)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if most != len(records) {
		t.Fatalf("the longest cut file gave %d events, want %d", most, len(records))
	}
}

// TestFlippedBits damages one byte at a time: never a panic, never a wrong event, and the other frames are read.
func TestFlippedBits(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.gmt")
	records := sample(40)
	write(t, path, records, 10)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 0x41
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			continue
		}
		got := readAll(t, r)
		if len(got) < 30 {
			t.Fatalf("byte %d: only %d events left (%s)", i, len(got), r.Damage())
		}
		for k, from := 0, 0; k < len(got); k++ {
			at := slices.IndexFunc(records[from:], func(r wire.Record) bool { return r.Event == got[k].Event })
			if at < 0 {
				t.Fatalf("byte %d: event %d was never written, or comes too late: %+v", i, k, got[k])
			}
			from += at + 1
		}
		if len(got) < len(records) && r.Damage() == "" {
			t.Fatalf("byte %d: %d events and no damage reported", i, len(got))
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeekTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(1000)
	write(t, path, records, 50)
	r := opened(t, path)
	want := records[700].Time
	if err := r.SeekTime(want); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, r)
	if len(got) > 350 || len(got) < 300 || got[len(got)-1].Event != records[999].Event {
		t.Fatalf("%d events behind the time", len(got))
	}
}

// TestSeekTimeWithoutFooter cuts the footer off: the heads of frames tell the times.
func TestSeekTimeWithoutFooter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(1000)
	write(t, path, records, 50)
	whole := opened(t, path)
	footer, ok := whole.Footer()
	if !ok || len(footer.Index) != 20 {
		t.Fatalf("index of %d, want 20", len(footer.Index))
	}
	if err := os.Truncate(path, footer.Index[19].Offset); err != nil {
		t.Fatal(err)
	}
	r := opened(t, path)
	for at, want := range map[uint64]int{0: 950, records[700].Time: 250, records[999].Time: 0} {
		if err := r.SeekTime(at); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, r); len(got) != want {
			t.Errorf("time %d: %d events after it, want %d", at, len(got), want)
		}
	}
}

// TestLongRecording writes as many frames as a session does in two days. The footer stays small enough to be found,
// and its index right.
func TestLongRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	const frames = 2 * 24 * 3600 * 4
	rng := rand.New(rand.NewPCG(1, 2))
	w, err := Create(path, Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(frames) {
		// Times and summaries that do not pack well.
		head := &w.events.head
		head.events, head.firstNS, head.lastNS = 1, i*250_000_000+i*7919%1_000_003, i*250_000_000+i*104_729%1_000_003+1
		w.addFrameToIndex(&Summary{rng.Uint64() >> 8, rng.Uint64() >> 8, rng.Uint64() >> 8, rng.Uint64() >> 24, rng.Uint64() >> 24,
			rng.Uint64() >> 24, rng.Uint64() >> 24, rng.Uint64() >> 24})
		w.offset += 80
	}
	w.events.clearForNextFrame()
	w.offset -= frames * 80
	if err := w.Close(Footer{Status: 4}); err != nil {
		t.Fatal(err)
	}
	r := opened(t, path)
	footer, ok := r.Footer()
	if !ok || footer.Status != 4 || footer.Events != frames {
		t.Fatalf("footer %v, status %d, %d events", ok, footer.Status, footer.Events)
	}
	if n := len(footer.Index); n > indexMax || n < indexMax/2 {
		t.Errorf("%d entries in the index", n)
	}
	var seen uint64
	for _, e := range footer.Index {
		if want := footer.Index[0].Offset + int64(seen)*80; e.Offset != want || e.Events != e.Frames {
			t.Fatalf("entry %+v: want offset %d", e, want)
		}
		if first := seen*250_000_000 + seen*7919%1_000_003; e.FirstNS != first {
			t.Fatalf("entry %+v: want first time %d", e, first)
		}
		seen += e.Frames
	}
	if seen != frames {
		t.Errorf("the index counts %d frames, want %d", seen, frames)
	}
}

// TestDenseRecording: a small file that unpacks into very many creates, events or processes is refused, each time it is read.
func TestDenseRecording(t *testing.T) {
	for kind, most := range map[wire.Kind]int{wire.KindCreate: freeCreates, wire.KindUse: freeEvents, wire.KindSync: freeProcesses} {
		path := filepath.Join(t.TempDir(), "a.gmt")
		w, err := Create(path, Header{}, false)
		if err != nil {
			t.Fatal(err)
		}
		for i := range most + most/2 {
			r := wire.Record{Event: wire.Event{Kind: kind, Time: 1e12, Object: uint64(i)}, Process: 1}
			switch kind {
			case wire.KindUse:
				r.Object = 1
			case wire.KindSync:
				r.Process = uint32(i)
			default:
			}
			if err := w.Append(&r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(Footer{}); err != nil {
			t.Fatal(err)
		}
		r := opened(t, path)
		for range 2 {
			n, last := 0, error(nil)
			for _, err := range Records(r) {
				n, last = n+1, err
			}
			if last == nil || n < most || n > most+most/4 {
				t.Errorf("%v: %d records of %d bytes, %v", kind, n, r.Size(), last)
			}
		}
	}
}

// TestEvenLoop: a loop of creates and releases on a quiet machine compresses well, and is no attack.
func TestEvenLoop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	w, err := Create(path, Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	const pairs = 500_000
	jitter := rand.New(rand.NewPCG(1, 2))
	for i := range uint64(pairs) {
		at, late := 1e12+250*i, uint64(0)
		if jitter.Uint64N(8) == 0 {
			late = jitter.Uint64N(4)
		}
		create := wire.CreateFields{Outcome: wire.OutcomeMiss, Object: i + 1, Requested: 4096, Granted: 4096, Duration: 100 + uint32(late), Cost: 80}
		for k, e := range []wire.Event{create.Event(), {Kind: wire.KindRelease, Object: i + 1, Link: i + 1}} {
			e.Time = at + 120*uint64(k) + late
			if err := w.Append(&wire.Record{Event: e, Process: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	r, n := opened(t, path), 0
	for _, err := range Records(r) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2*pairs || r.Size() > pairs {
		t.Errorf("%d records of %d in %d bytes", n, 2*pairs, r.Size())
	}
}

// TestUnknownEventCostsNoOther: what a target wrote wrong must not take the events of others with it.
func TestUnknownEventCostsNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(40)
	records[5].Kind, records[9].Kind, records[12].Kind = wire.KindLost+1, 256+wire.KindCreate, 1<<16-1
	records[20] = wire.Record{
		Event:   wire.Event{Kind: wire.KindSite, Time: records[20].Time, Size: 2 * wire.PayloadMax},
		Payload: make([]byte, 2*wire.PayloadMax),
	}
	write(t, path, records, 0)
	r := opened(t, path)
	got := readAll(t, r)
	if len(got) != len(records) || r.Damage() != "" {
		t.Fatalf("%d events, damage %q", len(got), r.Damage())
	}
	for i := range got {
		if got[i].Event != records[i].Event {
			t.Errorf("event %d is %+v, want %+v", i, got[i].Event, records[i].Event)
		}
	}
	if n := len(got[20].Payload); n != wire.PayloadMax {
		t.Errorf("a long payload came back with %d bytes, want %d", n, wire.PayloadMax)
	}
}

// TestFooterBehindDeceivingBytes: packed bytes may hold the frame magic by chance.
func TestFooterBehindDeceivingBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	write(t, path, sample(10), 0)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, "\xf3GMF and no more"...), 0o600); err != nil {
		t.Fatal(err)
	}
	r := opened(t, path)
	if f, ok := r.Footer(); !ok || f.Status != 3 {
		t.Errorf("footer %v, status %d", ok, f.Status)
	}
	if got := readAll(t, r); len(got) != 10 || r.Damage() == "" {
		t.Errorf("%d events, damage %q", len(got), r.Damage())
	}
}

// TestShortHeadersAreStored: a short run does not wait for the packer. Longer headers are packed.
func TestShortHeadersAreStored(t *testing.T) {
	for length, stored := range map[int]bool{storedMax / 2: true, storedMax: false} {
		path, program := filepath.Join(t.TempDir(), "a.gmt"), strings.Repeat("x", length)
		w, err := Create(path, Header{Program: program}, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(Footer{Status: 3}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || bytes.Contains(data, []byte(program)) != stored || !bytes.Contains(data, []byte(`"status":3`)) {
			t.Errorf("a program name of %d bytes: stored otherwise in %d bytes, %v", length, len(data), err)
		}
		if r := opened(t, path); r.Header().Program != program {
			t.Errorf("a program name of %d bytes is read as %d", length, len(r.Header().Program))
		}
	}
}

// TestHeaderTooLarge: no file is written that could not be read, and none is left.
func TestHeaderTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	if _, err := Create(path, Header{Program: strings.Repeat("x", maxFrameRaw)}, false); err == nil {
		t.Error("no error")
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "there")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Header{}, false); err == nil || !strings.Contains(err.Error(), "use -f") {
		t.Errorf("existing file: %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "precious" {
		t.Error("an existing file was touched")
	}
	for _, bad := range []string{dir, filepath.Join(dir, "no", "folder"), "/dev/null"} {
		if _, err := Create(bad, Header{}, true); err == nil {
			t.Errorf("%s: created", bad)
		}
	}
	if _, err := Create(dir, Header{}, false); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("folder: %v", err)
	}
}

// A file that is being written is refused to a second writer, and left as it is.
func TestCreateRefusesWhatIsBeingWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	first, err := Create(path, Header{Program: "first"}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Header{}, true); err == nil || !strings.Contains(err.Error(), "another gpumemtop is writing it") {
		t.Errorf("the second writer: %v", err)
	}
	if err := first.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(path); err != nil || r.Header().Program != "first" {
		t.Errorf("the first recording: %v", err)
	}
	second, err := Create(path, Header{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := second.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
}

func TestFullDiskLeavesAWholePrefix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	w, err := Create(path, Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	records := sample(100)
	for i := range records[:50] {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = w.file.Close() // every later write fails
	if err := w.Append(&records[50]); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err == nil {
		t.Fatal("a write to a closed file worked")
	}
	if err := w.Append(&records[51]); err == nil {
		t.Fatal("the error does not stick")
	}
	r := opened(t, path)
	if got := readAll(t, r); len(got) != 50 || r.Damage() == "" {
		t.Fatalf("%d events, damage %q", len(got), r.Damage())
	}
}

func TestNoRecording(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"empty": "", "text": "hello", "magic": string(fileMagic[:])} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, ErrNotRecording) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	keep, err := os.OpenFile(pipe, os.O_RDWR, 0) // opening it for reading must not wait
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = keep.Close() }()
	lake, trace := filepath.Join(dir, "lake"), filepath.Join(dir, "trace.json")
	err = errors.Join(os.MkdirAll(filepath.Join(lake, "runs", "app=blur"), 0o700), os.WriteFile(trace, []byte(`[{"ph":"X"}]`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "empty"): "it is empty", trace: "it is a Chrome trace: ", lake: "it is a folder of Parquet tables: ",
		pipe: "can be sought", "/dev/null": "can be sought", "/proc/version": "can be sought",
	} {
		if _, err := Open(path); !errors.Is(err, ErrNotRecording) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Open(dir); err == nil || !strings.HasSuffix(err.Error(), "it is a folder") {
		t.Errorf("a folder without tables: %v", err)
	}
	_, err = Open(filepath.Join(dir, "nothing"))
	if !errors.Is(err, fs.ErrNotExist) || strings.Count(err.Error(), "open") != 1 || !strings.Contains(err.Error(), "nothing: no such file") {
		t.Errorf("nothing there: %v", err)
	}
}

// restart makes a writer go on behind the first bytes of its file.
func restart(t *testing.T, w *Writer, path string, size int64) {
	t.Helper()
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.file = disk.NewWriter(file)
}

func TestLaterVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	write(t, path, nil, 0)
	w, err := Create(path, Header{}, true)
	if err != nil {
		t.Fatal(err)
	}
	w.writeJSON(frameHeader, Header{})
	restart(t, w, path, int64(len(fileMagic)))
	w.writeJSON(frameHeader, Header{Version: Version + 1})
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrVersion) {
		t.Fatalf("err = %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	s := newState(Version)
	var b []byte
	for _, r := range sample(20) {
		b = s.appendRecord(b, &r)
	}
	f.Add(b)
	f.Add([]byte{10, 0xff, 0xff, 0x03})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newState(Version)
		var r wire.Record
		for len(b) > 0 {
			rest, err := s.decodeRecord(b, &r)
			if err != nil {
				return
			}
			if len(rest) >= len(b) {
				t.Fatal("nothing was read")
			}
			b = rest
		}
	})
}

func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed.gmt")
	write(f, path, sample(20), 7)
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a.gmt")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(path)
		if err != nil {
			return
		}
		defer func() { _ = r.Close() }()
		var rec wire.Record
		for err == nil {
			err = r.Next(&rec)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "a.gmt"), Header{}, false)
	if err != nil {
		b.Fatal(err)
	}
	records := sample(1 << 16)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := w.Append(&records[i%len(records)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(w.Bytes())/float64(i), "B/event")
	if err := w.Close(Footer{}); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkNext(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.gmt")
	write(b, path, sample(1<<18), 0)
	r, err := Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	b.ReportAllocs()
	var rec wire.Record
	for b.Loop() {
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			if err := r.Rewind(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
