package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// measureRecordingCost shows the size of recordings, how fast events can come, and the CPU time of gpumemtop itself.
func (b *bench) measureRecordingCost() error {
	b.printRow("program", "policy", "wall s", "processor s", "events", "events/s", "lost", "bytes on disk", "bytes/event",
		"peak MiB of gpumemtop")
	for _, row := range []struct {
		name string
		m    mode
		args []string
	}{
		{"train", futhark, []string{b.examplePath("train")}},
		{"train 300", futhark, []string{b.examplePath("train"), "300"}},
		{"churn 100000, 2 threads", none, []string{b.examplePath("churn"), "100000", "4K", "2"}},
		{"churn 5000000, 2 threads", none, []string{b.examplePath("churn"), "5000000", "4K", "2"}},
		{"churn 5000000, 2 threads", futhark, []string{b.examplePath("churn"), "5000000", "4K", "2"}},
		{"churn 5000000, 2 threads", pow2, []string{b.examplePath("churn"), "5000000", "4K", "2"}},
	} {
		r, err := b.runOnce(row.m, row.args...)
		if err != nil {
			return err
		}
		events := b.countEvents(r.file)
		b.printRow(row.name, row.m.name, formatFixed(r.wall.Seconds(), 2), formatFixed(r.cpu.Seconds(), 2), formatIfCounted(events),
			formatIfCounted(events/r.wall.Seconds()), r.sum.Lost, r.bytes, formatIfCounted(float64(r.bytes)/events), formatFixed(float64(r.peak)/1024, 1))
	}
	b.flushTable()
	fmt.Println("\nEvents in a second of the whole run, with its start. Processor time is that of the program, too. Where other work\n" +
		"takes the cores, it tells more than the wall time does.")
	return nil
}

// measureReadSpeed shows how fast one core reads recordings and folds them.
func (b *bench) measureReadSpeed() error {
	core, err := firstUsableCore()
	if err != nil {
		return err
	}
	b.printRow("command", "events", "MB", "wall s", "processor s", "million events/s", "peak MiB")
	// Two events each: ten million.
	recorded, err := b.runOnce(none, b.examplePath("churn"), "5000000", "4K", "2")
	if err != nil {
		return err
	}
	events := b.countEvents(recorded.file)
	for _, way := range []struct {
		name string
		args []string
	}{
		{"report", []string{"report"}},
		{"export to pprof", []string{"export", "--format", "pprof", "-o", "-"}},
		{"export to ndjson", []string{"export", "--format", "ndjson", "-o", "-"}},
	} {
		var runs []result
		for range b.runs {
			var r result
			if err := r.runAndMeasure(b.commandOnCore(core, append(way.args, recorded.file)...)); err != nil {
				return err
			}
			runs = append(runs, r)
		}
		seconds := medianOfResults(runs, func(r *result) float64 { return r.cpu.Seconds() })
		b.printRow(way.name, formatIfCounted(events), formatFixed(float64(recorded.bytes)/1e6, 1),
			formatFixed(medianOfResults(runs, wallSeconds), 2), formatFixed(seconds, 2),
			formatFixed(events/seconds/1e6, 2), formatFixed(medianOfResults(runs, func(r *result) float64 { return float64(r.peak) / 1024 }), 1))
	}
	b.flushTable()
	return nil
}

// firstUsableCore returns a core that this process may use.
func firstUsableCore() (int, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return 0, fmt.Errorf("look for a core: %w", err)
	}
	core := 0
	for !allowed.IsSet(core) {
		core++
	}
	return core, nil
}

// commandOnCore is gpumemtop on one core only.
func (b *bench) commandOnCore(core int, args ...string) *exec.Cmd {
	return exec.Command("taskset", append([]string{"-c", strconv.Itoa(core), b.gpumemtopPath()}, args...)...)
}

// countEvents asks gpumemtop how many events a recording holds; 0 when it cannot tell.
func (b *bench) countEvents(file string) float64 {
	text, err := exec.Command(b.gpumemtopPath(), "info", "--format", "json", file).Output()
	if err != nil {
		return 0
	}
	var facts struct {
		Events float64 `json:"events"`
	}
	if json.Unmarshal(text, &facts) != nil {
		return 0
	}
	return facts.Events
}
