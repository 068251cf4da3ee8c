package recording

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestHeadBounds: a head has all its bytes, and promises no more than a reader takes.
func TestHeadBounds(t *testing.T) {
	for _, c := range []struct {
		packed, raw uint32
		size        int
		want        bool
	}{
		{maxFramePacked, maxFrameRaw, headSize, true}, {maxFramePacked + 1, 0, headSize, false}, {0, maxFrameRaw + 1, headSize, false},
		{0, 0, headSize - 1, false},
	} {
		var b [headSize]byte
		(&frameHead{kind: frameEvents, packed: c.packed, raw: c.raw}).encode(&b, nil)
		var head frameHead
		if got := head.decode(b[:c.size]); got != c.want || got && (!head.sound || head.frameBytes() != headSize+int64(c.packed)) {
			t.Errorf("%+v: %v, %+v", c, got, head)
		}
	}
}

// TestSummaryBounds: a summary may be longer than this version's, up to a bound, and must be whole.
func TestSummaryBounds(t *testing.T) {
	for length, want := range map[int]bool{summarySize - 1: false, summarySize: true, summarySize + 1: true, summaryMax: true, summaryMax + 1: false} {
		s := numbered(3)
		b := append(s.appendFrame(nil), make([]byte, summaryMax)...)[:length+1]
		binary.LittleEndian.PutUint32(b[4:], uint32(length-skippableHead))
		binary.LittleEndian.PutUint32(b[skippableHead:], crc32.Checksum(b[skippableHead+4:length], castagnoli))
		var got Summary
		if got.decode(b) != want || got.decode(b[:length]) != want || want && got != s || got.decode(b[:length-1]) {
			t.Errorf("%d bytes: %+v, want %v", length, got, want)
		}
	}
}

// TestIndexThatFits changes a footer's index: it is believed only where frames of events are where it says.
func TestIndexThatFits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	summarized(t, path, Header{}, sample(10*looksMost), 5)
	r := opened(t, path)
	for name, change := range map[string]func([]IndexEntry) []IndexEntry{
		"fits": func(x []IndexEntry) []IndexEntry { return x },
		"fits, joined": func(x []IndexEntry) []IndexEntry {
			x[0].joinNext(&x[1])
			return slices.Delete(x, 1, 2)
		},
		"swapped":      func(x []IndexEntry) []IndexEntry { x[2], x[4] = x[4], x[2]; return x },
		"twice":        func(x []IndexEntry) []IndexEntry { x[2].Events = 0; return slices.Insert(x, 3, x[3]) },
		"no frames":    func(x []IndexEntry) []IndexEntry { x[2].Frames = 0; return x },
		"moved":        func(x []IndexEntry) []IndexEntry { x[3].Offset++; return x },
		"last moved":   func(x []IndexEntry) []IndexEntry { x[len(x)-1].Offset++; return x },
		"no events":    func(x []IndexEntry) []IndexEntry { x[len(x)-1].Offset = lastFrame(t, path); return x },
		"at the end":   func(x []IndexEntry) []IndexEntry { x[len(x)-1].Offset = r.size; return x },
		"too few":      func(x []IndexEntry) []IndexEntry { x[3].Events, x[4].Events = 4, 6; return x },
		"others' sum":  func(x []IndexEntry) []IndexEntry { x[3].Events++; return x },
		"not the last": func(x []IndexEntry) []IndexEntry { return x[:len(x)-1] },
	} {
		if got := r.indexIfMatchingFile(change(slices.Clone(r.index))); (got != nil) != strings.HasPrefix(name, "fits") {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
	summarized(t, path, Header{}, sample(indexMax)[:indexMax], 1)
	if full := opened(t, path); len(full.index) != indexMax {
		t.Errorf("%d entries of a full index", len(full.index))
	}
}

// TestDamageOfAnyLength: what comes after damage is found where a walk's window ends, too.
func TestDamageOfAnyLength(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	records := sample(10)
	for length := windowSize - headSize - 8; length < windowSize+8; length++ {
		w, err := Create(path, Header{}, true)
		if err != nil {
			t.Fatal(err)
		}
		w.writeInOneCall(bytes.Repeat(frameMagic[:1], length))
		for i := range records {
			if err := w.Append(&records[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(Footer{}); err != nil {
			t.Fatal(err)
		}
		r := opened(t, path)
		index, err := r.buildIndex()
		if got := readAll(t, r); !same(got, records) || r.Damage() != fmt.Sprintf("%d bytes behind frame 0 are damaged", length) || len(index) != 1 || err != nil {
			t.Fatalf("%d bytes: %d records, damage %q, index %+v, %v", length, len(got), r.Damage(), index, err)
		}
	}
}

// TestSeeksToTheFrame: the latest time of a frame leads to it, a later one to the next frame, by a footer or by heads.
func TestSeeksToTheFrame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	summarized(t, path, Header{}, sample(100), 10)
	for range 2 {
		r := opened(t, path)
		blocks, err := r.Blocks()
		if err != nil || len(blocks) != 10 {
			t.Fatalf("%d blocks, %v", len(blocks), err)
		}
		for i, b := range blocks {
			if err := r.SeekTime(b.LastNS); err != nil || r.Offset() != b.Offset || r.frames != i || r.leapt != (i > 0) {
				t.Errorf("the end of block %d at %d leads to frame %d at %d, %v", i, b.Offset, r.frames, r.Offset(), err)
			}
			if err := r.SeekTime(b.LastNS + 1); err != nil || r.frames != i+1 || i < 9 && r.Offset() != blocks[i+1].Offset {
				t.Errorf("after block %d frame %d at %d, %v", i, r.frames, r.Offset(), err)
			}
		}
		if err := os.Truncate(path, lastFrame(t, path)); err != nil && r.footer != nil {
			t.Fatal(err)
		}
	}
}

// TestFramesAreCut: a frame holds at most a number of events and of bytes.
func TestFramesAreCut(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "a.gmt"), Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	append1 := func(r *wire.Record) (cut bool) {
		t.Helper()
		before := w.Bytes()
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
		return w.Bytes() != before
	}
	for i := 1; i <= cutEvents; i++ {
		if cut := append1(&wire.Record{Event: wire.Event{Kind: wire.KindUse}}); cut != (i == cutEvents) {
			t.Fatalf("%d events: written is %v", i, cut)
		}
	}
	module := wire.Record{Event: wire.Event{Kind: wire.KindModule}, Payload: make([]byte, 1000)}
	append1(&module)
	first := len(w.events.raw)
	append1(&module)
	each := len(w.events.raw) - first
	for left := cutRaw - len(w.events.raw); left > 0; left = cutRaw - len(w.events.raw) {
		if left < 2*each {
			module.Payload = make([]byte, 1000+left-each) // the last, up to the bound
		}
		if cut := append1(&module); cut != (left < 2*each) {
			t.Fatalf("%d bytes before a record: written is %v", left, cut)
		} else if cut {
			break
		}
	}
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
}

// TestLogKeepsRecords in memory, in order.
func TestLogKeepsRecords(t *testing.T) {
	var l Log
	if err := l.EachRecord(func(*wire.Record) error { return errors.New("a record of none") }); err != nil || l.Bytes() != 0 {
		t.Errorf("an empty log has %d bytes, %v", l.Bytes(), err)
	}
	records := sample(30_000)
	bytesOf := func() (sum int) {
		for _, f := range l.frames {
			sum += len(f.packed)
		}
		return sum + len(l.open.raw)
	}
	for i := range records {
		if l.Append(&records[i]); l.Bytes() != bytesOf() || len(l.open.raw) >= logRaw {
			t.Fatalf("%d bytes, %d of them packed or open", l.Bytes(), bytesOf())
		}
	}
	var got []wire.Record
	if err := l.EachRecord(func(r *wire.Record) error { got = append(got, *r); return nil }); err != nil || !same(got, records) || len(l.frames) < 2 {
		t.Errorf("%d records of %d in %d frames, %v", len(got), len(records), len(l.frames), err)
	}
	enough, calls := errors.New("enough"), 0
	if err := l.EachRecord(func(*wire.Record) error { calls++; return enough }); !errors.Is(err, enough) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestGoesOn: what sources say of their ends.
func TestGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	for _, cut := range []bool{false, true} {
		w, err := Create(path, Header{}, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(Footer{Cut: cut}); err != nil {
			t.Fatal(err)
		}
		r := opened(t, path)
		if readAll(t, r); RunGoesOn(r) != cut || DamageOf(r) != "" || RunGoesOn(struct{ Source }{r}) || DamageOf(struct{ Source }{r}) != "" {
			t.Errorf("cut %v: goes on %v, damage %q", cut, RunGoesOn(r), DamageOf(r))
		}
	}
	if err := os.Truncate(path, lastFrame(t, path)); err != nil {
		t.Fatal(err)
	}
	if r := opened(t, path); len(readAll(t, r)) != 0 || !RunGoesOn(r) || DamageOf(r) == "" {
		t.Errorf("without a footer: goes on %v, damage %q", RunGoesOn(r), DamageOf(r))
	}
}
