package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// children lists the child processes of all threads of a process.
func children(pid int) []int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var found []int
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				found = append(found, child)
			}
		}
	}
	return found
}

// descendant returns the process called name below pid, 0 while there is none.
func descendant(pid int, name string) int {
	for _, child := range children(pid) {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
		if err == nil && strings.TrimSpace(string(comm)) == name {
			return child
		}
		if found := descendant(child, name); found != 0 {
			return found
		}
	}
	return 0
}

// awaitDescendant waits until gpumemtop has started its program.
func awaitDescendant(t *testing.T, pid int, name string) int {
	t.Helper()
	found := 0
	waitFor(t, name+" to run", func() bool {
		found = descendant(pid, name)
		return found != 0
	})
	return found
}

// catches reports whether a process has a handler for a signal.
func catches(pid int, signal syscall.Signal) bool {
	mask, err := strconv.ParseUint(statusField(pid, "SigCgt"), 16, 64)
	return err == nil && mask&(1<<(uint(signal)-1)) != 0
}

// peakKiB returns the most memory that a process has had resident so far, 0 when it is gone.
func peakKiB(pid int) int {
	size, err := strconv.Atoi(strings.TrimSuffix(statusField(pid, "VmHWM"), " kB"))
	if err != nil {
		return 0
	}
	return size
}

// statusField returns a line of /proc/PID/status without its name, "" when the process is gone.
func statusField(pid int, name string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// alive reports whether a process runs: it exists and is no zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, ok := strings.Cut(string(text), ") ")
	return ok && after[0] != 'Z' && after[0] != 'X'
}
