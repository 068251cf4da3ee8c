package rightstest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// A test runs if Examine permits it. Otherwise, as in a process without rights, it is skipped and counted.
func TestNeed(t *testing.T) {
	refusal := rights.ExamineThisSystem().RefusalError()
	ran := t.Run("here", func(t *testing.T) {
		NeedAttach(t)
		if refusal != nil {
			t.Errorf("it runs, although %v", refusal)
		}
	})
	if !ran || os.Geteuid() != 0 {
		return
	}
	dir := t.TempDir()
	program, counted := filepath.Join(dir, "test"), filepath.Join(dir, "skipped.txt")
	copyFile(t, program)
	for _, path := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.run", "^TestNeed$/^here$")
	cmd.Env, cmd.Dir = []string{SkippedEnv + "=" + counted}, "/"
	const nobodyID = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("eBPF: attach ")) || !bytes.Contains(out, []byte("--- SKIP: TestNeed/here")) {
		t.Errorf("%v: %s", err, out)
	}
	lines, err := os.ReadFile(counted)
	if err != nil || !regexp.MustCompile(`^TestNeed/here\tattach [^\n]*\n$`).Match(lines) {
		t.Errorf("counted %q, %v", lines, err)
	}
}

// copyFile copies this test binary to where every user can run it.
func copyFile(t *testing.T, path string) {
	t.Helper()
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		t.Fatal(err)
	}
}
