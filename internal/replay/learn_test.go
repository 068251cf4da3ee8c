package replay

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
)

// TestArenaLearns learns a recorded training loop: after the requests that it learned from, all requests are in their
// places, and no more is reserved than the program needs at once.
func TestArenaLearns(t *testing.T) {
	file, err := recording.Open("testdata/train.slab.gmt")
	if err != nil {
		t.Fatal(err)
	}
	var heard []*learn.Layout
	r, err := Replay(file, Options{Policy: "arena", OnLayout: func(process uint32, plan *learn.Layout) {
		if process != 1 {
			t.Errorf("a plan for process %d", process)
		}
		heard = append(heard, plan)
	}})
	if err != nil {
		t.Fatal(err)
	}
	a := &r.Arena
	if len(heard) != 1 || a.Layouts != 1 || a.Period != 10 || a.Outside != 0 || a.Size != a.Bound || a.Size != heard[0].Size {
		t.Errorf("%+v, heard of %v", a, heard)
	}
	if a.Planned != r.Requests-a.Departures[allocator.NoLayout] || a.Planned < r.Requests*3/4 {
		t.Errorf("%d of %d requests planned, departures %v", a.Planned, r.Requests, a.Departures)
	}
	if a.Reserved != a.Size || float64(a.Reserved) > 1.02*float64(a.Wanted) {
		t.Errorf("%d bytes reserved, the program needs %d", a.Reserved, a.Wanted)
	}
}

// TestARecordedPlanIsPlayed: the pieces of a recorded layout go to the recorded policy, but not to another simulation.
func TestARecordedPlanIsPlayed(t *testing.T) {
	for _, asRecorded := range []bool{true, false} {
		file, err := recording.Open("testdata/train.arena.gmt")
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Policy: "arena", AsRecorded: asRecorded}
		r, err := Replay(file, o)
		if err != nil {
			t.Fatal(err)
		}
		if learned := r.Arena.Layouts > 0; learned == asRecorded || r.Arena.Planned < r.Requests/2 || r.Changes != 0 {
			t.Errorf("as recorded: %v: %d changes, %+v", asRecorded, r.Changes, r.Arena)
		}
	}
}
