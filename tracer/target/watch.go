package target

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Watch notices that processes come and go where the kernel's eBPF programs do not tell (no BTF). It is used by one
// goroutine.
type Watch struct {
	fs    procfs
	ends  map[int]int // pidfd by pid
	known []int       // process ids of the latest look, ascending
	polls []unix.PollFd
	pids  []int // of polls
}

// NewWatch returns a watch. Its first look takes all running processes for new ones.
func NewWatch() *Watch { return &Watch{fs: proc, ends: map[int]int{}} }

// Add has the end of a process noticed. The error wraps ErrGone when that is over already.
func (w *Watch) Add(p *Process) error {
	if _, there := w.ends[p.PID]; there {
		return nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return gone(p.PID)
	case err != nil:
		return fmt.Errorf("process %d: wait for its end: %w", p.PID, err)
	case !p.Same(): // the descriptor may be that of a later process
		_ = unix.Close(fd)
		return gone(p.PID)
	}
	w.ends[p.PID] = fd
	return nil
}

// Remove forgets a process.
func (w *Watch) Remove(pid int) {
	if fd, there := w.ends[pid]; there {
		_ = unix.Close(fd)
		delete(w.ends, pid)
	}
}

// Ended returns the added processes that have ended, and forgets them. It does not wait.
func (w *Watch) Ended() ([]int, error) {
	w.polls, w.pids = w.polls[:0], w.pids[:0]
	for pid, fd := range w.ends {
		w.polls = append(w.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		w.pids = append(w.pids, pid)
	}
	if len(w.polls) == 0 {
		return nil, nil
	}
	n, err := unix.Poll(w.polls, 0)
	if errors.Is(err, unix.EINTR) {
		return nil, nil // the next look finds them
	}
	if err != nil {
		return nil, fmt.Errorf("wait for processes to end: %w", err)
	}
	var ended []int
	for i := range w.polls {
		if n > 0 && w.polls[i].Revents != 0 {
			ended = append(ended, w.pids[i])
			w.Remove(w.pids[i])
		}
	}
	slices.Sort(ended)
	return ended, nil
}

// Came returns the ids of processes that were not there at the look before. It reads nothing but the names in /proc, so
// that it can be called several times a second. An id that was given to another process between two looks is not
// noticed: for that the kernel must have used up all the others.
func (w *Watch) Came() ([]int, error) {
	running, err := w.fs.running()
	if err != nil {
		return nil, err
	}
	var came []int
	for _, pid := range running {
		if _, there := slices.BinarySearch(w.known, pid); !there {
			came = append(came, pid)
		}
	}
	w.known = running
	return came, nil
}

// Close gives all descriptors back.
func (w *Watch) Close() {
	for pid := range w.ends {
		w.Remove(pid)
	}
}
