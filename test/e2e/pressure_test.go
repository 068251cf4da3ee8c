package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// steered is a program that does what lines say, and prints what came of each.
type steered struct {
	*process
	in    *io.PipeWriter
	lines int
}

// steer starts one, or what runs it: words come before its own.
func steer(t *testing.T, env []string, words ...string) *steered {
	t.Helper()
	read, write := io.Pipe()
	return &steered{start(t, command{args: append(words, fault("steered")), stdin: read, env: env}), write, 0}
}

// tell tells it something, and returns the line that it answers with.
func (s *steered) tell(format string, args ...any) string {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, format+"\n", args...); err != nil {
		s.t.Fatal(err)
	}
	s.lines++
	var all []string
	waitFor(s.t, fmt.Sprintf("the answer to "+format, args...), func() bool {
		all = strings.SplitAfter(string(s.stdout.bytes()), "\n")
		return len(all) > s.lines
	})
	return strings.TrimSuffix(all[s.lines-1], "\n")
}

// end lets it end.
func (s *steered) end() outcome {
	s.t.Helper()
	_ = s.in.Close()
	return s.wait()
}

// memoryGroup makes a control group that may have so much memory, or skips the test. In version 2 the limit is memory.high.
func memoryGroup(t *testing.T, limit uint64) (folder string) {
	t.Helper()
	var failed []error
	for _, way := range []struct{ below, file string }{
		{"/sys/fs/cgroup", "memory.high"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	} {
		group := filepath.Join(way.below, "gpumemtop-e2e-memory-"+itoa(os.Getpid()))
		err := os.Mkdir(group, 0o755)
		if err == nil {
			file, err2 := os.OpenFile(filepath.Join(group, way.file), os.O_WRONLY, 0) // creates none on a tmpfs
			if err = err2; err == nil {
				_, err = file.WriteString(strconv.FormatUint(limit, 10))
				err = errors.Join(err, file.Close())
			}
			if err == nil {
				t.Cleanup(func() { waitFor(t, "the control group to be empty", func() bool { return os.Remove(group) == nil }) })
				return group
			}
			_ = os.Remove(group)
		}
		failed = append(failed, err)
	}
	t.Skipf("no control group with a limit of memory can be made here: %v", errors.Join(failed...))
	return ""
}

// TestPoolRelievesItsGroup: in a control group of 600 MiB a pool keeps 256, which a neighbour without a pool would need: it gets them.
// The program's output is as bare, its recording replays exactly.
func TestPoolRelievesItsGroup(t *testing.T) {
	const limit = 600 << 20
	group := memoryGroup(t, limit)
	join := []string{"sh", "-c", `echo $$ >"$0"/cgroup.procs && exec "$@"`, group}
	dir := t.TempDir()
	file := filepath.Join(dir, "x.gmt")
	work := func(p *steered, meanwhile func()) outcome {
		for _, what := range []string{"create 128", "create 128", "release"} {
			p.tell("%s", what)
		}
		meanwhile()
		p.tell("create 16")
		return p.end()
	}
	bare := work(steer(t, nil), func() {})
	p := steer(t, nil, slices.Concat(join, []string{gpumemtop(), "record", "--policy", "futhark", "-o", file, "--"})...)
	here := work(p, func() {
		neighbour := steer(t, nil, join...)
		if got := neighbour.tell("create 160"); got != "create: 0" {
			t.Errorf("the neighbour's first: %s", got)
		}
		waitFor(t, "the pool to give memory back", func() bool {
			return contains(run(t, command{args: []string{gpumemtop(), "export", "--format", "ndjson", "-o", "-", file}}).stdout, `"reason":"relief"`)
		})
		if got := neighbour.tell("create 200"); got != "create: 0" {
			t.Errorf("the neighbour's second: %s", got)
		}
		if r := neighbour.end(); r.code != 0 {
			t.Errorf("the neighbour ended with %s", r)
		}
	})
	if difference := differs(bare, here); difference != "" || !contains(here.stderr, "gave back  1") && !contains(here.stderr, "gave back  2") {
		t.Errorf("%s\n%s", difference, here.stderr)
	}
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" || c.Requests == 0 || c.Evictions == 0 {
		t.Errorf("replayed: %+v", c)
	}
	if text, err := os.ReadFile(filepath.Join(group, "memory.failcnt")); err == nil {
		t.Logf("the group refused memory %s times", strings.TrimSpace(string(text)))
	}
}

// card returns the environment of programs that share a card of that many bytes.
func card(t *testing.T, bytes uint64) []string {
	t.Helper()
	layer := compiled(t, "libcard.so", filepath.Join(root, "test/programs/preloaded/card.c"), "-shared", "-fPIC", "-O2", "-fvisibility=hidden")
	return []string{"OPENCL_LAYERS=" + layer, "CARD=" + filepath.Join(t.TempDir(), "card"), "CARD_UUID=" + t.Name(), "CARD_BYTES=" + strconv.FormatUint(bytes, 10)}
}

// recordSteered runs a steered program with a pool, and records it.
func recordSteered(t *testing.T, env []string, flags ...string) (p *steered, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "x.gmt")
	return steer(t, env, append(append([]string{gpumemtop(), "record", "--policy", "futhark", "-o", file}, flags...), "--")...), file
}

// asksUntil tells it to create until that has the outcome. A create waits half a second at most, and on a busy machine memory that it asked
// for may come later: then the next one finds it.
func (s *steered) asksUntil(what, want string) {
	s.t.Helper()
	for tries := 1; ; tries++ {
		switch got := s.tell("%s", what); {
		case got == want && tries > 1:
			s.t.Logf("%s: %s at attempt %d", what, got, tries)
			return
		case got == want:
			return
		case tries == 20:
			s.t.Errorf("%s: %s, want %s", what, got, want)
			return
		}
		time.Sleep(200 * time.Millisecond) // longer than it asks no one after it asked in vain
	}
}

// TestNeighbourGives: on a card of 300 MiB one program keeps 256 idle in its pool. Another program, under a session of its own, needs
// 200, and gets them as bare; what is more than the card has still fails.
func TestNeighbourGives(t *testing.T) {
	t.Parallel()
	env := card(t, 300<<20)
	keeper, file := recordSteered(t, env)
	for _, what := range []string{"create 128", "create 128", "release"} {
		keeper.tell("%s", what)
	}
	other, _ := recordSteered(t, env)
	other.asksUntil("create 200", "create: 0")
	for _, c := range []struct{ what, want string }{
		{"create 200", "create: -4"}, {"create 90", "create: 0"}, {"release", "released: 2"},
	} {
		if got := other.tell("%s", c.what); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	keeper.asksUntil("create 16", "create: 0") // the other one gives back
	other.end()
	kept := keeper.end()
	if !contains(kept.stderr, "gave back  256.0 MiB, because other programs lacked memory") {
		t.Errorf("%s", kept.stderr)
	}
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" || c.Requests == 0 || c.Evictions == 0 {
		t.Errorf("replayed: %+v", c)
	}
}

// TestNoRelief: a pool that is not to give keeps its blocks, and a program whose pool is not to ask gets none of others.
func TestNoRelief(t *testing.T) {
	t.Parallel()
	for _, flags := range [][2][]string{{{"--no-relief"}, nil}, {nil, {"--no-relief"}}} {
		env := card(t, 300<<20)
		keeper, _ := recordSteered(t, env, flags[0]...)
		for _, what := range []string{"create 128", "create 128", "release"} {
			keeper.tell("%s", what)
		}
		other, _ := recordSteered(t, env, flags[1]...)
		if got := other.tell("create 200"); got != "create: -4" {
			t.Errorf("%v: %s", flags, got)
		}
		other.end()
		if r := keeper.end(); contains(r.stderr, "gave back") {
			t.Errorf("%v: %s", flags, r.stderr)
		}
	}
}

// createdBy counts the creates that succeeded.
func createdBy(programs []*steered) (n int) {
	for _, p := range programs {
		n += strings.Count(string(p.stdout.bytes()), "create: 0\n")
	}
	return n
}

// TestNeighboursAskEachOther: two programs that need more than there is ask each other at the same time, again and again. Neither hangs,
// and what both keep idle is found.
func TestNeighboursAskEachOther(t *testing.T) {
	t.Parallel()
	env := card(t, 200<<20)
	var both []*steered
	for range 2 {
		p, _ := recordSteered(t, env)
		both = append(both, p)
	}
	for _, p := range both {
		p.tell("create 90")
	}
	for range 5 {
		for _, p := range both {
			p.tell("release")
		}
		for tries, before := 0, createdBy(both); tries < 5 && createdBy(both) == before; tries++ { // see asksUntil
			for _, p := range both { // each has 90 idle, and would take all
				if _, err := io.WriteString(p.in, "create 150\n"); err != nil {
					t.Fatal(err)
				}
				p.lines++
			}
			waitFor(t, "both answers", func() bool {
				return !slices.ContainsFunc(both, func(p *steered) bool { return strings.Count(string(p.stdout.bytes()), "\n") < p.lines })
			})
		}
	}
	for _, p := range both {
		p.end()
	}
	got := createdBy(both)
	if got != 7 { // the first of each, and one of each five pairs
		t.Errorf("%d creates, want 7:\n%s\n%s", got, both[0].stdout.bytes(), both[1].stdout.bytes())
	}
}
