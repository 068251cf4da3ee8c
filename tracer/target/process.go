package target

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/untrusted"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// commandMax bounds how much of a command line we keep, in bytes.
const commandMax = 4096

// Process describes a process as it was when it was opened. Its methods read /proc again. Any goroutine may call them.
type Process struct {
	PID, Parent int
	Started     uint64   // clock ticks since boot: distinguishes processes with the same pid
	Comm        string   // the kernel's name for it, at most 15 bytes
	Command     []string // program and arguments, up to 4096 bytes; may be empty
	Cgroup      string   // path below the root of the cgroup2 tree, or else of the first hierarchy
	// Unsupported says why its calls cannot be watched although we may inspect it, or "".
	Unsupported string

	fs         procfs
	cgroups    []string                  // paths in all hierarchies
	sameMounts bool                      // it has our mount namespace, so its paths are ours
	stack      uint64                    // see status
	files      atomic.Pointer[[]Mapping] // with code, from the latest call of Maps
	parent     *Process                  // see Child; nil if it was opened
}

// OpenProcess inspects a process. The error wraps ErrGone, ErrDenied or ErrRefused where that is the reason, and says what to
// do.
func OpenProcess(pid int) (*Process, error) { return proc.openProcess(pid) }

func (fs procfs) openProcess(pid int) (*Process, error) {
	s, err := fs.readStat(pid)
	if err != nil {
		return nil, fs.absentError(pid, err)
	}
	p := &Process{PID: pid, Parent: s.parent, Started: s.started, Comm: s.comm, fs: fs, stack: s.stack}
	if err := p.refusalError(&s); err != nil {
		return nil, err
	}
	mounts, err := os.Readlink(fs.pathOfFile(pid, "ns/mnt"))
	if err != nil {
		return nil, p.deniedError(err)
	}
	own, err := os.Readlink(string(fs) + "/self/ns/mnt")
	p.sameMounts = err == nil && own == mounts
	p.Unsupported = p.whyCodeIsForeign()
	p.readCommandLine()
	p.readControlGroups()
	if !p.StillExists() {
		return nil, goneError(pid)
	}
	return p, nil
}

func goneError(pid int) error { return fmt.Errorf("process %d: %w", pid, ErrGone) }

// meansProcessGone reports whether an error of /proc means that the process does not exist. If it ends while a file is open, the
// error comes from reading.
func meansProcessGone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// absentError says why nothing can be read about a process.
func (fs procfs) absentError(pid int, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission), fs == proc && errors.Is(unix.Kill(pid, 0), unix.EPERM):
		return fmt.Errorf("process %d: %w: /proc is mounted with hidepid, which hides other users' processes: run as its user, or with CAP_SYS_PTRACE", pid, ErrDenied)
	case meansProcessGone(err):
		return goneError(pid)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}

// deniedError says why we may not inspect a process.
func (p *Process) deniedError(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission) && p.userID() == os.Geteuid():
		return fmt.Errorf("process %d (%s): %w: it has rights that we lack, or is not dumpable (PR_SET_DUMPABLE): run with CAP_SYS_PTRACE", p.PID, p.Comm, ErrDenied)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("process %d (%s): %w: it belongs to another user: run as that user, or with CAP_SYS_PTRACE", p.PID, p.Comm, ErrDenied)
	case meansProcessGone(err):
		return goneError(p.PID)
	}
	return fmt.Errorf("process %d (%s): %w", p.PID, p.Comm, err)
}

// refusalError says why a process cannot be watched.
func (p *Process) refusalError(s *status) error {
	self, err := os.Readlink(string(p.fs) + "/self")
	switch {
	case s.hasProcessEnded():
		return fmt.Errorf("process %d (%s): %w: it has ended, and its parent has not waited for it yet", p.PID, p.Comm, ErrGone)
	case s.flags&kernelThread != 0:
		return fmt.Errorf("process %d (%s): %w: it is a kernel thread", p.PID, p.Comm, ErrRefused)
	case err == nil && self == strconv.Itoa(p.PID):
		return fmt.Errorf("process %d (%s): %w: it is gpumemtop itself", p.PID, p.Comm, ErrRefused)
	case p.PID == 1 && p.fs.isInInitialNamespace():
		return fmt.Errorf("process 1 (%s): %w: it is the system's first process, which starts all others and uses no GPU", p.Comm, ErrRefused)
	}
	leader, err := strconv.Atoi(p.statusField("Tgid:"))
	if err == nil && leader != p.PID {
		return fmt.Errorf("%d (%s) is a thread, and only whole processes can be watched: %w: use its process, %d", p.PID, p.Comm, ErrRefused, leader)
	}
	return nil
}

// isInInitialNamespace reports whether we are in the initial pid namespace (PROC_PID_INIT_INO of include/linux/proc_ns.h). In a
// container, process 1 may well use the GPU.
func (fs procfs) isInInitialNamespace() bool {
	space, err := os.Readlink(string(fs) + "/self/ns/pid")
	return err == nil && space == "pid:[4026531836]"
}

// statusField returns the first word after a label of /proc/PID/status, or "".
func (p *Process) statusField(label string) string {
	text, err := os.ReadFile(p.fs.pathOfFile(p.PID, "status"))
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

// userID returns the user id of the process, -1 if unknown.
func (p *Process) userID() int {
	user, err := strconv.Atoi(p.statusField("Uid:"))
	if err != nil {
		return -1
	}
	return user
}

// whyCodeIsForeign says why the code of the process differs from ours in kind, or "".
func (p *Process) whyCodeIsForeign() string {
	var header [20]byte // e_machine is its last field
	file, err := os.Open(p.fs.pathOfFile(p.PID, "exe"))
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
		return "it is a program for another processor"
	case machine == elf.EM_386, machine == ourMachine && header[elf.EI_CLASS] == byte(elf.ELFCLASS32):
		return "it is a 32-bit program, and only 64-bit ones can be watched"
	case machine != ourMachine:
		return "it is a program for another processor (" + strings.TrimPrefix(machine.String(), "EM_") + ")"
	}
	return ""
}

func (p *Process) readCommandLine() {
	file, err := os.Open(p.fs.pathOfFile(p.PID, "cmdline"))
	if err != nil {
		return
	}
	defer file.Close() //nolint:errcheck // only read
	text, _ := io.ReadAll(io.LimitReader(file, commandMax))
	// Some programs write a text of their own there, with several NULs after it.
	if text = bytes.TrimRight(text, "\x00"); len(text) > 0 {
		p.Command = strings.Split(string(text), "\x00")
	}
}

func (p *Process) readControlGroups() {
	text, err := os.ReadFile(p.fs.pathOfFile(p.PID, "cgroup"))
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

// DescribeChild describes a process that has ended or executed another program, and that was forked from this one or from a child
// of it. Except for its ids it equals this one. OpenablePath finds the files that this one has mapped.
func (p *Process) DescribeChild(pid, parent int) *Process {
	opened := p
	if p.parent != nil {
		opened = p.parent // so that a chain of children keeps only this one
	}
	return &Process{
		PID: pid, Parent: parent, Comm: p.Comm, Command: p.Command, Cgroup: p.Cgroup, Unsupported: p.Unsupported,
		fs: p.fs, cgroups: p.cgroups, sameMounts: p.sameMounts, stack: p.stack, parent: opened,
	}
}

// RunsSameProgram reports whether the process ran the same program as another one when both were opened, as children do until they
// execute one. Without the right to see where stacks begin it returns true.
func (p *Process) RunsSameProgram(other *Process) bool { return p.stack == other.stack }

// HasSeccompFilter reports whether a seccomp filter is in force on the process, or at least on its first thread
// (SECCOMP_MODE_FILTER).
func (p *Process) HasSeccompFilter() bool { return p.statusField("Seccomp:") == "2" }

// StillExists reports whether the process still exists, and its pid was not reused.
func (p *Process) StillExists() bool {
	s, err := p.fs.readStat(p.PID)
	return err == nil && s.started == p.Started && !s.hasProcessEnded()
}

// HasExecutedSince reports whether the process has executed a program since it was opened, which voids what was known of its
// memory. It needs the same rights as when Open was called.
func (p *Process) HasExecutedSince() bool {
	s, err := p.fs.readStat(p.PID)
	return err == nil && s.started == p.Started && s.stack != p.stack
}

// QueriesDrivers reports whether the process is one that QueryDrivers started.
func (p *Process) QueriesDrivers() bool { return p.hadVariableAtStart(wire.ProbeEnv) }

// RunsUnderGpumemtop reports whether a process with these mappings runs under gpumemtop: it has loaded the library, and was started with a
// session. Attach then sees only what the library asks of the driver. With a flight log, or static probes alone, the library
// passes all calls on to the loader.
func (p *Process) RunsUnderGpumemtop(maps []Mapping) bool {
	return slices.ContainsFunc(maps, func(m Mapping) bool { return m.Inode != 0 && filepath.Base(m.Path) == wire.ShimName }) &&
		p.hadVariableAtStart(wire.SessionEnv)
}

// ReadPlace returns who the process is among others.
func (p *Process) ReadPlace() wire.Place {
	return untrusted.ReadProcessPlace(p.fs.pathOfFile(p.PID, ""))
}

// hadVariableAtStart reports whether an environment variable was set when the process was started.
func (p *Process) hadVariableAtStart(name string) bool {
	text, err := os.ReadFile(p.fs.pathOfFile(p.PID, "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, text...), []byte("\x00"+name+"="))
}
