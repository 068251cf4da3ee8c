package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise"
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

func init() {
	register.DoFn4x1[context.Context, string, string, func(string, string), error](&adviseDoFn{})
	register.DoFn3x1[context.Context, string, func(*string) bool, error](&combineAdviceDoFn{})
}

func buildAdvisePipeline(s beam.Scope, w work, looked beam.PCollection) {
	read := beam.ParDo(s, &adviseDoFn{w}, beam.Reshuffle(s, looked))
	beam.ParDo0(s, &combineAdviceDoFn{w}, beam.GroupByKey(s, read))
}

// piece is one piece of advice of gpumemtop advise about a recording.
type piece struct {
	Topic    string   `json:"topic"`
	Verdict  string   `json:"verdict"`
	Sites    []string `json:"sites"`
	Bytes    uint64   `json:"bytes"`
	Nanos    uint64   `json:"copies_ns,omitempty"`
	Sentence string   `json:"sentence"`
}

type advisedRecording struct {
	Pieces []piece `json:"advice"`
}

// adviseDoFn asks for advice on each recording of a batch.
type adviseDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *adviseDoFn) ProcessElement(ctx context.Context, _, batch string, emit func(string, string)) error {
	return f.Work.emitEntriesIf(ctx, batch, emit, func(e *entry) (bool, error) {
		return reuseOrCompute(ctx, &f.Work, e, "", func(reader *recording.Reader) (*advisedRecording, error) {
			return adviseOnRecording(e.Path, reader)
		})
	})
}

func adviseOnRecording(name string, reader *recording.Reader) (*advisedRecording, error) {
	a := advise.New(advise.Options{Options: merging.Options{Form: merging.Completion, Max: true}, Steps: advise.MostSteps})
	if err := a.AddRecording(advise.Recording{Name: name, Source: reader, Header: reader.Header()}); err != nil {
		return nil, err
	}
	result, err := a.AdviseOnRuns()
	if err != nil {
		return nil, err
	}
	r := &advisedRecording{Pieces: []piece{}}
	for i := range result.Programs {
		for j := range result.Programs[i].Advice {
			a := &result.Programs[i].Advice[j]
			r.Pieces = append(r.Pieces, piece{a.Topic.String(), a.Verdict.String(), a.Sites, a.Bytes, a.Nanos, a.Sentence})
		}
	}
	return r, nil
}

// common is a piece of advice that several recordings of a program show.
type common struct {
	piece             // in the recording where it saves most
	Recordings int    `json:"recordings"` // that show it
	Jobs       int    `json:"jobs"`       // of these recordings; a recording without a job counts as one
	Least      uint64 `json:"bytes_least"`
	Total      uint64 `json:"bytes_total"`
	Path       string `json:"recording"` // that recording

	jobs   jobs
	latest string // latest recording that was counted: several processes of one recording may show the same
}

type advised struct {
	Application string    `json:"application"`
	Recordings  int       `json:"recordings"`
	Advice      []*common `json:"advice"` // what most recordings show first, then the most bytes
}

// combineAdviceDoFn merges the advice about all recordings of a program.
type combineAdviceDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *combineAdviceDoFn) ProcessElement(ctx context.Context, app string, values func(*string) bool) error {
	out := &advised{Application: app, Advice: []*common{}}
	by := map[string]*common{}
	err := eachResultOfKey(ctx, &f.Work, values, func(e *entry, r *advisedRecording) {
		out.Recordings++
		for _, p := range r.Pieces {
			key := p.Topic + "\x00" + strings.Join(p.Sites, "\x00")
			c := by[key]
			if c == nil {
				c = &common{piece: p, Least: p.Bytes, Path: e.Path, jobs: jobs{}}
				by[key] = c
				out.Advice = append(out.Advice, c)
			}
			c.countRecordingWithAdvice(e, p)
		}
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(out.Advice, func(a, b *common) int {
		return cmp.Or(cmp.Compare(b.Recordings, a.Recordings), cmp.Compare(b.Bytes, a.Bytes))
	})
	return f.Work.storeResult(ctx, app, out)
}

// countRecordingWithAdvice counts that a recording shows a piece of advice.
func (c *common) countRecordingWithAdvice(e *entry, p piece) {
	if c.latest != e.Path {
		c.latest = e.Path
		c.Recordings++
		c.Jobs += c.jobs.countIfNewJob(e)
	}
	c.Total += p.Bytes
	c.Least = min(c.Least, p.Bytes)
	if p.Bytes > c.Bytes {
		c.piece, c.Path = p, e.Path
	}
}
