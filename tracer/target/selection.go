package target

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// commMax is how many bytes the kernel keeps of a process's name (TASK_COMM_LEN without the NUL).
const commMax = 15

// Selection says which processes to watch: those that match any of its fields.
type Selection struct {
	PIDs    []int
	Comms   []string // names of programs
	Cgroups []string // paths, as in /proc/PID/cgroup after Check; they include what is below them
	All     bool     // every process
	Follow  bool     // and their children
}

// CheckAndNormalize validates a selection and brings its cgroups into the form of /proc/PID/cgroup. They may be given as folders, such
// as /sys/fs/cgroup/user.slice, or without the mount point.
func (s *Selection) CheckAndNormalize() error { return s.checkAndNormalize(proc) }

func (s *Selection) checkAndNormalize(fs procfs) error {
	if len(s.PIDs)+len(s.Comms)+len(s.Cgroups) == 0 && !s.All {
		return errors.New("say what to watch: -p PID, --comm NAME, --cgroup PATH or --all")
	}
	for _, pid := range s.PIDs {
		if pid <= 0 {
			return fmt.Errorf("%d is not a process id", pid)
		}
	}
	for _, name := range s.Comms {
		if name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q is not a program name: give it without its folder, as ps -o comm shows it", name)
		}
	}
	for i, path := range s.Cgroups {
		checked, err := fs.cgroupPath(path)
		if err != nil {
			return err
		}
		s.Cgroups[i] = checked
	}
	return nil
}

// MaySelectLaterProcesses reports whether later processes can belong to the selection other than as children.
func (s *Selection) MaySelectLaterProcesses() bool {
	return s.All || len(s.Comms) > 0 || len(s.Cgroups) > 0
}

// SelectsProcess reports whether a process belongs to the selection other than as a child. Comms match the kernel's name, of 15
// bytes, or the name of the program as it was called.
func (s *Selection) SelectsProcess(p *Process) bool {
	return s.All || slices.Contains(s.PIDs, p.PID) ||
		slices.ContainsFunc(s.Comms, p.isNamed) || slices.ContainsFunc(s.Cgroups, p.isInCgroup)
}

func (p *Process) isNamed(name string) bool {
	if p.Comm == name[:min(len(name), commMax)] {
		return true
	}
	return len(p.Command) > 0 && filepath.Base(p.Command[0]) == name
}

func (p *Process) isInCgroup(cgroup string) bool {
	return slices.ContainsFunc(p.cgroups, func(own string) bool {
		return own == cgroup || cgroup == "/" || strings.HasPrefix(own, cgroup+"/")
	})
}

// ProcessesByPID returns the processes that are named by pid and, with Follow, their present descendants, parents first.
func (s *Selection) ProcessesByPID() ([]int, error) { return s.processesByPID(proc) }

func (s *Selection) processesByPID(fs procfs) ([]int, error) {
	var list []int
	for _, pid := range s.PIDs {
		if !slices.Contains(list, pid) {
			list = append(list, pid)
		}
	}
	if !s.Follow {
		return list, nil
	}
	running, err := fs.runningPIDs()
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, pid := range running {
		if stat, err := fs.readStat(pid); err == nil {
			children[stat.parent] = append(children[stat.parent], pid)
		}
	}
	seen := map[int]bool{}
	for _, pid := range list {
		seen[pid] = true
	}
	for i := 0; i < len(list); i++ {
		for _, child := range children[list[i]] {
			if !seen[child] {
				seen[child] = true
				list = append(list, child)
			}
		}
	}
	return list, nil
}
