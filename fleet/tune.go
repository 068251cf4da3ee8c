package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/tune"
)

// The search for configurations, as in gpumemtop tune, uses only a few recordings of a program, its scouts. Then all recordings are
// played through the configurations that the search tried, on any worker, and the scores are summed by job.

func init() {
	register.DoFn4x1[context.Context, string, func(*string) bool, func(string, string), error](&planDoFn{})
	register.DoFn4x1[context.Context, string, string, func(string, string), error](&playDoFn{})
	register.DoFn4x1[context.Context, string, func(*string) bool, func(string, string), error](&sumDoFn{})
	register.DoFn3x1[context.Context, string, func(*string) bool, error](&gatherDoFn{})
}

func buildTunePipeline(s beam.Scope, w work, looked beam.PCollection) {
	planned := beam.ParDo(s, &planDoFn{w}, beam.GroupByKey(s, looked))
	played := beam.ParDo(s, &playDoFn{Work: w}, beam.Reshuffle(s, planned))
	jobs := beam.ParDo(s, &sumDoFn{w}, beam.GroupByKey(s, played))
	beam.ParDo0(s, &gatherDoFn{w}, beam.GroupByKey(s, jobs))
}

// plan is the list of configurations that the recordings of a program are played through.
type plan struct {
	Configurations []replay.Configuration `json:"configurations"`
	Ending         tune.Ending            `json:"ending"`
	Present        *replay.Configuration  `json:"present"`
	Halves         []tune.Fold            `json:"halves"`  // of the only recording
	Columns        []column               `json:"columns"` // of the scouts, which were played already
	Error          string                 `json:"error"`   // why there is none
}

// column has the scores of all configurations on a recording, or on the recordings of a job.
type column struct {
	tune.Column
	Path       string `json:"path"` // of a scout's recording
	Events     int    `json:"events"`
	Recordings int    `json:"recordings"`
}

// planDoFn searches configurations for a program, and yields its recordings with the name of the plan.
type planDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *planDoFn) ProcessElement(ctx context.Context, app string, values func(*string) bool, emit func(string, string)) error {
	list, err := f.Work.readBatches(ctx, values)
	if err != nil {
		return err
	}
	o := f.Work.searchOptions(list)
	scouts := pickRepresentatives(list, f.Work.Scouts)
	name := "plans/" + digestOf(version, app, pathsAndVersions(scouts), len(list) == 1, o.Most, o.MaxMemory, o.Present) + ".json"
	if p := new(plan); !f.Work.State.readJSON(ctx, name, p) {
		if p, err = f.Work.searchOnScouts(ctx, scouts, len(list), o); err == nil {
			err = f.Work.State.writeJSON(ctx, name, p)
		}
		if err != nil {
			return err
		}
	}
	groups, byJob := countGroupsOfRecordings(list)
	for _, e := range list {
		e.Plan, e.Group, e.Present = name, groupOfRecording(e, groups, byJob), nil
	}
	slices.SortStableFunc(list, func(a, b *entry) int { return cmp.Compare(a.Group, b.Group) })
	for batch := range slices.Chunk(list, batchSize(len(list))) {
		if err := f.Work.emitEntriesByProgram(ctx, batch, emit); err != nil {
			return err
		}
	}
	return nil
}

// searchOptions returns the options of gpumemtop tune for the same recordings.
func (w *work) searchOptions(list []*entry) tune.Options {
	o := tune.Options{Fit: true, Most: w.Configurations, MaxMemory: w.MaxMemory, Workers: w.Workers, Present: list[0].Present}
	for _, e := range list {
		if e.Present == nil || o.Present == nil || e.Present.String() != o.Present.String() {
			o.Present = nil
		}
	}
	return o
}

// countGroupsOfRecordings returns how many groups the recordings of a program form, and whether a group is a job: so if there are several jobs.
func countGroupsOfRecordings(list []*entry) (groups int, byJob bool) {
	known := jobs{}
	for _, e := range list {
		groups += known.countIfNewJob(e)
	}
	if groups > 1 {
		return groups, true
	}
	return len(list), false
}

// scoutBytes bounds the files of scouts together, since all are in memory at a time.
const scoutBytes = 64 << 20

// pickRepresentatives chooses recordings that stand for all: the largest of each job, then the next ones, in the order of the list.
func pickRepresentatives(list []*entry, most int) []*entry {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *entry) int { return cmp.Compare(b.Size, a.Size) })
	turn := map[*entry]int{} // how many recordings of the same job come before it
	seen := map[string]int{}
	for _, e := range sorted {
		key := cmp.Or(e.Job, e.Path)
		turn[e] = seen[key]
		seen[key]++
	}
	slices.SortStableFunc(sorted, func(a, b *entry) int { return cmp.Compare(turn[a], turn[b]) })
	var scouts []*entry
	bytes := int64(0)
	for _, e := range sorted {
		if bytes += e.Size; len(scouts) < most && (len(scouts) == 0 || bytes <= scoutBytes) {
			scouts = append(scouts, e)
		}
	}
	slices.SortFunc(scouts, func(a, b *entry) int { return cmp.Compare(a.Index, b.Index) })
	return scouts
}

func pathsAndVersions(list []*entry) (all []string) {
	for _, e := range list {
		all = append(all, e.Path, e.Version)
	}
	return all
}

// searchOnScouts searches as gpumemtop tune does. The error is that of the context.
func (w *work) searchOnScouts(ctx context.Context, scouts []*entry, of int, o tune.Options) (*plan, error) {
	var tapes []*replay.Loaded
	var whole []*entry // the entry of each tape; nil for a damaged one, which playDoFn reports
	for _, e := range scouts {
		_ = withLocalCopy(ctx, e.Path, func(local string) error {
			tape, damage, err := loadTape(local)
			if err != nil {
				return err // recordings that cannot be read are reported the same way
			}
			if tapes = append(tapes, tape); damage != "" {
				e = nil
			}
			whole = append(whole, e)
			return nil
		})
	}
	r, err := tune.Search(ctx, tapes, o)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return &plan{Error: err.Error()}, nil
	}
	p := &plan{Configurations: r.Configurations(), Ending: r.Ending, Present: o.Present}
	if of == 1 {
		p.Halves = r.CrossValidate(ctx)
	}
	for i, c := range r.Columns() {
		if whole[i] != nil {
			p.Columns = append(p.Columns, column{Column: c, Path: whole[i].Path, Events: tapes[i].EventCount(), Recordings: 1})
		}
	}
	return p, ctx.Err()
}

func loadTape(path string) (tape *replay.Loaded, damage string, err error) {
	reader, err := recording.Open(path)
	if err != nil {
		return nil, "", err
	}
	tape, err = replay.Load(reader)
	return tape, reader.Damage(), errors.Join(err, reader.Close())
}

// playDoFn plays the recordings of a batch through the plan of their program, and yields them by group.
type playDoFn struct {
	Work work

	name string // of the latest plan
	plan *plan
}

// ProcessElement implements beam.DoFn.
func (f *playDoFn) ProcessElement(ctx context.Context, _, batch string, emit func(string, string)) error {
	return f.Work.emitEntriesIf(ctx, batch, emit, func(e *entry) (bool, error) { return f.playEntry(ctx, e) })
}

func (f *playDoFn) playEntry(ctx context.Context, e *entry) (ok bool, err error) {
	if f.name != e.Plan {
		f.plan = new(plan)
		if err = f.Work.State.readExistingJSON(ctx, e.Plan, f.plan); err != nil {
			return false, err
		}
		f.name = e.Plan
	}
	return reuseOrCompute(ctx, &f.Work, e, e.Plan, func(reader *recording.Reader) (*column, error) {
		for i := range f.plan.Columns {
			if c := &f.plan.Columns[i]; c.Path == e.Path {
				return c, nil
			}
		}
		return f.playRecording(ctx, reader)
	})
}

func (f *playDoFn) playRecording(ctx context.Context, reader *recording.Reader) (*column, error) {
	tape, err := replay.Load(reader)
	if err != nil {
		return nil, err
	}
	c, err := tune.PlayRecording(ctx, tape, f.plan.Configurations, f.Work.Workers)
	if err != nil {
		return nil, err
	}
	return &column{Column: *c, Events: tape.EventCount(), Recordings: 1}, nil
}

// sumDoFn sums the columns of a job's recordings, always in the same order, because sums of fractions depend on it.
type sumDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *sumDoFn) ProcessElement(ctx context.Context, key string, values func(*string) bool, emit func(string, string)) error {
	var first *entry
	var sum *column
	err := eachResultOfKey(ctx, &f.Work, values, func(e *entry, c *column) {
		if first == nil {
			first, sum = e, c
			return
		}
		sum.AddRecording(&c.Column)
		sum.Events += c.Events
		sum.Recordings += c.Recordings
	})
	if err != nil {
		return err
	}
	if sum.Recordings > 1 {
		first.Result = f.Work.Run + "/jobs/" + digestOf(key) + ".json"
		if err = f.Work.State.writeJSON(ctx, first.Result, sum); err != nil {
			return err
		}
	}
	return f.Work.storeAndEmitBatch(ctx, first.App, []*entry{first}, emit)
}

// tuned is the result for a program: that of gpumemtop tune for its recordings. Each part of the cross-validation is a job, or a
// recording if there are no jobs.
type tuned struct {
	Application string `json:"application"`
	Error       string `json:"error,omitempty"` // why nothing can be recommended
	tune.Document
	Groups      []string `json:"held_out_names"` // of the parts, by the index held_out; empty if the parts are halves of the only recording
	Saving      float64  `json:"saving_ns"`      // the driver's time without a pool less that of the recommendation
	Expected    float64  `json:"expected_saving_ns"`
	OverFitting []string `json:"over_fitting"` // parts on which the choice of the other parts does badly
}

// gatherDoFn recommends a configuration for each program.
type gatherDoFn struct{ Work work }

// ProcessElement implements beam.DoFn.
func (f *gatherDoFn) ProcessElement(ctx context.Context, app string, values func(*string) bool) error {
	out := &tuned{Application: app, OverFitting: []string{}}
	var columns []tune.Column
	name := ""
	err := eachResultOfKey(ctx, &f.Work, values, func(e *entry, c *column) {
		name = e.Plan
		columns = append(columns, c.Column)
		out.Groups = append(out.Groups, e.Group)
		out.Recordings += c.Recordings
		out.Events += c.Events
	})
	if err != nil {
		return err
	}
	p := new(plan)
	if err := f.Work.State.readExistingJSON(ctx, name, p); err != nil {
		return err
	}
	return f.Work.storeResult(ctx, app, f.Work.recommendFromColumns(ctx, out, p, columns))
}

// recommendFromColumns recommends a configuration by the columns of all parts. out names the parts.
func (w *work) recommendFromColumns(ctx context.Context, out *tuned, p *plan, columns []tune.Column) *tuned {
	if out.Error = p.Error; out.Error != "" {
		return out
	}
	r, err := tune.GatherResult(p.Configurations, columns, p.Ending, tune.Options{MaxMemory: w.MaxMemory, Present: p.Present})
	if err == nil && r.Recommended == nil {
		err = errors.New("no tried configuration keeps to --max-memory")
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	folds := p.Halves
	if len(columns) > 1 {
		folds = r.CrossValidate(ctx)
	}
	recordings, events := out.Recordings, out.Events
	out.Document = r.DocumentOfResult(folds)
	out.Of, out.Recordings, out.Events = out.Application, recordings, events
	out.Saving = r.None.DriverNS - r.Recommended.DriverNS
	for i := range folds {
		f := &folds[i]
		out.Expected += f.None.DriverNS - f.Chosen.DriverNS
		if f.OverFits() && len(columns) > 1 {
			out.OverFitting = append(out.OverFitting, out.Groups[f.Held])
		}
	}
	return out
}
