package symbol

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/hostileelf"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/racetest"
)

// common prints the place that called it: a name, the module, and the return address relative to its base.
const common = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#ifdef __cplusplus
extern "C"
#endif
__attribute__((noinline)) void here(const char *name)
{
	char *address = (char *)__builtin_return_address(0);
	Dl_info info;
	if (dladdr(address, &info))
		printf("%s %s %lx\n", name, info.dli_fname, (unsigned long)(address - (char *)info.dli_fbase));
}
#define HERE(name) do { here(name); __asm__ volatile(""); } while (0)
`

const programC = common + `
static inline __attribute__((always_inline)) void deepest(void) { HERE("deepest"); }
static inline __attribute__((always_inline)) void deeper(void)
{
	deepest(); // in deeper
}
__attribute__((noinline)) int work(int x)
{
	HERE("work");
	return x + 1;
}
__attribute__((noinline)) void outer(void)
{
	deeper(); // in outer
}
__attribute__((noinline, noreturn)) void last(void)
{
	HERE("last");
	__builtin_unreachable();
}
int main(int argc, char **argv)
{
	(void)argv;
	work(argc);
	outer();
	HERE("main");
	return 0;
}
`

const programCPP = common + `
namespace pool {
template <class T> struct Stack {
	__attribute__((noinline)) void push(T) { HERE("push"); }
};
template <class T> __attribute__((noinline)) T make(T x)
{
	Stack<T> s;
	s.push(x);
	HERE("make");
	return x;
}
__attribute__((noinline)) void take(const char *, int) { HERE("take"); }
} // namespace pool
int main(int argc, char **)
{
	pool::make(argc);
	pool::take("", 1);
	auto f = []() __attribute__((noinline)) { HERE("lambda"); };
	f();
	HERE("main");
}
`

// place is where a test program says it is.
type place struct {
	module string
	offset uint64
}

// build compiles a program and returns its path.
func build(tb testing.TB, source string, flags ...string) string {
	tb.Helper()
	compiler, name := "gcc", "program.c"
	if strings.Contains(source, "namespace") {
		compiler, name = "g++", "program.cpp"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		tb.Skipf("no compiler to make a test program with: %v", err)
	}
	directory := tb.TempDir()
	file := filepath.Join(directory, name)
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		tb.Fatal(err)
	}
	program := filepath.Join(directory, "program")
	command(tb, compiler, append([]string{"-o", program, file}, flags...)...)
	return program
}

func command(tb testing.TB, name string, arguments ...string) {
	tb.Helper()
	if out, err := exec.Command(name, arguments...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %q: %v\n%s", name, arguments, err, out)
	}
}

// run runs a test program and returns the places it printed.
func run(t *testing.T, program string) map[string]place {
	t.Helper()
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatalf("run %s: %v", program, err)
	}
	places := map[string]place{}
	for scanner := bufio.NewScanner(bytes.NewReader(out)); scanner.Scan(); {
		var name string
		var p place
		if _, err := fmt.Sscanf(scanner.Text(), "%s %s %x", &name, &p.module, &p.offset); err != nil {
			t.Fatalf("%q: %v", scanner.Text(), err)
		}
		places[name] = p
	}
	return places
}

// lineOf returns the number of the line that contains text.
func lineOf(t *testing.T, source, text string) int {
	t.Helper()
	before, _, found := strings.Cut(source, text)
	if !found {
		t.Fatalf("no %q in the source", text)
	}
	return strings.Count(before, "\n") + 1
}

// checkFrame compares a frame with what it should be, its file by base name.
func checkFrame(t *testing.T, got Frame, function, file string, line int) {
	t.Helper()
	base := ""
	if got.File != "" {
		base = filepath.Base(got.File)
	}
	if got.Function != function || base != file || got.Line != line {
		t.Errorf("got %s %s:%d, want %s %s:%d", got.Function, base, got.Line, function, file, line)
	}
}

func TestPrograms(t *testing.T) {
	for _, test := range []struct {
		name  string
		flags []string
		lines bool // known
		names bool
	}{
		{"debug", []string{"-g", "-O0"}, true, true},
		{"optimised", []string{"-g", "-O2"}, true, true},
		{"DWARF 4", []string{"-gdwarf-4", "-O2"}, true, true},
		{"compressed", []string{"-g", "-O2", "-gz"}, true, true},
		{"no PIE", []string{"-g", "-O2", "-no-pie"}, true, true},
		{"sections collected", []string{"-g", "-O2", "-ffunction-sections", "-Wl,--gc-sections"}, true, true},
		{"no debug information", []string{"-O2"}, false, true},
		{"stripped, no PIE", []string{"-O2", "-s", "-no-pie"}, false, false},
		{"stripped", []string{"-O2", "-s"}, false, false},
		{"stripped, exporting", []string{"-O2", "-s", "-rdynamic"}, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			program := build(t, programC, test.flags...)
			r := NewResolver(Options{})
			for name, p := range run(t, program) {
				frame := r.FramesAt(p.module, p.offset)[0]
				function, file, line := name, "program.c", lineOf(t, programC, `HERE("`+name+`")`)
				if !test.lines {
					file, line = "", 0
					if name == "deepest" {
						function = "outer"
					}
				}
				if !test.names {
					function = ""
				}
				checkFrame(t, frame, function, file, line)
				if frame.Module != program || frame.Offset != p.offset {
					t.Errorf("module %s, offset %x; want %s, %x", frame.Module, frame.Offset, program, p.offset)
				}
			}
		})
	}
}

func TestInlinedFrames(t *testing.T) {
	p := run(t, build(t, programC, "-g", "-O2"))["deepest"]
	frames := NewResolver(Options{}).FramesAt(p.module, p.offset)
	if len(frames) != 3 {
		t.Fatalf("%d frames, want 3: %+v", len(frames), frames)
	}
	checkFrame(t, frames[0], "deepest", "program.c", lineOf(t, programC, `HERE("deepest")`))
	checkFrame(t, frames[1], "deeper", "program.c", lineOf(t, programC, "// in deeper"))
	checkFrame(t, frames[2], "outer", "program.c", lineOf(t, programC, "// in outer"))
}

func TestTemplates(t *testing.T) {
	for _, flags := range [][]string{{"-g", "-O0"}, {"-g", "-O2"}} {
		places := run(t, build(t, programCPP, flags...))
		r := NewResolver(Options{})
		for name, function := range map[string]string{
			"push": "pool::Stack<int>::push", "make": "pool::make<int>", "take": "pool::take", "main": "main",
			"lambda": "main::{lambda()#1}::operator()",
		} {
			p := places[name]
			checkFrame(t, r.FramesAt(p.module, p.offset)[0], function, "program.cpp", lineOf(t, programCPP, `HERE("`+name+`")`))
		}
	}
}

func TestSharedLibrary(t *testing.T) {
	library := build(t, common+"\nvoid entry(void)\n{\n\tHERE(\"entry\");\n}\n", "-g", "-shared", "-fPIC")
	main := "void entry(void);\nint main(void) { entry(); return 0; }\n"
	program := build(t, main, library, "-Wl,-rpath,"+filepath.Dir(library))
	p := run(t, program)["entry"]
	if p.module != library {
		t.Fatalf("the library is %s, want %s", p.module, library)
	}
	checkFrame(t, NewResolver(Options{}).FramesAt(p.module, p.offset)[0], "entry", "program.c", lineOf(t, common, "#define HERE")+4)
}

func TestSeparateDebugFile(t *testing.T) {
	for name, flags := range map[string][]string{
		"by name": {"-g", "-O0", "-Wl,--build-id=none"}, "by build id": {"-g", "-O0", "-Wl,--build-id"},
	} {
		t.Run(name, func(t *testing.T) {
			program := build(t, programC, flags...)
			places := run(t, program)
			debug := program + ".debug"
			command(t, "objcopy", "--only-keep-debug", program, debug)
			r := NewResolver(Options{})
			r.root = t.TempDir()
			if name == "by name" {
				command(t, "objcopy", "--strip-all", "--add-gnu-debuglink="+debug, program)
			} else {
				command(t, "objcopy", "--strip-all", program)
				keepByID(t, program, debug, r.root)
			}
			p := places["work"]
			checkFrame(t, r.FramesAt(p.module, p.offset)[0], "work", "program.c", lineOf(t, programC, `HERE("work")`))

			// A debug file of another build must not be believed.
			if name == "by name" {
				if err := os.WriteFile(debug, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				command(t, "cp", build(t, programC, "-g", "-O2", "-Wl,--build-id=none"), debug)
				fresh := NewResolver(Options{})
				fresh.root = r.root
				checkFrame(t, fresh.FramesAt(p.module, p.offset)[0], "", "", 0)
			}
		})
	}
}

// keepByID moves a debug file to where distributions put it.
func keepByID(t *testing.T, program, debug, root string) {
	t.Helper()
	f, err := openObject(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	id := fmt.Sprintf("%x", buildID(f.File))
	if got := BuildID(program); got != id || id == "" {
		t.Errorf("BuildID is %q, want %q", got, id)
	}
	directory := filepath.Join(root, ".build-id", id[:2])
	if err := os.MkdirAll(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(debug, filepath.Join(directory, id[2:]+".debug")); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoModule(t *testing.T) {
	directory := t.TempDir()
	pipe := filepath.Join(directory, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(directory, "text")
	if err := os.WriteFile(text, []byte("no ELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(directory, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := NewResolver(Options{})
	for _, module := range []string{"", "/no/such/file", directory, pipe, "/dev/zero", text, empty, "linux-vdso.so.1", "a\x00b"} {
		if got, want := r.FramesAt(module, 0x10)[0], (Frame{Module: module, Offset: 0x10}); got != want {
			t.Errorf("Frames(%q) = %+v, want %+v", module, got, want)
		}
		if id := BuildID(module); id != "" {
			t.Errorf("BuildID(%q) = %q", module, id)
		}
	}
}

func TestOffsetsOutside(t *testing.T) {
	program := build(t, programC, "-g")
	r := NewResolver(Options{})
	for _, offset := range []uint64{0, 1, 1 << 40, ^uint64(0)} {
		if got, want := r.FramesAt(program, offset)[0], (Frame{Module: program, Offset: offset}); got != want {
			t.Errorf("Frames(%x) = %+v, want %+v", offset, got, want)
		}
	}
}

func TestModuleReplaced(t *testing.T) {
	first, second := build(t, programC, "-g"), build(t, "int x;\n"+programC, "-g", "-DPAD=1")
	p, q := run(t, first)["work"], run(t, second)["work"]
	r := NewResolver(Options{})
	line := r.FramesAt(first, p.offset)[0].Line
	if err := os.Rename(second, first); err != nil {
		t.Fatal(err)
	}
	if got := r.FramesAt(first, q.offset)[0].Line; got != line+1 {
		t.Errorf("after the file was replaced the line is %d, want %d", got, line+1)
	}
}

func TestConcurrentUse(t *testing.T) {
	places := run(t, build(t, programC, "-g", "-O2"))
	r := NewResolver(Options{})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for name, p := range places {
				if got := r.FramesAt(p.module, p.offset)[0].Function; got != name {
					t.Errorf("function is %q, want %q", got, name)
				}
			}
		})
	}
	wait.Wait()
}

func TestDemangled(t *testing.T) {
	for name, want := range map[string]string{
		"main": "main", "main.cold": "main", "f.part.0.isra.12": "f", "main.main": "main.main",
		"_ZN4pool4makeIiEET_S1_": "pool::make<int>", "_ZN4pool4takeEPKci.cold": "pool::take", "_Z": "_Z", "": "",
	} {
		if got := shortDemangled(name); got != want {
			t.Errorf("demangled(%q) = %q, want %q", name, got, want)
		}
	}
}

// FuzzLoad overwrites pieces of a real program with debug information, and resolves all over it. Odd inputs are taken
// as a whole file.
func FuzzLoad(f *testing.F) {
	racetest.Slow(f)
	seed, err := os.ReadFile(build(f, programC, "-g", "-O2"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(0), []byte("\x7fELF"))
	for at := 0; at < len(seed); at += 97 {
		f.Add(uint32(at), []byte{0xff, 0xff, 0xff, 0x7f, byte(at), byte(at >> 8)})
	}
	for _, file := range hostileelf.HostileFiles() {
		if len(file) < 8<<10 { // others take too long, instrumented: see test/fuzz.sh
			f.Add(uint32(0), append(file, make([]byte, 1-len(file)%2)...))
		}
	}
	f.Fuzz(func(t *testing.T, at uint32, data []byte) {
		program := bytes.Clone(seed)
		copy(program[at%uint32(len(program)):], data)
		path := filepath.Join(t.TempDir(), "program")
		if len(data)%2 == 1 {
			program = data
		}
		if err := os.WriteFile(path, program, 0o600); err != nil {
			t.Fatal(err)
		}
		r := NewResolver(Options{})
		r.root = "/nonexistent"
		for _, offset := range []uint64{0, 0x1000, 0x1075, 0x1190, 0x11a8, 0x11d0, 1 << 63} {
			if got := r.FramesAt(path, offset)[0]; got.Module != path || got.Offset != offset {
				t.Errorf("frame is %+v", got)
			}
		}
	})
}
