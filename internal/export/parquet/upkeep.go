package parquet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"codeberg.org/gpumemtop/gpumemtop/internal/tempfile"
)

// Kept counts what Compact left of a lake.
type Kept struct{ Runs, RunsBefore, Files, FilesBefore int }

// oldForm matches files of a table in a lake from before commits, which had app, job and date in the names of folders.
const oldForm = "/app=*/job=*/date=*/*.parquet"

// CompactLake writes the rows of a lake that count, of runs that did not start before oldest, into one commit, and removes the
// other commits. Readers see the state before or after, even if Compact is killed. Writers may add meanwhile.
func CompactLake(dir string, oldest time.Time, now func() time.Time) (kept Kept, err error) {
	if _, err := os.Stat(dir); err != nil {
		return kept, err
	}
	l, err := openStage(dir, now)
	if err != nil {
		return kept, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c, keep := Contents{lake: l}, map[string]string{}
	err = l.whileLocked(func(*os.File) error {
		if err := c.readRecordings(); err != nil {
			return err
		}
		return EachRow(&c, Runs, (*runKey).runID, func(r *runKey, part string) {
			if !time.UnixMicro(r.Started).Before(oldest) {
				keep[r.Run] = part
			}
		})
	})
	if err != nil {
		return kept, err
	}
	kept = Kept{Runs: len(keep), RunsBefore: c.rows, Files: len(lakeNames), FilesBefore: c.files}
	if len(c.parts)+c.old == 0 || len(c.parts) == 1 && c.old == 0 && kept.Runs == kept.RunsBefore {
		kept.Files = kept.FilesBefore
		return kept, nil
	}
	if len(keep) > 0 {
		err = l.rewriteRuns(keep, &c)
	} else {
		kept.Files = 0
	}
	if err != nil {
		return kept, fmt.Errorf("compact %s: %w", dir, err)
	}
	return kept, l.removeRewrittenCommits(&c)
}

// OpenLakeRows opens a lake and reads which recordings it has, for EachRow. The caller closes it.
func OpenLakeRows(dir string) (*Contents, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	c := &Contents{lake: &Lake{folder: &folder{dir: dir, root: root}}}
	if err = c.readRecordings(); err == nil && c.old > 0 {
		err = fmt.Errorf("%s has an earlier form: gpumemtop-fleet compact first", dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return c, nil
}

// Close closes the lake.
func (c *Contents) Close() error { return c.lake.folder.root.Close() }

// EachRow calls take with the rows of a table that count, with the columns in the tags of T, in the same order each time, and with
// the files that have them. run returns the run of a row. take must not keep the pointer.
func EachRow[T any](c *Contents, table string, run func(*T) string, take func(row *T, part string)) error {
	files, old := c.lake.filesOfTable(table)
	files = files[:old]
	for _, commit := range c.parts { // it is an error if one was compacted meanwhile
		files = append(files, commit+"/"+table+".parquet")
	}
	for i, file := range files {
		part, _ := partAndCommitOf(table, file)
		err := eachRowOfFile(c.lake, file, func(row *T) {
			id := run(row)
			if last, known := c.last[keyOfRecording(id[:max(strings.LastIndexByte(id, '-'), 0)])]; known && int(last) == max(i-old, -1) {
				take(row, part)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// ListLakeFiles returns the files of a lake, for engines that read all rows. It is an error if some rows do not count.
func ListLakeFiles(dir string) (list []string, err error) {
	c, err := OpenLakeRows(dir)
	if err != nil {
		return nil, err
	}
	counted := 0
	err = EachRow(c, Runs, (*runKey).runID, func(*runKey, string) { counted++ })
	if err == nil && counted < c.rows {
		err = fmt.Errorf("%s has rows that were replaced: gpumemtop-fleet compact first", dir)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, part := range c.parts {
		for _, table := range lakeNames {
			list = append(list, path.Join(dir, part, table+".parquet"))
		}
	}
	return list, c.Close()
}

// Contents are the recordings of a lake.
type Contents struct {
	lake  *Lake
	parts []string // commits, in their order
	old   int      // files from before commits
	files int
	rows  int                    // in the tables of runs
	last  map[recordingKey]int32 // the last of parts with each recording; -1: a file from before commits
}

// recordingKey stands for the id of a recording: a lake of a million has the ids in 32 MB instead of 100.
type recordingKey [16]byte

func keyOfRecording(id string) recordingKey {
	sum := sha256.Sum256([]byte(id))
	return recordingKey(sum[:16])
}

// partAndCommitOf returns the part of a path that one writer's files share, and their commit if there is one.
func partAndCommitOf(table, file string) (part, commit string) {
	if strings.HasPrefix(file, table+"/") {
		return strings.TrimPrefix(file, table+"/"), ""
	}
	return path.Dir(file), path.Dir(file)
}

// filesOfTable returns the files of a table, the earliest first.
func (l *Lake) filesOfTable(table string) (files []string, old int) {
	files, _ = fs.Glob(l.folder.root.FS(), table+oldForm)
	present, _ := fs.Glob(l.folder.root.FS(), commits+"/"+table+".parquet")
	return append(files, present...), len(files)
}

// runKey has the columns by which runs count.
type runKey struct {
	Run       string `parquet:"run"`
	Recording string `parquet:"recording"`
	Started   int64  `parquet:"started,timestamp(microsecond:utc)"`
}

func (r *runKey) runID() string { return r.Run }

// readRecordings reads which recordings the lake has.
func (c *Contents) readRecordings() error {
	c.last = map[recordingKey]int32{}
	var files []string
	files, c.old = c.lake.filesOfTable(Runs)
	c.files = len(lakeNames) * len(files)
	for _, file := range files {
		_, commit := partAndCommitOf(Runs, file)
		if commit != "" {
			c.parts = append(c.parts, commit)
		}
		err := eachRowOfFile(c.lake, file, func(r *runKey) {
			c.last[keyOfRecording(r.Recording)] = int32(len(c.parts) - 1)
			c.rows++
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsPerByte is more than a file of runs has, each with an id: packed, one row repeated keeps readers busy.
const rowsPerByte = 4

// eachRowOfFile calls take with the rows of a file, with the columns in the tags of T.
func eachRowOfFile[T any](l *Lake, name string, take func(*T)) (err error) {
	file, err := l.folder.openRegularFile(name, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read the lake: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = fmt.Errorf("read %s: %w", path.Join(l.folder.dir, name), err)
		}
	}()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	in, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return err
	}
	if n := in.NumRows(); n < 0 || n > rowsPerByte*info.Size() {
		return fmt.Errorf("%d rows in %d bytes", n, info.Size())
	}
	rows, batch := parquet.NewGenericReader[T](in), make([]T, batchRows)
	defer func() { err = errors.Join(err, rows.Close()) }()
	for {
		n, err := rows.Read(batch)
		for i := range batch[:n] {
			take(&batch[i])
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// rewriteRuns writes the rows of runs, each from its part, into a commit that comes after those that were read and before those
// that are added meanwhile.
func (l *Lake) rewriteRuns(keep map[string]string, c *Contents) error {
	for i, t := range l.allTables() {
		files, _ := l.filesOfTable(lakeNames[i])
		for _, file := range files {
			if err := l.copyRows(t, lakeNames[i], file, keep); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return l.nameAndPublish(func() string {
		if len(c.parts) == 0 {
			return l.nextCommitName()
		}
		name, times, _ := strings.Cut(c.parts[len(c.parts)-1], "-x") // no number in base 16 has an x
		n, _ := strconv.Atoi(times)
		return fmt.Sprintf("%s-x%06d", name, n+1)
	}, func(lock *os.File, _ string) { _ = lock.Truncate(0) }) // it notes commits that go now
}

// copyRows copies the rows of the runs to keep.
func (l *Lake) copyRows(to anyLakeTable, table, name string, keep map[string]string) error {
	part, commit := partAndCommitOf(table, name)
	file, err := l.folder.openRegularFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read
	schema := to.schema()
	in := parquet.NewReader(file)
	if unknown := slices.IndexFunc(in.Schema().Columns(), func(column []string) bool { _, ok := schema.Lookup(column...); return !ok }); unknown >= 0 {
		return errors.New("a newer gpumemtop wrote it")
	}
	conversion, err := parquet.Convert(schema, in.Schema())
	if err != nil {
		return err
	}
	var named map[int]parquet.Value
	if commit == "" && table == Runs {
		named = valuesInFolderNames(part, schema)
	}
	column, _ := schema.Lookup("run")
	return eachRow(parquet.ConvertRowReader(in, conversion), func(row parquet.Row) error {
		if keep[string(valueAt(row, column.ColumnIndex).ByteArray())] != part {
			return nil
		}
		for i := range row {
			if value, ok := named[row[i].Column()]; ok {
				row[i] = value
			}
		}
		return to.writeRow(row)
	})
}

// valuesInFolderNames returns the values that folders of an earlier form have in their names, by the index of their column.
func valuesInFolderNames(part string, schema *parquet.Schema) map[int]parquet.Value {
	values := map[int]parquet.Value{}
	for folder := range strings.SplitSeq(path.Dir(part), "/") {
		key, value, _ := strings.Cut(folder, "=")
		leaf, _ := schema.Lookup(key)
		values[leaf.ColumnIndex] = parquet.ValueOf(valueOfPartition(value)).Level(0, 0, leaf.ColumnIndex)
	}
	return values
}

func eachRow(rows parquet.RowReader, visit func(parquet.Row) error) error {
	batch := make([]parquet.Row, batchRows)
	for {
		n, err := rows.ReadRows(batch)
		for _, row := range batch[:n] {
			if err := visit(row); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func valueAt(row parquet.Row, column int) parquet.Value {
	return row[slices.IndexFunc(row, func(v parquet.Value) bool { return v.Column() == column })]
}

// removeRewrittenCommits removes what was rewritten: each commit at once. Of files from before commits, those of runs go last,
// because readers look for these.
func (l *Lake) removeRewrittenCommits(c *Contents) error {
	for _, name := range append(slices.Clone(c.parts), l.foldersOfEarlierForm(c)...) {
		stage := fmt.Sprintf(".gpumemtop-%016x.tmp", rand.Uint64())
		if lock, err := l.folder.root.Create(path.Join(name, lockName)); err == nil { // so that the next writer removes it if we are killed
			_ = lock.Close()
		}
		err := l.folder.root.Rename(name, stage)
		if err == nil {
			tempfile.NoteUnfinished(path.Join(l.folder.dir, stage))
			err = tempfile.FinishWith(path.Join(l.folder.dir, stage), func() error { return l.folder.root.RemoveAll(stage) })
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what was compacted: %w", err)
		}
	}
	return nil
}

func (l *Lake) foldersOfEarlierForm(c *Contents) []string {
	if c.old == 0 {
		return nil
	}
	folders := slices.Clone(lakeNames)
	slices.Reverse(folders)
	return folders
}
