package units

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Count(1, "event"): "1 event", Count(0, "event"): "0 events", Plural(1, "miss", "misses"): "1 miss", Plural(2, "miss", "misses"): "2 misses",
		Percent(0.5, 1): "50.0 %", Percent(0.5, 0): "-", Duration(999): "999ns", Duration(1_234_567): "1.23ms",
		Duration(1 << 63): Duration(1 << 62), DurationOfComputed(-1500.4): "-1.5µs",
		FormatGrouped(0): "0", FormatGrouped(999): "999", FormatGrouped(1000): "1 000", FormatGrouped(1234567): "1 234 567",
		FormatCompact(0): "0", FormatCompact(1.5): "1.5", FormatCompact(1500): "1.5k", FormatCompact(2.5e7): "25.0M", FormatCompact(3e10): "3e+10",
		DurationLong(0): "0 ns", DurationLong(999): "999 ns", DurationLong(999.9): "1.00 µs", DurationLong(12_500_000): "12.5 ms",
		DurationLong(99.9e9): "99.9 s", DurationLong(99.96e9): "1m 40s", DurationLong(125e9): "2m 05s",
		DurationLong(11_400e9): "3h 10m", DurationLong(52 * 3600e9): "2d 04h",
		FormatClock(307e9): "05:07", FormatClock(3723e9): "1:02:03", FormatClock(270000e9): "3 d 03 h",
		FormatSpan(1.5): "1.5s", FormatSpan(90): "1m30s", FormatSpan(120): "2m", FormatSpan(3600): "1h", FormatSpan(5400): "1h30m",
		Cut("äöü", 3): "äöü", Cut("äöüß", 3): "äö…", Cut("日本語", 5): "日本…", Cut("日本語", 6): "日本語", Clean("a\x1b\nb\xff"): "a  b�",
		ProgramName(""): "-", ProgramName("/bin/ls"): "ls", fmt.Sprint(SecondsBetween(2e9, 3e9), SecondsBetween(3, 2)): "1 0",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCutName(t *testing.T) {
	for want, name := range map[string]string{
		"short.c:7 f": "short.c:7 f", "pipeline.c:60 …e_blurred": "pipeline.c:60 create_blurred",
		"libopencv_cor…+0x1234abc": "libopencv_core.so.4.6.0+0x1234abc", "detail::c…fer_of_scratch": "detail::create_a_buffer_of_scratch",
		"日本語日…本語日本語日本": "日本語日本語日本語日本語日本", "  a.c:9 …_of_two_of_them": "  a.c:9 create_a_buffer_of_two_of_them",
	} {
		if got := CutName(name, 24); got != want || Width(got) > 24 {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := CutName("too long", 5); got != "too …" {
		t.Errorf("%q", got)
	}
	names := CutNames([]string{"a.c:9 f", "b.c:9 g", "a.c:9 f"}, 24)
	if want := []string{"a.c:9 f #1", "b.c:9 g", "a.c:9 f #2"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	const begin, end = "a.cpp:9 solve<one, the same, ", ">::the_same_end_for_both_of_them()"
	names = CutNames([]string{begin + "float, 2" + end, begin + "half, 2" + end, begin + "float, 2" + end}, 40)
	if want := "a.cpp:9 … same, half, 2>::the_same_end_…"; names[1] != want || names[0] == names[2] || Width(names[1]) > 40 {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestTop(t *testing.T) {
	list := []int{1, 2, 3}
	for most, want := range map[int]string{-1: "[1 2 3] 0", 0: "[] 3", 2: "[1 2] 1", 3: "[1 2 3] 0", 9: "[1 2 3] 0"} {
		kept, left := KeepFirst(list, most)
		if got := fmt.Sprint(kept, left); got != want {
			t.Errorf("%d: %s, want %s", most, got, want)
		}
	}
}

func TestPairs(t *testing.T) {
	var b bytes.Buffer
	WriteTwoColumns(&b, [][2]string{{"a", "1"}, {"empty", ""}})
	if want := "a            1\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestSplit always gets on, however narrow it is.
func TestSplit(t *testing.T) {
	for columns, want := range map[int]string{0: "日 本語", 1: "日 本語", 3: "日 本語", 4: "日本 語", 9: "日本語 "} {
		first, rest := SplitAtColumn("日本語", columns)
		if got := first + " " + rest; got != want {
			t.Errorf("%d: %q, want %q", columns, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := Table{Align: "rl", Indent: "  ", Width: 30}
	table.Add("a", "bb", "")
	table.Add("100", "b", "a last cell that is too long")
	table.Add("", "", "日本語")
	if got, want := table.String(), "    a  bb\n  100  b   a …that is too long\n           日本語\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTableShowsDifferences: different cells are cut so that they differ, and cells that are the same stay so.
func TestTableShowsDifferences(t *testing.T) {
	table := Table{Width: 20}
	for _, cell := range []string{"solver.c:88 create_a_grid_of_floats", "solver.c:88 create_b_grid_of_floats", "short", "solver.c:88 create_a_grid_of_floats"} {
		table.Add(cell)
	}
	if got, want := table.String(), "so…eate_a_grid_of_f…\nso…eate_b_grid_of_f…\nshort\nso…eate_a_grid_of_f…\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRate(t *testing.T) {
	for v, want := range map[float64]string{
		0: "", 20: "", 204: "0.2 KiB/s", 99 << 10: "99.0 KiB/s", 100 << 10: "0.1 MiB/s", 2.5 * (1 << 20): "2.5 MiB/s", 3.42 * (1 << 30): "3.4 GiB/s",
	} {
		if got := FormatRate(v); got != want {
			t.Errorf("Rate(%g) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "", 100: "", 156: "0.1 KiB/s", 100<<10 - 10: "99.9 KiB/s", 3.49 * (1 << 30): "3.4 GiB/s"} {
		if got := FormatRateAtLeast(v); got != want {
			t.Errorf("RateAtLeast(%g) = %q, want %q", v, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for rate, want := range map[float64]string{
		0: "0.0 %", 0.00001: "0.01 %", 0.0001: "0.01 %", 0.00051: "0.06 %", 0.001: "0.1 %", 0.125: "12.5 %", 0.9989: "99.9 %", 0.9994: "99.9 %", 0.99951: "99.95 %", 0.99995: "99.99 %", 0.999999: "99.99 %", 1: "100.0 %", 3.4: "340.0 %", -0.5: "-50.0 %",
	} {
		if got := Percent(rate, 1); got != want {
			t.Errorf("Percent(%g) = %q, want %q", rate, got, want)
		}
	}
	if got := Percent(0, 0); got != "-" {
		t.Errorf("Percent of nothing = %q", got)
	}
}

// TestNarrowTablesLackColumns of least worth, and say which.
func TestNarrowTablesLackColumns(t *testing.T) {
	for width, want := range map[int]string{
		0:  " size  age  hits  name\n1.00K  10s     3  file.c:88 create_one_of_two\n",
		40: " size  hits  name\n1.00K     3  file.c:88 create_one_of_two\n(too narrow for age)\n",
		30: " size  name\n1.00K  file.c:88 …e_one_of_two\n(too narrow for age, hits)\n",
	} {
		table := Table{Align: "rrrl", Width: width, Least: []string{"none", "age", "hits"}}
		table.Add("size", "age", "hits", "name")
		table.Add("1.00K", "10s", "3", "file.c:88 create_one_of_two")
		if got := table.String(); got != want {
			t.Errorf("%d: %q, want %q", width, got, want)
		}
	}
}
