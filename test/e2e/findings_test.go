package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// deed is a mistake of test/programs/faults/mistakes and how it must be reported.
type deed struct {
	name     string
	kind     string
	function string
	site     string // that created the memory
	kernel   string
	certain  bool
	bare     bool // is also found, and harmless, without a pool
	said     string
}

var deeds = []deed{
	{"double-release", "double_release", "clReleaseMemObject", "create_victim", "", true, false, "double release: clReleaseMemObject of a 1.00 MiB buffer created at"},
	{"unknown-release", "unknown_memory", "clReleaseMemObject", "", "", false, true, "no create seen here returned"},
	{"use-after-release", "use_after_release", "clEnqueueReadBuffer", "create_victim", "", true, false, "after its last release"},
	{"wrong-context", "wrong_context", "clEnqueueReadBuffer", "create_victim", "", true, true, "belongs to another context"},
	{"still-mapped", "still_mapped", "clReleaseMemObject", "create_victim", "", true, true, "still mapped"},
	{"stale-read", "stale_read", "clEnqueueReadBuffer", "create_victim", "", true, false, "before anything wrote it (certain)"},
	{"stale-argument", "stale_argument", "clEnqueueNDRangeKernel", "create_victim", "keep", false, false, "keep may read it"},
	{"use-after-fork", "use_after_fork", "clCreateBuffer", "", "", true, true, "use after fork: clCreateBuffer in a child that was forked once its parent had a context"},
}

// Each mistake is found, as often as it is made, and nothing else is; what nearly is one is not found.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	for _, d := range deeds {
		t.Run(d.name, func(t *testing.T) {
			policies := []string{"futhark", "pow2"}
			if d.bare {
				policies = append(policies, "none")
			}
			for _, policy := range policies {
				result, sum := runUnder(t, policy, command{args: []string{fault("mistakes"), d.name, "3"}})
				if result.code != 0 || result.signal != 0 {
					t.Errorf("%s: ended with %s\n%s", policy, result, result.stderr)
				}
				d.check(t, policy, result, &sum)
			}
			result, sum := runUnder(t, "futhark", command{args: []string{fault("mistakes"), "nearly-" + d.name, "3"}})
			if result.code != 0 || len(sum.Findings) != 0 || len(sum.Leaks) != 0 {
				t.Errorf("nearly: ended with %s, findings %+v, leaks %+v", result, sum.Findings, sum.Leaks)
			}
		})
	}
}

func (d *deed) check(t *testing.T, policy string, result outcome, sum *summary) {
	t.Helper()
	if len(sum.Findings) != 1 {
		t.Errorf("%s: findings %+v, want one of kind %s", policy, sum.Findings, d.kind)
		return
	}
	got := &sum.Findings[0]
	if got.Kind != d.kind || got.Function != d.function || got.Kernel != d.kernel || got.Certain != d.certain || got.Count != 3 {
		t.Errorf("%s: found %+v, want 3 times %+v", policy, got, d)
	}
	if d.site == "" && (got.Tag != "" || got.Size != 0) || d.site != "" && (!strings.Contains(got.Tag, d.site) || got.Size != 1<<20) {
		t.Errorf("%s: found at %q with %d bytes, want site %q", policy, got.Tag, got.Size, d.site)
	}
	if processes := sum.figures(t); len(processes) != 1 || got.Process != processes[0].PID {
		t.Errorf("%s: found in process %d of %+v", policy, got.Process, processes)
	}
	if len(sum.Leaks) != 0 {
		t.Errorf("%s: leaks %+v", policy, sum.Leaks)
	}
	if text := string(result.stderr); !strings.Contains(text, d.said) || !strings.Contains(text, "(3 times)") {
		t.Errorf("%s: the summary does not say %q:\n%s", policy, d.said, text)
	}
}

func TestLeaksAreListed(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"none", "futhark"} {
		result, sum := runUnder(t, policy, command{args: []string{fault("mistakes"), "leak", "3"}})
		if len(sum.Findings) != 0 {
			t.Errorf("%s: findings %+v", policy, sum.Findings)
		}
		if len(sum.Leaks) != 1 || sum.Leaks[0].Buffers != 3 || sum.Leaks[0].Bytes != 3<<20 ||
			!strings.Contains(sum.Leaks[0].Tag, "create_victim") || len(sum.Leaks[0].Stack) < 2 {
			t.Errorf("%s: leaks %+v", policy, sum.Leaks)
		}
		for _, part := range []string{"3 (3.00 MiB) at mistakes.c:", "create_victim", "create_written"} {
			if !contains(result.stderr, part) {
				t.Errorf("%s: the summary does not mention %q:\n%s", policy, part, result.stderr)
			}
		}
	}
}

// A program without mistakes has none, with and without a pool, however many queues and threads it has.
func TestNothingIsFoundInGoodPrograms(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{example("stencil"), "20", "256K"}, {example("pipeline"), "5", "1M"}, {example("train"), "20", "16K"}, {example("frag"), "3", "4M"},
		{example("multiqueue"), "20", "256K"}, {example("threads"), "4", "200", "64K"}, {example("tiny")}, {example("churn"), "2000", "4K", "2"}, {fault("hungry"), "4", "1M"},
	} {
		t.Run(filepath.Base(args[0]), func(t *testing.T) {
			for _, policy := range []string{"none", "futhark", "pow2"} {
				result, sum := runUnder(t, policy, command{args: args})
				if result.code != 0 || len(sum.Findings) != 0 || sum.OtherFindings != 0 || len(sum.Leaks) != 0 {
					t.Errorf("%s: ended with %s, findings %+v, leaks %+v", policy, result, sum.Findings, sum.Leaks)
				}
				if contains(result.stderr, "mistakes ") || contains(result.stderr, "leaked ") {
					t.Errorf("%s: the summary accuses it:\n%s", policy, result.stderr)
				}
			}
		})
	}
}

// What was found is in the recording: report and export show it.
func TestFindingsAreRecorded(t *testing.T) {
	t.Parallel()
	file := record(t, fault("mistakes"), "stale-argument", "2")
	result := run(t, command{args: []string{gpumemtop(), "report", "--all", file}})
	text := []byte(strings.Join(strings.Fields(string(result.stdout)), " ")) // lines are broken anywhere
	for _, part := range []string{
		"MISTAKES OF THE PROGRAM", "given to kernel keep, which cannot write it", "(2 times)", "may write an argument counts as having written it",
	} {
		if !contains(text, part) {
			t.Errorf("the report does not say %q:\n%s", part, result.stdout)
		}
	}
	result = run(t, command{args: []string{gpumemtop(), "report", "--format", "json", file}})
	var sum summary
	if err := json.Unmarshal(result.stdout, &sum); err != nil {
		t.Fatalf("report --format json: %v\n%s", err, result.stdout)
	}
	if len(sum.Findings) != 1 || sum.Findings[0].Kernel != "keep" || sum.Findings[0].Count != 2 {
		t.Errorf("findings %+v", sum.Findings)
	}
	result = run(t, command{args: []string{gpumemtop(), "export", file, "-o", "-"}})
	if n := strings.Count(string(result.stdout), `"cat":"mistake"`); n != 1 {
		t.Errorf("%d mistakes in the trace, want one", n)
	}
}

// With scrubbing a program that reads what it never wrote reads the same every time; the mistake is found all the same.
func TestScrubbedBlocksAreStillStale(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"zero", "poison"} {
		way := served{policy: "futhark", flags: []string{"--scrub", kind}}
		result, sum := way.run(t, command{args: []string{fault("mistakes"), "stale-read", "2"}})
		if result.code != 0 || len(sum.Findings) != 1 || sum.Findings[0].Kind != "stale_read" || sum.Findings[0].Count != 2 {
			t.Errorf("--scrub %s: ended with %s, findings %+v", kind, result, sum.Findings)
		}
		for _, args := range [][]string{{example("pipeline"), "5", "1M"}, {example("multiqueue"), "5"}, {example("threads")}} {
			bare := runBare(t, args...)
			result, _ := way.run(t, command{args: args})
			if difference := differs(bare, result); difference != "" {
				t.Errorf("--scrub %s: %v %s", kind, args, difference)
			}
		}
	}
}

// Arithmetic notices poison: a program that adds up numbers that it never wrote gets no number, or a wrong sum.
func TestArithmeticNoticesPoison(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct{ name, stale, poisoned string }{
		{"floats", "512", "NaN"}, {"integers", "1024", "-1024"}, {"shared", "512", "NaN"}, {"image", "512", "NaN"}, {"normalized", "512", "1024"},
	} {
		for _, policy := range []string{"futhark", "slab"} {
			for scrub, printed := range map[string]string{"none": kind.stale, "zero": "0", "poison": kind.poisoned} {
				way := served{policy: policy, flags: []string{"--scrub", scrub}}
				result, _ := way.run(t, command{args: []string{fault("stale"), kind.name}})
				if result.code != 0 || string(result.stdout) != printed+"\n" {
					t.Errorf("%s, %s: %s, prints %q, want %q\n%s", way, kind.name, result, result.stdout, printed, result.stderr)
				}
			}
		}
	}
}

// While gpumemtop stands still its ring fills up and events are lost: memory whose release may be among them has not leaked
// for certain.
func TestNoLeakIsCertainAfterLosses(t *testing.T) {
	t.Parallel()
	result, sum := runUnder(t, "none", command{args: []string{"sh", "-c", `kill -STOP $PPID; "$0" 50000 64; kill -CONT $PPID`, example("churn")}})
	if result.code != 0 || sum.LostEvents == 0 {
		t.Fatalf("%s, %d events lost\n%s", result, sum.LostEvents, result.stderr)
	}
	if contains(result.stderr, "leaked") && !contains(result.stderr, "perhaps not released") || !contains(result.stderr, "counts are too low") {
		t.Errorf("the summary states too much:\n%s", result.stderr)
	}
	for _, f := range sum.Findings {
		if f.Certain {
			t.Errorf("finding %+v is certain", f)
		}
	}
}
