package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// obstacle is what is in the way, and what to do.
type obstacle struct{ what, advice string }

// refuse returns the most basic obstacle, nil for none, and sets what is missing.
func (x *examination) refuse() *obstacle {
	for _, find := range []func() *obstacle{x.otherMachine, x.foreignProc, x.noSystemCall, x.userNamespace, x.withoutRights, x.fewFiles, x.loading, x.probing} {
		if o := find(); o != nil {
			return o
		}
	}
	return nil
}

// instead is what can be done everywhere.
const instead = "start the program under gpumemtop instead"

func (x *examination) otherMachine() *obstacle {
	if x.Architecture != "amd64" {
		return &obstacle{"works on amd64 only, and this is " + x.Architecture, instead}
	}
	if x.Feature(FeatureKernel).State == Yes {
		return nil
	}
	o := &obstacle{
		"needs Linux 5.15 or later (bpf_get_attach_cookie), and this is " + x.Kernel,
		"use a newer kernel, or " + instead,
	}
	if state, _ := x.answer(AskHelpers); state == Unknown {
		o.advice += "; whether its distribution has added what is needed can be told with sudo gpumemtop doctor only"
	}
	return o
}

func (x *examination) foreignProc() *obstacle {
	if x.ownProc() {
		return nil
	}
	return &obstacle{
		"needs a /proc of its own pid namespace, and there is none here",
		"mount it: mount -t proc proc /proc (unshare does so with --mount-proc)",
	}
}

func (x *examination) noSystemCall() *obstacle {
	_, err := x.answer(AskMaps)
	switch {
	case !errors.Is(err, unix.ENOSYS):
		return nil
	case x.filtered():
		return &obstacle{"needs bpf(), which this kernel lacks or a seccomp filter hides (ENOSYS)", unfiltered}
	}
	return &obstacle{
		"needs bpf(), which this kernel was built without",
		"use one with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS, or " + instead,
	}
}

// unfiltered is what to do about a filter.
const unfiltered = "run it outside of this sandbox, or in a container with: --security-opt seccomp=unconfined"

func (x *examination) userNamespace() *obstacle {
	if x.initialNamespace("user", initialUsers) {
		return nil
	}
	x.Missing = x.least()
	return &obstacle{
		"does not work in a user namespace, such as that of a rootless container, whose root has no rights over the kernel",
		"run it outside, through sudo",
	}
}

// withoutRights looks at the two capabilities that programs of this kind need, and at the one that stands for both
// where that is needed for probing.
func (x *examination) withoutRights() *obstacle {
	if x.held.has(unix.CAP_BPF) && x.held.has(unix.CAP_PERFMON) {
		return nil
	}
	if !x.Multi {
		return x.lacks("CAP_SYS_ADMIN, for single uprobes (multi-uprobe links of newer kernels do with CAP_BPF and CAP_PERFMON)", admin)
	}
	var missing []string
	for _, name := range x.least() {
		if !x.held.has(bits[name]) {
			missing = append(missing, name)
		}
	}
	return x.lacks(list(missing), missing...)
}

// leastFiles are those that watching one program takes: some 50, and pipes to those that ask drivers.
const leastFiles = 64

// fewFiles comes before what is tried, for most of that fails in odd ways when no file can be opened.
func (x *examination) fewFiles() *obstacle {
	n := x.OpenFiles()
	if n == 0 || n >= leastFiles {
		return nil
	}
	return &obstacle{
		fmt.Sprintf("needs %d open files at least, and this process may have %d", leastFiles, n),
		"raise the limit: ulimit -n 1024",
	}
}

const admin = "CAP_SYS_ADMIN"

// least are the capabilities without which nothing can be watched.
func (r *Report) least() []string {
	if r.Multi {
		return []string{FeatureBPF, FeaturePerfmon}
	}
	return []string{admin}
}

// lacks is the obstacle that something is missing.
func (x *examination) lacks(what string, missing ...string) *obstacle {
	x.Missing = missing
	return &obstacle{"needs " + what, x.grant(x.least()...)}
}

// bits are those of the capabilities that are ever missing.
var bits = map[string]int{
	FeatureBPF: unix.CAP_BPF, FeaturePerfmon: unix.CAP_PERFMON, FeaturePtrace: unix.CAP_SYS_PTRACE,
	FeatureRestore: unix.CAP_CHECKPOINT_RESTORE, admin: unix.CAP_SYS_ADMIN,
}

// bounded returns those of the capabilities that nothing started from here can ever have.
func (s *System) bounded(names []string) []string {
	var out []string
	bound := implied(s.capabilities("CapBnd"))
	for _, name := range names {
		if !bound.has(bits[name]) {
			out = append(out, name)
		}
	}
	return out
}

// grant says how to get capabilities.
func (s *System) grant(names ...string) string {
	switch out := s.bounded(names); {
	case out != nil && s.container():
		return s.dockerRun(names)
	case out != nil:
		return "nothing that is started from here can have " + list(out) + " (capability bounding set), so start it outside of this service or sandbox"
	case s.status("NoNewPrivs") == "1":
		return "neither sudo nor setcap has an effect here (no_new_privs), so start it outside of this service or sandbox"
	}
	if s.container() { // most have no sudo
		return "run it through sudo or docker exec -u 0, or give them once, as root, with: " + s.setcap(names)
	}
	return "run it through sudo, or give them once with: sudo " + s.setcap(names)
}

// dockerRun says how to start a container that has capabilities. Docker's own seccomp profile lets bpf and
// perf_event_open through to who has CAP_BPF and CAP_PERFMON since version 23 (moby/moby pull request 43987).
func (s *System) dockerRun(names []string) string {
	words := []string{"this container was started without, so start it with: docker run"}
	for _, name := range withPtrace(names) {
		words = append(words, "--cap-add "+strings.TrimPrefix(name, "CAP_"))
	}
	if !s.initialNamespace("pid", initialProcesses) {
		words = append(words, "--pid=host")
	}
	if s.confined() != "" {
		words = append(words, "--security-opt apparmor=unconfined")
	}
	return strings.Join(words, " ")
}

// withPtrace adds the capability to look into other users' processes, which most will want.
func withPtrace(names []string) []string {
	if slices.Contains(names, FeaturePtrace) {
		return names
	}
	return append(slices.Clone(names), FeaturePtrace)
}

// setcap is the command that gives our file capabilities.
func (s *System) setcap(names []string) string {
	path, err := s.Executable()
	if err != nil {
		path = "/path/to/gpumemtop"
	}
	return "setcap " + strings.ToLower(strings.Join(withPtrace(names), ",")) + "+ep " + path
}

// loading says why maps and programs cannot be loaded although the capabilities are there.
func (x *examination) loading() *obstacle {
	for _, q := range []Question{AskMaps, AskPrograms, AskHelpers} {
		switch state, err := x.answer(q); {
		case state == Yes:
		case x.Lockdown == "confidentiality":
			return &obstacle{
				"does not work in lockdown mode confidentiality, which keeps its programs out of the kernel",
				"boot with lockdown=integrity, or " + instead,
			}
		case state == No:
			return &obstacle{
				fmt.Sprintf("needs what this kernel lacks (%v)", err),
				"use one with CONFIG_BPF_EVENTS, 5.15 or later, or " + instead,
			}
		case x.filtered():
			return &obstacle{fmt.Sprintf("needs bpf(), which a seccomp filter refuses (%v) although the capabilities are there", reason(err)), unfiltered}
		default:
			return &obstacle{fmt.Sprintf("needs bpf(), which is refused (%v) although the capabilities are there", reason(err)), "look for a security module, such as SELinux, and its log"}
		}
	}
	return nil
}

// probing says why functions cannot be probed although programs can be loaded. Multi-uprobe links need no right of their
// own; single uprobes need CAP_SYS_ADMIN (commit ba677dbe77af of Linux 6.16, which stable kernels got, too), and
// CAP_PERFMON on kernels without that.
func (x *examination) probing() *obstacle {
	if x.Multi {
		return nil
	}
	switch x.Feature(FeatureUprobes).State {
	case Unknown:
		return &obstacle{"needs uprobes, which are found through /sys", "mount it: mount -t sysfs sysfs /sys"}
	case No:
		kernel := "this kernel"
		if strings.Contains(strings.ToLower(x.Kernel), "microsoft") {
			kernel = "this kernel of WSL"
		}
		return &obstacle{"needs uprobes, which " + kernel + " was built without", "use one with CONFIG_UPROBE_EVENTS, or " + instead}
	}
	state, err := x.answer(AskSingle)
	switch {
	case state == Yes:
		return nil
	case !x.capabilities("CapEff").has(unix.CAP_SYS_ADMIN):
		return x.lacks("CAP_SYS_ADMIN here, for single uprobes, as this kernel has no multi-uprobe links that know processes", admin)
	case state == No: // there is tracefs
		return nil
	}
	return &obstacle{
		fmt.Sprintf("needs perf_event_open(), which is refused (%v) although the capabilities are there", reason(err)),
		"look for a seccomp filter or a security module",
	}
}
