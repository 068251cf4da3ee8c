package ui

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// limitSnapshot is the sample after a number of changes of max_cached_bytes, the last of them pending if another value is wanted.
func limitSnapshot(asked uint64, value, wanted float64, refused string) *stats.Snapshot {
	s := sampleSnapshot()
	l := &s.Limits[0]
	l.Value, l.Wanted, l.Request = value, wanted, stats.Request{Sequence: asked, AskedAt: s.Time, Refused: refused}
	if wanted == value {
		l.AnsweredAt = s.Time
	}
	return s
}

func TestLimits(t *testing.T) {
	var c calls
	d := newTest(c.options(), 120, 36, sampleSnapshot())
	press(d, "]", "]", "[")
	if want := []string{"1073741824", "2147483648", "1073741824"}; !slices.Equal(c.values, want) || c.limits[0] != "max_cached_bytes" {
		t.Fatalf("asked for %v %v, want %v", c.limits, c.values, want)
	}
	shows(t, d, "1.00G …")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(2, 512*mib, 2*gib, "")}) // it does not know the third change
	shows(t, d, "1.00G …")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(3, 512*mib, gib, "")})
	shows(t, d, "1.00G …")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(3, gib, gib, "")})
	shows(t, d, "1.00G ✓", "✓ max_cached_bytes 512.0M → 1.00G acknowledged")
	press(d, "]")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(4, gib, gib, "more than the device has")}) // no snapshot showed it pending
	shows(t, d, "✗ max_cached_bytes: more than the device has", "1.00G ✗")
	press(d, "]")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(4, gib, gib, "more than the device has")}) // the previous answer
	shows(t, d, "2.00G …")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(5, gib, gib, "still too much")})
	shows(t, d, "✗ max_cached_bytes: still too much", "1.00G ✗")
}

// TestLimitBeyondTheDevice: a limit that cannot be reached is shown as what the device has.
func TestLimitBeyondTheDevice(t *testing.T) {
	s := limitSnapshot(0, 4*gib, 4*gib, "")
	s.Device.Global = 3 * gib
	d := newTest((&calls{}).options(), 120, 36, s)
	shows(t, d, "3.00G")
	hides(t, d, "4.00G")
}

func TestLimitUnanswered(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	press(d, "]")
	later := func(after time.Duration, wanted float64) {
		s := limitSnapshot(1, 512*mib, wanted, "")
		s.Time += uint64(after)
		d.Update(frameMsg{now: testStart, snap: s})
	}
	later(5*time.Second, gib)
	hides(t, d, "does not answer")
	later(6*time.Second, gib)
	shows(t, d, "✗ max_cached_bytes: the program does not answer", "1.00G …")
	d.note = note{}
	later(7*time.Second, gib)
	hides(t, d, "does not answer")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(1, gib, gib, "")}) // it does after all
	shows(t, d, "✓ max_cached_bytes 512.0M → 1.00G acknowledged")
	press(d, "]")
	d.Update(frameMsg{now: testStart, app: App{State: stats.Exited}, hasApp: true})
	shows(t, d, "✗ max_cached_bytes: the program ended before it answered")
	hides(t, d, "M …", "G …")
}

// TestLimitNotAsked: what the session does not take is not pending.
func TestLimitNotAsked(t *testing.T) {
	o := (&calls{}).options()
	o.SetLimit = func(string, string) (uint64, error) { return 0, errors.New("the session has ended") }
	d := newTest(o, 120, 36, sampleSnapshot())
	press(d, "]")
	shows(t, d, "✗ the session has ended")
	hides(t, d, "M …", "G …")
}

// TestOthersChange: a change that another terminal asks for is marked, but is not this one's to report or undo.
func TestOthersChange(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 36, sampleSnapshot())
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(1, 512*mib, gib, "")})
	shows(t, d, "1.00G …")
	d.Update(frameMsg{now: testStart, snap: limitSnapshot(1, gib, gib, "")})
	shows(t, d, "1.00G ✓")
	hides(t, d, "acknowledged")
	press(d, "u")
	shows(t, d, "nothing to undo")
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
	shows(t, d, "bucket_sizes is 1024:4096: a list cannot be changed here")
	s := sampleSnapshot()
	s.Limits[5].Value, s.Limits[5].Wanted, s.Limits[5].Request = 2, 2, stats.Request{Sequence: 1, AnsweredAt: s.Time}
	d.Update(frameMsg{now: testStart, snap: s})
	shows(t, d, "✓ drain_order largest-first → oldest-first acknowledged")
}

// TestLimitsFit checks that small terminals show the whole value of each limit and enough of its name.
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
			if !strings.Contains(row, limitValueText(l, l.Value)) {
				t.Errorf("%d columns: no %s %s in\n%s", w, l.Name, limitValueText(l, l.Value), screen(d))
			}
			press(d, "j")
		}
	}
}

func TestLimitText(t *testing.T) {
	seconds := &stats.Limit{Kind: stats.LimitSeconds, Max: 1e6, Zero: noLimit}
	for _, test := range []struct {
		limit *stats.Limit
		value float64
		want  string
	}{
		{seconds, 0, "no limit"}, {seconds, 0.25, "0.25s"}, {seconds, 30, "30s"}, {seconds, 60, "1m"}, {seconds, 90, "1m30s"},
		{seconds, 3600, "1h"}, {seconds, 5400, "1h30m"}, {seconds, 3601, "1h0m1s"}, {&stats.Limit{Kind: stats.LimitSeconds, Min: 0.5}, 0, "0s"}, {&stats.Limit{Kind: stats.LimitBytes, Zero: "auto"}, 0, "auto"},
		{&stats.Limit{Kind: stats.LimitBytes}, 0, "0"}, {&stats.Limit{Kind: stats.LimitBytes}, 1 << 60, "no limit"},
		{&stats.Limit{Kind: stats.LimitSizes}, 10, "10 sizes"}, {&stats.Limit{}, math.NaN(), none}, {&stats.Limit{}, 1.25, "1.25"},
		{&stats.Limit{Kind: stats.LimitSwitch, Choices: []string{"off", "on"}}, 1, "on"},
	} {
		if got := limitValueText(test.limit, test.value); got != test.want {
			t.Errorf("kind %d, %v: %q, want %q", test.limit.Kind, test.value, got, test.want)
		}
	}
}

func TestNextValue(t *testing.T) {
	size := &stats.Limit{Kind: stats.LimitBytes, Max: 1 << 63}
	page := &stats.Limit{Kind: stats.LimitBytes, Min: 256, Max: 1 << 24}
	number := &stats.Limit{Name: "max_per_tag", Kind: stats.LimitCount, Max: 4096}
	age := &stats.Limit{Kind: stats.LimitSeconds, Max: 1e6, Zero: noLimit}
	perTag := &stats.Limit{Name: "max_per_bucket", Kind: stats.LimitCount, Max: 1e6, Zero: noLimit}
	word := &stats.Limit{Kind: stats.LimitChoice, Choices: []string{"a", "b", "c"}}
	sizes := &stats.Limit{Kind: stats.LimitSizes, Min: 1, Max: 5}
	fraction := &stats.Limit{Name: "max_waste_ratio", Min: 1, Max: 16}
	for _, test := range []struct {
		limit *stats.Limit
		base  float64
		step  limitStep
		want  float64
	}{
		{size, 0, stepMore, mib}, {size, mib, stepLess, 0}, {size, gib, stepLess, gib / 2}, {size, gib, stepDouble, 2 * gib},
		{size, 16 * gib, stepMore, 1 << 63}, {size, 1 << 63, stepLess, 16 * gib}, {size, 0, stepHalve, 0},
		{size, 32 * gib, stepHalve, 8 * gib},
		{number, 0, stepMore, 1}, {number, 1, stepLess, 0}, {number, 7, stepHalve, 3}, {number, 4000, stepDouble, 4096},
		{page, 4096, stepMore, 8192}, {page, 4096, stepHalve, 2048}, {page, 256, stepLess, 256}, {page, 1 << 24, stepDouble, 1 << 24},
		{age, 0, stepMore, 0}, {age, 30, stepMore, 40}, {age, 1, stepLess, 1}, {age, 30, stepDouble, 60}, {age, 0, stepLess, 3600}, {age, 3600, stepMore, 0},
		{perTag, 0, stepLess, 1024}, {perTag, 1024, stepMore, 0}, {perTag, 1024, stepHalve, 512}, {perTag, 0, stepDouble, 0}, {perTag, 1, stepLess, 1},
		{word, 0, stepMore, 1}, {word, 2, stepDouble, 2}, {word, 1, stepLess, 0}, {word, 0, stepHalve, 0},
		{sizes, 10, stepMore, 10}, {sizes, 10, stepLess, 10}, {fraction, 1.7, stepMore, 1.9},
		{fraction, 2, stepMore, 2.5}, {fraction, 1, stepLess, 1}, {fraction, 2, stepHalve, 1},
	} {
		if got := clampToLimitRange(test.limit, nextLimitValue(test.limit, test.base, test.step, 16*gib)); got != test.want {
			t.Errorf("%s kind %d %v by %d: %v, want %v", test.limit.Name, test.limit.Kind, test.base, test.step, got, test.want)
		}
	}
}

// TestCachedMost checks that the lower of both limits follows the cached bytes.
func TestCachedMost(t *testing.T) {
	s := sampleSnapshot()
	s.Limits[7].Value = 1. / 64
	d := newTest((&calls{}).options(), 120, 36, s)
	shows(t, d, "cached 384.0M ", "cached at most 256.0M")
}
