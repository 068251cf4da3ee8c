package main

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

func init() {
	register.DoFn4x1[context.Context, string, string, func(string, string), error](&reportDoFn{})
	register.DoFn3x1[context.Context, string, func(*string) bool, error](&combineReportsDoFn{})
}

func buildReportPipeline(s beam.Scope, w work, looked beam.PCollection) {
	read := beam.ParDo(s, &reportDoFn{w}, beam.Reshuffle(s, looked))
	beam.ParDo0(s, &combineReportsDoFn{w}, beam.GroupByKey(s, read))
}

// outcome is the part of gpumemtop report --format json for one recording that is merged.
type outcome struct {
	Hits         uint64               `json:"hits"`
	Misses       uint64               `json:"misses"`
	PeakInUse    uint64               `json:"peak_in_use"`
	PeakReserved uint64               `json:"peak_reserved"`
	SavedNS      uint64               `json:"driver_calls_saved_ns"`
	WallSeconds  float64              `json:"wall_seconds"`
	Leaks        []analysis.Leak      `json:"leaks"`
	Findings     []stats.Finding      `json:"findings"`
	Diagnoses    []analysis.Diagnosis `json:"diagnoses"`
}

// reportDoFn analyses the recordings of a batch.
type reportDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *reportDoFn) ProcessElement(ctx context.Context, _, batch string, emit func(string, string)) error {
	return f.Work.emitEntriesIf(ctx, batch, emit, func(e *entry) (bool, error) { return reuseOrCompute(ctx, &f.Work, e, "", reportOnRecording) })
}

func reportOnRecording(reader *recording.Reader) (*outcome, error) {
	footer, whole := reader.Footer()
	a, err := analysis.Analyse(reader, analysis.Options{Header: reader.Header(), Footer: footer, Whole: whole})
	if err != nil {
		return nil, err
	}
	run, data := figures.SubjectOfRecording(a), report.NewData(a)
	exact := func(f *figures.Figure) uint64 { return f.ValueOf(run).Exact }
	if data.HeldAtExit {
		data.Leaks = nil // memory of a process that a signal ended is no leak
	}
	return &outcome{
		Hits: exact(figures.Hits), Misses: exact(figures.Misses), PeakInUse: exact(figures.PeakInUse), PeakReserved: exact(figures.PeakReserved),
		SavedNS: exact(figures.Saved), WallSeconds: figures.WallTime.ValueOf(run).Number / 1e9,
		Leaks: data.Leaks, Findings: data.Findings, Diagnoses: data.Diagnoses,
	}, nil
}

// spread is the range of a figure over recordings.
type spread struct {
	Least   uint64 `json:"least"`
	Median  uint64 `json:"median"`
	Most    uint64 `json:"most"`
	Highest string `json:"highest"` // the recording with the most

	all []uint64
}

// shared is a finding, leak or diagnosis that several recordings of a program show.
type shared struct {
	Kind       string `json:"kind"` // of a mistake; "leak", "diagnosis"
	What       string `json:"what"` // function of a mistake; title of a diagnosis, with N for figures
	Tag        string `json:"tag"`  // call site
	Recordings int    `json:"recordings"`
	Count      uint64 `json:"count"` // times, or buffers
	Bytes      uint64 `json:"bytes,omitempty"`
	Path       string `json:"recording"` // the first that shows it

	latest string // latest recording that was counted
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

	jobs jobs
	by   map[[3]string]*shared
}

// combineReportsDoFn merges the reports on all recordings of a program.
type combineReportsDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *combineReportsDoFn) ProcessElement(ctx context.Context, app string, values func(*string) bool) error {
	out := newReported(app)
	if err := eachResultOfKey(ctx, &f.Work, values, out.addRecording); err != nil {
		return err
	}
	out.computeFigures()
	return f.Work.storeResult(ctx, app, out)
}

func newReported(app string) *reported {
	return &reported{Application: app, Shared: []*shared{}, jobs: jobs{}, by: map[[3]string]*shared{}}
}

// addRecording counts a recording.
func (r *reported) addRecording(e *entry, f *outcome) {
	r.Recordings++
	r.Jobs += r.jobs.countIfNewJob(e)
	r.Hits += f.Hits
	r.Misses += f.Misses
	r.SavedNS += f.SavedNS
	r.WallSeconds += f.WallSeconds
	r.PeakInUse.addBytes(f.PeakInUse, e)
	r.PeakReserved.addBytes(f.PeakReserved, e)
	f.eachSharedFinding(func(s shared) {
		key := [3]string{s.Kind, s.What, s.Tag}
		known := r.by[key]
		if known == nil {
			known = &shared{Kind: s.Kind, What: s.What, Tag: s.Tag, Path: e.Path}
			r.by[key] = known
			r.Shared = append(r.Shared, known)
		}
		if known.latest != e.Path { // a recording shows some more than once
			known.Recordings++
		}
		known.latest = e.Path
		known.Count += s.Count
		known.Bytes += s.Bytes
	})
}

// computeFigures computes the figures that need all recordings.
func (r *reported) computeFigures() {
	if all := r.Hits + r.Misses; all > 0 {
		r.HitRate = float64(r.Hits) / float64(all)
	}
	r.PeakInUse.computeLeastAndMedian()
	r.PeakReserved.computeLeastAndMedian()
	slices.SortStableFunc(r.Shared, func(a, b *shared) int {
		return cmp.Or(cmp.Compare(b.Recordings, a.Recordings), cmp.Compare(b.Bytes, a.Bytes))
	})
}

func (f *outcome) eachSharedFinding(take func(shared)) {
	for i := range f.Findings {
		s := &f.Findings[i]
		take(shared{Kind: s.Kind.JSONKey(), What: s.Function, Tag: s.Tag, Count: s.Count})
	}
	for i := range f.Leaks {
		l := &f.Leaks[i]
		take(shared{Kind: "leak", Tag: l.Name, Count: l.Buffers, Bytes: l.Bytes})
	}
	for i := range f.Diagnoses {
		d := &f.Diagnoses[i]
		take(shared{Kind: "diagnosis", What: titleWithoutFigures(d.Title, d.Tag), Tag: d.Tag, Count: 1})
	}
}

var (
	oneObject = regexp.MustCompile(`(^| )1 ((?:\w+ )?(?:buffer|image|allocation|object))\b`)
	figure    = regexp.MustCompile(`(^| )\d[\d.,]*( (B|[KMGT]iB|%))?`)
)

// titleWithoutFigures makes titles equal that differ by their figures alone. A call site at the beginning keeps its line.
func titleWithoutFigures(title, tag string) string {
	rest, cut := strings.CutPrefix(title, tag)
	rest = figure.ReplaceAllString(oneObject.ReplaceAllString(rest, "${1}1 ${2}s"), "${1}N")
	if cut {
		return tag + rest
	}
	return rest
}

func (s *spread) addBytes(bytes uint64, e *entry) {
	if s.all = append(s.all, bytes); bytes >= s.Most {
		s.Most, s.Highest = bytes, e.Path
	}
}

func (s *spread) computeLeastAndMedian() {
	slices.Sort(s.all)
	s.Least, s.Median = s.all[0], s.all[(len(s.all)-1)/2]
}
