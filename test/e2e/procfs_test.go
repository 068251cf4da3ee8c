package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
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

// memorySlack, in KiB, is how much more memory gpumemtop may have after much than after little: buffers that fill,
// garbage not yet collected.
const memorySlack = 24 << 10

// statusKiB returns an amount of memory of a process, 0 when it is gone.
func statusKiB(pid int, name string) int {
	size, err := strconv.Atoi(strings.TrimSuffix(statusField(pid, name), " kB"))
	if err != nil {
		return 0
	}
	return size
}

// waitWatching waits for the end and returns the most that was seen of an amount of memory, in KiB.
func (p *process) waitWatching(name string) (result outcome, most int) {
	p.t.Helper()
	ended, watched := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		ticker := time.NewTicker(pollEvery)
		defer ticker.Stop()
		for {
			most = max(most, statusKiB(p.cmd.Process.Pid, name))
			select {
			case <-ticker.C:
			case <-ended:
				watched <- most
				return
			}
		}
	}()
	result = p.wait()
	close(ended)
	if most = <-watched; most == 0 {
		p.t.Fatalf("%v had no %s at any time", p.cmd.Args, name)
	}
	return result, most
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
