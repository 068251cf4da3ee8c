package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// values are some that limits take, in the allocator's form.
var values = map[allocator.Kind]string{
	allocator.Number: "1.25", allocator.Count: "3", allocator.Bytes: "12288", allocator.Seconds: "0.25", allocator.Sizes: "1024:12288:65537",
}

// TestConfigurationIsReadAgain writes each limit of each policy, and reads it as flags are read.
func TestConfigurationIsReadAgain(t *testing.T) {
	for _, policy := range allocator.Names() {
		d, _ := allocator.Describe(policy)
		for i := range d.Limits {
			l := &d.Limits[i]
			value := values[l.Kind]
			if l.Choices != nil {
				value = l.Choices[0]
			}
			if l.Max == 1 && l.Kind == allocator.Number {
				value = "0.75"
			}
			if l.Name == "page_bytes" {
				value = "8192"
			}
			checkReadAgain(t, lab.Configuration{Policy: policy, Settings: []allocator.Setting{{Name: l.Name, Value: value}}})
		}
		checkReadAgain(t, lab.Configuration{Policy: policy})
	}
}

func checkReadAgain(t *testing.T, want lab.Configuration) {
	t.Helper()
	point := tune.Point{Configuration: want}
	tuner := tuner{config: defaults(), what: "a\nb \"c\".gmt", result: &tune.Result{Recommended: &point}}
	var text bytes.Buffer
	if err := tuner.writeConfiguration(&text); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Policy string            `toml:"policy"`
		Set    map[string]string `toml:"set"`
	}
	meta, err := toml.Decode(text.String(), &file)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatalf("%s\n%v, %v", text.String(), err, meta.Undecoded())
	}
	c := defaults()
	c.policy = file.Policy
	for name, value := range file.Set {
		c.limits = append(c.limits, name+"="+value)
	}
	got, err := parseLimits(c)
	if err != nil {
		t.Fatalf("%s\n%v", text.String(), err)
	}
	if diff := cmp.Diff(want, lab.Configuration{Policy: c.policy, Settings: got}); diff != "" {
		t.Errorf("%s\n%s", text.String(), diff)
	}
	if flags := flagsText(&want); !strings.HasPrefix(flags, "--policy "+want.Policy) || strings.Count(flags, "--set ") != len(want.Settings) {
		t.Errorf("flags: %s", flags)
	}
}

func TestConfigurationOfARecording(t *testing.T) {
	h := trace.Header{Policy: "buckets", Limits: trace.Limits{"max_per_bucket": "8", "min_block": "1", "no_such": "1"}}
	if got := configurationOf(&h); got == nil || got.String() != "buckets max_per_bucket=8" {
		t.Errorf("have %v, want buckets with the limit that differs", got)
	}
	for _, h := range []trace.Header{{}, {Policy: "slob"}, {Policy: "buckets", Limits: trace.Limits{"max_per_bucket": "many"}}} {
		if got := configurationOf(&h); got != nil {
			t.Errorf("%+v: %s, want nothing", h, got)
		}
	}
}

func TestMeasuredDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		before, after uint64
		predicted     [2]float64
		want          bool
	}{
		"as predicted":            {100e6, 10e6, [2]float64{50e6, 5e6}, false},
		"much slower":             {100e6, 90e6, [2]float64{50e6, 5e6}, true},
		"much faster":             {100e6, 10e6, [2]float64{50e6, 45e6}, true},
		"less than 1 ms apart":    {1e6, 9e5, [2]float64{50e6, 5e6}, false},
		"nothing was predicted":   {100e6, 10e6, [2]float64{}, false},
		"nothing was measured":    {0, 10e6, [2]float64{50e6, 5e6}, false},
		"half of what it said is": {100e6, 19e6, [2]float64{50e6, 5e6}, false},
	} {
		m := measured{before: trial{driverNS: c.before}, after: trial{driverNS: c.after}, predicted: c.predicted}
		if m.differs() != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
}
