package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

// listed is how many recordings one element of the first collection names: a million of them would not fit into a pipeline.
const listed = 1000

func init() {
	register.DoFn3x1[context.Context, string, func(int, string), error](&listFn{})
	register.DoFn4x1[context.Context, int, string, func(string, []byte), error](&lookFn{})
	register.Emitter2[int, string]()
	register.Emitter2[string, []byte]()
	register.Iter1[[]byte]()
	beam.RegisterType(reflect.TypeFor[work]())
}

// buildPipeline makes the pipeline of a command.
func buildPipeline(ctx context.Context, w work, paths []string) (*beam.Pipeline, error) {
	var lists []string
	for at := 0; at < len(paths); at += listed {
		name := fmt.Sprintf("%s/list/%d.json", w.Run, at)
		if err := w.State.write(ctx, name, list{at, paths[at:min(at+listed, len(paths))]}); err != nil {
			return nil, err
		}
		lists = append(lists, name)
	}
	p, s := beam.NewPipelineWithRoot()
	files := beam.ParDo(s, &listFn{w}, beam.CreateList(s, lists))
	looked := beam.ParDo(s, &lookFn{w}, beam.Reshuffle(s, files))
	commands[w.Command].build(s, w, looked)
	return p, nil
}

// list is a part of the recordings.
type list struct {
	First int      `json:"first"` // index
	Paths []string `json:"paths"`
}

// listFn yields the recordings of a list.
type listFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *listFn) ProcessElement(ctx context.Context, name string, emit func(int, string)) error {
	var l list
	if err := f.Work.State.readExisting(ctx, name, &l); err != nil {
		return err
	}
	for i, path := range l.Paths {
		emit(l.First+i, path)
	}
	return nil
}

// lookFn reads headers, and yields the entries of programs.
type lookFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *lookFn) ProcessElement(ctx context.Context, index int, path string, emit func(string, []byte)) error {
	e, err := f.Work.readHeader(ctx, index, path)
	if err != nil {
		return f.Work.noteSkipped(ctx, path, err)
	}
	emit(e.App, encodeValue(e))
	return nil
}

// encodeValue and unpack encode and decode the data between workers. These are small entries, because a runner may hold all of them until
// it ends; results are in the store.
func encodeValue(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // never: the value is plain data
	}
	return text
}

func decodeValue[T any](text []byte) (value T, err error) {
	if err = json.Unmarshal(text, &value); err != nil {
		err = fmt.Errorf("what another worker sent: %w", err)
	}
	return value, err
}

// decodeEntries unpacks all values of a key, by their indices. If several files have the same recording, only the largest counts.
func (w *work) decodeEntries(ctx context.Context, values func(*[]byte) bool) (all []*entry, err error) {
	var text []byte
	for values(&text) {
		e, err := decodeValue[*entry](text)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	largest := func(a, b *entry) int { return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Index, b.Index)) }
	slices.SortFunc(all, largest)
	seen := map[string]*entry{}
	all = slices.DeleteFunc(all, func(e *entry) bool {
		of := seen[e.ID+e.Group]
		if of == nil || of.Path == e.Path {
			seen[e.ID+e.Group] = e
			return false
		}
		err = errors.Join(err, w.noteCopy(ctx, e, of))
		return true
	})
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Compare(a.Index, b.Index) })
	return all, err
}

// eachResult calls take with the results of a key's entries, one at a time, by their indices.
func eachResult[T any](ctx context.Context, w *work, values func(*[]byte) bool, take func(*entry, *T)) error {
	list, err := w.decodeEntries(ctx, values)
	if err != nil {
		return err
	}
	for _, e := range list {
		result := new(T)
		if err := w.State.readExisting(ctx, e.Result, result); err != nil {
			return err
		}
		take(e, result)
	}
	return nil
}
