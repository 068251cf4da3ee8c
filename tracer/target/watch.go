package target

import "slices"

// Watch notices that processes come and go, where nobody tells. The zero Watch is for the processes of this machine. It is
// used by one goroutine.
type Watch struct {
	fs    procfs // "": that of the machine
	known []int  // process ids of the latest look, ascending
}

// Look returns the ids of processes that were not there at the look before, and of those that are not there any more. The
// first look takes all for new ones. It reads nothing but the names in /proc, so that it can be called several times a
// second. An id that was given to another process between two looks is not noticed: for that the kernel must have used
// up all the others.
func (w *Watch) Look() (came, went []int, err error) {
	fs := w.fs
	if fs == "" {
		fs = proc
	}
	running, err := fs.running()
	if err != nil {
		return nil, nil, err
	}
	came, went = without(running, w.known), without(w.known, running)
	w.known = running
	return came, went, nil
}

// without returns what of a list is not in another; both ascend.
func without(list, other []int) (rest []int) {
	for _, pid := range list {
		if _, there := slices.BinarySearch(other, pid); !there {
			rest = append(rest, pid)
		}
	}
	return rest
}

// Exists reports whether there is a process with an id that has not ended.
func Exists(pid int) bool { return proc.exists(pid) }

func (fs procfs) exists(pid int) bool {
	s, err := fs.stat(pid)
	return err == nil && !s.ended() || err != nil && !vanished(err)
}
