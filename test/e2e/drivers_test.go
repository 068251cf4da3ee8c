package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	driversAll   = flag.Bool("drivers.all", false, "run all programs, policies and commands on each driver, not only quick ones")
	driversSeeds = flag.Uint64("drivers.seeds", 12, "how many random programs then")
)

// driver is an OpenCL implementation beside the PoCL that all other tests run on.
type driver struct {
	name      string
	libraries []string // one for each platform
	env       []string
	fails     map[string]string // programs that fail without us, and how; single seeds and checks may do so unlisted
	reuse     string            // a check that fails at times where images are used again, by a program itself or from the pool
	soak      []string          // options of soak
	oneThread bool              // it crashes with more
	whole     bool              // it gets no slabs: it aligns to 4096 bytes, or has less than 256 MiB
}

const (
	stuck = "hangs where commands wait for a user event"
	slow  = "takes minutes"

	lacking = "has no SVM"
)

var light = []string{"--light"} // soak without user events, and with less work

var (
	pocl = driver{name: "pocl", libraries: []string{"libpocl.so.2"}}
	// basic runs a command in the thread that enqueues, or waits.
	basic = driver{
		name: "basic", libraries: pocl.libraries, env: []string{"POCL_DEVICES=basic"}, soak: light,
		fails: map[string]string{"multiqueue": stuck, "conformance": stuck, "conformance-buffers": stuck},
	}
	twoDevices = driver{
		name: "two devices", libraries: pocl.libraries, env: []string{"POCL_DEVICES=pthread basic"}, soak: light, fails: basic.fails,
	}
	rusticl = driver{
		name: "rusticl", libraries: []string{"libRusticlOpenCL.so.1"}, env: []string{"RUSTICL_ENABLE=llvmpipe"},
		fails: map[string]string{"queries": "aborts", "queries-buffers": "refuses to unmap a second mapping", "pointers": lacking},
		// What one queue has painted may come after what another paints once clFinish has returned for both.
		reuse: "images_of_two_queues",
	}
	clover = driver{ // OpenCL 1.1
		name: "clover", libraries: []string{"libMesaOpenCL.so.1"}, env: []string{"LP_CL=1"}, whole: true,
		fails: map[string]string{"multiqueue": "crashes", "queries": "crashes", "queries-buffers": "crashes", "tiles": "aborts", "pointers": lacking},
	}
	oclgrind = driver{
		name: "oclgrind", libraries: []string{"/usr/lib/oclgrind/liboclgrind-rt-icd.so"}, soak: light, oneThread: true, whole: true,
		fails: map[string]string{
			"multiqueue": stuck, "conformance": stuck, "conformance-buffers": stuck, "queries": stuck, "queries-buffers": "crashes",
			"threads": "crashes", "lenient queries": slow, "lenient queries-buffers": slow,
			"pointers": "has no SVM, and ocl-icd's clSVMAlloc calls itself",
		},
	}
	twoPlatforms = driver{
		name: "two platforms", libraries: append(rusticl.libraries[:1:1], pocl.libraries...), env: rusticl.env,
		fails: rusticl.fails, reuse: rusticl.reuse,
	}
)

// driverCalled is nil for "", which is PoCL.
func driverCalled(t *testing.T, name string) *driver {
	t.Helper()
	if name == "" {
		return nil
	}
	for _, d := range []driver{pocl, basic, twoDevices, rusticl, clover, oclgrind, twoPlatforms} {
		if d.name == name {
			return &d
		}
	}
	t.Fatalf("no driver is called %q", name)
	return nil
}

// missing says which of the driver's libraries is not there; "": none.
func (d *driver) missing() string {
	for _, library := range d.libraries {
		if found, _ := filepath.Glob(filepath.Join("/usr/lib/*", filepath.Base(library))); len(found) == 0 {
			return library
		}
	}
	return ""
}

// require skips a test whose driver is not there: make test installs all that this release of Debian has, and says what it lacks.
func (d *driver) require(t *testing.T) {
	t.Helper()
	if library := d.missing(); library != "" {
		t.Skipf("%s is not there: install mesa-opencl-icd and oclgrind", library)
	}
}

// environment names the driver to the loader, whatever is installed.
func (d *driver) environment(t *testing.T) []string {
	t.Helper()
	d.require(t)
	vendors := t.TempDir()
	for i, library := range d.libraries {
		if err := os.WriteFile(filepath.Join(vendors, fmt.Sprintf("%d.icd", i)), []byte(library+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append([]string{"OCL_ICD_VENDORS=" + vendors}, d.env...)
}

// A driver of OpenCL 1.1, whose markers and barriers are others, has the hit rate that PoCL has.
func TestHitsBeforeOpenCL12(t *testing.T) {
	t.Parallel()
	env := clover.environment(t)
	for name, hits := range map[string]uint64{"stencil": 5, "pipeline": 48, "frag": 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := command{args: []string{example(name), "6", "1M"}, env: env}
			bare := run(t, c)
			here, sum := runUnder(t, "futhark", c)
			if difference := differs(bare, here); difference != "" {
				t.Error(difference)
			}
			if sum.Hits < hits {
				t.Errorf("%d hits of %d, want at least %d", sum.Hits, sum.Hits+sum.Misses, hits)
			}
		})
	}
}

// The exit handler of rusticl joins a thread that a forked child has not. More threads in the process must not make that fail.
func TestForkedChildExits(t *testing.T) {
	t.Parallel()
	for _, d := range []driver{pocl, rusticl} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := command{args: []string{fault("exiter")}, env: d.environment(t)}
			const fine = "the child ended with wait status 0\n"
			// On a busy machine rusticl's own handler now and then crashes in the child, bare too.
			fineIn := func(tries int, run func() outcome) (last outcome) {
				for range tries {
					if last = run(); string(last.stdout) == fine {
						break
					}
				}
				return last
			}
			bare := fineIn(5, func() outcome { return run(t, c) })
			for _, policy := range []string{"none", "futhark", "slab"} {
				here := fineIn(3, func() outcome { r, _ := runUnder(t, policy, c); return r })
				if difference := differs(bare, here); difference != "" {
					t.Errorf("%s: %s", policy, difference)
				}
			}
		})
	}
}

// Ranges that end behind a buffer are refused as bare, though its block may go on there. rusticl alone looks at no end of a copy
// between image and buffer, and would copy from a larger block what lies behind: that is refused.
func TestRangesBeyondAreRefused(t *testing.T) {
	t.Parallel()
	for _, d := range []driver{pocl, rusticl, clover, oclgrind} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := command{args: []string{fault("beyond")}, env: d.environment(t)}
			bare := string(run(t, c).stdout)
			if !strings.HasSuffix(bare, "into -30\nfrom -30\nread -30\nwrite -30\nfill -30\ncopy -30\nchanged 0\n") && d.name != rusticl.name {
				t.Fatalf("bare:\n%s", bare)
			}
			for policy, want := range map[string]string{"pow2": strings.Replace(bare, "into 0\nfrom 0\nread", "into -30\nfrom -30\nread", 1), "slab": bare} {
				if here, _ := runUnder(t, policy, c); here.code != 0 || string(here.stdout) != want {
					t.Errorf("%s: %s\n%s%swant\n%s", policy, here, here.stdout, here.stderr, want)
				}
			}
		})
	}
}

// A context that the program has released lives as long as a queue of it, and has its pool as long, but not longer.
func TestQueuesKeepTheirContext(t *testing.T) {
	t.Parallel()
	for _, d := range []driver{pocl, rusticl} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			c := command{args: []string{fault("keeper"), "20", "64K"}, env: d.environment(t)}
			bare := run(t, c)
			if want := "wrong 0 of 40\nwrong 0\nended after the queue\n"; string(bare.stdout) != want {
				t.Fatalf("bare: %s\n%s%s", bare, bare.stdout, bare.stderr)
			}
			for _, policy := range []string{"futhark", "slab"} {
				here, sum := runUnder(t, policy, c)
				if difference := differs(bare, here); difference != "" {
					t.Errorf("%s: %s", policy, difference)
				}
				if sum.Hits < 50 {
					t.Errorf("%s: %d hits of %d, want at least 50 of 61", policy, sum.Hits, sum.Hits+sum.Misses)
				}
			}
		})
	}
}

// lateOnes are the numbers of each line that waits prints.
func lateOnes(output []byte) map[string]int {
	late := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(output)), "\n") {
		way, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		for i := 0; i+1 < len(fields); i += 2 {
			n, err := strconv.Atoi(fields[i+1])
			if err != nil {
				n = -1
			}
			late[way+": "+fields[i]] += n
		}
	}
	return late
}

// After each call that waits, all holds that holds without us: status and times of events, callbacks, contents, references.
func TestWaitsAreAsStrong(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		driver
		rounds string
	}{{pocl, "4"}, {rusticl, "10"}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := command{args: []string{testProgram("waits"), test.rounds, "2"}, env: test.environment(t)}
			bare := lateOnes(run(t, c).stdout)
			if len(bare) < 20*5 {
				t.Fatalf("%d figures without us: %v", len(bare), bare)
			}
			for _, options := range [][]string{{"--policy", "futhark"}, {"--policy", "arena"}, {"--spill", "--device-memory", "20K"}} {
				under := c
				under.args = slices.Concat([]string{gpumemtop(), "--headless"}, options, []string{"--"}, c.args)
				here := run(t, under)
				late := lateOnes(here.stdout)
				if here.code != 0 || len(late) < 20*5 {
					t.Errorf("%v: %s, %d figures instead of %d\n%s", options, here, len(late), len(bare), here.stderr)
				}
				for what, n := range late {
					for i := 0; i < 3 && n > 0 && bare[what] == 0; i++ { // it may be rare there
						bare[what] += lateOnes(run(t, c).stdout)[what]
					}
					if n > 0 && bare[what] == 0 && (!fromThreads.MatchString(what) || isLateAgain(t, under, what)) {
						t.Errorf("%v: %s: late in %d rounds of %s, without us in none", options, what, n, test.rounds)
					}
				}
			}
		})
	}
}

// fromThreads matches what PoCL's threads do after an event's end: on a busy machine all of one run may come too late.
var fromThreads = regexp.MustCompile(": (references|callback)$")

// isLateAgain reports whether something is late in two more runs, too.
func isLateAgain(t *testing.T, c command, what string) bool {
	t.Helper()
	for range 2 {
		if lateOnes(run(t, c).stdout)[what] == 0 {
			return false
		}
	}
	return true
}
