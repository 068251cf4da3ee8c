package watch

import (
	"strings"
	"testing"
)

func TestMeasureOptions(t *testing.T) {
	for _, c := range []struct {
		value, until string
		present      PolicyChoice
		want         string // the alternative, or a part of the error
		now          bool
	}{
		{"", "", PolicyChoice{Policy: "futhark"}, "none", false},
		{"off", "", PolicyChoice{Policy: "futhark"}, "none", false},
		{"on", "3%", PolicyChoice{Policy: "slab"}, "none", true},
		{"on", "", PolicyChoice{Policy: "none"}, "futhark", true},
		{"none", "0.5", PolicyChoice{Policy: "auto"}, "none", true},
		{"slab", "", PolicyChoice{Policy: "futhark"}, "slab", true},
		{"slab:max_part=1M,max_age=5s", "", PolicyChoice{Policy: "futhark"}, "slab max_part=1048576,max_age=5", true},
		{"buckets:bucket_sizes=4K:64K", "", PolicyChoice{Policy: "futhark"}, "buckets bucket_sizes=4096:65536", true},
		{"bucket_sizes=4K:64K", "", PolicyChoice{Policy: "buckets"}, "buckets bucket_sizes=4096:65536", true},
		{"max_age=5s", "", PolicyChoice{Policy: "futhark", Set: []string{"max_age=1s"}, MaxCached: "1M"}, "futhark max_age=5,max_cached_bytes=1048576", true},
		{"none,slab", "", PolicyChoice{Policy: "futhark"}, "none; slab", true},
		{"none,slab,max_cached_bytes=64M", "", PolicyChoice{Policy: "futhark"}, "none; slab; futhark max_cached_bytes=67108864", true},
		{"max_age=5s,max_age=6s,slab:max_part=1M,max_age=5s,none", "", PolicyChoice{Policy: "futhark"}, "futhark max_age=5; futhark max_age=6; slab max_part=1048576,max_age=5; none", true},
		{"none,what", "", PolicyChoice{Policy: "futhark"}, "unknown policy", false},
		{"none,slab,none", "", PolicyChoice{Policy: "futhark"}, "names none twice", false},
		{"max_age=5s,futhark:max_age=5000ms", "", PolicyChoice{Policy: "futhark"}, "names futhark:max_age=5000ms twice", false},
		{"none,,slab", "", PolicyChoice{Policy: "futhark"}, "missing beside a comma", false},
		{"none,", "", PolicyChoice{Policy: "futhark"}, "missing beside a comma", false},
		{"slab,off", "", PolicyChoice{Policy: "futhark"}, "off stands alone", false},
		{"max_age=soon", "", PolicyChoice{Policy: "futhark"}, "bad time", false},
		{"max_age=1s", "", PolicyChoice{Policy: "none"}, "has no limit", false},
		{"slab:", "", PolicyChoice{Policy: "futhark"}, "behind the colon", false},
		{"what", "", PolicyChoice{Policy: "futhark"}, "unknown policy", false},
		{"auto", "", PolicyChoice{Policy: "futhark"}, "compares with one policy", false},
		{"on", "51", PolicyChoice{Policy: "futhark"}, "percentage from 0.1 to 50", false},
		{"on", "nan", PolicyChoice{Policy: "futhark"}, "percentage from 0.1 to 50", false},
	} {
		o := MeasureOptions{Alternative: c.value, Until: c.until}
		e, err := o.NewExperiment(&c.present, false)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v, want %q", c.value, err, c.want)
			}
			continue
		}
		if strings.Join(e.Alternatives, "; ") != c.want || e.Now != c.now || e.Never != (c.value == "off") {
			t.Errorf("%q: %+v", c.value, e)
		}
	}
	o := MeasureOptions{Alternative: "on"}
	if _, err := o.NewExperiment(&PolicyChoice{Policy: "none"}, true); err == nil || !strings.Contains(err.Error(), "--spill") {
		t.Errorf("with --spill: %v", err)
	}
}
