package recording

import (
	"reflect"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestIdentityOfMergedRuns(t *testing.T) {
	a := Identity{User: "ada", Place: wire.Place{Job: "1", Rank: "0"}, Labels: map[string]string{"team": "x", "tier": "a"}}
	b := Identity{User: "ada", Place: wire.Place{Job: "1", Rank: "1"}, Labels: map[string]string{"team": "x", "tier": "b"}}
	want := Identity{User: "ada", Place: wire.Place{Job: "1"}, Labels: map[string]string{"team": "x"}}
	if got := a.Common(b); !reflect.DeepEqual(got, want) || len(a.Labels) != 2 {
		t.Errorf("%+v", got)
	}
	h := Header{Identity: want, Merged: []Origin{{First: 1, Last: 1, Identity: a}, {First: 2, Last: 3, Identity: b}}}
	for process, want := range map[uint32]string{1: "0", 2: "1", 3: "1", 4: ""} {
		if got := h.IdentityOf(process).Rank; got != want {
			t.Errorf("process %d: rank %q, want %q", process, got, want)
		}
	}
}
