package e2e

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// directed runs a program this way, with messages, and returns the recording.
func (s served) directed(t *testing.T, c command, next func(program, n int) string) (result outcome, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "x.gmt")
	words := []string{gpumemtop(), "record", "-f", "--policy", s.policy, "-o", file}
	for i := 0; i < len(s.flags); i++ {
		if s.flags[i] == "-o" { // there is one
			i++
			continue
		}
		words = append(words, s.flags[i])
	}
	c.args = append(append(words, "--"), c.args...)
	p := start(t, c)
	d := direct(p.cmd.Process.Pid, next)
	result = p.wait()
	d.end()
	return result, file
}

// schedule is which arm decides, from each request on.
type schedule []struct {
	from uint64
	arm  bool
}

// add notes what a LIMIT says, in the order of the core's answers.
func (s *schedule) add(t *testing.T, r *wire.Record) {
	t.Helper()
	name, value := wire.ParseLimit(r.Payload)
	what, request, ok := wire.ParseArmsSetting(string(value))
	switch string(name) {
	case wire.ArmsSetting:
		if strings.HasPrefix(what, "+") {
			return
		}
		for len(*s) > 0 && (*s)[len(*s)-1].from > request {
			*s = (*s)[:len(*s)-1]
		}
		*s = append(*s, struct {
			from uint64
			arm  bool
		}{request + 1, false})
	case wire.ArmSetting:
		arm, err := strconv.ParseBool(what)
		if err != nil || !ok {
			t.Fatalf("%q: %v", r.Payload, err)
		}
		*s = append(*s, struct {
			from uint64
			arm  bool
		}{request, arm})
	}
}

// arm returns which arm decides on a request.
func (s schedule) arm(request uint64) (arm bool) {
	for _, turn := range s {
		if turn.from <= request {
			arm = turn.arm
		}
	}
	return arm
}

// armsOf reads a recording of one program with one thread: on how many requests the alternative decided, and what is wrong.
func armsOf(t *testing.T, file string, threads bool) (alternative, turns int, wrong string) {
	t.Helper()
	reader, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	var s schedule
	var decided []bool
	for r, err := range recording.Records(reader) {
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Kind == wire.KindLimit && r.AsLimit().Status() == 0:
			s.add(t, r)
			turns++
		case r.Kind == wire.KindCreate && r.AsCreate().WasPooled() && r.AsCreate().Block() != 0:
			c := r.AsCreate()
			if decided = append(decided, c.Arm()); c.Arm() {
				alternative++
			}
		}
	}
	for i, arm := range decided {
		if want := s.arm(uint64(i + 1)); arm != want && !threads {
			return alternative, turns, fmt.Sprintf("request %d: the alternative decided: %t, want %t of %v", i+1, arm, want, s)
		}
	}
	return alternative, turns, ""
}

// experimented is a policy with limits that the seed sets, and alternatives: no pool, and two others. The programs are longer than
// in other modes, because the first messages come late.
func (s *soak) experimented(*testing.T) []served {
	s.ops *= 5
	random := rand.New(rand.NewPCG(s.seed, 3))
	way := s.limited(modes[1+random.IntN(len(modes)-1)].policy)
	way.arms = []string{"none"}
	for range 2 {
		mode := modes[1+random.IntN(len(modes)-1)]
		alternative := mode.policy
		if limit := mode.limits[random.IntN(len(mode.limits))]; limit == "max_cached_bytes" || limit == "max_part" {
			alternative += fmt.Sprintf(" %s=%d", limit, 4096<<random.IntN(9))
		} else if limit == "max_age" {
			alternative += " max_age=0.005"
		}
		way.arms = append(way.arms, alternative)
	}
	return []served{way}
}

// experiment runs the program while arms take turns as often as they can. The recording must replay exactly.
func (s soak) experiment(t *testing.T, way served, totals *soakTotals) outcome {
	t.Helper()
	result, file := way.directed(t, s.command(t), upheaval(s.seed, way.arms))
	if result.code == hung {
		return result
	}
	alternative, turns, _ := armsOf(t, file, true)
	totals.alternative, totals.turns = totals.alternative+alternative, totals.turns+turns
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" {
		totals.differences++
		t.Errorf("%s: the replay differs: %+v", s.line(way.String()), *c)
	}
	return result
}

// TestExperiments runs examples whose arms take turns: outputs are as bare, each request is decided by the arm whose turn it is,
// and the recording replays exactly.
func TestExperiments(t *testing.T) {
	for _, program := range []struct {
		policy, alternative string
		args                []string
	}{
		{"futhark", "none", []string{example("stencil"), "400", "64"}},
		{"futhark", "none", []string{example("pipeline"), "300", "512K"}},
		{"slab", "none", []string{example("pipeline"), "300", "512K"}},
		{"futhark", "slab max_part=1048576,max_age=0.01", []string{example("churn"), "2000", "4K", "1"}},
		{"pow2", "mantissa", []string{example("churn"), "2000", "4K", "1"}},
	} {
		t.Run(program.policy+" or "+program.alternative+" "+filepath.Base(program.args[0]), func(t *testing.T) {
			t.Parallel()
			bare := runBare(t, program.args...)
			messages := []string{"arms " + program.alternative}
			for n := range 60 {
				messages = append(messages, fmt.Sprintf("arm %d %d", 1-n%2, 4+5*n+n%3))
			}
			retry(t, func() string {
				result, file := served{policy: program.policy}.directed(t, command{args: program.args}, func(_, n int) string {
					if n < len(messages) {
						return messages[n]
					}
					return ""
				})
				if result.code != bare.code || string(result.stdout) != string(bare.stdout) {
					t.Fatalf("%s and %q, bare %s and %q\n%s", result, result.stdout, bare, bare.stdout, result.stderr)
				}
				alternative, turns, wrong := armsOf(t, file, false)
				if wrong != "" {
					t.Fatal(wrong)
				}
				if c := decidedAgain(t, file); !c.IsExact() || c.First != "" || c.Requests == 0 {
					t.Fatalf("%+v", *c)
				}
				if alternative == 0 || turns < 10 {
					return fmt.Sprintf("the alternative decided on %d requests, with %d messages", alternative, turns)
				}
				return ""
			})
		})
	}
}
