package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
)

// repeater runs a program several times, without input and with its output kept to itself.
type repeater struct {
	command []string
	path    string         // of the program
	timeout time.Duration  // of each run, 0: none
	runs    int            // begun so far
	signals chan os.Signal // those that end it all
	stopped syscall.Signal // that ended it all, 0: none did
}

// outcome is how one run went.
type outcome struct {
	status  session.Status
	timeout time.Duration // that ended it, 0: none did
	wall    time.Duration // from its start to its end
	called  bool          // OpenCL
	peak    uint64        // largest peak reserved of any process
	tail    []byte        // of what it printed
}

func (o *outcome) survived() bool { return o.timeout == 0 && o.status == session.Status{} }

// show writes what the program printed last.
func (o *outcome) show() {
	_, _ = os.Stderr.Write(o.tail)
	if n := len(o.tail); n > 0 && o.tail[n-1] != '\n' {
		_, _ = os.Stderr.WriteString("\n")
	}
}

// String says how it ended: "exit status 1", "SIGSEGV", "no end after 30s".
func (o *outcome) String() string {
	if o.timeout > 0 {
		return fmt.Sprintf("no end after %v", o.timeout)
	}
	return o.status.String()
}

// run runs the program once with so many bytes of device memory, 0 for what the device has, and records it into a file
// where there is a job for that. The error is an ended when a signal told us to stop.
func (f *repeater) run(p *plan, memory uint64, j *job) (*outcome, error) {
	printed, err := newTail()
	if err != nil {
		return nil, err
	}
	o := &outcome{}
	begun := time.Now()
	s, err := f.start(p, memory, printed.file, j)
	if err != nil {
		_ = printed.end()
		return nil, err
	}
	f.runs++
	o.timeout = f.await(s)
	o.wall = time.Since(begun)
	result, err := s.Wait()
	o.tail = printed.end()
	if f.stopped != 0 || f.told() { // the session has passed it on, and the run may have ended by it
		return nil, f.ended()
	}
	if err != nil {
		return nil, err
	}
	if j != nil {
		for _, text := range j.end(&result) {
			say(os.Stderr, text)
		}
	}
	o.status, o.called = result.Status, len(result.Snapshot.Processes) > 0
	for i := range result.Snapshot.Processes {
		o.peak = max(o.peak, result.Snapshot.Processes[i].Totals.PeakReserved)
	}
	return o, nil
}

func (f *repeater) start(p *plan, memory uint64, output *os.File, j *job) (*session.Session, error) {
	if f.told() { // between two runs
		return nil, f.ended()
	}
	input, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer input.Close() //nolint:errcheck // nothing is written to it
	config := p.config(false)
	config.DeviceMemory = memory
	warn := func(string) {}
	if f.runs == 0 {
		warn = func(text string) { say(os.Stderr, text) } // the other runs would only repeat it
	}
	options := session.Options{
		Command: append([]string{f.path}, f.command[1:]...), Name: f.command[0], Config: config,
		Shim: payload.Shim, Core: payload.Core, Warn: warn,
		Model: model.New(model.Options{
			Program: f.command[0], Arguments: f.command[1:], Policy: p.policy.Name(), Limits: limits(p.policy), Started: session.Now(),
		}),
		// Away from our terminal, so that its keys reach only us and a run can be ended with all its children.
		Capture: true, Stdin: input, Stdout: output, Stderr: output,
	}
	if j != nil {
		j.plan, j.model = p, options.Model
		if err := j.record(); err != nil {
			return nil, err
		}
		options.Config.Wait = recordingPatience
		options.Recorder, options.Recording = j.outlets, j.recording.String()
	}
	s, err := session.Start(options)
	if err != nil && j != nil {
		j.discard()
	}
	return s, err
}

// await waits for the end of a run and brings it about when the time is over, which it returns then, or when a signal
// says so.
func (f *repeater) await(s *session.Session) time.Duration {
	var over <-chan time.Time
	if f.timeout > 0 {
		timer := time.NewTimer(f.timeout)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-s.Ended():
		return 0
	case <-over:
		s.Signal(syscall.SIGKILL)
		<-s.Ended()
		return f.timeout
	case sig := <-f.signals:
		f.stop(sig)
		s.Terminate()
		<-s.Ended()
		return 0
	}
}

// told reports whether a signal has come that nobody has looked at.
func (f *repeater) told() bool {
	select {
	case sig := <-f.signals:
		f.stop(sig)
		return true
	default:
		return false
	}
}

func (f *repeater) stop(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		number = syscall.SIGINT
	}
	f.stopped = number
	say(os.Stderr, "stopped")
}

// ended is the status that a shell gives to what a signal stopped.
func (f *repeater) ended() error { return ended{session.Status{Code: 128 + int(f.stopped)}} }

// tailMax is how much of a program's output is kept, bytes.
const tailMax = 4 << 10

// tail keeps the end of what is written to a file.
type tail struct {
	file *os.File // for the program
	read *os.File
	done chan struct{} // closed when kept is complete
	kept []byte
}

func newTail() (*tail, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe for the program's output: %w", err)
	}
	t := &tail{file: write, read: read, done: make(chan struct{})}
	go t.collect()
	return t, nil
}

func (t *tail) collect() {
	defer close(t.done)
	buffer := make([]byte, 64<<10)
	for {
		n, err := t.read.Read(buffer)
		t.kept = append(t.kept, buffer[:n]...)
		if extra := len(t.kept) - tailMax; extra > 0 {
			t.kept = append(t.kept[:0], t.kept[extra:]...)
		}
		if err != nil {
			return
		}
	}
}

// end returns the last bytes. Whoever still holds the file and lives on is not waited for.
func (t *tail) end() []byte {
	err := t.file.Close()
	err = errors.Join(err, t.read.SetReadDeadline(time.Now().Add(tailPatience)))
	if err != nil {
		_ = t.read.Close() // ends the reading at once
	}
	<-t.done
	_ = t.read.Close()
	return t.kept
}

// tailPatience is how long output may be read after the program's end.
const tailPatience = 100 * time.Millisecond
