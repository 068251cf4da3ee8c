// Package diff compares two runs, overall and by call site, and finds the changes that are more than chance.
package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Test is how the significance of a change was determined.
type Test string

// The tests. All but the last two give a probability.
const (
	Proportions Test = "two proportions" // z-test with pooled variance, of hits in requests
	Ranks       Test = "ranks"           // Mann and Whitney's test, of durations; normal approximation
	Events      Test = "events"          // conditional test of two Poisson counts; normal approximation
	Exact       Test = "exact"           // both runs did the same work: any difference counts
	Threshold   Test = "threshold"       // one value on each side: a difference beyond thresholdRate and thresholdBytes
)

// Bounds of what counts as a change.
const (
	level          = 0.01 // probability of any false positive among all tested changes
	thresholdRate  = 0.01
	thresholdBytes = 64 << 10
	thresholdTime  = 0.1  // of durations that were measured once
	thresholdRun   = 0.01 // of the longer run: a difference of less time does not matter
	callsLeast     = 5    // the median of fewer calls is not judged
)

// Change is one figure of both runs.
type Change struct {
	Figure      *figures.Figure
	A, B        float64
	OfA, OfB    uint64 // how many calls medians are of
	Test        Test
	P           float64 // probability of such a difference by chance; 1 if the test gives none
	Significant bool
	slight      bool // a time that does not matter to either run
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

// CompareRuns compares run a with run b.
func CompareRuns(a, b *analysis.Analysis) *Diff {
	c := newComparison(a, b)
	d := &Diff{Overall: c.compareTotals(), Notes: recordingDifferences(a, b)}
	for _, pair := range matchSites(a.Snapshot.Tags, b.Snapshot.Tags) {
		if t := c.compareSite(pair); slices.ContainsFunc(t.Changes, func(c Change) bool { return c.A != 0 || c.B != 0 }) { // not of what is free in slabs
			d.Tags = append(d.Tags, t)
		}
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
	markSignificant(tested)
	slices.SortStableFunc(d.Tags, func(x, y Tag) int {
		return cmp.Or(cmp.Compare(y.significanceRank(), x.significanceRank()), cmp.Compare(y.absolutePeakChange(), x.absolutePeakChange()))
	})
	return d
}

// significanceRank returns 1 if any change is significant, else 0.
func (t *Tag) significanceRank() int {
	if slices.ContainsFunc(t.Changes, func(c Change) bool { return c.Significant }) {
		return 1
	}
	return 0
}

// absolutePeakChange is how much its peak changed.
func (t *Tag) absolutePeakChange() float64 { return math.Abs(t.Changes[0].Delta()) }

// didSameWork reports whether both runs made the same number of iterations, so that differences of counts are no chance.
func didSameWork(a, b *analysis.Analysis) bool {
	repeat := func(p analysis.Phase) bool { return p.Iterations == 0 }
	pa, pb := slices.DeleteFunc(slices.Clone(a.Phases), repeat), slices.DeleteFunc(slices.Clone(b.Phases), repeat)
	return len(pa) > 0 && slices.EqualFunc(pa, pb, func(x, y analysis.Phase) bool { return x.Iterations == y.Iterations })
}

// isIndependentOfTiming reports whether no request depended on when commands completed: with cooling blocks, two runs of the same
// work may miss differently.
func isIndependentOfTiming(runs ...*analysis.Analysis) bool {
	return !slices.ContainsFunc(runs, func(a *analysis.Analysis) bool {
		t := &a.Snapshot.Totals
		return t.HazardsAvoided > 0 || t.MissReasons[wire.MissCooling] > 0
	})
}

func recordingDifferences(a, b *analysis.Analysis) []string {
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
		list = append(list, limitDifferences(a.Run.Header.Limits, b.Run.Header.Limits)...)
	}
	return list
}

// limitDifferences lists the limits that differ.
func limitDifferences(a, b recording.Limits) []string {
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

// compareTotals compares the figures of whole runs.
func (c *comparison) compareTotals() (list []Change) {
	for _, f := range c.comparedFigures() {
		list = c.appendComparison(list, f, f.ValueOf(c.a), f.ValueOf(c.b))
	}
	return list
}

// comparison is of two runs.
type comparison struct {
	a, b   *figures.Subject
	same   bool // both made the same number of iterations, so that differences of counts are no chance
	timed  bool // a request depended on when commands completed
	pooled bool // there was a pool in either run
}

func newComparison(a, b *analysis.Analysis) *comparison {
	return &comparison{
		a: figures.SubjectOfRecording(a), b: figures.SubjectOfRecording(b), same: didSameWork(a, b), timed: !isIndependentOfTiming(a, b),
		pooled: a.Snapshot.Policy != "none" || b.Snapshot.Policy != "none",
	}
}

// longerDuration returns how long the longer run took, ns.
func (c *comparison) longerDuration() float64 {
	return max(figures.WallTime.ValueOf(c.a).Number, figures.WallTime.ValueOf(c.b).Number)
}

// comparedFigures returns what is compared.
func (c *comparison) comparedFigures() (list []*figures.Figure) {
	for _, f := range figures.AllFigures() {
		if f.Diff != figures.NoTest && (c.pooled || !f.Pool) {
			list = append(list, f)
		}
	}
	return list
}

// appendComparison compares a figure of both sides, if it means something on both.
func (c *comparison) appendComparison(list []Change, f *figures.Figure, a, b figures.Value) []Change {
	switch f.Diff {
	case figures.Amount:
		if !a.IsKnown() || !b.IsKnown() {
			return list
		}
		return append(list, compareAmounts(f, a.Number, b.Number))
	case figures.Duration:
		return append(list, compareDurations(f, a.Number, b.Number, c.longerDuration()))
	case figures.Proportion:
		return append(list, compareRates(f, a, b))
	case figures.Events:
		return append(list, compareCounts(f, a, b, c.same))
	case figures.TimedEvents:
		return append(list, compareCounts(f, a, b, c.same && !c.timed))
	case figures.Median:
		return append(list, compareMedians(f, a, b, c.longerDuration()))
	default:
		return list
	}
}
