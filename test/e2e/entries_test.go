package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// entry is a way by which a program reaches OpenCL. Whichever it uses, every create is seen once and its output is what
// it is without us.
type entry struct {
	name    string
	args    []string
	env     []string
	creates []uint64 // by process, in the order of their first calls
	hits    uint64   // the fewest under a pooling policy
	stderr  string   // a pattern
}

// libOpenCL is the path of the system's loader, as the linker finds it.
func libOpenCL(t *testing.T) string {
	t.Helper()
	libraries, err := exec.Command("ldd", example("tiny")).Output()
	if err != nil {
		t.Fatalf("ldd: %v", err)
	}
	found := regexp.MustCompile(`libOpenCL\.so\S* => (/\S+)`).FindSubmatch(libraries)
	if found == nil {
		t.Fatalf("where is libOpenCL?\n%s", libraries)
	}
	return string(found[1])
}

// copyOf copies a file into a fresh folder, under another name.
func copyOf(t *testing.T, file, name string, mode os.FileMode) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// compiled compiles a C source with more arguments for gcc.
func compiled(t *testing.T, name, source string, more ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	gcc := exec.Command("gcc", append([]string{"-o", path, source}, more...)...)
	if output, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", source, err, output)
	}
	return path
}

// sanitized is an example with a sanitizer, which intercepts much of what we stand in front of.
func sanitized(t *testing.T, example, sanitizer string) string {
	t.Helper()
	source := func(name string) string { return filepath.Join(root, "examples", name+".c") }
	return compiled(t, example+"-"+sanitizer, source(example), source("gpu"), source("common"), "-fsanitize="+sanitizer, "-g", "-lOpenCL")
}

// A driver may leak in what the library tries with it. That is no leak of the program, which would end with another status. The
// example has no kernel: PoCL leaks when it compiles the first one.
func TestLeakCheckers(t *testing.T) {
	t.Parallel()
	for _, sanitizer := range []string{"address", "leak"} {
		program := sanitized(t, "tiny", sanitizer)
		bare := runBare(t, program)
		if bare.code != 0 {
			t.Fatalf("bare: %s\n%s", bare, bare.stderr)
		}
		for _, policy := range []string{"none", "futhark", "slab", "arena"} {
			here := run(t, command{args: []string{gpumemtop(), "record", "--policy", policy, "-o", t.TempDir() + "/x.gmt", "--", program}})
			if difference := differs(bare, here); difference != "" || contains(here.stderr, "LeakSanitizer") {
				t.Errorf("%s sanitizer, %s: %s", sanitizer, policy, difference)
			}
		}
	}
}

// What a user preloads and wraps OpenCL gets the program's calls as often as without us, whatever the policy, and however it finds
// the next functions: its own, which it calls by name, too. We see all calls, and call sites are the program's.
func TestPreloadedWrapper(t *testing.T) {
	t.Parallel()
	source := filepath.Join(root, "test/programs/preloaded/wraps.c")
	for name, flags := range map[string][]string{"next": nil, "by handle": {"-DBY_HANDLE"}, "linked": {"-lOpenCL"}} {
		library := "LD_PRELOAD=" + compiled(t, "libwraps.so", source, append([]string{"-shared", "-fPIC", "-g"}, flags...)...)
		for _, program := range [][]string{
			{example("leak"), "5"}, {"env", "-u", "OPENCL_LAYERS", example("leak"), "5"}, {testProgram("dynamic"), "libOpenCL.so.1"},
		} {
			bare := run(t, command{args: program, env: []string{library}})
			for _, policy := range []string{"none", "futhark", "slab"} {
				file := filepath.Join(t.TempDir(), "x.json")
				args := append([]string{gpumemtop(), "--headless", "--policy", policy, "--summary", file, "--"}, program...)
				here := run(t, command{args: args, env: []string{library}})
				difference, got := differs(bare, here), readSummary(t, file)
				if difference != "" || got.Hits+got.Misses != 20 || !contains(bare.stdout, "wraps: ") {
					t.Errorf("%s, %s, %s: %d requests: %s", name, program, policy, got.Hits+got.Misses, difference)
				}
				if leaks := program[0] != testProgram("dynamic"); leaks != contains(here.stderr, "at leak.c:") {
					t.Errorf("%s, %s: %s", name, program, here.stderr)
				}
			}
		}
	}
}

// entries returns the ways into a program. leak creates four times the buffers that it leaks, dynamic 20, one after the
// other. forker's child that forks late is not seen.
func entries(t *testing.T) []entry {
	t.Helper()
	leak, dynamic, twenty := example("leak"), testProgram("dynamic"), []uint64{20}
	bundled := copyOf(t, libOpenCL(t), "libbundled.so", 0o644)
	layer := compiled(t, "libother.so", filepath.Join(root, "shim/test/fake_layer.c"), "-shared", "-fPIC", "-O2", "-fvisibility=hidden")
	return []entry{
		{name: "linked", args: []string{leak, "5"}, creates: twenty},
		{name: "preloaded only", args: []string{"env", "-u", "OPENCL_LAYERS", leak, "5"}, creates: twenty},
		{name: "layer only", args: []string{"env", "-u", "LD_PRELOAD", leak, "5"}, creates: twenty},
		{name: "behind another layer", args: []string{leak, "5"}, env: []string{"OPENCL_LAYERS=" + layer}, creates: twenty},
		{name: "dlopen libOpenCL.so.1", args: []string{dynamic, "libOpenCL.so.1"}, creates: twenty, hits: 15},
		{name: "dlopen libOpenCL.so", args: []string{dynamic, "libOpenCL.so"}, creates: twenty, hits: 15},
		{name: "dlopen by path", args: []string{dynamic, libOpenCL(t)}, creates: twenty, hits: 15},
		{name: "RTLD_DEEPBIND", args: []string{dynamic, "@libOpenCL.so.1"}, creates: twenty, hits: 15},
		{name: "bundled loader", args: []string{dynamic, bundled}, creates: twenty, hits: 15},
		{name: "bundled loader, RTLD_DEEPBIND", args: []string{dynamic, "@" + bundled}, creates: twenty, hits: 15},
		{name: "sh -c", args: []string{"sh", "-c", leak + " 5; " + dynamic + " " + bundled}, creates: []uint64{20, 20}},
		{name: "xargs", args: []string{"sh", "-c", "printf '3\n4\n5\n' | xargs -n 1 " + leak}, creates: []uint64{12, 16, 20}},
		{name: "fork", args: []string{fault("forker")}, creates: []uint64{20, 41, 20}},
		{ // PoCL leaks when it compiles a kernel for the first time
			name: "address sanitizer", args: []string{sanitized(t, "stencil", "address"), "10", "1M"}, env: []string{"ASAN_OPTIONS=detect_leaks=0"},
			creates: []uint64{11},
		},
		{name: "thread sanitizer", args: []string{sanitized(t, "stencil", "thread"), "10", "1M"}, creates: []uint64{11}},
		{
			name: "fork and exec behind another layer", args: []string{fault("forker")}, env: []string{"OPENCL_LAYERS=" + layer},
			creates: []uint64{20, 41, 20},
		},
	}
}

// closedPrograms are programs into which nothing can be loaded. gpumemtop reports that, and they run as ever.
func closedPrograms(t *testing.T) []entry {
	t.Helper()
	source := filepath.Join(t.TempDir(), "static.c")
	if err := os.WriteFile(source, []byte("#include <stdio.h>\nint main(void) { return puts(\"static\") < 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []entry{
		{name: "static", args: []string{compiled(t, "static", source, "-static")}, stderr: "cannot be pooled: it is linked statically"},
		{name: "static-pie", args: []string{compiled(t, "static-pie", source, "-static-pie")}, stderr: "cannot be pooled: it is linked statically"},
		{name: "sudo", args: []string{"sudo", "-V"}, stderr: "put gpumemtop behind it, as in sudo gpumemtop ./app"},
		{
			name: "oclgrind", args: []string{"oclgrind", example("tiny")},
			stderr: "before ours; put gpumemtop behind it, as in oclgrind gpumemtop ./app",
		},
		{name: "setuid", args: []string{setuidProgram(t), "--version"}, stderr: "cannot be pooled: it is setuid"},
	}
}

// setuidProgram returns a program that runs with another user's rights: su, or for root a copy that another user owns.
func setuidProgram(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/usr/bin/su"
	}
	path := copyOf(t, "/usr/bin/env", "setuid-env", 0o755)
	if err := os.Chown(path, 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEntries(t *testing.T) {
	t.Parallel()
	for _, e := range append(entries(t), closedPrograms(t)...) {
		t.Run(e.name, func(t *testing.T) {
			bare := run(t, command{args: e.args, env: e.env})
			if bare.code != 0 {
				t.Fatalf("bare: ended with %s\n%s", bare, bare.stderr)
			}
			for _, policy := range []string{"none", "futhark"} {
				t.Run(policy, func(t *testing.T) { e.check(t, policy, bare) })
			}
		})
	}
}

func (e *entry) check(t *testing.T, policy string, bare outcome) {
	t.Helper()
	result, sum := runUnder(t, policy, command{args: e.args, env: e.env})
	if difference := differs(bare, result); difference != "" {
		t.Error(difference)
	}
	var total uint64
	if len(sum.Processes) != len(e.creates) {
		t.Errorf("%d processes seen, want %d", len(sum.Processes), len(e.creates))
	}
	for i, text := range sum.Processes {
		var process struct{ Creates uint64 }
		if err := json.Unmarshal(text, &process); err != nil {
			t.Fatal(err)
		}
		total += process.Creates
		if i < len(e.creates) && process.Creates != e.creates[i] {
			t.Errorf("process %d: %d creates, want %d", i, process.Creates, e.creates[i])
		}
	}
	if sum.Hits+sum.Misses != total || sum.LostEvents != 0 {
		t.Errorf("%d hits and %d misses of %d creates, %d events lost", sum.Hits, sum.Misses, total, sum.LostEvents)
	}
	if policy != "none" && sum.Hits < e.hits {
		t.Errorf("%d hits, want at least %d", sum.Hits, e.hits)
	}
	if !regexp.MustCompile(e.stderr).Match(result.stderr) {
		t.Errorf("stderr does not say %q:\n%s", e.stderr, result.stderr)
	}
}

// gpumemtop behind oclgrind watches what the simulator runs.
func TestBehindOclgrind(t *testing.T) {
	t.Parallel()
	args := []string{example("leak"), "5"}
	bare := run(t, command{args: append([]string{"oclgrind"}, args...)})
	here := run(t, command{args: append([]string{"oclgrind", gpumemtop(), "--headless", "--"}, args...)})
	if difference := differs(bare, here); difference != "" || !contains(here.stderr, "of 20 requests") {
		t.Errorf("%s\n%s", difference, here.stderr)
	}
}

// Through a layer as by name, a buffer's site is the program's, not the loader's.
func TestSitesThroughALayer(t *testing.T) {
	t.Parallel()
	sitesThroughALayer(t)
}

// The same while all processes are watched: a probe at the return of the loader's functions would hide the caller.
func TestSitesThroughALayerBesideAttach(t *testing.T) {
	t.Parallel()
	w := attach(t, "--all")
	sitesThroughALayer(t)
	w.leave()
}

func sitesThroughALayer(t *testing.T) {
	t.Helper()
	bundled := copyOf(t, libOpenCL(t), "libbundled.so", 0o644)
	for _, tags := range []string{"stack", "caller"} {
		_, sum := runUnder(t, "none", command{
			args: []string{testProgram("dynamic"), "@" + bundled}, env: []string{"GPUMEMTOP_TAGS=" + tags},
		})
		var site struct{ Tag string }
		if len(sum.PerTag) != 1 {
			t.Fatalf("%s: %d sites, want the one of dynamic", tags, len(sum.PerTag))
		}
		if err := json.Unmarshal(sum.PerTag[0], &site); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(site.Tag, "create_loaded") {
			t.Errorf("%s: site %q, want create_loaded", tags, site.Tag)
		}
	}
}

// TestDriverWithoutALoader: a program that opens a driver itself runs as bare, although the driver's own calls come to our hooks; an
// event says that the program's do not.
func TestDriverWithoutALoader(t *testing.T) {
	t.Parallel()
	driver := oclgrind.libraries[0]
	oclgrind.require(t)
	c := command{args: []string{testProgram("dynamic"), strings.Replace(driver, "-icd", "", 1)}}
	bare, file := run(t, c), filepath.Join(t.TempDir(), "dynamic.gmt")
	c.args = slices.Concat([]string{gpumemtop(), "record", "-o", file, "--"}, c.args)
	under := run(t, c)
	if bare.code != 0 || under.code != 0 || string(under.stdout) != string(bare.stdout) {
		t.Fatalf("bare %s, under gpumemtop %s", bare, under)
	}
	if !contains(under.stderr, "no request was seen") || !contains(under.stderr, "calls through "+c.args[len(c.args)-1]+" are not watched") {
		t.Errorf("no word of the driver: %s", under.stderr)
	}
	events := run(t, command{args: []string{gpumemtop(), "export", "--format", "ndjson", "-o", "-", file}})
	if !strings.Contains(string(events.stdout), `"op":"second loader","text":"`+c.args[len(c.args)-1]) {
		t.Errorf("no event names the driver:\n%s", events.stdout)
	}
}
