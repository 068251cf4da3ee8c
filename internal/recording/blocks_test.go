package recording

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// numbered returns the summary of the nth block.
func numbered(n uint64) Summary {
	return Summary{InUse: 100 * n, Cached: 7 * n, Cooling: n, Hits: n + 1, Misses: n + 2, Creates: 2*n + 3, Releases: n, Lost: n % 2}
}

// summarized writes records in frames of a length, with numbered summaries.
func summarized(t testing.TB, path string, h Header, records []wire.Record, frame int) {
	t.Helper()
	w, err := Create(path, h, true)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	w.SetSummarizer(func() Summary { n++; return numbered(n) })
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
		if (i+1)%frame == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
}

// definitions returns what Definitions gives.
func definitions(t testing.TB, r *Reader) []wire.Record {
	t.Helper()
	out := []wire.Record{}
	err := r.EachDefinition(func(rec *wire.Record) error {
		kept := *rec
		kept.Payload = slices.Clone(rec.Payload)
		out = append(out, kept)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func defining(records []wire.Record) []wire.Record {
	return slices.DeleteFunc(slices.Clone(records), func(r wire.Record) bool { return !r.IsDefinition() })
}

var sameBytes = gocmp.Transformer("payload", func(b []byte) string { return string(b) })

// same reports whether two lists of records are equal.
func same(a, b []wire.Record) bool {
	return slices.EqualFunc(a, b, func(a, b wire.Record) bool {
		return a.Event == b.Event && a.Process == b.Process && a.Thread == b.Thread && bytes.Equal(a.Payload, b.Payload)
	})
}

// checkOverview compares what can be had without events with the events, which are all of the recording's.
func checkOverview(t testing.TB, r *Reader, records []wire.Record) {
	t.Helper()
	if diff := gocmp.Diff(defining(records), definitions(t, r), sameBytes); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	blocks, err := r.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for i, b := range blocks {
		if b.Frames == 0 || i > 0 && b.Offset <= blocks[i-1].Offset || at+int(b.Events) > len(records) {
			t.Fatalf("block %d: %+v of %d events", i, b, len(records))
		}
		part := records[at : at+int(b.Events)]
		first := slices.MinFunc(part, func(a, b wire.Record) int { return cmp.Compare(a.Time, b.Time) }).Time
		last := slices.MaxFunc(part, func(a, b wire.Record) int { return cmp.Compare(a.Time, b.Time) }).Time
		if b.FirstNS != first || b.LastNS != last {
			t.Errorf("block %d is from %d to %d, its events from %d to %d", i, b.FirstNS, b.LastNS, first, last)
		}
		at += len(part)
	}
	if at != len(records) {
		t.Errorf("the blocks have %d events, want %d", at, len(records))
	}
}

// TestOverviewMovesNothing: blocks and definitions are right, with a footer and without, and asking for them does not move Next.
func TestOverviewMovesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	rapid.Check(t, func(rt *rapid.T) {
		var records []wire.Record
		for range rapid.IntRange(1, 60).Draw(rt, "n") {
			records = append(records, anyRecord(rt))
			if rapid.Bool().Draw(rt, "defines") {
				records[len(records)-1].Kind = wire.Kind(rapid.IntRange(1, 9).Draw(rt, "kind"))
			}
			if !records[len(records)-1].Kind.HasPayload() {
				records[len(records)-1].Payload = nil
			}
		}
		frame := rapid.IntRange(1, 20).Draw(rt, "frame")
		summarized(t, path, Header{}, records, frame)
		r := opened(t, path)
		read := rapid.IntRange(0, len(records)).Draw(rt, "read")
		var rec wire.Record
		for range read {
			if err := r.Next(&rec); err != nil {
				rt.Fatal(err)
			}
		}
		checkOverview(t, r, records)
		whole, err := r.Blocks()
		if err != nil || len(whole) != (len(records)+frame-1)/frame {
			rt.Fatalf("%d blocks, %v", len(whole), err)
		}
		if !same(records[read:], readAll(t, r)) || r.Damage() != "" {
			rt.Fatalf("reading went on elsewhere, damage %q", r.Damage())
		}
		footer := lastFrame(t, path)
		if err := os.Truncate(path, footer); err != nil {
			rt.Fatal(err)
		}
		torn := opened(t, path)
		checkOverview(t, torn, records)
		if blocks, err := torn.Blocks(); err != nil || !slices.Equal(blocks, whole) {
			rt.Fatalf("without the footer the blocks are %+v, %v; with it %+v", blocks, err, whole)
		}
		for i, b := range whole {
			if !b.HasSummary || b.Summary != numbered(uint64(i+1)) {
				rt.Fatalf("block %d: %+v", i, b)
			}
		}
	})
}

// lastFrame returns where the last frame begins.
func lastFrame(t testing.TB, path string) int64 {
	t.Helper()
	w := opened(t, path).newWalker()
	for w.nextFrame() {
		continue
	}
	return w.offset
}

// TestSummariesAreJoined: in a long recording a block is several frames.
func TestSummariesAreJoined(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(3*indexMax + 5)
	summarized(t, path, Header{}, records, 1)
	whole := opened(t, path)
	checkOverview(t, whole, records)
	want, err := whole.Blocks()
	if err != nil || len(want) < indexMax/2 || len(want) > indexMax {
		t.Fatalf("%d blocks, %v", len(want), err)
	}
	n := uint64(0)
	for i, b := range want {
		sum := numbered(n + 1)
		for k := n + 2; k <= n+b.Frames; k++ {
			one := numbered(k)
			sum.Hits, sum.Misses, sum.Creates = sum.Hits+one.Hits, sum.Misses+one.Misses, sum.Creates+one.Creates
			sum.Releases, sum.Lost = sum.Releases+one.Releases, sum.Lost+one.Lost
			sum.InUse, sum.Cached, sum.Cooling = one.InUse, one.Cached, one.Cooling // it only rises
		}
		n += b.Frames
		if b.Summary != sum {
			t.Fatalf("block %d: %+v, want %+v", i, b.Summary, sum)
		}
	}
	if err := os.Truncate(path, lastFrame(t, path)); err != nil {
		t.Fatal(err)
	}
	if got, err := opened(t, path).Blocks(); err != nil || !slices.Equal(got, want) {
		t.Fatalf("without the footer there are other blocks: %v", err)
	}
}

// TestDefinitionsCutOff: where the frame of definitions is missing or damaged the events before it tell.
func TestDefinitionsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(20)
	for i := range records {
		if i%3 == 0 {
			records[i].Kind, records[i].Payload = wire.KindModule, []byte{byte(i)}
		}
	}
	summarized(t, path, Header{}, records, 10)
	w := opened(t, path).newWalker()
	var places []int64
	for w.nextFrame() {
		if w.head.kind == frameDefinitions {
			places = append(places, w.offset)
		}
	}
	if len(places) != 2 {
		t.Fatalf("%d frames of definitions", len(places))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"cut off":     func(b []byte) []byte { return b[:places[1]] },
		"cut through": func(b []byte) []byte { return b[:places[1]+headSize+3] },
		"first":       func(b []byte) []byte { b[places[0]+headSize+3] ^= 1; return b },
		"head":        func(b []byte) []byte { b[places[0]+9] ^= 1; return b },
		"both":        func(b []byte) []byte { b[places[0]+headSize+3] ^= 1; b[places[1]+17] ^= 1; return b },
	} {
		if err := os.WriteFile(path, damage(slices.Clone(data)), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(defining(records), definitions(t, opened(t, path)), sameBytes); diff != "" {
			t.Errorf("%s: definitions (-want +got):\n%s", name, diff)
		}
	}
}

// TestDefinitionsStop: an error of the caller's ends it.
func TestDefinitionsStop(t *testing.T) {
	for _, path := range []string{"testdata/version2.gmt", "testdata/version3.gmt"} {
		enough := errors.New("enough")
		calls := 0
		err := opened(t, path).EachDefinition(func(*wire.Record) error { calls++; return enough })
		if !errors.Is(err, enough) || calls != 1 {
			t.Errorf("%s: %d calls, %v", path, calls, err)
		}
	}
}

// TestLaterAdditions: what a later version may add without being a new one is stepped over: types of frames, and
// numbers behind those of a summary.
func TestLaterAdditions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	w, err := Create(path, Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	records := sample(20)
	zip, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		w.events.appendRecord(&records[i])
		if i%5 != 4 {
			continue
		}
		s := numbered(uint64(i/5 + 1))
		w.addFrameToIndex(&s)
		longer := append(s.appendFrame(nil), 1, 2, 3, 4, 5, 6, 7, 8)
		binary.LittleEndian.PutUint32(longer[4:], uint32(len(longer)-skippableHead))
		binary.LittleEndian.PutUint32(longer[skippableHead:], crc32.Checksum(longer[skippableHead+4:], castagnoli))
		writeRaw(w, w.events.head, zip.EncodeAll(w.events.raw, longer), len(w.events.raw))
		w.events.clearForNextFrame()
		writeRaw(w, frameHead{kind: 77, events: 12}, []byte("not even packed"), 3)
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		r := opened(t, path)
		if got := readAll(t, r); len(got) != len(records) {
			t.Errorf("%d events, damage %q", len(got), r.Damage())
		}
		checkOverview(t, r, records)
		blocks, err := r.Blocks()
		if err != nil || len(blocks) != 4 || blocks[2].Summary != numbered(3) {
			t.Errorf("blocks %+v, %v", blocks, err)
		}
		if err := r.SeekTime(records[12].Time); err != nil || len(readAll(t, r)) != 10 {
			t.Errorf("seek: %v", err)
		}
	}
	check()
	if r := opened(t, path); len(readAll(t, r)) != 20 || r.Damage() != "" {
		t.Errorf("damage %q", r.Damage())
	}
	if err := os.Truncate(path, lastFrame(t, path)); err != nil {
		t.Fatal(err)
	}
	check()
}

// TestUnknownFramesAnywhere: they neither hide the footer nor double definitions.
func TestUnknownFramesAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(20)
	summarized(t, path, Header{}, records, 5)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "unknown.gmt")
	w, err := Create(name, Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	before := w.offset
	writeRaw(w, frameHead{kind: 77, events: 12, flags: flagDefines}, []byte("not even packed"), 3)
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	unknown, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	unknown = unknown[before : before+headSize+int64(len("not even packed"))]
	r := opened(t, path)
	mixed := slices.Clone(whole[:r.first])
	for walk := r.newWalker(); walk.nextFrame(); {
		mixed = append(mixed, unknown...)
		mixed = append(mixed, whole[walk.offset:walk.after]...)
	}
	if err := os.WriteFile(path, append(mixed, unknown...), 0o600); err != nil {
		t.Fatal(err)
	}
	r = opened(t, path)
	if _, ended := r.Footer(); !ended || len(readAll(t, r)) != len(records) || r.Damage() != "" {
		t.Errorf("footer %v, damage %q", ended, r.Damage())
	}
	checkOverview(t, r, records)
}

// writeRaw writes a frame whose payload is given.
func writeRaw(w *Writer, head frameHead, payload []byte, raw int) {
	var b [headSize]byte
	head.raw, head.packed = uint32(raw), uint32(len(payload))
	head.encode(&b, payload)
	w.writeInOneCall(append(b[:], payload...))
}

// TestFooterOfAnother: a footer whose index does not fit is not believed.
func TestFooterOfAnother(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	records := sample(100)
	summarized(t, one, Header{}, records, 10)
	summarized(t, two, Header{Program: "another"}, records[:50], 7)
	at := lastFrame(t, two)
	footer, err := os.ReadFile(two)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(one, append(data[:lastFrame(t, one)], footer[at:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	r := opened(t, one)
	checkOverview(t, r, records)
	if got := readAll(t, r); len(got) != 100 || !strings.Contains(r.Damage(), "speaks of 50") {
		t.Errorf("%d events, damage %q", len(got), r.Damage())
	}
}

// TestTornRecordingSaysHowMuchIsLost: how much is lost, and after what time.
func TestTornRecordingSaysHowMuchIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(30)
	summarized(t, path, Header{ClockNS: records[0].Time}, records, 10)
	whole := opened(t, path)
	if _, torn, err := whole.LostAtEnd(); torn || err != nil {
		t.Fatalf("whole: %v, %v", torn, err)
	}
	blocks, err := whole.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	third := blocks[2].Offset
	flipped := slices.Clone(data[:lastFrame(t, path)])
	flipped[len(flipped)-1] ^= 1
	for _, c := range []struct {
		data []byte
		want Torn
	}{
		{data[:third], Torn{0, blocks[1].LastNS}},
		{data[:third+20], Torn{20, blocks[1].LastNS}},
		{data[:third+100], Torn{100, blocks[1].LastNS}},
		{flipped, Torn{int64(len(flipped)) - third, blocks[1].LastNS}},
		{data[:blocks[0].Offset], Torn{0, 0}},
		{data[:len(data)-1], Torn{int64(len(data)) - 1 - int64(len(flipped)), blocks[2].LastNS}},
	} {
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		r := opened(t, path)
		if got, torn, err := r.LostAtEnd(); got != c.want || !torn || err != nil {
			t.Errorf("%d bytes: %+v, %v, %v, want %+v", len(c.data), got, torn, err, c.want)
		}
		var rec wire.Record
		for !errors.Is(r.Next(&rec), io.EOF) {
			continue
		}
		if c.want.LastNS > 0 && !strings.Contains(r.Damage(), r.timeReadText()) || r.timeReadText() == "" && c.want.LastNS > 0 {
			t.Errorf("%d bytes: damage %q does not say when", len(c.data), r.Damage())
		}
	}
}

func BenchmarkBlocks(b *testing.B) {
	path := filepath.Join(b.TempDir(), "a.gmt")
	records := sample(1 << 16)
	w, err := Create(path, Header{}, false)
	if err != nil {
		b.Fatal(err)
	}
	w.SetSummarizer(func() Summary { return numbered(1) })
	for w.Bytes() < 64<<20 {
		for i := range records {
			if err := w.Append(&records[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Flush(), w.file.Close()); err != nil { // no footer
		b.Fatal(err)
	}
	r := opened(b, path)
	b.ReportAllocs()
	b.SetBytes(r.Size())
	for b.Loop() {
		if blocks, err := r.Blocks(); err != nil || len(blocks) == 0 {
			b.Fatal(err)
		}
	}
}
