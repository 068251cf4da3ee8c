package devicebench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Options say what is measured and how long.
type Options struct {
	// Device chooses by number, or by a part of the name in any case; Platform by a part of its name. "": all.
	Device, Platform string
	// Most is the largest size in bytes, 0: a quarter of each device's largest allocation.
	Most uint64
	// Budget is how long all of it may take, without the time in which drivers load. More than 0.
	Budget time.Duration
	// Environment is that of the child processes.
	Environment []string
	// Progress gets what is being done and the share of the time that is over, 0 to 1; may be nil. It is called by
	// the goroutine that called Run.
	Progress func(what string, share float64)

	patience time.Duration // 0: patience
}

// How long we wait for a child.
const (
	patience = 30 * time.Second // for a word, beyond its budget; after that the driver hangs
	farewell = 3 * time.Second  // for its end when it was asked to end
	tick     = 100 * time.Millisecond
)

// ErrNoDevice says that there is nothing to measure.
var ErrNoDevice = errors.New("no OpenCL device was found")

// errHangs is a driver that no longer answers.
var errHangs = errors.New("the driver hangs: it was ended")

// MeasureDevices measures the devices one after another, each in a process of its own. When ctx is done it returns what it knows
// by then, with Interrupted set and no error. A device that fails has that in its Error, and does not keep the others
// from being measured. The error is ErrNoDevice where there is none, or says why no driver can be asked.
func MeasureDevices(ctx context.Context, o *Options) (*Result, error) {
	devices, err := queryDevices(ctx, o)
	if ctx.Err() != nil {
		return &Result{Interrupted: true}, nil
	}
	if err != nil {
		return nil, err
	}
	if devices, err = chooseDevices(devices, o.Device, o.Platform); err != nil {
		return nil, err
	}
	result := &Result{Devices: devices}
	each := o.Budget / time.Duration(len(devices))
	for i := range devices {
		if ctx.Err() != nil {
			result.Devices = devices[:i]
			break
		}
		d := &devices[i]
		begun := time.Now()
		o.measureDevice(ctx, d, each, func() {
			share := min(1, float64(time.Since(begun))/float64(each))
			o.reportProgress("measuring "+d.Device, (float64(i)+share)/float64(len(devices)))
		})
	}
	result.Interrupted = ctx.Err() != nil
	return result, nil
}

func (o *Options) reportProgress(what string, share float64) {
	if o.Progress != nil {
		o.Progress(what, share)
	}
}

// queryDevices asks for all devices.
func queryDevices(ctx context.Context, o *Options) ([]Device, error) {
	var devices []Device
	failure, err := o.runChildWithOrder(ctx, order{List: true}, cmp.Or(o.patience, patience), func() { o.reportProgress("loading drivers", 0) }, func(m *message) {
		if m.Device != nil {
			devices = append(devices, Device{Number: len(devices), Facts: *m.Device})
		}
	})
	switch {
	case err != nil && len(devices) == 0:
		return nil, fmt.Errorf("ask for OpenCL devices: %w; gpumemtop doctor looks for the reason", err)
	case len(devices) > 0:
		return devices, nil
	case failure != "":
		return nil, fmt.Errorf("%w: %s", ErrNoDevice, failure)
	}
	return nil, fmt.Errorf("%w; gpumemtop doctor looks for the reason", ErrNoDevice)
}

// measureDevice measures one device in a child.
func (o *Options) measureDevice(ctx context.Context, d *Device, budget time.Duration, watch func()) {
	g := newGathered()
	failure, err := o.runChildWithOrder(ctx, order{Device: d.Number, Most: o.Most, Budget: budget}, budget+cmp.Or(o.patience, patience), watch, func(m *message) {
		switch {
		case m.Sample != nil:
			g.addSample(m.Sample)
		case m.Part != nil:
			g.subCreate = append(g.subCreate, m.Part.Create)
			g.subRelease = append(g.subRelease, m.Part.Release)
		case m.Note != "":
			d.Notes = append(d.Notes, m.Note)
		}
	})
	g.fitAndJudge(d)
	switch {
	case failure != "":
		d.Error = strings.ReplaceAll(failure, "\n", "; ")
	case err != nil && ctx.Err() == nil:
		d.Error = err.Error()
	}
}

// runChildWithOrder runs this program as a child that follows an order, and gives each of its messages to take. It returns what a
// driver said was wrong, and an error when the process did not come to its end: it crashed or hung. When ctx is done
// the child is asked to end, and made to if it does not.
func (o *Options) runChildWithOrder(ctx context.Context, what order, wait time.Duration, watch func(), take func(*message)) (failure string, err error) {
	c, err := startChild(what, o.Environment)
	if err != nil {
		return "", err
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	silent := time.NewTimer(wait)
	defer silent.Stop()
	asked, ended := ctx.Done(), false
	for {
		select {
		case m, more := <-c.messages:
			if !more {
				return failure, c.awaitEnd(ended, err)
			}
			silent.Reset(wait)
			ended, failure = ended || m.End, failure+m.Failure
			take(&m)
		case <-ticker.C:
			watch()
		case <-asked:
			asked = nil
			_ = c.stdin.Close() // it may have ended
			wait = farewell
			silent.Reset(wait)
		case <-silent.C:
			err = errHangs
			c.killTree()
		}
	}
}

// child is a process of ours that measures.
type child struct {
	cmd      *exec.Cmd
	stdin    *os.File
	readEnd  *os.File      // what it writes
	messages chan message  // closed when there are no more
	over     chan struct{} // closed when the process is gone
	stderr   bytes.Buffer
}

// startChild starts this program once more.
func startChild(what order, environment []string) (*child, error) {
	request, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	reads, writes, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a pipe: %w", err), readEnd.Close(), writeEnd.Close())
	}
	c := &child{stdin: writes, readEnd: readEnd, messages: make(chan message)}
	c.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: os.Args[:1], Stdin: reads, Stderr: &c.stderr, ExtraFiles: []*os.File{writeEnd},
		// Signals that preempt goroutines would interrupt what the driver does, and the collector would compete with
		// it.
		Env:         append(environment[:len(environment):len(environment)], ChildEnv+"="+string(request), "GODEBUG=asyncpreemptoff=1", "GOGC=off"),
		SysProcAttr: &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL},
		WaitDelay:   time.Second, // whatever it started may hold its stderr open
	}
	err = c.start()
	_, _ = writeEnd.Close(), reads.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a process that asks the driver: %w", err), readEnd.Close(), writes.Close())
	}
	go c.readMessages()
	return c, nil
}

// start starts the process from a thread of its own, which lives as long as the process: the kernel ends a child when
// the thread that started it is gone. The thread has given up that executing a file may bring rights: should this
// program's file have capabilities, drivers, which an environment can name, do not get them.
func (c *child) start() error {
	started := make(chan error)
	c.over = make(chan struct{})
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = c.cmd.Start()
		}
		started <- err
		<-c.over
	}()
	err := <-started
	if err != nil {
		close(c.over)
	}
	return err
}

// readMessages reads the child's messages to the last one: another process may hold the pipe open. A line that breaks off is
// left out.
func (c *child) readMessages() {
	defer close(c.messages)
	defer func() { _ = c.readEnd.Close() }() // it was only read
	lines := json.NewDecoder(bufio.NewReader(c.readEnd))
	for {
		var m message
		if lines.Decode(&m) != nil {
			return
		}
		c.messages <- m
		if m.End {
			return
		}
	}
}

// killTree ends the child and whatever it started, and listening to it.
func (c *child) killTree() {
	_ = unix.Kill(-c.cmd.Process.Pid, unix.SIGKILL)
	_ = c.readEnd.SetReadDeadline(time.Now().Add(time.Second)) // a pipe has deadlines, unless it is closed by now
}

// awaitEnd waits for the process and says what is wrong with its end, if it did not tell everything: the reason that is
// known already, or its status and the last that it wrote.
func (c *child) awaitEnd(whole bool, known error) error {
	_ = c.stdin.Close() // it may be closed already
	err := c.cmd.Wait()
	close(c.over)
	switch {
	case known != nil:
		return known
	case whole:
		return nil // a driver that cannot unload has answered everything
	case err == nil:
		return errors.New("the process that asked the driver ended in the middle")
	}
	text := strings.TrimSpace(c.stderr.String())
	if text == "" {
		return fmt.Errorf("the driver crashed: %w", err)
	}
	first, _, _ := strings.Cut(text, "\n")
	return fmt.Errorf("the driver crashed: %w: %s", err, first)
}
