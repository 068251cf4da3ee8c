package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"codeberg.org/gpumemtop/gpumemtop/tracer/rights"
)

// md5OfWord is the hash for which hashcat finds the word qxzvq97.
const md5OfWord = "737f8ab26f78febe58802a964b1e9e6f"

var (
	watchedNone   = mode{name: "attached, no tags", attached: true, flags: []string{"--tags", "none"}}
	watchedCaller = mode{name: "attached", attached: true, flags: []string{"--tags", "caller"}}
	watchedStack  = mode{name: "attached, stack tags", attached: true, flags: []string{"--tags", "stack"}}
)

// measureAttach measures the cost of probes for programs, and how many calls per second gpumemtop can take in.
func (b *bench) measureAttach() error {
	report := rights.ExamineThisSystem()
	if err := report.RefusalError(); err != nil {
		return err
	}
	return b.measureTables(b.measureAttachCalls, b.measureAttachPrograms, b.measureAttachRates, b.measureAttachIntakeRate, b.measureAttachSetupTimes)
}

func (b *bench) measureAttachCalls() error {
	return b.compareCallCosts([]mode{bare, none, watchedNone, watchedCaller, watchedStack})
}

// measureAttachPrograms compares real programs. The median is over pairs: a bare run and an attached run, one after the other.
func (b *bench) measureAttachPrograms() error {
	// hashcat keeps its compiled kernels there after its first run.
	b.env = []string{"HOME=" + b.temp, "XDG_DATA_HOME=" + b.temp, "XDG_CACHE_HOME=" + b.temp}
	defer func() { b.env = nil }()
	b.printRow("program", "bare s", "attached s", "attached × bare", "lowest", "highest", "events", "lost")
	for _, program := range [][]string{
		{"clpeak", "--global-bandwidth"},
		{"clpeak", "--kernel-latency"},
		{
			"hashcat", "-m", "0", "-a", "3", "--potfile-disable", "--force", "-w", "1", "-D", "1", "--quiet", "--session", "bench",
			md5OfWord, "?l?l?l?l?l?d?d",
		},
	} {
		path, err := exec.LookPath(program[0])
		if err != nil {
			fmt.Printf("%s is not installed\n", program[0])
			continue
		}
		if err := b.measureAttachPair(strings.TrimSuffix(strings.Join(program[:2], " "), " -m"), append([]string{path}, program[1:]...)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureAttachPair(name string, args []string) error {
	if _, err := b.runOnce(bare, args...); err != nil {
		return err
	}
	results, err := b.runInTurns(2, []mode{bare, watchedCaller}, args...)
	if err != nil {
		return err
	}
	var ratios []float64
	for i := range results[0] {
		ratios = append(ratios, results[1][i].wall.Seconds()/results[0][i].wall.Seconds())
	}
	last := &results[1][len(results[1])-1]
	b.printRow(name, formatFixed(medianOfResults(results[0], wallSeconds), 3), formatFixed(medianOfResults(results[1], wallSeconds), 3),
		formatFixed(medianOf(ratios), 3),
		formatFixed(slices.Min(ratios), 3), formatFixed(slices.Max(ratios), 3), formatIfCounted(b.countEvents(last.file)), last.sum.Lost)
	return nil
}

// measureAttachRates lets threads call as often as they can.
func (b *bench) measureAttachRates() error {
	const pairs = 500_000
	b.printRow("threads", "events", "events/s", "lost", "program's ns/event", "bare", "gpumemtop's ns/event", "events/s of two cores")
	for _, threads := range []int{1, 2} {
		results, err := b.runInTurns(1, []mode{bare, watchedCaller}, b.examplePath("churn"), strconv.Itoa(pairs), "4K", strconv.Itoa(threads))
		if err != nil {
			return err
		}
		nanoseconds := func(r *result) float64 { return float64(r.cpu.Nanoseconds()) / (2 * pairs) }
		taken := func(r *result) float64 { return float64(r.watcher.Nanoseconds()) / (2 * pairs) }
		program, alone := medianOfResults(results[1], nanoseconds), medianOfResults(results[0], nanoseconds)
		ours := medianOfResults(results[1], taken)
		lost := medianOfResults(results[1], func(r *result) float64 { return float64(r.sum.Lost) })
		b.printRow(threads, 2*pairs, formatIfCounted(2/medianOfResults(results[1], (*result).reportedWorkSeconds)), lost,
			formatFixed(program, 0), formatFixed(alone, 0),
			formatFixed(ours, 0), formatIfCounted(2e9/(program+ours)))
	}
	b.flushTable()
	fmt.Println("\nns of processor time. The last column is what two cores had come to that do nothing else: events/s counts with\nwhatever else the machine does.")
	return nil
}

// runAttached runs a program with gpumemtop attached from its first call on. gpumemtop finds it by a name that no other program on
// the machine has.
func (b *bench) runAttached(m mode, args ...string) (result, error) {
	r := result{file: filepath.Join(b.temp, "bench.gmt")}
	report := filepath.Join(b.temp, "summary.json")
	name := fmt.Sprintf("gmtbench%d", os.Getpid())
	link := filepath.Join(b.temp, name)
	_ = os.Remove(link) // of another program
	if err := os.Symlink(args[0], link); err != nil {
		return r, err
	}
	flags := append([]string{"attach", "--headless", "-f", "--comm", name, "-o", r.file, "--summary", report}, m.flags...)
	cmd := exec.Command(b.gpumemtopPath(), flags...)
	said, err := cmd.StderrPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start gpumemtop attach: %w", err)
	}
	if err = waitUntilWatching(said); err == nil {
		err = r.runAndMeasure(b.programCommand(append([]string{link}, args[1:]...)))
	}
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have failed, which Wait says
	text, _ := io.ReadAll(said)
	if ended := cmd.Wait(); ended != nil {
		return r, fmt.Errorf("gpumemtop attach: %w: %s", ended, text)
	}
	r.watcher = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil {
		return r, err
	}
	err = r.readResults(report)
	return r, err
}

// waitUntilWatching returns when gpumemtop has reported that all probes are set.
func waitUntilWatching(said io.Reader) error {
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("gpumemtop attach ended: %s", strings.TrimSpace(line))
		}
		if strings.Contains(line, "Ctrl-C ends") {
			return nil
		}
	}
}
