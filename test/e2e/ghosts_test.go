package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// TestGhostsAreWhatAReplaySays: what a policy would have done is the same whether it is simulated beside the run or played
// from the recording of it.
func TestGhostsAreWhatAReplaySays(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{
		{example("train"), "30", "16K"}, {example("frag"), "3", "16M"}, {example("multiqueue"), "60", "256K"}, {example("churn"), "20000", "4K", "2"},
	} {
		dir := t.TempDir()
		args := append([]string{gpumemtop(), "record", "--ghosts", "usual", "-o", dir + "/x.gmt", "--summary", dir + "/x.json", "--"}, words...)
		if result := run(t, command{args: args}); result.code != 0 {
			t.Fatalf("%q: %s\n%s", words, result, result.stderr)
		}
		text, err := os.ReadFile(dir + "/x.json")
		if err != nil {
			t.Fatal(err)
		}
		var sum summary
		if err := json.Unmarshal(text, &sum); err != nil {
			t.Fatal(err)
		}
		if len(sum.Ghosts) < 7 {
			t.Fatalf("%q: ghosts %+v", words, sum.Ghosts)
		}
		for _, g := range sum.Ghosts {
			limits := strings.TrimPrefix(strings.TrimPrefix(g.Name, g.Policy), " ")
			want := replayOf(t, dir+"/x.gmt", g.Policy, strings.ReplaceAll(limits, " ", ","))
			if g.Stopped != "" {
				t.Logf("%q: %s %s", words, g.Name, g.Stopped) // this machine has too much to do
				continue
			}
			if (limits != "" && g.Policy != "futhark") || g.Present != (g.Name == "futhark") || g.Late {
				t.Errorf("%q: %+v", words, g)
			}
			if g.Requests == 0 || g.Hits != want.Hits || g.Requests != want.Hits+want.Misses || g.PeakReserved != want.PeakReserved {
				t.Errorf("%q: ghost %+v, a replay: %d hits, %d misses, peak %d", words, g, want.Hits, want.Misses, want.PeakReserved)
			}
		}
	}
}

// replayOf plays a recording through a policy, with limits if any are named.
func replayOf(t *testing.T, file, policy, limits string) *replay.Result {
	t.Helper()
	settings, err := allocator.ParseSettings(limits)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	r, err := replay.Replay(reader, replay.Options{Policy: policy, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
