package session

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	passMax  = 1 << 16 // events in one pass, so that commands and ticks get their turn
	pollMin  = time.Millisecond
	pollMax  = time.Duration(tickNS) // nothing shows what is read before the next tick; a ring that is half full does not wait: see bell
	calm     = 2048                  // events in one pass, an eighth of a ring
	settleNS = 100_000               // a producer takes the time of an event a little before it writes it
	sweepNS  = 1_000_000_000         // look at what rings have lost
)

// collector reads the rings of all processes into its intake. Only its own goroutine uses the intake and the peers; other
// goroutines reach the collector through the fields under mu.
type collector struct {
	intake
	leave func()        // called when a process is gone
	child func() int    // pid of the program itself, 0 while unknown
	next  func() uint64 // numbers a message

	folder string // of the session; empty: no pool is asked for what other programs need

	merge    merge
	peers    []*peer
	count    uint32         // processes so far
	numbers  map[int]uint32 // of processes so far, by their pids as they see them
	early    []childUse     // reports whose process is not known yet
	waiting  *peer          // the program itself, ended, its exit not yet recorded
	finished uint64         // when the program itself ended; 0: it goes on
	status   *Status        // how it ended, once that is known
	sweep    uint64         // when losses, and whether processes still live, are looked at next
	changed  []change
	staying  string // name of a process that made OpenCL calls and outlives the program

	wake chan struct{}
	mu   sync.Mutex
	todo []func()
	stop *Status // set once: finish up
	done chan struct{}
}

// change is a limit, or a policy, that was set since the start. Processes that start later get it, too.
type change struct {
	name    string // of the limit; empty: a policy
	message []byte
	number  uint64
}

func newCollector(m *stats.Model, recorder Recorder, path string) *collector {
	return &collector{
		intake: newIntake(m, recorder, path), leave: func() {}, child: func() int { return 0 },
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// queueCall runs fn on the collector's goroutine, soon. It never waits.
func (c *collector) queueCall(fn func()) {
	c.mu.Lock()
	c.todo = append(c.todo, fn)
	c.mu.Unlock()
	c.wakeUp()
}

func (c *collector) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// endAfterDraining reads all rings to their end, completes recording and model, and ends run.
func (c *collector) endAfterDraining(status Status) {
	c.mu.Lock()
	c.stop = &status
	c.mu.Unlock()
	c.wakeUp()
	<-c.done
}

// runCollector is the collector's goroutine.
func (c *collector) runCollector() {
	defer close(c.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := pollMin
	for {
		todo, stop := c.takeQueuedCalls()
		for _, fn := range todo {
			fn()
		}
		if stop != nil {
			c.drainAndEndIntake(*stop)
			return
		}
		n := c.readRings()
		c.publishNameSampleAndFlush()
		switch { // a poll wakes Go's scheduler for a while, which costs more than a few events do
		case n >= passMax:
			continue
		case n > calm:
			pause = max(pause*calm/time.Duration(n), pollMin)
		default:
			pause = min(pause*3/2, pollMax)
		}
		timer.Reset(c.nextPause(pause))
		select {
		case <-timer.C:
		case <-c.wake:
		}
	}
}

// nextPause lengthens the poll while there is nothing to poll.
func (c *collector) nextPause(poll time.Duration) time.Duration {
	if len(c.peers) == 0 {
		return tickNS
	}
	return poll
}

func (c *collector) takeQueuedCalls() ([]func(), *Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	todo := c.todo
	c.todo = nil
	return todo, c.stop
}

// readRings reads every ring once and returns how many events it delivered.
func (c *collector) readRings() int {
	c.applySiteAnswers()
	now := c.clock()
	until := now - min(now, settleNS)
	all := now >= c.sweep
	if all {
		c.sweep = now + sweepNS
	}
	n, goesOn := 0, true
	for goesOn {
		goesOn = false
		c.runUnlessProcessFaults(func() { c.offerAllRingsToMerge(all, until) })
		c.removeEnded(now) // before what others did after that, as a parent that waited for it
		c.runUnlessProcessFaults(func() {
			var read int
			read, goesOn = c.merge.deliverMerged(until, passMax-n, c.deliverEvent)
			n += read
		})
	}
	c.runUnlessProcessFaults(func() {
		if n < passMax {
			c.read = until
		}
		for _, p := range c.peers {
			c.checkForShortage(p)
		}
		if all {
			c.reportLosses(now)
		}
	})
	c.removeEnded(now)
	return n
}

// offerAllRingsToMerge offers the rings of all processes to the merge.
func (c *collector) offerAllRingsToMerge(all bool, until uint64) {
	for _, p := range c.peers {
		// We ask before we read the rings: all events from before the end of the process are then in them.
		if (all || p.exits > 0 || p.hungUp.Load()) && p.hasProcessGone() {
			p.readAllOnNextPass(math.MaxUint64)
		}
		if len(p.outbox) > 0 {
			p.postMessages()
		}
		p.offerRingsToMerge(&c.merge, until)
	}
}

// runUnlessProcessFaults runs fn. If a process takes its memory away while fn reads it, runUnlessProcessFaults removes that
// process.
func (c *collector) runUnlessProcessFaults(fn func()) {
	fault := runCatchingFault(fn)
	if fault == 0 {
		return
	}
	for _, p := range c.peers {
		if isMapped(p.mem, fault) {
			c.removeProcess(p)
			return
		}
	}
	panic(fmt.Sprintf("fault at %#x in no process's memory", fault))
}

// deliverEvent takes one event from a ring. Kinds that only the session writes are forgeries.
func (c *collector) deliverEvent(p *peer, r *wire.Record) {
	r.ClearCarriedOver() // it would say that something happened before the recording
	if p.exits > 0 || r.Kind == wire.KindExit {
		p.exits = r.Time
	}
	switch r.Kind {
	case wire.KindExit:
		r.Thread = max(r.Thread, 1) // 0 is the session's own word
	case wire.KindNone, wire.KindProcess, wire.KindSite, wire.KindLost, wire.KindMachine:
		return
	}
	c.acceptRecord(r)
}

func (c *collector) reportLosses(now uint64) {
	for _, p := range c.peers {
		if events, uses := p.lossesSinceLast(); events > 0 {
			c.applyAndRecord(&wire.Record{Process: p.number, Event: wire.LostFields{Time: now, Events: events, Uses: uses}.Event()})
		}
	}
}

// addProcess takes a new process in.
func (c *collector) addProcess(p *peer) {
	c.count++
	p.number = c.count
	c.peers = append(c.peers, p)
	if c.numbers == nil || len(c.numbers) == childrenMax {
		c.numbers = map[int]uint32{}
	}
	c.numbers[p.own] = p.number
	r := wire.ProcessFields{
		Time: c.clock(), PID: uint64(p.pid), Parent: uint64(p.parent), RankNumber: wire.RankNumber(p.place.Rank),
	}.Record(wire.AppendProcess(nil, p.command))
	r.Process = p.number
	c.acceptRecord(&r) // sites look for its generated code
	if p.place != (wire.Place{}) {
		r = p.place.DiagRecord(c.clock())
		r.Process = p.number
		c.acceptRecord(&r)
	}
	c.runUnlessProcessFaults(func() {
		p.region.SetUsesWanted(c.isRecording())
		for _, change := range c.changed {
			p.queueMessage(change.message)
		}
	})
	c.recordEarlyReports(p)
}

// childrenMax bounds the processes that are remembered for what their children do.
const childrenMax = 1 << 16

// recordChildUse records that a forked child of a process called an OpenCL function.
func (c *collector) recordChildUse(pid int, function string) {
	c.queueCall(func() {
		if number := c.numbers[pid]; number != 0 {
			c.recordUseInOrder(number, function)
		} else if len(c.early) < earlyMax { // its parent may not have been greeted yet
			c.early = append(c.early, childUse{pid, function})
		}
	})
}

// childUse is an OpenCL function that a forked child called. The process is known by its pid in its own namespace.
type childUse struct {
	pid      int
	function string
}

// earlyMax bounds the reports that come before their process.
const earlyMax = 1024

// recordUseInOrder records a use after the earlier events in the rings: a record moves the clock of the run, and a peak in an earlier
// event would then get the wrong time.
func (c *collector) recordUseInOrder(number uint32, function string) {
	time := c.clock()
	if c.readRings() < passMax {
		time = c.read
	}
	r := wire.DiagFields{Time: time, Diag: wire.DiagUseAfterFork}.Record([]byte(function))
	r.Process = number
	c.acceptRecord(&r)
}

// recordEarlyReports records the reports on a process that came before the process itself.
func (c *collector) recordEarlyReports(p *peer) {
	c.early = slices.DeleteFunc(c.early, func(u childUse) bool {
		if u.pid == p.own {
			c.recordUseInOrder(p.number, u.function)
		}
		return u.pid == p.own
	})
}

// setLimit asks every process for a limit.
func (c *collector) setLimit(name, value string, number uint64) error {
	text := "limit " + name + "=" + value
	message, err := wire.Control{Sequence: number, Text: text}.Encode()
	if err != nil {
		return fmt.Errorf("set limit: %w", err)
	}
	c.queueCall(func() {
		c.model.NoteLimitWanted(name, value, number)
		c.sendChangeToAll(change{name: name, message: message, number: number})
	})
	return nil
}

// sendChangeToAll sends a change to every process, and keeps it for those that come later.
func (c *collector) sendChangeToAll(latest change) {
	c.keepLatestChange(latest)
	for _, p := range slices.Clone(c.peers) { // guard may remove one
		c.runUnlessProcessFaults(func() { p.queueMessage(latest.message) })
	}
}

// keepLatestChange keeps the latest change of each limit, in the order in which they were made first. A policy begins with its
// own limits: what was changed before it no longer matters.
func (c *collector) keepLatestChange(latest change) {
	if latest.name == "" {
		c.changed = append(c.changed[:0], latest)
		return
	}
	for i := range c.changed {
		if c.changed[i].name == latest.name {
			c.changed[i] = latest
			return
		}
	}
	c.changed = append(c.changed, latest)
}

// isRecording reports whether a Switched records now.
func (c *collector) isRecording() bool {
	switched, ok := c.recorder.(Switched)
	return ok && switched.Path() != ""
}

// startOrStopRecording starts or stops a Switched, once everything until now was delivered.
func (c *collector) startOrStopRecording() (string, error) {
	switched, ok := c.recorder.(Switched)
	if !ok {
		return "", errors.New("this session records everything, or nothing, from its start: see -o")
	}
	c.applySamples()
	now := c.clock()
	for c.readRings() == passMax && c.clock() < now+tickNS { // a flood may never end
	}
	text, err := switched.Toggle(now - min(now, settleNS))
	for _, p := range slices.Clone(c.peers) {
		c.runUnlessProcessFaults(func() { p.region.SetUsesWanted(c.isRecording()) })
	}
	c.flushRecorder()
	return text, err
}
