package rights

import (
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// System gives access to a machine. [Here] is this one.
type System struct {
	Architecture string // as runtime.GOARCH
	PID          int    // our own
	Release      func() string
	ReadFile     func(path string) ([]byte, error)
	// Exists reports whether a path exists.
	Exists   func(path string) bool
	Readlink func(path string) (string, error)
	Getenv   func(name string) string
	// Executable is our own path, for advice.
	Executable func() (string, error)
	// OpenFiles is the limit of open files of this process, 0 if unknown.
	OpenFiles func() uint64
	// Check runs a check. An error that wraps ebpf.ErrNotSupported means that the kernel lacks the feature; any other that
	// it could not be checked, mostly for lack of rights.
	Check func(Check) error
	// Types are the kernel's types. Decoding them takes tens of milliseconds, so programs that are loaded after the
	// examination use these. nil: they are decoded again.
	Types *btf.Cache
}

// ThisSystem returns this machine.
func ThisSystem() *System {
	s := &System{
		Architecture: runtime.GOARCH, PID: os.Getpid(), Release: kernelRelease, ReadFile: os.ReadFile, Readlink: os.Readlink,
		Getenv: os.Getenv, Executable: os.Executable, OpenFiles: openFilesLimit, Types: btf.NewCache(),
		Exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
	}
	s.Check = s.runCheck
	return s
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

func openFilesLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// readSmallFile reads a small file. It returns "" on failure.
func (s *System) readSmallFile(path string) string {
	b, err := s.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// statusField returns a field of /proc/self/status.
func (s *System) statusField(field string) string {
	for line := range strings.Lines(s.readSmallFile("/proc/self/status")) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// capabilities are a set as in /proc/self/status: bit n is capability n (linux/capability.h).
type capabilities uint64

func (c capabilities) hasCapability(bit int) bool { return c&(1<<bit) != 0 }

func (s *System) readCapabilities(field string) capabilities {
	v, err := strconv.ParseUint(s.statusField(field), 16, 64)
	if err != nil {
		return 0
	}
	return capabilities(v)
}

// heldCapabilities returns the effective capabilities, including those that CAP_SYS_ADMIN implies (bpf_capable and similar
// functions of include/linux/capability.h).
func (s *System) heldCapabilities() capabilities { return withImplied(s.readCapabilities("CapEff")) }

func withImplied(c capabilities) capabilities {
	if c.hasCapability(unix.CAP_SYS_ADMIN) {
		c |= 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON | 1<<unix.CAP_CHECKPOINT_RESTORE
	}
	return c
}

// Inodes of the initial namespaces (include/linux/proc_ns.h).
const (
	initialUsers     = "user:[4026531837]"
	initialProcesses = "pid:[4026531836]"
)

// isInitialNamespace reports whether we are in the initial namespace of a kind. If that is unknown, as without /proc, it
// returns true, and the kernel's answers decide.
func (s *System) isInitialNamespace(kind, initial string) bool {
	link, err := s.Readlink("/proc/self/ns/" + kind)
	return err != nil || link == initial
}

// seemsContainer reports whether we seem to be in a container. There is no certain sign, so it serves for advice only.
func (s *System) seemsContainer() bool {
	return s.Exists("/.dockerenv") || s.Exists("/run/.containerenv") || s.Getenv("container") != "" ||
		s.Getenv("KUBERNETES_SERVICE_HOST") != "" || !s.isInitialNamespace("pid", initialProcesses)
}

// hasSeccompFilter reports whether a seccomp filter is in force on us (SECCOMP_MODE_FILTER).
func (s *System) hasSeccompFilter() bool { return s.statusField("Seccomp") == "2" }

// appArmorProfile returns the AppArmor profile in force on us, or "".
func (s *System) appArmorProfile() string {
	profile, found := strings.CutSuffix(strings.TrimRight(s.readSmallFile("/proc/self/attr/current"), "\x00\n"), " (enforce)")
	if !found {
		return ""
	}
	return profile
}

// lockdownMode returns the mode in brackets of "none [integrity] confidentiality".
func (s *System) lockdownMode() string {
	_, rest, _ := strings.Cut(s.readSmallFile("/sys/kernel/security/lockdown"), "[")
	mode, _, found := strings.Cut(rest, "]")
	if !found {
		return ""
	}
	return mode
}

// hasProcOfNamespace reports whether /proc exists and has the pids of our namespace.
func (s *System) hasProcOfNamespace() bool {
	self, err := s.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(s.PID)
}

// isSysMounted reports whether /sys is mounted.
func (s *System) isSysMounted() bool { return s.Exists("/sys/kernel") }

// hidesProcesses reports whether /proc hides other users' processes from those who may not trace them (hidepid of proc(5)). Of
// several mounts the last counts.
func (s *System) hidesProcesses() bool {
	hidden := false
	for line := range strings.Lines(s.readSmallFile("/proc/self/mountinfo")) {
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

// isReleaseAtLeast reports whether a release such as 6.1.0-37-amd64 has at least a version.
func isReleaseAtLeast(release string, major, minor int) bool {
	v, ok := parseRelease(release)
	return ok && slices.Compare(v[:2], []int{major, minor}) >= 0
}

// parseRelease returns the three numbers at the beginning of a release; the last may be missing.
func parseRelease(release string) (v [3]int, ok bool) {
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

// killsFilteredProcesses reports whether a kernel kills a process with a seccomp filter when a function with a return probe returns.
// Since 6.11 that makes a system call, which such a filter forbids; since commit cf6cb56ef244 (Linux 6.14, 6.13.3 and
// 6.12.14) filters do not apply to it.
func killsFilteredProcesses(release string) bool {
	v, ok := parseRelease(release)
	if !ok || v[0] != 6 {
		return false
	}
	fixed, affected := map[int]int{11: math.MaxInt, 12: 14, 13: 3}[v[1]]
	return affected && v[2] < fixed
}
