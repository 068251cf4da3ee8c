package cost

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestDevice(t *testing.T) {
	d := Device{Create: Line{A: 100, B: 0.5}, Touch: Line{B: 2}, Release: Line{A: 7}, Part: Line{A: 3, B: 1}}
	if d.CreateNS(10) != 105 || d.TouchNS(10) != 20 || d.ReleaseNS(10) != 7 || d.PartNS(10) != 13 {
		t.Errorf("10 bytes take %g, %g, %g, %g", d.CreateNS(10), d.TouchNS(10), d.ReleaseNS(10), d.PartNS(10))
	}
	if got := d.Create.Sum(3, 60); got != d.CreateNS(10)+d.CreateNS(20)+d.CreateNS(30) {
		t.Errorf("three together take %g", got)
	}
}

func TestFit(t *testing.T) {
	fit := func(pairs ...float64) (f Fit) {
		for i := 0; i < len(pairs); i += 2 {
			f.Add(pairs[i], pairs[i+1])
		}
		return f
	}
	for name, c := range map[string]struct {
		fit  Fit
		want Line
	}{
		"no call":           {fit(), Line{}},
		"one size":          {fit(64, 100, 64, 200), Line{A: 150}},
		"a line":            {fit(0, 100, 100, 300, 50, 200), Line{A: 100, B: 2}},
		"falls":             {fit(0, 300, 100, 100), Line{A: 200}},
		"starts below zero": {fit(1, 0, 2, 2), Line{B: 4. / 5}},
	} {
		got := c.fit.Line()
		if math.Abs(got.A-c.want.A) > 1e-9 || math.Abs(got.B-c.want.B) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if f := fit(64, 100, 64, 200); f.StdDev() != 50 {
		t.Errorf("standard deviation %g, want 50", f.StdDev())
	}
	falling := fit(0, 300, 100, 100)
	if a, b, r2 := falling.Free(); a != 300 || b != -2 || r2 != 1 {
		t.Errorf("free line %g + %g size, R² %g", a, b, r2)
	}
}

func TestProbe(t *testing.T) {
	p, err := Read(strings.NewReader(`{"device": "pocl", "driver": "3.1", "create": {"a_ns": 2000, "b_ns_per_byte": 0.25},
		"release": {"a_ns": 300, "b_ns_per_byte": 0}, "touch": {"a_ns": 0, "b_ns_per_byte": 0.5}, "points": [1, 2]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Device{Create: Line{2000, 0.25}, Release: Line{A: 300}, Touch: Line{B: 0.5}}
	if p.Device != "pocl" || p.Driver != "3.1" || p.Costs() != want {
		t.Errorf("%+v, %+v", p, p.Costs())
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Read(strings.NewReader(string(text))); err != nil || again.Costs() != want {
		t.Errorf("written and read again: %v, %+v", err, again)
	}
}

func TestProbeErrors(t *testing.T) {
	line := `{"a_ns": 1, "b_ns_per_byte": 1}`
	for text, want := range map[string]string{
		``:                           "no JSON object",
		`[1]`:                        "no JSON object",
		`{"release": ` + line + `}`:  `"create" is missing`,
		`{"create": ` + line + `}`:   `"release" is missing`,
		`{"create": ` + line + `} 1`: "something follows",
		`{"create": {"a_ns": -1}, "release": ` + line + `}`:                                 `"create" is -1 ns`,
		`{"create": ` + line + `, "release": ` + line + `, "touch": {"b_ns_per_byte": -2}}`: `"touch" is 0 ns + -2`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
