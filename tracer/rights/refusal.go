package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// obstacle is what prevents attach, and what to do.
type obstacle struct{ what, advice string }

// findObstacle returns the most basic obstacle, nil if there is none, and sets Missing.
func (x *examination) findObstacle() *obstacle {
	for _, find := range []func() *obstacle{x.machineObstacle, x.procObstacle, x.systemCallObstacle, x.userNamespaceObstacle, x.rightsObstacle, x.fileLimitObstacle, x.loadingObstacle, x.probingObstacle} {
		if o := find(); o != nil {
			return o
		}
	}
	return nil
}

// instead is possible everywhere.
const instead = "start the program under gpumemtop instead"

func (x *examination) machineObstacle() *obstacle {
	if x.Architecture != "amd64" {
		return &obstacle{"has been tried on amd64 only, and this is " + x.Architecture, instead}
	}
	if x.Feature(FeatureKernel).State == Yes {
		return nil
	}
	o := &obstacle{
		"needs Linux 5.15 or later (bpf_get_attach_cookie), and this is " + x.Kernel,
		"use a newer kernel, or " + instead,
	}
	if state, _ := x.checkOnce(CheckHelpers); state == Unknown {
		o.advice += "; run sudo gpumemtop doctor to see whether its distribution has added what is needed"
	}
	return o
}

func (x *examination) procObstacle() *obstacle {
	if x.hasProcOfNamespace() {
		return nil
	}
	return &obstacle{
		"needs a /proc of its own pid namespace, and there is none here",
		"mount it: mount -t proc proc /proc (unshare does so with --mount-proc)",
	}
}

func (x *examination) systemCallObstacle() *obstacle {
	_, err := x.checkOnce(CheckMaps)
	switch {
	case !errors.Is(err, unix.ENOSYS):
		return nil
	case x.hasSeccompFilter():
		return &obstacle{"needs bpf(), which this kernel lacks or a seccomp filter hides (ENOSYS)", unfiltered}
	}
	return &obstacle{
		"needs bpf(), which this kernel was built without",
		"use one with CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS, or " + instead,
	}
}

// unfiltered is the advice on a seccomp filter.
const unfiltered = "run it outside of this sandbox, or in a container with: --security-opt seccomp=unconfined"

func (x *examination) userNamespaceObstacle() *obstacle {
	if x.isInitialNamespace("user", initialUsers) {
		return nil
	}
	x.Missing = x.leastCapabilities()
	return &obstacle{
		"does not work in a user namespace, such as that of a rootless container, whose root has no rights over the kernel",
		"run it outside, through sudo",
	}
}

// rightsObstacle checks the two capabilities that the programs need, and CAP_SYS_ADMIN, which includes both, if single
// uprobes need it.
func (x *examination) rightsObstacle() *obstacle {
	if x.held.hasCapability(unix.CAP_BPF) && x.held.hasCapability(unix.CAP_PERFMON) {
		return nil
	}
	if !x.Multi {
		return x.missingObstacle("CAP_SYS_ADMIN, for single uprobes (the multi-uprobe links of newer kernels need only CAP_BPF and CAP_PERFMON)", admin)
	}
	var missing []string
	for _, name := range x.leastCapabilities() {
		if !x.held.hasCapability(bits[name]) {
			missing = append(missing, name)
		}
	}
	return x.missingObstacle(joinNames(missing), missing...)
}

// leastFiles is how many open files attach to one program takes: some 50, and pipes to the processes that query drivers.
const leastFiles = 64

// fileLimitObstacle comes before the checks: most fail in odd ways if no file can be opened.
func (x *examination) fileLimitObstacle() *obstacle {
	n := x.OpenFiles()
	if n == 0 || n >= leastFiles {
		return nil
	}
	return &obstacle{
		fmt.Sprintf("needs at least %d open files, and this process may have %d", leastFiles, n),
		"raise the limit: ulimit -n 1024",
	}
}

const admin = "CAP_SYS_ADMIN"

// leastCapabilities are the capabilities that attach cannot do without.
func (r *Report) leastCapabilities() []string {
	if r.Multi {
		return []string{FeatureBPF, FeaturePerfmon}
	}
	return []string{admin}
}

func (x *examination) missingObstacle(what string, missing ...string) *obstacle {
	x.Missing = missing
	return &obstacle{"needs " + what, x.howToGrantText(x.leastCapabilities()...)}
}

// bits are the numbers of the capabilities that may be missing.
var bits = map[string]int{
	FeatureBPF: unix.CAP_BPF, FeaturePerfmon: unix.CAP_PERFMON, FeaturePtrace: unix.CAP_SYS_PTRACE,
	FeatureRestore: unix.CAP_CHECKPOINT_RESTORE, admin: unix.CAP_SYS_ADMIN,
}

// unobtainableCapabilities returns the capabilities that no process started from here can have.
func (s *System) unobtainableCapabilities(names []string) []string {
	var out []string
	bound := withImplied(s.readCapabilities("CapBnd"))
	for _, name := range names {
		if !bound.hasCapability(bits[name]) {
			out = append(out, name)
		}
	}
	return out
}

// howToGrantText says how to get capabilities.
func (s *System) howToGrantText(names ...string) string {
	switch out := s.unobtainableCapabilities(names); {
	case out != nil && s.seemsContainer():
		return s.dockerCommand(names)
	case out != nil:
		return "no process started from here can have " + joinNames(out) + " (capability bounding set), so start it outside of this service or sandbox"
	case s.statusField("NoNewPrivs") == "1":
		return "neither sudo nor setcap has an effect here (no_new_privs), so start it outside of this service or sandbox"
	}
	if s.seemsContainer() { // most have no sudo
		return "run it through sudo or docker exec -u 0, or give them once, as root, with: " + s.setcapCommand(names)
	}
	return "run it through sudo, or give them once with: sudo " + s.setcapCommand(names)
}

// dockerCommand returns the command that starts a container with capabilities. Since version 23 (moby/moby pull request
// 43987), Docker's own seccomp profile permits bpf and perf_event_open with CAP_BPF and CAP_PERFMON.
func (s *System) dockerCommand(names []string) string {
	words := []string{"start the container with: docker run"}
	for _, name := range withPtraceCapability(names) {
		words = append(words, "--cap-add "+strings.TrimPrefix(name, "CAP_"))
	}
	if !s.isInitialNamespace("pid", initialProcesses) {
		words = append(words, "--pid=host")
	}
	if s.appArmorProfile() != "" {
		words = append(words, "--security-opt apparmor=unconfined")
	}
	return strings.Join(words, " ")
}

// withPtraceCapability adds the capability to inspect other users' processes, which most users will want.
func withPtraceCapability(names []string) []string {
	if slices.Contains(names, FeaturePtrace) {
		return names
	}
	return append(slices.Clone(names), FeaturePtrace)
}

// setcapCommand returns the command that gives our file capabilities.
func (s *System) setcapCommand(names []string) string {
	path, err := s.Executable()
	if err != nil {
		path = "/path/to/gpumemtop"
	}
	return "setcap " + strings.ToLower(strings.Join(withPtraceCapability(names), ",")) + "+ep " + path
}

// loadingObstacle returns why maps and programs cannot be loaded although the capabilities are held.
func (x *examination) loadingObstacle() *obstacle {
	for _, q := range []Check{CheckMaps, CheckPrograms, CheckHelpers} {
		switch state, err := x.checkOnce(q); {
		case state == Yes:
		case x.Lockdown == "confidentiality":
			return &obstacle{
				"does not work in lockdown mode confidentiality, which blocks eBPF programs that read memory",
				"boot with lockdown=integrity, or " + instead,
			}
		case state == No:
			return &obstacle{
				fmt.Sprintf("needs what this kernel lacks (%v)", err),
				"use one with CONFIG_BPF_EVENTS, 5.15 or later, or " + instead,
			}
		case x.hasSeccompFilter():
			return &obstacle{fmt.Sprintf("needs bpf(), which a seccomp filter refuses (%v) although the capabilities are held", errnoText(err)), unfiltered}
		default:
			return &obstacle{fmt.Sprintf("needs bpf(), which is refused (%v) although the capabilities are held", errnoText(err)), "look for a security module, such as SELinux, and its log"}
		}
	}
	return nil
}

// probingObstacle returns why functions cannot be probed although programs can be loaded. Multi-uprobe links need no right of
// their own. Single uprobes need CAP_SYS_ADMIN since commit ba677dbe77af (Linux 6.16 and stable kernels), before that
// CAP_PERFMON.
func (x *examination) probingObstacle() *obstacle {
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
	state, err := x.checkOnce(CheckSingle)
	switch {
	case state == Yes:
		return nil
	case !x.readCapabilities("CapEff").hasCapability(unix.CAP_SYS_ADMIN):
		return x.missingObstacle("CAP_SYS_ADMIN here, for single uprobes, as this kernel has no multi-uprobe links that know processes", admin)
	case state == No: // there is a tracefs
		return nil
	}
	return &obstacle{
		fmt.Sprintf("needs perf_event_open(), which is refused (%v) although the capabilities are held", errnoText(err)),
		"look for a seccomp filter or a security module",
	}
}
