package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// decidedAgain plays a recording through the policy that was recorded, under its limits and on its card, and compares every
// decision.
func decidedAgain(t *testing.T, file string) *replay.Comparison {
	t.Helper()
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	header := reader.Header()
	o := replay.Options{Policy: header.Policy, Capacity: header.DeviceMemory}
	for name, value := range header.Limits {
		o.Settings = append(o.Settings, allocator.Setting{Name: name, Value: value})
	}
	c, err := replay.CompareDecisions(reader, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// played is a program whose decisions a replay repeats one by one.
type played struct {
	name, args string // an example's, or "test/" and a test program's
	ranks      int    // of MPI, 0: none of it
	long       bool   // with little that other programs have not, too: only policies that differ most
}

// policies are those under which it is played.
func (p played) policies(turn int) []string {
	if p.long && !*driversAll {
		return []string{"futhark", "slab"}
	}
	return policiesInTurn(turn)
}

// words returns the command line, and what it needs in its environment.
func (p played) words(t *testing.T) command {
	t.Helper()
	if p.ranks > 0 {
		return mpi(t, p.ranks, strings.Fields(p.args)...)
	}
	path := example(p.name)
	if name, ok := strings.CutPrefix(p.name, "test/"); ok {
		path = testProgram(name)
	}
	return command{args: append([]string{path}, strings.Fields(p.args)...)}
}

// playedPrograms are the test programs with one thread and with several, and what is at fault but ends by itself. Examples
// are played in TestProgramsBehaveAsBare: here are those that behave otherwise with other arguments.
var playedPrograms = []played{
	{name: "churn", args: "20000 4K 1", long: true}, {name: "test/conformance", long: true}, {name: "test/conformance-buffers", long: true}, {name: "leak", args: "3 1M", long: true},
	{name: "test/queries", long: true}, {name: "test/queries-buffers", long: true}, {name: "test/ranks", ranks: 2}, {name: "test/soak", args: "--ops 600 --threads 3 5", long: true},
	{name: "test/soak-buffers", args: "--ops 200 --threads 3 7"}, {name: "spill", args: "40 64K tiled", long: true}, {name: "test/generated", args: "20 4K"},
	{name: "test/growth", args: "60 1 buffers"}, {name: "test/outgrows", args: "scratch 6 1M", long: true}, {name: "test/overtaken", args: "1"}, {name: "test/paced", args: "200 4K"}, {name: "threads", args: "300 20 4K", long: true},
	{name: "test/eager"}, {name: "photos", args: "6 256K", long: true}, {name: "test/waits", args: "1 1", long: true}, {name: "test/faults/cmdbuf", long: true}, {name: "test/faults/hungry", args: "4 1M"}, {name: "test/faults/keeper", args: "6 4K"}, {name: "test/faults/spawner", args: "20 10 4K"},
}

// TestEveryProgramIsPlayed fails when a new example or test program is not in the list.
func TestEveryProgramIsPlayed(t *testing.T) {
	isPlayed := map[string]bool{}
	for _, p := range playedPrograms {
		isPlayed[filepath.Base(p.name)] = true
	}
	for _, p := range examplePrograms() {
		isPlayed[filepath.Base(p.args[0])] = true
	}
	for _, folder := range []string{"examples", "test"} {
		entries, err := os.ReadDir(filepath.Join(root, "bin", folder))
		if err != nil || len(entries) < 10 {
			t.Fatalf("%d programs in %s (%v)", len(entries), folder, err)
		}
		for _, e := range entries {
			if !e.IsDir() && !isPlayed[e.Name()] {
				t.Errorf("%s is not played", e.Name())
			}
		}
	}
}

// checkPlayed records an example and demands that its replay decides the same.
func checkPlayed(t *testing.T, p played, evictions bool, flags ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	words := p.words(t)
	args := append([]string{gpumemtop(), "record", "-o", file}, flags...)
	words.args = append(append(args, "--"), words.args...)
	if result := run(t, words); result.code != 0 {
		t.Fatalf("record: %s\n%s", result, result.stderr)
	}
	c := decidedAgain(t, file)
	if !c.IsExact() || c.First != "" || c.Requests == 0 || evictions && c.Evictions == 0 {
		t.Errorf("%s: %+v", strings.Join(words.args[4:], " "), *c)
	}
}

func TestReplayDecidesAsTheRun(t *testing.T) {
	for turn, p := range playedPrograms {
		for _, policy := range p.policies(turn) {
			t.Run(p.name+" "+p.args+"/"+policy, func(t *testing.T) {
				t.Parallel()
				checkPlayed(t, p, false, "--policy", policy)
			})
		}
	}
}

// TestReplayEvictsAsTheRun has limits that evict, cards on which memory is given back to make room, blocks that no
// thread waits for, and what else changes the policy's requests: of one thread and of several.
func TestReplayEvictsAsTheRun(t *testing.T) {
	frag, pipeline := played{name: "frag", args: "3 16M"}, played{name: "pipeline", args: "16 3M"}
	threads, soak := played{name: "threads", args: "4 500 64K"}, played{name: "test/soak-buffers", args: "--ops 200 --threads 3 7"}
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
		{played{name: "test/pointers", args: "40 1M"}, "--policy pow2 --set max_cached_bytes=1000000"},
		{frag, "--policy mantissa --device-memory 52M"},
		{frag, "--policy slab --device-memory 100M"},
		{played{name: "test/neighbours", args: "60 40"}, "--policy futhark --device-memory 3M"},
		{threads, "--policy futhark --set max_cached_bytes=100000"},
		{threads, "--policy slab --set max_cached_bytes=100000"},
		{soak, "--policy futhark --set max_age=1ms"},
		{soak, "--policy slab --set max_age=1ms"},
		{soak, "--policy futhark --device-memory 16M"},
		{soak, "--policy slab --device-memory 24M"},
		{soak, "--policy futhark --scrub zero"},
		{played{name: "multiqueue", args: "60 256K"}, "--policy futhark --unsafe-no-gating"},
		{played{name: "multiqueue", args: "60 256K"}, "--policy slab --unsafe-no-gating"},
	} {
		t.Run(c.p.name+" "+c.flags, func(t *testing.T) {
			t.Parallel()
			checkPlayed(t, c.p, true, strings.Fields(c.flags)...)
		})
	}
}
