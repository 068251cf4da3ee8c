package session

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// peer is one process that made an OpenCL call. The collector owns it, except hungUp and conn's reading side.
type peer struct {
	number  uint32
	pid     int
	own     int // its pid as it sees it
	parent  int
	place   wire.Place
	command []string

	conn   *net.UnixConn
	lease  lease
	mem    []byte
	region *wire.Region
	ask    uint32        // the latest ask for memory that was heard
	outbox [][]byte      // messages for which its mailbox had no room
	hungUp atomic.Bool   // the other end of the socket is closed: by the process, or because it is gone
	hungAt atomic.Uint64 // when; 0: not known
	exits  uint64        // time of its last event since its exit handlers ran; 0: they have not

	sources  [wire.Rings]source
	used     int    // rings that had an owner when they were last looked at
	ended    bool   // the rings are read up to limit, and no further
	limit    uint64 // while ended
	stays    bool   // ended for us only: the session ends before the process does
	lost     uint64
	lostUses uint64
}

// offerRingsToMerge offers rings to the merge and returns how many events came to the front.
func (p *peer) offerRingsToMerge(m *merge, until uint64) int {
	if p.ended {
		until = p.limit
	}
	p.used = max(p.used, p.region.UsedRingCount()) // only a broken peer would lower it
	n := 0
	for i := range p.used {
		s := &p.sources[i]
		if s.cursor == nil {
			s.cursor, s.peer, s.ring = p.region.Cursor(i), p, i
		}
		if m.addFirstEvent(s, until) {
			n++
		}
	}
	return n
}

// readAllOnNextPass makes the next pass read all remaining events up to limit.
func (p *peer) readAllOnNextPass(limit uint64) {
	if !p.ended {
		p.ended, p.limit = true, limit
	}
}

// hasProcessGone asks the kernel whether the process is gone, without waiting for watch to notice.
func (p *peer) hasProcessGone() bool {
	if p.lease != noLease {
		return !p.lease.isRegionHeld()
	}
	if p.hungUp.Load() {
		return true
	}
	poll := []unix.PollFd{{Events: unix.POLLRDHUP}}
	err := withDescriptor(p.conn, func(fd int) error {
		poll[0].Fd = int32(fd)
		_, err := unix.Poll(poll, 0)
		if errors.Is(err, unix.EINTR) { // by a signal that came first, as Go's own do: nothing has happened
			return nil
		}
		return err
	})
	return err != nil || poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
}

// lossesSinceLast returns what the rings dropped since the last call.
func (p *peer) lossesSinceLast() (events, uses uint64) {
	lost, lostUses, _ := p.region.LostAndWaitCounts()
	// Counters that go backwards are a broken peer's doing.
	if lost > p.lost {
		events = lost - p.lost
	}
	if lostUses > p.lostUses {
		uses = min(lostUses-p.lostUses, events)
	}
	p.lost, p.lostUses = max(lost, p.lost), max(lostUses, p.lostUses)
	return events, uses
}

// watchSocket waits until the process closes its socket. It ignores all data from there: the protocol has none.
func (p *peer) watchSocket(wake func()) {
	var scrap [64]byte
	for {
		n, err := p.conn.Read(scrap[:])
		if n == 0 || err != nil {
			break
		}
	}
	p.hungAt.Store(MonotonicNow())
	p.hungUp.Store(true)
	wake()
}

// outboxMax bounds the messages that wait for a process. If the process does not read them, further messages are dropped.
const outboxMax = 4096

// queueMessage puts a message into the process's mailbox, soon.
func (p *peer) queueMessage(message []byte) {
	if len(p.outbox) < outboxMax {
		p.outbox = append(p.outbox, message)
	}
	p.postMessages()
}

// postMessages moves messages that wait to the mailbox, as far as that has room.
func (p *peer) postMessages() {
	posted := 0
	for posted < len(p.outbox) && p.region.PostMessage(p.outbox[posted]) {
		posted++
	}
	if p.outbox = p.outbox[posted:]; posted > 0 {
		wakeAll(p.region.FutexOfMailbox())
	}
}

// close gives the socket and the shared memory back.
func (p *peer) close() {
	_ = p.conn.Close()
	p.lease.release()
	_ = unix.Munmap(p.mem)
	p.mem, p.region = nil, nil
}

// removeEnded removes the processes that ended and whose rings are empty.
func (c *collector) removeEnded(now uint64) {
	var gone []*peer
	for _, p := range c.peers {
		if p.ended && !c.hasPendingEvents(p) {
			gone = append(gone, p)
		}
	}
	for _, p := range gone {
		c.runUnlessProcessFaults(func() {
			if events, uses := p.lossesSinceLast(); events > 0 {
				c.applyAndRecord(&wire.Record{Process: p.number, Event: wire.LostFields{Time: now, Events: events, Uses: uses}.Event()})
			}
		})
		c.removeProcess(p)
	}
}

// hasPendingEvents reports whether events of a process are still to be delivered.
func (c *collector) hasPendingEvents(p *peer) bool {
	return slices.ContainsFunc(c.merge.heap, func(s *source) bool { return s.peer == p })
}

// removeProcess ends the watch over a process. The exit of the program itself is put off until its status is known.
func (c *collector) removeProcess(p *peer) {
	i := slices.Index(c.peers, p)
	if i < 0 {
		return // its memory went away while it was being ended
	}
	c.merge.removeRingsOfProcess(p)
	c.peers = slices.Delete(c.peers, i, i+1)
	p.close()
	c.leave()
	if p.stays {
		return
	}
	if p.pid == c.child() {
		p, c.waiting = c.waiting, p // it may have had another program before: exec
	}
	if p != nil {
		c.recordExit(p.number, Status{Code: -1}, min(cmp.Or(p.exits, p.hungAt.Load(), c.clock()), c.clock()))
	}
	c.recordProgramExit()
}

// noteProgramEnd notes how and when the program itself ended. Its last events may still be unread.
func (c *collector) noteProgramEnd(status Status, time uint64) {
	c.status, c.finished = &status, cmp.Or(c.finished, time)
	c.model.NoteEndOfRun(time)
	c.recordProgramExit()
}

// recordProgramExit records the exit of the program itself once its status is known and its rings are empty: a program that a signal
// ended wrote no EXIT.
func (c *collector) recordProgramExit() {
	p := c.waiting
	if p == nil || c.status == nil || slices.ContainsFunc(c.peers, func(q *peer) bool { return q.pid == p.pid }) {
		return
	}
	c.waiting = nil
	c.recordExit(p.number, *c.status, c.finished)
}

// commandName returns the name that the kernel has for a process; empty: unknown.
func commandName(pid int) string {
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(name), "\n")
}

// outlivingProcessesText explains that processes which outlive the program run on unwatched, and how to watch them. name is that of such a
// process; empty: unknown.
func outlivingProcessesText(name string) string {
	such := ""
	if name != "" {
		such = fmt.Sprintf(", such as %q,", name)
	} else {
		name = "NAME"
	}
	return "processes that outlive the program" + such + " are no longer watched: 'gpumemtop attach --comm " + name +
		"' watches them, and with GPUMEMTOP_LOG in place of gpumemtop each leaves a flight log at its end"
}

// drainAndEndIntake drains all rings, including those of processes that still run, and ends the intake.
func (c *collector) drainAndEndIntake(status Status) {
	now := c.clock()
	for _, p := range c.peers {
		p.stays = p.pid != c.child() && !p.hasProcessGone()
		if p.stays {
			if c.staying == "" {
				c.staying = commandName(p.pid)
			}
			p.readAllOnNextPass(now) // it may write faster than this can read
		} else {
			p.readAllOnNextPass(math.MaxUint64)
		}
	}
	for drained := false; !drained; {
		drained = c.readRings() == 0
	}
	c.clock = func() uint64 { return now } // the time that writing takes is not part of the run
	c.noteProgramEnd(status, now)
	c.completeRecordingAndModel()
}
