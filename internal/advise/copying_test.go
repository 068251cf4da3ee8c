package advise

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/recorded"
)

// TestCopyingAdvice: creates that copy are worth a line if they take time, and if fewer buffers would do.
func TestCopyingAdvice(t *testing.T) {
	run := func(partial bool, copying map[uint32]*recorded.Copying) Run {
		return Run{Run: recorded.Run{Program: &merging.Program{Names: map[uint32]string{1: "a.py:4 make"}, Partial: partial}, NS: 2e9, Copying: copying}}
	}
	site := func(creates int, ns uint64, most int, differ bool) map[uint32]*recorded.Copying {
		return map[uint32]*recorded.Copying{1: {Creates: creates, NS: ns, Most: most, Differ: differ}}
	}
	const once = "Keep 1 buffer of a.py:4 make and write into it (clEnqueueWriteBuffer): 1000 creates with CL_MEM_COPY_HOST_PTR took the driver 480ms, " +
		"24.0 % of the run."
	for name, c := range map[string]struct {
		runs    []Run
		want    string
		verdict merging.Verdict
	}{
		"a loop":      {[]Run{run(false, site(1000, 480e6, 1, false))}, once, merging.HoldsHere},
		"events lost": {[]Run{run(true, site(1000, 480e6, 1, false))}, once, merging.Unsure},
		"two in turn": {
			[]Run{run(false, site(10, 100e6, 2, true)), run(false, site(10, 100e6, 1, false))},
			"Keep 2 buffers of a.py:4 make, as large as the largest, and write into them (clEnqueueWriteBuffer): 20 creates with CL_MEM_COPY_HOST_PTR " +
				"took the driver 200ms, 5.0 % of the run.", merging.HoldsHere,
		},
		"hardly any time":   {runs: []Run{run(false, site(1000, 19e6, 1, false))}},
		"all live at once":  {runs: []Run{run(false, site(1000, 480e6, 1000, false))}},
		"most live at once": {runs: []Run{run(false, site(1000, 480e6, 501, false))}},
		"no loop":           {runs: []Run{run(false, site(3, 480e6, 1, false))}},
	} {
		p := Program{Runs: c.runs}
		got := p.adviseOnCopyHostPtr()
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Sentence != c.want || got[0].Verdict != c.verdict) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
