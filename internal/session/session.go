// Package session runs one target under watch: it makes the private runtime folder, starts the program with the
// preload library, takes in every process of it that calls OpenCL, merges their event rings by time into recording
// and model, forwards signals, keeps what the program prints while a dashboard covers the terminal, and puts
// everything away at the end. An Attached watches programs that run already instead, and leaves them as they are.
//
// Processes of the target that outlive the program itself are not waited for: what they wrote so far is drained, and
// from then on they run unwatched.
package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/session/inherited"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Options describe a session.
type Options struct {
	Command []string // program, found by FindProgram, and its arguments
	Name    string   // the program's argv[0]; empty: Command[0]
	Config  wire.Config
	Bare    bool // the program gets its environment as it is, so that no process is watched

	// Shim and Core return the libraries to put into the target. Core is asked only for pooling policies.
	Shim, Core func() (io.Reader, error)

	Model     *stats.Model
	Recorder  Recorder // nil: nothing is recorded. The session does not close it
	Recording string   // its path, to show
	Tap       Tap      // nil: there is none. The session closes it, also when it cannot start
	// Resolve names a return address in a module, innermost function first. It is called from one goroutine. nil:
	// tags keep their numbers.
	Resolve func(module string, offset uint64) []symbol.Frame
	Names   symbol.Options // of code that the program generates

	// Published is called after each snapshot, with how many call sites or live buffers there are, how many events came so far
	// and the time. nil: it is not called.
	Published func(things, events, now uint64)

	// Capture keeps what the program prints to a terminal, because a dashboard covers that. Cols and Rows are the
	// size of the terminal that the program gets instead, in cells.
	Capture    bool
	Cols, Rows int

	Stdin, Stdout, Stderr *os.File          // the program's, and where captured output goes; nil: ours
	Warn                  func(text string) // takes messages for the user, from any goroutine; nil: dropped
}

// Session is a running target. Its methods may be called from any goroutine.
type Session struct {
	options    Options
	folder     *folder
	acceptor   *acceptor
	bell       *bell
	neighbours *neighbours // nil: there is no pool, or it is not to give
	collector  *collector
	streams    *streams
	cmd        *exec.Cmd
	signals    chan os.Signal
	sequence   atomic.Uint64

	ended  chan struct{} // closed when the program has ended
	status Status        // from then on

	mu    sync.Mutex
	relay *relay
}

// Result is the result of a session.
type Result struct {
	Status   Status
	Snapshot *stats.Snapshot
	// Unwatched says why processes are not watched, each reason once. The user has been warned of them.
	Unwatched []string
	// Recording is the error that ended the recording early, nil when it is whole.
	Recording error
	// OpenLine says that captured output left the terminal in the middle of a line.
	OpenLine bool
}

// Start starts the program. An error wraps ErrNotFound or ErrNotExecutable when it is the program's; nothing is
// left behind then. Afterwards Wait must be called.
func Start(options Options) (*Session, error) {
	s := &Session{options: optionsWithDefaults(options), ended: make(chan struct{})}
	// From here on a signal must not end us before the runtime folder is removed.
	s.signals = CatchSignals()
	err := s.prepareFolderAndStreams()
	if err == nil {
		err = s.startTarget()
	}
	if err != nil {
		stopCatchingSignals(s.signals)
		return nil, errors.Join(err, s.undoStart())
	}
	go s.passSignalsOn(s.signals)
	go s.awaitProgram()
	return s, nil
}

func optionsWithDefaults(o Options) Options {
	if o.Stdin == nil {
		o.Stdin = inherited.StreamUnlessClosed(os.Stdin)
	}
	if o.Stdout == nil {
		o.Stdout = inherited.StreamUnlessClosed(os.Stdout)
	}
	if o.Stderr == nil {
		o.Stderr = inherited.StreamUnlessClosed(os.Stderr)
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Name == "" {
		o.Name = o.Command[0]
	}
	return o
}

// prepareFolderAndStreams makes folder, sockets and streams, before the target starts.
func (s *Session) prepareFolderAndStreams() error {
	if why := PreloadObstacle(s.options.Command[0]); why != "" && !s.options.Bare {
		s.options.Warn(fmt.Sprintf("%s cannot be pooled: %s. It runs unwatched", filepath.Base(s.options.Command[0]), why))
	}
	files, err := s.folderFiles()
	if err != nil {
		return err
	}
	if s.folder, err = newFolder(runtimeFolderPlaces(), files); err != nil {
		return err
	}
	c := newCollector(s.options.Model, s.options.Recorder, s.options.Recording)
	c.sites, c.tap, c.sampler = newSiteNamer(s.options.Resolve), s.options.Tap, newSampler()
	c.sites.names = s.options.Names
	c.child, c.published = s.PID, s.options.Published
	c.next = func() uint64 { return s.sequence.Add(1) }
	if s.options.Config.Pooling && !s.options.Config.NoRelief {
		if err := s.startMemoryExchange(c); err != nil {
			return err
		}
	}
	if s.bell, err = openBell(s.folder.pathOf(wire.ConfigName)); err != nil {
		return err
	}
	join := func(p *peer) {
		s.bell.listenForRings(c.wakeUp)
		c.queueCall(func() { c.addProcess(p) })
		go p.watchSocket(c.wakeUp)
	}
	if s.acceptor, err = listenForProcesses(s.folder.pathOf(wire.SocketName), join, s.options.Warn); err != nil {
		return err
	}
	if s.acceptor.outsiders, err = listenToOutsiders(s.folder.pathOf(wire.OutsidersName), c.recordChildUse); err != nil {
		return err
	}
	c.leave = s.acceptor.freeSlot
	s.collector = c
	if s.streams, err = s.makeStreams(); err != nil {
		return fmt.Errorf("open a terminal for the program: %w", err)
	}
	return nil
}

// startMemoryExchange makes the pools exchange memory with other programs: they give back memory that others lack, and ask for
// memory that others keep.
func (s *Session) startMemoryExchange(c *collector) (err error) {
	c.enablePoolRelief()
	c.folder = s.folder.path
	s.neighbours, err = listenToNeighbours(s.folder.pathOf(neighboursName), func(need uint64, identities []string) uint64 {
		return c.collectFromPools(need, identities, 0)
	})
	return err
}

// folderFiles returns the libraries and settings for the runtime folder.
func (s *Session) folderFiles() (map[string]content, error) {
	config, err := s.options.Config.Encode()
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	files := map[string]content{wire.ShimName: {s.options.Shim, 0o755, false}}
	if s.options.Config.Pooling {
		files[wire.CoreName] = content{s.options.Core, 0o755, true}
	}
	for _, library := range files {
		if _, err := library.open(); err != nil { // whatever the place
			return nil, err
		}
	}
	files[wire.ConfigName] = content{func() (io.Reader, error) { return bytes.NewReader(config), nil }, 0o600, false}
	return files, nil
}

func (s *Session) makeStreams() (*streams, error) {
	files := [3]*os.File{s.options.Stdin, s.options.Stdout, s.options.Stderr}
	if !s.options.Capture {
		return uncapturedStreams(files), nil
	}
	return capturedStreams(files, s.options.Cols, s.options.Rows)
}

func (s *Session) startTarget() error {
	path := s.options.Command[0]
	env := os.Environ()
	if !s.options.Bare && !linkerRefuses(path) {
		s.warnOfUncalledPreloads()
		env = targetEnvironment(env, s.folder.path)
		if needsLibrary(path, "libasan.so") {
			env = environmentForSanitizer(env)
		}
		if hasOwnLeakChecker(path) {
			s.options.Warn("what drivers leak in gpumemtop's calls may count as leaks of " + s.options.Name + ": link its sanitizer with -rdynamic")
		}
	}
	s.cmd = &exec.Cmd{
		Path: path,
		Args: append([]string{s.options.Name}, s.options.Command[1:]...),
		Env:  env,
	}
	s.streams.giveStreamsTo(s.cmd)
	// Listening began before: a program that connects at once waits in the queue.
	if err := inherited.StartWithBlockedSignals(s.cmd.Start); err != nil {
		return startError(path, err)
	}
	s.streams.beginReading()
	go s.acceptor.acceptProcesses()
	go s.collector.runCollector()
	return nil
}

// undoStart undoes a start that failed.
func (s *Session) undoStart() error {
	if s.streams != nil {
		s.streams.close()
	}
	if s.acceptor != nil {
		_ = s.acceptor.listener.Close()
		if s.acceptor.outsiders != nil {
			s.acceptor.outsiders.close()
		}
	}
	if s.options.Tap != nil {
		s.options.Tap.Close()
	}
	if s.bell != nil {
		s.bell.endListening()
	}
	s.neighbours.close()
	if s.folder != nil {
		_, err := s.folder.deleteFolder()
		return err
	}
	return nil
}

// awaitProgram waits for the program.
func (s *Session) awaitProgram() {
	_ = s.cmd.Wait() // what it says is in ProcessState
	time := MonotonicNow()
	s.status = newStatus(s.cmd.ProcessState)
	s.collector.queueCall(func() { s.collector.noteProgramEnd(s.status, time) })
	s.streams.readRestAfterEnd()
	close(s.ended)
}

// Wait waits for the program's end and completes recording and model. It must be called exactly once, and without a
// dashboard on the screen: from here on captured output goes to the terminal.
func (s *Session) Wait() (Result, error) {
	<-s.ended
	s.neighbours.close()
	unwatched := s.acceptor.stopAccepting()
	for _, why := range unwatched {
		s.options.Warn("a process is not watched: " + why)
	}
	s.collector.queueCall(func() { s.collector.model.NoteDevicesAsked(s.acceptor.outsiders.asked) })
	s.collector.endAfterDraining(s.status)
	s.bell.endListening()
	stopCatchingSignals(s.signals)
	err := s.EndCapture(true)
	kept, removed := s.folder.deleteFolder()
	if kept {
		s.options.Warn(outlivingProcessesText(s.collector.staying))
	}
	err = errors.Join(err, removed)
	s.mu.Lock()
	s.relay.restoreTerminal()
	s.mu.Unlock()
	s.streams.close()
	return Result{
		Status: s.status, Unwatched: unwatched, Snapshot: s.collector.model.PublishedSnapshot(), Recording: s.collector.failure,
		OpenLine: s.streams.output != nil && s.streams.output.endsInOpenLine(),
	}, err
}

// Ended is closed when the program has ended and everything it printed has been read.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// ViewPath returns where the socket for other terminals may be, until Wait.
func (s *Session) ViewPath() string { return s.folder.pathOf(viewName) }

// PID returns the program's process id.
func (s *Session) PID() int { return s.cmd.Process.Pid }

// Status returns how the program ended, and whether it has.
func (s *Session) Status() (Status, bool) {
	select {
	case <-s.ended:
		return s.status, true
	default:
		return Status{}, false
	}
}

// MonotonicNow returns CLOCK_MONOTONIC in ns, the clock of every event. Go's own monotonic clock is the same one, but
// its readings cannot be had as a number.
func MonotonicNow() uint64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // the clock is part of every Linux that Go runs on
	}
	return uint64(t.Nano())
}
