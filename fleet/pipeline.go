package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

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

// build makes the pipeline of a command.
func build(ctx context.Context, w work, paths []string) (*beam.Pipeline, error) {
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
	if !f.Work.State.read(ctx, name, &l) {
		return fmt.Errorf("%s cannot be read: --state must name a folder that all workers see", f.Work.State.path(name))
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
	e, err := f.Work.look(ctx, index, path)
	if err != nil {
		return f.Work.skip(ctx, path, err)
	}
	emit(e.App, pack(e))
	return nil
}

// pack and unpack write and read what travels between workers.
func pack(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it is plain data
	}
	return text
}

func unpack[T any](text []byte) (T, error) {
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return value, fmt.Errorf("what another worker sent: %w", err)
	}
	return value, nil
}

// each unpacks all values of a key.
func each[T any](values func(*[]byte) bool) (all []T, err error) {
	var text []byte
	for values(&text) {
		value, err := unpack[T](text)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}
