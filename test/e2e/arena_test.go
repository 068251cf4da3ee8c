package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestArenaLearnsInTheRunningProgram: a training loop switches to a plan. From then on nothing comes from the driver, the
// base policy's blocks go back, and what is reserved is what the loop needs. The replay repeats each decision, plan
// included.
func TestArenaLearnsInTheRunningProgram(t *testing.T) {
	t.Parallel()
	bare := run(t, command{args: []string{example("train"), "150", "16K"}})
	file := filepath.Join(t.TempDir(), "x.gmt")
	result := run(t, command{args: []string{gpumemtop(), "record", "--policy", "arena", "-o", file, "--", example("train"), "150", "16K"}})
	if !result.sameEnd(bare) || string(result.stdout) != string(bare.stdout) {
		t.Fatalf("%s, bare %s\n%s", result, bare, result.stderr)
	}
	if !strings.Contains(string(result.stderr), "  plan       10 requests of each iteration in") {
		t.Errorf("no word of a plan:\n%s", result.stderr)
	}
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" {
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
		case r.Kind == wire.KindLimit && string(name) == wire.RelieveSetting: // in a run that takes long
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
	if planned == 0 || missed != 1 || slabs != 1 || size >= 1<<20 || evicted == 0 {
		t.Errorf("%d pieces of a plan; then %d misses, %d slabs, the last of %d bytes; %d bytes of the base policy went", planned, missed, slabs, size, evicted)
	}
}

// TestPlanFile: a plan made of two recordings serves another run nearly as a whole, and a replay of it from the first
// request. A plan of another program serves nothing, and changes nothing.
func TestPlanFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for program, words := range map[string][][]string{
		"train":    {{example("train"), "20", "16K"}, {example("train"), "30", "16K"}},
		"pipeline": {{example("pipeline"), "30", "256K"}},
	} {
		advise := []string{gpumemtop(), "advise", "--write", at(program + ".toml")}
		for i, arguments := range words {
			file := at(program + string(rune('0'+i)) + ".gmt")
			run(t, command{args: append([]string{gpumemtop(), "record", "--policy", "futhark", "-o", file, "--"}, arguments...)})
			advise = append(advise, file)
		}
		if result := run(t, command{args: advise}); result.code != 0 {
			t.Fatalf("advise: %s\n%s", result, result.stderr)
		}
	}
	text, err := os.ReadFile(at("train.toml"))
	if err != nil || !strings.Contains(string(text), "train.c:73 create_activation") || strings.Count(string(text), "request = ") != 10 {
		t.Errorf("%v: the plan is\n%s", err, text)
	}
	bare := run(t, command{args: []string{example("train"), "60", "16K"}})
	for plan, want := range map[string]string{
		"train.toml":    "100.0 % of 600 requests as planned",
		"pipeline.toml": "none: the recording has none of the plan's call sites",
	} {
		file := at("of " + plan + ".gmt")
		result := run(t, command{args: []string{gpumemtop(), "record", "--plan", at(plan), "-o", file, "--", example("train"), "60", "16K"}})
		if !result.sameEnd(bare) || string(result.stdout) != string(bare.stdout) {
			t.Errorf("with %s: %s, bare %s\n%s", plan, result, bare, result.stderr)
		}
		if foreign := "none: the program has none of the plan's call sites"; plan == "pipeline.toml" && !strings.Contains(string(result.stderr), foreign) {
			t.Errorf("not %q:\n%s", foreign, result.stderr)
		}
		if c := decidedAgain(t, file); !c.IsExact() || c.First != "" {
			t.Errorf("replay: %+v", *c)
		}
		again := run(t, command{args: []string{gpumemtop(), "replay", "--plan", at(plan), file}})
		if !strings.Contains(string(again.stdout), want) {
			t.Errorf("replay with %s lacks %q:\n%s", plan, want, again.stdout)
		}
	}
}

// TestArenaOfBlocks: where there are no sub-allocations, as in a context of several devices, a plan gives its places blocks, each for several sizes.
func TestArenaOfBlocks(t *testing.T) {
	t.Parallel()
	program := []string{"/usr/bin/python3", filepath.Join(root, "test", "programs", "rounds.py")}
	devices := []string{"POCL_DEVICES=pthread pthread"}
	bare := run(t, command{args: program, env: devices})
	file := filepath.Join(t.TempDir(), "x.gmt")
	result := run(t, command{args: append([]string{gpumemtop(), "record", "--policy", "arena", "-o", file, "--"}, program...), env: devices})
	if !result.sameEnd(bare) || string(result.stdout) != string(bare.stdout) || len(bare.stdout) == 0 {
		t.Fatalf("%s, bare %s\n%s", result, bare, result.stderr)
	}
	const want = "  plan       8 requests of each iteration in 128.0 MiB (optimal)"
	if text := string(result.stderr); !strings.Contains(text, want) || !strings.Contains(text, "then 128.0 MiB for 128.0 MiB requested") {
		t.Errorf("not %q:\n%s", want, text)
	}
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" {
		t.Errorf("replay: %+v", *c)
	}
}
