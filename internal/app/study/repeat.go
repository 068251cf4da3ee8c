package study

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/report"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/session/payload"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Program is a program that is run several times.
type Program struct {
	Command []string
	Timeout time.Duration // of each run, 0: none
	Runs    int           // started so far

	keeps   bool           // what runs print on stdout
	tempo   *measure.Tempo // of the present run; nil: iterations are not timed
	live    *liveTune      // what tunes the program as it runs; nil: nothing does
	path    string         // of the program
	signals chan os.Signal // that end all runs; nil before StopOnSignals
	stopped syscall.Signal // the signal that ended all runs, 0: none
}

// FindProgram finds the program.
func FindProgram(command []string) (*Program, error) {
	path, err := session.FindProgram(command[0])
	return &Program{Command: command, path: path}, err
}

// StopOnSignals makes signals end the run in progress and all others, until the function that it returns is called.
func (p *Program) StopOnSignals() (restore func()) {
	p.signals = session.CatchSignals()
	return func() { signal.Stop(p.signals) }
}

// Outcome is how a run went.
type Outcome struct {
	Wall    time.Duration // from start to end
	Nothing string        // what was seen where the program had no context; empty: it had one
	Peak    uint64        // largest peak reserved of any process
	Asked   uint64        // largest peak requested of any process
	Hits    uint64        // of all processes
	Devices int           // the most that a process uses

	iterations measure.Iterations // if the program's iterations are timed
	measured   *measure.Result    // by an experiment in the program, if the setup has one

	status  session.Status
	timeout time.Duration // that ended it, 0: it ended by itself
	tail    []byte        // the end of its output; if the program keeps stdout: of stderr
	stdout  []byte        // if the program keeps it: at most the last outputMax bytes
}

// Survived reports whether the program ended by itself, with status 0.
func (o *Outcome) Survived() bool { return o.timeout == 0 && o.status == session.Status{} }

// ShowLastOutput writes the end of the program's output to stderr.
func (o *Outcome) ShowLastOutput() {
	_, _ = os.Stderr.Write(o.tail)
	if n := len(o.tail); n > 0 && o.tail[n-1] != '\n' {
		_, _ = os.Stderr.WriteString("\n")
	}
}

// String says how the run ended: "exit status 1", "SIGSEGV", "no end after 30s".
func (o *Outcome) String() string {
	if o.timeout > 0 {
		return fmt.Sprintf("no end after %v", o.timeout)
	}
	return o.status.String()
}

// RunRecorded runs the program once. Unless it is empty, recording names a file to record into. The error carries a status if a
// signal ended the run.
func (p *Program) RunRecorded(setup *watch.Setup, recording string) (*Outcome, error) {
	outputs := &watch.Outputs{}
	if recording != "" {
		subject := &watch.Subject{Command: p.Command, Name: p.Command[0], Setup: setup}
		var err error
		if outputs, err = watch.NewOutputs(watch.OutputOptions{Recording: recording}, subject, &console.Notes{}); err != nil {
			return nil, err
		}
	}
	return p.runProgram(setup, outputs)
}

// RunTimed runs the program once, with a setup, or without gpumemtop's libraries if that is nil.
func (p *Program) RunTimed(setup *watch.Setup) (*Outcome, error) {
	return p.runProgram(setup, &watch.Outputs{})
}

// runProgram runs the program, bare if setup is nil.
func (p *Program) runProgram(setup *watch.Setup, outputs *watch.Outputs) (*Outcome, error) {
	printed, err := newTail(tailMax)
	if err != nil {
		return nil, err
	}
	stdout := printed
	if p.keeps {
		if stdout, err = newTail(outputMax); err != nil {
			_ = printed.lastOutput()
			return nil, err
		}
	}
	s, err := p.startProgram(setup, stdout.file, printed.file, outputs)
	if err != nil {
		_, _ = stdout.lastOutput(), printed.lastOutput()
		return nil, err
	}
	begun := time.Now() // before that, files were written for the program to find
	p.Runs++
	o := &Outcome{timeout: p.awaitEnd(s)}
	o.Wall = time.Since(begun)
	result, err := s.Wait()
	o.stdout = stdout.lastOutput()
	o.tail = printed.lastOutput()
	if p.WasStopped() { // the session has passed the signal on, which may have ended the run
		return nil, p.StoppedBySignalError()
	}
	if err != nil {
		return nil, err
	}
	for _, text := range outputs.CompleteFiles(result.Snapshot, watch.ReportedExit(result.Status), false) {
		console.SayLine("%s", text)
	}
	o.status, o.measured = result.Status, result.Snapshot.Measured.LatestResult()
	if p.tempo != nil {
		o.iterations = p.tempo.Iterations()
	}
	if len(result.Snapshot.Processes) == 0 {
		o.Nothing = report.NoContextText(result.Snapshot.Asked)
	}
	o.Devices = result.Snapshot.MostDevicesOfProcess()
	for i := range result.Snapshot.Processes {
		t := &result.Snapshot.Processes[i].Totals
		o.Peak, o.Asked = max(o.Peak, t.PeakReserved), max(o.Asked, t.PeakRequested)
		o.Hits += t.Hits
	}
	return o, nil
}

func (p *Program) startProgram(setup *watch.Setup, stdout, stderr *os.File, outputs *watch.Outputs) (*session.Session, error) {
	if p.WasStopped() { // between two runs
		return nil, p.StoppedBySignalError()
	}
	input, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer input.Close() //nolint:errcheck // nothing is written to it
	warn := func(string) {}
	if p.Runs == 0 { // the other runs would only repeat it
		warn = func(text string) { console.SayLine("%s", text) }
	}
	options := session.Options{
		Command: append([]string{p.path}, p.Command[1:]...), Name: p.Command[0], Shim: payload.OpenShim, Core: payload.OpenCore, Warn: warn,
		Published: new(console.Memory).AdjustMemoryLimit,
		// Away from our terminal: its keys reach only us, and a run can be ended with all its children.
		Capture: true, Stdin: input, Stdout: stdout, Stderr: stderr,
	}
	about := stats.Options{}
	if options.Bare = setup == nil; !options.Bare {
		subject := watch.Subject{Command: p.Command, Setup: setup}
		about = subject.ModelOptions()
		about.TransfersOnly = !outputs.IsRecording()
		about.Limits = watch.LimitsForModel(setup.Policy)
		options.Config = setup.WireConfig(outputs.IsRecording(), false)
	}
	options.Model = stats.New(about)
	if err := outputs.CreateFiles(options.Model); err != nil {
		return nil, err
	}
	options.Recorder, options.Recording = outputs.Recorder, outputs.RecordingName()
	join := p.newTimingTap(setup, &options)
	s, err := session.Start(options)
	if err != nil {
		outputs.DiscardFiles()
		return nil, err
	}
	join(s)
	return s, nil
}

// newTimingTap lets a run's iterations be timed and its experiment begin, which join gives the session.
func (p *Program) newTimingTap(setup *watch.Setup, options *session.Options) (join func(*session.Session)) {
	if p.tempo != nil && setup != nil {
		p.tempo = new(measure.Tempo)
		options.Tap = tempoTap{p.tempo}
	}
	if p.live != nil {
		return p.live.newTuningTap(setup, options)
	}
	if setup == nil || !setup.Measure.Now {
		return func(*session.Session) {}
	}
	experimenter := watch.NewExperimenter(&setup.Measure, options.Model, options.Tap)
	options.Tap = experimenter
	return experimenter.SetSession
}

// tempoTap times the iterations of a run.
type tempoTap struct{ *measure.Tempo }

// Flush implements session.Tap.
func (tempoTap) Flush() {}

// Close implements session.Tap.
func (tempoTap) Close() {}

// awaitEnd waits for the end of a run. It ends the run when the time is up, which it returns then, or when a signal comes.
func (p *Program) awaitEnd(s *session.Session) time.Duration {
	var timeout <-chan time.Time
	if p.Timeout > 0 {
		timer := time.NewTimer(p.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-s.Ended():
		return 0
	case <-timeout:
		s.SignalProgram(syscall.SIGKILL)
		<-s.Ended()
		return p.Timeout
	case sig := <-p.signals:
		p.noteStopSignal(sig)
		s.Terminate()
		<-s.Ended()
		return 0
	}
}

// WasStopped reports whether a signal has come.
func (p *Program) WasStopped() bool {
	select {
	case sig := <-p.signals:
		p.noteStopSignal(sig)
	default:
	}
	return p.stopped != 0
}

func (p *Program) noteStopSignal(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		number = syscall.SIGINT
	}
	p.stopped = number
	console.SayLine("stopped")
}

// StoppedBySignalError carries the status that a shell gives to a command that a signal stopped.
func (p *Program) StoppedBySignalError() error {
	return console.NewExitWithStatus(session.Status{Code: 128 + int(p.stopped)})
}

// How many bytes of a program's output are kept: to be shown, and to be compared.
const (
	tailMax   = 4 << 10
	outputMax = 64 << 20
)

// tail keeps the end of what is written to a file.
type tail struct {
	file *os.File // for the program
	read *os.File
	done chan struct{} // closed when kept is complete
	most int
	kept []byte
}

func newTail(most int) (*tail, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe for the program's output: %w", err)
	}
	t := &tail{file: write, read: read, done: make(chan struct{}), most: most}
	go t.readWholeOutput()
	return t, nil
}

func (t *tail) readWholeOutput() {
	defer close(t.done)
	buffer := make([]byte, 64<<10)
	for {
		n, err := t.read.Read(buffer)
		t.kept = append(t.kept, buffer[:n]...)
		if extra := len(t.kept) - t.most; extra > t.most || err != nil && extra > 0 {
			t.kept = append(t.kept[:0], t.kept[extra:]...)
		}
		if err != nil {
			return
		}
	}
}

// lastOutput returns the last bytes. It does not wait for processes that live on and hold the file.
func (t *tail) lastOutput() []byte {
	err := t.file.Close()
	err = errors.Join(err, t.read.SetReadDeadline(time.Now().Add(tailPatience)))
	if err != nil {
		_ = t.read.Close() // ends the reading at once
	}
	<-t.done
	_ = t.read.Close()
	return t.kept
}

// tailPatience is how long output is read after the program's end.
const tailPatience = 100 * time.Millisecond
