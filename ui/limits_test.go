package ui

import (
	"math"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// answer makes the snapshot that follows a change of max_cached_bytes.
func answer(value, wanted float64, pending bool, refused string) *model.Snapshot {
	s := sampleSnapshot()
	l := &s.Limits[0]
	l.Value, l.Wanted, l.Pending, l.Refused = value, wanted, pending, refused
	return s
}

func TestLimits(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	press(d, "]", "]", "[")
	if want := []string{"1073741824", "2147483648", "1073741824"}; !slices.Equal(c.values, want) || c.limits[0] != "max_cached_bytes" {
		t.Fatalf("asked for %v %v, want %v", c.limits, c.values, want)
	}
	if got := screen(d); !strings.Contains(got, "1.00G …") {
		t.Errorf("wanted value is not shown as pending:\n%s", got)
	}
	d.Update(frameMsg{now: testStart, snap: answer(512*mib, gib, true, "")})
	if got := screen(d); !strings.Contains(got, "1.00G …") {
		t.Errorf("pending value is not shown:\n%s", got)
	}
	d.Update(frameMsg{now: testStart, snap: answer(gib, gib, false, "")})
	if got := screen(d); !strings.Contains(got, "1.00G ✓") || !strings.Contains(got, "✓ max_cached_bytes 512.0M → 1.00G acknowledged") {
		t.Errorf("acknowledgement is not shown:\n%s", got)
	}
	press(d, "]")
	refused := answer(gib, gib, false, "more than the device has") // between two frames: nothing was seen on its way
	refused.Limits[0].RefusedText, refused.Limits[0].Refusals = "2147483648", 1
	d.Update(frameMsg{now: testStart, snap: refused})
	if got := screen(d); !strings.Contains(got, "✗ max_cached_bytes: more than the device has") || !strings.Contains(got, "1.00G ✗") {
		t.Errorf("refusal is not shown:\n%s", got)
	}
}

// TestLimitRefusedTwice asks again for what was refused: the old refusal is no answer, and the new one is.
func TestLimitRefusedTwice(t *testing.T) {
	refusal := func(text, word string, n uint64) *model.Snapshot {
		s := answer(512*mib, 512*mib, false, word)
		s.Limits[0].RefusedText, s.Limits[0].Refusals = text, n
		return s
	}
	d := newTest((&calls{}).options(), 120, 36, refusal("1073741824", "the first no", 1))
	press(d, "]")
	d.Update(frameMsg{now: testStart, snap: refusal("1073741824", "the first no", 1)})
	if got := screen(d); !strings.Contains(got, "1.00G …") || strings.Contains(got, "the first no") {
		t.Errorf("an old refusal counts as an answer:\n%s", got)
	}
	d.Update(frameMsg{now: testStart, snap: refusal("268435456", "not ours", 2)})
	if got := screen(d); !strings.Contains(got, "1.00G …") || strings.Contains(got, "not ours") {
		t.Errorf("the refusal of another value counts as an answer:\n%s", got)
	}
	d.Update(frameMsg{now: testStart, snap: refusal("1073741824", "the second no", 3)})
	if got := screen(d); !strings.Contains(got, "✗ max_cached_bytes: the second no") || strings.Contains(got, "1.00G …") {
		t.Errorf("the second refusal is not shown:\n%s", got)
	}
}

func TestLimitUnanswered(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "]")
	s := sampleSnapshot()
	s.Time += 6e9
	d.Update(frameMsg{now: testStart, snap: s})
	if got := screen(d); !strings.Contains(got, "does not answer") || strings.Contains(got, "1.00G …") {
		t.Errorf("screen:\n%s", got)
	}
}

func TestLimitChoiceAndReadOnly(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	press(d, "6", "6", "j", "j", "]", "}")
	if !slices.Equal(c.limits, []string{"max_per_tag", "max_per_tag"}) || !slices.Equal(c.values, []string{"74", "148"}) {
		t.Errorf("asked for %v %v", c.limits, c.values)
	}
	c = calls{}
	o := c.options()
	o.ReadOnly = true
	d = newTest(o, 120, 36, sampleSnapshot())
	press(d, "]", "{")
	if len(c.limits) != 0 || !strings.Contains(screen(d), "cannot be changed here") {
		t.Errorf("read-only dashboard asked for %v:\n%s", c.limits, screen(d))
	}
}

func TestLimitWords(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	press(d, "6", "6", "j", "j", "j", "j", "j", "]", "j", "[", "j", "j", "]")
	if !slices.Equal(c.limits, []string{"drain_order", "steal_other_tag"}) || !slices.Equal(c.values, []string{"oldest-first", "off"}) {
		t.Errorf("asked for %v %v", c.limits, c.values)
	}
	if got := screen(d); !strings.Contains(got, "bucket_sizes is 1024:4096: a list cannot be changed here") {
		t.Errorf("screen:\n%s", got)
	}
	s := sampleSnapshot()
	s.Limits[5].Value, s.Limits[5].Wanted = 2, 2
	d.Update(frameMsg{now: testStart, snap: s})
	if got := screen(d); !strings.Contains(got, "✓ drain_order largest-first → oldest-first acknowledged") {
		t.Errorf("acknowledgement is not shown:\n%s", got)
	}
}

// TestLimitsFit looks at every limit on small terminals: the value is whole, and of the name enough to tell it.
func TestLimitsFit(t *testing.T) {
	for _, w := range []int{60, 80, 120} {
		d := newTest((&calls{}).options(), w, 24, sampleSnapshot())
		for d.focus != paneLimits {
			press(d, "tab")
		}
		for i := range sampleSnapshot().Limits {
			l := &sampleSnapshot().Limits[i]
			_, row, _ := strings.Cut(screen(d), "▸"+l.Name[:min(14, len(l.Name))])
			row, _, _ = strings.Cut(row, "\n")
			if !strings.Contains(row, limitText(l, l.Value)) {
				t.Errorf("%d columns: no %s %s in\n%s", w, l.Name, limitText(l, l.Value), screen(d))
			}
			press(d, "j")
		}
	}
}

func TestLimitText(t *testing.T) {
	seconds := &model.Limit{Kind: model.LimitSeconds, Max: 1e6}
	for _, test := range []struct {
		limit *model.Limit
		value float64
		want  string
	}{
		{seconds, 0, "off"}, {seconds, 0.25, "0.25s"}, {seconds, 30, "30s"}, {seconds, 60, "1m"}, {seconds, 90, "1m30s"},
		{seconds, 3600, "1h"}, {seconds, 5400, "1h30m"}, {seconds, 3601, "1h0m1s"}, {&model.Limit{Kind: model.LimitSeconds, Min: 0.5}, 0, "0s"},
		{&model.Limit{Kind: model.LimitBytes}, 0, "0"}, {&model.Limit{Kind: model.LimitBytes}, 1 << 60, "no limit"},
		{&model.Limit{Kind: model.LimitSizes}, 10, "10 sizes"}, {&model.Limit{}, math.NaN(), none}, {&model.Limit{}, 1.25, "1.25"},
		{&model.Limit{Kind: model.LimitSwitch, Choices: []string{"off", "on"}}, 1, "on"},
	} {
		if got := limitText(test.limit, test.value); got != test.want {
			t.Errorf("kind %d, %v: %q, want %q", test.limit.Kind, test.value, got, test.want)
		}
	}
}

func TestNextValue(t *testing.T) {
	size := &model.Limit{Kind: model.LimitBytes, Max: 1 << 63}
	page := &model.Limit{Kind: model.LimitBytes, Min: 256, Max: 1 << 24}
	number := &model.Limit{Name: "max_per_tag", Kind: model.LimitCount, Max: 4096}
	age := &model.Limit{Kind: model.LimitSeconds, Max: 1e6}
	word := &model.Limit{Kind: model.LimitChoice, Choices: []string{"a", "b", "c"}}
	sizes := &model.Limit{Kind: model.LimitSizes, Min: 1, Max: 5}
	fraction := &model.Limit{Name: "max_waste_ratio", Min: 1, Max: 16}
	for _, test := range []struct {
		limit *model.Limit
		base  float64
		act   action
		want  float64
	}{
		{size, 0, actMore, mib}, {size, mib, actLess, 0}, {size, gib, actLess, gib / 2}, {size, gib, actDouble, 2 * gib},
		{size, 16 * gib, actMore, 1 << 63}, {size, 1 << 63, actLess, 16 * gib}, {size, 0, actHalve, 0},
		{number, 0, actMore, 1}, {number, 1, actLess, 0}, {number, 7, actHalve, 3}, {number, 4000, actDouble, 4096},
		{page, 4096, actMore, 8192}, {page, 4096, actHalve, 2048}, {page, 256, actLess, 256}, {page, 1 << 24, actDouble, 1 << 24},
		{age, 0, actMore, 1}, {age, 30, actMore, 40}, {age, 1, actLess, 0}, {age, 30, actDouble, 60},
		{word, 0, actMore, 1}, {word, 2, actDouble, 2}, {word, 1, actLess, 0}, {word, 0, actHalve, 0},
		{sizes, 10, actMore, 10}, {sizes, 10, actLess, 10}, {fraction, 1.7, actMore, 1.9},
		{fraction, 2, actMore, 2.5}, {fraction, 1, actLess, 1}, {fraction, 2, actHalve, 1},
	} {
		if got := clampLimit(test.limit, nextValue(test.limit, test.base, test.act, 16*gib)); got != test.want {
			t.Errorf("%s kind %d %v by %d: %v, want %v", test.limit.Name, test.limit.Kind, test.base, test.act, got, test.want)
		}
	}
}

// TestCachedMost shows the lower of both limits behind what is cached.
func TestCachedMost(t *testing.T) {
	s := sampleSnapshot()
	s.Limits[7].Value = 1. / 64
	d := newTest((&calls{}).options(), 120, 36, s)
	if got := screen(d); !strings.Contains(got, "cached 384.0M/256.0M") {
		t.Errorf("screen:\n%s", got)
	}
}
