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
	lock   *os.File              // held while the writer lives
	known  map[string]knownAs    // each recording in the lake
	adding map[string]knownAs    // each recording in this commit
	unread map[string]readCommit // commits that the lake's lock file does not note yet
	added  Added

	runs      lakeTable[any]
	sites     lakeTable[lake.Site]
	samples   lakeTable[lake.Sample]
	misses    lakeTable[lake.Miss]
	findings  lakeTable[lake.Finding]
	transfers lakeTable[lake.Transfer]
}

// Added counts recordings.
type Added struct {
	New, Replaced, Known int
	Copies               []string // files with recordings that the lake knows from other files; Known counts them, too
}

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
	if err := l.readKnownRecordings(force); err != nil {
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
	l := &Lake{folder: f, now: now, known: map[string]knownAs{}, adding: map[string]knownAs{}}
	l.removeDeadStages()
	if l.lock, err = f.root.Create(path.Join(f.stage, lockName)); err == nil {
		_ = unix.Flock(int(l.lock.Fd()), unix.LOCK_EX) // a file system without locks keeps what killed writers leave
	}
	l.runs.rows = parquet.SchemaOf(reflect.New(runType).Interface())
	for i, t := range l.allTables() {
		if err == nil {
			err = t.createTableFile(f, lakeNames[i])
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// whileLocked calls do while no other writer commits, so that commits appear in the order of their names.
func (l *Lake) whileLocked(do func(lock *os.File) error) error {
	lock, err := l.folder.openRegularFile(lockName, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("write into %s: %w", l.folder.dir, err)
	}
	_ = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	return errors.Join(do(lock), lock.Close())
}

// lockName is a file in a stage that its writer has locked. That in the lake notes what its commits have.
const lockName = ".lock"

// staleAge is the age from which on a stage may be removed: the writer of a younger one may not have its lock yet.
var staleAge = time.Minute

// removeDeadStages removes stages whose writers are gone.
func (l *Lake) removeDeadStages() {
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

// WantsRecording reports whether a recording is to be added: the lake does not have it, or has fewer events of it.
func (l *Lake) WantsRecording(recording string, events int64, ending string) bool {
	known, there := l.known[recording]
	return !there || known.Amount < rankOfVersion(events, ending)
}

// AddRows writes the rows of a recording, or of several that were merged, except those of recordings that are not wanted.
func (l *Lake) AddRows(rows []*lake.Rows) error {
	wanted := map[string]bool{}
	for _, r := range rows {
		id := r.Run.Recording
		if _, asked := wanted[id]; !asked {
			wanted[id] = l.WantsRecording(id, r.Run.Events, r.Run.Ending)
			switch _, there := l.known[id]; {
			case !wanted[id]:
				l.CountUnwanted(id, r.Run.Path)
			case there:
				l.added.Replaced++
			default:
				l.added.New++
			}
		}
		if !wanted[id] {
			continue
		}
		err := errors.Join(l.runs.write([]any{rowOfRun(&r.Run)}), l.sites.write(r.Sites), l.samples.write(r.Samples),
			l.misses.write(r.Misses), l.findings.write(r.Findings), l.transfers.write(r.Transfers))
		if err != nil {
			return fmt.Errorf("write into %s: %w", l.folder.dir, err)
		}
	}
	for _, r := range rows {
		if id := r.Run.Recording; wanted[id] {
			l.adding[id] = knownAs{rankOfVersion(r.Run.Events, r.Run.Ending), r.Run.Path}
			l.known[id] = knownAs{math.MaxInt64, r.Run.Path} // at most once in a commit
		}
	}
	return nil
}

// CountUnwanted counts a recording, in a file, that is not wanted.
func (l *Lake) CountUnwanted(recording, file string) {
	l.added.Known++
	if other := l.known[recording].Path; other != file {
		a, err := os.Stat(file)
		if b, gone := os.Stat(other); errors.Join(err, gone) == nil && !os.SameFile(a, b) && !slices.Contains(l.added.Copies, file) { // not moved
			l.added.Copies = append(l.added.Copies, file)
		}
	}
}

// Commit makes all that was added visible to readers, at once.
func (l *Lake) Commit() (Added, error) {
	if l.added.New+l.added.Replaced == 0 {
		return l.added, nil
	}
	return l.added, l.nameAndPublish(l.nextCommitName, l.noteKnownCommits)
}

// nameAndPublish gives the commit its name, once its files are on the disk. Then note may write down which recordings the
// commit has.
func (l *Lake) nameAndPublish(commit func() string, note func(lock *os.File, name string)) error {
	for _, t := range l.allTables() {
		if err := t.closeTableFile(); err != nil {
			return fmt.Errorf("write into %s: %w", l.folder.dir, err)
		}
	}
	f := l.folder
	return l.whileLocked(func(lock *os.File) error {
		return tempfile.FinishWith(f.stagePath(), func() error {
			name := commit()
			err := syncFolder(f.root, f.stage)
			if err == nil {
				err = f.root.Rename(f.stage, name)
			}
			if err == nil {
				err = syncFolder(f.root, ".")
			}
			if err != nil {
				return fmt.Errorf("write into %s: %w", f.dir, err)
			}
			_ = f.root.Remove(path.Join(name, lockName)) // a lock that stays does no harm: readers skip it
			note(lock, name)
			return nil
		})
	})
}

// syncFolder brings the names in a folder to the disk, where the file system can.
func syncFolder(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	if err = folder.Sync(); errors.Is(err, unix.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

// nextCommitName returns a name that is greater than all others.
func (l *Lake) nextCommitName() string {
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
	for _, t := range l.allTables() {
		t.closeIncompleteFile()
	}
	if l.lock != nil {
		_ = l.lock.Close()
	}
	return l.folder.removeStage()
}

func (l *Lake) allTables() []anyLakeTable {
	return []anyLakeTable{&l.runs, &l.sites, &l.samples, &l.misses, &l.findings, &l.transfers}
}

type anyLakeTable interface {
	createTableFile(f *folder, name string) error
	closeTableFile() error
	closeIncompleteFile()
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

// rowOfRun returns a run as a row of runType.
func rowOfRun(run *lake.Run) any {
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

func (t *lakeTable[T]) createTableFile(f *folder, name string) (err error) {
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

func (t *lakeTable[T]) closeTableFile() error {
	err := errors.Join(t.out.Close(), t.file.Sync(), t.file.Close())
	t.file = nil
	return err
}

func (t *lakeTable[T]) closeIncompleteFile() {
	if t.file != nil {
		_ = t.file.Close()
	}
}
