// Package rightstest skips tests that need eBPF where it is not available.
package rightstest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// SkippedEnv names a file to which each skipped test adds a line. go test does not show skipped tests, so make test counts
// them there.
const SkippedEnv = "RIGHTSTEST_SKIPPED"

// examined examines the machine once, because no test changes it.
var examined = sync.OnceValue(rights.ExamineThisSystem)

// NeedAttach skips the test, with the reason, if attach does not work here.
func NeedAttach(tb testing.TB) {
	tb.Helper()
	if refusal := examined().RefusalError(); refusal != nil {
		skipWithReason(tb, refusal)
	}
}

// NeedAttachWithSeccomp is Need for programs with a seccomp filter, which some kernels kill.
func NeedAttachWithSeccomp(tb testing.TB) {
	tb.Helper()
	NeedAttach(tb)
	if report := examined(); report.KillsFiltered {
		skipWithReason(tb, errors.New(report.Feature(rights.FeatureFilters).Detail))
	}
}

func skipWithReason(tb testing.TB, reason error) {
	tb.Helper()
	if path := os.Getenv(SkippedEnv); path != "" {
		if err := noteSkipped(path, tb.Name(), reason); err != nil {
			tb.Errorf("a test that is skipped could not be counted: %v", err)
		}
	}
	tb.Skipf("eBPF: %v", reason)
}

// noteSkipped adds a line in one write, since packages are tested in parallel.
func noteSkipped(path, name string, reason error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s\t%v\n", name, reason); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// pidNamespace are the arguments with which unshare(1) makes a pid namespace, as a container has it.
var pidNamespace = []string{"--pid", "--kill-child", "--mount-proc"}

// NeedPidNamespace is Need for tests that make pid namespaces.
func NeedPidNamespace(tb testing.TB) {
	tb.Helper()
	NeedAttach(tb)
	if out, err := exec.CommandContext(tb.Context(), "unshare", append(pidNamespace, "true")...).CombinedOutput(); err != nil {
		skipWithReason(tb, fmt.Errorf("no pid namespace can be made: %w: %s", err, bytes.TrimSpace(out)))
	}
}

// RunInPidNamespace runs other tests of this binary in a pid namespace of its own. All must pass.
func RunInPidNamespace(t *testing.T, names ...string) {
	t.Helper()
	NeedPidNamespace(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arguments := append(pidNamespace, self, "-test.v", "-test.run=^("+strings.Join(names, "|")+")$")
	out, err := exec.CommandContext(t.Context(), "unshare", arguments...).CombinedOutput()
	for _, name := range names {
		if err != nil || !bytes.Contains(out, []byte("\n--- PASS: "+name+" ")) {
			t.Fatalf("%s, %v: %s", name, err, out)
		}
	}
}
