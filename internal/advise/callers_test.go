package advise

import (
	"maps"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/recorded"
)

// Sites are distinguished by the first caller that differs in any of the runs, and are called the same in all.
func TestOneFunctionThatMakesAllBuffers(t *testing.T) {
	run := func(callers map[uint32][]string) Run {
		p := &merging.Program{Names: map[uint32]string{0: "an unknown call site", 9: "other"}}
		for site := range callers {
			p.Names[site] = "make"
		}
		return Run{Run: recorded.Run{Program: p, Callers: callers}}
	}
	runs := []Run{
		run(map[uint32][]string{1: {"pool", "a", "main"}, 2: {"pool", "b", "x"}, 3: {"pool"}}),
		run(map[uint32][]string{5: {"pool", "b", "y"}}),
	}
	addCallersToSiteNames(runs)
	first := []string{"an unknown call site", "make", "make via a", "make via b", "other"}
	if got := slices.Sorted(maps.Values(runs[0].Program.Names)); !slices.Equal(got, first) {
		t.Errorf("%q, want %q", got, first)
	}
	if got := runs[1].Program.Names[5]; got != "make via b" {
		t.Errorf("%q: it is the site of the first run", got)
	}
	same := []Run{run(map[uint32][]string{1: {"a", "main"}, 2: {"a", "main"}})}
	addCallersToSiteNames(same)
	if got := same[0].Program.Names[1]; got != "make" {
		t.Errorf("%q, but nothing tells it from the other", got)
	}
}
