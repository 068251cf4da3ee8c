package rights

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// machine is an imagined machine.
type machine struct {
	*System
	files, links, env map[string]string
	results           map[Check]error
}

const everything = "000001ffffffffff"

// newMachine returns a machine on which everything works.
func newMachine() *machine {
	m := &machine{
		files: map[string]string{uprobeUnit: "8\n", kernelTypes: "", "/sys/kernel": ""},
		links: map[string]string{"/proc/self": "7", "/proc/self/ns/user": initialUsers, "/proc/self/ns/pid": initialProcesses},
		env:   map[string]string{}, results: map[Check]error{},
	}
	m.status(everything, everything, "")
	m.System = &System{
		Architecture: "amd64", PID: 7, OpenFiles: func() uint64 { return 1024 },
		Release: func() string { return "6.12.30-amd64" },
		ReadFile: func(path string) ([]byte, error) {
			text, found := m.files[path]
			if !found {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		},
		Exists: func(path string) bool { _, found := m.files[path]; return found },
		Readlink: func(path string) (string, error) {
			if link, found := m.links[path]; found {
				return link, nil
			}
			return "", fs.ErrNotExist
		},
		Getenv:     func(name string) string { return m.env[name] },
		Executable: func() (string, error) { return "/usr/bin/gpumemtop", nil },
		Check:      func(q Check) error { return m.results[q] },
	}
	return m
}

func (m *machine) status(effective, bounding, more string) {
	m.files["/proc/self/status"] = "Name:\tx\nCapEff:\t" + effective + "\nCapBnd:\t" + bounding + "\n" + more
}

// without removes capabilities, so that the kernel refuses all checks.
func (m *machine) without(effective, bounding string) {
	m.status(effective, bounding, "")
	for _, q := range []Check{CheckMaps, CheckPrograms, CheckHelpers, CheckMulti, CheckMultiProcess, CheckLifecycle} {
		m.results[q] = unix.EPERM
	}
	m.results[CheckSingle] = unix.EACCES
}

func (m *machine) release(text string) { m.Release = func() string { return text } }

const none = "0000000000000000"

func TestAGoodMachine(t *testing.T) {
	r := newMachine().ExamineSystem()
	if err := r.RefusalError(); err != nil || r.Missing != nil || !r.Multi {
		t.Errorf("refused: %v, missing %v, multi %v", err, r.Missing, r.Multi)
	}
	for _, f := range r.Features {
		if f.State != Yes || f.Advice != "" {
			t.Errorf("%+v", f)
		}
	}
}

const unpermitted = "run it through sudo, or give them once with: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep /usr/bin/gpumemtop"

// Each row removes something and expects one sentence, or none if attach still works.
func TestEachRefusalHasOneSentence(t *testing.T) {
	unsupported := fmt.Errorf("it: %w", ebpf.ErrNotSupported)
	for _, test := range []struct {
		name    string
		spoil   func(m *machine)
		missing string
		want    string
	}{
		{"ordinary user", func(m *machine) { m.without(none, everything) }, "CAP_BPF and CAP_PERFMON",
			"attach needs CAP_BPF and CAP_PERFMON: " + unpermitted},
		{"one is missing", func(m *machine) { m.without("0000008000000000", everything) }, "CAP_PERFMON", "attach needs CAP_PERFMON: " + unpermitted},
		{"ordinary user, no multi links", func(m *machine) { m.without(none, everything); m.release("6.1.0-37-amd64") }, "CAP_SYS_ADMIN",
			"setcap cap_sys_admin,cap_sys_ptrace+ep /usr/bin/gpumemtop"},
		{"the two alone", func(m *machine) { m.status("000000c000000000", everything, "") }, "", ""},
		{"CAP_SYS_ADMIN alone", func(m *machine) { m.status("0000000000200000", everything, "") }, "", ""},
		{"the two alone, no multi links", func(m *machine) {
			m.status("000000c000000000", everything, "")
			m.results[CheckMulti], m.results[CheckSingle] = unsupported, unix.EACCES
		}, "CAP_SYS_ADMIN", "attach needs CAP_SYS_ADMIN here, for single uprobes"},
		{"the two alone, no multi links, before single ones needed more", func(m *machine) {
			m.status("000000c000000000", everything, "")
			m.results[CheckMulti] = unsupported
		}, "", ""},
		{"the two alone, on a kernel that wants more for multi links", func(m *machine) {
			m.status("000000c000000000", everything, "")
			m.results[CheckMulti], m.results[CheckSingle] = unix.EPERM, unix.EACCES
		}, "CAP_SYS_ADMIN", "attach needs CAP_SYS_ADMIN here"},
		{"multi links for threads, root", func(m *machine) { m.results[CheckMultiProcess] = unsupported }, "", ""},
		{"only tracefs, root", func(m *machine) {
			delete(m.files, uprobeUnit)
			m.files[tracefs[0]] = ""
			m.results[CheckMulti], m.results[CheckSingle] = unsupported, unsupported
		}, "", ""},
		{"perf_event_open is filtered", func(m *machine) { m.results[CheckMulti], m.results[CheckSingle] = unsupported, unix.EPERM }, "",
			"perf_event_open(), which is refused (operation not permitted) although"},
		{"service", func(m *machine) { m.without(none, none) }, "CAP_BPF and CAP_PERFMON", "capability bounding set), so start it outside of this service"},
		{"no new privileges", func(m *machine) {
			m.without(none, everything)
			m.status(none, everything, "NoNewPrivs:\t1\n")
		}, "CAP_BPF and CAP_PERFMON", "no_new_privs"},
		{"container", func(m *machine) {
			m.without("00000000a80425fb", "00000000a80425fb")
			m.files["/.dockerenv"], m.links["/proc/self/ns/pid"] = "", "pid:[4026532400]"
			m.files["/proc/self/attr/current"] = "docker-default (enforce)\n\x00"
		}, "CAP_BPF and CAP_PERFMON", "docker run --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE --pid=host --security-opt apparmor=unconfined"},
		{"container with the capabilities, not root", func(m *machine) {
			m.without(none, everything)
			m.files["/run/.containerenv"] = ""
		}, "CAP_BPF and CAP_PERFMON", "run it through sudo or docker exec -u 0, or give them once, as root, with: setcap "},
		{"container with one of them", func(m *machine) {
			m.without("0000004000000000", "0000004000000000")
			m.files["/.dockerenv"] = ""
		}, "CAP_BPF", "docker run --cap-add BPF --cap-add PERFMON --cap-add SYS_PTRACE"},
		{"no /proc", func(m *machine) { m.without(none, none); m.files["/proc/self/status"] = ""; clear(m.links) }, "",
			"attach needs a /proc of its own pid namespace, and there is none here: mount it: mount -t proc proc /proc"},
		{"another namespace's /proc", func(m *machine) { m.links["/proc/self"] = "4711" }, "", "needs a /proc of its own pid namespace"},
		{"few files", func(m *machine) {
			m.OpenFiles = func() uint64 { return 16 }
			m.results[CheckMaps], m.results[CheckPrograms] = unix.EMFILE, unsupported
		}, "", "attach needs at least 64 open files, and this process may have 16: raise the limit: ulimit -n 1024"},
		{"few files, ordinary user", func(m *machine) {
			m.without(none, everything)
			m.OpenFiles = func() uint64 { return 16 }
		}, "CAP_BPF and CAP_PERFMON", "attach needs CAP_BPF and CAP_PERFMON"},
		{"files without a known limit", func(m *machine) { m.OpenFiles = func() uint64 { return 0 } }, "", ""},
		{"old container engine", func(m *machine) {
			m.results[CheckMaps] = unix.EPERM
			m.status(everything, everything, "Seccomp:\t2\n")
		}, "", "a seccomp filter refuses (operation not permitted) although"},
		{"security module", func(m *machine) { m.results[CheckPrograms] = unix.EACCES }, "", "(permission denied) although the capabilities are held: look for a security module"},
		{"user namespace", func(m *machine) {
			m.without(everything, everything)
			m.links["/proc/self/ns/user"] = "user:[4026532321]"
		}, "CAP_BPF and CAP_PERFMON", "attach does not work in a user namespace"},
		{"old kernel", func(m *machine) { m.release("5.10.0-35-amd64"); m.results[CheckHelpers] = unsupported }, "",
			"attach needs Linux 5.15 or later (bpf_get_attach_cookie), and this is 5.10.0-35-amd64: use a newer kernel, or start the program under gpumemtop instead"},
		{"old kernel, ordinary user", func(m *machine) { m.without(none, everything); m.release("5.14.0-503.el9.x86_64") }, "",
			"run sudo gpumemtop doctor to see"},
		{"old kernel that was brought what is needed", func(m *machine) { m.release("5.14.0-503.el9.x86_64") }, "", ""},
		{"other machine", func(m *machine) { m.Architecture = "arm64" }, "", "attach has been tried on amd64 only, and this is arm64: start the program under gpumemtop instead"},
		{"no bpf", func(m *machine) { m.results[CheckMaps] = unix.ENOSYS }, "", "bpf(), which this kernel was built without: use one with CONFIG_BPF_SYSCALL"},
		{"no bpf, or so a filter says", func(m *machine) {
			m.results[CheckMaps] = unix.ENOSYS
			m.status(everything, everything, "Seccomp:\t2\n")
		}, "", "this kernel lacks or a seccomp filter hides (ENOSYS)"},
		{"lockdown", func(m *machine) {
			m.files["/sys/kernel/security/lockdown"] = "none integrity [confidentiality]\n"
			m.results[CheckPrograms] = unix.EPERM
		}, "", "lockdown mode confidentiality"},
		{"lockdown that lets programs through", func(m *machine) {
			m.files["/sys/kernel/security/lockdown"] = "none integrity [confidentiality]\n"
		}, "", ""},
		{"no programs", func(m *machine) { m.results[CheckPrograms] = unsupported }, "", "needs what this kernel lacks (it: not supported): use one with CONFIG_BPF_EVENTS"},
		{"WSL", func(m *machine) {
			delete(m.files, uprobeUnit)
			m.release("6.6.87.2-microsoft-standard-WSL2")
			m.results[CheckMulti] = unix.EOPNOTSUPP
		}, "", "needs uprobes, which this kernel of WSL was built without"},
		{"no uprobes", func(m *machine) { delete(m.files, uprobeUnit); m.results[CheckMulti] = unsupported }, "", "needs uprobes, which this kernel was built without"},
		{"no /sys", func(m *machine) {
			delete(m.files, uprobeUnit)
			delete(m.files, "/sys/kernel")
			m.results[CheckMulti] = unsupported
		}, "", "through /sys: mount it"},
		{"no /sys, multi links", func(m *machine) {
			delete(m.files, uprobeUnit)
			delete(m.files, "/sys/kernel")
		}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine()
			test.spoil(m)
			r := m.ExamineSystem()
			err := r.RefusalError()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q in it", err, test.want)
			case err != nil && strings.Contains(err.Error(), "\n"):
				t.Errorf("more than one line: %v", err)
			}
			if got := joinNames(r.Missing); got != test.missing {
				t.Errorf("missing %q, want %q", got, test.missing)
			}
		})
	}
}

// Features that are not needed report what is lost without them, and what to do.
func TestFeatures(t *testing.T) {
	for _, test := range []struct {
		name         string
		spoil        func(m *machine)
		feature      string
		state        State
		want, advice string
	}{
		{"other users", func(m *machine) { m.status("000000c000000000", everything, "") }, FeaturePtrace, No, "other users", unpermitted},
		{"deleted files", func(m *machine) { m.status("000000c000000000", everything, "") }, FeatureRestore, No, "deleted or replaced", "setcap cap_bpf,cap_perfmon,cap_checkpoint_restore,cap_sys_ptrace+ep"},
		{"no multi links", func(m *machine) { m.results[CheckMulti] = ebpf.ErrNotSupported }, FeatureMulti, No, "single uprobes are used: attaching takes longer", ""},
		{"multi links for threads", func(m *machine) { m.results[CheckMultiProcess] = ebpf.ErrNotSupported }, FeatureMulti, No, "single threads before Linux 6.10", ""},
		{"no types", func(m *machine) { delete(m.files, kernelTypes) }, FeatureLifecycle, No, "by scanning /proc", "CONFIG_DEBUG_INFO_BTF"},
		{"tracepoints refused", func(m *machine) { m.results[CheckLifecycle] = unix.EPERM }, FeatureLifecycle, Unknown, "operation not permitted", ""},
		{"pid namespace", func(m *machine) { m.links["/proc/self/ns/pid"] = "pid:[4026532400]" }, FeatureNamespace, No, "outside of it are not visible", "--pid=host"},
		{"pid namespace without types", func(m *machine) {
			m.links["/proc/self/ns/pid"] = "pid:[4026532400]"
			delete(m.files, kernelTypes)
		}, FeatureNamespace, No, "nor are those in namespaces below it", "--pid=host"},
		{"pid namespace, lifecycle", func(m *machine) { m.links["/proc/self/ns/pid"] = "pid:[4026532400]" }, FeatureLifecycle, Yes, "the kernel reports forks", ""},
		{"hidepid", func(m *machine) {
			m.status("000000c000000000", everything, "")
			m.files["/proc/self/mountinfo"] = "1 2 0:5 / /sys rw - sysfs sysfs rw\n21 98 0:19 / /proc rw,nosuid - proc proc rw,hidepid=invisible,gid=5\n"
		}, FeatureHidden, No, "hidepid", "CAP_SYS_PTRACE"},
		{"hidepid off", func(m *machine) {
			m.status("000000c000000000", everything, "")
			m.files["/proc/self/mountinfo"] = "21 98 0:19 / /proc rw,nosuid - proc proc rw,hidepid=0\n"
		}, FeatureHidden, Unknown, "", ""},
		{"hidepid of the mount on top", func(m *machine) {
			m.status("000000c000000000", everything, "")
			m.files["/proc/self/mountinfo"] = "45 43 0:21 / /proc rw - proc proc rw\n63 45 0:39 / /proc rw - proc proc rw,hidepid=invisible\n"
		}, FeatureHidden, No, "hidepid", "CAP_SYS_PTRACE"},
		{"no /sys, lifecycle", func(m *machine) { delete(m.files, kernelTypes); delete(m.files, "/sys/kernel") }, FeatureLifecycle, No, "/sys is not mounted", "mount -t sysfs"},
		{"AppArmor", func(m *machine) { m.files["/proc/self/attr/current"] = "docker-default (enforce)\n" }, FeatureConfined, No, "docker-default", "apparmor=unconfined"},
		{"no AppArmor", func(m *machine) { m.files["/proc/self/attr/current"] = "unconfined\n" }, FeatureConfined, Unknown, "", ""},
		{"lockdown", func(m *machine) { m.files["/sys/kernel/security/lockdown"] = "none [integrity] confidentiality" }, FeatureLockdown, Yes, "lockdown is integrity", ""},
		{"settings", func(m *machine) { m.files["/proc/sys/kernel/perf_event_paranoid"] = "4\n" }, FeatureSettings, Yes, "kernel.perf_event_paranoid is 4: the capabilities decide", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine()
			test.spoil(m)
			r := m.ExamineSystem()
			if err := r.RefusalError(); err != nil {
				t.Errorf("refused: %v", err)
			}
			f := r.Feature(test.feature)
			if f.State != test.state || !strings.Contains(f.Detail, test.want) || !strings.Contains(f.Advice, test.advice) {
				t.Errorf("got %+v, want %s with %q and %q", f, test.state, test.want, test.advice)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "/proc/7/maps", Err: unix.EACCES}
	replaced := &fs.PathError{Op: "open", Path: "/proc/7/map_files/1-2", Err: unix.EPERM}
	opened := os.NewSyscallError("perf_event_open", unix.EACCES)
	two := func(m *machine) { m.status("000000c000000000", everything, "") }
	for _, test := range []struct {
		name  string
		spoil func(m *machine)
		err   error
		want  string
	}{
		{"nothing can be watched", func(m *machine) { m.without(none, everything) }, unix.EPERM, "attach needs CAP_BPF and CAP_PERFMON: run it"},
		{"other users", two, denied, "CAP_SYS_PTRACE is missing: " + unpermitted + ": open /proc/7/maps: permission denied"},
		{"deleted files", two, replaced, "CAP_CHECKPOINT_RESTORE is missing: run it through sudo"},
		{"held", func(*machine) {}, denied, "refused although the capabilities are held"},
		{"single uprobes", func(m *machine) { two(m); m.results[CheckMulti] = ebpf.ErrNotSupported }, opened, "CAP_SYS_ADMIN is missing"},
		{"unsupported", func(*machine) {}, ebpf.ErrNotSupported, "this kernel (Linux 6.12.30-amd64) lacks a feature: not supported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMachine()
			test.spoil(m)
			err := m.ExamineSystem().explainError(test.err)
			if err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, test.err) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestExplainMemory(t *testing.T) {
	err := fmt.Errorf("map ring: %w", unix.ENOMEM)
	if got := ExplainError(err); !errors.Is(got, err) || !strings.Contains(got.Error(), "80 MiB of memory in the kernel: raise the limit") {
		t.Errorf("got %v", got)
	}
}

// Other errors, and those that already give the reason, stay unchanged.
func TestExplainLeavesOthersAlone(t *testing.T) {
	for _, err := range []error{nil, errors.New("no such process"), fs.ErrNotExist, fmt.Errorf("run with CAP_SYS_PTRACE: %w", fs.ErrPermission), &ebpf.VerifierError{Cause: unix.EACCES}} {
		if got := ExplainError(err); got != err { //nolint:errorlint // the very same
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for release, want := range map[string]bool{"5.15.0-1": true, "5.14.21": false, "6.0": true, "4.19": false, "5.15-rc1": true, "10.1+": true, "": false, "x.y": false} {
		if isReleaseAtLeast(release, 5, 15) != want {
			t.Errorf("%q: want %v", release, want)
		}
	}
}

// Single uprobes work as well, so nothing else would notice if multi-uprobe links were not used.
func TestKillsFiltered(t *testing.T) {
	for release, want := range map[string]bool{
		"6.10.14": false, "6.11.0-26-generic": true, "6.11.11": true, "6.12": true, "6.12.13-amd64": true, "6.12.14": false,
		"6.12.100+deb12-amd64": false, "6.13.2": true, "6.13.3-arch1": false, "6.14.0-rc1": false, "7.11.0": false, "": false, "6.x": false,
	} {
		m := newMachine()
		m.release(release)
		r := m.ExamineSystem()
		if r.KillsFiltered != want || (r.Feature(FeatureFilters).State == No) != want {
			t.Errorf("%q: %v, %+v", release, r.KillsFiltered, r.Feature(FeatureFilters))
		}
	}
}

func TestMultiLinksAreFoundHere(t *testing.T) {
	s := ThisSystem()
	if err := s.Check(CheckMulti); err != nil {
		t.Logf("not asked about processes: %v", err)
		return
	}
	if err := s.Check(CheckMultiProcess); err != nil && isReleaseAtLeast(s.Release(), 6, 10) {
		t.Errorf("links that know processes are there since Linux 6.10: %v", err)
	}
}
