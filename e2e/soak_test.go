package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	soakSeeds = flag.Int("soak.seeds", 40, "how many random programs TestSoak runs")
	soakFirst = flag.Uint64("soak.first", 1, "the seed of the first")
)

// modes are the policies that a random program runs under, and the limits of each that the seed may set.
var modes = []struct {
	policy string
	limits []string
}{
	{policy: "none"},
	{"futhark", []string{"min_block", "max_waste_ratio", "max_cached_bytes"}},
	{"pow2", []string{"min_block", "max_cached_bytes"}},
}

// values are those that a limit may be set to.
var values = map[string][]string{
	"min_block":        {"64B", "1KiB", "16KiB", "64KiB"},
	"max_waste_ratio":  {"1", "1.5", "4", "8"},
	"max_cached_bytes": {"0", "4KiB", "64KiB", "1MiB"},
}

// switches change nothing for a correct program; those of scrub only with a pool.
var switches = [][]string{
	{"--tags", "none"}, {"--tags", "caller"}, {"--tags", "stack"}, {"--scrub", "poison"}, {"--device-memory", "2GiB"},
	{"-o", "soak.gmt"},
}

// soak is one random program: what its command line says.
type soak struct {
	seed, threads, queues, ops uint64
	skip                       []uint64 // operations left out, ascending
}

// soakOf chooses the shape of a seed's program.
func soakOf(seed uint64) soak {
	return soak{seed: seed, threads: 1 + seed%3, queues: 1 + seed/3%3, ops: 60 + seed/9%3*70}
}

// ways are the policies with what the seed says about each: half of them as they are by default.
func (s soak) ways() []served {
	var ways []served
	for i, mode := range modes {
		random := rand.New(rand.NewPCG(s.seed, uint64(i)))
		way := served{policy: mode.policy}
		if random.IntN(2) == 0 {
			ways = append(ways, way)
			continue
		}
		for _, limit := range mode.limits {
			if random.IntN(2) == 0 {
				choice := values[limit]
				way.flags = append(way.flags, "--set", limit+"="+choice[random.IntN(len(choice))])
			}
		}
		for _, flags := range switches {
			if random.IntN(4) == 0 && (flags[0] != "--scrub" || len(mode.limits) > 0) {
				way.flags = append(way.flags, flags...)
			}
		}
		ways = append(ways, way)
	}
	return ways
}

func (s soak) args() []string {
	args := []string{
		example("soak"), "--threads", fmt.Sprint(s.threads), "--queues", fmt.Sprint(s.queues), "--ops", fmt.Sprint(s.ops),
	}
	if len(s.skip) > 0 {
		args = append(args, "--skip", ranges(s.skip))
	}
	return append(args, fmt.Sprint(s.seed))
}

// all are the numbers of the operations that are not left out.
func (s soak) all() []uint64 {
	var numbers []uint64
	for i := range s.ops * s.threads {
		if _, out := slices.BinarySearch(s.skip, i); !out {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// only is the same program with just these operations.
func (s soak) only(keep []uint64) soak {
	s.skip = nil
	for i := range s.ops * s.threads {
		if !slices.Contains(keep, i) {
			s.skip = append(s.skip, i)
		}
	}
	return s
}

// line is the program as a line of testdata/soak.txt.
func (s soak) line(way string) string {
	skip := "-"
	if len(s.skip) > 0 {
		skip = ranges(s.skip)
	}
	return fmt.Sprintf("%d %d %d %d %s %s", s.seed, s.threads, s.queues, s.ops, skip, way)
}

// parseSoak reads such a line.
func parseSoak(line string) (s soak, way served, err error) {
	var skip string
	if n, err := fmt.Sscanf(line, "%d %d %d %d %s %s", &s.seed, &s.threads, &s.queues, &s.ops, &skip, &way.policy); err != nil {
		return s, way, fmt.Errorf("%q: only %d of seed, threads, queues, ops, skip, policy: %w", line, n, err)
	}
	way.flags = strings.Fields(line)[6:]
	if skip == "-" {
		return s, way, nil
	}
	for part := range strings.SplitSeq(skip, ",") {
		var first, last uint64
		if _, err := fmt.Sscanf(part, "%d-%d", &first, &last); err != nil {
			if _, err := fmt.Sscanf(part, "%d", &first); err != nil {
				return s, way, fmt.Errorf("%q: what is left out: %w", line, err)
			}
			last = first
		}
		for i := first; i <= last; i++ {
			s.skip = append(s.skip, i)
		}
	}
	return s, way, nil
}

// ranges writes ascending numbers as 3,17,20-40.
func ranges(numbers []uint64) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if i == j {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// shrink leaves out whatever is not needed for fails to stay true of what is kept: halves first, then ever smaller
// pieces, down to single numbers, until none can go (delta debugging) or the time is over.
func shrink(keep []uint64, deadline time.Time, fails func(keep []uint64) bool) []uint64 {
	for size := max(1, len(keep)/2); ; {
		removed := false
		for at := 0; at < len(keep) && len(keep) > 1 && time.Now().Before(deadline); {
			rest := slices.Concat(keep[:at], keep[min(at+size, len(keep)):])
			if len(rest) > 0 && fails(rest) {
				keep, removed = rest, true
			} else {
				at += size
			}
		}
		if size == 1 && !removed || time.Now().After(deadline) {
			return keep
		}
		size = max(1, min(size/2, len(keep)/2))
	}
}

// soakTotals is what many runs add up to.
type soakTotals struct {
	programs, runs, differences   int
	operations                    uint64
	hits, hazardsAvoided, cooling uint64
	hanging                       []uint64 // seeds whose programs hang without us
}

func (n *soakTotals) String() string {
	return fmt.Sprintf("seeds %d (%d of them hang without us: %d), runs %d, operations %d, hits %d, cooling %d, hazards avoided %d, differences %d",
		n.programs, len(n.hanging), n.hanging, n.runs, n.operations, n.hits, n.cooling, n.hazardsAvoided, n.differences)
}

// differs says how a run under a policy differs from the bare one; "" when it does not.
func differs(bare, here outcome) string {
	if here.sameEnd(bare) && bytes.Equal(here.stdout, bare.stdout) {
		return ""
	}
	return fmt.Sprintf("ended with %s and %q, bare with %s and %q\nstderr: %s", here, here.stdout, bare, bare.stdout, here.stderr)
}

// poclGaveUp is what PoCL 3.1 says when two of its threads have miscounted the users of a compiled kernel. It happens
// bare as well, once in some hundred runs of programs with three threads.
var poclGaveUp = []byte("pocl_release_dlhandle_cache: Assertion")

// again runs until PoCL has not given up by itself, which is nobody's difference.
func again(run func() outcome) outcome {
	var result outcome
	for range 5 {
		if result = run(); result.sameEnd(outcome{}) || !bytes.Contains(result.stderr, poclGaveUp) {
			break
		}
	}
	return result
}

// under compares one program under one policy with its bare run.
func (s soak) under(t *testing.T, way served, bare outcome, totals *soakTotals) {
	t.Helper()
	var sum summary
	here := again(func() (result outcome) {
		result, sum = way.run(t, s.args()...)
		return result
	})
	totals.runs++
	totals.hits += sum.Hits
	totals.hazardsAvoided += sum.HazardsAvoided
	totals.cooling += sum.MissReasons["cooling"]
	difference := differs(bare, here)
	if difference == "" {
		return
	}
	totals.differences++
	t.Errorf("%s: %s", s.line(way.String()), difference)
	small := s.shrunk(t, way)
	t.Errorf("the same in %d operations; to keep it, add to e2e/testdata/soak.txt:\n%s", len(small.all()), small.line(way.String()))
}

// shrunk is a smaller program that still differs. Races need luck: each candidate gets some tries.
func (s soak) shrunk(t *testing.T, way served) soak {
	t.Helper()
	const tries, patience = 3, time.Minute
	keep := shrink(s.all(), time.Now().Add(patience), func(keep []uint64) bool {
		candidate := s.only(keep)
		bare := runBare(t, candidate.args()...)
		if bare.code != 0 {
			return false
		}
		for range tries {
			here := again(func() (result outcome) {
				result, _ = way.run(t, candidate.args()...)
				return result
			})
			if differs(bare, here) != "" {
				return true
			}
		}
		return false
	})
	return s.only(keep)
}

// hung is the status of a program whose own watchdog ended it.
const hung = 3

// alone runs the program as it is, twice: what differs from itself cannot be compared. hangs says that PoCL 3.1 never
// ends it: that was seen after user events that were set to an error, in one of some hundred programs.
func (s soak) alone(t *testing.T) (bare outcome, hangs bool) {
	t.Helper()
	run := func() outcome { return runBare(t, s.args()...) }
	first := again(run)
	if first.code == hung {
		return first, true
	}
	second := again(run)
	if first.code != 0 || !bytes.Equal(first.stdout, second.stdout) {
		t.Fatalf("%s: bare runs: %s and %s, %q and %q\n%s", s.line("bare"), first, second, first.stdout, second.stdout, first.stderr)
	}
	return first, false
}

// bare is alone for programs that are known to end.
func (s soak) bare(t *testing.T) outcome {
	t.Helper()
	bare, hangs := s.alone(t)
	if hangs {
		t.Fatalf("%s: hangs without us", s.line("bare"))
	}
	return bare
}

// TestSoak runs random programs, each bare and under every policy, with limits from the seed: they must not notice.
func TestSoak(t *testing.T) {
	var totals soakTotals
	for seed := *soakFirst; seed < *soakFirst+uint64(*soakSeeds); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := soakOf(seed)
			totals.programs++
			totals.operations += s.ops * s.threads
			bare, hangs := s.alone(t)
			if hangs {
				totals.hanging = append(totals.hanging, seed)
				return
			}
			for _, way := range s.ways() {
				s.under(t, way, bare, &totals)
			}
		})
	}
	fmt.Println("soak:", &totals) // also without -v: it is what make soak is for
	if len(totals.hanging)*50 > totals.programs {
		t.Errorf("PoCL hangs without us in more than one of fifty programs: %d", totals.hanging)
	}
	if totals.hits == 0 || totals.hazardsAvoided == 0 {
		t.Errorf("the programs ask for too little: %v", &totals)
	}
}

// keptSoaks are the lines of testdata/soak.txt without comments.
func keptSoaks(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "soak.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		t.Fatal("testdata/soak.txt is empty")
	}
	return lines
}

// TestSoakKept runs the programs that once were of interest.
func TestSoakKept(t *testing.T) {
	var totals soakTotals
	for _, line := range keptSoaks(t) {
		t.Run(strings.ReplaceAll(line, " ", "_"), func(t *testing.T) {
			s, way, err := parseSoak(line)
			if err != nil {
				t.Fatal(err)
			}
			s.under(t, way, s.bare(t), &totals)
		})
	}
}

// Without gating, a pool hands out what is still in use. When none of these programs notices, they prove nothing.
func TestSoakHasTeeth(t *testing.T) {
	const first, last = 1, 24
	for seed := uint64(first); seed <= last; seed++ {
		s := soakOf(seed)
		bare := s.bare(t)
		ungated := run(t, command{args: append([]string{gpumemtop(), "--headless", "--unsafe-no-gating", "--"}, s.args()...)})
		if !ungated.sameEnd(bare) || !bytes.Equal(ungated.stdout, bare.stdout) {
			t.Logf("seed %d notices: %s", seed, ungated.stderr)
			return
		}
	}
	t.Errorf("no program from %d to %d notices that gating is off", first, last)
}

func TestShrinkFindsWhatIsNeeded(t *testing.T) {
	for _, needed := range [][]uint64{{0}, {99}, {3, 17}, {0, 50, 51, 99}, {20, 40, 41, 42, 60, 80}} {
		var all []uint64
		for i := range uint64(100) {
			all = append(all, i)
		}
		asked := 0
		got := shrink(all, time.Now().Add(time.Hour), func(keep []uint64) bool {
			asked++
			for _, n := range needed {
				if !slices.Contains(keep, n) {
					return false
				}
			}
			return true
		})
		if !slices.Equal(got, needed) {
			t.Errorf("shrunk to %v, want %v", got, needed)
		}
		if asked > 20*len(needed)+100 {
			t.Errorf("%v: asked %d times", needed, asked)
		}
	}
}

func TestShrinkGivesUpInTime(t *testing.T) {
	all := []uint64{1, 2, 3}
	got := shrink(all, time.Now().Add(-time.Second), func([]uint64) bool { t.Error("asked after the end"); return true })
	if !slices.Equal(got, all) {
		t.Errorf("%v", got)
	}
}

func TestSoakLinesRoundTrip(t *testing.T) {
	for _, line := range []string{
		"7 2 3 150 - futhark", "18446744073709551615 1 1 10 0,2-4,9 pow2",
		"7 2 3 150 - pow2 --set min_block=64KiB --tags none",
	} {
		s, way, err := parseSoak(line)
		if err != nil || s.line(way.String()) != line {
			t.Errorf("%q came back as %q, %v", line, s.line(way.String()), err)
		}
	}
	for _, line := range []string{"", "1 2 3", "1 2 3 4 x futhark", "1 2 3 4 - "} {
		if _, _, err := parseSoak(line); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

func TestSoakSaysWhatIsWrong(t *testing.T) {
	rows := []struct{ args, want string }{
		{"", "which seed"},
		{"x", "the seed is a number"},
		{"1 2", "one seed"},
		{"--ops 0 1", "--ops wants"},
		{"--threads 17 1", "--threads wants"},
		{"--queues -1 1", "--queues wants"},
		{"--skip 3-2 1", "--skip wants"},
		{"--skip 3, 1", "--skip wants"},
		{"--ops 5 --threads 1 --skip 5 1", "--skip wants"},
		{"--ops", "nothing follows"},
		{"--what 1", "unknown option"},
	}
	for _, row := range rows {
		result := runBare(t, append([]string{example("soak")}, strings.Fields(row.args)...)...)
		if result.code != 1 || !contains(result.stderr, row.want) || len(result.stdout) != 0 {
			t.Errorf("soak %s: %s, %q", row.args, result, result.stderr)
		}
	}
}

// Leaving operations out must leave a valid program; otherwise shrinking finds other faults than the one it was given.
func TestSoakIsValidWithoutAnyOfItsOperations(t *testing.T) {
	s := soakOf(5)
	for _, step := range []uint64{2, 3, 7} {
		var keep []uint64
		for i := uint64(0); i < s.ops*s.threads; i += step {
			keep = append(keep, i)
		}
		result := runBare(t, s.only(keep).args()...)
		if result.code != 0 || !contains(result.stdout, fmt.Sprintf("operations=%d ", len(keep))) {
			t.Errorf("every operation of %d: %s, %s%s", step, result, result.stdout, result.stderr)
		}
	}
	listed := runBare(t, append(s.args(), "--list")...)
	if got := uint64(bytes.Count(listed.stdout, []byte("\n"))); got != s.ops*s.threads {
		t.Errorf("%d operations listed, want %d", got, s.ops*s.threads)
	}
}
