package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"
)

// analysed is the analysis of a recording.
func analysed(t *testing.T, name string, change ...func(*analysis.Options)) *analysis.Analysis {
	t.Helper()
	r, err := recording.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	footer, whole := r.Footer()
	o := analysis.Options{Header: r.Header(), Footer: footer, Whole: whole}
	for _, f := range change {
		f(&o)
	}
	a, err := analysis.Analyse(r, o)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return a
}

// limitsOf is the hit rate by limit of a recording under futhark.
func limitsOf(t *testing.T, name string) *curve.Measurement {
	t.Helper()
	r, err := recording.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := curve.MeasureCurve(r, "futhark", []allocator.Setting{{Name: "max_age", Value: "0"}, {Name: "proportion", Value: "0"}, {Name: "outgrown", Value: "off"}})
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return m
}

func textOf(t *testing.T, write func(io.Writer, *analysis.Analysis, Options) error, a *analysis.Analysis, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, a, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden compares the reports of all recordings with those that are committed: go test -update rewrites them.
// The long lists of the timeline are left out of the JSON.
func TestGolden(t *testing.T) {
	for _, name := range recordings(t) {
		base := strings.TrimSuffix(filepath.Base(name), ".gmt")
		a := analysed(t, name)
		limits := limitsOf(t, name)
		t.Run(base+".txt", func(t *testing.T) {
			golden.RequireEqual(t, textOf(t, WriteText, a, Options{Top: 20, All: true, Limits: limits}))
		})
		t.Run(base+".md", func(t *testing.T) {
			golden.RequireEqual(t, textOf(t, WriteMarkdown, a, Options{Top: 20, All: true, Limits: limits}))
		})
		short := *a
		l, none := a.Timeline, []uint64{}
		short.Timeline = analysis.Timeline{
			Start: l.Start, Step: l.Step, InUse: none, Cached: none, Cooling: none, Idle: none, Hits: none, Misses: none,
			Fragmentation: []float64{}, Waste: []float64{}, Tags: []analysis.Series{}, Free: []analysis.Series{},
		}
		t.Run(base+".json", func(t *testing.T) { golden.RequireEqual(t, textOf(t, WriteJSON, &short, Options{Limits: limits})) })
		for range 3 {
			if diff := cmp.Diff(textOf(t, WriteJSON, a, Options{}), textOf(t, WriteJSON, analysed(t, name), Options{})); diff != "" {
				t.Fatalf("%s: not the same twice: %s", base, diff)
			}
		}
	}
}

// TestReportOfAnAttachedProgramHasNoPool: reports of programs that were only watched do not mention a pool.
func TestReportOfAnAttachedProgramHasNoPool(t *testing.T) {
	a := analysed(t, "testdata/train.gmt", func(o *analysis.Options) { o.Header.Attached, o.Header.Policy = true, "none" })
	for name, write := range map[string]func(io.Writer, *analysis.Analysis, Options) error{"text": WriteText, "md": WriteMarkdown,
		"html": WriteHTML} {
		got := textOf(t, write, a, Options{Top: 20})
		for _, wrong := range []string{"hit rate", "Hit rate", "misses", "Misses", "cached and", "reserved", "ragmentation", " waste", "Free list"} {
			if _, page, ok := strings.Cut(got, "</style>"); ok {
				got = page[:max(0, strings.LastIndex(page, "<script"))]
			}
			if at := strings.Index(got, wrong); at >= 0 {
				t.Errorf("%s: %q where there is no pool: …%s…", name, wrong, got[max(0, at-100):min(len(got), at+100)])
			}
		}
		if !strings.Contains(got, "train.c") {
			t.Errorf("%s: no call sites in %s", name, got)
		}
	}
}

// TestIterations are found in the examples that have some, as many as were asked for.
func TestIterations(t *testing.T) {
	for name, want := range map[string]struct{ iterations, creates uint64 }{
		"train": {25, 10}, "pipeline": {6, 10}, "frag": {6, 4}, "leak": {5, 4}, "threads": {20, 3}, "stencil": {40, 1}, "churn": {500, 1},
		"tiny": {0, 0},
	} {
		var most analysis.Phase
		for _, p := range analysed(t, "testdata/"+name+".gmt").Phases {
			if p.Iterations > most.Iterations {
				most = p
			}
		}
		if most.Iterations != want.iterations || most.Creates != want.creates {
			t.Errorf("%s: %d iterations of %d creates, want %+v", name, most.Iterations, most.Creates, want)
		}
	}
}

// TestTextIsNarrowAndClean: all sections of all recordings fit the width that is asked for, and figures stay whole.
func TestTextIsNarrowAndClean(t *testing.T) {
	more, err := filepath.Glob("../replay/testdata/*.gmt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(recordings(t), more...) {
		a, limits := analysed(t, name), limitsOf(t, name)
		for _, width := range []int{0, 60, 80, 100, 120} {
			most := width
			if width == 0 {
				most = textWidth
			}
			lines := strings.Split(textOf(t, WriteText, a, Options{Width: width, All: true, Limits: limits}), "\n")
			for i, line := range lines {
				if n := units.Width(line); n > most || strings.TrimRight(line, " ") != line || strings.ContainsAny(line, "\x1b\r\t") {
					t.Errorf("%s at %d: %d columns: %q", name, width, n, line)
				}
				if i > 0 && lines[i-1] == "CALL SITES BY PEAK" && !strings.HasPrefix(strings.TrimLeft(line, " "), "peak") {
					t.Errorf("%s at %d: %q", name, width, line)
				}
			}
		}
	}
}

func TestWrap(t *testing.T) {
	var b bytes.Buffer
	units.Wrap(&b, textWidth, "label ", strings.Repeat("ä", 150)+" end "+strings.Repeat("b ", 60))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 3 || lines[0] != "label "+strings.Repeat("ä", 94) || !strings.HasPrefix(lines[1], "      ä") {
		t.Errorf("%q", lines)
	}
	b.Reset()
	units.Wrap(&b, textWidth, "label ", "")
	if b.String() != "label\n" {
		t.Errorf("%q", b.String())
	}
}

// TestMarkdownCannotBreakOut: names with pipes, backquotes and HTML stay text within their cell.
func TestMarkdownCannotBreakOut(t *testing.T) {
	text := textOf(t, WriteMarkdown, analysed(t, "testdata/tiny.gmt"), Options{})
	columns, pipe := 0, regexp.MustCompile(`(^|[^\\])\|`)
	for line := range strings.Lines(text) {
		n := len(pipe.FindAllString(strings.ReplaceAll(line, `\\`, ""), -1))
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if columns != 0 && n != columns {
			t.Errorf("%d pipes, want %d: %s", n, columns, line)
		}
		columns = n
	}
	for _, bad := range []string{"<script>", "<i>", "`tick`", "*star*", "\x1b"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q in\n%s", bad, text)
		}
	}
}

func TestJSONKeys(t *testing.T) {
	text := textOf(t, WriteJSON, analysed(t, "testdata/tiny.gmt"), Options{})
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields(`hit_rate hits misses per_tag processes findings exit peak misses_by_reason leaks temporaries phases
		driver_create_cost driver_copying_create_cost driver_release_cost lag timeline sizes lifetimes_ns flame diagnoses damage part`) {
		if _, ok := got[key]; !ok {
			t.Errorf("no key %s among %v", key, slices.Sorted(maps.Keys(got)))
		}
	}
	if string(got["hits"]) != "1" || string(got["misses"]) != "3" || !strings.Contains(string(got["exit"]), `"status": 3`) {
		t.Errorf("hits %s, misses %s, exit %s", got["hits"], got["misses"], got["exit"])
	}
	var leaks []analysis.Leak
	if err := json.Unmarshal(got["leaks"], &leaks); err != nil || len(leaks) != 2 || leaks[0].Oldest != 50_000 {
		t.Errorf("%v: %+v", err, leaks)
	}
	empty, err := analysis.Analyse(&randomrun.Tape{}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := textOf(t, WriteJSON, empty, Options{}); strings.Count(text, "null") != 1 || !strings.Contains(text, `"flame": null`) {
		t.Errorf("empty lists are null:\n%s", text)
	}
}

// TestTextNamesTheSectionsThatItLeavesOut: without --all a text has findings, key figures and call sites, and names the sections that it leaves out.
func TestTextNamesTheSectionsThatItLeavesOut(t *testing.T) {
	a := analysed(t, "testdata/leak.gmt")
	text, all := textOf(t, WriteText, a, Options{Top: 20}), textOf(t, WriteText, a, Options{Top: 20, All: true})
	_, left, found := strings.Cut(text, "--all adds: ")
	var headings []string
	for line := range strings.Lines(all) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line == strings.ToUpper(line) && !strings.HasPrefix(line, " ") {
			headings = append(headings, line)
		}
	}
	if want := []string{"FINDINGS", "KEY FIGURES", "CALL SITES BY PEAK"}; !found || len(headings) < 10 || !slices.Equal(headings[:3], want) {
		t.Fatalf("headings %q, in\n%s", headings, text)
	}
	left = strings.Join(strings.Fields(left), " ")
	if want := strings.ToLower(strings.Join(headings[3:], ", ")); left != want || headings[len(headings)-1] != "SETTINGS" {
		t.Errorf("left out: %q, want %q", left, want)
	}
	for _, heading := range headings[3:] {
		if strings.Contains(text, "\n"+heading+"\n") {
			t.Errorf("%s in\n%s", heading, text)
		}
	}
}

func TestTopBoundsTables(t *testing.T) {
	s := &stats.Snapshot{Processes: make([]stats.Process, 300)}
	for i := range s.Processes {
		s.Processes[i].Program = fmt.Sprintf("/bin/worker%d", i)
		s.Processes[i].Totals.PeakInUse = uint64(i)
	}
	a := &analysis.Analysis{Snapshot: s}
	some, all := textOf(t, WriteText, a, Options{Top: 20, All: true}), textOf(t, WriteText, a, Options{All: true})
	if strings.Count(some, "worker") != 20 || !strings.Contains(some, "and 280 more rows\n") || !strings.Contains(some, "worker299\n") {
		t.Errorf("20 of 300:\n%s", some)
	}
	if strings.Count(all, "worker") != 300 || strings.Contains(all, "more row") {
		t.Errorf("all of 300:\n%s", all)
	}
}

// TestReportSaysThatNothingWasSeen says that nothing was seen, and what happened all the same.
func TestReportSaysThatNothingWasSeen(t *testing.T) {
	s := &stats.Snapshot{Program: "ls", Marks: []stats.Mark{{Text: "transparent: no core"}}}
	for name, write := range map[string]func(io.Writer, *analysis.Analysis, Options) error{"text": WriteText, "markdown": WriteMarkdown} {
		text := textOf(t, write, &analysis.Analysis{Snapshot: s, Damage: "the end is cut off"}, Options{All: true})
		for _, part := range []string{"no OpenCL call was seen", "transparent: no core", "the end is cut off"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s lacks %q:\n%s", name, part, text)
			}
		}
	}
}

func TestWriteErrors(t *testing.T) {
	a := analysed(t, "testdata/tiny.gmt")
	for name, write := range map[string]func(io.Writer, *analysis.Analysis, Options) error{"text": WriteText, "json": WriteJSON,
		"md": WriteMarkdown} {
		if err := write(&records.Full{}, a, Options{}); err == nil || !strings.Contains(err.Error(), "no space") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBeyondTheEnd(t *testing.T) {
	a := analysed(t, "testdata/tiny.gmt", func(o *analysis.Options) { o.Since = 1e9 })
	if text := textOf(t, WriteText, a, Options{}); !strings.Contains(text,
		"nothing happened in this part: the recording ends after 0.000 s") {
		t.Errorf("%s", text)
	}
}

// TestBriefHasALineForEachFinding, in 80 columns and with the call site.
func TestBriefHasALineForEachFinding(t *testing.T) {
	text := textOf(t, WriteText, analysed(t, "testdata/leak.gmt"), Options{Width: 80, Sections: []string{"brief"}})
	const want = "FINDINGS\n- problem: memory grows with every iteration: leak.c:25 forget_result\n- problem: 5 buffers never released: leak.c:25 forget_result\n"
	if text != want {
		t.Errorf("%q", text)
	}
}

// TestWideCharacters: characters that take two columns neither shift what stands behind them nor make lines too long.
func TestWideCharacters(t *testing.T) {
	var b bytes.Buffer
	units.Wrap(&b, textWidth, "label ", strings.Repeat("日本語", 40)+" 9 % "+strings.Repeat("語 ", 60))
	table := newView(&analysis.Analysis{}, Options{}, false).newTable("", 2, wordsColumn("size"), wordsColumn("name"), wordsColumn("tag"))
	table.addRow(cell{Text: "1"}, cell{Text: "日本"}, cell{Text: strings.Repeat("語", 80)})
	table.addRow(cell{Text: "22"}, cell{Text: "b"}, cell{Text: "c"})
	table.writeText(&b, textWidth)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for _, line := range lines {
		if n := units.Width(line); n > textWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if got, want := lines[len(lines)-1], "    22     b  c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
