package recording

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// stock returns whole recordings to make others of, and where their frames begin, the header's first.
func stock(t testing.TB) (files [][]byte, frames [][]int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stock.gmt")
	mixed := sample(60)
	for i := range mixed {
		if i%4 == 0 {
			mixed[i].Kind, mixed[i].Payload = wire.Kind(1+i/4%9), nil
			if mixed[i].Kind.HasPayload() {
				mixed[i].Payload = []byte("a name")
			}
		}
	}
	summarized(t, path, Header{Program: "one"}, mixed, 13)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, data)
	write(t, path, sample(30), 10)
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	files = append(files, data)
	for _, name := range []string{"testdata/version1.gmt", "testdata/version2.gmt", "testdata/version3.gmt"} {
		if data, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
		files = append(files, data)
	}
	for _, data := range files {
		places := []int{len(fileMagic)}
		for at := len(fileMagic); at < len(data); {
			at += headSize + int(binary.LittleEndian.Uint32(data[at+8:]))
			places = append(places, at)
		}
		frames = append(frames, places)
	}
	return files, frames
}

// assemble makes a file by a recipe: of each four bytes the first says what to do.
func assemble(recipe []byte, files [][]byte, frames [][]int) []byte {
	if len(recipe) == 0 {
		return nil
	}
	base := int(recipe[0]) % len(files)
	data := slices.Clone(files[base][:frames[base][1]])
	for recipe = recipe[1:]; len(recipe) >= 4; recipe = recipe[4:] {
		a, b := int(recipe[1])%len(files), int(recipe[2])|int(recipe[3])<<8
		switch recipe[0] % 5 {
		case 0: // a frame of any recording
			k := b % (len(frames[a]) - 1)
			data = append(data, files[a][frames[a][k]:frames[a][k+1]]...)
		case 1: // all frames behind the header
			data = append(data, files[a][frames[a][1]:]...)
		case 2: // a flipped bit
			data[b%len(data)] ^= 1 << (recipe[1] % 8)
		case 3: // a cut
			data = data[:len(data)-b%(len(data)-frames[base][1]+1)]
		case 4: // a head that promises too much
			var head [headSize]byte
			h := frameHead{kind: frameType(recipe[1] % 6), packed: maxFramePacked - uint32(b), raw: maxFrameRaw, events: 1<<32 - 1}
			h.encode(&head, nil)
			data = append(data, head[:]...)
		}
	}
	return data
}

// FuzzReader reads what was cut, damaged and put together of several recordings: never a panic, and all ways of reading
// tell the same.
func FuzzReader(f *testing.F) {
	files, frames := stock(f)
	for base := range byte(len(files)) {
		f.Add([]byte{base, 1, base, 0, 0})
		f.Add([]byte{base, 1, base, 0, 0, 3, 0, 30, 0})
		f.Add([]byte{base, 0, base, 2, 0, 0, 0, 1, 0, 2, 3, 200, 1, 4, 2, 9, 0, 1, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, recipe []byte) {
		data := assemble(recipe, files, frames)
		if len(data) > 1<<20 {
			return
		}
		path := filepath.Join(t.TempDir(), "a.gmt")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Open(path); err == nil {
			defer func() { _ = r.Close() }()
			checkReader(t, r)
		}
	})
}

// checkReader compares all ways of reading a file, whatever its state.
func checkReader(t *testing.T, r *Reader) {
	t.Helper()
	records := readAll(t, r)
	damage := r.Damage()
	defined := definitions(t, r)
	blocks, err := r.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.LostAtEnd(); err != nil {
		t.Fatal(err)
	}
	if err := r.Rewind(); err != nil {
		t.Fatal(err)
	}
	if again := readAll(t, r); !same(records, again) || r.Damage() != damage {
		t.Fatalf("%d events, damage %q; then %d events, damage %q", len(records), damage, len(again), r.Damage())
	}
	var events, last uint64
	for _, b := range blocks {
		events, last = events+b.Events, max(last, b.LastNS)
	}
	// Definitions of a frame of events that is not there are worth having.
	if damage == "" && (events != uint64(len(records)) || len(defined) < len(defining(records))) {
		t.Fatalf("%d events and %d definitions, but %d events in the blocks and %d definitions", len(records), len(defining(records)), events, len(defined))
	}
	for _, ns := range []uint64{0, last / 2, last, last + 1} {
		if err := r.SeekTime(ns); err != nil {
			t.Fatal(err)
		}
		if behind := readAll(t, r); len(behind) > len(records) || !same(records[len(records)-len(behind):], behind) {
			t.Fatalf("from %d on there are %d events that are not the last of %d", ns, len(behind), len(records))
		}
	}
}

// TestHeadThatPromisesTooMuch: lengths are not believed before the file is known to be that long.
func TestHeadThatPromisesTooMuch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	write(t, path, sample(10), 0)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []frameType{frameEvents, frameFooter, frameDefinitions, 99} {
		var head [headSize]byte
		h := frameHead{kind: kind, packed: maxFramePacked, raw: maxFrameRaw, events: 1<<32 - 1}
		h.encode(&head, nil)
		if err := os.WriteFile(path, append(slices.Clone(data), head[:]...), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var rec wire.Record
		for err == nil {
			err = r.Next(&rec)
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		definitions(t, r)
		if _, err := r.Blocks(); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
			t.Errorf("type %d: %d bytes were allocated for a file of %d", kind, took, len(data)+headSize)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
