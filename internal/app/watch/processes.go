package watch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// process is one to attach to.
type process struct {
	pid     int
	comm    string
	command []string // at least one word
	stopped bool     // by a signal
}

// findProcesses reads the values of -p and looks each process up once. The error is about the first that does not exist.
func findProcesses(values []string) ([]process, error) {
	var processes []process
	for _, value := range values {
		for text := range strings.SplitSeq(value, ",") {
			pid, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil || pid <= 0 {
				return nil, fmt.Errorf("bad value %q for --pid: want a process id, for example 4711", text)
			}
			if slices.ContainsFunc(processes, func(t process) bool { return t.pid == pid }) {
				continue
			}
			found, err := findProcess(pid)
			if err != nil {
				return nil, err
			}
			processes = append(processes, found)
		}
	}
	return processes, nil
}

// hiddenProcessError explains why /proc does not show a process. The kernel may know it all the same.
func hiddenProcessError(pid int) error {
	if pid <= math.MaxInt32 && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return fmt.Errorf("process %d exists, but /proc does not show it: mount /proc, or, where it hides other users' processes (hidepid), run as its user or with CAP_SYS_PTRACE", pid)
	}
	return fmt.Errorf("no process has the id %d: it ended, or runs in another process id namespace", pid)
}

func findProcess(pid int) (process, error) {
	t := process{pid: pid}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return t, hiddenProcessError(pid)
	}
	if err != nil {
		return t, fmt.Errorf("read the status of process %d: %w", pid, err)
	}
	state, group := "", 0
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "Name":
			t.comm = value
		case "State":
			state = value
		case "Tgid":
			group, _ = strconv.Atoi(value) // the kernel writes a number
		}
	}
	switch {
	case group != pid:
		return t, fmt.Errorf("%d is a thread of process %d: use -p %d", pid, group, group)
	case strings.HasPrefix(state, "Z"), strings.HasPrefix(state, "X"):
		return t, fmt.Errorf("process %d (%s) has ended, and its parent has not collected it yet", pid, t.comm)
	}
	t.stopped = strings.HasPrefix(state, "T")
	t.command = []string{t.comm}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if line = bytes.TrimRight(line, "\x00"); err == nil && len(line) > 0 { // else it is ending, or has none
		t.command = strings.Split(string(line), "\x00")
	}
	return t, nil
}
