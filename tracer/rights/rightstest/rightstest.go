// Package rightstest keeps tests that need eBPF from failing where there is none.
package rightstest

import (
	"fmt"
	"os"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// SkippedEnv names a file to which a line is added for each test that is skipped. go test shows nothing of those, so
// make test counts them by it.
const SkippedEnv = "RIGHTSTEST_SKIPPED"

// Need skips the test, with the reason, where programs cannot be watched from here. Where they can, the test runs.
func Need(tb testing.TB) {
	tb.Helper()
	refusal := rights.Examine().Refusal()
	if refusal == nil {
		return
	}
	if path := os.Getenv(SkippedEnv); path != "" {
		if err := note(path, tb.Name(), refusal); err != nil {
			tb.Errorf("a test that is skipped could not be counted: %v", err)
		}
	}
	tb.Skipf("eBPF: %v", refusal)
}

// note adds a line in one write, for packages are tested at the same time.
func note(path, name string, refusal error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, "%s\t%v\n", name, refusal); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
