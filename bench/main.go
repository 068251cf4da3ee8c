// Command bench measures the cost of gpumemtop and the savings of its pool on this machine. It prints a table for each
// question. The programs that a table compares run alternately, and the median counts: figures from different machines, or
// from different hours on a busy machine, do not compare. It never fails because something is slow.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// section is one question with its table.
type section struct {
	name, title string
	measure     func(*bench) error
	asked       bool // measured only if it is named
}

var sections = []section{
	// Programs, bare and under gpumemtop.
	{name: "pool", title: "What the pool saves: seconds of work, bare and with --policy futhark, by buffer size", measure: (*bench).measureWorkTimes},
	{name: "programs", title: "What each policy does to programs: time and memory", measure: (*bench).measurePrograms},
	{name: "arena", title: "What plans of a program's memory save: peak reserved and time", measure: (*bench).measureArenaPolicy},
	{name: "proportion", title: "How much more than what is in use pools hold: peak reserved and time", measure: (*bench).measureDefaultCandidates},
	{name: "calls", title: "What calls cost: ns, while recording", measure: (*bench).measureCallCosts},
	{name: "sustained", title: "What calls cost in long loops: ns, while recording", measure: (*bench).measureLongLoops},
	{name: "spill", title: "What --spill costs where memory is enough: ns, while recording", measure: (*bench).measureCostOfSpill},
	{name: "peers", title: "What calls cost beside Intel's intercept layer: ns, while recording", measure: (*bench).compareWithInterceptLayer, asked: true},
	{name: "threads", title: "What a create and its release cost where threads make them at once: ns by the clock, of all together", measure: (*bench).measureThreadThroughput},
	{name: "watching", title: "What being watched costs a program, without a pool", measure: (*bench).measureCostOfWatching},
	{name: "dashboard", title: "What gpumemtop takes of a core in a terminal", measure: (*bench).measureDashboard},
	{name: "keys", title: "How soon a key shows in the dashboard, also over a slow line",
		measure: func(b *bench) error { return b.measureTables(b.measureKeyDelays) }, asked: true},
	{name: "attach", title: "What attaching to a running program costs (eBPF)", measure: (*bench).measureAttach},
	{name: "monitoring", title: "What it costs to be looked at: scrapes, the flight log at a program's end, static probes", measure: (*bench).measureCostOfMonitoring},
	{name: "start", title: "What starting costs: ms for a program without OpenCL, and for a small one", measure: (*bench).measureStartTimes},
	{name: "record", title: "What recording costs, and how fast two threads can send events with none lost", measure: (*bench).measureRecordingCost},
	{name: "read", title: "How fast one core reads a recording of ten million events", measure: (*bench).measureReadSpeed},
	{name: "chrome", title: "What Chrome traces cost: time, and size per buffer", measure: (*bench).measureChromeExport},
	{name: "view", title: "How soon view shows a long recording", measure: (*bench).measureViewOpening},
	{name: "experiment", title: "Whether --measure inside one run finds what whole runs show", measure: (*bench).compareExperimentWithRuns, asked: true},
	{name: "auto", title: "How programs run under --policy auto, compared with futhark and no pool, and what it decides", measure: (*bench).measureAutoPolicy},
	// Go benchmarks.
	{name: "replay", title: "How fast one core replays a recording through each policy", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkRun$", duration: "300ms", units: []string{"Mevents/s"}, packages: []string{"./internal/replay"},
		programs: []string{"churn 1000000 4K 2", "train 2000"},
	})},
	{name: "ghosts", title: "What ghosts cost: processor ns per record", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkGhosts$", duration: "1x", units: []string{"ns/record"}, packages: []string{"./internal/whatif/ghost"},
		programs: []string{"churn 200000 4K 2", "train 5000 4K"},
		footnotes: "Take is what the collecting goroutine pays. Below 1000 ns for EightAndCurve, one core keeps up with a million\n" +
			"records per second.",
	})},
	{name: "curve", title: "What the hit-rate curve costs: ns per record; and its error in points of hit rate", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkLive$", duration: "1x", units: []string{"ns/record", "points-expected", "points-off"}, packages: []string{"./internal/whatif/curve"},
		programs: []string{"churn 30000 4K 2", "train 1000", "threads"},
	})},
	{name: "tune", title: "How long a search for policy and limits takes", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkSearch$", duration: "1x", packages: []string{"./internal/tune"},
	})},
	{name: "plan", title: "How soon MiniMalloc's challenging instances are placed", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkChallenging$", duration: "1x", columns: "/workers", packages: []string{"./internal/arena"},
	})},
	{name: "advise", title: "How fast advise analyses recordings", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkAdvise$", duration: "1x", packages: []string{"./internal/advise"},
	})},
	{name: "policies", title: "What one allocation and release costs, by number of threads", measure: goBenchmarkSection(parts{
		pattern: "^Benchmark(Serve|AllocFree|Ring)$", duration: "100ms", columns: "/threads",
		packages: []string{"./intercept/broker", "./allocator/concurrent/tbuddy", "./allocator/concurrent/ualloc"},
		footnotes: "Serve: policies behind one mutex, as in a program, without the driver, the shim and the clock. A miss creates a block\n" +
			"or a slab. AllocFree and Ring: structures that all threads call directly.",
	})},
	{name: "flat", title: "Whether a hit costs the same with any number of blocks", measure: goBenchmarkSection(parts{
		pattern: "^Benchmark(Hit|Map)$", duration: "30ms", columns: "/blocks", units: []string{"ns/op"}, packages: []string{"./allocator"},
		footnotes: "Blocks are used in random order, so that the processor's caches hold the first columns and not the last: a Go map shows\n" +
			"what that alone costs.",
	})},
	{name: "places", title: "What requests cost: served by a plan, against a plan, and under slab; by places of the plan", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkPlanned$", duration: "30ms", columns: "/places", units: []string{"ns/op"}, packages: []string{"./allocator"},
	})},
	{name: "learning", title: "What learning plans costs: processor ns per record, and as a share of one core while the program ran", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkPlanner$", duration: "5x", units: []string{"ns/record", "%core", "plans"}, packages: []string{"./internal/whatif/live"},
		programs: []string{"train 2000", "pipeline 200 256K", "churn 200000 4K 2"},
	})},
	{name: "exhaustion", title: "How fast a pool is exhausted, and how many requests fail", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkExhaust$", duration: "1x", units: []string{"ns/request", "%failed"}, packages: []string{"./allocator/concurrent/ualloc"},
	})},
	{name: "semaphores", title: "Bulk semaphores and counting ones", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkTake$", duration: "400ms", columns: "/threads", packages: []string{"./allocator/concurrent/semaphore"},
	})},
	{name: "rcu", title: "Delegated barriers and plain ones", measure: goBenchmarkSection(parts{
		pattern: "^BenchmarkRemove$", duration: "100ms", columns: "/goroutines", units: []string{"ns/tag"}, packages: []string{"./allocator/concurrent/rcu"},
	})},
	{name: "go", title: "Other parts", measure: goBenchmarkSection(parts{
		pattern: ".", duration: "100ms",
		packages: []string{
			"./allocator/carve", "./allocator/concurrent/collective", "./internal/wire/...", "./internal/recording/...", "./internal/stats/...",
			"./internal/session", "./internal/analysis",
		},
	})},
}

type bench struct {
	root string   // of the repository
	temp string   // for recordings
	runs int      // of each program in each mode; the median counts
	pick string   // prefixes of the names of programs in section experiment, separated by commas; empty: all
	env  []string // variables for programs, besides our own
	out  *tabwriter.Writer
}

// isProgramSelected reports whether the user wants a program measured.
func (b *bench) isProgramSelected(program string) bool {
	return slices.ContainsFunc(strings.Split(b.pick, ","), func(begin string) bool { return strings.HasPrefix(program, begin) })
}

func main() {
	runs := flag.Int("runs", 3, "run each program so often in each mode")
	only := flag.String("only", "", "comma-separated sections to measure, of: "+strings.Join(sectionNames(), ", "))
	pick := flag.String("pick", "", "in sections experiment and proportion, only programs whose names begin with one of these, commas between")
	flag.Parse()
	if err := runSections(max(*runs, 1), *only, *pick); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

func runSections(runs int, only, pick string) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "gpumemtop-bench")
	if err != nil {
		return fmt.Errorf("make a folder for recordings: %w", err)
	}
	defer os.RemoveAll(temp)
	wanted := sectionNames()
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, name := range wanted {
		if !slices.Contains(sectionNames(), name) {
			return fmt.Errorf("no section %q: there are %s", name, strings.Join(sectionNames(), ", "))
		}
	}
	closeInheritedFiles()
	b := &bench{root: root, temp: temp, runs: runs, pick: pick, out: tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)}
	fmt.Printf("%s: %s\n", time.Now().Format(time.DateOnly), b.gpumemtopVersion())
	fmt.Printf("%s, %d cores, %s; median of %d runs in turns\n", processorName(), runtime.NumCPU(), b.driverName(), runs)
	for _, s := range sections {
		if !slices.Contains(wanted, s.name) || s.asked && only == "" {
			continue
		}
		fmt.Printf("\n%s\n\n", s.title)
		if err := s.measure(b); err != nil {
			fmt.Printf("not measured: %v\n", err)
		}
	}
	return nil
}

// closeInheritedFiles closes descriptors that a shell left open, so that the programs do not inherit them: after a high number their
// descriptor table has room already for the files of a library, and starting costs less than usual.
func closeInheritedFiles() {
	for fd := 3; fd < 256; fd++ {
		syscall.CloseOnExec(fd)
	}
}

// findRoot returns the repository's folder and checks that it was built.
func findRoot() (string, error) {
	text, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	root := strings.TrimSpace(string(text))
	if _, err := os.Stat(filepath.Join(root, "bin", "gpumemtop")); err != nil {
		return "", fmt.Errorf("run make first: %w", err)
	}
	return root, nil
}

// gpumemtopVersion returns the version of gpumemtop, with its commit.
func (b *bench) gpumemtopVersion() string {
	text, err := exec.Command(b.gpumemtopPath(), "--version").Output()
	if err != nil {
		return "gpumemtop of unknown version"
	}
	return strings.TrimSpace(string(text))
}

func processorName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, "\t :"))
		}
	}
	return runtime.GOARCH
}

// driverName names the OpenCL platform and device that the examples use: the first.
func (b *bench) driverName() string {
	text, err := exec.Command("clinfo", "--list").Output()
	if err != nil {
		return "unknown OpenCL"
	}
	words := strings.Fields(strings.NewReplacer("`--", " ", "Platform #0:", "", "Device #0:", "/").Replace(string(text)))
	return strings.Join(words, " ")
}

// measureTables measures the tables of one section.
func (b *bench) measureTables(list ...func() error) error {
	for _, table := range list {
		if err := table(); err != nil {
			return err
		}
		b.flushTable()
		fmt.Println()
	}
	return nil
}

// printRow prints one row of the table under way; flush ends the table.
func (b *bench) printRow(cells ...any) {
	for _, cell := range cells {
		fmt.Fprintf(b.out, "%v\t", cell)
	}
	fmt.Fprintln(b.out)
}

func (b *bench) flushTable() {
	if err := b.out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: write the table:", err)
	}
}
