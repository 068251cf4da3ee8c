package watch

import (
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

func TestParseLimit(t *testing.T) {
	for _, test := range []struct{ policy, name, value, want string }{
		{"futhark", "max_cached_bytes", "1.5 GiB", "1610612736"},
		{"futhark", "max_age", "30s", "30"}, {"futhark", "max_age", "1h30m", "5400"}, {"futhark", "max_age", "0.25", "0.25"},
		{"futhark", "max_age", "1e3", "1000"}, {"futhark", "max_age", "250ms", "0.25"},
		{"futhark", "steal_other_tag", "true", "on"}, {"futhark", "steal_other_tag", "NO", "off"}, {"futhark", "steal_other_tag", "on", "on"},
		{"futhark", "drain_order", "Oldest-First", "oldest-first"}, {"futhark", "max_waste_ratio", "1.5", "1.5"},
		{"buckets", "bucket_sizes", "1K:4k:1MiB", "1024:4096:1048576"}, {"futhark", "no_such_limit", "x", "x"},
	} {
		got, err := parseLimit(test.policy, test.name, test.value)
		if err != nil || got != (allocator.Setting{Name: test.name, Value: test.want}) {
			t.Errorf("%s=%s: %+v, %v; want %s", test.name, test.value, got, err, test.want)
		}
	}
	for name, values := range map[string][]string{
		"max_cached_bytes": {"", "-1", "many", "2E"}, "max_age": {"", "-1", "-5s", "soon", "inf", "1e7", "NaN", "0x1p3"},
		"steal_other_tag": {"", "2", "maybe"}, "drain_order": {"", "0", "up"}, "max_waste_ratio": {"", "0.5", "lots", "inf", "NaN", "0x1p1", "2e0", "+2", "2."},
		"max_cached_fraction": {"0x1p-1", "5e-1", ".5", "1_0", "-0.5", "0X.8P0"},
		"max_per_tag":         {"1.5", "-1", "1e3", "10000000"},
	} {
		for _, value := range values {
			_, err := parseLimit("futhark", name, value)
			if err == nil {
				t.Errorf("%s=%s was taken", name, value)
				continue
			}
			for _, part := range []string{"limit " + name + ": ", ": want ", ", for example " + name + "="} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s=%s: %q is missing in: %v", name, value, part, err)
				}
			}
		}
	}
}

func TestLimitGivenTwice(t *testing.T) {
	for _, test := range []struct {
		set       []string
		maxCached string
		want      string // of the error; none where empty
	}{
		{[]string{"max_cached_bytes=1M"}, "2M", "limit max_cached_bytes is given twice, by --set and by --max-cached"},
		{[]string{"max_age=1,max_waste_ratio=2", "max_age=2"}, "", "limit max_age is given twice, by --set:"},
		{[]string{"max_age=1", "max_age=1"}, "2M", "limit max_age is given twice, by --set:"},
		{[]string{"no_such_limit=1", "no_such_limit=2"}, "", "no_such_limit"},
		{[]string{"max_age=1,max_waste_ratio=2"}, "2M", ""},
	} {
		c := PolicyChoice{Policy: allocator.Default, Set: test.set, MaxCached: test.maxCached}
		got, err := c.ParseLimits()
		if test.want == "" && (err != nil || len(got) != 3) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%v %s: %v, %v; want %q", test.set, test.maxCached, got, err, test.want)
		}
	}
}

// TestExamplesAreTaken gives every limit of every policy its own example and its own default, as people see them.
func TestExamplesAreTaken(t *testing.T) {
	for _, policy := range allocator.PolicyNames() {
		description, _ := allocator.DescribePolicy(policy)
		for i := range description.Limits {
			l := &description.Limits[i]
			shown := stats.LimitOf(l)
			if value, ok := shown.ParseValue(l.Text); !ok || value != l.Value || shown.TextForTarget(value) != l.Text {
				t.Errorf("%s: %s %s is %v, %v in the dashboard, want %v", policy, l.Name, l.Text, value, ok, l.Value)
			}
			for _, value := range []string{exampleLimitValue(l), setting.LimitValueText(l)} {
				setting, err := parseLimit(policy, l.Name, value)
				if err != nil {
					t.Errorf("%s: %v", policy, err)
					continue
				}
				if _, err := allocator.New(policy, []allocator.Setting{setting}); err != nil {
					t.Errorf("%s, %s=%s: %v", policy, l.Name, value, err)
				}
				if value != exampleLimitValue(l) && setting.Value != l.Text {
					t.Errorf("%s: the default of %s, %s, reads as %s", policy, l.Name, l.Text, setting.Value)
				}
			}
		}
	}
}

func TestPolicyTextFits(t *testing.T) {
	for _, policy := range allocator.PolicyNames() {
		description, _ := allocator.DescribePolicy(policy)
		for _, width := range []int{60, 80, 120} {
			text := policyDescription(&description, width)
			for line := range strings.Lines(text) {
				if line = strings.TrimSuffix(line, "\n"); len(line) > width || line != strings.TrimRight(line, " ") {
					t.Errorf("%s at %d columns: %q", policy, width, line)
				}
			}
			for i := range description.Limits {
				if !strings.Contains(text, "\n  "+description.Limits[i].Name+" ") {
					t.Errorf("%s is missing", description.Limits[i].Name)
				}
			}
		}
	}
}

func TestConfigurationOfARecording(t *testing.T) {
	h := recording.Header{Policy: "buckets", Limits: recording.Limits{"max_per_bucket": "8", "min_block": "1", "no_such": "1"}}
	if got := setting.ConfigurationOfRecording(&h); got == nil || got.String() != "buckets max_per_bucket=8" {
		t.Errorf("have %v, want buckets with the limit that differs", got)
	}
	for _, h := range []recording.Header{{}, {Policy: "slob"}, {Policy: "buckets", Limits: recording.Limits{"max_per_bucket": "many"}}} {
		if got := setting.ConfigurationOfRecording(&h); got != nil {
			t.Errorf("%+v: %s, want nothing", h, got)
		}
	}
}
