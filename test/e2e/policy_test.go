package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// policyNames are those that the dashboard offers, in its order.
func policyNames(t *testing.T) []string {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "policies"}})
	var names []string
	for line := range strings.Lines(string(result.stdout)) {
		if line != "\n" && line != allocator.Auto+"\n" && !strings.HasPrefix(line, " ") { // auto is in no list to choose from
			names = append(names, strings.TrimSpace(line))
		}
	}
	if result.code != 0 || len(names) < 9 {
		t.Fatalf("policies: %s, %q", result, names)
	}
	return names
}

// goOver asks for the policy at a place in the dashboard's list, which is open.
func (term *terminal) goOver(at int) {
	term.t.Helper()
	term.keys(slices.Concat([]string{"g"}, slices.Repeat([]string{"j"}, at), []string{"Enter"})...)
}

// feed writes to a pipe until stopped, and returns all that it wrote.
func feed(t *testing.T, path string) (stop func() []byte) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	end, done := make(chan struct{}), make(chan []byte)
	go func() {
		var all []byte
		defer func() { done <- all }()
		pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer pipe.Close() //nolint:errcheck // the reader says what it got
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			piece := bytes.Repeat([]byte(fmt.Sprintf("%07d\n", i)), 32<<10/8)
			if _, err := pipe.Write(piece); err != nil {
				t.Error(err)
				return
			}
			all = append(all, piece...)
		}
	}()
	return func() []byte {
		close(end)
		return <-done
	}
}

// checkSwitched looks at the recording of a program that had several policies, the first of them first: all changes are in
// it, nothing of the driver's is left, and the tools say what there was.
func checkSwitched(t *testing.T, file string, policies []string) {
	t.Helper()
	f := reportOf(t, file)
	if f.Lost != 0 || f.InUse != 0 || f.Cached != 0 || f.DriverCreates != f.DriverReleases || f.Hits == 0 {
		t.Errorf("the report says %+v", f)
	}
	events := run(t, command{args: []string{gpumemtop(), "export", "--format", "ndjson", "-o", "-", file}})
	for _, policy := range policies[1:] {
		if !contains(events.stdout, `"policy=`+policy+`"`) {
			t.Errorf("no change to %s in the recording", policy)
		}
	}
	checkReport(t, file, "policy="+policies[len(policies)-1])
	checkKnown(t, file)
	if c := decidedAgain(t, file); !c.IsExact() || c.First != "" || c.Requests == 0 {
		t.Errorf("played again: %+v", *c)
	}
	replay := run(t, command{args: []string{gpumemtop(), "replay", "--policy", "futhark", file}})
	want := fmt.Sprintf("%d changes of the policy", len(policies)-1)
	if len(policies) == 2 {
		want = "1 change of the policy"
	}
	if replay.code != 0 || !contains(replay.stdout, want) {
		t.Errorf("replay: %s, without %q:\n%s", replay, want, replay.stdout)
	}
}

var unknownEvents = regexp.MustCompile(`unknown +\d+ events? about unknown objects`)

// checkKnown demands that the events of a recording are about what the recording knows.
func checkKnown(t *testing.T, file string) {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "report", "--all", file}})
	if result.code != 0 || unknownEvents.Match(result.stdout) {
		t.Errorf("events about nothing known: report: %s\n%s", result, result.stdout)
	}
}

// What a program asks for is the same under every policy. What a policy adds is not among it, and the summary tells both.
func TestPoliciesServeTheSameRequests(t *testing.T) {
	t.Parallel()
	c := command{args: []string{fault("findings"), "waste"}}
	_, none := runUnder(t, "none", c)
	for _, policy := range policyNames(t) {
		r, sum := runUnder(t, policy, c)
		wastes := sum.PeakInUse > sum.PeakRequested+sum.PeakRequested/64
		if sum.PeakRequested != none.PeakInUse || wastes != contains(r.stderr, " requested), ") || policy == "pow2" && !wastes {
			t.Errorf("%s: %d in use and %d requested at most, without a pool %d\n%s", policy, sum.PeakInUse, sum.PeakRequested, none.PeakInUse, r.stderr)
		}
	}
}

// TestPolicyChangesWhileTheProgramRuns goes through all policies and back to the first, while a program reads the memory that it
// gets: it prints the same as without gpumemtop.
func TestPolicyChangesWhileTheProgramRuns(t *testing.T) {
	t.Parallel()
	names := policyNames(t)
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	stop := feed(t, dir+"/pipe")
	term.run(dir, gpumemtop(), "--policy", "futhark", "-o", dir+"/x.gmt", "--", fault("reader"), "<", dir+"/pipe", ">", dir+"/out")
	term.await(`alloc/s`)
	term.await(`policy futhark`)
	term.keys("a")
	term.await(`switch to it`)
	policies := []string{"futhark"}
	for at := range slices.Concat(names, names[:1]) {
		at = (at + 3) % len(names) // pow2 first
		if names[at] == policies[len(policies)-1] {
			continue
		}
		term.goOver(at)
		term.await(`processes under ` + names[at] + `: 1 of 1`)
		policies = append(policies, names[at])
	}
	if len(policies) < len(names) {
		t.Fatalf("went through %q of %q", policies, names)
	}
	sent := stop()
	term.leave()
	term.await(`status=0`)
	term.await(`(?m)^done`)
	term.checkRestored(dir)
	bare := run(t, command{args: []string{fault("reader")}, stdin: bytes.NewReader(sent)})
	if out, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(out) != string(bare.stdout) || len(out) == 0 {
		t.Errorf("it prints %q (%v), bare %q", out, err, bare.stdout)
	}
	checkSwitched(t, dir+"/x.gmt", policies)
}

// TestPolicyChangesAgainAndAgain changes the policy from start to end of programs that compute: one that learns, and one
// whose threads do whatever OpenCL allows, and leave some of it behind.
func TestPolicyChangesAgainAndAgain(t *testing.T) {
	for name, test := range map[string]struct {
		words  []string
		leaves bool
	}{
		"train": {[]string{example("train"), "40"}, false},
		"soak":  {[]string{testProgram("soak-buffers"), "--ops", "800", "--threads", "3", "7"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			policies := changeUntilItEnds(t, dir, test.words)
			t.Logf("%d changes", len(policies)-1)
			bare := again(func() outcome { return runBare(t, test.words...) })
			if out, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(out) != string(bare.stdout) || len(out) == 0 {
				t.Errorf("it prints %q (%v), bare %q", out, err, bare.stdout)
			}
			f := reportOf(t, dir+"/x.gmt")
			if len(policies) < 2 || f.Lost != 0 || !test.leaves && (f.InUse+f.Cached != 0 || f.DriverCreates != f.DriverReleases) {
				t.Errorf("%d policies, the report says %+v", len(policies), f)
			}
			checkKnown(t, dir+"/x.gmt")
			if c := decidedAgain(t, dir+"/x.gmt"); !c.IsExact() || c.First != "" || c.Requests == 0 {
				t.Errorf("played again: %+v", *c)
			}
		})
	}
}

// changeUntilItEnds runs a program under the dashboard, recorded to x.gmt, and goes from policy to policy until it has
// ended. It returns those that it obeyed.
func changeUntilItEnds(t *testing.T, dir string, words []string) []string {
	t.Helper()
	names := policyNames(t)
	term := openTerminal(t, 120, 36)
	term.run(dir, append([]string{gpumemtop(), "--policy", "slab", "-o", dir + "/x.gmt", "--"}, append(words, ">", dir+"/out")...)...)
	term.await(`policy slab`)
	term.keys("a")
	policies := []string{"slab"}
	ended := func() bool { return strings.Contains(term.screen(), "status=") }
	for at := 1; !ended(); at = at%(len(names)-1) + 1 {
		if names[at] == policies[len(policies)-1] {
			continue
		}
		term.goOver(at)
		waitFor(t, "an answer, or the end", func() bool {
			screen := term.screen()
			if strings.Contains(screen, "EXITED") {
				term.keys("q")
			}
			return strings.Contains(screen, "status=") || strings.Contains(screen, "processes under "+names[at]+": 1 of 1")
		})
		if !ended() {
			policies = append(policies, names[at])
		}
	}
	term.await(`status=0`)
	return policies
}

// TestNoPolicyWithoutAPool: a program that was started without a pool reports that and continues unchanged.
func TestNoPolicyWithoutAPool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	term.run(dir, gpumemtop(), "--policy", "none", "--", example("stencil"), "1000000", "1M")
	term.await(`stencil\.c:\d+`)
	term.keys("a")
	term.await(`switch to it`)
	term.goOver(2)
	term.await(`policy none stays: the program was started without the library that pools`)
	term.await(`processes under none: 1 of 1`)
	term.keys("a") // not escape: with the next key right behind it, that would be another one, alt+q
	term.keys("q")
	term.await(`\[t\]erminate`)
	term.keys("t")
	term.await(`status=143`)
}

// TestTheLeaderIsAdopted runs a program whose policy pools nothing, simulates another policy beside it, and switches to that one.
func TestTheLeaderIsAdopted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	term := openTerminal(t, 120, 36)
	stop := feed(t, dir+"/pipe")
	term.run(dir, gpumemtop(), "--policy", "pinned", "--ghosts", "futhark", "-o", dir+"/x.gmt", "--", fault("reader"),
		"<", dir+"/pipe", ">", dir+"/out")
	term.await(`policy pinned`)            // the first snapshot, which has ghosts
	waitFor(t, "the leader", func() bool { // the first y that finds one shows the list, the next switches to it
		if strings.Contains(term.screen(), "1 ● now: futhark") {
			return true
		}
		term.keys("y")
		return false
	})
	term.keys("y")
	term.await(`futhark leads and is in force`)
	sent := stop()
	term.leave()
	term.await(`status=0`)
	bare := run(t, command{args: []string{fault("reader")}, stdin: bytes.NewReader(sent)})
	if out, err := os.ReadFile(filepath.Join(dir, "out")); err != nil || string(out) != string(bare.stdout) || len(out) == 0 {
		t.Errorf("it prints %q (%v), bare %q", out, err, bare.stdout)
	}
	checkSwitched(t, dir+"/x.gmt", []string{"pinned", "futhark"})
}
