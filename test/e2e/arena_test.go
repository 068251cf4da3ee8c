package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestArenaLearnsInTheRunningProgram: a training loop switches to a plan. From then on nothing comes from the driver, the
// base policy's slab goes back, and what is reserved is what the loop needs. The replay repeats each decision, plan
// included.
func TestArenaLearnsInTheRunningProgram(t *testing.T) {
	t.Parallel()
	bare := run(t, command{args: []string{example("train"), "150"}})
	file := filepath.Join(t.TempDir(), "x.gmt")
	result := run(t, command{args: []string{gpumemtop(), "record", "--policy", "arena", "-o", file, "--", example("train"), "150"}})
	if !result.sameEnd(bare) || string(result.stdout) != string(bare.stdout) {
		t.Fatalf("%s, bare %s\n%s", result, bare, result.stderr)
	}
	if !strings.Contains(string(result.stderr), "plan, simulated: 10 requests of each period in") {
		t.Errorf("no word of a plan:\n%s", result.stderr)
	}
	if c := decidedAgain(t, file); !c.Exact() || c.First != "" {
		t.Errorf("replay: %+v", *c)
	}
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	var planned, missed, slabs, size, evicted uint64
	for r, err := range recording.Records(reader) {
		if err != nil {
			t.Fatal(err)
		}
		name, value := wire.ParseLimit(r.Payload)
		switch {
		case r.Kind == wire.KindLimit && r.AsLimit().Status() == 0 && string(name) == wire.PlanSetting:
			planned, missed, slabs = planned+1, 0, 0
		case r.Kind == wire.KindLimit:
			t.Errorf("%s=%s, status %d", name, value, r.AsLimit().Status())
		case r.Kind == wire.KindCreate && r.AsCreate().Outcome() == wire.OutcomeMiss:
			missed++
		case r.Kind == wire.KindSlab && r.AsSlab().Status() == 0:
			slabs++
			size = r.AsSlab().Bytes()
		case r.Kind == wire.KindEvict && r.AsEvict().Reason() == wire.EvictPolicy:
			evicted += r.AsEvict().Bytes()
		}
	}
	if planned == 0 || missed != 1 || slabs != 1 || size >= 1<<20 || evicted < 1<<20 {
		t.Errorf("%d pieces of a plan; then %d misses, %d slabs, the last of %d bytes; %d bytes of the base policy went", planned, missed, slabs, size, evicted)
	}
}
