package session

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/machine"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const (
	sampleOften = 250 * time.Millisecond // while figures change
	sampleRare  = time.Second            // once sampleCalm rounds in a row brought nothing new
	sampleCalm  = 4
	// sampleShare times the CPU time of a round pass before the next: it takes at most a quarter of a percent of a core,
	// whatever the number of processes.
	sampleShare = 400
	sampleLeast = 64 << 10 // bytes: a smaller change is not worth a record
	samplesMax  = 1 << 12  // records that wait
)

// sampler reads what the machine reports of the processes, as MACHINE records, on a goroutine of its own, which starts
// with the first process: a driver may take its time to answer. It reads RSS and not PSS, for which the kernel looks at
// every page of the process.
type sampler struct {
	machine *machine.Machine
	clock   func() uint64
	wake    chan struct{}
	pools   chan []poolOf // to be looked at
	relief  *relief       // nil: no pool is asked for anything

	mu        sync.Mutex
	processes map[uint32]*sampled
	started   bool
	closed    bool
	ready     []wire.Record
}

// sampled is a process. The goroutine of the sampler owns what it has besides pid, and sets reader.
type sampled struct {
	pid    int
	reader atomic.Pointer[machine.Process]
	last   map[figureKey]machine.Figure // that were recorded
}

type figureKey struct {
	source wire.Machine
	device uint64
}

func newSampler() *sampler {
	return &sampler{
		machine: machine.ThisMachine(), clock: MonotonicNow, wake: make(chan struct{}, 1), pools: make(chan []poolOf, 1),
		processes: map[uint32]*sampled{},
	}
}

// addProcess adds a process. It never waits.
func (s *sampler) addProcess(process uint32, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.processes[process] = &sampled{pid: pid, last: map[figureKey]machine.Figure{}}
	if !s.started {
		s.started = true
		go s.runSampler()
	}
	s.wakeUp()
}

// removeProcess removes a process that is gone.
func (s *sampler) removeProcess(process uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.processes, process)
	s.ready = slices.DeleteFunc(s.ready, func(r wire.Record) bool { return r.Process == process })
}

// oomKillsSinceStart returns 1 + how many processes of its control group the kernel has ended for lack of memory since the process came;
// 0: unknown.
func (s *sampler) oomKillsSinceStart(process uint32) uint64 {
	s.mu.Lock()
	p := s.processes[process]
	s.mu.Unlock()
	if p == nil || p.reader.Load() == nil {
		return 0
	}
	kills, known := p.reader.Load().OOMKills()
	if !known {
		return 0
	}
	return kills + 1
}

// takeReadyRecords returns the records that are ready.
func (s *sampler) takeReadyRecords() []wire.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := s.ready
	s.ready = nil
	return ready
}

// endSampler ends the goroutine, soon: it may wait for a driver.
func (s *sampler) endSampler() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wakeUp()
}

func (s *sampler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sampler) runSampler() {
	open := map[uint32]*sampled{}
	timer := time.NewTimer(sampleOften)
	defer timer.Stop()
	for calm := 0; ; {
		select {
		case <-timer.C:
			if _, more := s.openAndCloseProcesses(open); !more {
				return
			}
			pause, changed := s.readProcesses(open)
			if calm++; changed {
				calm = 0
			}
			usual := sampleOften
			if calm >= sampleCalm {
				usual = sampleRare
			}
			timer.Reset(max(pause, usual))
		case pools := <-s.pools:
			s.relief.askPools(s.clock(), readPoolMemory(open, pools))
		case <-s.wake: // without, wait for the next round
			arrived, more := s.openAndCloseProcesses(open)
			if !more {
				return
			}
			s.readProcesses(arrived)
			if calm >= sampleCalm {
				calm = 0
				timer.Reset(sampleOften)
			}
		}
	}
}

// openAndCloseProcesses opens new processes and closes those that have ended. At the end of the session it closes all and
// returns more = false.
func (s *sampler) openAndCloseProcesses(open map[uint32]*sampled) (arrived map[uint32]*sampled, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for process, p := range open {
		if s.closed || s.processes[process] != p {
			p.reader.Load().Close()
			delete(open, process)
		}
	}
	arrived = map[uint32]*sampled{}
	for process, p := range s.processes {
		if !s.closed && open[process] == nil {
			p.reader.Store(s.machine.OpenProcess(p.pid))
			open[process], arrived[process] = p, p
		}
	}
	return arrived, !s.closed
}

// readProcesses reads processes once. It returns how long to wait at least before the next, and whether a figure has changed.
func (s *sampler) readProcesses(open map[uint32]*sampled) (pause time.Duration, changed bool) {
	runtime.LockOSThread() // for its CPU time
	defer runtime.UnlockOSThread()
	began := threadTime()
	s.machine.BeginRound()
	for process, p := range open {
		now := s.clock()
		for _, f := range p.reader.Load().ReadFigures() {
			key := figureKey{f.Source, f.Device}
			if last, known := p.last[key]; known && last.Unread == f.Unread && max(last.Bytes, f.Bytes)-min(last.Bytes, f.Bytes) < sampleLeast {
				continue
			}
			p.last[key], changed = f, true
			s.queueFigureRecord(process, now, f)
		}
	}
	return sampleShare * max(0, threadTime()-began-s.machine.DescriptorScanTime()), changed
}

func (s *sampler) queueFigureRecord(process uint32, now uint64, f machine.Figure) {
	r := wire.Record{Process: process, Event: wire.MachineFields{
		Time: now, Source: f.Source, Device: f.Device, Resident: f.Bytes, Unread: f.Unread,
	}.Event()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes[process] != nil && len(s.ready) < samplesMax {
		s.ready = append(s.ready, r)
	}
}

// threadTime returns the CPU time of the calling thread.
func threadTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
