package tracer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// asking returns options with a probe that knows the test's driver.
func asking(t *testing.T) func(*Options) {
	t.Helper()
	library, err := payload.Shim()
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

// learned reports whether extension functions are probed in all processes, or in one.
func (w *watcher) learned(pid int) bool {
	for _, f := range w.links.files {
		p := f.probed[pid]
		if p == nil {
			continue
		}
		for _, function := range p.there {
			if function == w.links.numbers["clDeviceMemAllocINTEL"] {
				return true
			}
		}
	}
	return false
}

// The driver of the test has no symbols for its extension functions. Where a program has fetched them before, the driver
// itself says where they are.
func TestFetchedBefore(t *testing.T) {
	for name, all := range map[string]bool{"by pid": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			p := begin(t, loader, "fetch", "allocate 100")
			s, place := pids(p), p.pid
			if all {
				s, place = target.Selection{All: true}, everybody
			}
			w := watchWith(t, s, asking(t))
			w.until("the driver's answer", func() bool { return w.learned(place) })
			p.do("free")
			p.do("allocate 5000")
			p.do("free")
			w.want(p.pid, "process", "carried 1 0", "release 1", "create usm device 2 5000", "release 2")
			for i := range w.told {
				if r := &w.told[i]; r.Kind == wire.KindProcess && string(r.Payload) == "/bin/true" {
					t.Error("the process that asks the driver is watched")
				}
			}
		})
	}
}

// Where a program fetches them while it is watched, what it is given says where they are: in this program alone, for
// programs may say anything.
func TestFetchedAfter(t *testing.T) {
	p, other := begin(t, loader, "create 1 8"), begin(t, loader, "fetch")
	w := watch(t, target.Selection{All: true})
	p.do("fetch")
	w.until("probes", func() bool { return w.learned(p.pid) })
	p.do("fetch") // nothing new
	p.do("allocate 5000")
	p.do("free")
	w.want(p.pid, "process", "create usm device 1 5000", "release 1")
	other.do("allocate 6000")
	other.do("create 1 8")
	w.want(other.pid, "process", "create buffer 1 8")
	if w.learned(everybody) || w.learned(other.pid) {
		t.Error("another process has probes for what one was given")
	}
	p.End()
	w.want(p.pid, "process", "create usm device 1 5000", "release 1", "exit 137 signal 9")
	if w.learned(p.pid) {
		t.Error("probes are left of one that has ended")
	}
}

// When the driver answers later, nothing is told twice.
func TestFetchedAfterAndAsked(t *testing.T) {
	release := make(chan bool)
	p := begin(t, loader, "create 1 8")
	ask := asking(t)
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
	w.until("probes in one process", func() bool { return w.learned(p.pid) })
	close(release)
	w.until("probes in all", func() bool { return w.learned(everybody) })
	if w.learned(p.pid) {
		t.Error("a function is probed twice")
	}
	p.do("allocate 5000")
	p.do("free")
	w.want(p.pid, "process", "create usm device 1 5000", "release 1")
}

// A program may be given what lies in no file, or is no function at all, and ask again and again.
func TestGivenNonsense(t *testing.T) {
	p := begin(t, loader, "create 1 8")
	w := watch(t, pids(p))
	watched := w.processes[p.pid]
	w.extension(watched, "clDeviceMemAllocINTEL", 0x10)
	if !w.warned("clDeviceMemAllocINTEL") || len(watched.given) != 0 {
		t.Errorf("%q, given %v", w.warns, watched.given)
	}
	w.extension(watched, "clNoneOfOursKHR", 0x20)
	for address := range uint64(2 * givenMax) {
		w.extension(watched, "clDeviceMemAllocINTEL", address)
	}
	if len(watched.asked) != givenMax {
		t.Errorf("%d addresses are kept", len(watched.asked))
	}
	watched.given = []target.Extension{{Name: "clMemFreeINTEL", Open: filepath.Join(t.TempDir(), "none")}}
	w.give(watched)
	if !w.warned("extension functions are not seen") || watched.given != nil {
		t.Errorf("%q", w.warns)
	}
	if err := w.links.probeOnly([]target.Extension{{Name: "clMemFreeINTEL", Open: built.program, Offset: 1 << 50}}, p.pid); err == nil {
		t.Error("a function behind the end of the file is probed")
	}
}
