package tracer

import (
	"codeberg.org/gpumemtop/gpumemtop/tracer/kernel"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// scanNS is how often we look for losses, and for what the kernel does not report.
const scanNS = 250_000_000

// endScans is how many scans look for ended processes after events were lost: an exit may be among them, and the process
// may take a while to end.
const endScans = 8

// scanState is the state between two scans.
type scanState struct {
	last    uint64       // when the latest scan ran, ns; 0: scan at once
	pids    target.Watch // processes that existed
	drained bool         // since the latest scan, all that the kernel reported was read
	lost    uint64       // events lost at the latest scan
	ends    int          // scans left that look for ended processes
}

// scanProcessesIfDue scans if the time for it has come. After Detach it only records what was lost until then.
func (t *Tracer) scanProcessesIfDue() {
	now := t.options.Clock()
	if now < t.scan.last+scanNS && t.detached == 0 {
		return
	}
	t.scan.last = now
	for p := range t.table.eachInStateOrLater(watched) {
		p.recordLosses()
	}
	if t.detached != 0 {
		return
	}
	t.probeQueriedExtensions()
	t.scanProcesses()
	t.probes.removeProbesOfUnmapped(now)
}

// scanProcesses finds what no probe reports. It inspects new processes for a dynamic linker that we do not know, as in a
// container that has just started; those with a known one are probed before they begin. On a kernel without BTF nothing
// reports that processes start, end or execute a program: we find out late, and miss the calls made meanwhile.
func (t *Tracer) scanProcesses() {
	blind := !t.kernel.ReportsLifecycle()
	if blind {
		for p := range t.table.eachInStateOrLater(watched) {
			if p.target.HasExecutedSince() {
				t.noteExec(p.pid, false, t.scan.last) // the executing thread is unknown
			}
		}
	}
	if t.options.MaySelectLaterProcesses() || t.options.Follow && blind {
		t.inspectNewProcesses()
	}
	if lost, _ := t.kernel.LostCallsOfAll(); lost > t.scan.lost {
		t.scan.lost, t.scan.ends = lost, endScans
	}
	if blind || t.scan.ends > 0 {
		t.scan.ends = max(t.scan.ends-1, 0)
		t.endMissingProcesses()
	}
	t.scan.drained = false
}

// endMissingProcesses ends processes whose exit was not reported. Their last calls may still be unread, so a process must be
// missing at two scans with everything read in between.
func (t *Tracer) endMissingProcesses() {
	for p := range t.table.eachInStateOrLater(expected) {
		missing := !target.ProcessExists(p.pid)
		if p.state == watched {
			missing = !p.target.StillExists()
		}
		if missing && p.missing && t.scan.drained {
			t.noteExit(p.pid, t.scan.last, unknownStatus)
		}
		p.missing = missing
	}
}

// inspectNewProcesses inspects new processes that may belong to the selection, and clears the verdicts on those that have ended.
// Without BTF it misses children whose parent ended before the scan.
func (t *Tracer) inspectNewProcesses() {
	came, went, err := t.scan.pids.FindNewAndGonePIDs()
	if err != nil {
		t.warnOnce(err)
	}
	for _, pid := range went {
		delete(t.names, pid)
		if t.table.findProcess(pid) == nil {
			t.tellKernelVerdict(pid, kernel.Forget)
			t.probes.dropProcess(pid)
		}
	}
	for _, pid := range came {
		if p, err := target.OpenProcess(pid); err == nil && !t.kernel.ReportsLifecycle() {
			t.addForkedChild(p.Parent, pid)
		}
		_ = t.inspectProcess(pid) // an error is reported at its first call
	}
}
