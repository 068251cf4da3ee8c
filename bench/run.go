package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mode is one way to run a program: bare when policy is empty and attached is false.
type mode struct {
	name     string
	policy   string
	attached bool
	flags    []string
	env      []string // variables besides those of all modes
}

// result is how one run went.
type result struct {
	wall   time.Duration
	cpu    time.Duration // of the process and its children
	stderr string
	peak   int64 // KiB, the most that the process had resident, without its children
	bytes  int64 // of the recording, or to the terminal
	file   string
	sum    summary

	beyond     float64       // bytes that the pool held beyond its proportion, at most
	slowCreate float64       // ns that 99 % of creates took at most
	watcher    time.Duration // that the processor spent on gpumemtop, without the program
	resident   int64         // KiB, what gpumemtop had resident when it was last looked at
}

// summary is the part of --summary that is shown.
type summary struct {
	Policy        string  `json:"policy"`
	Hits          float64 `json:"hits"`
	Misses        float64 `json:"misses"`
	HitRate       float64 `json:"hit_rate"`
	SteadyHitRate float64 `json:"steady_hit_rate"`
	Measured      []struct {
		Alternative string
		Adopted     bool
	}
	PeakInUse     float64 `json:"peak_in_use"`
	PeakRequested float64 `json:"peak_requested"`
	PeakReserved  float64 `json:"peak_reserved"`
	Lost          uint64  `json:"lost_events"`
	Plan          struct {
		Plans     float64 `json:"plans"`
		Planned   float64 `json:"planned"`
		Reserved  float64 `json:"peak_reserved_planned"`
		Requested float64 `json:"peak_requested_planned"`
	} `json:"plan_measured"`
}

func (b *bench) examplePath(name string) string {
	return filepath.Join(b.root, "bin", "examples", name)
}
func (b *bench) testProgramPath(name string) string {
	return filepath.Join(b.root, "bin", "test", name)
}

func (b *bench) gpumemtopPath() string { return filepath.Join(b.root, "bin", "gpumemtop") }

// runOnce runs a program in a mode, recording unless it is bare.
func (b *bench) runOnce(m mode, args ...string) (result, error) {
	if m.attached {
		return b.runAttached(m, args...)
	}
	r := result{file: filepath.Join(b.temp, "bench.gmt")}
	report := filepath.Join(b.temp, "summary.json")
	if m.policy != "" {
		wrap := []string{b.gpumemtopPath(), "record", "-f", "-o", r.file, "--policy", m.policy, "--summary", report}
		args = slices.Concat(wrap, m.flags, []string{"--"}, args)
	}
	cmd := b.programCommand(args)
	cmd.Env = append(cmd.Env, m.env...)
	if err := r.runAndMeasure(cmd); err != nil || m.policy == "" {
		return r, err
	}
	err := r.readResults(report)
	return r, err
}

func (b *bench) programCommand(args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), b.env...)
	return cmd
}

// readResults reads the recording and the summary of a run.
func (r *result) readResults(report string) error {
	info, err := os.Stat(r.file)
	if err != nil {
		return fmt.Errorf("no recording: %w", err)
	}
	r.bytes = info.Size()
	text, err := os.ReadFile(report)
	if err != nil {
		return fmt.Errorf("no summary: %w", err)
	}
	if err := json.Unmarshal(text, &r.sum); err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	return nil
}

func (r *result) runAndMeasure(cmd *exec.Cmd) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	ended, peak := make(chan struct{}), make(chan int64)
	go watchPeakResident(cmd.Process.Pid, ended, peak)
	err := cmd.Wait()
	r.wall, r.stderr = time.Since(start), stderr.String()
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	close(ended)
	r.peak = <-peak
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(r.stderr))
	}
	return nil
}

// watchPeakResident reads the resident memory of a process now and then until it has ended, and sends the peak. The kernel's own peak
// (ru_maxrss) includes memory of the parent from before it started the process.
func watchPeakResident(pid int, ended <-chan struct{}, peak chan<- int64) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var most int64
	for {
		select {
		case <-ticker.C:
			most = max(most, peakResidentKiB(pid))
		case <-ended:
			peak <- most
			return
		}
	}
}

// peakResidentKiB returns VmHWM of a process in KiB, 0 when it is gone.
func peakResidentKiB(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			size, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return size
		}
	}
	return 0
}

// runInTurns runs a program in every mode, one after the other, as often as asked and a number of times that, and returns the
// results by mode. The modes take turns so that whatever else the machine does hits all of them alike.
func (b *bench) runInTurns(times int, modes []mode, args ...string) ([][]result, error) {
	results := make([][]result, len(modes))
	for range times * b.runs {
		for i, m := range modes {
			r, err := b.runOnce(m, args...)
			if err != nil {
				return nil, err
			}
			results[i] = append(results[i], r)
		}
	}
	return results, nil
}

// reportedWorkSeconds returns the seconds that an example says on stderr, under -t, that its work took; for churn, of one pair.
func (r *result) reportedWorkSeconds() float64 {
	for line := range strings.Lines(r.stderr) {
		_, after, ok := strings.Cut(strings.TrimSpace(line), ": ")
		number, unit, isTime := strings.Cut(after, " ")
		value, err := strconv.ParseFloat(number, 64)
		switch {
		case !ok || !isTime || err != nil:
		case unit == "s":
			return value
		case strings.HasPrefix(unit, "ns per pair"):
			return value / 1e9
		}
	}
	return 0
}

// callCosts returns the figures of callcost, nil when there are none.
func (r *result) callCosts() map[string]float64 {
	for line := range strings.Lines(r.stderr) {
		var figures map[string]float64
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &figures) == nil {
			return figures
		}
	}
	return nil
}

// medianOfResults returns the middle of the values that get returns for all results.
func medianOfResults(results []result, get func(*result) float64) float64 {
	values := make([]float64, 0, len(results))
	for i := range results {
		values = append(values, get(&results[i]))
	}
	return medianOf(values)
}

// medianOf returns the median, the upper one of two.
func medianOf(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}
