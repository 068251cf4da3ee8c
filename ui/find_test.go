package ui

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestFilterText(t *testing.T) {
	for _, test := range []struct {
		filter, text string
		want         bool
	}{
		{"", "a", true}, {"conv", "CONV.c:1 f", true}, {"Conv", "scan.c", false}, {"!conv", "scan.c", true}, {"!conv", "conv.c", false},
		{"!", "ab", true}, {"re:^s.*flags$", "scan.c:77 tmp_flags", true}, {"re:^S", "scan", false}, {"!re:^s", "scan", false},
		{"re:", "x", true},
	} {
		f, err := parseFilter(test.filter)
		if err != nil || f.letsThrough(test.text) != test.want {
			t.Errorf("%q of %q: %v, %v", test.filter, test.text, !test.want, err)
		}
	}
	if _, err := parseFilter("re:("); err == nil {
		t.Error("no error for a bad expression")
	}
}

func FuzzFilter(f *testing.F) {
	for _, text := range []string{"", "!", "re:", "!re:(", "re:a{1000}", "\xff"} {
		f.Add(text, "scan.c:77 tmp_flags")
	}
	f.Fuzz(func(t *testing.T, text, row string) {
		filter, err := parseFilter(text)
		if err != nil {
			return
		}
		if all := applyFilter(&filter, []string{row}, func(s *string) string { return *s }); (len(all) == 1) != filter.letsThrough(row) {
			t.Errorf("%q of %q", text, row)
		}
	})
}

// TestFilterTags: rows appear while it is typed; esc brings back what was there, and then all.
func TestFilterTags(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	press(d, "/", "s", "t", "a", "g")
	shows(t, d, "/stag_", "tags 14 of 22  /stag", "io.c:12 staging")
	if d.prompt == nil {
		t.Fatal("no prompt")
	}
	press(d, "enter", "/", "backspace", "backspace", "backspace", "backspace", "!", "s", "t", "a", "g", "esc")
	shows(t, d, "tags 14 of 22  /stag")
	press(d, "G")
	if got := chosenName(d); !strings.Contains(got, "stage12") {
		t.Errorf("the last row is %q", got)
	}
	press(d, "esc")
	if len(names(d)) != 22 {
		t.Errorf("esc leaves %d rows", len(names(d)))
	}
	press(d, "/", "r", "e", ":", "(", "enter")
	shows(t, d, "✗ error parsing regexp", "tags 22")
	press(d, "/", "Q", "enter")
	shows(t, d, "no row has this: esc shows all")
	d.tags.chooseTag("io.c:12 staging")
	if chosenName(d) != "io.c:12 staging" {
		t.Error("a point does not lead to a row that the filter leaves out")
	}
}

func TestFilterOutput(t *testing.T) {
	d := newTest((&calls{}).options(), 100, 36, sampleSnapshot())
	press(d, "o", "/", "i", "t", "e", "r", "enter")
	shows(t, d, "iter 212/500", "/iter")
	hides(t, d, "loading", "warning: no GPU")
	press(d, "esc")
	shows(t, d, "loading")
	d.Update(frameMsg{now: testStart, lines: []view.OutputLine{{Text: strings.Repeat("x", 150) + "END"}}, next: 9})
	shows(t, d, "xEND")
	press(d, "l", "l", "l", "l", "l", "l", "l", "l")
	shows(t, d, "xEND")
	press(d, "h", "h", "h", "h", "h", "h", "h")
	hides(t, d, "END")
}

func TestFilterTransfers(t *testing.T) {
	s := sampleSnapshot()
	s.Transfers.Directions[stats.ToDevice].Calls = 2
	s.Transfers.Sites = []stats.TransferSite{{Name: "a.c:1 send"}, {Name: "b.c:2 take"}}
	d := newTest((&calls{}).options(), 100, 36, s)
	press(d, "b", "/", "t", "a", "k", "e", "enter")
	shows(t, d, "b.c:2 take", "/take")
	hides(t, d, "a.c:1 send")
}

// TestNamesAreCutInTheMiddle: names differ at the end, and their place in the file stays.
func TestNamesAreCutInTheMiddle(t *testing.T) {
	s := sampleSnapshot()
	s.Tags[0].Name, s.Tags[1].Name = "error.c:12 create_error_of_this_layer", "error.c:14 create_error_of_this_layer_before"
	d := newTest((&calls{}).options(), 61, 24, s)
	shows(t, d, "error.c:12 create_…or_of_this_layer ", "error.c:14 create_…his_layer_before ")
	press(d, "l")
	shows(t, d, "…4 create_error_of")
	press(d, "l", "l", "l", "l", "l", "l", "l", "l", "l")
	shows(t, d, "…or.c:12 create_error_of_this_layer ", "… create_error_of_this_layer_before ")
	press(d, "h", "h", "h", "h", "h", "h", "h", "h", "h", "h")
	shows(t, d, "error.c:14 create_…his_layer_before ")
	d.resizeTo(100, 30)
	shows(t, d, "error.c:14 create_error_of_this_layer_before ") // before columns of numbers
}

// TestColumnsFold: a column in which all rows have the same is named in the title instead, until rows differ there; then it
// stays.
func TestColumnsFold(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 120, 36, s)
	shows(t, d, "all IDLE 0 ", "WASTE")
	hides(t, d, " IDLE  ")
	s = sampleSnapshot()
	s.Tags[0].Idle = mib
	d.Update(frameMsg{now: testStart.Add(2 * time.Second), snap: s})
	hides(t, d, "all IDLE")
	d.Update(frameMsg{now: testStart.Add(4 * time.Second), snap: sampleSnapshot()})
	hides(t, d, "all IDLE")
	if d.tags.content.isFolded(6) {
		t.Error("a column went")
	}
	s = sampleSnapshot()
	s.Tags = s.Tags[5:6]
	d = newTest((&calls{}).options(), 120, 36, s)
	shows(t, d, "all CACHED 0, IDLE 0, FREE 0, ALLOC/S 0, WASTE 0.0% ", "LIVE", "HIT%")
}

// TestConstantTrendIsAThinLine: what does not change is a thin line, and trends are short.
func TestConstantTrendIsAThinLine(t *testing.T) {
	s := sampleSnapshot()
	s.Tags[0].Trend = stats.TrendOf([]uint64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5})
	d := newTest((&calls{}).options(), 200, 60, s)
	row := ""
	for line := range strings.Lines(screen(d)) {
		if strings.Contains(line, "▸ blur.c:88") {
			row = line
		}
	}
	if got := strings.Count(row, "─"); got != trendWide {
		t.Errorf("%d cells of a line in %s", got, row)
	}
}

// TestLastMissesNameSites: or there are none.
func TestLastMissesNameSites(t *testing.T) {
	d := newTest((&calls{}).options(), 120, 60, sampleSnapshot())
	shows(t, d, "CALL SITE OF LAST", "1.00M  blur.c:88 make_tmp ")
	d.resizeTo(100, 60)
	hides(t, d, "CALL SIT", "OF LAST")
}

func TestGroups(t *testing.T) {
	s := sampleSnapshot()
	s.Tags[1].Name, s.Tags[1].Trend = "blur.c:90 im2col", stats.TrendOf([]uint64{1, 2})
	s.Buckets = []stats.Bucket{{Smallest: 4096, Largest: 8191, Share: stats.Share{Hits: 3, Misses: 1, Creates: 4, InUse: 8192}}}
	s.Kinds = []stats.Kind{{Memory: wire.MemoryBuffer, Share: stats.Share{InUse: mib}}}
	s.Threads = []stats.Named{{Name: "thread 4712", Share: stats.Share{InUse: mib}}}
	s.Devices = []stats.Named{{Name: "cpu-haswell", Share: stats.Share{InUse: mib}}}
	s.Kernels = []stats.Named{{Name: "scan_down", Share: stats.Share{InUse: mib}}}
	s.Tags[0].Module, s.Tags[1].Module = "libblur.so", "libblur.so"
	o := (&calls{}).options()
	d := newTest(o, 140, 42, s)
	press(d, "j", "t")
	shows(t, d, "tags by file 21", "▸ blur.c ", "≤1.15G")
	golden.RequireEqual(t, screen(d))
	group := d.tags.currentTag(d.shownSnapshot())
	var sum, last [1]uint64
	group.Trend.FillWithLastPoints(sum[:])
	s.Tags[0].Trend.FillWithLastPoints(last[:])
	if group.Live != 20 || sum[0] != last[0]+2 || !slices.Equal(group.Stack, []string{"blur.c:88 make_tmp", "blur.c:90 im2col"}) {
		t.Errorf("%+v", group)
	}
	press(d, "3")
	shows(t, d, "call sites", "blur.c:90 im2col")
	press(d, "3", "t")
	shows(t, d, "tags by function 10", "make_tmp")
	press(d, "t")
	shows(t, d, "tags by module 21", "libblur.so")
	if group := groupNamed(s, byModule, "libblur.so"); !slices.Equal(group.Stack, []string{"blur.c:88 make_tmp", "blur.c:90 im2col"}) {
		t.Errorf("%+v", group)
	}
	for _, shown := range [][]string{
		{"tags by size 1", "4.00K to 8.00K"}, {"tags by kind 1"}, {"tags by thread 1", "thread 4712"}, {"tags by device 1", "cpu-haswell"},
		{"tags by kernel 1", "scan_down"}, {"tags by process 1", "4711 blur"},
	} {
		press(d, "t")
		shows(t, d, shown...)
	}
	press(d, "t")
	shows(t, d, "tags 22")
	s.Kernels = nil
	d = newTest(o, 140, 42, s)
	press(d, "t", "t", "t", "t", "t", "t", "t", "t")
	shows(t, d, "no kernel has used memory, or uses are not recorded (-o FILE)")
}

func groupNamed(s *stats.Snapshot, by grouping, name string) stats.Tag {
	tags := groupTags(s, by)
	i := slices.IndexFunc(tags, func(t stats.Tag) bool { return t.Name == name })
	if i < 0 {
		return stats.Tag{}
	}
	return tags[i]
}

// TestGroupKeepsItsRow: the cursor follows a group from snapshot to snapshot.
func TestGroupKeepsItsRow(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	press(d, "t", "j")
	want := chosenName(d)
	next := sampleSnapshot()
	next.Tags[3].Held = 1 << 40
	d.Update(frameMsg{now: testStart.Add(orderTime), snap: next})
	if d.tags.at != 2 || chosenName(d) != want {
		t.Errorf("row %d, %q; want row 2, %q", d.tags.at, chosenName(d), want)
	}
}

func TestFuzzy(t *testing.T) {
	if _, ok := fuzzyMatch("qz", "quit"); ok {
		t.Error("z is not in quit")
	}
	best, _ := fuzzyMatch("sh", "sort by HOLDS")
	worst, _ := fuzzyMatch("sh", "list of processes; enter shows one")
	if best <= worst {
		t.Errorf("%d, %d", best, worst)
	}
}

func TestPalette(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	press(d, ":")
	shows(t, d, "╭─ commands", ":_", "▸ quit; asks what to do")
	press(d, "s", "o", "r", "t", "p", "e", "a", "k", "enter")
	if got := tagColumns[d.tags.sortColumn()].title; got != "PEAK" || d.prompt != nil || d.overlay != noOverlay {
		t.Errorf("sorted by %s", got)
	}
	press(d, ":")
	shows(t, d, "▸ sort by PEAK")
	press(d, "down", "up", "down", "esc")
	hides(t, d, "╭─ commands")
	press(d, ":", "x", "q", "x", "enter")
	shows(t, d, "no such command")
	press(d, ":", "g", "r", "o", "u", "p", " ", "f", "u", "n", "enter")
	shows(t, d, "tags by function")
	press(d, ":", "q", "u", "i", "t", ";")
	cmd := press(d, "enter")
	if d.overlay != quitOverlay || cmd != nil {
		t.Error("the palette does not quit")
	}
}

// TestPaletteAtTheEnd: a column has the title that its table shows.
func TestPaletteAtTheEnd(t *testing.T) {
	for ended, want := range map[bool]string{false: "IN USE", true: "AT END"} {
		s := sampleSnapshot()
		for i := range s.Processes {
			if ended {
				s.Processes[i].State = stats.Exited
			}
		}
		d := newTest((&calls{}).options(), 140, 42, s)
		press(d, ":", "s", "o", "r", "t", " ", "b", "y", " ", want[:1], want[1:2])
		shows(t, d, "▸ sort by "+want)
		press(d, "enter")
		shows(t, d, "sort "+want)
	}
}

// TestPaletteQuits: a command of the palette reaches Bubble Tea.
func TestPaletteQuits(t *testing.T) {
	d := newTest(Options{}, 140, 42, sampleSnapshot())
	press(d, ":", "q", "u", "i", "t")
	if !quits(press(d, "enter")) {
		t.Error("it does not quit")
	}
}

func TestHelpOfAPane(t *testing.T) {
	d := newTest((&calls{}).options(), 140, 42, sampleSnapshot())
	press(d, "?")
	shows(t, d, "who? one row per place that allocates", "keys: move", "? again: all keys")
	hides(t, d, "keys: program")
	press(d, "?")
	shows(t, d, "keys: screen")
	press(d, "pgdown")
	shows(t, d, "keys: limits and policy")
	press(d, "esc", "6", "?")
	shows(t, d, "what can I change now?", "keys: limits and policy", "type a value")
}

// FuzzTime reads times that the user types: none is beyond what a recording can have.
func FuzzTime(f *testing.F) {
	for _, text := range []string{"2.5", "1:30", "1m30s", "-1", "1e9", "4294967295:0", "NaN", "0x1p3", ":"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if ns, ok := parseTimeAfterStart(text); ok && ns > math.MaxInt64 {
			t.Errorf("%q: %d ns", text, ns)
		}
	})
}
