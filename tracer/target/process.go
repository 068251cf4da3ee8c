package target

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// commandMax bounds what is kept of a command line, in bytes.
const commandMax = 4096

// Process is one process, as it was when it was opened. Its methods read /proc anew; they may be called from any
// goroutine.
type Process struct {
	PID, Parent int
	Started     uint64   // clock ticks since boot: tells a process from a later one with the same id
	Comm        string   // the name that the kernel knows, at most 15 bytes
	Command     []string // the program and its arguments, as far as they fit into 4096 bytes; it may be empty
	Cgroup      string   // path below the root of the cgroup2 tree; where there is none, of the first hierarchy
	// Unsupported says why its calls cannot be watched although we may look into it, "" when they can.
	Unsupported string

	fs      procfs
	cgroups []string                  // paths in all hierarchies
	near    bool                      // it has our mount namespace: its paths are ours
	stack   uint64                    // see status
	files   atomic.Pointer[[]Mapping] // of code, when Maps was called last
	parent  *Process                  // see Child; nil: it was opened
}

// Open returns a process that can be watched. The error wraps ErrGone, ErrDenied or ErrRefused where that is the reason,
// and says what to do.
func Open(pid int) (*Process, error) { return proc.open(pid) }

func (fs procfs) open(pid int) (*Process, error) {
	s, err := fs.stat(pid)
	if err != nil {
		return nil, fs.absent(pid, err)
	}
	p := &Process{PID: pid, Parent: s.parent, Started: s.started, Comm: s.comm, fs: fs, stack: s.stack}
	if err := p.refusal(&s); err != nil {
		return nil, err
	}
	mounts, err := os.Readlink(fs.of(pid, "ns/mnt"))
	if err != nil {
		return nil, p.denied(err)
	}
	own, err := os.Readlink(string(fs) + "/self/ns/mnt")
	p.near = err == nil && own == mounts
	p.Unsupported = p.foreign()
	p.command()
	p.groups()
	if !p.Same() {
		return nil, gone(pid)
	}
	return p, nil
}

func gone(pid int) error { return fmt.Errorf("process %d: %w", pid, ErrGone) }

// vanished reports whether an error of /proc says that the process is not there. Files of one that ends are open by then,
// and tell it when they are read.
func vanished(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// absent says why there is nothing to read of a process.
func (fs procfs) absent(pid int, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission), fs == proc && errors.Is(unix.Kill(pid, 0), unix.EPERM):
		return fmt.Errorf("process %d: %w: /proc is mounted with hidepid, which hides other users' processes: run as its user, or with CAP_SYS_PTRACE", pid, ErrDenied)
	case vanished(err):
		return gone(pid)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// denied says why we may not look into a process.
func (p *Process) denied(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission) && p.user() == os.Geteuid():
		return fmt.Errorf("process %d (%s): %w: it has rights that we lack, or wants to be private (PR_SET_DUMPABLE): run with CAP_SYS_PTRACE", p.PID, p.Comm, ErrDenied)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("process %d (%s): %w: it belongs to another user: run as that user, or with CAP_SYS_PTRACE", p.PID, p.Comm, ErrDenied)
	case vanished(err):
		return gone(p.PID)
	}
	return fmt.Errorf("process %d (%s): %w", p.PID, p.Comm, err)
}

// refusal says why a process is none to be watched.
func (p *Process) refusal(s *status) error {
	self, err := os.Readlink(string(p.fs) + "/self")
	switch {
	case s.ended():
		return fmt.Errorf("process %d (%s): %w: it has ended, and its parent has not looked yet", p.PID, p.Comm, ErrGone)
	case s.flags&kernelThread != 0:
		return fmt.Errorf("process %d (%s): %w: it is a thread of the kernel", p.PID, p.Comm, ErrRefused)
	case err == nil && self == strconv.Itoa(p.PID):
		return fmt.Errorf("process %d (%s): %w: it is gpumemtop itself", p.PID, p.Comm, ErrRefused)
	case p.PID == 1 && p.fs.outermost():
		return fmt.Errorf("process 1 (%s): %w: it is the system's first process, which starts all others and uses no GPU", p.Comm, ErrRefused)
	}
	leader, err := strconv.Atoi(p.field("Tgid:"))
	if err == nil && leader != p.PID {
		return fmt.Errorf("%d (%s) is a thread, and processes are watched whole: %w: ask for its process, %d", p.PID, p.Comm, ErrRefused, leader)
	}
	return nil
}

// outermost reports whether we live in the first pid namespace (PROC_PID_INIT_INO of include/linux/proc_ns.h), not in a
// container, where the first process may well be a program that uses the GPU.
func (fs procfs) outermost() bool {
	space, err := os.Readlink(string(fs) + "/self/ns/pid")
	return err == nil && space == "pid:[4026531836]"
}

// field returns the first word behind a label of /proc/PID/status, "" when it is not there.
func (p *Process) field(label string) string {
	text, err := os.ReadFile(p.fs.of(p.PID, "status"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, label); found {
			if words := strings.Fields(rest); len(words) > 0 {
				return words[0]
			}
		}
	}
	return ""
}

// user returns who runs the process, -1 when that is not known.
func (p *Process) user() int {
	user, err := strconv.Atoi(p.field("Uid:"))
	if err != nil {
		return -1
	}
	return user
}

// foreign says why the process runs another kind of code than ours.
func (p *Process) foreign() string {
	var header [20]byte // e_machine is its last field
	file, err := os.Open(p.fs.of(p.PID, "exe"))
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // only read
	if _, err := io.ReadFull(file, header[:]); err != nil || string(header[:4]) != elf.ELFMAG {
		return ""
	}
	machine := elf.Machine(uint16(header[18]) | uint16(header[19])<<8)
	switch {
	case header[elf.EI_DATA] != byte(elf.ELFDATA2LSB):
		return "it is a program for another kind of processor"
	case machine == elf.EM_386, machine == ourMachine && header[elf.EI_CLASS] == byte(elf.ELFCLASS32):
		return "it is a 32-bit program: only 64-bit ones can be watched"
	case machine != ourMachine:
		return "it is a program for another kind of processor (" + strings.TrimPrefix(machine.String(), "EM_") + ")"
	}
	return ""
}

func (p *Process) command() {
	file, err := os.Open(p.fs.of(p.PID, "cmdline"))
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // only read
	text, _ := io.ReadAll(io.LimitReader(file, commandMax))
	// Some programs write one text of their own there, with more NULs behind it.
	if text = bytes.TrimRight(text, "\x00"); len(text) > 0 {
		p.Command = strings.Split(string(text), "\x00")
	}
}

func (p *Process) groups() {
	text, err := os.ReadFile(p.fs.of(p.PID, "cgroup"))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if fields[0] == "0" || p.Cgroup == "" {
			p.Cgroup = fields[2]
		}
		if !slices.Contains(p.cgroups, fields[2]) {
			p.cgroups = append(p.cgroups, fields[2])
		}
	}
}

// Child returns what is known of a process that is gone, and that was forked from this one, or from a child of it, and
// has executed no other program: but for its ids it is what this one was. The files that it had mapped are those of this
// one, whose paths OpenPath finds.
func (p *Process) Child(pid, parent int) *Process {
	opened := p
	if p.parent != nil {
		opened = p.parent // a long line of children keeps no more than this one
	}
	return &Process{
		PID: pid, Parent: parent, Comm: p.Comm, Command: p.Command, Cgroup: p.Cgroup, Unsupported: p.Unsupported,
		fs: p.fs, cgroups: p.cgroups, near: p.near, stack: p.stack, parent: opened,
	}
}

// Runs reports whether the process, when it was opened, was in the program that another one was in, as its children are
// until they execute one. It knows only where we may know where a stack begins, and else says that it was.
func (p *Process) Runs(other *Process) bool { return p.stack == other.stack }

// Filtered reports whether a filter of system calls is in force on the process, or on its first thread at least
// (SECCOMP_MODE_FILTER).
func (p *Process) Filtered() bool { return p.field("Seccomp:") == "2" }

// Same reports whether the process is still there and is still this one, not a later one with its id.
func (p *Process) Same() bool {
	s, err := p.fs.stat(p.PID)
	return err == nil && s.started == p.Started && !s.ended()
}

// Replaced reports whether the process has executed another program since it was opened, or the same one again: all that
// was known of its memory is void then. It knows only where Open and this call have the same rights.
func (p *Process) Replaced() bool {
	s, err := p.fs.stat(p.PID)
	return err == nil && s.started == p.Started && s.stack != p.stack
}

// Asks reports whether the process is one in which drivers are asked where their functions are, see AskVendors: no
// program of anybody's.
func (p *Process) Asks() bool {
	text, err := os.ReadFile(p.fs.of(p.PID, "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, text...), []byte("\x00"+wire.ProbeEnv+"="))
}
