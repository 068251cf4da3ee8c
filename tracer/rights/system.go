package rights

import (
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// System is how a machine is looked at. This one is [Here].
type System struct {
	Architecture string // as runtime.GOARCH
	PID          int    // our own
	Release      func() string
	ReadFile     func(path string) ([]byte, error)
	// Exists says whether there is something at a path.
	Exists   func(path string) bool
	Readlink func(path string) (string, error)
	Getenv   func(name string) string
	// Executable is our own path, for advice.
	Executable func() (string, error)
	// OpenFiles is how many files this process may have open, 0 where that cannot be told.
	OpenFiles func() uint64
	// Ask tries something in the kernel. An error that wraps ebpf.ErrNotSupported says that the kernel cannot do it; with
	// any other it could not be tried, most often for lack of rights.
	Ask func(Question) error
}

// Here is this machine.
func Here() *System {
	s := &System{
		Architecture: runtime.GOARCH, PID: os.Getpid(), Release: release, ReadFile: os.ReadFile, Readlink: os.Readlink,
		Getenv: os.Getenv, Executable: os.Executable, OpenFiles: openFiles,
		Exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
	}
	s.Ask = s.ask
	return s
}

func release() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// text reads a small file, "" where it cannot be read.
func (s *System) text(path string) string {
	b, err := s.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// status returns a field of /proc/self/status.
func (s *System) status(field string) string {
	for line := range strings.Lines(s.text("/proc/self/status")) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// capabilities are sets of them as /proc/self/status has them: bit n is capability n (linux/capability.h).
type capabilities uint64

func (c capabilities) has(bit int) bool { return c&(1<<bit) != 0 }

func (s *System) capabilities(field string) capabilities {
	v, err := strconv.ParseUint(s.status(field), 16, 64)
	if err != nil {
		return 0
	}
	return capabilities(v)
}

// held are the effective capabilities, with those that CAP_SYS_ADMIN stands for (bpf_capable and its like in
// include/linux/capability.h).
func (s *System) held() capabilities { return implied(s.capabilities("CapEff")) }

func implied(c capabilities) capabilities {
	if c.has(unix.CAP_SYS_ADMIN) {
		c |= 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON | 1<<unix.CAP_CHECKPOINT_RESTORE
	}
	return c
}

// Inodes of the namespaces that the machine boots with (include/linux/proc_ns.h).
const (
	initialUsers     = "user:[4026531837]"
	initialProcesses = "pid:[4026531836]"
)

// initialNamespace reports whether we are in the namespace of a kind that the machine boots with. Where that cannot be
// told, as without /proc, it is taken for granted: the kernel's answers decide then.
func (s *System) initialNamespace(kind, initial string) bool {
	link, err := s.Readlink("/proc/self/ns/" + kind)
	return err != nil || link == initial
}

// container reports whether this is in one. There is no sure sign, so it serves advice only.
func (s *System) container() bool {
	return s.Exists("/.dockerenv") || s.Exists("/run/.containerenv") || s.Getenv("container") != "" ||
		s.Getenv("KUBERNETES_SERVICE_HOST") != "" || !s.initialNamespace("pid", initialProcesses)
}

// filtered reports whether a seccomp filter stands between us and the kernel (SECCOMP_MODE_FILTER).
func (s *System) filtered() bool { return s.status("Seccomp") == "2" }

// confined returns the AppArmor profile that is enforced on us, "" for none.
func (s *System) confined() string {
	profile, found := strings.CutSuffix(strings.TrimRight(s.text("/proc/self/attr/current"), "\x00\n"), " (enforce)")
	if !found {
		return ""
	}
	return profile
}

// lockdown returns the mode in brackets of "none [integrity] confidentiality".
func (s *System) lockdown() string {
	_, rest, _ := strings.Cut(s.text("/sys/kernel/security/lockdown"), "[")
	mode, _, found := strings.Cut(rest, "]")
	if !found {
		return ""
	}
	return mode
}

// ownProc reports whether /proc is there and has the numbers of our own pid namespace.
func (s *System) ownProc() bool {
	self, err := s.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(s.PID)
}

// sysMounted reports whether /sys is there.
func (s *System) sysMounted() bool { return s.Exists("/sys/kernel") }

// hidden reports whether /proc shows other users' processes only to those who may trace them (hidepid of proc(5)). Of
// what is mounted there, the last hides the rest.
func (s *System) hidden() bool {
	hidden := false
	for line := range strings.Lines(s.text("/proc/self/mountinfo")) {
		mount, super, found := strings.Cut(strings.TrimSpace(line), " - proc ")
		fields := strings.Fields(mount)
		if !found || len(fields) < 5 || fields[4] != "/proc" {
			continue
		}
		_, value, _ := strings.Cut(super, "hidepid=")
		value, _, _ = strings.Cut(value, ",")
		hidden = value != "" && value != "0" && value != "off"
	}
	return hidden
}

// atLeast compares a release such as 6.1.0-37-amd64 with a version.
func atLeast(release string, major, minor int) bool {
	v, ok := version(release)
	return ok && slices.Compare(v[:2], []int{major, minor}) >= 0
}

// version returns the three numbers that a release begins with; the last may be missing.
func version(release string) (v [3]int, ok bool) {
	rest := release
	for i := range v {
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil {
			return v, i == 2
		}
		v[i] = n
		rest = strings.TrimPrefix(rest[len(digits):], ".")
	}
	return v, true
}

// killsFiltered reports whether a kernel ends a process behind a seccomp filter when a function with a probe at its return
// returns: since 6.11 it comes back to the kernel by a system call, which such a filter forbids; since commit cf6cb56ef244
// of Linux 6.14, which 6.12.14 and 6.13.3 got too, filters are not asked about it.
func killsFiltered(release string) bool {
	v, ok := version(release)
	if !ok || v[0] != 6 {
		return false
	}
	fixed, affected := map[int]int{11: math.MaxInt, 12: 14, 13: 3}[v[1]]
	return affected && v[2] < fixed
}
