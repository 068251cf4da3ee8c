package parquet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/lake"
)

// Tables of a lake, besides Samples and Transfers, by the names of their folders.
const (
	Runs     = "runs"
	Sites    = "sites"
	Misses   = "misses"
	Findings = "findings"
)

// partsMost bounds the partitions whose files are open at a time.
const partsMost = 8

// Lake writes rows of many recordings into a folder that many writers share: one file for each table, program, job and day.
// Files appear whole at Commit, all or none, under names that no other recordings give.
type Lake struct {
	folder *folder
	parts  []*part // open, the one that was used last is last
	seen   map[string]bool
}

// part is the open files of a program, job and day.
type part struct {
	app, job, date string
	recordings     map[string]bool

	runs      lakeTable[any]
	sites     lakeTable[lake.Site]
	samples   lakeTable[lake.Sample]
	misses    lakeTable[lake.Miss]
	findings  lakeTable[lake.Finding]
	transfers lakeTable[lake.Transfer]
}

// OpenLake opens a folder, and makes it when there is none. It must be closed.
func OpenLake(dir string) (*Lake, error) {
	f, err := openFolder(dir, Processes)
	if err != nil {
		return nil, err
	}
	return &Lake{folder: f, seen: map[string]bool{}}, nil
}

// Add writes the rows of one recording. Rows of one program, job and day should come one after the other: else they may get
// more than one file.
func (l *Lake) Add(rows []*lake.Rows) error {
	added := map[string]bool{}
	for _, r := range rows {
		if l.seen[r.Run.Recording] {
			return fmt.Errorf("recording %s comes twice: leave one out", r.Run.Recording)
		}
		added[r.Run.Recording] = true
	}
	for recording := range added {
		l.seen[recording] = true
	}
	for _, r := range rows {
		p, err := l.part(r)
		if err == nil {
			err = p.add(r)
		}
		if err != nil {
			return fmt.Errorf("write into %s: %w", l.folder.dir, err)
		}
	}
	return nil
}

// part returns the partition of rows.
func (l *Lake) part(r *lake.Rows) (*part, error) {
	at := slices.IndexFunc(l.parts, func(p *part) bool { return p.app == r.App && p.job == r.Job && p.date == r.Date })
	if at >= 0 {
		p := l.parts[at]
		l.parts = append(slices.Delete(l.parts, at, at+1), p)
		return p, nil
	}
	if len(l.parts) == partsMost {
		if err := l.finish(l.parts[0]); err != nil {
			return nil, err
		}
		l.parts = slices.Delete(l.parts, 0, 1)
	}
	p := &part{app: r.App, job: r.Job, date: r.Date, recordings: map[string]bool{}}
	p.runs.rows = parquet.SchemaOf(reflect.New(runType).Interface())
	l.parts = append(l.parts, p)
	for _, t := range p.tables() {
		if err := t.start(l.folder); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *part) add(r *lake.Rows) error {
	p.recordings[r.Run.Recording] = true
	return errors.Join(p.runs.write([]any{runRow(&r.Run)}), p.sites.write(r.Sites), p.samples.write(r.Samples),
		p.misses.write(r.Misses), p.findings.write(r.Findings), p.transfers.write(r.Transfers))
}

// finish makes the files of a partition whole, and names them after the recordings in them.
func (l *Lake) finish(p *part) error {
	ids := make([]string, 0, len(p.recordings))
	for id := range p.recordings {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	name := ids[0]
	if len(ids) > 1 {
		sum := sha256.Sum256([]byte(strings.Join(ids, "\n")))
		name = hex.EncodeToString(sum[:16])
	}
	tables := p.tables()
	for i, table := range []string{Runs, Sites, Samples, Misses, Findings, Transfers} {
		move, err := tables[i].finish()
		if err != nil {
			return fmt.Errorf("write into %s: %w", l.folder.dir, err)
		}
		l.folder.moves[move].to = path.Join(table, partition("app", p.app), partition("job", cmp.Or(p.job, "none")),
			partition("date", p.date), name+".parquet")
	}
	return nil
}

// Commit puts all files into their places. A file of the same recordings that is there already is replaced with force, else
// refused.
func (l *Lake) Commit(force bool) error {
	for _, p := range l.parts {
		if err := l.finish(p); err != nil {
			return err
		}
	}
	l.parts = nil
	var old []string
	for _, m := range l.folder.moves {
		if _, err := l.folder.root.Stat(m.to); err == nil && force {
			old = append(old, m.to)
		}
	}
	return l.folder.commit(old, force)
}

// Close removes what was not committed.
func (l *Lake) Close() error {
	for _, p := range l.parts {
		for _, t := range p.tables() {
			t.abandon()
		}
	}
	return l.folder.close()
}

func (p *part) tables() []anyLakeTable {
	return []anyLakeTable{&p.runs, &p.sites, &p.samples, &p.misses, &p.findings, &p.transfers}
}

type anyLakeTable interface {
	start(f *folder) error
	finish() (move int, err error)
	abandon()
}

// runType has a field for each column of lake.Run: its own, and one for each of the figures.
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
	move int             // in the folder
	rows *parquet.Schema // of T, nil: its fields say it
}

func (t *lakeTable[T]) start(f *folder) (err error) {
	t.move = len(f.moves)
	if t.file, err = f.create(""); err == nil {
		options := writing
		if t.rows != nil {
			options = append(slices.Clone(writing), t.rows)
		}
		t.out = parquet.NewGenericWriter[T](t.file, options...)
	}
	return err
}

func (t *lakeTable[T]) write(rows []T) error {
	_, err := t.out.Write(rows)
	return err
}

func (t *lakeTable[T]) finish() (int, error) {
	err := errors.Join(t.out.Close(), t.file.Close())
	t.file = nil
	return t.move, err
}

func (t *lakeTable[T]) abandon() {
	if t.file != nil {
		_ = t.file.Close()
	}
}
