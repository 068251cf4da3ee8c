package target

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// openEnv makes the test binary open a process and report the result, instead of running tests.
const openEnv = "TARGET_TEST_OPEN"

func TestMain(m *testing.M) {
	if text := os.Getenv(openEnv); text != "" {
		pid, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		err = lookInto(pid)
		fmt.Printf("%v %v\n", errors.Is(err, ErrDenied), err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// lookInto opens a process and its libraries, and returns the first error.
func lookInto(pid int) error {
	p, err := OpenProcess(pid)
	if err != nil {
		return err
	}
	maps, err := p.ReadMappings()
	if err != nil {
		return err
	}
	for _, l := range NewCatalog(someCore, nil).LibrariesOfProcess(p, maps) {
		if l.Err != nil {
			return l.Err
		}
	}
	return nil
}

const nobodyID = 65534

// asNobody has the test binary inspect a process without any rights, and returns its report.
func asNobody(t *testing.T, pid int) string {
	t.Helper()
	needRoot(t)
	binary, err := os.Open("/proc/self/exe") // the path may be in a folder of root's
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close() //nolint:errcheck // only executed
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{binary}
	cmd.Dir = "/"
	cmd.Env = []string{openEnv + "=" + strconv.Itoa(pid)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s%v", out, err)
	}
	return string(out)
}

// build compiles C into a folder and returns the path.
func build(t testing.TB, name, source string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "source.c")
	put(t, file, source)
	path := filepath.Join(dir, name)
	arguments := append([]string{"-O1", "-o", path, file}, flags...)
	if out, err := exec.Command("gcc", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return path
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// copyOf copies a file into a new folder.
func copyOf(t *testing.T, from, name string) string {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	put(t, path, string(data))
	return path
}

// holderSource is a program that loads the library of its first argument, calls the function of its second ("-" for none),
// reports the addresses of the others, and runs until its input ends.
const holderSource = `
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int count, char **names)
{
	void *library = count > 1 ? dlopen(names[1], RTLD_NOW) : NULL;
	if (count > 1 && !library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (count > 2 && strcmp(names[2], "-") != 0) {
		unsigned n = 0;
		((int (*)(unsigned, void *, unsigned *))dlsym(library, names[2]))(0, NULL, &n);
	}
	for (int i = 3; i < count; i++)
		printf("%s %p\n", names[i], dlsym(library, names[i]));
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}`

func holder(t *testing.T) string { return build(t, "holder", holderSource, "-ldl") }

// started is a process that a test has started.
type started struct {
	*exec.Cmd
	input     io.WriteCloser
	addresses map[string]uint64 // that it has reported
}

// start runs a program until it reports that it is ready. It ends with the test.
func start(t *testing.T, command ...string) *started {
	t.Helper()
	s := &started{Cmd: exec.Command(command[0], command[1:]...), addresses: map[string]uint64{}}
	s.Stderr = os.Stderr
	in, err := s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	s.input = in
	t.Cleanup(s.stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return s
		}
		if name, address, found := strings.Cut(lines.Text(), " 0x"); found {
			s.addresses[name], err = strconv.ParseUint(address, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatalf("%v ended before it was ready: %v", command, s.Wait())
	return nil
}

// stop ends the process and waits for it. A second call does nothing.
func (s *started) stop() {
	_ = s.input.Close()
	if s.ProcessState == nil {
		_ = s.Wait()
	}
}

// opened returns the process and its mappings.
func opened(t *testing.T, pid int) (*Process, []Mapping) {
	t.Helper()
	p, err := OpenProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := p.ReadMappings()
	if err != nil {
		t.Fatal(err)
	}
	return p, maps
}

// offsetOf returns the offset in its file of the code at an address.
func offsetOf(t *testing.T, maps []Mapping, address uint64) uint64 {
	t.Helper()
	for i := range maps {
		if m := &maps[i]; address >= m.Start && address < m.End {
			return address - m.Start + m.Offset
		}
	}
	t.Fatalf("nothing is mapped at %#x", address)
	return 0
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s", what)
		}
	}
}

// needRoot skips a test that mounts something or switches to another user.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it mounts, or switches to another user")
	}
}
