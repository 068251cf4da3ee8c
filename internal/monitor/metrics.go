// Package monitor gives a run's figures to systems that people run already: over HTTP while it lasts, and as a file or a push
// at its end. It reads snapshots and never makes the program wait.
package monitor

import (
	"cmp"
	"path"
	"slices"
	"strconv"

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

// metric is a family of time series.
type metric struct {
	name, help string // the names of counters end in _total, those of gauges do not
	label      string // beyond labelNames; empty: none
}

func newMetric(name, help, label string) *metric { return &metric{"gpumemtop_" + name, help, label} }

// figure is a metric of a process.
type figure struct {
	*metric
	of func(t *stats.Totals) float64
}

func gauge(name, help string, of func(t *stats.Totals) uint64) figure {
	return figure{newMetric(name, help, ""), func(t *stats.Totals) float64 { return float64(of(t)) }}
}

func counter(name, help string, of func(t *stats.Totals) float64) figure {
	return figure{newMetric(name, help, ""), of}
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
	counter("create_failures_total", "Creates that failed.", func(t *stats.Totals) float64 { return float64(t.Failures) }),
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
	creates     = newMetric("creates_total", "Creates of memory, by outcome.", "outcome")
	transferred = newMetric("transferred_bytes_total", "Bytes that commands moved, by direction.", "direction")
	findings    = newMetric("findings_total", "Mistakes of the program, by kind.", "kind")
	lost        = newMetric("lost_events_total", "Events that were lost: figures may be too high or too low.", "")
	device      = newMetric("device_bytes", "Global memory of the first device.", "")
	siteInUse   = newMetric("site_in_use_bytes", "Device memory in use, of the call sites with the most.", "site")
	machine     = newMetric("machine_bytes", "What the machine reports of the processes' memory, by source.", "source")
)

// metrics returns all.
func metrics() []*metric {
	list := []*metric{creates, transferred, findings, lost, device, siteInUse, machine}
	for i := range figures {
		list = append(list, figures[i].metric)
	}
	return list
}

// collector makes metrics of snapshots.
type collector struct{ places *places }

func newCollector(inherited bool) *collector { return &collector{newPlaces(inherited)} }

// collect returns the metrics of a snapshot.
func (c *collector) collect(s *stats.Snapshot) exposition {
	e := exposition{}
	for _, p := range s.Processes[max(0, len(s.Processes)-processesMax):] {
		labels := c.labels(s, p.Program, p.PID)
		for i := range figures {
			e.add(figures[i].metric, figures[i].of(&p.Totals), labels)
		}
		for _, o := range outcomes {
			e.add(creates, float64(o.of(&p.Totals)), labels, o.name)
		}
	}
	c.collectShared(s, e)
	return e
}

// collectShared makes the metrics of all processes together.
func (c *collector) collectShared(s *stats.Snapshot, e exposition) {
	pid := 0
	if len(s.Processes) == 1 {
		pid = s.Processes[0].PID
	}
	labels := c.labels(s, s.Program, pid)
	for i := range s.Transfers.Directions {
		e.add(transferred, float64(s.Transfers.Directions[i].Bytes), labels, stats.Direction(i).String())
	}
	kinds := map[string]uint64{}
	for i := range s.Findings {
		kinds[s.Findings[i].Kind.String()] += s.Findings[i].Count
	}
	for kind, n := range kinds {
		e.add(findings, float64(n), labels, kind)
	}
	e.add(lost, float64(s.Lost), labels)
	e.add(device, float64(s.Device.Global), labels)
	sources := map[string]uint64{}
	for i := range s.Machine {
		sources[s.Machine[i].Source.String()] += s.Machine[i].Bytes
	}
	for source, bytes := range sources {
		e.add(machine, float64(bytes), labels, source)
	}
	for _, t := range largest(s.Tags) {
		e.add(siteInUse, float64(t.InUse), labels, units.Clean(t.Name))
	}
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
