package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// checkAxis checks what holds for any axis: ticks rise, lie within it and say different things, and there are
// some, but not many.
func checkAxis(t *rapid.T, a *Axis, most int) {
	if len(a.Ticks) < 2 || len(a.Ticks) > most {
		t.Fatalf("%d ticks on %v…%v", len(a.Ticks), a.Low, a.High)
	}
	for i, tick := range a.Ticks {
		at := a.FractionOf(tick.Value)
		if tick.Value < a.Low || tick.Value > a.High || at < 0 || at > 1 || tick.Label == "" {
			t.Fatalf("tick %+v at %v, of %v…%v", tick, at, a.Low, a.High)
		}
		if i > 0 && (at <= a.FractionOf(a.Ticks[i-1].Value) || tick.Label == a.Ticks[i-1].Label) {
			t.Fatalf("tick %+v follows %+v", tick, a.Ticks[i-1])
		}
	}
}

func TestTicks(t *testing.T) {
	number := rapid.Custom(func(t *rapid.T) uint64 {
		return rapid.Uint64().Draw(t, "bits") >> rapid.IntRange(0, 63).Draw(t, "shift")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := number.Draw(t, "a"), number.Draw(t, "b")
		bytes, counts, logBytes, logTimes := BytesAxis(a), CountsAxis(a), LogBytesAxis(min(a, b), max(a, b)),
			LogTimesAxis(min(a, b), max(a, b))
		for _, axis := range []*Axis{&bytes, &counts, &logBytes, &logTimes} {
			checkAxis(t, axis, ticksMost+4)
		}
		if step := bytes.Ticks[1].Value; math.Exp2(math.Round(math.Log2(step))) != step {
			t.Fatalf("a step of %v bytes", step)
		}
	})
}

// An axis of time has round ticks wherever it starts. As far as doubles tell ns apart, that is: four months.
func TestTimeTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Uint64Range(0, 1<<53).Draw(t, "from")
		length := rapid.Uint64Range(8, 1<<53).Draw(t, "length") >> rapid.IntRange(0, 40).Draw(t, "shift")
		a := TimesAxis(from, from+max(length, 8))
		for i, tick := range a.Ticks {
			if tick.Value < a.Low || tick.Value > a.High || i > 0 && tick.Value <= a.Ticks[i-1].Value {
				t.Fatalf("ticks %v of %v…%v", a.Ticks, a.Low, a.High)
			}
			if from == 0 && i > 0 && tick.Label == a.Ticks[i-1].Label {
				t.Fatalf("ticks %v", a.Ticks)
			}
		}
		if len(a.Ticks) == 0 || len(a.Ticks) > ticksMost+4 {
			t.Fatalf("%d ticks on %v…%v", len(a.Ticks), a.Low, a.High)
		}
	})
}

// A hostile recording may have times at which a double does not grow by a step.
func TestTimesFarAway(t *testing.T) {
	for _, to := range []uint64{0, 1 << 63, math.MaxUint64} {
		if a := TimesAxis(math.MaxUint64, to); len(a.Ticks) > ticksMost+4 {
			t.Errorf("%d ticks up to %d", len(a.Ticks), to)
		}
	}
}

func TestPlacesStayOnTheAxis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		linear, logarithmic := BytesAxis(rapid.Uint64().Draw(t, "most")),
			LogBytesAxis(rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b"))
		v, w := rapid.Float64().Draw(t, "v"), rapid.Float64().Draw(t, "w")
		for _, a := range []*Axis{&linear, &logarithmic} {
			x, y := a.FractionOf(min(v, w)), a.FractionOf(max(v, w))
			if x < 0 || y > 1 || x > y {
				t.Fatalf("%v and %v are at %v and %v", min(v, w), max(v, w), x, y)
			}
			if a.FractionOf(math.NaN()) != 0 || a.FractionOf(math.Inf(1)) != 1 {
				t.Fatal("no number has a place")
			}
		}
	})
}

// Ticks as they should be, once each kind.
func TestTicksAreRound(t *testing.T) {
	labels := func(a Axis) string {
		var list []string
		for _, tick := range a.Ticks {
			list = append(list, tick.Label)
		}
		return strings.ReplaceAll(strings.Join(list, ", "), gap, " ")
	}
	const s = 1_000_000_000
	for _, c := range []struct {
		axis Axis
		want string
	}{
		{BytesAxis(1 << 30), "0 B, 256 MiB, 512 MiB, 768 MiB, 1 GiB"},
		{BytesAxis(1300 << 20), "0 B, 512 MiB, 1 GiB"},
		{BytesAxis(0), "0 B, 1 B"},
		{CountsAxis(27_000), "0, 10 000, 20 000"},
		{CountsAxis(3), "0, 1, 2, 3"},
		{PercentAxis(), "0 %, 25 %, 50 %, 75 %, 100 %"},
		{TimesAxis(0, 42*s), "0, 10 s, 20 s, 30 s, 40 s"},
		{TimesAxis(0, 3*s/2), "0, 500 ms, 1 s, 1.5 s"},
		{TimesAxis(0, 90*60*s), "0, 15m, 30m, 45m, 1h, 1h 15m, 1h 30m"},
		{TimesAxis(5*s, 6*s), "5 s, 5.2 s, 5.4 s, 5.6 s, 5.8 s, 6 s"},
		{TimesAxis(0, 700), "0, 100 ns, 200 ns, 300 ns, 400 ns, 500 ns, 600 ns, 700 ns"},
		{TimesAxis(0, 50*24*3600*s), "0, 14d, 28d, 42d"},
		{LogBytesAxis(4096, 1<<20-1), "4 KiB, 16 KiB, 64 KiB, 256 KiB, 1 MiB"},
		{LogTimesAxis(1500, 2_000_000), "1 µs, 10 µs, 100 µs, 1 ms, 10 ms"},
	} {
		if got := labels(c.axis); got != c.want {
			t.Errorf("%v…%v: %s, want %s", c.axis.Low, c.axis.High, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	for want, got := range map[string]string{
		"1.25 GiB": exactBytesText(1.25 * (1 << 30)), "768 MiB": exactBytesText(768 << 20), "17 B": exactBytesText(17),
	} {
		if got := strings.ReplaceAll(got, gap, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func example(text string) *Chart {
	return &Chart{
		Title: text, X: TimesAxis(0, 1_000_000), Y: BytesAxis(100), Data: text,
		Bands:  []Band{{0, 500_000, text, text, "odd"}, {5, 5, text, text, "none"}},
		Areas:  []Series{{Class: "s0", Values: []float64{1, 2, 2, 3}}, {Class: "s1", Values: []float64{5}}},
		Lines:  []Series{{Class: "s2", Values: []float64{1, 2, math.NaN(), 4}, Known: []bool{true, false, true, true}}},
		Bars:   []Bar{{10, 5, 7, "s0", text}, {5, 10, 7, "s0", text}},
		Curves: []Curve{{"fit", []float64{1, 2}, []float64{3, 4}}, {}},
		Points: []Point{{1, 2, math.Inf(-1), math.Inf(1), "s0", text}},
		Rules:  []Rule{{50, text, "limit"}},
		Marks:  []Mark{{500, text, "exit"}},
	}
}

// Whatever names are, the drawing is a whole tree, and no name becomes an element of it.
func TestDrawingsAreWellFormed(t *testing.T) {
	elements := func(text string) int {
		decoder, n := xml.NewDecoder(strings.NewReader(example(text).DrawSVG())), 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				return n
			}
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if element, ok := token.(xml.StartElement); ok {
				n++
				for _, a := range element.Attr {
					if strings.Contains(a.Value, "NaN") || strings.HasPrefix(a.Value, "-") && element.Name.Local == "rect" {
						t.Fatalf("%s %s=%q", element.Name.Local, a.Name.Local, a.Value)
					}
				}
			}
		}
	}
	want := elements("name")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringN(1, 40, -1), rapid.SampledFrom([]string{"</title><script>", `" onload="x`, "\x00\x1b]]>", "\xff&amp;"})).Draw(t, "text")
		if got := elements(text); got != want {
			t.Fatalf("%q: %d elements, want %d", text, got, want)
		}
	})
}

// An area in steps: from the first value to the last, each over its part of the width, closed along what is below.
func TestSteps(t *testing.T) {
	c := Chart{Y: Axis{High: 4}}
	if got, want := c.areaPath([]float64{0, 1}, []float64{2, 4}), "M0 3000H3000V0H6000V4500H3000V6000H0Z"; got != want {
		t.Errorf("area %s, want %s", got, want)
	}
	if got, want := c.areaPath([]float64{0, 1, 1}, []float64{0, 4, 1}), "M2000 0H4000V4500H2000Z"; got != want {
		t.Errorf("area %s, want %s: nothing where the series are equal", got, want)
	}
	line := Series{Values: []float64{4, 4, 0, 2}, Known: []bool{true, true, false, true}}
	if got, want := c.stepLinePath(line), "M0 0H3000M4500 3000H6000"; got != want {
		t.Errorf("stairs %s, want %s", got, want)
	}
	long := Series{Values: make([]float64, 100), Known: make([]bool, 100)}
	long.Known[0], long.Known[2] = true, true
	if got, want := c.stepLinePath(long), "M0 6000H180"; got != want {
		t.Errorf("a short gap: %s, want %s", got, want)
	}
}
