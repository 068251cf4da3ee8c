// Command bench measures what gpumemtop costs and what its pool saves on this machine, and prints a table for each
// question. Everything is compared with the bare program within the same run, in turns, and the median is shown:
// figures from different machines, or from different hours on a busy one, do not compare. It judges nothing and never
// fails because something was slow.
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
	"text/tabwriter"
)

// section is one question with its table.
type section struct {
	name, title string
	measure     func(*bench) error
}

var sections = []section{
	// Programs, bare and under gpumemtop.
	{"pool", "What the pool saves: seconds of work, bare and with --policy futhark, by size of the buffers", (*bench).pool},
	{"programs", "What each policy does to programs: times, and memory held", (*bench).programs},
	{"calls", "What calls cost: ns, recording on", (*bench).calls},
	{"attach", "What watching a program costs that runs already (eBPF)", (*bench).attach},
	{"start", "What starting costs: ms for a program without OpenCL", (*bench).start},
	{"record", "What a recording costs, and how fast two threads can write events with none lost", (*bench).record},
	{"read", "How fast one core reads a recording of ten million events and folds it", (*bench).read},
	{"replay", "How fast one core plays a recording through each policy", (*bench).replay},
	{"ghosts", "What policies cost that are simulated beside a run: ns of the processor for each record", (*bench).ghosts},
	{"curve", "What the hit rate by limit costs beside a run, and how far it is off", (*bench).curve},
	{"chrome", "What Chrome traces cost: the time to write one, and its size for each life of a buffer", (*bench).chrome},
	{"view", "How soon a long recording can be looked at", (*bench).view},
	{"tune", "How long a search for policy and limits takes", (*bench).tune},
	{"auto", "What --policy auto makes of programs, beside futhark", (*bench).auto},
	{"plan", "How soon MiniMalloc's challenging instances are placed", (*bench).plan},
	{"advise", "How fast recordings are looked through for memory that could be merged", (*bench).advise},
	// The allocators by themselves.
	{"policies", "What deciding costs: ns for an alloc and free, by number of threads", (*bench).policies},
	{"flat", "Whether a hit costs the same however many blocks there are: ns", (*bench).flat},
	{"exhaustion", "How fast a pool is given out, and how much of it", (*bench).exhaustion},
	{"semaphores", "Bulk semaphores against counting ones: ns", (*bench).semaphores},
	{"rcu", "Barriers that others may take over, against plain ones: ns", (*bench).delegation},
	{"go", "Go benchmarks of the parts", (*bench).parts},
}

// bench is one run of the benchmarks.
type bench struct {
	root string   // of the repository
	temp string   // for recordings
	runs int      // of each program in each mode; the median counts
	env  []string // variables for programs, besides our own
	out  *tabwriter.Writer
}

func main() {
	runs := flag.Int("runs", 3, "run each program so often in each mode")
	only := flag.String("only", "", "comma-separated sections to measure, of: "+strings.Join(sectionNames(), ", "))
	flag.Parse()
	if err := run(max(*runs, 1), *only); err != nil {
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

func run(runs int, only string) error {
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
	b := &bench{root: root, temp: temp, runs: runs, out: tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)}
	fmt.Printf("%s, %d cores, %s; median of %d runs in turns\n", processor(), runtime.NumCPU(), b.driver(), runs)
	for _, s := range sections {
		if !slices.Contains(wanted, s.name) {
			continue
		}
		fmt.Printf("\n%s\n\n", s.title)
		if err := s.measure(b); err != nil {
			fmt.Printf("not measured: %v\n", err)
		}
	}
	return nil
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

func processor() string {
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

// driver names the OpenCL platform and device that the examples use: the first.
func (b *bench) driver() string {
	text, err := exec.Command("clinfo", "--list").Output()
	if err != nil {
		return "unknown OpenCL"
	}
	words := strings.Fields(strings.NewReplacer("`--", " ", "Platform #0:", "", "Device #0:", "/").Replace(string(text)))
	return strings.Join(words, " ")
}

// row prints one row of the table under way; flush ends the table.
func (b *bench) row(cells ...any) {
	for _, cell := range cells {
		fmt.Fprintf(b.out, "%v\t", cell)
	}
	fmt.Fprintln(b.out)
}

func (b *bench) flush() {
	if err := b.out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: write the table:", err)
	}
}
