package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	soakSeeds = flag.Int("soak.seeds", 12, "how many random programs TestSoak runs")
	soakFirst = flag.Uint64("soak.first", 1, "the seed of the first")
	soakOn    = flag.String("soak.driver", "", "another driver than PoCL to run them on, such as rusticl")
)

// modes are the policies that a random program runs under, and the limits of each that the seed may set.
var modes = []struct {
	policy string
	limits []string
}{
	{policy: "none"},
	{"futhark", []string{"min_block", "max_waste_ratio", "max_cached_bytes", "max_age", "outgrown", "over_limit", "drain_order"}},
	{"pow2", []string{"min_block", "max_cached_bytes", "max_per_bucket"}},
	{"slab", []string{"max_part", "heap_bytes", "max_cached_bytes", "max_age", "outgrown", "proportion", "over_limit"}},
	{"buddy", []string{"max_part", "page_bytes", "max_cached_bytes", "max_age"}},
	{"ualloc", []string{"max_part", "max_cached_bytes", "drain_order"}},
	{"arena", []string{"max_per_tag", "max_cached_bytes", "max_age", "over_limit"}},
}

// values are those that a limit may be set to.
var values = map[string][]string{
	"min_block":        {"64B", "1KiB", "16KiB", "64KiB"},
	"max_waste_ratio":  {"1", "1.5", "4", "8"},
	"max_cached_bytes": {"0", "4KiB", "64KiB", "1MiB"},
	"max_per_bucket":   {"1", "2", "4"},
	"max_per_tag":      {"1", "2", "4"},
	"max_age":          {"1ms", "10ms"},
	"outgrown":         {"off", "on"},
	"proportion":       {"1", "1.5"},
	"over_limit":       {"reject-new", "evict-old"},
	"drain_order":      {"slot", "largest-first", "oldest-first", "all"},
	"max_part":         {"4KiB", "64KiB", "1MiB"},
	"heap_bytes":       {"4MiB", "64MiB"},
	"page_bytes":       {"1KiB", "4KiB"}, // none above a max_part
}

// switches change nothing for a correct program; those of scrub only with a pool.
var switches = [][]string{
	{"--tags", "none"}, {"--tags", "caller"}, {"--tags", "stack"}, {"--scrub", "poison"}, {"--device-memory", "2GiB"},
	{"-o", "soak.gmt"},
}

// spilling are runs without a pool whose idle buffers go to host memory: some seeds have one. The last one is never short.
var spilling = [][]string{
	{"--spill", "--device-memory", "800K"}, {"--spill", "--device-memory", "1200K"}, {"--spill", "--device-memory", "4M"}, {"--spill"},
}

// spillingSeeds is in how many seeds there is one with such a run.
const spillingSeeds = 4

// short is how a program says that one of its calls found no memory, which a smaller device allows.
var short = regexp.MustCompile(`OpenCL error -(4|61):|no shared virtual memory`)

// pooling is how many of the policies that pool a random program runs under.
const pooling = 2

// ways are no pool and some that the seed picks, with what it says about each: half of them as they are by default. On another
// driver than PoCL it is one of those that pool.
func (s soak) ways() []served {
	var ways []served
	picked := rand.New(rand.NewPCG(s.seed, 0)).Perm(len(modes) - 1)[:pooling]
	for i, mode := range modes {
		on := i == 0 || slices.Contains(picked, i-1)
		if s.driver != nil {
			on = i == 1+int(s.seed%uint64(len(modes)-1))
		}
		if !on {
			continue
		}
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
	if s.driver == nil && s.seed%spillingSeeds == 0 {
		ways = append(ways, served{policy: "none", flags: spilling[s.seed/spillingSeeds%uint64(len(spilling))]})
	}
	return ways
}

// soakTotals is what many runs add up to.
type soakTotals struct {
	programs, runs, differences   int
	short                         map[string]int // runs with --spill that the device had no room for, by reason
	operations                    uint64
	hits, hazardsAvoided, cooling uint64
	alternative, turns            int      // of experiments: requests that it decided on, and messages that were obeyed
	hanging                       []uint64 // seeds whose programs hang without us
	failing                       []uint64 // and fail, on other drivers than PoCL
	unsteady                      []uint64 // and differ from themselves there, as they did with us
}

func (n *soakTotals) String() string {
	return fmt.Sprintf("seeds %d (%d of them hang without us: %d; %d fail: %d; %d differ at times: %d), runs %d, short %v, operations %d, hits %d, cooling %d, hazards avoided %d, alternatives decided %d in %d turns, differences %d",
		n.programs, len(n.hanging), n.hanging, len(n.failing), n.failing, len(n.unsteady), n.unsteady, n.runs, n.short, n.operations, n.hits, n.cooling, n.hazardsAvoided, n.alternative, n.turns, n.differences)
}

func (n *soakTotals) shorten(why string) {
	if n.short == nil {
		n.short = map[string]int{}
	}
	n.short[why]++
}

// poclGaveUp is what PoCL 3.1 says when two of its threads have miscounted the users of a compiled kernel. It happens
// bare as well, once in some hundred runs of programs with three threads.
var poclGaveUp = []byte("pocl_release_dlhandle_cache: Assertion")

// again repeats a run in which PoCL itself gave up, which says nothing about gpumemtop.
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
		if len(way.arms) > 0 {
			return s.experiment(t, way, totals)
		}
		result, sum = way.run(t, s.command(t))
		return result
	})
	totals.runs++
	totals.hits += sum.Hits
	totals.hazardsAvoided += sum.HazardsAvoided
	totals.cooling += sum.MissReasons["cooling"]
	none := slices.Contains(way.flags, "max_part=4KiB") || s.driver != nil && s.driver.whole // there may be
	if way.slabs() && sum.PeakSlabs == 0 && !none && len(way.arms) == 0 {
		t.Errorf("%s: no slabs, so no buffer was a part of one", s.line(way.String()))
	}
	difference := differs(bare, here)
	if difference == "" {
		if *soakMode == "idle" {
			s.replayed(t, way)
		}
		return
	}
	if here.code == 1 && slices.Contains(way.flags, "--spill") && slices.Contains(way.flags, "--device-memory") && short.Match(here.stderr) {
		if why := whyShort(here.stderr); why != "" {
			totals.shorten(why)
			return
		}
	}
	if s.driver != nil && unsteady(t, s.command(t), bare) {
		totals.unsteady = append(totals.unsteady, s.seed)
		t.Logf("%s: %s, as bare runs do at times", s.line(way.String()), difference)
		return
	}
	totals.differences++
	t.Errorf("%s: %s", s.line(way.String()), difference)
	small := s.shrunk(t, way)
	t.Errorf("the same in %d operations; to keep it, add to test/e2e/testdata/soak.txt:\n%s", len(small.all()), small.line(way.String()))
}

// unsteady reports whether a program sometimes ends otherwise without us, too.
func unsteady(t *testing.T, c command, bare outcome) bool {
	t.Helper()
	for range 12 {
		if differs(bare, run(t, c)) != "" {
			return true
		}
	}
	return false
}

// shrunk is a smaller program that still differs. Races need luck: each candidate gets some tries.
func (s soak) shrunk(t *testing.T, way served) soak {
	t.Helper()
	const tries, patience = 3, time.Minute
	keep := shrink(s.all(), time.Now().Add(patience), func(keep []uint64) bool {
		candidate := s.only(keep)
		bare := run(t, candidate.command(t))
		if bare.code != 0 {
			return false
		}
		for range tries {
			here := again(func() (result outcome) {
				if len(way.arms) > 0 {
					return candidate.experiment(t, way, &soakTotals{})
				}
				result, _ = way.run(t, candidate.command(t))
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

const (
	hung   = 3  // the status of a program whose own watchdog ended it
	failed = -2 // of one that another driver than PoCL does not run
)

// alone runs the program as it is, twice: what differs from itself cannot be compared. hangs says that PoCL 3.1 never
// ends it: that was seen after user events that were set to an error, in one of some hundred programs.
func (s soak) alone(t *testing.T) (bare outcome, hangs bool) {
	t.Helper()
	once := func() outcome { return run(t, s.command(t)) }
	first := again(once)
	if first.code == hung {
		return first, true
	}
	second := again(once)
	if second.code == hung {
		return second, true
	}
	if difference := differs(first, second); s.driver != nil && (first.code != 0 || difference != "") {
		t.Logf("%s: %s, %s%s", s.line("bare"), first, difference, first.stderr)
		return outcome{code: failed}, false
	}
	if first.code != 0 {
		t.Fatalf("%s: bare run: %s, %q\n%s", s.line("bare"), first, first.stdout, first.stderr)
	}
	if difference := differs(first, second); difference != "" {
		t.Fatalf("%s: two bare runs differ: the second %s", s.line("bare"), difference)
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

// everyWay runs the program bare and in its ways; on other drivers than PoCL, that without images for those that carve.
func (s soak) everyWay(t *testing.T, totals *soakTotals) {
	t.Helper()
	ways := soakModes[*soakMode](&s, t)
	for _, s.plain = range []bool{false, true} {
		fit := slices.DeleteFunc(slices.Clone(ways), func(way served) bool { return (way.carves() && s.driver != nil) != s.plain })
		if len(fit) == 0 {
			continue
		}
		bare, hangs := s.alone(t)
		if hangs {
			totals.hanging = append(totals.hanging, s.seed)
			continue
		}
		if bare.code == failed {
			totals.failing = append(totals.failing, s.seed)
			continue
		}
		for _, way := range fit {
			s.under(t, way, bare, totals)
		}
	}
}

// TestSoak runs random programs, each bare and under every policy, with limits from the seed: they must not notice.
func TestSoak(t *testing.T) {
	t.Parallel()
	var totals soakTotals
	on := driverCalled(t, *soakOn)
	for seed := *soakFirst; seed < *soakFirst+uint64(*soakSeeds); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := soakOf(seed)
			if on != nil {
				s = s.on(on)
			}
			totals.programs++
			totals.operations += s.ops * s.threads
			s.everyWay(t, &totals)
		})
	}
	fmt.Println("soak:", *soakMode, *soakOn, &totals) // also without -v: it is what make soak is for
	if on != nil {
		return // others promise less than PoCL
	}
	if allowed := max(1, totals.programs/50); len(totals.hanging) > allowed {
		t.Errorf("PoCL hangs without us in %d programs, at most %d may: %d", len(totals.hanging), allowed, totals.hanging)
	}
	if *soakMode == "arms" {
		if totals.alternative < 10*totals.programs {
			t.Errorf("the arms take too few turns: %v", &totals)
		}
		return
	}
	if *soakMode != "spill" && (totals.hits == 0 || totals.hazardsAvoided == 0) {
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
	t.Parallel()
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
	t.Parallel()
	const first, last = 1, 24
	for seed := uint64(first); seed <= last; seed++ {
		s := soakOf(seed)
		bare := s.bare(t)
		ungated := run(t, command{args: append([]string{gpumemtop(), "--headless", "--unsafe-no-gating", "--"}, s.args()...)})
		if differs(bare, ungated) != "" {
			t.Logf("seed %d notices: %s", seed, ungated.stderr)
			return
		}
	}
	t.Errorf("no program from %d to %d notices that gating is off", first, last)
}
