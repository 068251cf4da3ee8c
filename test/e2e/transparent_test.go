package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// ways are those that make a difference to a program that looks: no pool, blocks as large as asked for and larger ones,
// much larger ones, pools that are small, and other ways to distinguish call sites.
var ways = []served{
	{policy: "none"},
	{policy: "none", flags: []string{"--tags", "caller"}},
	{policy: "futhark", flags: []string{"--tags", "stack"}},
	{policy: "futhark", flags: []string{"--tags", "caller", "--set", "min_block=128KiB"}},
	{policy: "futhark", flags: []string{"--max-cached", "1MiB"}},
	{policy: "pow2", flags: []string{"--tags", "caller"}},
	{policy: "pow2", flags: []string{"--tags", "stack", "--set", "min_block=64KiB"}},
	{policy: "pow2", flags: []string{"--tags", "none", "--max-cached", "1MiB"}},
	{policy: "futhark-2018", flags: []string{"--tags", "none", "--set", "max_per_tag=8"}},
	{policy: "buckets", flags: []string{"--set", "over_limit=evict-old"}},
	{policy: "mantissa", flags: []string{"--set", "mantissa_bits=2,max_age=1ms"}},
	{policy: "slab"},
	{policy: "slab", flags: []string{"--set", "max_part=64KiB,heap_bytes=1MiB,slabs_per_heap=4", "--max-cached", "256KiB"}},
	{policy: "buddy"},
	{policy: "buddy", flags: []string{"--set", "page_bytes=64KiB"}},
	{policy: "ualloc"},
	{policy: "arena"},
	{policy: "arena", flags: []string{"--tags", "none", "--max-cached", "1MiB"}},
	{policy: "ualloc", flags: []string{"--set", "over_limit=reject-new", "--max-cached", "0"}},
}

// check runs a program this way and compares it with the bare run, line by line.
func (s served) check(t *testing.T, bare outcome, args []string) {
	t.Helper()
	result, sum := s.run(t, command{args: args})
	if !result.sameEnd(bare) {
		t.Errorf("ended with %s, bare with %s\nstderr: %s", result, bare, result.stderr)
	}
	if difference := differingLines(bare.stdout, result.stdout, 30); difference != "" {
		t.Errorf("not as bare:\n%s", difference)
	}
	if s.policy != "none" && sum.Hits == 0 {
		t.Errorf("no hits in %d misses, so nothing was tried", sum.Misses)
	}
	if s.slabs() && args[0] != fault("cmdbuf") && sum.PeakSlabs == 0 {
		t.Error("no slabs, so no buffer was a part of one")
	}
	if sum.LostEvents != 0 {
		t.Errorf("%d events lost", sum.LostEvents)
	}
}

// differingLines tells the lines that are not the same: the first of each kind, at most limit kinds, and how many there
// are of it; "": none. Lines that differ in numbers only are of one kind.
func differingLines(want, got []byte, limit int) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	var text strings.Builder
	var kinds []string
	example, count := map[string]string{}, map[string]int{}
	for at := range max(len(a), len(b)) {
		bare, wrapped := lineAt(a, at), lineAt(b, at)
		if bare == wrapped {
			continue
		}
		kind := number.ReplaceAllString(bare+"\n"+wrapped, "N")
		if count[kind]++; count[kind] == 1 {
			kinds = append(kinds, kind)
			example[kind] = fmt.Sprintf("line %d\n  bare: %s\n  here: %s\n", at+1, bare, wrapped)
		}
	}
	for _, kind := range kinds[:min(limit, len(kinds))] {
		text.WriteString(example[kind])
		if count[kind] > 1 {
			fmt.Fprintf(&text, "  and %d more like it\n", count[kind]-1)
		}
	}
	if len(kinds) > limit {
		fmt.Fprintf(&text, "and %d other kinds\n", len(kinds)-limit)
	}
	return text.String()
}

// lineAt is a line of a text, or a word for one that is not there.
func lineAt(lines []string, at int) string {
	if at < len(lines) {
		return lines[at]
	}
	return "(nothing)"
}

func TestDifferingLinesAreTold(t *testing.T) {
	if got := differingLines([]byte("a\nb\n"), []byte("a\nb\n"), 1); got != "" {
		t.Errorf("of two equal texts: %q", got)
	}
	got := differingLines([]byte("a\nb 1\nb 2\nc\nd"), []byte("a\nB 3\nB 17\nc"), 1)
	want := "line 2\n  bare: b 1\n  here: B 3\n  and 1 more like it\nand 1 other kinds\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// bareTwice runs a program as it is, and makes sure that it prints the same each time and ends well.
func bareTwice(t *testing.T, args ...string) outcome {
	t.Helper()
	first, second := runBare(t, args...), runBare(t, args...)
	if first.code != 0 {
		t.Fatalf("bare run: %s\nstdout: %s\nstderr: %s", first, first.stdout, first.stderr)
	}
	if difference := differingLines(first.stdout, second.stdout, 5); difference != "" {
		t.Fatalf("two bare runs differ, so nothing can be compared:\n%s", difference)
	}
	return first
}

// checkWays runs a program bare, for sound to look at, and then in all ways that fit.
func checkWays(t *testing.T, args []string, fit func(served) bool, sound func(t *testing.T, bare outcome)) {
	t.Helper()
	bare := bareTwice(t, args...)
	sound(t, bare)
	for _, way := range ways {
		if fit(way) {
			t.Run(way.String(), func(t *testing.T) {
				t.Parallel()
				way.check(t, bare, args)
			})
		}
	}
}

// A program that asks everything, and for much that it must not get, is answered as if it were alone.
func TestQueriesAnswerAsBare(t *testing.T) {
	t.Parallel()
	sound := func(t *testing.T, bare outcome) {
		for _, word := range []string{"CL_MEM_SIZE", "CL_CONTEXT_REFERENCE_COUNT", "CL_INVALID_BUFFER_SIZE", "references at the end"} {
			if !contains(bare.stdout, word) {
				t.Errorf("queries does not say %s", word)
			}
		}
	}
	checkWays(t, []string{testProgram("queries")}, func(way served) bool { return !way.carves() }, sound)
	checkWays(t, []string{testProgram("queries"), "parts"}, served.carves, sound)
}

// What the specification promises about memory objects holds for those that come from a pool.
func TestConformanceChecksPass(t *testing.T) {
	t.Parallel()
	all := func(served) bool { return true }
	checkWays(t, []string{testProgram("conformance")}, all, func(t *testing.T, bare outcome) {
		if failed := bytes.Count(bare.stdout, []byte("FAILED")); failed != 0 {
			t.Fatalf("%d checks fail bare:\n%s", failed, bare.stdout)
		}
	})
}

// The checks see a pool that hands out memory which is still used.
func TestConformanceChecksSeeMissingGates(t *testing.T) {
	t.Parallel()
	result, sum := served{policy: "futhark", flags: []string{"--unsafe-no-gating"}}.run(t, command{args: []string{testProgram("conformance")}})
	if result.code != 1 || !contains(result.stdout, "two_queues FAILED") || !contains(result.stdout, "user_events FAILED") {
		t.Errorf("ended with %s without gating, after %d hits:\n%s", result, sum.Hits, result.stdout)
	}
}

// A command buffer uses memory whenever it is replayed, also what the program has released.
func TestCommandBuffersComputeAsBare(t *testing.T) {
	for turn, size := range []string{"32K", "20K"} { // a power of two, and a size between two
		args := []string{fault("cmdbuf"), "8", size}
		bare := bareTwice(t, args...)
		for i, way := range ways {
			if i%2 != turn {
				continue
			}
			t.Run(size+" "+way.String(), func(t *testing.T) {
				t.Parallel()
				way.check(t, bare, args)
			})
		}
	}
}
