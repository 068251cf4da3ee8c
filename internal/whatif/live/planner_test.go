package live

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestArenaLearnsLate learns the layout of a training loop while the policy is arena, also when that begins late, and none
// under other policies.
func TestArenaLearnsLate(t *testing.T) {
	for _, c := range []struct {
		present, change string
		plans           int
	}{
		{"slab", "", 0},
		{"arena", "", 1},
		{"slab", "policy=arena", 1},
		{"arena", "policy=slab", 0},
	} {
		plans := 0
		planner := NewPlanner(replay.Configuration{Policy: c.present}, func(process uint32, plan *learn.Layout) {
			if plans++; process != 1 || plan.Period != 10 {
				t.Errorf("%+v of process %d", plan, process)
			}
		})
		tap := Start(planner)
		if c.change != "" {
			tap.TakeRecord(&wire.Record{Process: 1, Event: wire.Event{Time: 1, Kind: wire.KindLimit}, Payload: []byte(c.change)})
		}
		file, err := recording.Open("../../replay/testdata/train.slab.gmt")
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range recording.Records(file) {
			if err != nil {
				t.Fatal(err)
			}
			tap.TakeRecord(r)
		}
		tap.Close()
		if plans != c.plans {
			t.Errorf("%s, %q: %d plans", c.present, c.change, plans)
		}
	}
}
