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

// WriteTables writes the tables of a recording into a folder, which it creates if need be; the folder above it must exist. A
// recording that is in the folder already, even merged or with another part, is replaced with force and otherwise refused.
// Files appear when all of them are complete; if anything fails, nothing has changed. The source is read several times, more
// often if there are more processes.
func WriteTables(dir string, force bool, src recording.Source, o tables.Options) error {
	f, err := openFolder(dir, commits)
	if err != nil {
		return err
	}
	return errors.Join(writeAllTables(f, force, src, o), f.removeStage())
}

func writeAllTables(f *folder, force bool, src recording.Source, o tables.Options) error {
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
		return f.alreadyThereError()
	}
	w := &writers{folder: f}
	parts := groupProcesses(run.Processes())
	for _, group := range parts {
		if err := w.writeGroupTables(run, src, group, len(parts) == 1); err != nil {
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

// writeGroupTables writes all tables of a group of processes.
func (w *writers) writeGroupTables(run *tables.Run, src recording.Source, group []*tables.Facts, all bool) error {
	defer w.closeIncompleteFiles()
	for _, p := range group {
		if err := w.openFiles(p); err != nil {
			return err
		}
	}
	for _, k := range w.allTableKinds() {
		k.startWriting()
	}
	wanted := func(process uint32) bool { return w.events.open[process] != nil }
	if all {
		wanted = nil
	}
	err := run.MakeRows(src, wanted, tables.Sink{
		Event: w.events.queueRow, Buffer: w.buffers.queueRow, Stay: w.blocks.queueRow, Sample: w.samples.queueRow,
		Process: w.processes.queueRow, Tag: w.tags.queueRow, Transfer: w.transfers.queueRow, Held: w.objects.queueRow,
	})
	if err == nil {
		err = w.completeFiles()
	}
	if err != nil {
		return fmt.Errorf("write into %s: %w", w.folder.dir, err)
	}
	return nil
}

func (w *writers) openFiles(p *tables.Facts) error {
	return errors.Join(w.events.createProcessFile(w.folder, Events, p), w.buffers.createProcessFile(w.folder, Buffers, p),
		w.blocks.createProcessFile(w.folder, Blocks, p), w.samples.createProcessFile(w.folder, Samples, p),
		w.processes.createProcessFile(w.folder, Processes, p), w.tags.createProcessFile(w.folder, Tags, p),
		w.transfers.createProcessFile(w.folder, Transfers, p), w.objects.createProcessFile(w.folder, Objects, p))
}

// completeFiles completes the files.
func (w *writers) completeFiles() error {
	kinds := w.allTableKinds()
	for _, k := range kinds {
		k.beginCompleting()
	}
	var err error
	for _, k := range kinds {
		err = errors.Join(err, k.waitForRows())
	}
	return err
}

// closeIncompleteFiles closes the files that are still open.
func (w *writers) closeIncompleteFiles() {
	for _, k := range w.allTableKinds() {
		k.closeIncompleteFiles()
	}
}

// anyKind is a kind of any type of rows.
type anyKind interface {
	startWriting()
	beginCompleting()
	waitForRows() error
	closeIncompleteFiles()
}

func (w *writers) allTableKinds() []anyKind {
	return []anyKind{&w.events, &w.buffers, &w.blocks, &w.samples, &w.processes, &w.tags, &w.transfers, &w.objects}
}
