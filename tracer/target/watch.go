package target

import "slices"

// Watch finds new and ended processes by scanning /proc. The zero value is ready to use. It is for one goroutine.
type Watch struct {
	fs    procfs // "": /proc
	known []int  // pids at the latest scan, ascending
}

// FindNewAndGonePIDs returns the pids that are new, and those that are gone, since the previous call; the first call returns all as
// new. It reads only the names in /proc, so that it can run several times a second. It misses a pid that was reused
// between two calls, which takes the kernel all other pids first.
func (w *Watch) FindNewAndGonePIDs() (came, went []int, err error) {
	fs := w.fs
	if fs == "" {
		fs = proc
	}
	running, err := fs.runningPIDs()
	if err != nil {
		return nil, nil, err
	}
	came, went = elementsMissingFrom(running, w.known), elementsMissingFrom(w.known, running)
	w.known = running
	return came, went, nil
}

// elementsMissingFrom returns the elements of a list that are not in another. Both ascend.
func elementsMissingFrom(list, other []int) (rest []int) {
	for _, pid := range list {
		if _, there := slices.BinarySearch(other, pid); !there {
			rest = append(rest, pid)
		}
	}
	return rest
}

// ProcessExists reports whether a process exists and has not ended.
func ProcessExists(pid int) bool { return proc.processExists(pid) }

func (fs procfs) processExists(pid int) bool {
	s, err := fs.readStat(pid)
	return err == nil && !s.hasProcessEnded() || err != nil && !meansProcessGone(err)
}
