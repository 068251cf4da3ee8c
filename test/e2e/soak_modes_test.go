package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/planfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

var soakMode = flag.String("soak.mode", "", "instead of some policies: spill, arena, plan, arms or idle")

// soakModes choose what a program runs under in each mode.
var soakModes = map[string]func(*soak, *testing.T) []served{
	"":      (*soak).anyWays,
	"spill": (*soak).spilled,
	"arena": (*soak).underArena,
	"plan":  (*soak).planned,
	"arms":  (*soak).experimented,
	"idle":  (*soak).soonIdle,
}

func (s *soak) anyWays(*testing.T) []served    { return s.ways() }
func (s *soak) underArena(*testing.T) []served { return []served{s.limited("arena")} }

// soonIdle are recorded runs whose pools give blocks back after a millisecond, also while the program makes no calls.
func (s *soak) soonIdle(t *testing.T) (ways []served) {
	t.Helper()
	for _, policy := range []string{"futhark", []string{"slab", "buddy", "ualloc", "arena", "pow2"}[s.seed%5]} {
		flags := []string{"-f", "-o", filepath.Join(t.TempDir(), policy+".gmt"), "--set", "max_age=1ms"}
		if s.seed%2 == 0 {
			flags = append(flags, "--set", "proportion=1")
		}
		ways = append(ways, served{policy: policy, flags: flags})
	}
	return ways
}

// replayed fails if a replay decides otherwise than a recorded run did.
func (s *soak) replayed(t *testing.T, way served) {
	t.Helper()
	if c := decidedAgain(t, way.flags[2]); !c.IsExact() || c.First != "" {
		t.Errorf("%s: replayed: %+v", s.line(way.String()), *c)
	}
}

// limited is a policy with limits that the seed sets, or none.
func (s *soak) limited(policy string) served {
	random, way := rand.New(rand.NewPCG(s.seed, 1)), served{policy: policy}
	for _, mode := range modes {
		for _, limit := range mode.limits {
			if mode.policy == policy && s.seed%2 == 0 && random.IntN(2) == 0 {
				way.flags = append(way.flags, "--set", limit+"="+values[limit][random.IntN(len(values[limit]))])
			}
		}
	}
	return way
}

// recorded is the recording of a run without a pool.
func (s *soak) recorded(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	c := s.command(t)
	c.args = append([]string{gpumemtop(), "record", "-f", "--policy", "none", "-o", file, "--"}, c.args...)
	if r := again(func() outcome { return run(t, c) }); r.code != 0 {
		t.Fatalf("%s: %s\n%s", s.line("record"), r, r.stderr)
	}
	return file
}

// spilled are runs on devices with 100, 50 and 25 % of what the program holds at its peak, but no less than one command needs. Three of
// four programs are without their large buffers, which would hide all others.
func (s *soak) spilled(t *testing.T) (ways []served) {
	t.Helper()
	if s.seed%4 != 0 {
		c := s.command(t)
		c.args = append(c.args, "--list")
		for i, line := range strings.Split(string(run(t, c).stdout), "\n") {
			if strings.Contains(line, " large ") {
				s.skip = append(s.skip, uint64(i))
			}
		}
	}
	file := s.recorded(t)
	r := run(t, command{args: []string{gpumemtop(), "fit", "--spill", "--format", "json", file}})
	var fit struct {
		Recordings []struct{ Peak, Least uint64 }
	}
	if err := json.Unmarshal(r.stdout, &fit); err != nil || len(fit.Recordings) != 1 {
		t.Fatalf("%s: %v\n%s", r, err, r.stderr)
	}
	for _, percent := range []uint64{100, 50, 25} {
		memory := max(fit.Recordings[0].Peak*percent/100, fit.Recordings[0].Least, 1<<10) // less is refused
		ways = append(ways, served{policy: "none", flags: []string{"--spill", "--device-memory", fmt.Sprint(memory)}})
	}
	return ways
}

// namesRoom finds in what a run with --spill prints why a call found no room: what cannot go, or the size of what it asks for.
var namesRoom = regexp.MustCompile(`--spill: (?:\w+ (?:of \w+ )?needs [\d.]+ MiB at once; the card has [\d.]+ MiB|there is no room for an object that cannot spill; the card has [\d.]+ MiB)(.*)`)

// whyShort says why a program found no memory; "": it does not say, and that is a fault.
func whyShort(stderr []byte) string {
	switch found := namesRoom.FindSubmatch(stderr); {
	case found != nil && len(found[1]) > 0:
		return "what cannot go: " + strings.Join(inBrackets.FindAllString(string(found[1]), -1), " ")
	case found != nil:
		return "one command needs more"
	case strings.Contains(string(stderr), "OpenCL error -61"), strings.Contains(string(stderr), "no shared virtual memory"):
		return "an object is larger than the device"
	}
	return ""
}

var inBrackets = regexp.MustCompile(`\([^)]*\)`)

// request is a buffer that a program asked for.
type request struct {
	tag  uint32
	size uint64
}

// foreign is what the program of the last seed asked for: the next one has the same call sites.
var foreign struct {
	requests []request
	sites    map[uint32]planfile.Site
}

// planned are runs with plans that the program does not keep to: where another program's buffers go, its own at random places, and
// its own with random sizes.
func (s *soak) planned(t *testing.T) []served {
	t.Helper()
	requests, sites := requestsOf(t, s.recorded(t))
	if foreign.requests == nil {
		foreign.requests, foreign.sites = requests, sites
	}
	random := rand.New(rand.NewPCG(s.seed, 2))
	own := slices.Clone(requests)
	for i := range own {
		if s.seed%3 == 1 && random.IntN(2) == 0 {
			own[i].size = 1 + random.Uint64N(2*own[i].size)
		}
	}
	ways := []served{s.withPlan(t, "own", random, own, sites), s.withPlan(t, "foreign", random, foreign.requests, foreign.sites)}
	foreign.requests, foreign.sites = requests, sites
	return ways
}

// requestsOf reads a recording's buffers and call sites.
func requestsOf(t *testing.T, file string) (requests []request, sites map[uint32]planfile.Site) {
	t.Helper()
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	sites = map[uint32]planfile.Site{}
	for r, err := range recording.Records(reader) {
		if err != nil {
			t.Fatal(err)
		}
		if site, tag, ok := planfile.SiteOfRecord(r); ok {
			sites[uint32(tag)] = site
		}
		if r.Kind == wire.KindCreate && r.AsCreate().Status() == 0 {
			requests = append(requests, request{r.AsCreate().Tag(), r.AsCreate().Requested()})
		}
	}
	return requests, sites
}

// withPlan is a run with a plan of an iteration that is drawn from requests, at places that may share memory.
func (s *soak) withPlan(t *testing.T, name string, random *rand.Rand, requests []request, sites map[uint32]planfile.Site) served {
	t.Helper()
	const most = 40
	from := random.IntN(len(requests))
	requests = requests[from:min(from+1+random.IntN(most), len(requests))]
	plan := planfile.Plan{Version: 1, Program: "soak", Tags: "stack", Recordings: 1}
	for range 1 + random.IntN(3) {
		plan.Arenas = append(plan.Arenas, planfile.Arena{Size: 2048, Align: []uint64{0, 128, 256, 1024, 2048}[random.IntN(5)]})
	}
	number := map[uint32]int{}
	for i, r := range requests {
		site, known := sites[r.tag]
		if _, again := number[r.tag]; known && !again {
			number[r.tag] = len(plan.Sites)
			plan.Sites = append(plan.Sites, planfile.Placed{Site: site})
		}
		if !known || r.size == 0 {
			continue
		}
		at := planfile.Place{Phase: 1, Request: i + 1, Arena: 1 + random.IntN(len(plan.Arenas)), Size: r.size, Life: 1 + random.Uint64N(20)}
		arena := &plan.Arenas[at.Arena-1]
		at.Offset = max(arena.Align, 1) * random.Uint64N(64)
		whole := (at.Offset + at.Size + max(arena.Align, 1) - 1) &^ (max(arena.Align, 1) - 1)
		if arena.Align == 0 {
			whole += arena.Size // a block for each offset
		}
		arena.Size = max(arena.Size, whole)
		plan.Sites[number[r.tag]].Places = append(plan.Sites[number[r.tag]].Places, at)
	}
	var text bytes.Buffer
	file := filepath.Join(t.TempDir(), name+".toml")
	if err := plan.Write(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := planfile.ParsePlan(text.String()); err != nil {
		t.Fatalf("%s: %v\n%s", s.line(name), err, &text)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return served{policy: "arena", flags: []string{"--plan", file}}
}
