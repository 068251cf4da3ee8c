package ui

import (
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// missing returns a snapshot in which one tag has had some hits and misses.
func missing(hits, misses uint64, limits ...stats.Limit) *stats.Snapshot {
	s := sampleSnapshot()
	s.Limits, s.Tags = limits, s.Tags[:1]
	s.Tags[0].Hits, s.Tags[0].Misses, s.Tags[0].MissReasons = hits, misses, [wire.MissPolicy + 1]uint64{wire.MissTooWasteful: misses}
	return s
}

// TestAdviceIsRecent: what was cured 20 s ago is no fault.
func TestAdviceIsRecent(t *testing.T) {
	limit := stats.Limit{Name: "max_waste_ratio", Max: 16}
	d := newTest((&calls{}).options(), 120, 36, missing(0, 100, limit))
	const text = "hits 0.0% (too wasteful): a higher max_waste_ratio may help"
	shows(t, d, "!blur.c:88", text)
	for i := range uint64(2) {
		shows(t, d, "!blur.c:88")
		d.Update(frameMsg{now: testStart.Add(time.Duration(i+1) * recentTime), snap: missing(100*i, 100, limit)})
	}
	hides(t, d, "!blur.c:88", text)
	d.Update(frameMsg{now: testStart.Add(3*recentTime - 1), snap: missing(200, 400, limit)})
	shows(t, d, "!blur.c:88", "hits 40.0% (too wasteful)")
}

// TestAdviceNamesLimitsOfThePolicy: others cannot be set.
func TestAdviceNamesLimitsOfThePolicy(t *testing.T) {
	waste, steal := stats.Limit{Name: "max_waste_ratio"}, stats.Limit{Name: "steal_other_tag"}
	for want, limits := range map[string][]stats.Limit{
		"a higher max_waste_ratio or steal_other_tag=on may help": {waste, steal},
		"(too wasteful): steal_other_tag=on may help":             {steal},
	} {
		shows(t, newTest((&calls{}).options(), 160, 36, missing(0, 100, limits...)), want)
	}
	hides(t, newTest((&calls{}).options(), 160, 36, missing(0, 100)), "may help")
}
