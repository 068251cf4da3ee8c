package watch

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestSetupReadsLimits(t *testing.T) {
	p, err := NewSetup(&SetupOptions{
		PolicyChoice: PolicyChoice{Policy: allocator.Default, Set: []string{"max_age=1m,max_waste_ratio=1.5", "min_block=64k"}, MaxCached: "512MiB"},
		Tags:         "stack", Depth: 8, Scrub: "poison", DeviceMemory: "1.5 GiB",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"max_cached_bytes": 512 << 20, "max_waste_ratio": 1.5, "min_block": 64 << 10}
	for _, l := range p.Policy.Limits() {
		if value, set := want[l.Name]; set && l.Value != value {
			t.Errorf("%s is %v, want %v", l.Name, l.Value, value)
		}
	}
	config := p.WireConfig(true, false)
	if !config.Pooling || config.Wait != recordingPatience || config.Tags != wire.TagsStack ||
		config.Limits != "max_age=60,max_waste_ratio=1.5,min_block=65536,max_cached_bytes=536870912" {
		t.Errorf("config %+v", config)
	}
	if config.Scrub != wire.ScrubPoison || config.DeviceMemory != 3<<29 {
		t.Errorf("scrub %s, %d bytes of device memory", config.Scrub, config.DeviceMemory)
	}
	if live := p.WireConfig(false, true); live.Uses != wire.UsesAsked || config.Uses != wire.UsesAlways || p.WireConfig(false, false).Uses != wire.UsesNever {
		t.Error("uses are written for a recording, and only then")
	}
}

// TestNamelessFiles: each line about names that have no room counts.
func TestNamelessFiles(t *testing.T) {
	s, err := NewSetup(&SetupOptions{PolicyChoice: PolicyChoice{Policy: "none"}, Tags: "stack", Depth: 8, Scrub: "none"})
	if err != nil {
		t.Fatal(err)
	}
	subject := &Subject{Setup: s}
	names, model := s.namingOptions(&console.Notes{}), subject.ModelOptions()
	names.Say("a")
	names.Say("b")
	if n := model.Nameless(); n != 2 {
		t.Errorf("%d files", n)
	}
}

func TestMemoryBudget(t *testing.T) {
	for text, want := range map[string]int64{"": 512 << 20, "128MiB": 128 << 20, "2G": 2 << 30, "127MiB": 0, "much": 0, "15EiB": 0} {
		s, err := NewSetup(&SetupOptions{PolicyChoice: PolicyChoice{Policy: "none"}, Tags: "stack", Depth: 8, Scrub: "none", MemoryBudget: text})
		if (err == nil) != (want > 0) || err == nil && (s.Budget != want || int64(s.maxHeapEntries())*entryBytes > want/2) {
			t.Errorf("%q: %v, %+v", text, err, s)
		}
	}
}
