package parquet

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
)

// Tables of a lake, besides Samples and Transfers, by the names of their files.
const (
	Runs     = "runs"
	Sites    = "sites"
	Misses   = "misses"
	Findings = "findings"
)

var lakeNames = []string{Runs, Sites, Samples, Misses, Findings, Transfers}

// commits is the pattern of a lake's folders that readers see, commitForm the form of time with which their names begin.
const (
	commits    = "commit=*"
	commitForm = "commit=20060102T150405.000000Z"
)

// Lake writes rows of many recordings into a folder that many writers share. A writer's files lie in one folder, a commit,
// which gets its name when it is complete, so that readers see all of them or none. If several commits have a recording, the
// rows of the last one count.
type Lake struct {
	folder *folder
	now    func() time.Time
	lock   *os.File         // held while the writer lives
	known  map[string]int64 // amount of each recording in the lake, see amount
	added  Added

	runs      lakeTable[any]
	sites     lakeTable[lake.Site]
	samples   lakeTable[lake.Sample]
	misses    lakeTable[lake.Miss]
	findings  lakeTable[lake.Finding]
	transfers lakeTable[lake.Transfer]
}

// Added counts recordings.
type Added struct{ New, Replaced, Known int }

// OpenLake opens a folder, creates it if there is none, and removes what killed writers have left. With force, recordings that
// the lake has are replaced, otherwise only those that have more events now. Commits are named by the time now. The caller
// closes the lake.
func OpenLake(dir string, force bool, now func() time.Time) (*Lake, error) {
	if old, _ := fs.Glob(os.DirFS(dir), Runs+"/app=*"); len(old) > 0 {
		return nil, fmt.Errorf("%s was filled by an earlier gpumemtop: gpumemtop-fleet compact %s makes it a lake of today", dir, dir)
	}
	l, err := openStage(dir, now)
	if err != nil {
		return nil, err
	}
	if err := l.readKnown(force); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// openStage begins a commit.
func openStage(dir string, now func() time.Time) (*Lake, error) {
	f, err := openFolder(dir, Processes)
	if err != nil {
		return nil, err
	}
	l := &Lake{folder: f, now: now, known: map[string]int64{}}
	l.sweep()
	if l.lock, err = f.root.Create(path.Join(f.stage, lockName)); err == nil {
		_ = unix.Flock(int(l.lock.Fd()), unix.LOCK_EX) // a file system without locks keeps what killed writers leave
	}
	l.runs.rows = parquet.SchemaOf(reflect.New(runType).Interface())
	for i, t := range l.tables() {
		if err == nil {
			err = t.start(f, lakeNames[i])
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// withLock calls do while no other writer commits, so that commits appear in the order of their names.
func (l *Lake) withLock(do func() error) error {
	lock, err := l.folder.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("write into %s: %w", l.folder.dir, err)
	}
	_ = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	return errors.Join(do(), lock.Close())
}

// lockName is a file in a stage that its writer has locked.
const lockName = ".lock"

// staleAge is the age from which on a stage may be removed: the writer of a younger one may not have its lock yet.
var staleAge = time.Minute

// sweep removes stages whose writers are gone.
func (l *Lake) sweep() {
	stages, _ := fs.Glob(l.folder.root.FS(), ".gpumemtop-*.tmp")
	for _, stage := range stages {
		if stage == l.folder.stage {
			continue
		}
		lock, err := l.folder.root.OpenFile(path.Join(stage, lockName), os.O_RDWR|os.O_CREATE, 0o666) // created if missing: such a stage is old, or its writer has just begun
		if err != nil {
			continue // another writer has removed the stage
		}
		info, err := lock.Stat()
		if err == nil && l.now().Sub(info.ModTime()) > staleAge && unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = l.folder.root.RemoveAll(stage) // fails if another writer does so
		}
		_ = lock.Close()
	}
}

// recordedRun has the columns of runs that identify recordings.
type recordedRun struct {
	Recording string `parquet:"recording"`
	Events    int64  `parquet:"events"`
	Ending    string `parquet:"ending"`
}

// amount orders versions of a recording: by the number of events, and if that is equal, a whole version after a torn one.
func amount(events int64, ending string) int64 {
	if ending == lake.Torn {
		return 2 * events
	}
	return 2*events + 1
}

// readKnown reads which recordings the lake has, and the amount of each. With force it takes none as known.
func (l *Lake) readKnown(force bool) error {
	files, _ := fs.Glob(l.folder.root.FS(), commits+"/"+Runs+".parquet")
	for _, name := range files {
		rows, err := readRuns[recordedRun](l, name)
		if errors.Is(err, fs.ErrNotExist) { // it has just been compacted
			return l.readKnown(force)
		}
		if err != nil {
			return err
		}
		for _, r := range rows {
			if l.known[r.Recording] = amount(r.Events, r.Ending); force {
				l.known[r.Recording] = -1
			}
		}
	}
	return nil
}

// Wants reports whether a recording is to be added: the lake does not have it, or has fewer events of it.
func (l *Lake) Wants(recording string, events int64, ending string) bool {
	known, there := l.known[recording]
	return !there || known < amount(events, ending)
}

// Add writes the rows of a recording, or of several that were merged, except those of recordings that are not wanted.
func (l *Lake) Add(rows []*lake.Rows) error {
	wanted := map[string]bool{}
	for _, r := range rows {
		id := r.Run.Recording
		if _, asked := wanted[id]; !asked {
			wanted[id] = l.Wants(id, r.Run.Events, r.Run.Ending)
			_, there := l.known[id]
			l.added.count(wanted[id], there)
		}
		if !wanted[id] {
			continue
		}
		err := errors.Join(l.runs.write([]any{runRow(&r.Run)}), l.sites.write(r.Sites), l.samples.write(r.Samples),
			l.misses.write(r.Misses), l.findings.write(r.Findings), l.transfers.write(r.Transfers))
		if err != nil {
			return fmt.Errorf("write into %s: %w", l.folder.dir, err)
		}
	}
	for _, r := range rows {
		if wanted[r.Run.Recording] {
			l.known[r.Run.Recording] = math.MaxInt64 // at most once in a commit
		}
	}
	return nil
}

func (a *Added) count(wanted, there bool) {
	switch {
	case !wanted:
		a.Known++
	case there:
		a.Replaced++
	default:
		a.New++
	}
}

// Skip counts a recording that is not wanted.
func (l *Lake) Skip() { l.added.Known++ }

// Commit makes all that was added visible to readers, at once.
func (l *Lake) Commit() (Added, error) {
	if l.added.New+l.added.Replaced == 0 {
		return l.added, nil
	}
	return l.added, l.publish(l.commitName)
}

// publish gives the commit its name.
func (l *Lake) publish(commit func() string) error {
	for _, t := range l.tables() {
		if err := t.finish(); err != nil {
			return fmt.Errorf("write into %s: %w", l.folder.dir, err)
		}
	}
	f := l.folder
	return l.withLock(func() error {
		return tempfile.Finish(f.stagePath(), func() error {
			name := commit()
			if err := f.root.Rename(f.stage, name); err != nil {
				return fmt.Errorf("write into %s: %w", f.dir, err)
			}
			_ = f.root.Remove(path.Join(name, lockName)) // a lock that stays does no harm: readers skip it
			return nil
		})
	})
}

// commitName returns a name that is greater than all others.
func (l *Lake) commitName() string {
	now := l.now().UTC()
	if there, _ := fs.Glob(l.folder.root.FS(), commits); len(there) > 0 {
		last := slices.Max(there)
		if at, err := time.Parse(commitForm, last[:min(len(last), len(commitForm))]); err == nil && !now.After(at) { // the last commit is of a host whose clock is ahead
			now = at.Add(time.Microsecond)
		}
	}
	return now.Format(commitForm) + strings.TrimSuffix(strings.TrimPrefix(l.folder.stage, ".gpumemtop"), ".tmp")
}

// Close removes what was not committed.
func (l *Lake) Close() error {
	for _, t := range l.tables() {
		t.abandon()
	}
	if l.lock != nil {
		_ = l.lock.Close()
	}
	return l.folder.close()
}

func (l *Lake) tables() []anyLakeTable {
	return []anyLakeTable{&l.runs, &l.sites, &l.samples, &l.misses, &l.findings, &l.transfers}
}

type anyLakeTable interface {
	start(f *folder, name string) error
	finish() error
	abandon()
	schema() *parquet.Schema
	writeRow(row parquet.Row) error
}

// runType has a field for each column of runs: those of lake.Run, and one for each figure.
var runType = func() reflect.Type {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[lake.Run]()) {
		if f.Tag.Get("parquet") != "-" {
			fields = append(fields, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
		}
	}
	for i, f := range lake.RunFigures {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("Figure", i), Type: reflect.TypeFor[int64](), Tag: reflect.StructTag(fmt.Sprintf("parquet:%q", f.Lake)),
		})
	}
	return reflect.StructOf(fields)
}()

// runRow returns a run as a row of runType.
func runRow(run *lake.Run) any {
	row := reflect.New(runType).Elem()
	for i := range row.NumField() - len(run.Figures) {
		row.Field(i).Set(reflect.ValueOf(run).Elem().FieldByName(runType.Field(i).Name))
	}
	for i, value := range run.Figures {
		row.Field(row.NumField() - len(run.Figures) + i).SetInt(value)
	}
	return row.Addr().Interface()
}

// lakeTable is one file.
type lakeTable[T any] struct {
	file *os.File
	out  *parquet.GenericWriter[T]
	rows *parquet.Schema // nil: the schema of T
}

func (t *lakeTable[T]) start(f *folder, name string) (err error) {
	if t.file, err = f.root.Create(path.Join(f.stage, name+".parquet")); err != nil {
		return fmt.Errorf("write into %s: %w", f.dir, err)
	}
	options := writerOptions
	if t.rows != nil {
		options = append(slices.Clone(writerOptions), t.rows)
	}
	t.out = parquet.NewGenericWriter[T](t.file, options...)
	return nil
}

func (t *lakeTable[T]) write(rows []T) error {
	_, err := t.out.Write(rows)
	return err
}

func (t *lakeTable[T]) schema() *parquet.Schema { return t.out.Schema() }

func (t *lakeTable[T]) writeRow(row parquet.Row) error {
	_, err := t.out.WriteRows([]parquet.Row{row})
	return err
}

func (t *lakeTable[T]) finish() error {
	err := errors.Join(t.out.Close(), t.file.Close())
	t.file = nil
	return err
}

func (t *lakeTable[T]) abandon() {
	if t.file != nil {
		_ = t.file.Close()
	}
}
