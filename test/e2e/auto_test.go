package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// cycling is a program whose three sizes take turns, of which the pool may keep two: the one that comes next is always the
// one that was given up last.
var cycling = []string{example("churn"), "30000", "64K", "1", "3", "50"}

// TestAutoGoesOver: a program that its first policy does not suit gets another one, and goes on as it would have.
func TestAutoGoesOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := dir + "/x.gmt"
	args := append([]string{gpumemtop(), "record", "--policy", "auto", "--tags", "size", "--max-cached", "1200K", "-o", file, "--"}, cycling...)
	result := run(t, command{args: args})
	bare := runBare(t, cycling...)
	if result.code != 0 || string(result.stdout) != string(bare.stdout) {
		t.Fatalf("%s, it prints %q, bare %q\n%s", result, result.stdout, bare.stdout, result.stderr)
	}
	said := string(result.stderr)
	if strings.Contains(said, "could not keep up") {
		t.Fatalf("the ghosts fall behind at 10,000 requests a second:\n%s", said)
	}
	if !strings.Contains(said, "gpumemtop: auto: ") || !strings.Contains(said, "less time in the driver than futhark max_cached_bytes=1200K") {
		t.Errorf("it says nothing of a change:\n%s", said)
	}
	f := reportOf(t, file)
	if f.Hits == 0 || f.Lost != 0 || f.DriverCreates != f.DriverReleases {
		t.Errorf("the report says %+v", f)
	}
	checkReport(t, file, "auto: ")
	checkKnown(t, file)
	if c := decidedAgain(t, file); !c.Exact() {
		t.Errorf("a replay: %+v", *c)
	}
}

// TestAutoStays: where the base does well, nothing is changed.
func TestAutoStays(t *testing.T) {
	for _, words := range [][]string{
		{example("train"), "60"}, {example("stencil"), "2000", "4M"}, {example("churn"), "30000", "64K", "1", "1", "50"}, {example("tiny")},
	} {
		t.Run(filepath.Base(words[0]), func(t *testing.T) {
			t.Parallel()
			result := run(t, command{args: append([]string{gpumemtop(), "record", "--policy", "auto", "-o", t.TempDir() + "/x.gmt", "--"}, words...)})
			if result.code != 0 || strings.Contains(string(result.stderr), "gpumemtop: auto:") {
				t.Errorf("%q: %s\n%s", words, result, result.stderr)
			}
		})
	}
}
