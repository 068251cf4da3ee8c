// Package parquet writes recordings as tables into a folder that many recordings share, partitioned by host and process
// in Hive's way, for DuckDB, Spark and pandas. It reads no clock.
package parquet

import (
	"errors"
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/export/tables"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// Tables, by the names of their folders.
const (
	Events    = "events"
	Buffers   = "buffers"
	Blocks    = "blocks"
	Samples   = "samples"
	Processes = "processes"
	Tags      = "tags"
	Transfers = "transfers"
	Objects   = "objects"
)

var tableNames = []string{Events, Buffers, Blocks, Samples, Processes, Tags, Transfers, Objects}

// Bounds on the writers that are open at a time. The writers of a process with many records take as much memory as a row
// group can; those of a process with few take little more than its files.
const (
	rowGroup = 64 << 10 // rows
	openRows = 16 * rowGroup
	openMost = 32 // processes
)

// Write writes the tables of a recording into a folder, which it creates if need be; the folder above it must exist. A
// recording that is in the folder already, even merged or with another part, is replaced with force and otherwise refused.
// Files appear when all of them are complete; if anything fails, nothing has changed. The source is read several times, more
// often if there are more processes.
func Write(dir string, force bool, src recording.Source, o tables.Options) error {
	f, err := openFolder(dir, commits)
	if err != nil {
		return err
	}
	return errors.Join(writeTables(f, force, src, o), f.close())
}

func writeTables(f *folder, force bool, src recording.Source, o tables.Options) error {
	run, err := tables.SurveySource(src, o)
	if err != nil {
		return err
	}
	recordings := map[string]bool{}
	for _, p := range run.Processes() {
		recordings[p.Recording] = true
	}
	old, err := f.filesOfRecordings(recordings)
	switch {
	case err != nil:
		return err
	case len(old) > 0 && !force:
		return f.existsError()
	}
	w := &writers{folder: f}
	parts := groupProcesses(run.Processes())
	for _, group := range parts {
		if err := w.write(run, src, group, len(parts) == 1); err != nil {
			return err
		}
	}
	return f.commitFiles(old, force)
}

// groupProcesses divides processes into groups whose tables are written at the same time.
func groupProcesses(processes []*tables.Facts) [][]*tables.Facts {
	var list [][]*tables.Facts
	rows := uint64(0)
	for _, p := range processes {
		n := min(p.Records, rowGroup)
		if len(list) == 0 || rows+n > openRows || len(list[len(list)-1]) == openMost {
			list, rows = append(list, nil), 0
		}
		list[len(list)-1] = append(list[len(list)-1], p)
		rows += n
	}
	return list
}

// writers are the open tables of a group of processes.
type writers struct {
	folder *folder

	events    kind[tables.Event]
	buffers   kind[tables.Buffer]
	blocks    kind[tables.Stay]
	samples   kind[tables.Sample]
	processes kind[tables.Process]
	tags      kind[tables.Tag]
	transfers kind[tables.Transfer]
	objects   kind[tables.Held]
}

// write writes all tables of a group of processes.
func (w *writers) write(run *tables.Run, src recording.Source, group []*tables.Facts, all bool) error {
	defer w.abandon()
	for _, p := range group {
		if err := w.openFiles(p); err != nil {
			return err
		}
	}
	for _, k := range w.allKinds() {
		k.run()
	}
	wanted := func(process uint32) bool { return w.events.open[process] != nil }
	if all {
		wanted = nil
	}
	err := run.MakeRows(src, wanted, tables.Sink{
		Event: w.events.add, Buffer: w.buffers.add, Stay: w.blocks.add, Sample: w.samples.add,
		Process: w.processes.add, Tag: w.tags.add, Transfer: w.transfers.add, Held: w.objects.add,
	})
	if err == nil {
		err = w.finish()
	}
	if err != nil {
		return fmt.Errorf("write into %s: %w", w.folder.dir, err)
	}
	return nil
}

func (w *writers) openFiles(p *tables.Facts) error {
	return errors.Join(w.events.start(w.folder, Events, p), w.buffers.start(w.folder, Buffers, p),
		w.blocks.start(w.folder, Blocks, p), w.samples.start(w.folder, Samples, p),
		w.processes.start(w.folder, Processes, p), w.tags.start(w.folder, Tags, p),
		w.transfers.start(w.folder, Transfers, p), w.objects.start(w.folder, Objects, p))
}

// finish completes the files.
func (w *writers) finish() error {
	kinds := w.allKinds()
	for _, k := range kinds {
		k.finish()
	}
	var err error
	for _, k := range kinds {
		err = errors.Join(err, k.wait())
	}
	return err
}

// abandon closes the files that are still open.
func (w *writers) abandon() {
	for _, k := range w.allKinds() {
		k.abandon()
	}
}

// anyKind is a kind of any type of rows.
type anyKind interface {
	run()
	finish()
	wait() error
	abandon()
}

func (w *writers) allKinds() []anyKind {
	return []anyKind{&w.events, &w.buffers, &w.blocks, &w.samples, &w.processes, &w.tags, &w.transfers, &w.objects}
}
