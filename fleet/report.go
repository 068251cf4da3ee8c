package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
)

func init() {
	register.DoFn4x1[context.Context, string, []byte, func(string, []byte), error](&reportFn{})
	register.DoFn3x1[context.Context, string, func(*[]byte) bool, error](&reportedFn{})
}

func buildReport(s beam.Scope, w work, looked beam.PCollection) {
	read := beam.ParDo(s, &reportFn{w}, beam.Reshuffle(s, looked))
	beam.ParDo0(s, &reportedFn{w}, beam.GroupByKey(s, read))
}

// figures are those of gpumemtop report --format json for one recording.
type figures struct {
	Index        int                     `json:"index"`
	Path         string                  `json:"path"`
	Job          string                  `json:"job"`
	Hits         uint64                  `json:"hits"`
	Misses       uint64                  `json:"misses"`
	PeakInUse    uint64                  `json:"peak_in_use"`
	PeakReserved uint64                  `json:"peak_reserved"`
	SavedNS      uint64                  `json:"driver_calls_saved_ns"`
	WallSeconds  float64                 `json:"wall_seconds"`
	Leaks        []report.LeakSummary    `json:"leaks"`
	Findings     []report.FindingSummary `json:"findings"`
	Diagnoses    []analysis.Diagnosis    `json:"diagnoses"`
}

// reportFn analyses one recording.
type reportFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *reportFn) ProcessElement(ctx context.Context, app string, packed []byte, emit func(string, []byte)) error {
	e, err := unpack[*entry](packed)
	if err != nil {
		return err
	}
	r, ok, err := once(ctx, &f.Work, e, "", reportOne)
	if err != nil || !ok {
		return err
	}
	r.Index, r.Path, r.Job = e.Index, e.Path, e.Job
	emit(app, pack(r))
	return nil
}

func reportOne(reader *recording.Reader) (*figures, error) {
	footer, whole := reader.Footer()
	a, err := analysis.New(reader, analysis.Options{Header: reader.Header(), Footer: footer, Whole: whole})
	if err != nil {
		return nil, err
	}
	f := report.NewFigures(a)
	return &figures{
		Hits: f.Hits, Misses: f.Misses, PeakInUse: f.PeakInUse, PeakReserved: f.PeakReserved, SavedNS: f.Saved.Calls, WallSeconds: f.WallSeconds,
		Leaks: f.Summary.Leaks, Findings: f.Findings, Diagnoses: f.Diagnoses,
	}, nil
}

// spread is how a figure differs among recordings.
type spread struct {
	Least   uint64 `json:"least"`
	Median  uint64 `json:"median"`
	Most    uint64 `json:"most"`
	Highest string `json:"highest"` // the recording with the most
}

// shared is a finding, leak or diagnosis that recordings of a program have in common.
type shared struct {
	Kind       string `json:"kind"` // of a mistake; "leak", "diagnosis"
	What       string `json:"what"` // function of a mistake, title of a diagnosis
	Tag        string `json:"tag"`  // call site
	Recordings int    `json:"recordings"`
	Count      uint64 `json:"count"` // times, or buffers
	Bytes      uint64 `json:"bytes,omitempty"`
	Path       string `json:"recording"` // the first that shows it

	latest string // recording that does
}

type reported struct {
	Application  string    `json:"application"`
	Recordings   int       `json:"recordings"`
	Jobs         int       `json:"jobs"` // a recording without one counts as one
	Hits         uint64    `json:"hits"`
	Misses       uint64    `json:"misses"`
	HitRate      float64   `json:"hit_rate"`
	SavedNS      uint64    `json:"driver_calls_saved_ns"`
	WallSeconds  float64   `json:"wall_seconds"`
	PeakInUse    spread    `json:"peak_in_use"`
	PeakReserved spread    `json:"peak_reserved"`
	Shared       []*shared `json:"findings"` // what most recordings show first, then the most bytes
}

// reportedFn puts together what recordings of a program show.
type reportedFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *reportedFn) ProcessElement(ctx context.Context, app string, recordings func(*[]byte) bool) error {
	list, err := each[*figures](recordings)
	if err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b *figures) int { return cmp.Compare(a.Index, b.Index) })
	return f.Work.found(ctx, app, foldReports(app, list))
}

func foldReports(app string, list []*figures) *reported {
	out := &reported{Application: app, Recordings: len(list), Shared: []*shared{}}
	jobs := map[string]bool{}
	for _, r := range list {
		jobs[cmp.Or(r.Job, "\x00"+r.Path)] = true
		out.Hits += r.Hits
		out.Misses += r.Misses
		out.SavedNS += r.SavedNS
		out.WallSeconds += r.WallSeconds
	}
	out.Jobs = len(jobs)
	if all := out.Hits + out.Misses; all > 0 {
		out.HitRate = float64(out.Hits) / float64(all)
	}
	out.PeakInUse = spreadOf(list, func(f *figures) uint64 { return f.PeakInUse })
	out.PeakReserved = spreadOf(list, func(f *figures) uint64 { return f.PeakReserved })
	by := map[[3]string]*shared{}
	for _, r := range list {
		r.each(func(s shared) {
			key := [3]string{s.Kind, s.What, s.Tag}
			known := by[key]
			if known == nil {
				known = &shared{Kind: s.Kind, What: s.What, Tag: s.Tag, Path: r.Path}
				by[key] = known
				out.Shared = append(out.Shared, known)
			}
			if known.latest != r.Path { // a recording shows some more than once
				known.Recordings++
			}
			known.latest = r.Path
			known.Count += s.Count
			known.Bytes += s.Bytes
		})
	}
	slices.SortStableFunc(out.Shared, func(a, b *shared) int {
		return cmp.Or(cmp.Compare(b.Recordings, a.Recordings), cmp.Compare(b.Bytes, a.Bytes))
	})
	return out
}

func (f *figures) each(take func(shared)) {
	for i := range f.Findings {
		s := &f.Findings[i]
		take(shared{Kind: s.Kind, What: s.Function, Tag: s.Tag, Count: s.Count})
	}
	for i := range f.Leaks {
		l := &f.Leaks[i]
		take(shared{Kind: "leak", Tag: l.Tag, Count: l.Buffers, Bytes: l.Bytes})
	}
	for i := range f.Diagnoses {
		d := &f.Diagnoses[i]
		take(shared{Kind: "diagnosis", What: d.Title, Tag: d.Tag, Count: 1})
	}
}

func spreadOf(list []*figures, value func(*figures) uint64) spread {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *figures) int { return cmp.Compare(value(a), value(b)) })
	last := sorted[len(sorted)-1]
	return spread{value(sorted[0]), value(sorted[(len(sorted)-1)/2]), value(last), last.Path}
}
