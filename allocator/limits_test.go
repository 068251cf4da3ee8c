package allocator

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// taken returns values that a limit must take: the edges of its range, its default, and all choices.
func taken(l Limit) []string {
	switch {
	case l.Choices != nil:
		return append([]string{l.Text}, l.Choices...)
	case l.Kind == Sizes:
		return []string{l.Text, formatDecimal(l.Min), formatDecimal(l.Max), formatDecimal(l.Min) + ":" + formatDecimal(l.Max), many(64)}
	case l.Name == "page_bytes": // powers of two only
		return []string{l.Text, formatDecimal(l.Min), formatDecimal(l.Max)}
	case l.Kind == Count || l.Kind == Bytes:
		return []string{l.Text, formatDecimal(l.Min), formatDecimal(l.Max), formatDecimal(math.Floor((l.Min + l.Max) / 2))}
	}
	return []string{l.Text, formatDecimal(l.Min), formatDecimal(l.Max), formatDecimal((l.Min + l.Max) / 4)}
}

// many returns a list of that many sizes.
func many(n int) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strconv.Itoa(1000 + i)
	}
	return strings.Join(texts, ":")
}

// refused returns values that no limit of that kind takes.
func refused(l Limit) []string {
	list := []string{"", " ", "nonsense", "-1", "+1", "1e1", "0x10", "nan", "inf", "1_0", "1,5", " 1", "1 ", "1..2", ".", "1:", "²"}
	switch {
	case l.Choices != nil:
		return append(list, "0", "1", strings.ToUpper(l.Text), l.Text+" ")
	case l.Kind == Sizes:
		return append(list, "0", "2:1", "1:1", "1:2:", ":1", "1::2", formatDecimal(l.Max+1), "1.5", many(65))
	case l.Kind == Count || l.Kind == Bytes:
		list = append(list, "1.5", "18446744073709551616", "99999999999999999999999999")
	}
	list = append(list, formatDecimal(l.Max+1), formatDecimal(l.Max*2))
	if l.Min > 0 {
		list = append(list, "0", formatDecimal(l.Min/2))
	}
	return list
}

func TestEveryLimitTakesItsRange(t *testing.T) {
	for _, name := range PolicyNames() {
		for _, l := range newDriver(t, name, "").policy.Limits() {
			for _, text := range taken(l) {
				p := newDriver(t, name, "").policy
				if _, err := p.SetLimit(l.Name, text, 0, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				for _, set := range p.Limits() {
					if want := text; set.Name == l.Name && set.Text != want {
						t.Errorf("%s: %s was set to %s and is %s", name, l.Name, want, set.Text)
					}
				}
				if _, err := New(name, []Setting{{l.Name, text}}); err != nil {
					t.Errorf("%s from the start: %v", name, err)
				}
			}
		}
	}
}

// TestRefusedValuesChangeNothing also checks that errors say which limit, and what it takes.
func TestRefusedValuesChangeNothing(t *testing.T) {
	for _, name := range PolicyNames() {
		d := newDriver(t, name, "")
		d.free(d.alloc(mib, 1, 1).Block, false)
		limits, stats := d.policy.Limits(), d.policy.Stats()
		try := func(limit, text string, wants ...string) {
			t.Helper()
			out, err := d.policy.SetLimit(limit, text, 1<<60, nil)
			if err == nil || len(out) > 0 {
				t.Errorf("%s took %s=%s: %v", name, limit, text, out)
				return
			}
			_, atStart := New(name, []Setting{{limit, text}})
			for _, want := range append(wants, limit) {
				if !strings.Contains(err.Error(), want) || atStart == nil || !strings.Contains(atStart.Error(), want) {
					t.Errorf("%s: %s=%q: %v; from the start: %v; want %q in it", name, limit, text, err, atStart, want)
				}
			}
		}
		for _, l := range limits {
			for _, text := range refused(l) {
				try(l.Name, text, l.ValuesText())
			}
		}
		for i := range limitTable {
			if l := limitTable[i].Limit; !obeys(limits, l.Name) {
				try(l.Name, taken(l)[0], append(names(limits), name)...)
			}
		}
		try("nonsense", "1", names(limits)...)
		if !reflect.DeepEqual(limits, d.policy.Limits()) || d.policy.Stats() != stats {
			t.Errorf("%s: refused values changed %+v\nto %+v", name, limits, d.policy.Limits())
		}
		d.check()
	}
}

func names(limits []Limit) (list []string) {
	for _, l := range limits {
		list = append(list, l.Name)
	}
	return list
}

func obeys(limits []Limit, name string) bool {
	return strings.Contains(" "+strings.Join(names(limits), " ")+" ", " "+name+" ")
}

func TestContradictionsAreRefused(t *testing.T) {
	for _, name := range carving() {
		d := newDriver(t, name, "")
		if !obeys(d.policy.Limits(), "heap_bytes") {
			continue
		}
		d.set("heap_bytes", "1048576")
		before := d.policy.Limits()
		_, err := d.policy.SetLimit("max_part", "1048577", 0, nil)
		_, start := New(name, []Setting{{"max_part", "1048577"}, {"heap_bytes", "1048576"}})
		for _, err := range []error{err, start} {
			if err == nil || !strings.Contains(err.Error(), "max_part") || !strings.Contains(err.Error(), "heap_bytes") {
				t.Errorf("%s: max_part is more than heap_bytes, but: %v", name, err)
			}
		}
		if !reflect.DeepEqual(before, d.policy.Limits()) {
			t.Errorf("%s: a refused limit changed %v", name, d.policy.Limits())
		}
		// Together they may be set in any order.
		if _, err := New(name, []Setting{{"max_part", "2097152"}, {"heap_bytes", "4194304"}}); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryPolicyIsDescribed looks at what help and documentation are made of.
func TestEveryPolicyIsDescribed(t *testing.T) {
	_, err := New("best", nil)
	for _, name := range PolicyNames() {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
		d, ok := DescribePolicy(name)
		if !ok || d.Name != name || d.Summary == "" || d.Source == "" {
			t.Errorf("%s is not described", name)
		}
		if p := newDriver(t, name, "").policy; !reflect.DeepEqual(d.Limits, p.Limits()) || p.PolicyName() != name {
			t.Errorf("%s is described with limits %v, and has %v", name, d.Limits, p.Limits())
		}
		for _, l := range d.Limits {
			if l.Help == "" || l.ValuesText() == "" || values[l.Name] == nil {
				t.Errorf("%s has no help, or no values to test it with", l.Name)
			}
		}
	}
	if _, ok := DescribePolicy("best"); ok {
		t.Error("an unknown policy is described")
	}
}

func TestLoweringTheCapEvictsInDrainOrder(t *testing.T) {
	for order, want := range map[string][]int{
		"oldest-first": {2, 0}, "largest-first": {3, 2}, "slot": {2, 0}, "all": {2, 0, 1, 3},
	} {
		d := newDriver(t, "futhark", "max_waste_ratio=1,drain_order="+order)
		var blocks []Block
		for i := range 4 {
			blocks = append(blocks, d.alloc(uint64(i+1)*mib, 1, Tag(i)).Block)
		}
		for _, i := range []int{2, 0, 1, 3} {
			d.free(blocks[i], false)
		}
		keep := map[string]string{"largest-first": "3145728"}[order]
		if keep == "" {
			keep = "6291456"
		}
		evicted := d.set("max_cached_bytes", keep)
		for i, e := range evicted {
			if len(evicted) != len(want) || e.Block != blocks[want[i]] || e.Reason != wire.EvictLimit {
				t.Errorf("%s: evicted %v, want %v of %v", order, evicted, want, blocks)
				break
			}
		}
		if len(evicted) == 0 {
			t.Errorf("%s: nothing was evicted", order)
		}
		d.check()
		if decision := d.decide(evicted[0].Size, 1, 9); decision.Reason != wire.MissLimit {
			t.Errorf("%s: reason %v, want limit: a block of that size was evicted", order, decision.Reason)
		}
	}
}

func TestBlockAboveTheCapGoesAlone(t *testing.T) {
	d := newDriver(t, "futhark", "max_cached_bytes=1048576")
	small, large := d.alloc(1<<19, 1, 1).Block, d.alloc(1<<21, 1, 2).Block
	d.free(small, false)
	if evicted := d.free(large, false); len(evicted) != 1 || evicted[0].Block != large {
		t.Fatalf("evicted %v, want the large block only", evicted)
	}
	d.check()
}

// TestTheSmallestAgeIsAnAge: what is more than nothing must not count as "for ever".
func TestTheSmallestAgeIsAnAge(t *testing.T) {
	d := newDriver(t, "futhark", "")
	d.set("max_age", "0.0000000001")
	d.free(d.alloc(mib, 1, 1).Block, false)
	d.now += 10
	if out, next := d.policy.Expire(d.now, nil); len(out) != 1 || out[0].Reason != wire.EvictAge || next <= d.now {
		t.Errorf("expire evicted %v, next is due at %d", out, next)
	}
}

// TestExpireInVainChangesNothing: to have found nothing too old is no decision, and what comes after it is decided as
// without a look. A replay sees only decisions.
func TestExpireInVainChangesNothing(t *testing.T) {
	for _, name := range []string{"futhark", "futhark-2018", "pow2", "buckets", "mantissa", "slab", "buddy", "ualloc"} {
		evicted := map[bool]int{}
		for _, looked := range []bool{false, true} {
			d := newDriver(t, name, "")
			d.set("max_age", "0.000001") // 1000 ns
			block := d.alloc(mib, 1, 1).Block
			if looked {
				if out, next := d.policy.Expire(900, nil); len(out) > 0 || next != 1900 {
					t.Errorf("%s: %v is too old at 900 ns, next at %d", name, out, next)
				}
			}
			d.now = 300 // of a thread that looked at the clock before
			d.free(block, false)
			out, _ := d.policy.Expire(1301, nil)
			evicted[looked] = len(out)
		}
		if evicted[true] != 1 || evicted[false] != 1 {
			t.Errorf("%s: blocks that are too old at 1301 ns: %v", name, evicted)
		}
	}
}

// TestLoweringCountsEvictsInDrainOrder has blocks of two sizes, or two call sites, by turns.
func TestLoweringCountsEvictsInDrainOrder(t *testing.T) {
	for _, c := range []struct{ policy, limit, order string }{
		{"pow2", "max_per_bucket", "oldest-first"}, {"pow2", "max_per_bucket", "largest-first"}, {"pow2", "max_per_bucket", "slot"},
		{"buckets", "max_per_bucket", "oldest-first"}, {"mantissa", "max_per_bucket", "largest-first"},
		{"futhark", "max_per_tag", "oldest-first"}, {"futhark", "max_per_tag", "largest-first"}, {"futhark", "max_per_tag", "all"},
	} {
		d := newDriver(t, c.policy, "drain_order="+c.order)
		var blocks []Block
		for i := range 6 {
			blocks = append(blocks, d.alloc(mib<<(i%2*4), 1, Tag(i%2)).Block)
		}
		for _, i := range []int{4, 1, 0, 3, 2, 5} {
			d.free(blocks[i], false)
		}
		// One of each may stay. Of equal ones the largest-first order takes the latest.
		want := []int{4, 1, 0, 3}
		if c.order == "largest-first" {
			want = []int{5, 3, 2, 0}
		}
		var got []int
		for _, e := range d.set(c.limit, "1") {
			if e.Reason != wire.EvictTagCap {
				t.Errorf("%+v: evicted %v", c, e)
			}
			got = append(got, slices.Index(blocks, e.Block))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: evicted %v, want %v", c, got, want)
		}
		d.check()
	}
}

// TestAgesAreExact to the millisecond: what was set is what is shown.
func TestAgesAreExact(t *testing.T) {
	p := newDriver(t, "futhark", "").policy
	for ms := range 5000 {
		want := formatDecimal(float64(ms) / 1000)
		if _, err := p.SetLimit("max_age", want, 0, nil); err != nil {
			t.Fatal(err)
		}
		for _, l := range p.Limits() {
			if l.Name == "max_age" && l.Text != want {
				t.Fatalf("max_age is %s, was set to %s", l.Text, want)
			}
		}
	}
}
