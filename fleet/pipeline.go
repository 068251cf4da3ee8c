package main

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

// Recordings go through the pipeline in batches, each in a file of the store: a runner holds all elements in memory, several times.
const (
	batchMost = 1000
	batches   = 256 // into which fewer recordings are divided, so that all workers have some
)

func init() {
	register.DoFn3x1[context.Context, string, func(string, string), error](&lookDoFn{})
	register.Emitter2[string, string]()
	register.Iter1[string]()
	beam.RegisterType(reflect.TypeFor[work]())
}

// buildPipeline makes the pipeline of a command.
func buildPipeline(ctx context.Context, w work, paths []string) (*beam.Pipeline, error) {
	var names []string
	n := 0
	for part := range slices.Chunk(paths, batchSize(len(paths))) {
		var batch []*entry
		for _, path := range part {
			batch = append(batch, &entry{Index: n, Path: path})
			n++
		}
		if err := w.storeAndEmitBatch(ctx, "", batch, func(_, name string) { names = append(names, name) }); err != nil {
			return nil, err
		}
	}
	p, s := beam.NewPipelineWithRoot()
	looked := beam.ParDo(s, &lookDoFn{w}, beam.Reshuffle(s, beam.CreateList(s, names)))
	commands[w.Command].build(s, w, looked)
	return p, nil
}

// batchSize returns how many of n recordings form a batch.
func batchSize(n int) int { return min(max(n/batches, 1), batchMost) }

// lookDoFn reads the headers of a batch, and yields the entries of each program.
type lookDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *lookDoFn) ProcessElement(ctx context.Context, batch string, emit func(string, string)) error {
	return f.Work.emitEntriesIf(ctx, batch, emit, func(e *entry) (bool, error) {
		if err := f.Work.readRecordingHeader(ctx, e); err != nil {
			return false, f.Work.noteSkipped(ctx, e.Path, err)
		}
		return true, nil
	})
}

// emitEntriesByProgram yields entries by their programs, or by groups if they have these.
func (w *work) emitEntriesByProgram(ctx context.Context, list []*entry, emit func(string, string)) error {
	by := map[string][]*entry{}
	for _, e := range list {
		key := strings.TrimPrefix(e.Group+"\x00"+e.App, "\x00")
		by[key] = append(by[key], e)
	}
	for key, list := range by {
		if err := w.storeAndEmitBatch(ctx, key, list, emit); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) storeAndEmitBatch(ctx context.Context, key string, batch []*entry, emit func(string, string)) error {
	name := w.Run + "/batches/" + digestOf(key, batch[0]) + ".json"
	if err := w.State.writeJSON(ctx, name, batch); err != nil {
		return err
	}
	emit(key, name)
	return nil
}

// emitEntriesIf passes on the entries of a batch for which work says so.
func (w *work) emitEntriesIf(ctx context.Context, name string, emit func(string, string), work func(*entry) (ok bool, err error)) error {
	var list, done []*entry
	if err := w.State.readExistingJSON(ctx, name, &list); err != nil {
		return err
	}
	for _, e := range list {
		ok, err := work(e)
		if err != nil {
			return err
		}
		if ok {
			done = append(done, e)
		}
	}
	return w.emitEntriesByProgram(ctx, done, emit)
}

// readBatches returns the entries of all batches of a key, by their indices. If several files have the same recording, only the largest
// counts.
func (w *work) readBatches(ctx context.Context, values func(*string) bool) (all []*entry, err error) {
	var name string
	for values(&name) {
		var list []*entry
		if err := w.State.readExistingJSON(ctx, name, &list); err != nil {
			return nil, err
		}
		for _, e := range list {
			e.App, e.Plan = list[0].App, list[0].Plan // one for all, in memory
			if reflect.DeepEqual(e.Present, list[0].Present) {
				e.Present = list[0].Present
			}
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Group, b.Group), cmp.Compare(b.Size, a.Size), cmp.Compare(a.Index, b.Index))
	})
	var of *entry
	all = slices.DeleteFunc(all, func(e *entry) bool {
		if of == nil || of.ID != e.ID || of.Group != e.Group || of.Path == e.Path {
			of = e
			return false
		}
		err = errors.Join(err, w.noteDuplicate(ctx, e, of))
		return true
	})
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.Index, b.Index) })
	return all, err
}

// eachResultOfKey calls take with the results of a key's entries, one at a time, by their indices.
func eachResultOfKey[T any](ctx context.Context, w *work, values func(*string) bool, take func(*entry, *T)) error {
	list, err := w.readBatches(ctx, values)
	if err != nil {
		return err
	}
	for i, e := range list {
		result := new(T)
		if err := w.State.readExistingJSON(ctx, e.Result, result); err != nil {
			return err
		}
		take(e, result)
		list[i] = nil // memory for what take keeps
	}
	return nil
}
