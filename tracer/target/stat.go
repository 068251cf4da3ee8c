package target

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unicode"
)

// status is what of /proc/PID/stat matters here (proc_pid_stat(5)).
type status struct {
	comm    string
	state   byte   // 'R', 'S', …; 'Z' and 'X' have ended
	parent  int    // process id
	flags   uint64 // PF_* of the kernel
	threads int
	started uint64 // clock ticks since boot
	stack   uint64 // where the main thread's stack begins, 0 where we have no right to know: every execve(2) finds another place
}

// kernelThread is PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

var errStat = errors.New("this is no line of /proc/PID/stat")

// parseStat takes the line apart. The name may hold anything, parentheses and spaces too: the last parenthesis ends it.
func parseStat(line []byte) (status, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return status{}, errStat
	}
	s := status{comm: string(line[open+1 : end])}
	const behindName = 3 // the first field that we have is the third of the manual
	fields := bytes.Fields(line[end+1:])
	number := func(field int) uint64 {
		if field -= behindName; field >= len(fields) {
			return 0
		}
		n, err := strconv.ParseUint(string(fields[field]), 10, 64)
		if err != nil {
			return 0 // some fields are negative; none that we want
		}
		return n
	}
	if len(fields) < 22-behindName+1 || len(fields[0]) != 1 || !unicode.IsLetter(rune(fields[0][0])) {
		return status{}, errStat
	}
	s.state = fields[0][0]
	s.parent, s.flags, s.threads = int(number(4)), number(9), int(number(20))
	s.started, s.stack = number(22), number(28)
	return s, nil
}

// ended reports whether nothing of the process runs any more. One whose first thread has ended alone is not at its end.
func (s *status) ended() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

func (fs procfs) stat(pid int) (status, error) {
	line, err := os.ReadFile(fs.of(pid, "stat"))
	if err != nil {
		return status{}, err
	}
	s, err := parseStat(line)
	if err != nil {
		return s, fmt.Errorf("read %s: %w", fs.of(pid, "stat"), err)
	}
	return s, nil
}
