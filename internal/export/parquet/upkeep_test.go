package parquet

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
)

// compactEnv and addEnv make the test's executable change a lake, for tests that kill it.
const (
	compactEnv = "GPUMEMTOP_TEST_COMPACT"
	addEnv     = "GPUMEMTOP_TEST_ADD"
)

func TestMain(m *testing.M) {
	if os.Getenv(addEnv)+os.Getenv(compactEnv) != "" {
		runtime.LockOSThread() // strace counts the calls of each thread
	}
	if dir := os.Getenv(addEnv); dir != "" {
		if err := add(dir, 9, 40); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(compactEnv); dir != "" {
		if _, err := CompactLake(dir, time.Time{}, time.Now); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// addRun adds a recording that has some records.
func addRun(t testing.TB, dir string, number, records int) {
	t.Helper()
	if err := add(dir, number, records); err != nil {
		t.Error(err)
	}
}

func add(dir string, number, records int) error {
	h := header(fmt.Sprint("host", number))
	h.Created = created.AddDate(0, 0, number)
	rows, err := lake.CollectRows(&randomrun.Tape{Records: randomrun.MakeRunWithoutSlabs(uint64(number), 2, records)}, h)
	if err != nil {
		return err
	}
	l, err := OpenLake(dir, false, time.Now)
	if err != nil {
		return err
	}
	if err = l.AddRows(rows); err == nil {
		_, err = l.Commit()
	}
	return errors.Join(err, l.Close())
}

// asked returns all rows that the views of docs/FLEET.md show.
func asked(t testing.TB, dir string) (list []string) {
	t.Helper()
	last := map[any]string{}
	tablesOf := func(table string, take func(commit string, row map[string]any)) {
		names, _ := filepath.Glob(filepath.Join(dir, commits, table+".parquet"))
		for _, name := range names {
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			in := parquet.NewReader(file)
			for range in.NumRows() {
				row := map[string]any{}
				if err := in.Read(&row); err != nil {
					t.Fatal(err)
				}
				take(filepath.Dir(name), row)
			}
			_ = file.Close()
		}
	}
	tablesOf(Runs, func(commit string, row map[string]any) { last[row["recording"]] = commit })
	counted := map[string]bool{}
	tablesOf(Runs, func(commit string, row map[string]any) {
		if last[row["recording"]] == commit {
			counted[fmt.Sprint(commit, row["run"])] = true
		}
	})
	for _, table := range lakeNames {
		tablesOf(table, func(commit string, row map[string]any) {
			if counted[fmt.Sprint(commit, row["run"])] {
				list = append(list, fmt.Sprint(table, row))
			}
		})
	}
	slices.Sort(list)
	return list
}

// someLake makes a lake of 6 recordings with two processes each. Two recordings have grown since they were first added.
func someLake(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lake")
	for i := range 6 {
		addRun(t, dir, i, 60)
	}
	addRun(t, dir, 2, 200)
	addRun(t, dir, 5, 90)
	return dir
}

func sameRows(t *testing.T, what string, want, have []string) {
	t.Helper()
	if !slices.Equal(want, have) {
		t.Fatalf("%s: %d rows, want %d:\n%.3000s\nwant\n%.3000s", what, len(have), len(want), strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

func TestCompactAndExpire(t *testing.T) {
	racetest.Slow(t)
	dir := someLake(t)
	want := asked(t, dir)
	if _, err := ListLakeFiles(dir); err == nil || !strings.Contains(err.Error(), "compact first") {
		t.Errorf("files of a lake with replaced rows: %v", err)
	}
	kept, err := CompactLake(dir, time.Time{}, time.Now)
	if err != nil || kept != (Kept{12, 16, 6, 48}) {
		t.Fatalf("%+v, %v", kept, err)
	}
	sameRows(t, "compacted", want, asked(t, dir))
	if list, err := ListLakeFiles(dir); err != nil || len(list) != 6 {
		t.Errorf("%v, %v", list, err)
	}
	before, _ := os.ReadDir(dir)
	if kept, err = CompactLake(dir, time.Time{}, time.Now); err != nil || kept != (Kept{12, 12, 6, 6}) {
		t.Errorf("the second time: %+v, %v", kept, err)
	}
	after, _ := os.ReadDir(dir)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the second time changed %v to %v", before, after)
	}
	addRun(t, dir, 5, 90) // is there already
	addRun(t, dir, 5, 300)
	if kept, err = CompactLake(dir, created.AddDate(0, 0, 3), time.Now); err != nil || kept.Runs != 6 {
		t.Errorf("expired: %+v, %v", kept, err)
	}
	if kept, err = CompactLake(dir, created.AddDate(1, 0, 0), time.Now); err != nil || kept != (Kept{0, 6, 0, 6}) || len(asked(t, dir)) != 0 {
		t.Errorf("all expired: %+v, %v", kept, err)
	}
	if _, err := CompactLake(filepath.Join(dir, "no"), time.Time{}, time.Now); err == nil {
		t.Error("no lake was compacted")
	}
}

// TestRowsThatCount: each row that counts comes once, and a lake that was compacted meanwhile is an error.
func TestRowsThatCount(t *testing.T) {
	racetest.Slow(t)
	dir := someLake(t)
	c, err := OpenLakeRows(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	runs := map[string]int{}
	count := func() error {
		return EachRow(c, Runs, (*runKey).runID, func(r *runKey, part string) { runs[r.Run]++ })
	}
	if err := count(); err != nil || len(runs) != 12 {
		t.Errorf("%v, %v", runs, err)
	}
	for run, times := range runs {
		if times != 1 {
			t.Errorf("%s comes %d times", run, times)
		}
	}
	if _, err := CompactLake(dir, time.Time{}, time.Now); err != nil {
		t.Fatal(err)
	}
	if err := count(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("compacted meanwhile: %v", err)
	}
}

// TestCompactAnEarlierForm makes a lake of today of one that has its programs, jobs and days in folders.
func TestCompactAnEarlierForm(t *testing.T) {
	dir := t.TempDir()
	put := func(table string, rows any, write func(f *os.File) error) {
		folder := filepath.Join(dir, table, folderOfPartition("app", "a/b"), folderOfPartition("job", "none"), folderOfPartition("date", "2026-03-01"))
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(folder, "x.parquet"))
		if err == nil {
			err = write(f)
		}
		if err != nil {
			t.Fatal(rows, err)
		}
		_ = f.Close()
	}
	type oldRun struct {
		Run       string            `parquet:"run"`
		Recording string            `parquet:"recording"`
		Host      string            `parquet:"host,dict"`
		Labels    map[string]string `parquet:"labels"`
		Started   int64             `parquet:"started,timestamp(microsecond:utc)"`
		Peak      int64             `parquet:"peak_in_use"`
	}
	runs := []oldRun{{"r-1", "r", "node", map[string]string{"team": "x"}, created.UnixMicro(), 77}, {"r-2", "r", "node", nil, created.UnixMicro(), 78}}
	sites := []lake.Site{{Run: "r-1", Site: "main", Creates: 3}, {Run: "r-2", Site: "main"}}
	put(Runs, runs, func(f *os.File) error { return WriteRows(f, runs) })
	put(Sites, sites, func(f *os.File) error { return WriteRows(f, sites) })
	if _, err := OpenLake(dir, false, time.Now); err == nil || !strings.Contains(err.Error(), "compact") {
		t.Errorf("an earlier form: %v", err)
	}
	if kept, err := CompactLake(dir, time.Time{}, time.Now); err != nil || kept.Runs != 2 {
		t.Fatalf("%+v, %v", kept, err)
	}
	list := asked(t, dir)
	if len(list) != 4 || !strings.Contains(list[1], "app:a/b") || !strings.Contains(list[1], "peak_in_use:77") || !strings.Contains(list[1], "date:2026-03-01") {
		t.Errorf("%q", list)
	}
	addRun(t, dir, 1, 50)
	if there, _ := filepath.Glob(dir + "/*"); len(there) != 3 { // commits and the lock
		t.Errorf("left: %v", there)
	}
}

// TestCompactKilled kills it at any time: who asks then sees all rows, and the next one finishes.
func TestCompactKilled(t *testing.T) {
	racetest.Slow(t)
	defer func(old time.Duration) { staleAge = old }(staleAge)
	staleAge = 0
	random, dir := rand.New(rand.NewPCG(1, 1)), someLake(t)
	want, killed := asked(t, dir), 0
	compact := func(after time.Duration) {
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), compactEnv+"="+dir)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(after, func() { _ = c.Process.Kill() }).Stop()
		if c.Wait() != nil {
			killed++
		}
	}
	began := time.Now()
	compact(time.Hour)
	took := int64(time.Since(began))
	for i := range 8 {
		compact(time.Duration(random.Int64N(took + took/8)))
		sameRows(t, "after a kill", want, asked(t, dir))
		if i%2 == 1 { // something to compact
			addRun(t, dir, 5, 100+i)
			want = asked(t, dir)
		}
	}
	if _, err := CompactLake(dir, time.Time{}, time.Now); err != nil {
		t.Fatal(err)
	}
	sameRows(t, "in the end", want, asked(t, dir))
	if left, _ := os.ReadDir(dir); len(left) != 2 { // the commit and the lock
		t.Errorf("left: %v", left)
	}
	t.Logf("%d of 8 were killed", killed)
}

// TestCompactBesideWriters adds 40 recordings, by four at once, while two compact.
func TestCompactBesideWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lake")
	addRun(t, dir, 0, 30)
	var adding, compacting sync.WaitGroup
	for w := range 4 {
		adding.Go(func() {
			for i := range 10 {
				addRun(t, dir, 1+10*w+i, 30)
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		compacting.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_, _ = CompactLake(dir, time.Time{}, time.Now) // may find that the other has removed what it reads
				}
			}
		})
	}
	adding.Wait()
	close(done)
	compacting.Wait()
	kept, err := CompactLake(dir, time.Time{}, time.Now)
	if err != nil || kept.Runs != 82 {
		t.Errorf("%+v, %v", kept, err)
	}
}

// straced runs this executable below strace, with a lake.
func straced(t *testing.T, env, dir string, flags ...string) (text string, failed error) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal(err, "make test-deps installs it")
	}
	c := exec.CommandContext(t.Context(), strace, append(append([]string{"-f", "-qq"}, flags...), os.Args[0])...)
	c.Env = append(os.Environ(), env+"="+dir)
	out, failed := c.CombinedOutput()
	if failed != nil && strings.Contains(string(out), "ptrace") {
		t.Skip("ptrace is forbidden here, as in many containers: TestCompactKilled kills without it, at random moments")
	}
	return string(out), failed
}

// killedAtCalls kills a change of a lake as it is about to change a file, where strace can: at the first six such calls of a kind, and
// at ever fewer of those that follow. Who asks then sees the lake before or after, and again makes it that after.
func killedAtCalls(t *testing.T, env, from string, after []string, again func(dir string) error) {
	before := asked(t, from)
	for _, call := range []string{"renameat", "mkdirat", "flock", "write", "fsync", "unlinkat"} {
		for n := 1; ; n += 1 + n*n/32 {
			dir := filepath.Join(t.TempDir(), "lake")
			if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			_, failed := straced(t, env, dir, "-o", os.DevNull, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n))
			what := fmt.Sprint(call, " ", n)
			if rows := asked(t, dir); !slices.Equal(rows, before) {
				sameRows(t, what, after, rows)
			}
			if failed == nil {
				if n == 1 && call == "renameat" {
					t.Error("strace killed nothing")
				}
				t.Logf("%s: fewer than %d calls", call, n)
				break
			}
			if err := again(dir); err != nil {
				t.Fatal(what, err)
			}
			sameRows(t, "after "+what, after, asked(t, dir))
		}
	}
}

func TestCompactKilledAtCalls(t *testing.T) {
	racetest.Slow(t)
	from := filepath.Join(t.TempDir(), "lake") // small: it is read and compacted again at each call
	addRun(t, from, 1, 40)
	addRun(t, from, 2, 60)
	addRun(t, from, 2, 200) // it has grown
	killedAtCalls(t, compactEnv, from, asked(t, from), func(dir string) error {
		_, err := CompactLake(dir, time.Time{}, time.Now)
		return err
	})
}

func TestAddKilledAtCalls(t *testing.T) {
	racetest.Slow(t)
	from, whole := filepath.Join(t.TempDir(), "lake"), filepath.Join(t.TempDir(), "lake")
	var after []string
	for _, dir := range []string{from, whole} {
		addRun(t, dir, 1, 60)
	}
	addRun(t, whole, 9, 40)
	after = asked(t, whole)
	killedAtCalls(t, addEnv, from, after, func(dir string) error { return add(dir, 9, 40) })
}

// TestCommitsAreOnTheDisk before readers see them: a lake that loses its power keeps each commit that counted.
func TestCommitsAreOnTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lake")
	text, err := straced(t, addEnv, dir, "-y", "-e", "trace=fsync,renameat")
	if err != nil {
		t.Fatal(err, text)
	}
	var order []string
	for line := range strings.Lines(text) {
		for _, word := range append(slices.Clone(lakeNames), "commit=", ".tmp>", "lake>") {
			if strings.Contains(line, word) && (strings.Contains(line, "fsync(") || word == "commit=") {
				order = append(order, word)
				break
			}
		}
	}
	if want := append(slices.Clone(lakeNames), ".tmp>", "commit=", "lake>"); !slices.Equal(order, want) {
		t.Errorf("%q, want %q, of\n%s", order, want, text)
	}
}

// TestAddsReadNoOtherCommit: what is noted of a commit need not be read again, and where nothing is noted the commit is read.
func TestAddsReadNoOtherCommit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lake")
	for i := range 4 {
		addRun(t, dir, i, 50)
	}
	want := asked(t, dir)
	names, err := filepath.Glob(filepath.Join(dir, commits, Runs+".parquet"))
	if err != nil || len(names) != 4 {
		t.Fatal(names, err)
	}
	text, err := os.ReadFile(names[1])
	if err = errors.Join(err, os.WriteFile(names[1], []byte("damaged"), 0o600)); err != nil {
		t.Fatal(err)
	}
	addRun(t, dir, 4, 50)
	addRun(t, dir, 1, 50) // is there already
	lock := filepath.Join(dir, lockName)
	notes, err := os.ReadFile(lock)
	if err = errors.Join(err, os.WriteFile(lock, notes[:len(notes)-3], 0o600), os.WriteFile(names[1], text, 0o600)); err != nil { // the writer was killed
		t.Fatal(err)
	}
	addRun(t, dir, 4, 50) // is there already
	addRun(t, dir, 5, 50)
	addRun(t, dir, 4, 50)
	long := append(make([]byte, 65<<20), "\n{\"commit\": \"commit=gone\", \"recordings\": {\"gone\": {}}}\n"...) // many notes, and one of a commit that is gone
	if notes, err = os.ReadFile(lock); errors.Join(err, os.WriteFile(lock, append(long, notes...), 0o600)) != nil {
		t.Fatal(err)
	}
	if list := asked(t, dir); len(list) <= len(want) {
		t.Errorf("%d rows, before %d", len(list), len(want))
	}
	l, err := OpenLake(dir, false, time.Now)
	if err != nil || len(l.unread) != 0 || len(l.known) != 6 {
		t.Errorf("%d commits read, %d recordings known: %v", len(l.unread), len(l.known), err)
	}
	if there, _ := filepath.Glob(filepath.Join(dir, commits)); len(there) != 6 || l.Close() != nil {
		t.Errorf("%d commits of 6 recordings", len(there))
	}
}

// A lake is compacted again and again, whatever the names of its commits.
func TestCompactAgain(t *testing.T) {
	racetest.Slow(t)
	dir := someLake(t)
	want := asked(t, dir)
	there, err := filepath.Glob(filepath.Join(dir, commits))
	if err != nil || len(there) < 2 {
		t.Fatal(there, err)
	}
	last := there[len(there)-1]
	named := last[:strings.LastIndex(last, "-")] + "-c0ffee0123456789"
	if err := os.Rename(last, named); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		left := filepath.Join(t.TempDir(), "left") // what a kill leaves
		if err := os.CopyFS(left, os.DirFS(named)); err != nil {
			t.Fatal(err)
		}
		if _, err := CompactLake(dir, time.Time{}, time.Now); err != nil {
			t.Fatal(err)
		}
		sameRows(t, "compacted", want, asked(t, dir))
		if err := os.Rename(left, named); err != nil {
			t.Fatal(err)
		}
	}
}
