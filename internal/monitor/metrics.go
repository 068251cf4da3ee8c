// Package monitor gives a run's figures to monitoring systems: over HTTP while it lasts, and as a file or a push at its end.
// It reads snapshots and never makes the program wait.
package monitor

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	dto "github.com/prometheus/client_model/go"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Bounds on the number of time series.
const (
	processesMax = 64 // the latest ones
	sitesMax     = 20 // those with the most in use
)

// labelNames are the labels of each metric. An empty label counts as none for Prometheus, which uses job itself.
var labelNames = []string{"program", "pid", "device", "jobid", "step", "rank", "pod", "container"}

// describeFigureMetric returns the metric of a figure, with labels besides those of all metrics.
func describeFigureMetric(name string, f *figures.Figure, more ...string) description {
	help, kind := f.MeaningSentence(), dto.MetricType_GAUGE
	if strings.HasSuffix(name, "_total") {
		kind = dto.MetricType_COUNTER
	}
	return description{"gpumemtop_" + name, help, kind, append(slices.Clone(labelNames), more...)}
}

// measure is a figure with its metric.
type measure struct {
	description
	*figures.Figure
}

// measures are explained in docs/METRICS.md.
var measures = func() (list []measure) {
	for _, f := range figures.AllFigures() {
		switch {
		case f.Metric == "":
		case f.By == "":
			list = append(list, measure{describeFigureMetric(f.Metric, f), f})
		default:
			list = append(list, measure{describeFigureMetric(f.Metric, f, f.By), f})
		}
	}
	return list
}()

var siteInUse = describeFigureMetric("site_"+figures.InUse.Metric, figures.InUse, "site")

// Run identifies a run for monitoring systems, besides its snapshots.
type Run struct {
	Program string // that was started; empty: none
	Version string // revision of its sources; empty: unknown
}

// collector makes metrics of the latest snapshot. Any goroutine may use it.
type collector struct {
	source func() *stats.Snapshot
	run    Run

	mu     sync.Mutex
	series map[uint32][]string // values of labelNames by number of a process, 0: of the run. They never change after their first use
}

// collectMetrics returns the metrics for Prometheus' formats.
func (c *collector) collectMetrics() []*dto.MetricFamily {
	out := exposition{}
	c.visitProcessesAndRun(func(s *stats.Snapshot, p *stats.Process, labels []string) { out.addProcessMetrics(s, p, labels) })
	return out.sortedFamilies()
}

// visitProcessesAndRun calls take for each process that has metrics, and then with nil for the run. The latest process comes first,
// because it counts if two have the same labels. Before the first process there are no metrics.
func (c *collector) visitProcessesAndRun(take func(s *stats.Snapshot, p *stats.Process, labels []string)) {
	s := c.source()
	if s == nil || len(s.Processes) == 0 {
		return // no process has done anything yet
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.series) > 4*processesMax {
		maps.DeleteFunc(c.series, func(number uint32, _ []string) bool {
			return number > 0 && !slices.ContainsFunc(s.Processes, func(p stats.Process) bool { return p.Number == number })
		})
	}
	for _, p := range slices.Backward(s.Processes[max(0, len(s.Processes)-processesMax):]) {
		if labels := c.labelValuesOfProcess(s, &p); labels != nil {
			take(s, &p, labels)
		}
	}
	if c.series[0] == nil {
		first := &s.Processes[0]
		c.series[0] = c.cachedLabelValues(s, &stats.Process{App: first.App, Program: first.Program, Place: first.Place})
		c.series[0][slices.Index(labelNames, "rank")] = ""
	}
	take(s, nil, c.series[0])
}

// addProcessMetrics adds the metrics of a process; nil: those of the run.
func (e exposition) addProcessMetrics(s *stats.Snapshot, p *stats.Process, labels []string) {
	if p != nil {
		e.addFigures(false, figures.SubjectOfProcess(p, s.Time), labels)
		return
	}
	e.addFigures(true, figures.SubjectOfSnapshot(s), labels)
	addRunInfo(s, labels, e)
	addExperimentResults(s, labels, e)
	for _, t := range largestCallSites(s.Tags) {
		e.addValue(&siteInUse, float64(t.InUse), labels, units.Clean(t.Name))
	}
}

// addFigures adds the figures of a process; whole: those of a run that no process has.
func (e exposition) addFigures(whole bool, of *figures.Subject, labels []string) {
	for i := range measures {
		m := &measures[i]
		switch {
		case m.Whole != whole:
		case m.By == "":
			if v := m.ValueOf(of); v.IsKnown() {
				e.addValue(&m.description, m.valueInMetricUnit(v), labels)
			}
		default:
			m.VisitParts(of, func(part string, n uint64) { e.addValue(&m.description, float64(n), labels, part) })
		}
	}
}

// valueInMetricUnit returns a value in the unit of metrics, which have seconds.
func (m *measure) valueInMetricUnit(v figures.Value) float64 {
	if m.Unit == figures.Nanos {
		return v.Number / 1e9
	}
	return v.Number
}

// addRunInfo adds the metric whose labels describe the run: the policy, and the user's labels as label_….
func addRunInfo(s *stats.Snapshot, labels []string, out exposition) {
	names, values := []string{"policy"}, []string{s.Policy}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		names, values = append(names, "label_"+name), append(values, s.Labels[name])
	}
	info := description{"gpumemtop_run_info", "1: what is run, and the user's labels.", dto.MetricType_GAUGE, append(slices.Clone(labelNames), names...)}
	out.addValue(&info, 1, labels, values...)
}

// labelValuesOfProcess returns the values of labelNames for a process; nil: it has no metrics yet, because its device is unknown.
func (c *collector) labelValuesOfProcess(s *stats.Snapshot, p *stats.Process) []string {
	labels := c.series[p.Number]
	if p.Number == 0 || labels == nil && (p.Device != "" || p.Totals.Creates > 0 || p.Ended > 0) {
		labels = c.cachedLabelValues(s, p)
	}
	if p.Number > 0 && labels != nil {
		c.series[p.Number] = labels
	}
	return labels
}

func (c *collector) cachedLabelValues(s *stats.Snapshot, p *stats.Process) []string {
	number := ""
	if p.PID != 0 {
		number = strconv.Itoa(p.PID)
	}
	name, at := cmp.Or(p.App, p.Program, s.Program, c.run.Program, "all"), &p.Place
	return []string{units.Clean(path.Base(name)), number, units.Clean(p.Device), at.Job, at.Step, at.Rank, at.Pod, at.Container}
}

// largestCallSites returns the call sites with the most in use. Their names differ.
func largestCallSites(tags []stats.Tag) []stats.Tag {
	list := slices.Clone(tags)
	slices.SortFunc(list, func(a, b stats.Tag) int { return cmp.Or(cmp.Compare(b.InUse, a.InUse), cmp.Compare(a.ID, b.ID)) })
	list = slices.DeleteFunc(list, func(t stats.Tag) bool { return t.InUse == 0 })
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(t stats.Tag) bool {
		name := units.Clean(t.Name)
		again := seen[name]
		seen[name] = true
		return again
	})
	return list[:min(len(list), sitesMax)]
}
