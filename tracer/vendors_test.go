package tracer

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// queryingTestDriver makes Options.Ask query the driver for tests.
func queryingTestDriver(t *testing.T) func(*Options) {
	t.Helper()
	shim, err := payload.OpenShim()
	if err != nil {
		t.Fatal(err)
	}
	library, err := io.ReadAll(shim)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "libgpumemtop.so")
	if err := os.WriteFile(path, library, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *Options) {
		o.Ask = func(ctx context.Context, environment []string) ([]byte, error) {
			cmd := exec.CommandContext(ctx, "/bin/true")
			cmd.Env = slices.Concat(os.Environ(), environment, []string{"LD_PRELOAD=" + path, "OCL_ICD_VENDORS=" + built.vendor + "/"})
			return cmd.Output()
		}
	}
}

// probesExtension reports whether extension functions are probed, in one process or in all.
func (w *watcher) probesExtension(pid int) bool {
	for _, f := range w.probes.files {
		p := f.probes[pid]
		if p == nil {
			continue
		}
		for _, function := range p.functions {
			if function == w.probes.numbers["clDeviceMemAllocINTEL"] {
				return true
			}
		}
	}
	return false
}

// The driver for tests has no symbols for its extension functions. If a program fetched them before attach, only the driver
// knows where they are.
func TestFetchedBefore(t *testing.T) {
	for name, all := range map[string]bool{"by pid": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, loader, "fetch", "allocate 100")
			s, place := pids(p), p.pid
			if all {
				s, place = target.Selection{All: true}, allProcesses
			}
			w := watchWith(t, s, queryingTestDriver(t))
			w.until("the driver's answer", func() bool { return w.probesExtension(place) })
			p.do("free")
			p.do("allocate 5000")
			p.do("free")
			w.want(p.pid, "process", "carried 1 0", "release 1", "create usm device 2 5000", "release 2")
			for i := range w.records {
				if r := &w.records[i]; r.Kind == wire.KindProcess && string(r.Payload) == "/bin/true" {
					t.Error("the process that queries the driver is watched")
				}
			}
		})
	}
}

// If a program fetches them while it is watched, they are probed where it received them, in this program alone, since
// programs may claim anything.
func TestFetchedAfter(t *testing.T) {
	p, other := begin(t, loader, "create 1 8"), begin(t, loader, "fetch")
	w := watch(t, target.Selection{All: true})
	p.do("fetch")
	w.until("probes", func() bool { return w.probesExtension(p.pid) })
	p.do("fetch") // nothing new
	p.do("allocate 5000")
	p.do("free")
	w.want(p.pid, "process", "create usm device 1 5000", "release 1")
	other.do("allocate 6000")
	other.do("create 1 8")
	w.want(other.pid, "process", "create buffer 1 8")
	if w.probesExtension(allProcesses) || w.probesExtension(other.pid) {
		t.Error("another process has probes for what one received")
	}
	p.Kill()
	w.want(p.pid, "process", "create usm device 1 5000", "release 1", "exit 137 signal 9")
	if w.probesExtension(p.pid) {
		t.Error("the probes of an ended process were not removed")
	}
}

// If the driver answers later, no call is reported twice.
func TestFetchedAfterAndQueried(t *testing.T) {
	release := make(chan bool)
	p := begin(t, loader, "create 1 8")
	ask := queryingTestDriver(t)
	w := watchWith(t, target.Selection{All: true}, func(o *Options) {
		ask(o)
		run := o.Ask
		o.Ask = func(ctx context.Context, environment []string) ([]byte, error) {
			select {
			case <-release:
				return run(ctx, environment)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
	p.do("fetch")
	w.until("probes in one process", func() bool { return w.probesExtension(p.pid) })
	close(release)
	w.until("probes in all", func() bool { return w.probesExtension(allProcesses) })
	if w.probesExtension(p.pid) {
		t.Error("a function is probed twice")
	}
	p.do("allocate 5000")
	p.do("free")
	w.want(p.pid, "process", "create usm device 1 5000", "release 1")
}

// A program may receive addresses outside of files or functions, and any number of them.
func TestNonsenseReceived(t *testing.T) {
	p := begin(t, loader, "create 1 8")
	w := watch(t, pids(p))
	watched := w.table.byPID[p.pid]
	w.noteExtensionReceived(watched, "clDeviceMemAllocINTEL", 0x10)
	if !w.warned("clDeviceMemAllocINTEL") || len(watched.pendingExtensions) != 0 {
		t.Errorf("%q, received %v", w.warns, watched.pendingExtensions)
	}
	w.noteExtensionReceived(watched, "clNoneOfOursKHR", 0x20)
	for address := range uint64(2 * receivedMax) {
		w.noteExtensionReceived(watched, "clDeviceMemAllocINTEL", address)
	}
	if len(watched.extensions) != receivedMax {
		t.Errorf("%d addresses are kept", len(watched.extensions))
	}
	watched.pendingExtensions = []target.Extension{{Name: "clMemFreeINTEL", Open: filepath.Join(t.TempDir(), "none")}}
	w.probeReceivedExtensions(watched)
	if !w.warned("extension functions are not recorded") || watched.pendingExtensions != nil {
		t.Errorf("%q", w.warns)
	}
	if err := w.probes.attachExtensions([]target.Extension{{Name: "clMemFreeINTEL", Open: built.program, Offset: 1 << 50}}, p.pid); err == nil {
		t.Error("a function past the end of the file is probed")
	}
}
