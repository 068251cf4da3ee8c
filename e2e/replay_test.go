package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// decidedAgain plays a recording through the policy that was recorded, under its limits and on its card, and compares every
// decision.
func decidedAgain(t *testing.T, file string) *lab.Comparison {
	t.Helper()
	reader, err := trace.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	header := reader.Header()
	o := lab.ReplayOptions{Policy: header.Policy, Capacity: header.DeviceMemory}
	for name, value := range header.Limits {
		o.Settings = append(o.Settings, allocator.Setting{Name: name, Value: value})
	}
	c, err := lab.Compare(reader, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// played is an example whose decisions a replay repeats one by one: of one thread, because a recording does not tell
// which of two threads the policy heard first.
type played struct {
	name, args string
	// constant has buffers up to which, but not beyond, a __constant argument may go: a run stops rounding up there, and a
	// recording does not tell where that is. mantissa alone rounds up across it.
	constant bool
}

var playedExamples = []played{
	{name: "stencil", args: "40 8M"}, {name: "pipeline", args: "16 4M", constant: true}, {name: "train", args: "30"},
	{name: "mosaic", args: "20 1M", constant: true}, {name: "neighbours", args: "60 40"}, {name: "frag", args: "3 16M"}, {name: "multiqueue", args: "60 256K"},
	{name: "leak", args: "3 1M", constant: true}, {name: "tiny"}, {name: "churn", args: "20000 4K 1"},
	{name: "staging", args: "40 256K"}, {name: "dynamic", args: "libOpenCL.so.1", constant: true},
}

// checkPlayed records an example and demands that its replay decides the same.
func checkPlayed(t *testing.T, p played, evictions bool, flags ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	args := append([]string{gpumemtop(), "record", "-o", file}, flags...)
	args = append(append(args, "--", example(p.name)), strings.Fields(p.args)...)
	if result := run(t, command{args: args}); result.code != 0 {
		t.Fatalf("record: %s\n%s", result, result.stderr)
	}
	c := decidedAgain(t, file)
	if !c.Exact() || c.Requests == 0 || evictions && c.Evictions == 0 {
		t.Errorf("%s: %+v", strings.Join(args[3:], " "), *c)
	}
}

func TestReplayDecidesAsTheRun(t *testing.T) {
	for _, p := range playedExamples {
		for _, policy := range allocator.Names() {
			if policy != "mantissa" || !p.constant {
				t.Run(p.name+"/"+policy, func(t *testing.T) { checkPlayed(t, p, false, "--policy", policy) })
			}
		}
	}
}

// TestReplayEvictsAsTheRun has limits that evict, and cards on which memory is given back to make room.
func TestReplayEvictsAsTheRun(t *testing.T) {
	frag, pipeline := played{name: "frag", args: "3 16M"}, played{name: "pipeline", args: "16 3M"}
	for _, c := range []struct {
		p     played
		flags string
	}{
		{pipeline, "--policy futhark --set max_cached_bytes=1000000"},
		{pipeline, "--policy futhark --set max_per_tag=1"},
		{pipeline, "--policy futhark-2018 --set max_cached_bytes=2000000"},
		{pipeline, "--policy mantissa --set max_cached_bytes=3000000"},
		{pipeline, "--policy slab --set max_cached_bytes=1000000"},
		{frag, "--policy buckets --set max_per_bucket=1"},
		{frag, "--policy pow2 --set max_cached_bytes=20000000 --set over_limit=reject-new"},
		{frag, "--policy futhark --device-memory 52M"},
		{frag, "--policy futhark --set drain_order=all --device-memory 72M"},
		{frag, "--policy pow2 --device-memory 72M"},
		{frag, "--policy mantissa --device-memory 52M"},
		{frag, "--policy slab --device-memory 100M"},
		{played{name: "neighbours", args: "60 40"}, "--policy futhark --device-memory 3M"},
	} {
		t.Run(c.p.name+" "+c.flags, func(t *testing.T) { checkPlayed(t, c.p, true, strings.Fields(c.flags)...) })
	}
}
