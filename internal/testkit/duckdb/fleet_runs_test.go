package duckdb

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// manyRuns is how many runs TestFleetOfManyRuns makes.
var manyRuns = flag.Int("fleet.runs", 0, "runs of examples that TestFleetOfManyRuns makes")

// made is a run that the test made: what a row must say of it.
type made struct {
	path, example, host, job, rank, revision string

	torn   bool
	status int64 // of the program that was started
}

const killsParent = `"$0" "$@"; kill -9 $PPID`

// commandOf returns the command of a run, and what is to be known of it. Some fail, some are killed, some lack memory.
func commandOf(root, folder string, i int) (*made, []string) {
	programs := [][]string{
		{"churn", "60"}, {"frag", "2"}, {"leak", "3", "64K"}, {"mosaic", "3", "64K"}, {"multiqueue", "5", "64K"}, {"pipeline", "5", "64K"},
		{"staging", "4", "64K"}, {"stencil", "9", "64K"}, {"threads", "2", "9"}, {"tiny", "40"}, {"train", "6"}, {"transfers", "3", "64K"},
	}
	policies := []string{"none", "futhark", "pow2", "buckets", "slab", "arena", "mantissa"}
	program := programs[i%len(programs)]
	m := &made{
		path: filepath.Join(folder, fmt.Sprintf("%04d.gmt", i)), example: program[0], host: fmt.Sprint("node", i%4), job: fmt.Sprint(100 + i/24),
		rank: fmt.Sprint(i % 24), revision: fmt.Sprint("r", i/100),
	}
	if m.example == "stencil" && i/100 == 1 { // the later build needs more
		program = []string{"stencil", "9", "256K"}
	}
	words := append([]string{filepath.Join(root, "bin/examples", program[0])}, program[1:]...)
	switch {
	case i%20 == 7:
		words, m.status = append([]string{"sh", "-c", `"$0" "$@"; exit 3`}, words...), 3
	case i%25 == 9:
		words, m.torn, m.status = append([]string{"sh", "-c", killsParent}, words...), true, -1
	case i%25 == 11: // more than the device has
		words, m.status = []string{filepath.Join(root, "bin/examples/stencil"), "2", "9999G"}, 1
		m.example = "stencil"
	}
	line := []string{filepath.Join(root, "bin/gpumemtop"), "record", "--policy", policies[i%len(policies)], "--label", "team=" + []string{"vision", "speech"}[i%2], "-o", m.path, "--"}
	return m, append([]string{"unshare", "-u", "sh", "-c", `hostname "$0" && exec "$@"`, m.host}, append(line, words...)...)
}

// makeRuns makes runs, several at a time.
func makeRuns(t *testing.T, folder string) map[string]*made {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "-u", "true").CombinedOutput(); err != nil {
		t.Fatalf("unshare takes another host's name: run this as root: %v: %s", err, out)
	}
	all := map[string]*made{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	for w := range 2 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := w; i < *manyRuns; i += 2 * runtime.GOMAXPROCS(0) {
				m, words := commandOf(root, folder, i)
				c := exec.CommandContext(t.Context(), words[0], words[1:]...)
				c.Env = append(os.Environ(), "SLURM_JOB_ID="+m.job, "SLURM_PROCID="+m.rank, "GIT_COMMIT="+m.revision)
				out, _ := c.CombinedOutput()
				if _, err := os.Stat(m.path); err != nil {
					t.Errorf("%q left no recording: %s", words, out)
				}
				mu.Lock()
				all[m.path] = m
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	return all
}

// held is a buffer that is in use.
type held struct {
	site    string
	created uint64
	bytes   int64
}

// fromEvents is what a plain reading of a process's events says. Sub-buffers have no memory of their own.
type fromEvents struct {
	account
	failures, hits, misses uint64
	sites                  map[string]*lake.Site
	missed                 map[[2]string]*lake.Miss
	live                   map[uint64]held
	exited                 bool // by its own word, which is all that a torn recording may have
}

func (f *fromEvents) site(name string) *lake.Site {
	if f.sites[name] == nil {
		f.sites[name] = &lake.Site{Site: name}
	}
	return f.sites[name]
}

func (f *fromEvents) add(r *wire.Record, names *callsite.ProcessNames) {
	f.take(r)
	switch r.Kind {
	case wire.KindCreate:
		e := r.AsCreate()
		if e.Outcome() == wire.OutcomeFailed {
			f.failures++
			return
		}
		if e.Memory() == wire.MemorySubBuffer {
			return
		}
		name := callsite.Untagged
		if e.Tag() > 0 {
			name = names.Site(e.Tag()).Name
		}
		f.live[e.Object()] = held{name, r.Time, int64(e.Granted())}
		s := f.site(name)
		s.Creates++
		switch e.Outcome() {
		case wire.OutcomeHit:
			f.hits++
			s.Hits++
		case wire.OutcomeMiss:
			f.misses++
			s.Misses++
			key := [2]string{name, e.Reason().String()}
			if f.missed[key] == nil {
				f.missed[key] = &lake.Miss{Site: name, Reason: key[1]}
			}
			m := f.missed[key]
			m.Count, m.Bytes, m.DriverNS = m.Count+1, m.Bytes+int64(e.Requested()), m.DriverNS+int64(e.Cost())
		default:
		}
	case wire.KindRelease:
		if e := r.AsRelease(); e.References() == 0 {
			f.end(e.Object(), r.Time)
		}
	case wire.KindExit:
		f.exited = true
	default:
	}
}

func (f *fromEvents) end(object, now uint64) {
	if h, there := f.live[object]; there {
		f.site(h.site).Held += float64(h.bytes) * float64(now-h.created) / 1e9
		delete(f.live, object)
	}
}

// finish ends what was never released with its process.
func (f *fromEvents) finish(last uint64) {
	end := cmp.Or(f.account.end, last)
	f.advance(last)
	for object, h := range f.live {
		if s := f.site(h.site); f.exited && f.status >= 0 && f.status <= 128 {
			s.Leaks++
			s.Leaked += h.bytes
		}
		f.end(object, max(end, h.created))
	}
}

// overwrite replaces in a row what the events say, so that only what they do not say is the lake's own.
func (f *fromEvents) overwrite(r *lake.Rows) {
	set := func(of *figures.Figure, n uint64) { r.Run.Figures[slices.Index(lake.RunFigures, of)] = int64(n) }
	set(figures.Hits, f.hits)
	set(figures.Misses, f.misses)
	set(figures.Failures, f.failures)
	set(figures.PeakInUse, uint64(f.peak))
	near := uint64(0)
	for _, level := range f.levels {
		if level.bytes > 0.9*f.peak {
			near += level.ns
		}
	}
	r.Run.NearPeak = int64(near)
	for i := range r.Sites {
		have, want := &r.Sites[i], f.site(r.Sites[i].Site)
		have.Creates, have.Hits, have.Misses, have.Held, have.Leaks, have.Leaked = want.Creates, want.Hits, want.Misses, want.Held, want.Leaks, want.Leaked
		delete(f.sites, have.Site)
	}
	for _, s := range f.sites { // the lake lacks them
		r.Sites = append(r.Sites, *s)
	}
	r.Misses = nil
	for _, m := range f.missed {
		r.Misses = append(r.Misses, *m)
	}
}

// readEvents returns the rows of a run, with what its events and the test say of it.
func readEvents(t *testing.T, m *made) []*lake.Rows {
	t.Helper()
	reader, err := recording.Open(m.path)
	if err != nil {
		t.Fatal(m.path, err)
	}
	defer func() { _ = reader.Close() }()
	rows, err := lake.CollectRows(reader, reader.Header())
	if err != nil {
		t.Fatal(m.path, err)
	}
	names, err := callsite.ReadNames(reader)
	if err == nil {
		err = reader.Rewind()
	}
	if err != nil {
		t.Fatal(m.path, err)
	}
	processes, last := map[int32]*fromEvents{}, uint64(0)
	for r, err := range recording.Records(reader) {
		if err != nil {
			t.Fatal(m.path, err)
		}
		if last = max(last, r.Time); r.Process == 0 {
			continue
		}
		number := int32(r.Process)
		if processes[number] == nil {
			processes[number] = &fromEvents{account: account{sizes: map[uint64]float64{}}, sites: map[string]*lake.Site{}, missed: map[[2]string]*lake.Miss{}, live: map[uint64]held{}}
		}
		processes[number].add(r, names.Process(r.Process))
	}
	for _, r := range rows {
		f := processes[r.Run.Number]
		f.finish(last)
		f.overwrite(r)
		status := m.status
		if r.Run.App, r.Run.Host, r.Run.Job, r.Run.Rank, r.Run.Revision = m.example, m.host, m.job, m.rank, m.revision; m.torn {
			r.Run.Ending = lake.Torn
		} else {
			r.Run.Ending, r.Run.RunStatus = lake.Whole, &status
		}
	}
	return rows
}

// TestFleetOfManyRuns makes runs of examples, fills a lake as people do, and compares the answers with what events say.
func TestFleetOfManyRuns(t *testing.T) {
	if *manyRuns == 0 {
		t.Skip("make test-fleet makes them")
	}
	doc, folder := document(t), t.TempDir()
	began := time.Now()
	all := makeRuns(t, folder)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs in %v", len(all), time.Since(began).Round(time.Second))
	t.Chdir(folder)
	paths, err := filepath.Glob(filepath.Join(folder, "*.gmt"))
	if err != nil || len(paths) != *manyRuns {
		t.Fatalf("%d recordings of %d runs: %v", len(paths), *manyRuns, err)
	}
	for _, part := range [][]string{paths[:len(paths)/3], paths} { // as the folder grows
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin/gpumemtop"), append([]string{"export", "--format", "parquet", "-o", "lake"}, part...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var rows []*lake.Rows
	torn, failures := 0, uint64(0)
	for _, path := range paths {
		more := readEvents(t, all[path])
		rows = append(rows, more...)
		for _, r := range more {
			failures += uint64(r.Run.ValueOfFigure(figures.Failures))
		}
		if all[path].torn {
			torn++
		}
	}
	if len(rows) < *manyRuns*9/10 || torn == 0 || failures == 0 {
		t.Fatalf("%d rows of %d runs, %d torn, %d creates failed", len(rows), *manyRuns, torn, failures)
	}
	views, queries := fleetQuestions(t, doc)
	for i, query := range queries {
		alike(t, fmt.Sprint("question ", i+1), answers[i](rows), ask(t, views+query))
	}
	t.Logf("%d rows, %d torn, %d creates failed: %v in all", len(rows), torn, failures, time.Since(began).Round(time.Second))
}
