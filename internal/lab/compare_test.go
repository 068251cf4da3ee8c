package lab

import (
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recorded returns the options under which a recording was made. Some have limits that their policy no longer has.
func recorded(h trace.Header) ReplayOptions {
	o := ReplayOptions{Policy: h.Policy, Capacity: h.DeviceMemory}
	description, _ := allocator.Describe(h.Policy)
	for _, l := range description.Limits {
		if value, there := h.Limits[l.Name]; there {
			o.Settings = append(o.Settings, allocator.Setting{Name: l.Name, Value: value})
		}
	}
	return o
}

// TestDecidesAsRecorded compares each decision.
func TestDecidesAsRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gmt")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		reader, err := trace.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Compare(reader, recorded(reader.Header()))
		if err != nil {
			t.Fatal(err)
		}
		if !c.Exact() || c.Requests == 0 || c.First != "" {
			t.Errorf("%s: %+v", file, c)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCompareFindsDifferences changes one record at a time.
func TestCompareFindsDifferences(t *testing.T) {
	story := func() *tape {
		s := newTape()
		s.create(1, 4096)
		s.records[len(s.records)-1].Reason = uint8(wire.MissCold)
		s.release(1, wire.OutcomeCached, 0)
		s.create(2, 4096)
		s.records[len(s.records)-1].Outcome = wire.OutcomeHit
		s.release(2, wire.OutcomeRefused, 0)
		s.add(wire.Event{Kind: wire.KindEvict, Link: 2, Granted: 4096, Reason: uint8(wire.EvictState)})
		return s
	}
	const first, second, evict = 2, 4, 6
	for want, change := range map[string]func(s *tape){
		"":                               func(*tape) {},
		"request 2 was a miss (none)":    func(s *tape) { s.records[second].Outcome = wire.OutcomeMiss },
		"request 1 was a miss (drained)": func(s *tape) { s.records[first].Reason = uint8(wire.MissDrained) },
		"request 1 was a miss (cold), a block of 8192":               func(s *tape) { s.records[first].Granted = 8192 },
		"request 1 was a miss (cold), a part of":                     func(s *tape) { s.records[first].Flags = wire.FlagPart },
		"eviction was of 4097 bytes (state)":                         func(s *tape) { s.records[evict].Granted++ },
		"evictions that were recorded and are none here: 1":          func(s *tape) { s.records[evict].Reason = uint8(wire.EvictLimit) },
		"at 3000 ns: the request 1 was a miss (cold), a block of 1 ": func(s *tape) { s.records[first].Granted = 1 },
	} {
		s := story()
		change(s)
		c, err := Compare(s, ReplayOptions{Policy: "futhark"})
		if err != nil {
			t.Fatal(err)
		}
		if c.Exact() != (want == "") || !strings.Contains(c.First, want) || c.Requests != 2 {
			t.Errorf("want %q: %+v", want, c)
		}
	}
}
