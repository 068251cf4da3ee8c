package diff

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// history has runs of several builds, one after the other, with these peaks.
func history(app string, peaks ...[]int64) (runs []BuildRun, sites []BuildSite) {
	for build, of := range peaks {
		for i, peak := range of {
			run := fmt.Sprintf("%s-%d-%d", app, build, i)
			runs = append(runs, BuildRun{
				Run: run, App: app, Revision: fmt.Sprintf("r%d", build), Started: int64(1000*build + i), PeakInUse: peak, PeakReserved: 64 << 20, Path: run + ".gmt",
			})
			sites = append(sites, BuildSite{Run: run, Site: "a.c:1 make", PeakInUse: peak, Creates: 5}, BuildSite{Run: run, Site: "b.c:2 other", PeakInUse: 7, Creates: 5})
		}
	}
	return runs, sites
}

// each is a table with these rows.
func each[T any](rows []T) Table[T] {
	return func(take func(*T, string)) error {
		row := new(T)
		for i := range rows {
			*row = rows[i]
			take(row, "")
		}
		return nil
	}
}

// TestBuildThatTakesMoreIsFound: what is above all runs of another build is more, if that is no chance; what differs as they
// do among themselves is not.
func TestBuildThatTakesMoreIsFound(t *testing.T) {
	one := func(peak int64) []int64 { return []int64{peak} }
	var twenty [][]int64
	for i := range int64(20) {
		twenty = append(twenty, one(1000+i*7%13))
	}
	for name, test := range map[string]struct {
		peaks      [][]int64
		base, head string
		more       []string
		few        bool
	}{
		"the last twenty":       {append(slices.Clone(twenty), one(2000)), "", "", []string{"peak in use", "peak in use a.c:1 make"}, false},
		"within the others":     {append(slices.Clone(twenty), one(1012)), "", "", nil, false},
		"less than a hundredth": {append(slices.Clone(twenty), one(1014)), "", "", nil, false},
		"three and three":       {[][]int64{{1, 2, 3}, {10, 11, 12}}, "r0", "r1", []string{"peak in use", "peak in use a.c:1 make"}, false},
		"three that overlap":    {[][]int64{{1, 2, 11}, {10, 11, 12}}, "r0", "r1", nil, false},
		"two and two":           {[][]int64{{1, 1}, {10, 10}}, "r0", "r1", nil, true},
		"less":                  {[][]int64{{10, 11, 12}, {1, 2, 3}}, "", "", nil, false},
		"base named":            {[][]int64{{1, 2, 3}, {9, 9, 9}, {9, 9, 10}}, "r0", "", []string{"peak in use", "peak in use a.c:1 make"}, false},
		"head named":            {[][]int64{{1, 2, 3}, {9, 9, 9}, {1, 1, 1}}, "", "r1", []string{"peak in use", "peak in use a.c:1 make"}, false},
	} {
		runs, sites := history("train", test.peaks...)
		b, err := CompareBuilds(each(runs), each(sites), test.base, test.head)
		if err != nil || len(b.Programs) != 1 {
			t.Fatalf("%s: %+v, %v", name, b, err)
		}
		var more []string
		for _, s := range b.Programs[0].Shifts {
			if s.More {
				more = append(more, strings.TrimSpace(s.Figure.Name+" "+s.Site))
			}
		}
		if !slices.Equal(more, test.more) || b.CountIncreases() != len(test.more) || b.Programs[0].HasTooFewRuns() != test.few {
			t.Errorf("%s: more %q, few %v", name, more, b.Programs[0].HasTooFewRuns())
		}
	}
}

// TestBuildsOfPrograms: programs are compared each with itself, and a build that no run has is an error.
func TestBuildsOfPrograms(t *testing.T) {
	runs, sites := history("train", []int64{1, 2, 3}, []int64{7, 8, 9})
	others, _ := history("other", []int64{1, 2, 3})
	b, err := CompareBuilds(each(append(runs, others...)), each(sites), "", "")
	if err != nil || len(b.Programs) != 1 || b.Programs[0].App != "train" {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := CompareBuilds(each(runs), each(sites), "r0", "x"); err == nil || err.Error() != "no run has the revision or build x: the latest are r1, r0" {
		t.Error(err)
	}
	var text, doc, cases bytes.Buffer
	for to, write := range map[*bytes.Buffer]func() error{
		&text: func() error { return b.WriteText(&text) }, &doc: func() error { return b.WriteJSON(&doc) }, &cases: func() error { return b.WriteJUnit(&cases) },
	} {
		if err := write(); err != nil {
			t.Error(to, err)
		}
	}
	for _, want := range []string{
		"train: 3 runs of r1 against 3 runs of r0\n", "+6 B (+4 B to +8 B)", "▲ a.c:1 make", "train-1-2.gmt", "2 figures are more than before",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if !strings.Contains(doc.String(), `"more": 2`) || !strings.Contains(doc.String(), `"low": 4`) {
		t.Error(doc.String())
	}
	var suites struct {
		Suites []suiteXML `xml:"testsuite"`
	}
	if err := xml.Unmarshal(cases.Bytes(), &suites); err != nil || len(suites.Suites) != 1 || suites.Suites[0].Failures != 2 || suites.Suites[0].Tests != len(suites.Suites[0].Cases) {
		t.Errorf("%v, %s", err, &cases)
	}
}

// TestBuildsThatTakeTurns: all runs of the build before count, on whichever side of the head's first run they began; a build that ran
// only since then is not before it.
func TestBuildsThatTakeTurns(t *testing.T) {
	var runs []BuildRun
	for i := range 30 {
		build := i % 2 // 0 and 1 in turn, then 2
		if i >= 20 {
			build = 2
		}
		runs = append(runs, BuildRun{Run: fmt.Sprint(i), App: "a", Revision: fmt.Sprint("r", build), Started: int64(i), PeakInUse: int64(10 + build)})
	}
	for _, c := range []struct {
		head         string
		before, more int
	}{{"", 20, 1}, {"r1", 10, 1}, {"r0", 0, 0}} {
		b, err := CompareBuilds(each(runs), each[BuildSite](nil), "", c.head)
		if err != nil || c.before == 0 != (len(b.Programs) == 0) {
			t.Fatalf("%s: %+v, %v", c.head, b, err)
		}
		if c.before > 0 && (b.Programs[0].BaseRuns != c.before || b.Programs[0].HeadRuns != 10 || b.CountIncreases() != c.more) {
			t.Errorf("%s: %+v", c.head, b.Programs[0])
		}
	}
}

// TestMissingRanks names the ranks of a job that left nothing.
func TestMissingRanks(t *testing.T) {
	var runs []BuildRun
	for rank := range 64 {
		if rank != 17 {
			runs = append(runs, BuildRun{App: "mpi", Revision: "r1", Job: "9", Rank: fmt.Sprint(rank), Size: "64"})
		}
	}
	for _, rank := range []string{"0", "1"} {
		runs = append(runs, BuildRun{App: "whole", Revision: "r1", Job: "10", Rank: rank, Size: "2"})
	}
	// Not those of an earlier build, nor ranks that no job can have.
	for i, rank := range []string{"0", "64", "x", ""} {
		runs = append(runs, BuildRun{App: "mpi", Revision: "r0", Job: fmt.Sprint(i), Rank: rank, Size: "64", Started: -1})
	}
	b, err := CompareBuilds(each(runs), each[BuildSite](nil), "", "")
	if want := []string{"mpi, job 9: rank 17 of 64 left nothing"}; err != nil || !slices.Equal(b.Missing, want) {
		t.Errorf("%q, %v", b.Missing, err)
	}
	b, err = CompareBuilds(each(runs), each[BuildSite](nil), "r1", "r0")
	if want := []string{"mpi, job 0: ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 53 more of 64 left nothing"}; err != nil || !slices.Equal(b.Missing, want) {
		t.Errorf("%q, %v", b.Missing, err)
	}
}

// TestShiftHoldsWhatIsTrue: of runs that differ by a known amount, nearly all intervals hold it.
func TestShiftHoldsWhatIsTrue(t *testing.T) {
	held, said := 0, 0
	const cases = 1000
	for seed := range uint64(cases) {
		next := seed*2654435761 + 1
		draw := func() float64 { // about bell-shaped
			sum := 0.0
			for range 6 {
				next ^= next << 13
				next ^= next >> 7
				next ^= next << 17
				sum += float64(next % 1000)
			}
			return sum
		}
		var a, b, same []float64
		for range 10 {
			a, b, same = append(a, draw()), append(b, draw()+500), append(same, draw())
		}
		if _, low, high := medianShift(a, b); low <= 500 && 500 <= high {
			held++
		}
		if _, low, _ := medianShift(a, same); low > 0 {
			said++
		}
	}
	if held < cases*93/100 || said > cases*4/100 {
		t.Errorf("%d of %d intervals hold the shift, %d of runs alike say that one is more", held, cases, said)
	}
}
