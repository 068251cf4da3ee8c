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

// kernelTypes are the types of the kernel (BTF).
const kernelTypes = "/sys/kernel/btf/vmlinux"

// tracefs are the files by which uprobes are made where there is no PMU for them.
var tracefs = []string{"/sys/kernel/tracing/uprobe_events", "/sys/kernel/debug/tracing/uprobe_events"}

// examination is one look at a machine.
type examination struct {
	*System
	*Report

	held    capabilities
	answers map[Question]error
}

// answer asks once, and returns what the answer means.
func (x *examination) answer(q Question) (State, error) {
	err, known := x.answers[q]
	if !known {
		err = x.Ask(q)
		if x.answers == nil {
			x.answers = map[Question]error{}
		}
		x.answers[q] = err
	}
	switch {
	case err == nil:
		return Yes, nil
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return No, err
	}
	return Unknown, err
}

func (x *examination) add(f Feature) { x.Features = append(x.Features, f) }

// look fills the report.
func (x *examination) look() {
	if x.Architecture != "amd64" {
		x.add(Feature{Name: FeatureKernel, State: No, Detail: "watching is made for amd64, and this is " + x.Architecture, Needed: true})
		return
	}
	x.kernel()
	if !x.ownProc() { // it tells the rights of another process, or nothing
		return
	}
	x.Multi = x.multi()
	x.capability(FeatureBPF, unix.CAP_BPF, "maps and programs cannot be loaded", true)
	x.capability(FeaturePerfmon, unix.CAP_PERFMON, "programs that read a process's memory cannot be loaded", true)
	x.capability(FeaturePtrace, unix.CAP_SYS_PTRACE, "processes of other users, and those with rights that gpumemtop lacks, cannot be looked into", false)
	x.capability(FeatureRestore, unix.CAP_CHECKPOINT_RESTORE, "a library that was deleted or replaced since a program loaded it cannot be opened (another user's takes CAP_DAC_READ_SEARCH, too)", false)
	x.tried(FeatureMaps, AskMaps, "arrays, hashes, LRU hashes and ring buffers")
	x.tried(FeaturePrograms, AskPrograms, "programs of type kprobe")
	x.tried(FeatureHelpers, AskHelpers, "the functions that programs call, such as bpf_get_attach_cookie")
	x.uprobes()
	x.lifecycle()
	x.surroundings()
}

func (x *examination) kernel() {
	f := Feature{Name: FeatureKernel, State: Yes, Detail: "Linux " + x.Kernel, Needed: true}
	if !atLeast(x.Kernel, 5, 15) {
		// A distribution may have brought it what is needed all the same.
		if helpers, _ := x.answer(AskHelpers); helpers != Yes {
			f.State, f.Detail = No, "Linux "+x.Kernel+" is too old: bpf_get_attach_cookie came with 5.15"
		}
	}
	x.add(f)
}

func (x *examination) capability(name string, bit int, loss string, needed bool) {
	f := Feature{Name: name, State: Yes, Detail: name + " is held", Needed: needed}
	switch {
	case !x.held.has(bit):
		f.State, f.Detail = No, name+" is not held: "+loss
		if !needed {
			f.Advice = x.grant(append(x.least(), name)...)
		}
	case !x.initialNamespace("user", initialUsers):
		f.State, f.Detail = No, name+" is held in a user namespace only, where it does not count here: "+loss
	}
	x.add(f)
}

// tried tells of what nothing works without.
func (x *examination) tried(name string, q Question, what string) {
	f := Feature{Name: name, Detail: name + ": " + what, Needed: true}
	var err error
	switch f.State, err = x.answer(q); f.State {
	case No:
		f.Detail = fmt.Sprintf("%s: not all of %s: %v", name, what, err)
	case Unknown:
		f.Detail = fmt.Sprintf("%s: %s could not be tried: %v", name, what, reason(err))
	}
	x.add(f)
}

// reason is the part of an error that says why, without what a library guesses of it.
func reason(err error) string {
	var number unix.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return err.Error()
}

// multi reports whether multi-uprobe links can be used, by the version where rights are missing to try them at all.
func (x *examination) multi() bool {
	switch links, _ := x.answer(AskMulti); links {
	case Yes:
		perProcess, _ := x.answer(AskMultiProcess)
		return perProcess == Yes
	case Unknown:
		programs, _ := x.answer(AskPrograms)
		return programs == Unknown && atLeast(x.Kernel, 6, 6)
	}
	return false
}

// uprobes tells of the two ways to probe, of which one must work.
func (x *examination) uprobes() {
	multi, err := x.answer(AskMulti)
	perProcess := multi
	if multi == Yes {
		perProcess, err = x.answer(AskMultiProcess)
	}
	x.add(x.anyUprobes(multi))
	f := Feature{Name: FeatureMulti, State: perProcess, Detail: "multi-uprobe links: many functions are probed at once"}
	const single = "single uprobes are used: attaching takes longer, and needs CAP_SYS_ADMIN on most kernels"
	switch {
	case multi == Yes && perProcess == No:
		f.Detail = "multi-uprobe links do not know processes before Linux 6.10: " + single
	case perProcess == No:
		f.Detail = "no multi-uprobe links, which came with Linux 6.6: " + single
	case perProcess == Unknown:
		f.Detail = "multi-uprobe links could not be tried: " + reason(err)
	}
	x.add(f)
}

// anyUprobes tells of uprobes themselves. Multi links need no file in /sys, single ones do, or a tracefs that is mounted.
func (x *examination) anyUprobes(multi State) Feature {
	f := Feature{Name: FeatureUprobes, State: Yes, Detail: "uprobes: functions of programs can be probed", Needed: true}
	if multi == Yes || x.Exists(uprobeUnit) || slices.ContainsFunc(tracefs, x.Exists) {
		return f
	}
	f.State, f.Detail = No, "no uprobes: "+uprobeUnit+" is not there"
	if !x.sysMounted() {
		f.State, f.Detail = Unknown, "uprobes: /sys is not mounted, so they could not be found"
	}
	return f
}

// lifecycle tells of the programs that tell of processes. In another pid namespace the numbers they tell are not ours.
func (x *examination) lifecycle() {
	f := Feature{Name: FeatureLifecycle, Detail: "forks, execs, exits and new libraries are told by the kernel"}
	const loss = "forks, execs, exits and new libraries are looked for in /proc instead: short programs can be missed"
	var err error
	switch {
	case !x.initialNamespace("pid", initialProcesses):
		f.State, f.Detail, f.Advice = No, loss+" (this is not the machine's own pid namespace)", "in a container: docker run --pid=host"
	case !x.Exists(kernelTypes) && !x.sysMounted():
		f.State, f.Detail, f.Advice = No, loss+" (/sys is not mounted)", "mount it: mount -t sysfs sysfs /sys"
	case !x.Exists(kernelTypes):
		f.State, f.Detail, f.Advice = No, loss+" (no types of the kernel: "+kernelTypes+")", "use a kernel with CONFIG_DEBUG_INFO_BTF"
	default:
		if f.State, err = x.answer(AskLifecycle); err != nil {
			f.Detail = fmt.Sprintf("%s (programs on tracepoints: %v)", loss, reason(err))
		}
	}
	x.add(f)
}

// surroundings tells of what limits which processes are seen, and of what does not matter although it looks like it.
func (x *examination) surroundings() {
	if !x.initialNamespace("pid", initialProcesses) {
		x.add(Feature{FeatureNamespace, No, "this is a pid namespace: processes outside of it are not seen", "in a container: docker run --pid=host", false})
	}
	if x.hidden() && !x.held.has(unix.CAP_SYS_PTRACE) {
		x.add(Feature{FeatureHidden, No, "/proc is mounted with hidepid: other users' processes are not found", "CAP_SYS_PTRACE shows them", false})
	}
	if profile := x.confined(); profile != "" {
		x.add(Feature{FeatureConfined, No, "the AppArmor profile " + profile + " is in force: processes outside of it cannot be looked into", "in a container: docker run --security-opt apparmor=unconfined", false})
	}
	if x.KillsFiltered {
		x.add(Feature{FeatureFilters, No, "programs behind a seccomp filter cannot be watched: this kernel would end them. Nor can those that come later", "use Linux 6.12.14, 6.13.3 or later", false})
	}
	if x.Lockdown != "" {
		x.add(Feature{FeatureLockdown, Yes, "lockdown is " + x.Lockdown + ": watching reads the memory of processes only, which it lets through", "", false})
	}
	var found []string
	for _, name := range []string{"unprivileged_bpf_disabled", "perf_event_paranoid"} {
		if v := x.text("/proc/sys/kernel/" + name); v != "" {
			found = append(found, "kernel."+name+" is "+v)
		}
	}
	if len(found) > 0 {
		x.add(Feature{FeatureSettings, Yes, strings.Join(found, ", ") + ": the capabilities decide, whatever these are", "", false})
	}
}
