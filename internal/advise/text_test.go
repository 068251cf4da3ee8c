package advise

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
)

// Memory held for nothing is worth a line from 1 % of the peak on, and wherever all advice is wanted.
func TestWorthwhile(t *testing.T) {
	run := Run{Found: merging.Run{Now: merging.Metrics{Peak: 1000}}}
	p := Program{Runs: []Run{run}, Advice: []merging.Advice{
		{Topic: merging.HeldEarly, Bytes: 10}, {Topic: merging.HeldEarly, Bytes: 9}, {Topic: merging.HeldLate, Bytes: 1},
		{Topic: merging.ShareBlock, Bytes: 1, Count: 5}, {Topic: merging.NoOpCopy, Bytes: 1},
	}}
	if got := p.worthwhile(5); len(got) != 3 || got[0].Bytes != 10 {
		t.Errorf("worth a line: %+v", got)
	}
	if got := p.worthwhile(-1); len(got) != len(p.Advice) {
		t.Errorf("all are wanted: %+v", got)
	}
}
