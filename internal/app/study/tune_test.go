package study

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/document"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"

	"github.com/google/go-cmp/cmp"
)

// values are some that limits take, in the allocator's form.
var values = map[allocator.Kind]string{
	allocator.Number: "1.25", allocator.Count: "3", allocator.Bytes: "12288", allocator.Seconds: "0.25", allocator.Sizes: "1024:12288:65537",
}

// TestConfigurationIsReadAgain writes each limit of each policy, and reads it as flags are read.
func TestConfigurationIsReadAgain(t *testing.T) {
	for _, policy := range allocator.PolicyNames() {
		d, _ := allocator.DescribePolicy(policy)
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
			checkReadAgain(t, replay.Configuration{Policy: policy, Settings: []allocator.Setting{{Name: l.Name, Value: value}}})
		}
		checkReadAgain(t, replay.Configuration{Policy: policy})
	}
}

func checkReadAgain(t *testing.T, want replay.Configuration) {
	t.Helper()
	point := tune.Point{Configuration: want}
	search := tuneSearch{what: "a\nb \"c\".gmt", result: &tune.Result{Recommended: &point}}
	var text bytes.Buffer
	if err := search.writeConfiguration(&text); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Policy string            `toml:"policy"`
		Set    map[string]string `toml:"set"`
	}
	if _, err := document.DecodeTOML(text.String(), &file); err != nil {
		t.Fatalf("%s\n%v", text.String(), err)
	}
	c := watch.PolicyChoice{Policy: file.Policy}
	for name, value := range file.Set {
		c.Set = append(c.Set, name+"="+value)
	}
	got, err := c.ParseLimits()
	if err != nil {
		t.Fatalf("%s\n%v", text.String(), err)
	}
	if diff := cmp.Diff(want, replay.Configuration{Policy: c.Policy, Settings: got}); diff != "" {
		t.Errorf("%s\n%s", text.String(), diff)
	}
	if flags := setting.FlagsText(&want); !strings.HasPrefix(flags, "--policy "+want.Policy) || strings.Count(flags, "--set ") != len(want.Settings) {
		t.Errorf("flags: %s", flags)
	}
}

func TestMeasuredDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		before, after uint64
		predicted     [2]float64
		want          bool
	}{
		"as predicted":           {100e6, 10e6, [2]float64{50e6, 5e6}, false},
		"much slower":            {100e6, 90e6, [2]float64{50e6, 5e6}, true},
		"much faster":            {100e6, 10e6, [2]float64{50e6, 45e6}, true},
		"less than 1 ms apart":   {1e6, 9e5, [2]float64{50e6, 5e6}, false},
		"nothing was predicted":  {100e6, 10e6, [2]float64{}, false},
		"nothing was measured":   {0, 10e6, [2]float64{50e6, 5e6}, false},
		"half of the prediction": {100e6, 19e6, [2]float64{50e6, 5e6}, false},
	} {
		m := compareWithPrediction(Trial{DriverNS: c.before}, Trial{DriverNS: c.after}, c.predicted[0], c.predicted[1])
		if m.Differs != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
}

// TestTuneShowsWhatWasMeasured: what the driver took without a pool is what was measured, where the recording is without a pool.
func TestTuneShowsWhatWasMeasured(t *testing.T) {
	const folder = "../../replay/testdata/"
	for name, c := range map[string]struct {
		files    []string
		measured bool
	}{
		"without a pool": {[]string{folder + "frag.none.gmt"}, true},
		"with a pool":    {[]string{folder + "train.futhark.gmt"}, false},
		"both":           {[]string{folder + "frag.none.gmt", folder + "frag.mantissa.gmt"}, false},
	} {
		o := &TuneOptions{Budget: time.Minute, Configurations: 20}
		o.Setup.Policy = allocator.Default
		result, err := TuneRecordings(o, c.files)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := result.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		if !c.measured {
			if strings.Contains(text.String(), "measured") {
				t.Errorf("%s:\n%s", name, text.String())
			}
			continue
		}
		ns, err := readRecording(c.files[0], func(r *recording.Reader) (uint64, error) { return replay.MeasuredDriverNS(r) })
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Join(strings.Fields(text.String()), " ")
		for _, want := range []string{" " + units.Duration(ns) + " (measured)", "(100.0 %) none, in use now, measured", "Times but the measured are simulated"} {
			if !strings.Contains(words, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text.String())
			}
		}
	}
}

// TestLittleToGain: what saves less than a hundredth of the run is not recommended, and not written; nor is what is in use written. The run
// is longer than its calls. A comparison with the bare program counts for more.
func TestLittleToGain(t *testing.T) {
	story := labtest.NewTape()
	story.AddCreate(1, 4096)
	story.LastRecord().Time = 1e9
	path := filepath.Join(t.TempDir(), "run.gmt")
	labtest.Write(t, path, recording.Header{ClockNS: 1, Policy: "none"}, story.Records, recording.Footer{EndedNS: 2e9 + 1})
	tape, err := readRecording(path, func(r *recording.Reader) (*replay.Loaded, error) { return replay.Load(r) })
	if err != nil {
		t.Fatal(err)
	}
	faster, perhaps := &Comparison{Pairs: 9, Speed: Interval{Low: 1.1}}, &Comparison{Pairs: 9, Speed: Interval{Low: 0.9}}
	point := func(policy string, ns, assumed float64) tune.Point {
		return tune.Point{Configuration: replay.Configuration{Policy: policy}, Score: tune.Score{DriverNS: ns, AssumedNS: assumed}}
	}
	best := point("futhark", 1e6, 0)
	for _, c := range []struct {
		none, present tune.Point
		bare          uint64
		compared      *Comparison
		want          bool
	}{
		{point("none", 10e6, 0), point("none", 10e6, 0), 0, nil, true},
		{point("none", 10e6, 0), point("none", 10e6, 0), 0, perhaps, true},
		{point("none", 10e6, 0), point("none", 10e6, 0), 0, faster, false},
		{point("none", 22e6, 0), point("none", 22e6, 0), 0, nil, false},
		{point("none", 5e6, 0), point("none", 5e6, 0), 50e6, nil, false}, // measured
		{point("none", 50e6, 0), point("pow2", 2e6, 0), 0, faster, true},
		{point("none", 50e6, 0), point("slab", 2e6, 1e6), 0, nil, false},
		{point("none", 50e6, 0), best, 0, nil, false},
	} {
		file := filepath.Join(t.TempDir(), "tuned.toml")
		s := tuneSearch{
			options: &TuneOptions{Output: files.Output{Path: file}}, bareNS: c.bare, compared: c.compared,
			result: &tune.Result{Recommended: &best, None: c.none, Present: &c.present, RanNS: tape.DurationNS()},
		}
		out, err := s.finishResult()
		if err != nil || out.Little != c.want {
			t.Errorf("%+v: %v, %v", c, out, err)
		}
		text := newProse(io.Discard)
		s.writeRecommended(text)
		_, err = os.Stat(file)
		written := !c.want && c.present.Configuration.Policy != "futhark"
		for part, want := range map[string]bool{
			"recommended: ": !c.want, "best found: ": c.want, "It is written to ": written, "No file is written.": !written,
			"That saves less than 1 % of the 2s that were recorded: too little to matter. First touches of new memory are not counted": c.want,
		} {
			if strings.Contains(strings.Join(strings.Fields(text.String()), " "), part) != want || (err == nil) != written {
				t.Errorf("%+v: %q, %v:\n%s", c, part, err, text.String())
			}
		}
	}
}

// TestRegretOfAMeasuredTime: bounds are simulated, so that a measured time is not said to be no more than one.
func TestRegretOfAMeasuredTime(t *testing.T) {
	none := tune.Point{Configuration: replay.Configuration{Policy: "none"}, Score: tune.Score{DriverNS: 150}}
	for bare, want := range map[uint64]string{0: "none takes no more than the first.", 216: "none takes 216ns (measured)."} {
		s := tuneSearch{bareNS: bare, result: &tune.Result{Recommended: &none, None: none, Bound: replay.Bound{Whole: 150, Carved: 9}}}
		text := prose{width: 1000}
		if s.writeLowerBound(&text); !strings.Contains(text.String(), want) {
			t.Errorf("%d ns: %s", bare, text.String())
		}
	}
}
