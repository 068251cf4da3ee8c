package report

import (
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// TestPolicy names the lower of both limits on what is cached.
func TestPolicy(t *testing.T) {
	s := &stats.Snapshot{Policy: "pow2", Device: stats.Device{Global: 512 << 20}, Limits: []stats.Limit{
		{Name: "max_cached_bytes", Value: 512 << 20}, {Name: "max_cached_fraction", Value: 0.25},
	}}
	if got, want := policyText(s), "pow2, at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Change.Former = []string{"futhark", "slab"}
	if got, want := policyText(s), "pow2 (before that futhark, slab), at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Auto = &stats.Auto{Steers: true}
	if got, want := policyText(s), "auto: pow2 (before that futhark, slab), at most 128.0 MiB cached"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s.Auto.Steers = false; strings.Contains(policyText(s), "auto") {
		t.Errorf("%q, but the policy was changed", policyText(s))
	}
	carves := &stats.Snapshot{Policy: "slab", WholeBlocks: "why"}
	if got, want := policyText(carves), "slab; no sub-allocations: why"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if carves.Policy = "futhark"; policyText(carves) != "futhark" {
		t.Errorf("%q, but futhark makes none", policyText(carves))
	}
	if got := policyText(&stats.Snapshot{}); got != "unknown" {
		t.Errorf("%q", got)
	}
}

func TestHosted(t *testing.T) {
	s := NewSummary(&stats.Snapshot{Hosted: stats.Part{Buffers: 2, Bytes: 3 << 20}})
	want := "  hosted     2 creates (3.00 MiB) got the host's memory, which is slower: the device lacked what the pool wasted"
	if lines := s.concluding(nil, nil); !slices.Contains(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	if s = NewSummary(&stats.Snapshot{}); s.Hosted != nil {
		t.Errorf("%+v", s.Hosted)
	}
}

func TestEnded(t *testing.T) {
	for want, p := range map[string]stats.Process{
		"running": {}, "signal 9": {State: stats.Signaled, Status: 9}, "status 7": {State: stats.Exited, Status: 7},
		"exited": {State: stats.Exited, Status: -1, Orderly: true}, "unknown": {State: stats.Exited, Status: -1},
	} {
		if got := endedText(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTouchesText(t *testing.T) {
	for want, touches := range map[string]stats.Touches{
		"first touches unknown (see gpumemtop compare)":                                                 {Fresh: 1},
		"~2ms in first touches (by 3 new and 4 reused first writes in this run)":                        {NS: 2e6, Hits: 9, Fresh: 3, Reused: 4},
		"~0s in first touches (by 3 new and 4 reused first writes in this run, of the sizes of 5 hits)": {Hits: 5, Fresh: 3, Reused: 4},
		"~2ms in first touches (by the probe of a card)":                                                {NS: 2e6, Hits: 9, Device: "a card"},
	} {
		if got := touchesText(&stats.Totals{Hits: 9, SavedTouches: touches}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSavedText(t *testing.T) {
	for want, totals := range map[string]stats.Totals{
		"4 creates, 0 avoided":                          {DriverCreates: 4},
		"9 avoided: saving in driver calls unknown":     {Hits: 9},
		"~1ms saved in driver calls (an estimate)":      {Hits: 9, SavedNS: 1e6, SavedKnown: true},
		"no saving shown in driver calls (an estimate)": {Hits: 9, SavedKnown: true},
	} {
		if got := driverText(&totals); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
