package ui

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// hostile are texts that break layouts: escapes, control characters, wide, combining, joined and right-to-left ones.
var hostile = []string{
	"", "a", "main.c:1 f", "\x1b[2J\x1b[31mred", "\x1b]0;title\a", "line\nbreak\r\ttab", "界面字符", "e\u0301\u0301\u0301", "\u0301",
	"👩‍👩‍👧‍👦 family", "🇩🇪🇫", "\u202eright to left\u202c", "שלום עולם", "\u0600\u0601x", "\xff\xfe\x80", "\x9b31m", "\x00\x7f",
	strings.Repeat("very_long_name::", 40), "⸻⸻", "\u200d\u200b\ufeff", "ｆｕｌｌ", "한국어", "각", "a\u0300界\u0300",
}

func anyNumber() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Just(uint64(0)), rapid.Just(uint64(math.MaxUint64)), rapid.Uint64(), rapid.Uint64Range(0, 5000))
}

func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(hostile), rapid.String())
}

func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxUint64, -1, 0.5}))
}

// fill sets every field of a value, lists included, to something drawn.
func fill(t *rapid.T, v reflect.Value) {
	if trend, ok := v.Addr().Interface().(*stats.Trend); ok {
		*trend = stats.TrendOf(rapid.SliceOfN(anyNumber(), 0, 60).Draw(t, "trend"))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 12).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, value)
		v.SetMapIndex(key, value)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.String:
		v.SetString(anyText().Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Float64:
		v.SetFloat(anyFloat().Draw(t, "float"))
	case reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	default:
		v.SetUint(anyNumber().Draw(t, "number"))
	}
}

func anySnapshot(t *rapid.T) *stats.Snapshot {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return &stats.Snapshot{}
	case 2:
		return sampleSnapshot()
	}
	s := &stats.Snapshot{}
	fill(t, reflect.ValueOf(s).Elem())
	for i := range s.Marks {
		s.Marks[i].Kind %= wire.KindLost + 3
	}
	for i := range s.PostMortems {
		s.PostMortems[i].Verdict %= stats.VerdictNotMemory + 1
	}
	return s
}

var allKeys = func() (names []string) {
	for _, c := range inRun.commandsOfMode(keymap) {
		names = append(names, c.keys...)
	}
	return append(names, "x", "d")
}()

// TestNothingEscapesTheScreen holds for every size, snapshot, output and row of keys.
func TestNothingEscapesTheScreen(t *testing.T) {
	racetest.Slow(t)
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 220).Draw(t, "w"), rapid.IntRange(1, 70).Draw(t, "h")
		o := (&calls{}).options()
		o.Charts, o.ReadOnly = rapid.SampledFrom([]Charts{Braille, Blocks, HalfBlocks, ASCII}).Draw(t, "charts"), rapid.Bool().Draw(t, "read only")
		d := newTest(o, w, h, anySnapshot(t))
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(allKeys), 0, 8).Draw(t, "keys") {
			press(d, k)
			d.leaving = false
			if rapid.Bool().Draw(t, "next") {
				line := view.OutputLine{Text: anyText().Draw(t, "line"), Stderr: rapid.Bool().Draw(t, "stderr")}
				d.Update(frameMsg{now: testStart, snap: anySnapshot(t), lines: []view.OutputLine{line, line}, next: 6})
			}
			frame := frameText(d)
			checkFrame(t, frame, w, h)
			if o.Charts == ASCII {
				checkASCII(t, frame)
			}
		}
		checkFrame(t, frameText(d), w, h)
	})
}

func checkASCII(t interface{ Errorf(string, ...any) }, frame string) {
	for i := range len(frame) {
		if b := frame[i]; b >= 0x7f || b < 0x20 && b != '\n' && b != 0x1b {
			t.Errorf("byte %#x in an ASCII frame", b)
			return
		}
	}
}

// TestOnlyColoursAreWritten looks for any escape sequence that is not SGR, whatever the program prints.
func TestOnlyColoursAreWritten(t *testing.T) {
	s := sampleSnapshot()
	for i := range s.Tags {
		s.Tags[i].Name = hostile[i%len(hostile)]
	}
	d := newTest((&calls{}).options(), 120, 36, s)
	var lines []view.OutputLine
	for _, text := range hostile {
		lines = append(lines, view.OutputLine{Text: text})
	}
	d.Update(frameMsg{now: testStart, lines: lines, next: 99})
	press(d, "o")
	for _, part := range strings.Split(frameText(d), "\x1b")[1:] {
		end := strings.IndexFunc(part, func(r rune) bool { return !strings.ContainsRune("[0123456789;", r) })
		if end < 1 || part[end] != 'm' || part[0] != '[' {
			t.Errorf("escape sequence %.20q is no SGR", part)
		}
	}
}

func TestSnapshotsAreNotChanged(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 120, 36, s)
	for _, k := range allKeys {
		press(d, k)
		d.leaving = false
		_ = frameText(d)
	}
	if !reflect.DeepEqual(s, sampleSnapshot()) {
		t.Error("the dashboard changed a published snapshot")
	}
}
