package lab

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// sing plays a source through a chorus of all policies, in batches of a size, leaving out what it need not hear.
func sing(t *testing.T, src trace.Source, batch int, o ReplayOptions) *Chorus {
	t.Helper()
	if err := src.Rewind(); err != nil {
		t.Fatal(err)
	}
	c := NewChorus()
	for _, name := range allocator.Names() {
		o.Policy = name
		if _, err := c.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	var record wire.Record
	for n := 1; ; n++ {
		err := src.Next(&record)
		if err == nil && Hears(&record.Event) { // a listener is given no others
			c.Read(&record)
		}
		if err != nil || n%batch == 0 {
			for voice := range allocator.Names() {
				if err := c.Play(voice); err != nil {
					t.Fatal(err)
				}
			}
			c.Clear()
		}
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestChorusGivesWhatReplayGives compares every voice with a replay of its own.
func TestChorusGivesWhatReplayGives(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gmt")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	device := cost.Device{Create: cost.Line{A: 100, B: 1}, Release: cost.Line{A: 7}, Part: cost.Line{A: 3}}
	for _, file := range files {
		reader, err := trace.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []ReplayOptions{{}, {Capacity: 2 << 20}} {
			for _, batch := range []int{1, 64, 1 << 30} {
				c := sing(t, reader, batch, o)
				for voice, name := range allocator.Names() {
					o.Policy, o.Device = name, device
					if err := reader.Rewind(); err != nil {
						t.Fatal(err)
					}
					want, err := Replay(reader, o)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(*want, c.Result(voice, device)); diff != "" {
						t.Errorf("%s, %s, batches of %d: %s", file, name, batch, diff)
					}
				}
			}
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVoicesComeAndGo adds one late, which has none of the buffers that are there, and removes another.
func TestVoicesComeAndGo(t *testing.T) {
	story := newTape()
	c := NewChorus()
	first, err := c.Add(ReplayOptions{Policy: "futhark"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(ReplayOptions{Policy: "futrak"}); err == nil {
		t.Error("an unknown policy takes part")
	}
	read := func() {
		for i := range story.records {
			c.Read(&story.records[i])
		}
		story.records = story.records[:0]
	}
	for n := range uint64(5) {
		story.create(n+1, 4096)
	}
	read()
	if err := c.Play(first); err != nil {
		t.Fatal(err)
	}
	if c.Events() != 5 || c.Bytes() == 0 || c.Reserved(first) != 5*4096 {
		t.Errorf("%d events, %d bytes kept, %d reserved", c.Events(), c.Bytes(), c.Reserved(first))
	}
	c.Clear()
	late, err := c.Add(ReplayOptions{Policy: "futhark"})
	if err != nil {
		t.Fatal(err)
	}
	c.Remove(first)
	for n := range uint64(5) {
		story.release(n+1, wire.OutcomeCached, 0)
	}
	story.create(6, 4096)
	story.release(6, wire.OutcomeCached, 0)
	story.create(7, 4096)
	read()
	if err := c.Play(late); err != nil {
		t.Fatal(err)
	}
	if r := c.Result(late, cost.Device{}); r.Hits != 1 || r.Misses != 1 || r.PeakReserved != 4096 {
		t.Errorf("%+v", r)
	}
}
