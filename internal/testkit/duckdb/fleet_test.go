package duckdb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
)

// fleetHeader is that of one of many runs: of two programs, two jobs, three days, ranks and policies.
func fleetHeader(i int) recording.Header {
	h := recording.Header{
		Host: hosts[i%2], Program: "app", Policy: []string{"futhark", "slab", "none"}[i%3], ClockNS: randomrun.Start + uint64(i),
		Created: created.Add(time.Duration(i)*time.Second).AddDate(0, 0, i%3),
	}
	h.User, h.Job, h.Rank, h.Revision = "ada", []string{"17", "", "job/a=b"}[i/2%3], strconv.Itoa(i), fmt.Sprint("r", i%4)
	h.Labels = map[string]string{"team": []string{"vision", "speech"}[i%2]}
	return h
}

// fill writes a lake as two writers would, and returns its rows.
func fill(tb testing.TB, runs, records int) []*lake.Rows {
	tb.Helper()
	var all []*lake.Rows
	for half := range 2 {
		l, err := parquet.OpenLake("lake", false, time.Now)
		if err != nil {
			tb.Fatal(err)
		}
		for i := half; i < runs; i += 2 {
			rows, err := lake.CollectRows(&randomrun.Tape{Records: randomrun.MakeRunWithoutSlabs(uint64(i), 2, records)}, fleetHeader(i))
			for _, r := range rows {
				r.Run.Build, r.Run.Ending = fmt.Sprint("b", i%2), []string{lake.Whole, lake.Cut, lake.Torn, lake.Log}[i%4]
				if i%5 == 0 {
					status := int64(i % 2)
					r.Run.RunStatus = &status
				}
			}
			if err == nil {
				err = l.AddRows(rows)
			}
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, rows...)
		}
		if _, err := l.Commit(); err != nil {
			tb.Fatal(err)
		}
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return all
}

// fleetQuestions returns the queries of docs/FLEET.md, and what makes its tables.
func fleetQuestions(tb testing.TB, path string) (views string, queries []string) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```(sql)?\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if m[1] == "sql" {
			queries = append(queries, m[2])
		} else if strings.HasPrefix(m[2], "SET VARIABLE") {
			views = m[2]
		}
	}
	return views, queries
}

func document(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../../../docs/FLEET.md")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFleet asks all questions, and compares the answers with what Go makes of the rows.
func TestFleet(t *testing.T) {
	doc := document(t)
	t.Chdir(t.TempDir())
	rows := fill(t, 24, 400)
	views, queries := fleetQuestions(t, doc)
	if len(queries) != len(answers) {
		t.Fatalf("%d questions, %d answers", len(queries), len(answers))
	}
	for i, query := range queries {
		want := answers[i](rows)
		if len(want) == 0 && i != 11 {
			t.Errorf("question %d has no rows", i+1)
		}
		alike(t, fmt.Sprint("question ", i+1), want, ask(t, views+query))
	}
	if kept, err := parquet.CompactLake("lake", time.Time{}, time.Now); err != nil || kept.Files != 6 {
		t.Fatalf("%+v, %v", kept, err)
	}
	for i, query := range queries {
		alike(t, fmt.Sprint("compacted, question ", i+1), answers[i](rows), ask(t, views+query))
	}
	alike(t, "labels", []string{"speech|24", "vision|24"}, ask(t, views+"SELECT labels['team'] AS team, count(*) FROM runs GROUP BY team ORDER BY team"))
	if polars := os.Getenv("POLARS"); polars != "" {
		askPolars(t, polars, doc, rows)
	}
}

// TestAlerts: the shipped alerts name what went wrong within a day, and no other run.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../../../monitoring/lake.sql")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	l, err := parquet.OpenLake("lake", false, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, age time.Duration, change func(*lake.Run, func(*figures.Figure, int64))) {
		r := lake.Run{
			Recording: name, Run: name + "-1", App: "train", Host: "node1", Path: name + ".gmt", Job: "7", Rank: "0", Size: "1", Ending: lake.Whole,
			DeviceBytes: 1000, Started: time.Now().Add(-age).UnixMicro(), Figures: make([]int64, len(lake.RunFigures)),
		}
		change(&r, func(f *figures.Figure, value int64) { r.Figures[slices.Index(lake.RunFigures, f)] = value })
		if err := l.AddRows([]*lake.Rows{{Run: r}}); err != nil {
			t.Fatal(err)
		}
	}
	three := int64(3)
	for name, change := range map[string]func(*lake.Run, func(*figures.Figure, int64)){
		"fine":    func(_ *lake.Run, set func(*figures.Figure, int64)) { set(figures.PeakReserved, 900) },
		"full":    func(_ *lake.Run, set func(*figures.Figure, int64)) { set(figures.PeakReserved, 901) },
		"leaky":   func(_ *lake.Run, set func(*figures.Figure, int64)) { set(figures.Leaked, 64) },
		"refused": func(_ *lake.Run, set func(*figures.Figure, int64)) { set(figures.Failures, 2) },
		"status":  func(r *lake.Run, _ func(*figures.Figure, int64)) { r.RunStatus = &three },
		"torn":    func(r *lake.Run, _ func(*figures.Figure, int64)) { r.Ending = lake.Torn },
		"alone":   func(r *lake.Run, _ func(*figures.Figure, int64)) { r.Job, r.Size = "8", "4" },
	} {
		add(name, time.Hour, change)
		add("old "+name, 25*time.Hour, change)
	}
	if _, err := l.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	compare(t, string(text), []string{
		"cannot create|train|7|node1|0|refused.gmt|2", "failed|train|7|node1|0|status.gmt|3", "leaks|train|7|node1|0|leaky.gmt|64",
		"missing ranks|train|8|||alone.gmt|3", "nearly full|train|7|node1|0|full.gmt|901", "torn|train|7|node1|0|torn.gmt|1",
	})
}

// askPolars asks the same questions of another engine, from a folder in which npm has put it.
func askPolars(t *testing.T, folder, doc string, rows []*lake.Rows) {
	t.Helper()
	script := filepath.Join(filepath.Dir(doc), "..", "test", "engines", "polars.js")
	lakeAt, err := filepath.Abs("lake")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "node", script, lakeAt, doc)
	command.Dir = folder
	command.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(folder, "node_modules"))
	out, err := command.Output()
	var tables [][][]any
	if err == nil {
		err = json.Unmarshal(out, &tables)
	}
	if err != nil || len(tables) != len(answers) {
		t.Fatalf("%v: %d tables of\n%.2000s", err, len(tables), out)
	}
	for i, table := range tables {
		var have []string
		for _, row := range table {
			have = append(have, strings.ReplaceAll(line(row...), ".000Z", "Z"))
		}
		alike(t, fmt.Sprint("Polars, question ", i+1), answers[i](rows), have)
	}
}

// alike compares rows whose numbers may differ by rounding.
func alike(t *testing.T, name string, want, have []string) {
	t.Helper()
	same := len(want) == len(have)
	for i := 0; same && i < len(want); i++ {
		a, b := strings.Split(want[i], "|"), strings.Split(have[i], "|")
		same = len(a) == len(b)
		for j := 0; same && j < len(a); j++ {
			x, err1 := strconv.ParseFloat(a[j], 64)
			y, err2 := strconv.ParseFloat(b[j], 64)
			same = a[j] == b[j] || err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-6*max(1, math.Abs(x))
		}
	}
	if !same {
		t.Errorf("%s: want\n%s\nhave\n%s", name, strings.Join(want[:min(len(want), 30)], "\n"), strings.Join(have[:min(len(have), 30)], "\n"))
	}
}

// group adds up columns of rows by words, and gives them in the order of less.
func group(order func(a, b []float64) int, most int, each func(add func(words string, columns ...float64))) []string {
	sums := map[string][]float64{}
	each(func(words string, columns ...float64) {
		if sums[words] == nil {
			sums[words] = make([]float64, len(columns))
		}
		for i, c := range columns {
			sums[words][i] += c
		}
	})
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(order(sums[a], sums[b]), cmp.Compare(strings.ReplaceAll(a, "|", "\x00"), strings.ReplaceAll(b, "|", "\x00")))
	})
	var lines []string
	for _, key := range keys[:min(len(keys), most)] {
		words := key
		for _, c := range sums[key] {
			words += fmt.Sprintf("|%.6f", c)
		}
		lines = append(lines, words)
	}
	return lines
}

func falling(column int) func(a, b []float64) int {
	return func(a, b []float64) int { return cmp.Compare(b[column], a[column]) }
}

func median(list []float64) float64 {
	slices.Sort(list)
	return (list[len(list)/2] + list[(len(list)-1)/2]) / 2
}

const everything = math.MaxInt

func byWords([]float64, []float64) int { return 0 }

// answers are what the questions of docs/FLEET.md are about, in their order.
var answers = []func(all []*lake.Rows) []string{
	func(all []*lake.Rows) []string { // 1: waste
		return group(falling(0), 10, func(add func(string, ...float64)) {
			for _, r := range all {
				for _, s := range r.Sites {
					add(line(r.Run.App, r.Run.Job, s.Site), s.Idle, s.Held)
				}
			}
		})
	},
	func(all []*lake.Rows) []string { // 2: hit rates
		return group(byWords, everything, func(add func(string, ...float64)) {
			for _, r := range all {
				add(line(r.Run.App, r.Run.Policy), 1, float64(r.Run.ValueOfFigure(figures.Hits)),
					float64(r.Run.ValueOfFigure(figures.Misses)), float64(r.Run.ValueOfFigure(figures.Saved))/1e9)
			}
		})
	},
	builds,
	func(all []*lake.Rows) []string { // 4: a smaller card
		apps := map[string][]float64{}
		for _, r := range all {
			a := append(apps[r.Run.App], 0, 0, 0)[:3]
			apps[r.Run.App] = []float64{a[0] + 1, max(a[1], float64(r.Run.ValueOfFigure(figures.PeakReserved))), max(a[2],
				float64(r.Run.ValueOfFigure(figures.PeakInUse)))}
		}
		return group(byWords, everything, func(add func(string, ...float64)) {
			for app, a := range apps {
				add(app, a...)
			}
		})
	},
	func(all []*lake.Rows) []string { // 5: arenas
		return group(falling(3), everything, func(add func(string, ...float64)) {
			for _, r := range all {
				if reserved, peak := float64(r.Run.ValueOfFigure(figures.PeakReserved)),
					float64(r.Run.ValueOfFigure(figures.PeakInUse)); r.Run.Policy != "none" {
					add(r.Run.Policy, 1, reserved, peak, reserved-peak)
				}
			}
		})
	},
	func(all []*lake.Rows) []string { // 6: misses
		return group(falling(1), 20, func(add func(string, ...float64)) {
			for _, r := range all {
				for _, m := range r.Misses {
					add(line(r.Run.App, m.Site, m.Reason), float64(m.Count), float64(m.DriverNS)/1e6)
				}
			}
		})
	},
	func(all []*lake.Rows) []string { // 7: leaks
		return group(falling(2), everything, func(add func(string, ...float64)) {
			for _, r := range all {
				for _, s := range r.Sites {
					if s.Leaks > 0 {
						add(line(r.Run.App, s.Site), 1, float64(s.Leaks), float64(s.Leaked))
					}
				}
			}
		})
	},
	ranks,
	func(all []*lake.Rows) []string { // 9: mistakes
		return group(falling(1), everything, func(add func(string, ...float64)) {
			for _, r := range all {
				for _, f := range r.Findings {
					add(line(r.Run.App, f.Kind, f.Function, f.Site), 1, float64(f.Count))
				}
			}
		})
	},
	func(all []*lake.Rows) []string { // 10: transfers
		return group(falling(2), 20, func(add func(string, ...float64)) {
			for _, r := range all {
				for _, f := range r.Transfers {
					add(line(r.Run.App, f.Site, f.Direction), float64(f.Bytes), float64(f.Pageable), float64(f.BlockedNS)/1e6)
				}
			}
		})
	},
	func(all []*lake.Rows) []string { // 11: time near the peak
		return group(byWords, everything, func(add func(string, ...float64)) {
			for _, r := range all {
				if r.Run.Ending != lake.Log {
					add(r.Run.App, r.Run.Seconds, float64(r.Run.NearPeak)/1e9)
				}
			}
		})
	},
	func(all []*lake.Rows) []string { // 12: failures
		return group(falling(0), everything, func(add func(string, ...float64)) {
			for _, r := range all {
				failed, torn := 0.0, 0.0
				status := cmp.Or(r.Run.Status, r.Run.RunStatus)
				if status != nil && *status != 0 {
					failed = 1
				}
				if r.Run.Ending == lake.Torn {
					torn = 1
				}
				if failed+torn > 0 || r.Run.ValueOfFigure(figures.Failures) > 0 {
					add(line(r.Run.App, r.Run.Policy, r.Run.Device), 1, float64(r.Run.ValueOfFigure(figures.Failures)), failed, torn)
				}
			}
		})
	},
}

func builds(all []*lake.Rows) []string {
	type build struct{ app, id, revision string }
	peaks, since := map[build][]float64{}, map[build]int64{}
	for _, r := range all {
		b := build{r.Run.App, r.Run.Build, r.Run.Revision}
		if b.id == "" {
			continue
		}
		peaks[b] = append(peaks[b], float64(r.Run.ValueOfFigure(figures.PeakInUse)))
		if since[b] == 0 || r.Run.Started < since[b] {
			since[b] = r.Run.Started
		}
	}
	least := map[string]float64{}
	for b, list := range peaks {
		if m := median(list); least[b.app] == 0 || m < least[b.app] {
			least[b.app] = m
		}
	}
	keys := slices.SortedFunc(maps.Keys(peaks), func(a, b build) int {
		return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(since[a], since[b]), cmp.Compare(a.id, b.id), cmp.Compare(a.revision, b.revision))
	})
	var lines []string
	for _, b := range keys {
		if m := median(peaks[b]); m > 1.1*least[b.app] {
			lines = append(lines, line(b.app, b.id, b.revision, time.UnixMicro(since[b]), len(peaks[b]), m, m/least[b.app]))
		}
	}
	return lines
}

func ranks(all []*lake.Rows) []string {
	peaks := map[[2]string][]float64{}
	for _, r := range all {
		job := [2]string{r.Run.App, r.Run.Job}
		peaks[job] = append(peaks[job], float64(r.Run.ValueOfFigure(figures.PeakInUse)))
	}
	list := slices.SortedFunc(slices.Values(all), func(a, b *lake.Rows) int {
		return cmp.Or(cmp.Compare(b.Run.ValueOfFigure(figures.PeakInUse), a.Run.ValueOfFigure(figures.PeakInUse)), cmp.Compare(a.Run.App,
			b.Run.App), cmp.Compare(a.Run.Job, b.Run.Job),
			cmp.Compare(a.Run.Rank, b.Run.Rank), cmp.Compare(a.Run.Host, b.Run.Host), cmp.Compare(a.Run.PID, b.Run.PID))
	})
	var lines []string
	for _, r := range list {
		if m := median(peaks[[2]string{r.Run.App, r.Run.Job}]); float64(r.Run.ValueOfFigure(figures.PeakInUse)) > 1.25*m {
			lines = append(lines, line(r.Run.App, r.Run.Job, r.Run.Rank, r.Run.Host, r.Run.PID, r.Run.ValueOfFigure(figures.PeakInUse), m))
		}
	}
	return lines
}

// BenchmarkFleet fills a lake with 10,000 runs of 2 processes and some 500 records each, and asks all questions.
func BenchmarkFleet(b *testing.B) {
	doc := document(b)
	b.Chdir(b.TempDir())
	const runs = 10_000
	for b.Loop() {
		began := time.Now()
		fill(b, runs, 500)
		b.ReportMetric(float64(time.Since(began).Seconds()), "s-to-fill")
		measure(b, doc)
		if err := os.RemoveAll("lake"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompact fills a lake with 2,000 runs of as many jobs, each 20 to a commit, compacts it and asks all questions.
func BenchmarkCompact(b *testing.B) {
	doc := document(b)
	b.Chdir(b.TempDir())
	for b.Loop() {
		var rows []*lake.Rows
		for i := range 2000 {
			h := fleetHeader(i)
			h.Job = fmt.Sprint("job", i)
			more, err := lake.CollectRows(&randomrun.Tape{Records: randomrun.MakeRunWithoutSlabs(uint64(i), 2, 500)}, h)
			if rows = append(rows, more...); err == nil && i%20 == 19 {
				err, rows = commit(rows), nil
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		began := time.Now()
		if _, err := parquet.CompactLake("lake", time.Time{}, time.Now); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s-to-compact")
		measure(b, doc)
		if err := os.RemoveAll("lake"); err != nil {
			b.Fatal(err)
		}
	}
}

// commit adds rows.
func commit(rows []*lake.Rows) error {
	l, err := parquet.OpenLake("lake", true, time.Now)
	if err == nil {
		err = l.AddRows(rows)
	}
	if err == nil {
		_, err = l.Commit()
	}
	if err != nil {
		return err
	}
	return l.Close()
}

// measure reports how large the lake is, and how long the questions take.
func measure(b *testing.B, doc string) {
	b.Helper()
	size, files := int64(0), 0
	err := filepath.WalkDir("lake", func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size, files = size+info.Size(), files+1
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(size)/1e6, "MB")
	b.ReportMetric(float64(files), "files")
	views, queries := fleetQuestions(b, doc)
	slowest := time.Duration(0)
	began := time.Now()
	for _, query := range queries {
		asked := time.Now()
		ask(b, views+query)
		slowest = max(slowest, time.Since(asked))
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-to-ask-all")
	b.ReportMetric(slowest.Seconds(), "s-slowest")
}
