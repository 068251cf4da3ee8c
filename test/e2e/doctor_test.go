package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// findings are the lines of doctor's report.
type findings struct {
	Usable bool
	Lines  []struct{ Area, Level, Text, Advice string }
}

// has reports whether a line of a level holds a text.
func (f *findings) has(level, text string) bool {
	for _, l := range f.Lines {
		if l.Level == level && strings.Contains(l.Text, text) {
			return true
		}
	}
	return false
}

func doctor(t *testing.T, code int, env ...string) findings {
	t.Helper()
	result := run(t, command{args: []string{gpumemtop(), "doctor", "--format", "json"}, env: env})
	if result.code != code || len(result.stderr) > 0 {
		t.Fatalf("status %v, want %d; stderr %s\n%s", result, code, result.stderr, result.stdout)
	}
	var f findings
	if err := json.Unmarshal(result.stdout, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDoctorFindsPoCL(t *testing.T) {
	f := doctor(t, 0)
	for _, want := range []string{"platform Portable Computing Language", "gets into programs by LD_PRELOAD", "libOpenCL.so", "(Portable Computing Language): driver"} {
		if !f.has("ok", want) {
			t.Errorf("no line with %q in %+v", want, f)
		}
	}
	if !f.Usable || f.has("problem", "") {
		t.Errorf("problems: %+v", f)
	}
}

// brokenDrivers makes a folder that names a driver that crashes when it is loaded, and one that is no library.
func brokenDrivers(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "crash.c")
	text := "#include <stdlib.h>\n__attribute__((constructor)) static void crash(void) { abort(); }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "libcrash.so")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	vendors := filepath.Join(dir, "vendors")
	if err := os.Mkdir(vendors, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"crash.icd": library, "text.icd": source} {
		if err := os.WriteFile(filepath.Join(vendors, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return vendors
}

// Drivers that crash when they are loaded, or are not libraries, are reported; the good one is found all the same where
// it comes first, and doctor lives on where it does not.
func TestDoctorOutlivesDrivers(t *testing.T) {
	f := doctor(t, 1, "OCL_ICD_VENDORS="+brokenDrivers(t), "GPUMEMTOP_REFRES=1s")
	for _, want := range []string{"libcrash.so does not load: signal: aborted", "crash.c does not load", "GPUMEMTOP_REFRES sets nothing"} {
		if !f.has("warning", want) {
			t.Errorf("no warning with %q in %+v", want, f)
		}
	}
	if !f.has("problem", "no OpenCL device was found") {
		t.Errorf("no problem: %+v", f)
	}
}

// What doctor says of attaching is what tracer/rights says: that it works, or in one warning why not and what to do.
func TestDoctorTellsWhetherProgramsCanBeWatched(t *testing.T) {
	f := doctor(t, 0)
	refusal := rights.ExamineThisSystem().RefusalError()
	lines := 0
	for _, l := range f.Lines {
		if l.Area != "attaching" {
			continue
		}
		lines++
		obstacle, refused := strings.CutPrefix(l.Text, "programs that run already cannot be watched: ")
		switch {
		case refused && refusal == nil:
			t.Errorf("refused although it works: %+v", l)
		case refused && (l.Level != "warning" || !strings.HasPrefix(refusal.Error(), obstacle+": ")):
			t.Errorf("got %+v, want %v", l, refusal)
		}
	}
	if works := f.has("ok", "programs that run already can be watched"); works != (refusal == nil) || lines < 8 {
		t.Errorf("works: %v, in %d lines; rights says %v: %+v", works, lines, refusal, f)
	}
}

// doctor reports which rights a user lacks.
func TestDoctorTellsAnOrdinaryUserWhatIsMissing(t *testing.T) {
	t.Parallel()
	refusal := rights.ExamineThisSystem().RefusalError()
	cmd := exec.Command(runnable(t), "doctor", "--format", "json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	cmd.Dir = "/"
	if os.Geteuid() == 0 {
		const unprivileged = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	} else if refusal == nil {
		t.Skip("this user has the rights, and only root can give them away")
	}
	out, err := cmd.Output() // whether OpenCL works for that user is not the matter here
	var f findings
	if jsonErr := json.Unmarshal(out, &f); jsonErr != nil {
		t.Fatalf("%v, %v: %s", err, jsonErr, out)
	}
	for _, l := range f.Lines {
		if l.Area == "attaching" && l.Level == "warning" && l.Advice != "" && (refusal != nil || strings.Contains(l.Text, "attach needs CAP_")) {
			return
		}
	}
	t.Errorf("nothing about rights: %+v", f)
}

// runnable copies gpumemtop to where every user can run it.
func runnable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "gpumemtop")
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	copyProgram(t, gpumemtop(), path)
	return path
}
