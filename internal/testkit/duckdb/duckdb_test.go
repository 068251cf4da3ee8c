package duckdb

import (
	"cmp"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2" // the driver
	gocmp "github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/parquet"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// run is one recording: where it is from, and what the model says of it. When processes end, their memory leaves what
// the model says of call sites, so these are as they were before.
type run struct {
	host     string
	records  []wire.Record
	snapshot *stats.Snapshot
	tags     []stats.Tag
}

// hosts are called so that a database must undo what the names of folders need.
var hosts = []string{"node/1=a", "node 2"}

// created is when the runs start.
var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// export writes runs of two hosts into the folder runs, and goes where it is.
func export(t *testing.T, seed uint64) []run {
	t.Helper()
	t.Chdir(t.TempDir())
	list := make([]run, len(hosts))
	for i, host := range hosts {
		r := run{host: host, records: randomrun.MakeRunWithoutSlabs(seed+uint64(i), 3, 12_000)}
		m := stats.New(stats.Options{Started: randomrun.Start})
		for i := range r.records {
			if r.records[i].Kind == wire.KindExit && r.tags == nil {
				r.tags = m.PublishSnapshot().Tags
			}
			m.Apply(&r.records[i])
		}
		r.snapshot = m.PublishSnapshot()
		list[i] = r
		err := parquet.WriteTables("runs", false, &randomrun.Tape{Records: r.records}, tables.Options{Header: recording.Header{
			Host: host, Program: "app", Policy: "futhark", ClockNS: randomrun.Start,
			Created: created,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// ask returns the rows of a query, fields separated by |.
func ask(t testing.TB, query string) []string {
	t.Helper()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s:\n%v", query, err)
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	values, places := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		places[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			t.Fatal(err)
		}
		list = append(list, line(values...))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func line(values ...any) string {
	words := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case float64:
			words[i] = fmt.Sprintf("%.6f", v)
		case time.Time:
			words[i] = v.UTC().Format(time.RFC3339)
		default:
			words[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(words, "|")
}

// compare compares what a query says with what is right, in that order.
func compare(t *testing.T, query string, want []string) {
	t.Helper()
	compareLines(t, query, want, ask(t, query))
}

func compareLines(t *testing.T, query string, want, have []string) {
	t.Helper()
	if diff := gocmp.Diff(want, have); diff != "" {
		t.Errorf("%s\n(-right +DuckDB):\n%s", query, diff)
	}
	if len(want) == 0 {
		t.Error("nothing was compared")
	}
}

// TestFigures recomputes figures of the model from events and from lives.
func TestFigures(t *testing.T) {
	for seed := range uint64(3) {
		runs := export(t, 10*seed)
		var processes, tags []string
		for _, r := range runs {
			for i := range r.snapshot.Processes {
				p := &r.snapshot.Processes[i]
				processes = append(processes, line(r.host, p.PID, p.Totals.PeakInUse, p.Totals.InUse, p.Totals.LiveBuffers, p.Totals.HitRate()))
			}
			for i := range r.tags {
				tag := &r.tags[i]
				tags = append(tags, line(r.host, tag.Name, tag.Hits, tag.Misses, tag.InUse, tag.Live))
			}
		}
		slices.Sort(processes)
		slices.Sort(tags)
		compare(t, perProcess, processes)
		compare(t, byTag, tags)
	}
}

// perProcess adds up all creates and releases in their order. No two of them have the same time here.
const perProcess = `
WITH changes AS (
    SELECT host, process, created_ns AS moment, granted AS bytes FROM 'runs/buffers/**/*.parquet' WHERE owns
    UNION ALL SELECT host, process, released_ns, -granted FROM 'runs/buffers/**/*.parquet' WHERE owns AND released_ns IS NOT NULL
), held AS (
    SELECT host, process, moment, sum(bytes) OVER (PARTITION BY host, process ORDER BY moment) AS in_use FROM changes
), held_at AS (
    SELECT host, process, max(in_use)::BIGINT AS peak, arg_max(in_use, moment)::BIGINT AS left_over FROM held GROUP BY ALL
), requests AS (
    SELECT host, process, count(*) FILTER (outcome = 'hit') AS hits, count(*) FILTER (outcome IN ('hit', 'miss')) AS poolable
    FROM 'runs/events/**/*.parquet' WHERE kind = 'create' AND NOT carried GROUP BY ALL
), leaks AS (
    SELECT host, process, count(*) FILTER (ending IN ('leaked', 'held at exit')) AS buffers FROM 'runs/buffers/**/*.parquet' GROUP BY ALL
)
SELECT host, process, peak, left_over, buffers, hits / poolable
FROM held_at JOIN requests USING (host, process) JOIN leaks USING (host, process)
ORDER BY host, process`

const byTag = `
SELECT host, site, count(*) FILTER (outcome = 'hit'), count(*) FILTER (outcome = 'miss'),
    coalesce(sum(granted) FILTER (ending IN ('leaked', 'held at exit') AND owns), 0)::BIGINT, count(*) FILTER (ending IN ('leaked', 'held at exit'))
FROM 'runs/buffers/**/*.parquet' GROUP BY ALL ORDER BY host, site`

// TestTablesAgree compares tables with each other: everything can be had in more than one way.
func TestTablesAgree(t *testing.T) {
	runs := export(t, 77)
	var want []string
	for _, r := range runs {
		for i := range r.snapshot.Processes {
			p := &r.snapshot.Processes[i]
			want = append(want, line(r.host, p.PID, p.Program, p.Status, p.Totals.Hits, p.Totals.Misses, p.Totals.PeakInUse, p.Totals.InUse, p.Totals.Cached, p.Totals.Cooling))
		}
	}
	slices.Sort(want)
	compare(t, `
WITH sampled AS (
    SELECT recording, number, sum(hits)::BIGINT AS hits, sum(misses)::BIGINT AS misses, max(peak_in_use) AS peak, arg_max(in_use, time_ns) AS in_use
    FROM 'runs/samples/**/*.parquet' GROUP BY ALL
), pooled AS (
    SELECT recording, number, sum(size) FILTER (state = 'cached')::BIGINT AS cached, sum(size) FILTER (state = 'cooling')::BIGINT AS cooling
    FROM 'runs/blocks/**/*.parquet' WHERE ending = 'end' GROUP BY ALL
)
SELECT host, process, program, exit_status, s.hits, s.misses, s.peak, s.in_use, coalesce(cached, 0), coalesce(cooling, 0)
FROM 'runs/processes/**/*.parquet' p JOIN sampled s USING (recording, number) LEFT JOIN pooled USING (recording, number)
WHERE p.hits = s.hits AND p.misses = s.misses AND p.peak_in_use = s.peak AND p.in_use = s.in_use AND p.hostname = host AND p.pid = process
ORDER BY host, process`, want)
	compare(t, `SELECT count(*) FROM 'runs/buffers/**/*.parquet' ANTI JOIN 'runs/tags/**/*.parquet' USING (recording, number, tag, site, stack)`, []string{"0"})
	compare(t, `SELECT count(*) FROM 'runs/events/**/*.parquet' WHERE epoch_us(time) - epoch_us(TIMESTAMPTZ '2026-03-01 12:00:00+00') != time_ns // 1000`, []string{"0"})
}

// documented returns the queries of docs/queries.sql, word by word. It must be called before the working folder changes.
func documented(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/queries.sql")
	if err != nil {
		t.Fatal(err)
	}
	list := strings.SplitAfter(strings.TrimSpace(string(text)), ";\n")
	if len(list) != 5 {
		t.Fatalf("%d queries, want 5", len(list))
	}
	return list
}

// TestDocumentedQueries runs the queries of the documentation.
func TestDocumentedQueries(t *testing.T) {
	queries := documented(t)
	runs := export(t, 42)
	for i, want := range [][]string{bySecond(runs), leaks(runs), aboveMedian(runs), misses(runs), heldLongest(runs)} {
		compare(t, queries[i], want)
	}
}

// life is one buffer, as a plain reading of the records has it.
type life struct {
	host            string
	pid             int
	site, reason    string
	owns, miss      bool
	object          uint64
	granted         int64
	parent          *life // of a sub-buffer
	cost, used, end int64 // used, end: ns since the start, 0 when never
}

// lives pairs creates and releases.
func lives(runs []run) []*life {
	type object struct {
		process uint32
		number  uint64
	}
	var list []*life
	for _, r := range runs {
		open := map[object]*life{}
		for i := range r.records {
			e := &r.records[i]
			since := int64(e.Time - randomrun.Start)
			key := object{e.Process, e.Object}
			switch l := open[key]; {
			case e.Kind == wire.KindCreate && e.Outcome != wire.OutcomeFailed:
				l := &life{
					host: r.host, pid: 999 + int(e.Process), site: "(untagged)", owns: e.Op != uint8(wire.MemorySubBuffer),
					object: e.Object, granted: int64(e.BytesServing()), cost: int64(e.Cost),
					miss: e.Outcome == wire.OutcomeMiss, reason: wire.Miss(e.Reason).String(),
				}
				if e.Tag > 0 {
					l.site = fmt.Sprintf("app.c:%d f%d", 10*e.Tag, e.Tag)
				}
				if !l.owns {
					l.parent = open[object{e.Process, e.Link}]
				}
				open[key], list = l, append(list, l)
			case l == nil:
			case e.Kind == wire.KindUse:
				for of := l; of != nil && of.end == 0; of = of.parent {
					of.used = since
				}
			case e.Kind == wire.KindRelease:
				l.end = since
			}
		}
	}
	return list
}

func leaks(runs []run) []string {
	type key struct {
		site, host string
		pid        int
	}
	type sum struct {
		key
		buffers, bytes int64
	}
	sums, aborted := map[key]*sum{}, map[key]bool{} // by host and pid: what they held is no leak
	for _, r := range runs {
		for i := range r.snapshot.Processes {
			aborted[key{host: r.host, pid: r.snapshot.Processes[i].PID}] = r.snapshot.Processes[i].WasAborted()
		}
	}
	var list []*sum
	for _, l := range lives(runs) {
		k := key{l.site, l.host, l.pid}
		if l.end > 0 || !l.owns || aborted[key{host: l.host, pid: l.pid}] {
			continue
		}
		if sums[k] == nil {
			sums[k] = &sum{key: k}
			list = append(list, sums[k])
		}
		sums[k].buffers++
		sums[k].bytes += l.granted
	}
	slices.SortFunc(list, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.site, b.site), cmp.Compare(a.host, b.host), cmp.Compare(a.pid, b.pid))
	})
	var lines []string
	for _, s := range list {
		lines = append(lines, line(s.site, s.host, s.pid, s.buffers, s.bytes))
	}
	return lines
}

func aboveMedian(runs []run) []string {
	type rank struct {
		host string
		*stats.Process
	}
	var ranks []rank
	for _, r := range runs {
		for i := range r.snapshot.Processes {
			ranks = append(ranks, rank{r.host, &r.snapshot.Processes[i]})
		}
	}
	slices.SortFunc(ranks, func(a, b rank) int { return cmp.Compare(b.Totals.PeakInUse, a.Totals.PeakInUse) })
	var lines []string
	for _, r := range ranks[:len(ranks)/2] { // an even number, all different
		lines = append(lines, line(r.host, r.PID, strings.Join(r.Arguments, " "), r.Totals.PeakInUse))
	}
	return lines
}

func misses(runs []run) []string {
	type key struct{ site, reason string }
	type sum struct {
		key
		misses, cost int64
	}
	sums := map[key]*sum{}
	var list []*sum
	for _, l := range lives(runs) {
		if !l.miss {
			continue
		}
		k := key{l.site, l.reason}
		if sums[k] == nil {
			sums[k] = &sum{key: k}
			list = append(list, sums[k])
		}
		sums[k].misses++
		sums[k].cost += l.cost
	}
	slices.SortFunc(list, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.site, b.site), cmp.Compare(a.reason, b.reason))
	})
	var lines []string
	for _, s := range list {
		lines = append(lines, line(s.site, s.reason, s.misses, float64(s.cost)/1e6))
	}
	return lines
}

func heldLongest(runs []run) []string {
	list := slices.DeleteFunc(lives(runs), func(l *life) bool { return l.used == 0 || l.end == 0 })
	slices.SortFunc(list, func(a, b *life) int { return cmp.Compare(b.end-b.used, a.end-a.used) })
	var lines []string
	for _, l := range list[:10] {
		lines = append(lines, line(l.host, l.pid, l.site, l.granted, float64(l.end-l.used)/1e9))
	}
	return lines
}
