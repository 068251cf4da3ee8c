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
)

// steered is a program that does what it is told, and tells what came of it.
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
	if c := decidedAgain(t, file); !c.Exact() || c.First != "" || c.Requests == 0 || c.Evictions == 0 {
		t.Errorf("replayed: %+v", c)
	}
	if text, err := os.ReadFile(filepath.Join(group, "memory.failcnt")); err == nil {
		t.Logf("the group refused memory %s times", strings.TrimSpace(string(text)))
	}
}
