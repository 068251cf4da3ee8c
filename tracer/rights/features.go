package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Names of features.
const (
	FeatureKernel    = "kernel"
	FeatureBPF       = "CAP_BPF"
	FeaturePerfmon   = "CAP_PERFMON"
	FeaturePtrace    = "CAP_SYS_PTRACE"
	FeatureRestore   = "CAP_CHECKPOINT_RESTORE"
	FeatureMaps      = "maps"
	FeaturePrograms  = "programs"
	FeatureHelpers   = "helpers"
	FeatureUprobes   = "uprobes"
	FeatureMulti     = "multi-uprobe links"
	FeatureLifecycle = "lifecycle"
	FeatureNamespace = "pid namespace"
	FeatureHidden    = "/proc"
	FeatureConfined  = "AppArmor"
	FeatureLockdown  = "lockdown"
	FeatureFilters   = "seccomp"
	FeatureSettings  = "settings"
)

// kernelTypes has the types of the kernel (BTF).
const kernelTypes = "/sys/kernel/btf/vmlinux"

// tracefs are the files that create uprobes without a PMU.
var tracefs = []string{"/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"}

// examination is one examination of a machine.
type examination struct {
	*System
	*Report

	held    capabilities
	results map[Check]error
}

// checkOnce runs a check once, and returns what its result means.
func (x *examination) checkOnce(q Check) (State, error) {
	err, known := x.results[q]
	if !known {
		err = x.Check(q)
		if x.results == nil {
			x.results = map[Check]error{}
		}
		x.results[q] = err
	}
	switch {
	case err == nil:
		return Yes, nil
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return No, err
	}
	return Unknown, err
}

func (x *examination) addFeature(f Feature) { x.Features = append(x.Features, f) }

// fillInReport fills in the report.
func (x *examination) fillInReport() {
	if x.Architecture != "amd64" {
		x.addFeature(Feature{Name: FeatureKernel, State: No, Detail: "attach has been tried on amd64 only, and this is " + x.Architecture, Needed: true})
		return
	}
	x.addKernelFeatures()
	if !x.hasProcOfNamespace() { // it shows the rights of another process, or nothing
		return
	}
	x.Multi = x.canUseMultiUprobes()
	x.checkCapability(FeatureBPF, unix.CAP_BPF, "maps and programs cannot be loaded", true)
	x.checkCapability(FeaturePerfmon, unix.CAP_PERFMON, "programs that read a process's memory cannot be loaded", true)
	x.checkCapability(FeaturePtrace, unix.CAP_SYS_PTRACE, "processes of other users, and those with rights that gpumemtop lacks, cannot be inspected", false)
	x.checkCapability(FeatureRestore, unix.CAP_CHECKPOINT_RESTORE, "a library that was deleted or replaced since a program loaded it cannot be opened (another user's takes CAP_DAC_READ_SEARCH, too)", false)
	x.addCheckedFeature(FeatureMaps, CheckMaps, "arrays, hashes, LRU hashes and ring buffers")
	x.addCheckedFeature(FeaturePrograms, CheckPrograms, "programs of type kprobe")
	x.addCheckedFeature(FeatureHelpers, CheckHelpers, "the functions that programs call, such as bpf_get_attach_cookie")
	x.checkUprobes()
	x.checkLifecycle()
	x.addVisibilityFeatures()
}

func (x *examination) addKernelFeatures() {
	f := Feature{Name: FeatureKernel, State: Yes, Detail: "Linux " + x.Kernel, Needed: true}
	if !isReleaseAtLeast(x.Kernel, 5, 15) {
		// A distribution may have backported what we need.
		if helpers, _ := x.checkOnce(CheckHelpers); helpers != Yes {
			f.State, f.Detail = No, "Linux "+x.Kernel+" is too old: bpf_get_attach_cookie came with 5.15"
		}
	}
	x.addFeature(f)
}

func (x *examination) checkCapability(name string, bit int, loss string, needed bool) {
	f := Feature{Name: name, State: Yes, Detail: name + " is held", Needed: needed}
	switch {
	case !x.held.hasCapability(bit):
		f.State, f.Detail = No, name+" is not held: "+loss
		if !needed {
			f.Advice = x.howToGrantText(append(x.leastCapabilities(), name)...)
		}
	case !x.isInitialNamespace("user", initialUsers):
		f.State, f.Detail = No, name+" is held in a user namespace only, where it has no effect on the kernel: "+loss
	}
	x.addFeature(f)
}

// addCheckedFeature reports on a feature that attach needs.
func (x *examination) addCheckedFeature(name string, q Check, what string) {
	f := Feature{Name: name, Detail: name + ": " + what, Needed: true}
	var err error
	switch f.State, err = x.checkOnce(q); f.State {
	case No:
		f.Detail = fmt.Sprintf("%s: some of %s are missing: %v", name, what, err)
	case Unknown:
		f.Detail = fmt.Sprintf("%s: cannot check %s: %v", name, what, errnoText(err))
	}
	x.addFeature(f)
}

// errnoText returns the error number's text, without what a library adds to it.
func errnoText(err error) string {
	var number unix.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return err.Error()
}

// canUseMultiUprobes reports whether multi-uprobe links can be used. Without the rights to check, it goes by the version.
func (x *examination) canUseMultiUprobes() bool {
	switch links, _ := x.checkOnce(CheckMulti); links {
	case Yes:
		perProcess, _ := x.checkOnce(CheckMultiProcess)
		return perProcess == Yes
	case Unknown:
		programs, _ := x.checkOnce(CheckPrograms)
		return programs == Unknown && isReleaseAtLeast(x.Kernel, 6, 6)
	}
	return false
}

// checkUprobes reports on the two kinds of probes: one must work.
func (x *examination) checkUprobes() {
	multi, err := x.checkOnce(CheckMulti)
	perProcess := multi
	if multi == Yes {
		perProcess, err = x.checkOnce(CheckMultiProcess)
	}
	x.addFeature(x.uprobesFeature(multi))
	f := Feature{Name: FeatureMulti, State: perProcess, Detail: "multi-uprobe links: many functions are probed at once"}
	const single = "single uprobes are used: attaching takes longer, and needs CAP_SYS_ADMIN on most kernels"
	switch {
	case multi == Yes && perProcess == No:
		f.Detail = "multi-uprobe links cover only single threads before Linux 6.10: " + single
	case perProcess == No:
		f.Detail = "no multi-uprobe links, which came with Linux 6.6: " + single
	case perProcess == Unknown:
		f.Detail = "cannot check multi-uprobe links: " + errnoText(err)
	}
	x.addFeature(f)
}

// uprobesFeature reports on uprobes in general. Multi links need no file in /sys; single ones do, or a mounted tracefs.
func (x *examination) uprobesFeature(multi State) Feature {
	f := Feature{Name: FeatureUprobes, State: Yes, Detail: "uprobes: functions of programs can be probed", Needed: true}
	if multi == Yes || x.Exists(uprobeUnit) || slices.ContainsFunc(tracefs, x.Exists) {
		return f
	}
	f.State, f.Detail = No, "no uprobes: "+uprobeUnit+" does not exist"
	if !x.isSysMounted() {
		f.State, f.Detail = Unknown, "cannot check uprobes: /sys is not mounted"
	}
	return f
}

// checkLifecycle reports on the programs for forks, execs and exits.
func (x *examination) checkLifecycle() {
	f := Feature{Name: FeatureLifecycle, Detail: "the kernel reports forks, execs, exits and new libraries"}
	const loss = "gpumemtop finds forks, execs, exits and new libraries by scanning /proc, and can miss short programs"
	var err error
	switch {
	case !x.Exists(kernelTypes) && !x.isSysMounted():
		f.State, f.Detail, f.Advice = No, loss+" (/sys is not mounted)", "mount it: mount -t sysfs sysfs /sys"
	case !x.Exists(kernelTypes):
		f.State, f.Detail, f.Advice = No, loss+" (no kernel types: "+kernelTypes+")", "use a kernel with CONFIG_DEBUG_INFO_BTF"
	default:
		if f.State, err = x.checkOnce(CheckLifecycle); err != nil {
			f.Detail = fmt.Sprintf("%s (programs on tracepoints: %v)", loss, errnoText(err))
		}
	}
	x.addFeature(f)
}

// addVisibilityFeatures reports what limits the visible processes, and what looks like a limit and is none.
func (x *examination) addVisibilityFeatures() {
	if !x.isInitialNamespace("pid", initialProcesses) {
		unseen := "this is a pid namespace: processes outside of it are not visible"
		if !x.Exists(kernelTypes) { // where the probes find a process's number in our namespace
			unseen += ", nor are those in namespaces below it (no kernel types: " + kernelTypes + ")"
		}
		x.addFeature(Feature{FeatureNamespace, No, unseen, "in a container: docker run --pid=host", false})
	}
	if x.hidesProcesses() && !x.held.hasCapability(unix.CAP_SYS_PTRACE) {
		x.addFeature(Feature{FeatureHidden, No, "/proc is mounted with hidepid: other users' processes are not visible", "CAP_SYS_PTRACE shows them", false})
	}
	if profile := x.appArmorProfile(); profile != "" {
		x.addFeature(Feature{FeatureConfined, No, "the AppArmor profile " + profile + " is in force: processes outside of it cannot be inspected", "in a container: docker run --security-opt apparmor=unconfined", false})
	}
	if x.KillsFiltered {
		x.addFeature(Feature{FeatureFilters, No, "programs with a seccomp filter cannot be watched, since this kernel would kill them; nor can programs that start later", "use Linux 6.12.14, 6.13.3 or later", false})
	}
	if x.Lockdown != "" {
		x.addFeature(Feature{FeatureLockdown, Yes, "lockdown is " + x.Lockdown + ": it permits attach, which only reads the memory of processes", "", false})
	}
	var found []string
	for _, name := range []string{"unprivileged_bpf_disabled", "perf_event_paranoid"} {
		if v := x.readSmallFile("/proc/sys/kernel/" + name); v != "" {
			found = append(found, "kernel."+name+" is "+v)
		}
	}
	if len(found) > 0 {
		x.addFeature(Feature{FeatureSettings, Yes, strings.Join(found, ", ") + ": the capabilities decide, not this", "", false})
	}
}
