package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// judged is a finding of a report, with a program that commits it and one that nearly does.
type judged struct {
	rule   string // of internal/analysis
	title  string // part of what the report says
	policy string
	flags  []string // of both
	words  []string // empty: findings, with a name and with nearly- before it
	nearly []string // flags and words of the one that nearly does; empty: findings
	driver driver   // of the program that commits it
}

func judgements() []judged {
	spill := func(memory string) []string {
		return []string{"--spill", "--device-memory", memory, example("spill"), "40", "64K"}
	}
	deed := func(rule, title, policy, name string, flags ...string) judged {
		return judged{
			rule: rule, title: title, policy: policy, flags: flags, words: []string{fault("findings"), name},
			nearly: []string{fault("findings"), "nearly-" + name}, driver: pocl,
		}
	}
	return []judged{
		deed("findMemoryGrowth", "memory grows with every iteration", "futhark", "grow"),
		deed("findMemoryGrowth", "memory grows over the iterations", "futhark", "fifth"),
		deed("findMemoryGrowth", "memory grows over the iterations", "futhark", "most"),
		deed("findLeaks", "40 buffers never released", "none", "grow"),
		deed("findMemoryKeptByIterations", "every iteration keeps memory", "futhark", "keep"),
		deed("findLowHitRate", "the pool serves few requests", "futhark", "sizes"),
		deed("findUnusedBuffers", "most buffers are never used", "none", "loop"),
		{
			rule: "findLoopWithoutPool", title: "every iteration goes to the driver", policy: "none",
			words: []string{fault("findings"), "loop"}, nearly: []string{fault("findings"), "small"}, driver: pocl,
		},
		deed("findHoistableBuffers", "buffers could be created once, before the loop", "none", "loop"),
		deed("findCopyingCreates", "creates that copy take the time", "futhark", "copies"),
		deed("findHeldTooLong", "memory is released long after its last use", "futhark", "late", "--device-memory", "16M"),
		deed("findHeldTooLong", "memory is released long after its last use", "futhark", "asked", "--device-memory", "16M"),
		deed("findUselessOwnPool", "buffers are kept that are not used again", "futhark", "hoard", "--device-memory", "64M"),
		deed("findSmallBuffers", "many small buffers need more memory than they hold", "futhark", "small"),
		deed("findUnusedFreeBlocks", "the pool keeps memory that nothing asks for", "futhark", "vain", "--device-memory", "64M"),
		deed("findHighWaste", "blocks are much larger than requested", "pow2", "waste", "--device-memory", "512M"),
		deed("findFragmentation", "free memory is fragmented at the peak", "futhark", "pieces", "--device-memory", "64M"),
		deed("findOverReserved", "the pool reserves much more than is in use", "futhark", "larger", "--device-memory", "64M"),
		deed("findProgramsWithOwnPool", "the program splits buffers itself", "futhark", "parts"),
		deed("findProgramsWithOwnPool", "the program keeps its buffers", "futhark", "kept"),
		deed("findFineAlignment", "sub-buffers may be refused on other devices", "futhark", "origins"),
		deed("findCopiedHostMemory", "drivers may copy the program's own memory", "futhark", "own"),
		deed("findHiddenCallers", "one function creates memory for several places", "futhark", "hidden"),
		deed("findHiddenCallers", "one function creates memory for several places", "futhark", "lost"),
		deed("findHiddenCallers", "one function creates memory for several places", "futhark", "denied"),
		deed("findReleasedInFlight", "the driver may hold much more than the program has in use", "none", "early"),
		deed("unpairedCallRule", "map without unmap", "none", "maps"),
		deed("unpairedCallRule", "retain without release", "futhark", "retains"),
		deed("unpairedCallRule", "retain without release", "futhark", "owners"),
		deed("findLeaks", "40 of them were retained", "none", "shares"),
		deed("findFullDevice", "device memory is nearly full", "futhark", "fill", "--device-memory", "16M"),
		{
			rule: "findExposedContents", title: "kernels may read what a block's earlier owner left", policy: "futhark",
			words: []string{fault("accumulate"), "add"}, nearly: []string{fault("accumulate"), "fill"}, driver: pocl,
		},
		{
			rule: "findExposedContents", title: "the first to use at least 1 recycled buffer,", policy: "futhark",
			words: []string{fault("accumulate"), "leak"}, nearly: []string{fault("accumulate"), "add"}, driver: pocl,
		},
		deed("transferRule", "one iteration later; where the bytes decide how the loop goes on, ", "none", "slow"),
		deed("transferRule", "blocking map inside the loop", "none", "looks"),
		deed("transferRule", "read of what had not changed", "futhark", "reads"),
		deed("findRefusedCalls", "5 calls refused", "futhark", "refuse"),
		deed("findRefusedCalls", "2 calls refused", "futhark", "build"),
		{
			rule: "findObjectsLeft", title: "OpenCL objects are never released", policy: "none",
			words: []string{fault("objects"), "tidy", "300"}, nearly: []string{example("tiny")}, driver: pocl,
		},
		{
			rule: "findFirstFailure", title: "failed (-4)", policy: "futhark", flags: []string{"--device-memory", "16M"},
			words: []string{fault("shortage"), "full"}, nearly: []string{fault("shortage"), "nearly"}, driver: pocl,
		},
		{rule: "findFullDevice", title: "--spill moves the same buffers again and again", policy: "none", words: spill("256K"), nearly: spill("2M"), driver: pocl},
		{rule: "findUselessPolicy", title: "slab makes no sub-allocations", policy: "slab", words: []string{testProgram("tiles"), "4"},
			driver: rusticl, nearly: []string{testProgram("tiles"), "4"}},
		{
			rule: "findUselessPolicy", title: "8 requests got blocks of their own", policy: "slab",
			words: []string{example("frag"), "2", "20M"}, nearly: []string{example("frag"), "2", "1M"}, driver: pocl,
		},
	}
}

// otherJudgements names the tests that run both programs of the other rules.
var otherJudgements = map[string]string{
	"findMistakes": "TestMistakesAreFound", "findGrowthBesideBuffers": "TestMachineGrows", "findObjectGrowth": "TestObjectLeaks",
	"findLostEvents": "TestNoLeakIsCertainAfterLosses", "findSlowPoolMemory": "TestNoCreateFailsForThePool",
	"transferRule":            "TestTransfersThatCouldGo",
	"findShortStacks":         "TestStacksThatEndInLibraries",
	"findMemoryBesideBuffers": "TestMemoryBesideBuffers",
	"findHarmfulLimit":        "TestLivePointsHavePrograms", // and these two need a slow driver: they have unit tests
	"findIdlePool":            "TestLivePointsHavePrograms",
	"findLongUnused":          "TestDashboardFindsFiveFaults",
	"findBlockingReads":       "TestDashboardFindsFiveFaults",
	"findWorstMissSite":       "TestLiveMissesAreRecent", "findLeadingGhost": "TestLiveMemory",
	"findBetterPolicy": "TestPolicyMisses", "findWorseChange": "TestChangesThatMakeItWorse", // these need ghosts and a user: likewise
}

// Each finding of a report has a program that commits it and one that nearly does, and no alarm is false.
func TestReportsFindWhatProgramsDo(t *testing.T) {
	t.Parallel()
	for _, j := range judgements() {
		t.Run(j.rule+" of "+filepath.Base(j.words[len(j.words)-1]), func(t *testing.T) {
			t.Parallel()
			text := ""
			for range 3 { // on a machine that does other work, a share of the run's time may be too small for a word
				if text = j.diagnoses(t, &j.driver, j.words); strings.Contains(text, j.title) {
					break
				}
			}
			if !strings.Contains(text, j.title) {
				t.Errorf("no %q in %s", j.title, text)
			}
			if text := j.diagnoses(t, &pocl, j.nearly); strings.Contains(text, j.title) {
				t.Errorf("a false alarm: %s", text)
			}
		})
	}
}

// diagnoses records a program and returns what the report finds.
func (j *judged) diagnoses(t *testing.T, d *driver, words []string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.gmt")
	args := append([]string{gpumemtop(), "record", "-o", file, "--policy", j.policy}, j.flags...)
	if r := run(t, command{args: append(args, words...), env: d.environment(t)}); r.code != 0 {
		t.Fatalf("%v: %s\n%s", words, r, r.stderr)
	}
	var found struct{ Diagnoses json.RawMessage }
	readJSON(t, tool(t, "report", "--format", "json", file), &found)
	return string(found.Diagnoses)
}

// make demo and make demo-python show what they promise: each of the program's five faults is found, at its place.
func TestDemoFindsFiveFaults(t *testing.T) {
	for name, demo := range map[string]struct {
		memory, cached string
		words          []string
		found          map[string]string
	}{
		"C": {"256M", "4M", []string{example("photos"), "72"}, map[string]string{
			"failed (-61)":                               "create_panorama",
			"memory grows with every iteration":          "create_preview",
			"memory is released long after its last use": "create_lens",
			"blocking read inside the loop":              "brightness",
			"the pool serves few requests":               "max_cached_bytes=16777216",
		}},
		"Python": {"64M", "1M", []string{"/usr/bin/python3", filepath.Join(root, "examples", "photos.py"), "480", "1000"}, map[string]string{
			"failed (-61)":                               "photos.py:53 create_panorama",
			"every iteration keeps memory":               "photos.py:47 keep_preview",
			"memory is released long after its last use": "photos.py:",
			"blocking read inside the loop":              "photos.py:42 brightness",
			"the pool serves few requests":               "max_cached_bytes=8388608",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := judged{policy: "futhark", flags: []string{"--device-memory", demo.memory, "--max-cached", demo.cached}}
			text := ""
			for range 3 {
				text = j.diagnoses(t, &pocl, demo.words)
				if strings.Contains(text, "blocking read") {
					break // which on a busy machine takes a smaller share of the run
				}
			}
			if name == "C" {
				checkReadme(t, text)
			}
			for title, place := range demo.found {
				at := strings.Index(text, title)
				if at < 0 || !strings.Contains(text[at:], place) {
					t.Errorf("no %q with %q in %s", title, place, text)
				}
			}
		})
	}
}

// The dashboard shows each of the demo's five faults while it runs, and none of two of them where all memory is used again and again
// and no read blocks for long.
func TestDashboardFindsFiveFaults(t *testing.T) {
	t.Parallel()
	shown := func(words ...string) string {
		file := filepath.Join(t.TempDir(), "x.gmt")
		args := []string{gpumemtop(), "record", "-f", "-o", file, "--device-memory", "256M", "--max-cached", "4M"}
		if r := run(t, command{args: append(args, words...)}); r.code != 0 {
			t.Fatalf("%v: %s\n%s", words, r, r.stderr)
		}
		return livePoints(t, file, asItWas)
	}
	idle, blocking := "memory is held without use", "blocking read inside the loop"
	retry(t, func() string {
		titles := shown(example("photos"), "180")
		for _, title := range []string{"failed (-61)", "memory grows", idle, blocking, "max_cached_bytes bites"} {
			if !strings.Contains(titles, title) {
				return fmt.Sprintf("no %q among\n%s", title, titles)
			}
		}
		return ""
	})
	if titles := shown(example("frag"), "240", "16M"); strings.Contains(titles, idle) || strings.Contains(titles, blocking) {
		t.Errorf("a false alarm: %s", titles)
	}
}

// checkReadme: README.md answers each of its questions in the words that the demo's findings have today.
func checkReadme(t *testing.T, findings string) {
	_, answers, _ := strings.Cut(readFile(t, filepath.Join(root, "README.md")), "## What it answers")
	quotes := regexp.MustCompile(`\?\*\* \*([^*]+)\*`).FindAllStringSubmatch(answers, -1)
	if len(quotes) != 4 {
		t.Errorf("README.md has %d answers, want 4", len(quotes))
	}
	for _, quote := range quotes {
		for _, part := range regexp.MustCompile("…|: ").Split(quote[1], -1) { // a finding's title ends at a colon
			if !strings.Contains(shape(findings), shape(part)) {
				t.Errorf("README.md has %q; the demo's findings: %s", part, findings)
			}
		}
	}
}

// A rule that nothing tries is not trusted.
func TestEveryRuleHasPrograms(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "internal", "analysis", "judge.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(source), "\nvar rules = ")
	_, after, _ = strings.Cut(after, "{\n")
	list, _, _ := strings.Cut(after, "\n}\n")
	tried := map[string]bool{}
	for _, j := range judgements() {
		tried[j.rule] = true
	}
	var rules []string
	for _, row := range regexp.MustCompile(`\{\w+, (\w+)`).FindAllStringSubmatch(list, -1) { // what it needs, and its name
		rules = append(rules, row[1])
	}
	if len(rules) < 25 {
		t.Fatalf("%d rules: %v", len(rules), rules)
	}
	for _, rule := range rules {
		if !tried[rule] && otherJudgements[rule] == "" {
			t.Errorf("no program commits what %s finds, and none nearly", rule)
		}
	}
}

// What a finding names was replayed on the recording, and gains; a finding whose cure is no setting names none.
func TestAdviceIsReplayed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		j       judged
		replays bool
	}{
		{judged{title: "free memory is fragmented", policy: "futhark", words: []string{"pieces"}}, false}, // arena has no layout for it
		{judged{title: "the pool keeps memory", policy: "pow2", words: []string{"vain"}}, true},
		{judged{policy: "futhark", words: []string{"nearly-vain"}}, false},
		{judged{policy: "futhark", words: []string{"keep"}}, false},
	} {
		c.j.flags = []string{"--device-memory", "64M"}
		text := c.j.diagnoses(t, &pocl, append([]string{fault("findings")}, c.j.words...))
		if !strings.Contains(text, c.j.title) || strings.Contains(text, "replayed with ") != c.replays || strings.Contains(text, "gpumemtop tune tries") {
			t.Errorf("%v: %s", c.j.words, text)
		}
	}
}

// Report, advise and tune say in the same words what another policy gives.
func TestAdviceAgrees(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.gmt")
	record := []string{gpumemtop(), "record", "--set", "proportion=0", "--set", "outgrown=off", "--set", "max_age=0", "-o", file, "--"}
	if result := run(t, command{args: append(record, testProgram("outgrows"), "scratch", "12", "4M")}); result.code != 0 {
		t.Fatal(result)
	}
	for _, args := range [][]string{{"report"}, {"advise"}, {"tune", "--configurations", "30"}} {
		result := run(t, command{args: append(append([]string{gpumemtop()}, args...), file)})
		if text := strings.Join(strings.Fields(string(result.stdout)), " "); result.code != 0 || !strings.Contains(text, "eplayed with ") || !strings.Contains(text, " reserved at most") {
			t.Errorf("%v: %s", args, result)
		}
	}
}
