package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
)

// BuildRun is a run of a program, with columns of the table runs of a lake.
type BuildRun struct {
	Run          string `parquet:"run"`
	App          string `parquet:"app"`
	Revision     string `parquet:"revision"`
	Build        string `parquet:"build"`
	Job          string `parquet:"job"`
	Rank         string `parquet:"rank"`
	Size         string `parquet:"size"`
	Path         string `parquet:"path"`
	Started      int64  `parquet:"started,timestamp(microsecond:utc)"`
	PeakInUse    int64  `parquet:"peak_in_use"`
	PeakReserved int64  `parquet:"peak_reserved"`
	Leaked       int64  `parquet:"leaked"`
	Failures     int64  `parquet:"failures"`
	Misses       int64  `parquet:"misses"`
	DriverNS     int64  `parquet:"driver_ns"`
}

// BuildSite is a call site of a run, with columns of the table sites of a lake.
type BuildSite struct {
	Run       string `parquet:"run"`
	Site      string `parquet:"site"`
	PeakInUse int64  `parquet:"peak_in_use"`
	Creates   int64  `parquet:"creates"`
	Leaked    int64  `parquet:"leaked"`
}

// runFigures and siteFigures are what is compared. Less is better of each.
var (
	runFigures = []amount[BuildRun]{
		{figures.PeakInUse, func(r *BuildRun) int64 { return r.PeakInUse }},
		{figures.PeakReserved, func(r *BuildRun) int64 { return r.PeakReserved }},
		{figures.Leaked, func(r *BuildRun) int64 { return r.Leaked }},
		{figures.Failures, func(r *BuildRun) int64 { return r.Failures }},
		{figures.Misses, func(r *BuildRun) int64 { return r.Misses }},
		{figures.DriverTime, func(r *BuildRun) int64 { return r.DriverNS }},
	}
	siteFigures = []amount[BuildSite]{
		{figures.PeakInUse, func(s *BuildSite) int64 { return s.PeakInUse }},
		{figures.Creates, func(s *BuildSite) int64 { return s.Creates }},
		{figures.Leaked, func(s *BuildSite) int64 { return s.Leaked }},
	}
)

type amount[T any] struct {
	figure *figures.Figure
	of     func(*T) int64
}

// Bounds of a comparison of builds.
const (
	buildsBefore = 20   // builds that a new one is compared with, unless one is named
	runsMost     = 200  // runs of each side that are compared, the latest
	chanceMost   = 0.05 // that all runs of one side are above all of the other, if they are alike
)

// Builds compares the runs of two builds of each program. Base and head are the beginnings of revisions or build ids. Without
// head, it is each program's latest build; without base, it is the builds before, at most 20.
type Builds struct {
	Programs []Program
	Missing  []string // ranks of jobs of the head that left no recording
}

// Program is what changed in one program.
type Program struct {
	App      string
	Base     []string // builds, the latest first
	Head     []string
	BaseRuns int
	HeadRuns int
	Shifts   []Shift // those that are more first

	before, after []*BuildRun
}

// Shift is how much more a figure is in the runs of the head, in all or at one call site. Low and High are the interval that
// has the true shift in 95 of 100 cases (Hodges and Lehmann 1963, from Mann and Whitney's test). With few runs they are the
// least and the largest difference of two runs.
type Shift struct {
	Figure     *figures.Figure
	Site       string  // empty: of the run
	Base, Head float64 // medians
	Delta      float64
	Low, High  float64
	More       bool   // beyond what the runs of one build differ by, and by more than 1 %
	Path       string // a recording of the head, of the run with the most
}

// candidate is a run that may be compared. There is one for each run of the lake.
type candidate struct {
	build   *BuildRun // has App, Revision and Build alone; runs of a build share it
	started int64
	row     int // of the table
}

// Table calls take with each row of a table of a lake, in the same order each time. take must not keep the pointer.
type Table[T any] func(take func(row *T, part string)) error

// CompareBuilds compares builds. It is an error where no run has a build that is named. Memory grows by some bytes a run: runs is read
// twice, the second time for the figures of those that are compared.
func CompareBuilds(runs Table[BuildRun], sites Table[BuildSite], base, head string) (*Builds, error) {
	var all []candidate
	known := map[[3]string]*BuildRun{}
	err := runs(func(r *BuildRun, _ string) {
		name := [3]string{r.App, r.Revision, r.Build}
		if known[name] == nil {
			known[name] = &BuildRun{App: r.App, Revision: r.Revision, Build: r.Build}
		}
		all = append(all, candidate{known[name], r.Started, len(all)})
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.started, a.started) })
	for _, name := range []string{base, head} {
		if name != "" && !slices.ContainsFunc(all, func(c candidate) bool { return c.build.isBuildNamed(name) }) {
			return nil, fmt.Errorf("no run has the revision or build %s: the latest are %s", name, strings.Join(buildsOfRuns(all, 5), ", "))
		}
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.build.buildName() == "" })
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.build.App, b.build.App) })
	b, rows, latest := &Builds{}, map[int]*BuildRun{}, map[string]string{}
	isHead := func(r *BuildRun) bool {
		return head != "" && r.isBuildNamed(head) || head == "" && r.buildName() == latest[r.App]
	}
	for len(all) > 0 {
		app := all[0].build.App
		latest[app] = all[0].build.buildName()
		n := sort.Search(len(all), func(i int) bool { return all[i].build.App > app })
		if before, after := runsOfBothBuilds(all[:n], base, isHead); len(before) > 0 && len(after) > 0 {
			p := Program{App: app, Base: buildsOfRuns(before, buildsBefore), Head: buildsOfRuns(after, buildsBefore), BaseRuns: len(before), HeadRuns: len(after)}
			p.before, p.after = addRowsOfRuns(before, rows), addRowsOfRuns(after, rows)
			b.Programs = append(b.Programs, p)
		}
		all = all[n:]
	}
	return b, b.readAndCompareRuns(runs, sites, rows, isHead)
}

// addRowsOfRuns returns rows for the figures of runs, and adds them to all.
func addRowsOfRuns(runs []candidate, all map[int]*BuildRun) (list []*BuildRun) {
	for _, c := range runs {
		all[c.row] = &BuildRun{}
		list = append(list, all[c.row])
	}
	return list
}

// readAndCompareRuns fills the rows that are compared, and compares them. isHead says whose ranks count.
func (b *Builds) readAndCompareRuns(runs Table[BuildRun], sites Table[BuildSite], rows map[int]*BuildRun, isHead func(*BuildRun) bool) error {
	at, atSites, ranks := 0, map[string]map[string]*BuildSite{}, presentRanks{}
	err := runs(func(r *BuildRun, _ string) {
		if isHead(r) {
			ranks.note(r)
		}
		if row := rows[at]; row != nil {
			*row, atSites[r.Run] = *r, map[string]*BuildSite{}
		}
		at++
	})
	b.Missing = ranks.missing()
	if err == nil {
		err = sites(func(s *BuildSite, _ string) {
			if of := atSites[s.Run]; of != nil {
				site := *s
				of[s.Site] = &site
			}
		})
	}
	for i := range b.Programs {
		p := &b.Programs[i]
		p.Shifts = slices.Concat(shiftsOfRuns(p.before, p.after), shiftsOfSites(p.before, p.after, atSites))
		slices.SortStableFunc(p.Shifts, func(x, y Shift) int { return oneIfIncrease(&y) - oneIfIncrease(&x) })
	}
	return err
}

func oneIfIncrease(s *Shift) int {
	if s.More {
		return 1
	}
	return 0
}

// buildName returns the build: the revision, else the id of the program's file.
func (r *BuildRun) buildName() string { return cmp.Or(r.Revision, r.Build) }

func (r *BuildRun) isBuildNamed(name string) bool {
	return strings.HasPrefix(r.Revision, name) || strings.HasPrefix(r.Build, name)
}

// buildsOfRuns returns the builds of runs, at most a number of them.
func buildsOfRuns(runs []candidate, most int) (names []string) {
	for _, c := range runs {
		if name := c.build.buildName(); len(names) < most && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// runsOfBothBuilds returns the runs of one program that are compared, the latest first.
func runsOfBothBuilds(runs []candidate, base string, isHead func(*BuildRun) bool) (before, after []candidate) {
	first := int64(math.MaxInt64)
	for _, c := range runs {
		if isHead(c.build) {
			if first = c.started; len(after) < runsMost {
				after = append(after, c)
			}
		}
	}
	// The builds before are those that ran before the head did, and all their runs count, also those since then.
	earlier := map[string]bool{}
	for _, c := range runs {
		if base == "" && c.started <= first && len(earlier) < buildsBefore && !isHead(c.build) {
			earlier[c.build.buildName()] = true
		}
	}
	for _, c := range runs {
		if len(before) < runsMost && !isHead(c.build) && (earlier[c.build.buildName()] || base != "" && c.build.isBuildNamed(base)) {
			before = append(before, c)
		}
	}
	return before, after
}

func shiftsOfRuns(before, after []*BuildRun) (list []Shift) {
	for _, f := range runFigures {
		list = appendShift(list, f.figure, "", figureOfRuns(before, f.of), figureOfRuns(after, f.of), after)
	}
	return list
}

func figureOfRuns(runs []*BuildRun, of func(*BuildRun) int64) (values []float64) {
	for _, r := range runs {
		values = append(values, float64(of(r)))
	}
	return values
}

// shiftsOfSites compares call sites. A run without one has nothing there.
func shiftsOfSites(before, after []*BuildRun, sites map[string]map[string]*BuildSite) (list []Shift) {
	names := map[string]bool{}
	for _, r := range after {
		for name := range sites[r.Run] {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, f := range siteFigures {
			at := func(r *BuildRun) int64 {
				if s := sites[r.Run][name]; s != nil {
					return f.of(s)
				}
				return 0
			}
			list = appendShift(list, f.figure, name, figureOfRuns(before, at), figureOfRuns(after, at), after)
		}
	}
	return list
}

// appendShift adds how a figure changed, unless it is the same in all runs.
func appendShift(list []Shift, f *figures.Figure, site string, a, b []float64, after []*BuildRun) []Shift {
	s := Shift{Figure: f, Site: site, Path: after[slices.Index(b, slices.Max(b))].Path}
	slices.Sort(a)
	slices.Sort(b)
	if a[0] == b[len(b)-1] && a[len(a)-1] == b[0] {
		return list
	}
	s.Base, s.Head = medianOfSorted(a), medianOfSorted(b)
	s.Delta, s.Low, s.High = medianShift(a, b)
	s.More = s.Low > 0 && s.Delta > thresholdRate*s.Base && areEnoughRuns(len(a), len(b))
	return append(list, s)
}

// medianShift returns the median of all differences b - a, and its interval.
func medianShift(a, b []float64) (delta, low, high float64) {
	var all []float64
	for _, x := range a {
		for _, y := range b {
			all = append(all, y-x)
		}
	}
	slices.Sort(all)
	m, n := float64(len(a)), float64(len(b))
	outside := max(0, int(m*n/2-0.5-1.96*math.Sqrt(m*n*(m+n+1)/12)))
	return medianOfSorted(all), all[outside], all[len(all)-1-outside]
}

func medianOfSorted(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// areEnoughRuns reports whether m and n runs can show a difference: that all of one side are above all of the other happens by
// chance in one of as many cases as there are ways to choose m of m + n.
func areEnoughRuns(m, n int) bool {
	ways := 1.0
	for i := 1; i <= min(m, n) && ways*chanceMost < 1; i++ {
		ways *= float64(max(m, n)+i) / float64(i)
	}
	return ways*chanceMost >= 1
}

// HasTooFewRuns reports whether the runs are too few to show that anything is more.
func (p *Program) HasTooFewRuns() bool { return !areEnoughRuns(p.BaseRuns, p.HeadRuns) }

// CountIncreases counts what is more.
func (b *Builds) CountIncreases() (n int) {
	for i := range b.Programs {
		for k := range b.Programs[i].Shifts {
			n += oneIfIncrease(&b.Programs[i].Shifts[k])
		}
	}
	return n
}
