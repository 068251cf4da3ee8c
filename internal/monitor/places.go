package monitor

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// place is where a process runs: in which job of Slurm or MPI, and in which pod and container.
type place struct{ job, step, rank, pod, container string }

// places finds and remembers the places of processes. Any goroutine may use it.
type places struct {
	environment place // that the processes have inherited from us
	mu          sync.Mutex
	known       map[int]place
}

// newPlaces returns one; inherited says that the processes have our environment.
func newPlaces(inherited bool) *places {
	p := &places{known: map[int]place{}}
	if inherited {
		p.environment.job, p.environment.step, p.environment.rank = Environment()
	}
	return p
}

// Environment returns the job, step and rank that this process is in, as far as its environment says.
func Environment() (job, step, rank string) {
	return os.Getenv("SLURM_JOB_ID"), os.Getenv("SLURM_STEP_ID"), wire.Rank(os.Getenv)
}

// of returns the place of a process, 0 for this one.
func (p *places) of(pid int) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, known := p.known[pid]
	if !known {
		name := "self"
		if pid != 0 {
			name = fmt.Sprint(pid)
		}
		text, _ := os.ReadFile("/proc/" + name + "/cgroup") // a process that has ended has no more
		at = parseCgroup(string(text)).or(p.environment)
		if len(p.known) > 4*processesMax {
			clear(p.known)
		}
		p.known[pid] = at
	}
	return at
}

func (a place) or(b place) place {
	return place{cmp.Or(b.job, a.job), cmp.Or(b.step, a.step), cmp.Or(b.rank, a.rank), cmp.Or(a.pod, b.pod), cmp.Or(a.container, b.container)}
}

var (
	// Kubernetes: kubepods…/pod<uid>/<id>, or with systemd kubepods-besteffort-pod<uid with _>.slice/cri-containerd-<id>.scope.
	podPattern       = pattern(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	containerPattern = pattern(`(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:/|$)`)
	// Slurm: …/job_<id>/step_<id>/…
	slurmPattern = pattern(`/job_(\d+)(?:/step_([^/]+))?`)
)

// pattern compiles when it is first used: few runs look.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// parseCgroup reads /proc/PID/cgroup.
func parseCgroup(text string) (at place) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		if m := podPattern().FindStringSubmatch(parts[2]); m != nil {
			at.pod = strings.ReplaceAll(m[1], "_", "-")
		}
		if m := containerPattern().FindStringSubmatch(parts[2]); m != nil {
			at.container = m[1]
		}
		if m := slurmPattern().FindStringSubmatch(parts[2]); m != nil {
			at.job, at.step = m[1], m[2]
		}
	}
	return at
}
