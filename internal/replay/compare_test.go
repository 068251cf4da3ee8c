package replay

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// recorded returns the options under which a recording was made. Some have limits that their policy no longer has.
func recorded(h recording.Header) Options {
	o := Options{Policy: h.Policy, Capacity: h.DeviceMemory}
	description, _ := allocator.DescribePolicy(h.Policy)
	for _, l := range description.Limits {
		if value, there := allocator.RecordedLimit(h.Limits, l.Name); there {
			o.Settings = append(o.Settings, allocator.Setting{Name: l.Name, Value: value})
		}
	}
	return o
}

// TestDecidesAsRecorded compares each decision.
func TestDecidesAsRecorded(t *testing.T) {
	for file, reader := range labtest.Recordings(t, "testdata") {
		c, err := CompareDecisions(reader, recorded(reader.Header()))
		if err != nil {
			t.Fatal(err)
		}
		if !c.IsExact() || c.Requests == 0 || c.First != "" {
			t.Errorf("%s: %+v", file, c)
		}
	}
}

// TestCompareFindsDifferences changes one record at a time.
func TestCompareFindsDifferences(t *testing.T) {
	story := func() *labtest.Tape {
		s := labtest.NewTape()
		s.AddServedCreate(1, 1, wire.OutcomeMiss, wire.MissCold)
		s.AddRelease(1, wire.OutcomeCached)
		s.AddServedCreate(2, 2, wire.OutcomeHit, wire.MissNone)
		s.AddRelease(2, wire.OutcomeRefused)
		s.AddEvict(2, 4096, wire.EvictState)
		return s
	}
	const first, second, evict = 2, 4, 6
	for want, change := range map[string]func([]wire.Record){
		"":                               func([]wire.Record) {},
		"request 2 was a miss (none)":    func(s []wire.Record) { s[second].Outcome = wire.OutcomeMiss },
		"request 1 was a miss (drained)": func(s []wire.Record) { s[first].Reason = uint8(wire.MissDrained) },
		"request 1 was a miss (cold), a block of 8192":                          func(s []wire.Record) { s[first].Granted = 8192 },
		"request 1 was a miss (cold), a part of":                                func(s []wire.Record) { s[first].Flags = wire.FlagSubAlloc },
		"eviction was of 4097 bytes (state)":                                    func(s []wire.Record) { s[evict].Granted++ },
		"evictions that were recorded and are none here: 1":                     func(s []wire.Record) { s[evict].Reason = uint8(wire.EvictLimit) },
		"process 1, at 3000 ns: the request 1 was a miss (cold), a block of 1 ": func(s []wire.Record) { s[first].Granted = 1 },
	} {
		s := story()
		change(s.Records)
		c, err := CompareDecisions(s, Options{Policy: "futhark"})
		if err != nil {
			t.Fatal(err)
		}
		if c.IsExact() != (want == "") || !strings.Contains(c.First, want) || c.Requests != 2 {
			t.Errorf("want %q: %+v", want, c)
		}
	}
}
