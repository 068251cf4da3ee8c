package allocator

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestParseSettings(t *testing.T) {
	got, err := ParseSettings("max_cached_bytes=1048576,max_waste_ratio=1.5,a=b=c")
	want := []Setting{{"max_cached_bytes", "1048576"}, {"max_waste_ratio", "1.5"}, {"a", "b=c"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"a", "=1", "a=1,", ",a=1", ",", "a=1,,b=2"} {
		if settings, err := ParseSettings(text); err == nil {
			t.Errorf("%q gave %v", text, settings)
		}
	}
}

func FuzzParseSettings(f *testing.F) {
	for _, s := range []string{"", "a=1", "a=1,b=2.5", "a", "=1", "a=nan", "a=1,", "a=1e400", "bucket_sizes=1:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		settings, err := ParseSettings(text)
		if err != nil && settings != nil {
			t.Fatal("settings and an error")
		}
		if err == nil && text != "" && len(settings) != strings.Count(text, ",")+1 {
			t.Fatalf("%q gave %v", text, settings)
		}
	})
}

// decimal is the grammar of numbers, read aloud: digits, and perhaps a point and digits.
func decimal(text string) bool {
	digits, points := 0, 0
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && i > 0 && i < len(text)-1:
			points++
		default:
			return false
		}
	}
	return digits > 0 && points <= 1
}

// checkValue tries one text as a value of each kind.
func checkValue(t *testing.T, text string) {
	t.Helper()
	any64, whole64 := &Limit{Max: math.MaxFloat64}, &Limit{Max: math.MaxUint64}
	if v, ok := parseNumber(text, any64); ok != decimal(text) && !math.IsInf(v, 1) {
		t.Errorf("%q as a number: %v, %v", text, v, ok)
	}
	n, ok := parseWholeNumber[uint64](text, whole64)
	want, good := new(big.Int).SetString(text, 10)
	good = good && decimal(text) && !strings.Contains(text, ".") && want.IsUint64()
	if ok != good || ok && n != want.Uint64() {
		t.Errorf("%q as a whole number: %d, %v", text, n, ok)
	}
	sizes, ok := parseSizes(text, &Limit{Min: 1, Max: tib})
	if !ok {
		if sizes != nil {
			t.Errorf("%q: refused sizes %v", text, sizes)
		}
		return
	}
	again, _ := parseSizes(formatSizes(sizes), &Limit{Min: 1, Max: tib})
	if !slices.Equal(sizes, again) || !slices.IsSorted(sizes) || sizes[0] < 1 || sizes[len(sizes)-1] > tib || len(sizes) > 64 {
		t.Errorf("%q as sizes: %v, written and read again %v", text, sizes, again)
	}
}

func TestValues(t *testing.T) {
	for _, text := range []string{
		"0", "1", "007", "1.5", "18446744073709551615", "18446744073709551616", "1:2:3", "1024:4096", "2:1", "", ".", ".5", "5.",
		"1.2.3", "1e1", "0x10", "0x1p4", "+2", "-2", "1_0", "inf", "nan", "Infinity", " 2", "2 ", "²", "１", "1:", "0:1",
	} {
		checkValue(t, text)
	}
	rng := rand.New(rand.NewPCG(6, 6))
	for range 20_000 {
		text := make([]byte, rng.IntN(8))
		for i := range text {
			text[i] = "0123456789.:+-e_x"[rng.IntN(17)]
		}
		checkValue(t, string(text))
	}
}

func FuzzValues(f *testing.F) {
	f.Add("1.5")
	f.Add("1024:4096")
	f.Fuzz(checkValue)
}

func TestTakes(t *testing.T) {
	for _, c := range []struct {
		limit Limit
		want  string
	}{
		{Limit{Kind: Number, Min: 1, Max: 1024}, "1 to 1024"},
		{Limit{Kind: Bytes, Max: most}, "0 to 1125899906842624"},
		{Limit{Kind: Choice, Choices: []string{"a", "b"}}, "one of a, b"},
		{Limit{Kind: Sizes, Min: 1, Max: tib}, "1 to 64 ascending sizes of 1 to 1099511627776, like 4096:65536"},
	} {
		if got := c.limit.ValuesText(); got != c.want {
			t.Errorf("%+v takes %q, want %q", c.limit, got, c.want)
		}
	}
	for text, want := range map[string]string{"": `""`, "a b": `"a b"`, "1e5": "1e5", "\n": `"\n"`, `"`: strconv.Quote(`"`), "é": `"é"`} {
		if got := textForError(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}
