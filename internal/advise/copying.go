package advise

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

const (
	copyingLeast = 4 // creates: fewer are not a loop
)

// adviseOnCopyHostPtr returns the advice about call sites that create with CL_MEM_COPY_HOST_PTR again and again. The sites that
// take the most time come first.
func (p *Program) adviseOnCopyHostPtr() []merging.Advice {
	sites := map[string]*merging.Advice{}
	var all uint64
	for i := range p.Runs {
		run := &p.Runs[i]
		all += run.NS
		for site, c := range run.Copying {
			name := run.Program.NameOfSite(site)
			if sites[name] == nil {
				sites[name] = &merging.Advice{Topic: merging.WriteInto, Verdict: merging.HoldsHere, Sites: []string{name}, Run: merging.None, Step: merging.None}
			}
			a := sites[name]
			a.Count, a.Nanos, a.Blocks, a.Runs, a.Grows = a.Count+c.Creates, a.Nanos+c.NS, max(a.Blocks, c.Most), a.Runs+1, a.Grows || c.Differ
			if run.Program.Partial {
				a.Verdict = merging.Unsure
			}
		}
	}
	var out []merging.Advice
	for _, a := range sites {
		if a.Count >= max(copyingLeast, 2*a.Blocks*a.Runs) && float64(a.Nanos) >= worthShare*float64(all) {
			a.Sentence = copyHostPtrSentence(a, all)
			out = append(out, *a)
		}
	}
	slices.SortFunc(out, func(x, y merging.Advice) int {
		return cmp.Or(cmp.Compare(y.Nanos, x.Nanos), cmp.Compare(x.Sites[0], y.Sites[0]))
	})
	return out
}

// copyHostPtrSentence says what to change. all is the time of the runs in ns.
func copyHostPtrSentence(a *merging.Advice, all uint64) string {
	large, them := "", "them"
	if a.Grows {
		large = ", as large as the largest,"
	}
	if a.Blocks == 1 {
		them = "it"
	}
	return fmt.Sprintf("Keep %s of %s%s and write into %s (clEnqueueWriteBuffer): %d creates with CL_MEM_COPY_HOST_PTR took the driver %s, %s of the run.",
		units.Count(uint64(a.Blocks), "buffer"), a.Sites[0], large, them, a.Count, units.Duration(a.Nanos), units.Percent(float64(a.Nanos)/float64(all), all))
}
