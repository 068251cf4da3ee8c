// Package monitor gives a run's figures to systems that people run already: over HTTP while it lasts, and as a file or a push
// at its end. It reads snapshots and never makes the program wait.
package monitor

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"

	dto "github.com/prometheus/client_model/go"

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

// figure is a metric of a process.
type figure struct {
	description
	of func(t *stats.Totals) float64
}

func describe(name, help string, kind dto.MetricType, more ...string) description {
	return description{"gpumemtop_" + name, help, kind, append(slices.Clone(labelNames), more...)}
}

func gauge(name, help string, of func(t *stats.Totals) uint64) figure {
	return figure{describe(name, help, dto.MetricType_GAUGE), func(t *stats.Totals) float64 { return float64(of(t)) }}
}

func counter(name, help string, of func(t *stats.Totals) float64) figure {
	return figure{describe(name, help, dto.MetricType_COUNTER), of}
}

// figures are explained in docs/METRICS.md.
var figures = []figure{
	gauge("in_use_bytes", "Device memory that the program holds, as granted.", func(t *stats.Totals) uint64 { return t.InUse }),
	gauge("held_bytes", "The most in use in the last second.", func(t *stats.Totals) uint64 { return t.Held }),
	gauge("requested_bytes", "What the program asked for, of what it holds.", func(t *stats.Totals) uint64 { return t.Requested }),
	gauge("cached_bytes", "Free in the pool.", func(t *stats.Totals) uint64 { return t.Cached }),
	gauge("cooling_bytes", "Released, and still used by queued commands.", func(t *stats.Totals) uint64 { return t.Cooling }),
	gauge("reserved_bytes", "In use, cached and cooling.", (*stats.Totals).Reserved),
	gauge("peak_in_use_bytes", "The most in use so far.", func(t *stats.Totals) uint64 { return t.PeakInUse }),
	gauge("peak_reserved_bytes", "The most reserved so far.", func(t *stats.Totals) uint64 { return t.PeakReserved }),
	counter("releases_total", "Last releases by the program.", func(t *stats.Totals) float64 { return float64(t.Releases) }),
	counter("driver_seconds_total", "Time in the driver's creates and releases, of all threads.",
		func(t *stats.Totals) float64 { return float64(t.DriverNS) / 1e9 }),
	counter("saved_seconds_total", "Time in the driver that hits saved: an estimate.",
		func(t *stats.Totals) float64 { return float64(t.SavedNS) / 1e9 }),
}

// outcomes are those of creates.
var outcomes = []struct {
	name string
	of   func(t *stats.Totals) uint64
}{
	{"hit", func(t *stats.Totals) uint64 { return t.Hits }},
	{"miss", func(t *stats.Totals) uint64 { return t.Misses }},
	{"ineligible", func(t *stats.Totals) uint64 { return t.Unpooled }},
	{"other", func(t *stats.Totals) uint64 { return t.Creates - min(t.Creates, t.Hits+t.Misses+t.Unpooled) }},
}

var (
	creates     = describe("creates_total", "Creates of memory, by outcome.", dto.MetricType_COUNTER, "outcome")
	failures    = describe("create_failures_total", "Creates that failed, by status.", dto.MetricType_COUNTER, "status")
	transferred = describe("transferred_bytes_total", "Bytes that commands moved, by direction.", dto.MetricType_COUNTER, "direction")
	findings    = describe("findings_total", "Mistakes of the program, by kind.", dto.MetricType_COUNTER, "kind")
	lost        = describe("lost_events_total", "Events that were lost: figures may be too high or too low.", dto.MetricType_COUNTER)
	device      = describe("device_bytes", "Global memory of the first device.", dto.MetricType_GAUGE)
	siteInUse   = describe("site_in_use_bytes", "Device memory in use, of the call sites with the most.", dto.MetricType_GAUGE, "site")
	machine     = describe("machine_bytes", "What the machine reports of the processes' memory, by source.", dto.MetricType_GAUGE, "source")
)

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
		for i := range figures {
			f := &figures[i]
			out.add(&f.description, f.of(&p.Totals), labels)
		}
		for _, o := range outcomes {
			out.add(&creates, float64(o.of(&p.Totals)), labels, o.name)
		}
		for status, n := range failuresOf(&p.Totals) {
			out.add(&failures, float64(n), labels, status)
		}
	}
	c.collectShared(s, out)
	return out.sorted()
}

// collectShared makes the metrics of all processes together.
func (c *collector) collectShared(s *stats.Snapshot, out exposition) {
	pid := 0
	if len(s.Processes) == 1 {
		pid = s.Processes[0].PID
	}
	labels := c.labels(s, s.Program, pid)
	for i := range s.Transfers.Directions {
		out.add(&transferred, float64(s.Transfers.Directions[i].Bytes), labels, stats.Direction(i).String())
	}
	kinds := map[string]uint64{}
	for i := range s.Findings {
		kinds[s.Findings[i].Kind.String()] += s.Findings[i].Count
	}
	for kind, n := range kinds {
		out.add(&findings, float64(n), labels, kind)
	}
	out.add(&lost, float64(s.Lost), labels)
	out.add(&device, float64(s.Device.Global), labels)
	sources := map[string]uint64{}
	for i := range s.Machine {
		sources[s.Machine[i].Source.String()] += s.Machine[i].Bytes
	}
	for source, bytes := range sources {
		out.add(&machine, float64(bytes), labels, source)
	}
	addInfo(s, labels, out)
	for _, t := range largest(s.Tags) {
		out.add(&siteInUse, float64(t.InUse), labels, units.Clean(t.Name))
	}
}

// failuresOf returns the creates that failed by status. Those for lack of memory are always there, so that the first one is an
// increase: mem object allocation failure, out of resources, out of host memory, invalid buffer size.
func failuresOf(t *stats.Totals) map[string]uint64 {
	counts := map[string]uint64{"-4": 0, "-5": 0, "-6": 0, "-61": 0, "other": t.Failures}
	for _, f := range t.FailedWith {
		if f.Count > 0 {
			counts[strconv.Itoa(int(f.Status))] = f.Count
			counts["other"] -= min(counts["other"], f.Count)
		}
	}
	return counts
}

// addInfo adds the metric whose labels say what is run: the policy, and what the user chose, named label_….
func addInfo(s *stats.Snapshot, labels []string, out exposition) {
	names, values := []string{"policy"}, []string{s.Policy}
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		names, values = append(names, "label_"+name), append(values, s.Labels[name])
	}
	info := describe("run_info", "1: what is run, and the user's labels.", dto.MetricType_GAUGE, names...)
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
