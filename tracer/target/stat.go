package target

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"unicode"
)

// status is the part of /proc/PID/stat that we need (proc_pid_stat(5)).
type status struct {
	comm    string
	state   byte   // 'R', 'S', …; 'Z' and 'X' have ended
	parent  int    // pid
	flags   uint64 // PF_* of the kernel
	threads int
	started uint64 // clock ticks since boot
	stack   uint64 // beginning of the main thread's stack, which each execve(2) changes; 0: we may not know
}

// kernelThread is PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

var errStat = errors.New("not a line of /proc/PID/stat")

// parseStat parses the line. The name may contain anything, also parentheses and spaces: the last parenthesis ends it.
func parseStat(line []byte) (status, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return status{}, errStat
	}
	s := status{comm: string(line[open+1 : end])}
	const behindName = 3 // our first field is the third of the manual
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

// hasProcessEnded reports whether the process has ended. If only its first thread has, it has not.
func (s *status) hasProcessEnded() bool { return s.state == 'X' || s.state == 'Z' && s.threads <= 1 }

func (fs procfs) readStat(pid int) (status, error) {
	line, err := os.ReadFile(fs.pathOfFile(pid, "stat"))
	if err != nil {
		return status{}, err
	}
	s, err := parseStat(line)
	if err != nil {
		return s, fmt.Errorf("read %s: %w", fs.pathOfFile(pid, "stat"), err)
	}
	return s, nil
}
