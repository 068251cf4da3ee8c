// Package monitor gives a run's figures to systems that people run already: over HTTP while it lasts, and as a file or a push
// at its end. It reads snapshots and never makes the program wait.
package monitor

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// What bounds the number of time series.
const (
	processesMax = 64 // the latest
	sitesMax     = 20 // with the most in use
)

// labelNames are the labels of each metric. Prometheus takes an empty one for none, and job for its own name of a target.
var labelNames = []string{"program", "pid", "device", "jobid", "step", "rank", "pod", "container"}

// describe returns the metric of a figure, which may have more labels than others.
func describe(name string, f *figures.Figure, more ...string) description {
	help, kind := f.Sentence(), dto.MetricType_GAUGE
	if strings.HasSuffix(name, "_total") {
		kind = dto.MetricType_COUNTER
	}
	return description{"gpumemtop_" + name, help, kind, append(slices.Clone(labelNames), more...)}
}

// measure is a figure that Prometheus gets.
type measure struct {
	description
	*figures.Figure
}

// measures are explained in docs/METRICS.md.
var measures = func() (list []measure) {
	for _, f := range figures.All() {
		switch {
		case f.Metric == "":
		case f.By == "":
			list = append(list, measure{describe(f.Metric, f), f})
		default:
			list = append(list, measure{describe(f.Metric, f, f.By), f})
		}
	}
	return list
}()

var siteInUse = describe("site_"+figures.InUse.Metric, figures.InUse, "site")

// collector makes metrics of the latest snapshot.
type collector struct {
	source func() *stats.Snapshot
	places *places
}

// collect returns the metrics as Prometheus' formats have them.
func (c *collector) collect() []*dto.MetricFamily {
	s := c.source()
	if s == nil {
		return nil // nothing has happened yet
	}
	out := exposition{}
	// The latest first: of two with the same number and program, it is the one that counts.
	for _, p := range slices.Backward(s.Processes[max(0, len(s.Processes)-processesMax):]) {
		labels := c.labels(s, p.Program, p.PID)
		out.addFigures(false, figures.Process(&p, s.Time), labels)
	}
	c.collectShared(s, out)
	return out.sorted()
}

// addFigures adds those of a process, or of a whole run that no process has.
func (e exposition) addFigures(whole bool, of *figures.Subject, labels []string) {
	for i := range measures {
		m := &measures[i]
		switch {
		case m.Whole != whole:
		case m.By == "":
			if v := m.Of(of); v.Known() {
				e.add(&m.description, m.metricValue(v), labels)
			}
		default:
			m.Parts(of, func(part string, n uint64) { e.add(&m.description, float64(n), labels, part) })
		}
	}
}

// metricValue returns a value in the unit of metrics, which have seconds.
func (m *measure) metricValue(v figures.Value) float64 {
	if m.Unit == figures.Nanos {
		return v.Number / 1e9
	}
	return v.Number
}

// collectShared makes the metrics of all processes together.
func (c *collector) collectShared(s *stats.Snapshot, out exposition) {
	pid := 0
	if len(s.Processes) == 1 {
		pid = s.Processes[0].PID
	}
	labels := c.labels(s, s.Program, pid)
	out.addFigures(true, figures.Run(s), labels)
	addInfo(s, labels, out)
	addMeasured(s, labels, out)
	for _, t := range largest(s.Tags) {
		out.add(&siteInUse, float64(t.InUse), labels, units.Clean(t.Name))
	}
}

// addInfo adds the metric whose labels say what is run: the policy, and what the user chose, named label_….
func addInfo(s *stats.Snapshot, labels []string, out exposition) {
	names, values := []string{"policy"}, []string{s.Policy}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		names, values = append(names, "label_"+name), append(values, s.Labels[name])
	}
	info := description{"gpumemtop_run_info", "1: what is run, and the user's labels.", dto.MetricType_GAUGE, append(slices.Clone(labelNames), names...)}
	out.add(&info, 1, labels, values...)
}

// labels returns the values of labelNames.
func (c *collector) labels(s *stats.Snapshot, program string, pid int) []string {
	number := ""
	if pid != 0 {
		number = strconv.Itoa(pid)
	}
	at := c.places.of(pid)
	return []string{units.Clean(path.Base(cmp.Or(program, s.Program, "all"))), number, units.Clean(s.Device.Name), at.job, at.step, at.rank, at.pod, at.container}
}

// largest returns the call sites with the most in use. Names differ.
func largest(tags []stats.Tag) []stats.Tag {
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
