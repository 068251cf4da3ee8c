package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

func (b *bench) measureDashboard() error {
	return b.measureTables(b.measureCoreShares, b.measureKeyDelays)
}

// measureCoreShares shows the share of a core that gpumemtop uses while it collects, models and draws.
func (b *bench) measureCoreShares() error {
	const pairs = 3_000_000
	ordinary := []string{b.examplePath("train"), "2000"}
	fast := []string{b.examplePath("churn"), strconv.Itoa(pairs), "4K", "2"}
	b.printRow("program", "way", "% of a core", "ns/event", "% at a million events/s", "KB/s to the terminal", "MiB resident")
	for _, row := range []struct {
		program string
		way     string
		events  float64 // 0: few
		flags   []string
		args    []string
	}{
		{"train 2000", "dashboard", 0, []string{"--exit-with-app"}, ordinary},
		{"churn, 2 threads", "headless", 2 * pairs, []string{"--headless"}, fast},
		{"churn, 2 threads", "dashboard without ghosts", 2 * pairs, []string{"--exit-with-app", "--ghosts", "off"}, fast},
		{"churn, 2 threads", "dashboard", 2 * pairs, []string{"--exit-with-app"}, fast},
	} {
		var runs []result
		for range b.runs {
			r, err := b.runInTerminal(append(append(row.flags, "--no-replay", "--"), row.args...))
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		share := medianOfResults(runs, func(r *result) float64 { return 100 * r.watcher.Seconds() / r.wall.Seconds() })
		each, atMillion := "", ""
		if row.events > 0 {
			ns := medianOfResults(runs, func(r *result) float64 { return float64(r.watcher.Nanoseconds()) / row.events })
			each, atMillion = formatFixed(ns, 0), formatFixed(ns/10, 0)
		}
		b.printRow(row.program, row.way, formatFixed(share, 1), each, atMillion,
			formatFixed(medianOfResults(runs, func(r *result) float64 { return float64(r.bytes) / 1e3 / r.wall.Seconds() }), 0),
			formatFixed(medianOfResults(runs, func(r *result) float64 { return float64(r.resident) / 1024 }), 1))
	}
	b.flushTable()
	fmt.Println("\nProcessor time of gpumemtop alone, with its start and end. What is resident counts pages of its file, which Linux maps in\n" +
		"pieces as large as it has them in its cache: 64 KiB to 2 MiB.")
	return nil
}

// runInTerminal runs gpumemtop in a terminal of 140 by 42 until it ends.
func (b *bench) runInTerminal(args []string) (result, error) {
	var r result
	cmd := exec.Command(b.gpumemtopPath(), args...)
	cmd.Env = append(os.Environ(), append(b.env, "TERM=xterm-256color", "CI=", "XDG_STATE_HOME=/dev/null")...)
	start := time.Now()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 140, Rows: 42})
	if err != nil {
		return r, fmt.Errorf("start gpumemtop: %w", err)
	}
	defer terminal.Close() //nolint:errcheck // the other side of a pty
	over, looks := make(chan struct{}), sync.WaitGroup{}
	looks.Go(func() { r.resident = sampleResidentMemory(cmd.Process.Pid, over) })
	r.bytes, _ = io.Copy(io.Discard, terminal) // until gpumemtop has closed it
	close(over)
	looks.Wait()
	looked := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	r.wall = time.Since(start)
	own, err := processorTime(cmd.Process.Pid)
	r.watcher = own
	return r, errors.Join(looked, err, cmd.Wait())
}

// sampleResidentMemory looks at the memory of a process five times a second, and returns the last KiB seen.
func sampleResidentMemory(pid int, over <-chan struct{}) (kib int64) {
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if fields := strings.Fields(string(text)); len(fields) > 1 && fields[1] != "0" {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			kib = pages * int64(os.Getpagesize()) / 1024
		}
		select {
		case <-over:
			return kib
		case <-time.After(time.Second / 5):
		}
	}
}

// processorTime returns the CPU time of a process, without its children. The process may have ended, but must not have been
// waited for.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const tick = time.Second / 100                                                      // of user space, on all machines
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // from the third
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, err
}
