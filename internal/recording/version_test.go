package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestEarlierVersionsAreRead reads recordings that the last gpumemtop of each version wrote. In version 1 SLAB and GAUGE were
// unknown kinds, which shared their last values with NONE, and a status had 32 bits.
func TestEarlierVersionsAreRead(t *testing.T) {
	one := []wire.Kind{10, 21, 12, 22, 300, 1, 0, 16, 18}
	two := []wire.Kind{1, 3, 10, 21, 12, 22, 300, 5, 0, 9, 18}
	four := []wire.Kind{1, 3, 10, 13, 21, 12, 13, 22, 300, 5, 0, 9, 18}
	for _, want := range []struct {
		header  Header
		records []wire.Record
		footer  Footer // without the index
		blocks  int
	}{
		{Header{
			Version: 1, Program: "blur", Arguments: []string{"4096"}, Policy: "futhark", Created: time.Unix(1, 0).UTC(), ClockNS: 1_000_000,
			Host: "somewhere", Tags: "stack", Limits: Limits{"max_cached_bytes": "4294967296", "max_waste_ratio": "2", "min_block": "4096"},
		}, written(one, -100_000, 1), Footer{Status: 3, Events: 360, EndedNS: 2_000_000}, 3},
		{Header{
			Version: 2, Program: "blur", Arguments: []string{"4096"}, Policy: "slab", Created: time.Unix(2, 0).UTC(), ClockNS: 1_000_000,
			Host: "somewhere", Tags: "stack", Limits: Limits{"min_block": "4096", "drain_order": "all"}, Scrub: "poison", DeviceMemory: 1 << 30,
		}, written(two, -800, 3), Footer{Status: 3, Events: 440, EndedNS: 2_000_000}, 5},
		{Header{
			Version: 3, Program: "blur", Arguments: []string{"4096"}, Policy: "slab", Created: time.Unix(3, 0).UTC(), ClockNS: 1_000_000,
			Host: "somewhere", Tags: "stack", Limits: Limits{"min_block": "4096"}, Environment: map[string]string{"POCL_DEVICES": "cpu"},
		}, written(two, -800, 3), Footer{Status: -1, Signal: 9, Events: 440, EndedNS: 2_000_000}, 5},
		{Header{
			Version: 4, Program: "blur", Arguments: []string{"4096"}, Policy: "slab", Created: time.Unix(4, 0).UTC(), ClockNS: 1_000_000,
			Host: "somewhere", Tags: "stack", Limits: Limits{"min_block": "4096"},
		}, written(four, -800, 3), Footer{Status: 3, Events: 520, EndedNS: 2_000_000}, 5},
	} {
		r := opened(t, fmt.Sprintf("testdata/version%d.gmt", want.header.Version))
		if diff := cmp.Diff(want.header, r.Header()); diff != "" {
			t.Errorf("header (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want.records, readAll(t, r)); diff != "" {
			t.Errorf("version %d: records (-written +read):\n%s", want.header.Version, diff)
		}
		f, whole := r.Footer()
		f.Index = nil
		if diff := cmp.Diff(want.footer, f); diff != "" || !whole || r.Damage() != "" {
			t.Errorf("footer (-want +got), damage %q:\n%s", r.Damage(), diff)
		}
		checkOverview(t, r, want.records)
		blocks, err := r.Blocks()
		if err != nil || len(blocks) != want.blocks {
			t.Errorf("version %d: %d blocks, %v, want %d", want.header.Version, len(blocks), err, want.blocks)
		}
		for i := range blocks {
			if b := &blocks[i]; b.HasSummary != (want.header.Version >= 3) || b.HasSummary && b.Summary != numbered(uint64(i+1)) {
				t.Errorf("version %d, block %d: summary %+v", want.header.Version, i, b)
			}
		}
	}
}

// written returns what was written into a file in testdata.
func written(kinds []wire.Kind, status int, accesses uint64) []wire.Record {
	var records []wire.Record
	for n := range uint64(40) {
		for i, kind := range kinds {
			r := wire.Record{Process: 1 + uint32(n%2), Thread: 100, Event: wire.Event{
				Time: 1_000_000 + n*1000 + uint64(i), Kind: kind, Op: uint8(n / 8), Outcome: wire.Outcome(n % 5), Reason: uint8(n / 16),
				Flags: uint8(i), Scope: 3, Status: int16(max(-32768, int(n)*status)), Access: uint16(n % accesses), Tag: uint32(n / 4), Object: n + 1,
				Size: 4096 * (n / 2), Granted: 4096 * (n / 3), Link: n / 5, Duration: uint32(n), Cost: uint32(i),
			}}
			if kind.HasPayload() {
				r.Payload = []byte{byte(n), byte(i), 0}
			}
			records = append(records, r)
		}
	}
	return records
}

// TestUpgrade: uses of earlier versions say that they do not know where they were, and whose copy it was.
func TestUpgrade(t *testing.T) {
	use := func(op wire.Command, e wire.Event) wire.Record {
		e.Kind, e.Op, e.Size, e.Link = wire.KindUse, uint8(op), 64, 1
		return wire.Record{Process: 1, Event: e}
	}
	records := []wire.Record{
		use(wire.CommandKernel, wire.Event{Granted: 7, Tag: 3, Flags: wire.FlagReads}),
		use(wire.CommandNative, wire.Event{Tag: 3}),
		use(wire.CommandRead, wire.Event{Tag: 3, Flags: wire.FlagReads}),
		use(wire.CommandCopy, wire.Event{Tag: 3, Flags: wire.FlagReads}),
		{Process: 1, Event: wire.Event{Kind: wire.KindCreate, Op: uint8(wire.CommandCopy), Tag: 3, Granted: 9}},
	}
	want := slices.Clone(records)
	want[2].Flags |= wire.FlagScattered
	want[3].Flags |= wire.FlagScattered
	want[3].Tag = 0
	for version := 1; version <= Version; version++ {
		path := filepath.Join(t.TempDir(), "a.gmt")
		w, err := Create(path, Header{}, false)
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			if err := w.Append(&records[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(Footer{}); err != nil {
			t.Fatal(err)
		}
		r := opened(t, path)
		r.header.Version = version // these records are coded alike in all of them
		expected := want
		if version == Version {
			expected = records
		}
		if diff := cmp.Diff(expected, readAll(t, r)); diff != "" {
			t.Errorf("version %d (-want +got):\n%s", version, diff)
		}
	}
}

func TestLimitsAsJSON(t *testing.T) {
	limits := Limits{"a": "4294967296", "b": "0.25", "c": "oldest-first", "d": "1024:4096", "e": "on", "f": "", "g": "0x10", "h": "1e999"}
	data, err := json.Marshal(limits)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"a":4294967296,"b":0.25,"c":"oldest-first","d":"1024:4096","e":"on","f":"","g":"0x10","h":"1e999"}`; string(data) != want {
		t.Errorf("got %s\nwant %s", data, want)
	}
	var back Limits
	if err := json.Unmarshal(data, &back); err != nil || cmp.Diff(limits, back) != "" {
		t.Errorf("back %v, %v", back, err)
	}
	if json.Unmarshal([]byte(`{"a":[]}`), &back) == nil {
		t.Error("a list was taken as a limit")
	}
}

// TestLaterVersionIsToldFromNoRecording whatever else its header says.
func TestLaterVersionIsToldFromNoRecording(t *testing.T) {
	for header, want := range map[string]error{
		`{"version":5}`: ErrVersion,
		`{"arguments":"all in one","limits":["a"],"version":5,"clock_ns":-1}`: ErrVersion,
		`{"version":0}`:                ErrNotRecording,
		`{"version":-1}`:               ErrNotRecording,
		`{"version":"four"}`:           ErrNotRecording,
		`{"version":4,"limits":["a"]}`: ErrNotRecording,
		`[]`:                           ErrNotRecording,
	} {
		path := filepath.Join(t.TempDir(), "a.gmt")
		w, err := Create(path, Header{}, false)
		if err != nil {
			t.Fatal(err)
		}
		restart(t, w, path, 0)
		w.writeInOneCall(fileMagic[:])
		writeRaw(w, frameHead{kind: frameHeader}, appendUncompressedFrame([]byte(header), nil), len(header))
		if err := w.Close(Footer{}); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", header, err, want)
		}
	}
}

// TestDamageAllOver: the description is bounded.
func TestDamageAllOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gmt")
	w, err := Create(path, Header{}, false)
	if err != nil {
		t.Fatal(err)
	}
	w.writeInOneCall(bytes.Repeat(frameMagic[:], 100_000))
	if err := w.Close(Footer{}); err != nil {
		t.Fatal(err)
	}
	r := opened(t, path)
	if got := readAll(t, r); len(got) != 0 || len(r.Damage()) > 2*damageMax || !strings.HasSuffix(r.Damage(), moreDamage) {
		t.Errorf("%d events, %d bytes about the damage", len(got), len(r.Damage()))
	}
}
