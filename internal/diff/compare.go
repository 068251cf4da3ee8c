// Package diff compares two runs, overall and by call site, and finds the changes that are more than chance.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Unit is what a figure counts.
type Unit string

// The units of figures.
const (
	Bytes Unit = "bytes"
	Count Unit = "count"
	Rate  Unit = "rate" // 0 to 1
	Nanos Unit = "ns"
)

// Test is how the significance of a change was determined.
type Test string

// The tests. All but the last two give a probability.
const (
	Proportions Test = "two proportions" // z-test with pooled variance, of hits in requests
	Means       Test = "means"           // Welch's test, of durations; normal approximation
	Events      Test = "events"          // conditional test of two Poisson counts; normal approximation
	Exact       Test = "exact"           // both runs did the same work: any difference counts
	Threshold   Test = "threshold"       // one value on each side: a difference beyond thresholdRate and thresholdBytes
)

// Bounds of what counts as a change.
const (
	level          = 0.01 // probability of any false positive among all tested changes
	thresholdRate  = 0.01
	thresholdBytes = 64 << 10
	thresholdTime  = 0.1 // of durations that were measured once
)

// Change is one figure of both runs.
type Change struct {
	Figure      string
	Unit        Unit
	A, B        float64
	Test        Test
	P           float64 // probability of such a difference by chance; 1 if the test gives none
	Significant bool
}

// Delta returns B - A.
func (c *Change) Delta() float64 { return c.B - c.A }

// Fate is what happened to a call site.
type Fate string

// The fates of call sites.
const (
	Kept    Fate = "kept"
	Moved   Fate = "moved" // another line of the same function
	Added   Fate = "added"
	Removed Fate = "removed"
)

// Tag is one call site of both runs.
type Tag struct {
	Name    string // in B; in A when it was removed
	Before  string // its name in A when it moved
	Fate    Fate
	Changes []Change
}

// Diff is what changed.
type Diff struct {
	Overall []Change
	Tags    []Tag // those with a significant change first, then by the change of their peaks
	// Notes list what makes the runs hard to compare.
	Notes []string
}

// Runs compares run a with run b.
func Runs(a, b *analysis.Analysis) *Diff {
	d := &Diff{Overall: overall(a, b), Notes: notes(a, b)}
	same := sameWork(a, b)
	for _, pair := range match(a.Snapshot.Tags, b.Snapshot.Tags) {
		d.Tags = append(d.Tags, pair.compare(a, b, same))
	}
	var tested []*Change
	for i := range d.Overall {
		tested = append(tested, &d.Overall[i])
	}
	for i := range d.Tags {
		for j := range d.Tags[i].Changes {
			tested = append(tested, &d.Tags[i].Changes[j])
		}
	}
	decide(tested)
	slices.SortStableFunc(d.Tags, func(x, y Tag) int {
		return cmp.Or(cmp.Compare(y.significant(), x.significant()), cmp.Compare(y.weight(), x.weight()))
	})
	return d
}

// significant returns 1 if any change is significant, else 0.
func (t *Tag) significant() int {
	if slices.ContainsFunc(t.Changes, func(c Change) bool { return c.Significant }) {
		return 1
	}
	return 0
}

// weight is how much its peak changed.
func (t *Tag) weight() float64 { return math.Abs(t.Changes[0].Delta()) }

// sameWork reports whether both runs made the same number of iterations, so that differences of counts are no chance.
func sameWork(a, b *analysis.Analysis) bool {
	repeat := func(p analysis.Phase) bool { return p.Iterations == 0 }
	pa, pb := slices.DeleteFunc(slices.Clone(a.Phases), repeat), slices.DeleteFunc(slices.Clone(b.Phases), repeat)
	return len(pa) > 0 && slices.EqualFunc(pa, pb, func(x, y analysis.Phase) bool { return x.Iterations == y.Iterations })
}

// unhurried reports whether no request depended on when commands completed: with cooling blocks, two runs of the same
// work may miss differently.
func unhurried(runs ...*analysis.Analysis) bool {
	return !slices.ContainsFunc(runs, func(a *analysis.Analysis) bool {
		t := &a.Snapshot.Totals
		return t.HazardsAvoided > 0 || t.MissReasons[wire.MissCooling] > 0
	})
}

func notes(a, b *analysis.Analysis) []string {
	var list []string
	for name, pair := range map[string][2]string{
		"programs":     {a.Snapshot.Program, b.Snapshot.Program},
		"arguments":    {fmt.Sprint(a.Snapshot.Arguments), fmt.Sprint(b.Snapshot.Arguments)},
		"policies":     {a.Snapshot.Policy, b.Snapshot.Policy},
		"devices":      {a.Snapshot.Device.Name, b.Snapshot.Device.Name},
		"hosts":        {a.Run.Header.Host, b.Run.Header.Host},
		"damages":      {a.Damage, b.Damage},
		"events lost":  {fmt.Sprint(a.Snapshot.Lost), fmt.Sprint(b.Snapshot.Lost)},
		"processes":    {fmt.Sprint(a.Snapshot.ProcessCount()), fmt.Sprint(b.Snapshot.ProcessCount())},
		"kinds of tag": {a.Run.Header.Tags, b.Run.Header.Tags},
	} {
		if pair[0] != pair[1] {
			list = append(list, fmt.Sprintf("%s differ: %q and %q", name, pair[0], pair[1]))
		}
	}
	slices.Sort(list)
	if a.Snapshot.Policy == b.Snapshot.Policy { // limits of different policies always differ
		list = append(list, limitNotes(a.Run.Header.Limits, b.Run.Header.Limits)...)
	}
	return list
}

// limitNotes lists the limits that differ.
func limitNotes(a, b recording.Limits) []string {
	all := maps.Clone(a)
	if all == nil {
		all = recording.Limits{}
	}
	maps.Copy(all, b)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a[name] != b[name] {
			list = append(list, fmt.Sprintf("limit %s differs: %q and %q", name, a[name], b[name]))
		}
	}
	return list
}

// overall compares the figures of whole runs.
func overall(a, b *analysis.Analysis) []Change {
	s, t := &a.Snapshot.Totals, &b.Snapshot.Totals
	same := sameWork(a, b)
	list := []Change{
		once("peak in use", float64(a.Peak.InUse), float64(b.Peak.InUse)),
		once("peak reserved", float64(s.PeakReserved), float64(t.PeakReserved)),
		once("leaked", leaked(a.Leaks, ""), leaked(b.Leaks, "")),
	}
	if pooled(a, b) {
		list = append(list, proportion("hit rate", s.Hits, s.Hits+s.Misses, t.Hits, t.Hits+t.Misses))
	}
	list = append(list,
		events("creates", s.Creates, t.Creates, same),
		events("driver creates", s.DriverCreates, t.DriverCreates, same && unhurried(a, b)),
		means("driver create", &a.CreateCost, &b.CreateCost),
		means("driver create that copies", &a.CopyCost, &b.CopyCost),
		means("driver release", &a.ReleaseCost, &b.ReleaseCost),
		timed("time in the driver", s.DriverNS, t.DriverNS),
		timed("wall time", span(a.Snapshot), span(b.Snapshot)))
	if ga, gb, ok := growth(a.Phases, b.Phases); ok {
		list = append(list, once("growth per iteration", float64(ga), float64(gb)))
	}
	return list
}

// pooled reports whether there was a pool in either run.
func pooled(a, b *analysis.Analysis) bool {
	return a.Snapshot.Policy != "none" || b.Snapshot.Policy != "none"
}

func span(s *stats.Snapshot) uint64 { return s.Time - min(s.Started, s.Time) }

// growth returns the growth of the phases with the most iterations.
func growth(a, b []analysis.Phase) (ga, gb int64, ok bool) {
	longest := func(phases []analysis.Phase) (int64, bool) {
		best := analysis.Phase{}
		for _, p := range phases {
			if p.Iterations > best.Iterations {
				best = p
			}
		}
		return best.Growth, best.Iterations > 0
	}
	ga, known := longest(a)
	gb, also := longest(b)
	return ga, gb, known && also
}

// leaked returns the bytes that a call site leaked; of all call sites for "".
func leaked(leaks []analysis.Leak, name string) float64 {
	var sum uint64
	for i := range leaks {
		if name == "" || leaks[i].Name == name {
			sum += leaks[i].Bytes
		}
	}
	return float64(sum)
}
