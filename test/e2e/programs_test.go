package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// program is a row of the table: it must behave under every policy as it does bare.
type program struct {
	name   string
	args   []string
	env    []string
	mask   bool    // the output holds measured times: compare it with numbers masked
	steady float64 // the least steady hit rate under a pooling policy
	sites  bool    // has a site for each buffer that lives at a time, as futhark-2018 wants it
	pinned bool    // its buffers are pinned memory, for the policy that caches nothing else

	policies []string // nil: some in turn
	unseen   bool     // makes no OpenCL call
}

// hashOfABC1 is the MD5 hash of abc1, the word that hashcat must find.
const hashOfABC1 = "23734cd52ad4a4fb877d8a1e26e5df5f"

// few are for what takes long, or has little to do with the policy. TestAttachedRecordingIsThatOfTheLibrary runs most without a pool.
var few = []string{"futhark", "slab"}

// policiesInTurn returns those of few, and two of the others in turn, so that each serves some of the programs. make test-drivers has all.
func policiesInTurn(program int) []string {
	if *driversAll {
		return allocator.PolicyNames()
	}
	others := slices.DeleteFunc(allocator.PolicyNames(), func(name string) bool { return slices.Contains(few, name) })
	return append(slices.Clone(few), others[2*program%len(others)], others[(2*program+1)%len(others)])
}

func examplePrograms() []program {
	return []program{
		{name: "stencil", args: []string{example("stencil"), "40", "2M"}, steady: 0.95, sites: true},
		{name: "pipeline", args: []string{example("pipeline"), "16", "1M"}, steady: 0.95, sites: true},
		{name: "train", args: []string{example("train"), "8", "16K"}, steady: 0.95},
		{name: "mosaic", args: []string{example("mosaic"), "20", "256K"}, steady: 0.95},
		{name: "neighbours", args: []string{testProgram("neighbours"), "20", "40"}},
		{name: "tiles", args: []string{testProgram("tiles"), "40"}},
		{name: "pointers", args: []string{testProgram("pointers"), "40"}},
		{name: "frag", args: []string{example("frag"), "3", "4M"}},
		{name: "multiqueue", args: []string{example("multiqueue"), "60", "256K"}},
		{name: "threads", args: []string{example("threads"), "4", "500", "64K"}},
		{name: "leak", args: []string{example("leak")}},
		{name: "tiny", args: []string{example("tiny")}},
		{name: "churn", args: []string{example("churn"), "20000", "4K", "2"}, steady: 0.95}, // two threads at one site
		{name: "staging", args: []string{example("staging"), "40", "256K"}, steady: 0.95, sites: true, pinned: true},
		{name: "transfers", args: []string{example("transfers"), "20", "256K"}},
		{name: "spill", args: []string{example("spill"), "40", "64K"}},
		{name: "callcost", args: []string{testProgram("callcost"), "20"}},
		{name: "dynamic", args: []string{testProgram("dynamic"), "libOpenCL.so.1"}},
		{name: "forker", args: []string{fault("forker")}},
		{name: "handler, early", args: []string{fault("handler"), "before"}, policies: few},
		{name: "handler, late", args: []string{fault("handler"), "after"}, policies: few},
		{name: "nocl", args: []string{fault("nocl")}, unseen: true},
	}
}

func debianPrograms() []program {
	return []program{
		{
			name: "hashcat", env: []string{"HOME=" + kernels, "XDG_DATA_HOME=" + kernels, "XDG_CACHE_HOME=" + kernels},
			args: []string{
				"hashcat", "-m", "0", "-a", "3", "--potfile-disable", "--force", "-w", "1", "-D", "1", "--quiet",
				"--session", "e2e", "-n", "16", "-u", "256", "-T", "1", hashOfABC1, "?l?l?l?d", // not tuned first, which takes longer and varies
			},
			policies: few,
		},
		{name: "clinfo", args: []string{"clinfo"}},
		{name: "clpeak", args: []string{"clpeak", "--kernel-latency"}, mask: true, policies: few},
		{name: "clpeak memory", args: []string{"clpeak", "--global-bandwidth"}, env: []string{"POCL_MEMORY_LIMIT=1"}, mask: true, policies: few[1:]},
		{name: "clblast", args: []string{"clblast_tuner_xdot", "-runs", "1"}, mask: true, policies: few},
		ffmpeg("ffmpeg blur", "avgblur_opencl=3,unsharp_opencl"),
		ffmpeg("ffmpeg means", "nlmeans_opencl=s=3:p=5:r=7"),
	}
}

// ffmpeg filters five pictures on the device and prints a checksum of what comes back. Pictures are images, filters keep
// tables and sums in buffers; the pictures of one film are decoded, filtered and read back by several threads.
func ffmpeg(name, filters string) program {
	return program{name: name, policies: few, args: []string{
		"ffmpeg", "-v", "error", "-nostdin", "-init_hw_device", "opencl=gpu", "-filter_hw_device", "gpu",
		"-f", "lavfi", "-i", "testsrc=size=320x240:rate=5:duration=1",
		"-vf", "format=yuv420p,hwupload," + filters + ",hwdownload,format=yuv420p", "-f", "md5", "-",
	}}
}

var (
	number   = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	spaces   = regexp.MustCompile(`[ \t]+`)
	barMarks = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

// masked replaces what a measurement changes from run to run: numbers, the width of the columns they stand in, and
// colours that grade them.
func masked(output []byte) []byte {
	output = barMarks.ReplaceAll(output, nil)
	output = number.ReplaceAll(output, []byte("N"))
	return spaces.ReplaceAll(output, []byte(" "))
}

func TestMaskedKeepsWords(t *testing.T) {
	got := string(masked([]byte("| 12 |   3.50 ms | \x1b[32mOK\x1b[0m\n")))
	if got != "| N | N ms | OK\n" {
		t.Errorf("masked: %q", got)
	}
}

func (p *program) sameOutput(a, b []byte) bool {
	if p.mask {
		return bytes.Equal(masked(a), masked(b))
	}
	return bytes.Equal(a, b)
}

// TestProgramsBehaveAsBare is the main promise: unmodified programs, the same output and end under the policies. A replay
// decides as each run did.
func TestProgramsBehaveAsBare(t *testing.T) {
	programs := append(debianPrograms(), examplePrograms()...) // those that take longest first
	rows := make([][]string, len(programs))
	t.Cleanup(func() { // once all have ended
		t.Logf("\nprogram      mode         exit  equal  wall s  steady  driver creates  lost\n%s", strings.Join(slices.Concat(rows...), "\n"))
	})
	for i, program := range programs {
		t.Run(program.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(program.args[0]); err != nil {
				t.Fatalf("%v: make test-deps installs it", err)
			}
			rows[i] = program.compare(t, i)
		})
	}
}

// compare runs the program bare and under policies, and returns a line of the table for each.
func (p *program) compare(t *testing.T, turn int) []string {
	t.Helper()
	bare := run(t, command{args: p.args, env: p.env})
	first := bare
	if !p.mask { // those that measure are the slow ones, and say something new every time
		first = run(t, command{args: p.args, env: p.env})
	}
	lines := []string{fmt.Sprintf("%-12s %-12s %-5s %-6s %6.2f", p.name, "bare", bare, "", bare.wall.Seconds())}
	if bare.code != 0 {
		t.Fatalf("bare run: %s\n%s", bare, bare.stderr)
	}
	if !p.sameOutput(first.stdout, bare.stdout) {
		t.Fatalf("two bare runs differ, so nothing can be compared:\n%s\n%s", first.stdout, bare.stdout)
	}
	policies := p.policies
	if policies == nil || *driversAll {
		policies = policiesInTurn(turn)
	}
	for name, suits := range map[string]bool{"futhark-2018": p.sites, "pinned": p.pinned} { // where it has something to do
		if suits && !slices.Contains(policies, name) {
			policies = append(policies, name)
		}
	}
	for _, policy := range policies {
		file := filepath.Join(t.TempDir(), "x.gmt")
		result, sum := served{policy: policy, flags: []string{"-o", file}}.run(t, command{args: p.args, env: p.env})
		equal := p.sameOutput(bare.stdout, result.stdout)
		lines = append(lines, fmt.Sprintf("%-12s %-12s %-5s %-6v %6.2f  %5.1f%%  %14d  %4d", p.name, policy, result, equal,
			result.wall.Seconds(), 100*sum.SteadyHitRate, sum.DriverCreates, sum.LostEvents))
		if !equal {
			t.Errorf("%s: output differs\nbare: %s\nhere: %s\nstderr: %s", policy, bare.stdout, result.stdout, result.stderr)
		}
		if !result.sameEnd(bare) {
			t.Errorf("%s: ended with %s, bare with %s\nstderr: %s", policy, result, bare, result.stderr)
		}
		p.checkSummary(t, policy, sum)
		if c := decidedAgain(t, file); !c.IsExact() || c.First != "" || c.Requests == 0 && sum.Hits+sum.Misses > 0 {
			t.Errorf("%s: a replay: %+v", policy, *c)
		}
	}
	return lines
}

func (p *program) checkSummary(t *testing.T, policy string, sum summary) {
	t.Helper()
	if sum.Policy != policy {
		t.Errorf("summary names policy %q, asked for %q", sum.Policy, policy)
	}
	if sum.LostEvents != 0 {
		t.Errorf("%s: %d events lost", policy, sum.LostEvents)
	}
	if seen := len(sum.Processes) > 0; seen == p.unseen {
		t.Errorf("%s: %d processes in the summary", policy, len(sum.Processes))
	}
	if policy == "none" {
		if sum.Hits != 0 {
			t.Errorf("none: %d hits from a policy that does not cache", sum.Hits)
		}
		return
	}
	if policy == "pinned" && !p.pinned || policy == "futhark-2018" && !p.sites {
		return
	}
	// On a busy machine the device is late, and commands still use the blocks that a request could have had.
	late := sum.MissReasons["cooling"]
	if sum.SteadyHitRate+float64(late)/float64(max(1, sum.Hits+sum.Misses)) < p.steady {
		t.Errorf("%s: steady hit rate %.3f, want at least %.2f; misses %v", policy, sum.SteadyHitRate, p.steady, sum.MissReasons)
	}
	if p.steady > 0 && sum.DriverCreates >= sum.Hits+late {
		t.Errorf("%s: %d driver creates for %d hits", policy, sum.DriverCreates, sum.Hits)
	}
}

func TestPolicyNoneCountsWithoutPooling(t *testing.T) {
	t.Parallel()
	_, sum := runUnder(t, "none", command{args: []string{example("leak"), "5", "1M"}})
	if sum.DriverCreates != 20 || sum.DriverReleases != 15 {
		t.Errorf("%d driver creates and %d releases, want 20 and 15: leak creates 20 buffers and loses 5", sum.DriverCreates, sum.DriverReleases)
	}
	if sum.PeakInUse != 5<<20 {
		t.Errorf("peak in use %d bytes, want %d: at the end all five are lost", sum.PeakInUse, 5<<20)
	}
}

// A program that ends before its first context gets what it asked for, in its summary and in the report of its recording.
func TestEndBeforeAContext(t *testing.T) {
	t.Parallel()
	const says = "no context was seen: clGetDeviceIDs(CUSTOM) found no device: CL_DEVICE_NOT_FOUND (-1), clGetDeviceIDs(ALL) found "
	for word, seen := range map[string]bool{"": true, "context": false} {
		file := filepath.Join(t.TempDir(), "run.gmt")
		r := run(t, command{args: []string{gpumemtop(), "record", "-o", file, fault("asker"), word}, env: pocl.environment(t)})
		text := tool(t, "report", "--format", "json", file)
		read, err := os.ReadFile(text)
		if err != nil || r.code != 4 {
			t.Fatalf("%v, ended with %s\n%s", err, r, r.stderr)
		}
		report := run(t, command{args: []string{gpumemtop(), "report", file}})
		joined := strings.Join(strings.Fields(string(report.stdout)), " ") // without its line breaks
		if contains(r.stderr, says) != seen || strings.Contains(joined, says) != seen || !contains(read, `"clGetDeviceIDs(CUSTOM) found no device: `) {
			t.Errorf("%q:\n%s\n%s\n%s", word, r.stderr, report.stdout, read)
		}
		if contains(r.stderr, "no OpenCL call") || strings.Contains(joined, "no OpenCL call") {
			t.Errorf("%q:\n%s\n%s", word, r.stderr, report.stdout)
		}
	}
}

// Commands that run programs say the same of such a program.
func TestNothingToStudy(t *testing.T) {
	t.Parallel()
	words := []string{"sh", "-c", fault("asker") + "; true"}
	for what, args := range map[string][]string{"fit": {"fit"}, "compare": {"compare"}, "tune": {"tune", "--"}, "tune ": {"tune", "--live", "--"}} {
		r := run(t, command{args: append(append([]string{gpumemtop()}, args...), words...), env: pocl.environment(t)})
		if r.code != 125 || !contains(r.stderr, "no context was seen: clGetDeviceIDs(CUSTOM) found no device") || !contains(r.stderr, ": there is nothing to "+strings.TrimSpace(what)) {
			t.Errorf("%s: %s\n%s", what, r, r.stderr)
		}
	}
}

func TestNoOpenCLIsSaid(t *testing.T) {
	t.Parallel()
	result, sum := runUnder(t, "futhark", command{args: []string{fault("nocl")}})
	if !regexp.MustCompile(`(?i)no OpenCL`).Match(result.stderr) {
		t.Errorf("stderr does not say that no OpenCL call was seen:\n%s", result.stderr)
	}
	if sum.Hits+sum.Misses+sum.DriverCreates != 0 {
		t.Errorf("counts of a program without OpenCL: %+v", sum)
	}
}

// The library does nothing outside a run of gpumemtop.
func TestPreloadWithoutSessionIsTransparent(t *testing.T) {
	bare := runBare(t, example("tiny"))
	result := run(t, command{args: []string{example("tiny")}, env: []string{"LD_PRELOAD=" + root + "/build/libgpumemtop.so"}})
	if difference := differs(bare, result); difference != "" || len(result.stderr) != 0 {
		t.Errorf("with the library alone: %s\nstderr: %s", difference, result.stderr)
	}
}

// The multiqueue example releases buffers in flight: a pool without gating hands them out too early and the result is
// wrong; ours waits, and counts how often.
func TestGatingIsWhatKeepsMultiqueueRight(t *testing.T) {
	t.Parallel()
	args := []string{example("multiqueue"), "60", "256K"}
	bare := runBare(t, args...)
	gated, sum := runUnder(t, "futhark", command{args: args})
	if !bytes.Equal(gated.stdout, bare.stdout) || sum.HazardsAvoided == 0 {
		t.Errorf("gated: %q, %d hazards avoided; bare: %q", gated.stdout, sum.HazardsAvoided, bare.stdout)
	}
	file := filepath.Join(t.TempDir(), "summary.json")
	ungated := run(t, command{args: append([]string{gpumemtop(), "--headless", "--unsafe-no-gating", "--summary", file, "--"}, args...)})
	sum = readSummary(t, file)
	if bytes.Equal(ungated.stdout, bare.stdout) || sum.HazardsAvoided != 0 {
		t.Errorf("ungated: %q, %d hazards avoided; want another checksum than bare, and none", ungated.stdout, sum.HazardsAvoided)
	}
	if !strings.Contains(string(ungated.stderr), "gating is off") {
		t.Errorf("no warning: %s", ungated.stderr)
	}
}
