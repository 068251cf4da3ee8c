package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/report"
)

const (
	// runLimit is far more than any program here takes; reaching it is a hang.
	runLimit = 8 * time.Minute
	// waitLimit is how long something may take that should happen at once, on a busy machine.
	waitLimit = 2 * time.Minute
	pollEvery = 20 * time.Millisecond

	poclVendor = "/etc/OpenCL/vendors/pocl.icd" // Debian's
)

// root is the repository. The tests run in the folder of their package.
var root = func() string {
	path, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return path
}()

func TestMain(m *testing.M) {
	if signal.Ignored(os.Interrupt) { // as behind "&" in a script: gpumemtop would ignore it, too, and attach would not end
		signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGQUIT)
	}
	for _, name := range []string{"bin/gpumemtop", "bin/examples/tiny", "bin/test/faults/crash"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: %s is not there: run make first\n", name)
			os.Exit(1)
		}
	}
	os.Exit(runAll(m))
}

// kernels is where hashcat keeps those that it has compiled, which takes most of a minute.
var kernels string

func runAll(m *testing.M) int {
	var err error
	if kernels, err = os.MkdirTemp("", "e2e-kernels"); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(kernels)
	return m.Run()
}

func example(name string) string       { return filepath.Join(root, "bin", "examples", name) }
func testProgram(name string) string   { return filepath.Join(root, "bin", "test", name) }
func fault(name string) string         { return testProgram(filepath.Join("faults", name)) }
func contains(b []byte, s string) bool { return bytes.Contains(b, []byte(s)) }

// gpumemtop is the program, in one mode of make soak another build of it.
func gpumemtop() string {
	if *soakMode == "idle" {
		return filepath.Join(root, "build", "soak", "gpumemtop")
	}
	return filepath.Join(root, "bin", "gpumemtop")
}

// environment is that of this process, made the same everywhere: there is no settings file, and PoCL is the only driver,
// reports a fixed amount of memory, and keeps the kernels it has compiled between runs.
func environment(extra ...string) []string {
	var env []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "GPUMEMTOP_") && name != "LD_PRELOAD" && name != "OPENCL_LAYERS" {
			env = append(env, pair)
		}
	}
	if _, err := os.Stat(poclVendor); err == nil {
		env = append(env, "OCL_ICD_VENDORS="+poclVendor)
	}
	env = append(env, "XDG_CONFIG_HOME="+filepath.Join(root, "build", "no-settings"), "XDG_STATE_HOME=/dev/null")
	env = append(env, "POCL_MEMORY_LIMIT=3", "POCL_CACHE_DIR="+filepath.Join(root, "build", "pocl-cache"))
	return append(env, extra...)
}

// command is one program to run.
type command struct {
	args  []string
	dir   string   // "": a fresh one
	env   []string // on top of environment
	stdin io.Reader
}

// outcome is how it ended.
type outcome struct {
	stdout, stderr []byte
	code           int            // exit status, -1 when killed
	signal         syscall.Signal // that killed it, 0 when it exited
	wall           time.Duration
}

// String tells the end in a word: "0", "7", "segmentation fault".
func (o outcome) String() string {
	if o.signal != 0 {
		return o.signal.String()
	}
	return fmt.Sprint(o.code)
}

// sameEnd reports whether two programs ended alike.
func (o outcome) sameEnd(other outcome) bool { return o.code == other.code && o.signal == other.signal }

// process is a program that runs.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	stdout  sharedBuffer
	stderr  sharedBuffer
	started time.Time
}

// start starts a program in a process group of its own, which is killed when the test ends.
func start(t *testing.T, c command) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	p := &process{t: t, cmd: exec.CommandContext(ctx, c.args[0], c.args[1:]...)}
	p.cmd.Dir = c.dir
	if p.cmd.Dir == "" {
		p.cmd.Dir = t.TempDir()
	}
	p.cmd.Env = environment(c.env...)
	p.cmd.Stdin = c.stdin
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	p.cmd.WaitDelay = 10 * time.Second
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start %v: %v", c.args, err)
	}
	t.Cleanup(func() {
		// Whatever the test left in the group; none may be left.
		if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("clean up: %v", err)
		}
		cancel()
	})
	return p
}

// wait waits for the end.
func (p *process) wait() outcome {
	p.t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("wait for %v: %v\nstderr: %s", p.cmd.Args, err, p.stderr.bytes())
	}
	if time.Since(p.started) > runLimit {
		p.t.Fatalf("%v hung: killed after %v\nstderr: %s", p.cmd.Args, runLimit, p.stderr.bytes())
	}
	result := outcome{
		stdout: p.stdout.bytes(), stderr: p.stderr.bytes(), code: p.cmd.ProcessState.ExitCode(), wall: time.Since(p.started),
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		result.signal = status.Signal()
	}
	return result
}

func run(t *testing.T, c command) outcome {
	t.Helper()
	return start(t, c).wait()
}

// runBare runs a program as it is.
func runBare(t *testing.T, args ...string) outcome {
	t.Helper()
	return run(t, command{args: args})
}

// served is one way in which gpumemtop serves buffers.
type served struct {
	policy string
	flags  []string
	arms   []string // alternatives of experiments that come and go while it runs
}

// String names it in results: "pow2 --set min_block=64K".
func (s served) String() string {
	words := append([]string{s.policy}, s.flags...)
	if len(s.arms) > 0 {
		words = append(words, "or", strings.Join(s.arms, " or "))
	}
	return strings.Join(words, " ")
}

// carves reports whether the policy makes buffers parts of slabs. Other drivers than PoCL may do so only for programs that
// make no images, so some are built without as well.
func (s served) carves() bool {
	return slices.Contains([]string{"slab", "buddy", "ualloc", "arena"}, s.policy)
}

// slabs reports whether the policy makes slabs for any program; arena makes one only for a loop that it has learned.
func (s served) slabs() bool { return s.carves() && s.policy != "arena" }

// retry looks up to three times for what a machine that has much else to do may delay or lose; problem returns what is wrong.
func retry(t *testing.T, problem func() string) {
	t.Helper()
	wrong := ""
	for range 3 {
		if wrong = problem(); wrong == "" {
			return
		}
	}
	t.Error(wrong)
}

// withoutImages is the name of that build.
func withoutImages(name string) string { return name + "-buffers" }

// run runs a program this way, without a dashboard, and returns the summary as well.
func (s served) run(t *testing.T, c command) (outcome, summary) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "summary.json")
	words := []string{gpumemtop(), "--headless", "--policy", s.policy, "--summary", file}
	c.args = slices.Concat(words, s.flags, []string{"--"}, c.args)
	result := run(t, c)
	return result, readSummary(t, file)
}

// runUnder runs a program under a policy as it is by default.
func runUnder(t *testing.T, policy string, c command) (outcome, summary) {
	t.Helper()
	return served{policy: policy}.run(t, c)
}

// differs says how a run with gpumemtop differs from the bare one; "" when it does not.
func differs(bare, here outcome) string {
	if here.sameEnd(bare) && bytes.Equal(here.stdout, bare.stdout) {
		return ""
	}
	return fmt.Sprintf("ended with %s and %q, bare with %s and %q\nstderr: %s", here, here.stdout, bare, bare.stdout, here.stderr)
}

// summary is what --summary writes, as far as the tests look at it. All keys are checked for being there.
type summary struct {
	Policy         string            `json:"policy"`
	Hits           uint64            `json:"hits"`
	Misses         uint64            `json:"misses"`
	HitRate        float64           `json:"hit_rate"`
	SteadyHitRate  float64           `json:"steady_hit_rate"`
	DriverCreates  uint64            `json:"driver_creates"`
	DriverReleases uint64            `json:"driver_releases"`
	PeakInUse      uint64            `json:"peak_in_use"`
	PeakReserved   uint64            `json:"peak_reserved"`
	PeakSlabs      uint64            `json:"peak_slabs"`
	HazardsAvoided uint64            `json:"hazards_avoided"`
	Exposed        uint64            `json:"exposed"`
	ExposedNewZero uint64            `json:"exposed_new_zero"`
	Cleared        uint64            `json:"cleared"`
	MissReasons    map[string]uint64 `json:"miss_reasons"`
	LostEvents     uint64            `json:"lost_events"`
	WallSeconds    float64           `json:"wall_seconds"`
	Processes      []json.RawMessage `json:"processes"`
	PerTag         []json.RawMessage `json:"per_tag"`
	PerKind        []share           `json:"per_kind"`

	InUse         uint64 `json:"in_use"`
	BytesCached   uint64 `json:"bytes_cached"`
	BytesCooling  uint64 `json:"bytes_cooling"`
	PeakRequested uint64 `json:"peak_requested"`

	Findings      []mistake                  `json:"findings"`
	OtherFindings uint64                     `json:"other_findings"`
	Leaks         []report.LeakSummary       `json:"leaks"`
	Ghosts        []report.GhostSummary      `json:"ghosts"`
	OutOfMemory   []report.PostMortemSummary `json:"out_of_memory"`
}

// share is what one kind of memory has of a run.
type share struct {
	Kind         string `json:"kind"`
	Creates      uint64 `json:"creates"`
	Hits         uint64 `json:"hits"`
	Misses       uint64 `json:"misses"`
	InUse        uint64 `json:"in_use"`
	BytesCached  uint64 `json:"bytes_cached"`
	BytesCooling uint64 `json:"bytes_cooling"`
	BlocksCached uint64 `json:"blocks_cached"`
}

// mistake is one of the findings.
type mistake struct {
	Kind, Function, Tag, Kernel string
	Count, Size                 uint64
	Process                     int
	Status                      int32
	Certain                     bool
}

var summaryKeys = strings.Fields(`policy limits hits misses hit_rate steady_hit_rate miss_reasons driver_creates
	driver_releases bytes_requested bytes_allocated bytes_cached peak_in_use peak_reserved peak_slabs waste external_fragmentation
	hazards_avoided lost_events wall_seconds exit processes per_tag findings other_findings leaks`)

func readSummary(t *testing.T, file string) summary {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("no summary: %v", err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatalf("summary is no JSON: %v\n%s", err, text)
	}
	for _, key := range summaryKeys {
		if _, ok := keys[key]; !ok {
			t.Errorf("summary has no %q", key)
		}
	}
	var result summary
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatalf("summary has other types than documented: %v\n%s", err, text)
	}
	return result
}

// waitFor asks until the answer is yes.
func waitFor(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); !ask(); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain for %s", waitLimit, what)
		}
	}
}

// sharedBuffer collects output and can be read while it grows.
type sharedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *sharedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *sharedBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.data.Bytes())
}
