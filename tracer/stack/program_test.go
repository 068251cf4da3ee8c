package stack

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// process is the address space of a running process, by number or "self".
type process string

func (p process) MappingPath(m target.Mapping) (string, error) { return m.Path, nil }

func (p process) ReadMappings() ([]target.Mapping, error) {
	text, err := os.ReadFile("/proc/" + string(p) + "/maps")
	if err != nil {
		return nil, err
	}
	var mappings []target.Mapping
	for line := range strings.Lines(string(text)) {
		var m target.Mapping
		var rights string
		var major, minor uint64
		_, err := fmt.Sscanf(line, "%x-%x %s %x %x:%x %d", &m.Start, &m.End, &rights, &m.Offset, &major, &minor, &m.Inode)
		if err != nil {
			return nil, fmt.Errorf("mapping %q: %w", line, err)
		}
		if fields := strings.Fields(line); len(fields) > 5 {
			m.Path = strings.Join(fields[5:], " ")
		}
		m.Exec, m.Device = rights[2] == 'x', major<<8|minor
		mappings = append(mappings, m)
	}
	return mappings, nil
}

// capture is a call as the program reports it.
type capture struct {
	name   string
	sample wire.Sample
	frames []uint64 // by libgcc
	bases  []uint64 // dli_fbase of each
}

// running is a program that has reported everything and waits.
type running struct {
	process
	path     string
	captures []capture
}

// compile compiles testdata into a program and its two libraries.
func compile(t testing.TB, compiler, source string, flags ...string) string {
	t.Helper()
	folder := t.TempDir()
	run := func(compiler string, words ...string) {
		t.Helper()
		if out, err := exec.Command(compiler, words...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(words, " "), err, out)
		}
	}
	record, nest := filepath.Join(folder, "librecord.so"), filepath.Join(folder, "libnest.so")
	run("gcc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-I../../internal/wire", "-o", record, "testdata/record.c")
	c := map[string]string{"g++": "gcc", "clang++": "clang"}[compiler]
	if c == "" {
		c = compiler
	}
	run(c, append(flags[:len(flags):len(flags)], "-std=gnu11", "-shared", "-fPIC", "-o", nest, "testdata/nest.c")...)
	path := filepath.Join(folder, "program")
	run(compiler, append(flags, "-o", path, source, "-L"+folder, "-lrecord", "-lnest", "-lpthread",
		"-Wl,-z,lazy", "-Wl,-rpath,"+folder)...)
	return path
}

// pipes returns a command's standard input and output.
func pipes(t testing.TB, command *exec.Cmd) (in io.WriteCloser, out io.Reader) {
	t.Helper()
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err = command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return in, out
}

// start runs a program until it has reported everything.
func start(t testing.TB, path string) *running {
	t.Helper()
	command := exec.Command(path)
	in, out := pipes(t, command)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the program: %v", err)
		}
	})
	p := &running{process: process(strconv.Itoa(command.Process.Pid)), path: path}
	for r := bufio.NewReader(out); ; {
		name := readBytes(t, r)
		if len(name) == 0 {
			return p
		}
		p.captures = append(p.captures, readCapture(t, r, string(name)))
	}
}

func readCapture(t testing.TB, r io.Reader, name string) capture {
	t.Helper()
	c := capture{name: name}
	if err := wire.DecodeSample(readBytes(t, r), &c.sample); err != nil {
		t.Fatal(err)
	}
	for range readNumber(t, r) {
		var place [2]uint64
		if err := binary.Read(r, binary.LittleEndian, &place); err != nil {
			t.Fatal(err)
		}
		c.frames, c.bases = append(c.frames, place[0]), append(c.bases, place[1])
	}
	return c
}

func readNumber(t testing.TB, r io.Reader) uint32 {
	t.Helper()
	var n uint32
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil {
		t.Fatalf("the program ended early: %v", err)
	}
	return n
}

func readBytes(t testing.TB, r io.Reader) []byte {
	t.Helper()
	b := make([]byte, readNumber(t, r))
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// describe formats frames as offsets in modules.
func describe(w *Walker, frames []uint64) string {
	var text strings.Builder
	for _, address := range frames {
		path, base, _ := w.ModuleOfAddress(address)
		fmt.Fprintf(&text, " %s+%#x", filepath.Base(path), address-base)
	}
	return text.String()
}

var builds = []struct {
	name, compiler, source string
	flags                  []string
}{
	{"gcc", "gcc", "testdata/chain.c", []string{"-O2", "-fomit-frame-pointer"}},
	{"gcc with frame pointers", "gcc", "testdata/chain.c", []string{"-O2", "-fno-omit-frame-pointer", "-fcf-protection"}},
	{"gcc without optimisation", "gcc", "testdata/chain.c", []string{"-O0"}},
	{"gcc at fixed addresses", "gcc", "testdata/chain.c", []string{"-O3", "-no-pie"}},
	{"gcc with small code", "gcc", "testdata/chain.c", []string{"-Os", "-mno-red-zone"}},
	{"g++", "g++", "testdata/chain.cc", []string{"-O2", "-fomit-frame-pointer"}},
	{"clang", "clang", "testdata/chain.c", []string{"-O2", "-fomit-frame-pointer"}},
	{"clang with frame pointers", "clang", "testdata/chain.c", []string{"-O2", "-fno-omit-frame-pointer"}},
	{"clang with large pages", "clang", "testdata/chain.c", []string{"-O1", "-Wl,-z,max-page-size=0x200000"}},
	{"clang++", "clang++", "testdata/chain.cc", []string{"-O2", "-fomit-frame-pointer"}},
}

func TestWalkFindsWhatLibgccFinds(t *testing.T) {
	for _, build := range builds {
		t.Run(build.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(build.compiler); err != nil && strings.HasPrefix(build.compiler, "clang") {
				t.Skipf("no stacks of clang code are walked: %v", err)
			}
			p := start(t, compile(t, build.compiler, build.source, build.flags...))
			files := NewFiles()
			defer files.Close() //nolint:errcheck // only read
			w := New(p, files)
			seen := map[string]int{}
			for i := range p.captures {
				p.captures[i].check(t, w)
				seen[p.captures[i].name]++
				for _, address := range p.captures[i].frames {
					if path, _, _ := w.ModuleOfAddress(address); path == "[vdso]" {
						seen[path]++
					}
				}
				if sample := &p.captures[i].sample; sample.Tid != sample.Pid {
					seen["another thread"]++
				}
			}
			t.Log(seen)
			wanted := []string{
				"[vdso]", "alloca", "alternate stack", "another thread", "callback of the C library", "chain", "coroutine",
				"dynamic linker", "large frame", "realigned", "signal", "step", "truncated",
			}
			if strings.HasSuffix(build.source, ".cc") {
				wanted = []string{"another thread", "catch", "comparison", "destructor", "lambda"}
			}
			for _, name := range wanted {
				if seen[name] == 0 {
					t.Errorf("the program reported nothing of %q", name)
				}
			}
		})
	}
}

// check walks the stack of a capture and compares the result.
func (c *capture) check(t *testing.T, w *Walker) {
	t.Helper()
	before := w.TruncatedCount()
	got, want := w.WalkStack(&c.sample, make([]uint64, 0, wire.StackMax)), c.frames
	if c.name == "truncated" || c.name == "alternate stack" {
		if w.TruncatedCount() != before+1 || len(got) == 0 || len(got) >= len(want) {
			t.Errorf("%s: %d of %d frames, truncated %d times", c.name, len(got), len(want), w.TruncatedCount()-before)
		}
		want = want[:min(len(got), len(want))]
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s at %#x:\n got%s\nwant%s", c.name, c.sample.Ip, describe(w, got), describe(w, want))
		return
	}
	for i, address := range got {
		_, base, ok := w.ModuleOfAddress(address)
		if ok != (c.bases[i] != 0) || ok && base != c.bases[i] {
			t.Errorf("%s: frame %d at %#x in a module at %#x (%v), dladdr says %#x", c.name, i, address, base, ok, c.bases[i])
		}
	}
}
