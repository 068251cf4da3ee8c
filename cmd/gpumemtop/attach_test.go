package main

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer"
)

// fakeAttach is gpumemtop attach on a feed that is made up; FAKE_FEED says how that behaves.
func fakeAttach() {
	cmd := newAttachCommand(startFake)
	cmd.SetArgs(os.Args[1:])
	reportError(cmd.Execute(), os.Stderr).EndLikeTarget()
}

func startFake(o tracer.Options) (watch.Feed, error) {
	f := &fakeFeed{mode: os.Getenv("FAKE_FEED"), wake: make(chan struct{}, 1), pids: o.PIDs}
	f.emitted = f.mode == "nothing"
	if f.mode == "denied" {
		return nil, errors.New("attach needs the capability CAP_BPF")
	}
	note("options", fmt.Sprintf("pids %d comms %v cgroups %v all %v follow %v tags %v depth %d uses %v\n",
		len(o.PIDs), o.Comms, o.Cgroups, o.All, o.Follow, o.Tags, o.Depth, o.Uses))
	if len(f.pids) == 0 {
		f.pids = []int{os.Getpid()}
	}
	return f, nil
}

// note leaves a file for the script to find.
func note(name, text string) {
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		panic(err)
	}
}

// fakeFeed emits events of processes that had 1 MiB before and allocate 2 MiB. In mode "ends" the processes end, in mode
// "breaks" the feed fails; otherwise they go on.
type fakeFeed struct {
	mode     string
	pids     []int
	wake     chan struct{}
	emitted  bool
	detached bool
}

func (f *fakeFeed) Poll(wait time.Duration, put func(*wire.Record)) (int, error) {
	switch {
	case !f.emitted:
		f.emitted = true
		return f.emit(put), nil
	case f.detached:
		return 0, nil
	case f.mode == "ends":
		for i := range f.pids {
			put(&wire.Record{Process: uint32(i + 1), Event: wire.Event{Time: session.MonotonicNow(), Kind: wire.KindExit, Status: 3}})
		}
		f.mode = "over"
		return len(f.pids), nil
	case f.mode == "over":
		return 0, io.EOF
	case f.mode == "breaks":
		return 0, errors.New("the ring is gone")
	}
	note("idle", strconv.Itoa(os.Getpid()))
	select {
	case <-f.wake:
	case <-time.After(wait):
	}
	return 0, nil
}

func (f *fakeFeed) emit(put func(*wire.Record)) int {
	for i, pid := range f.pids {
		process, now := uint32(i+1), session.MonotonicNow()
		command, name := "/opt/blur\x004096\x00", wire.BeforeAttach+"\t\t\t\n"
		put(&wire.Record{Process: process, Payload: []byte(command), Event: wire.Event{
			Time: now, Kind: wire.KindProcess, Object: uint64(pid), Size: uint64(len(command)),
		}})
		put(&wire.Record{Process: process, Payload: []byte(name), Event: wire.Event{Time: now, Kind: wire.KindSite, Tag: 1, Size: uint64(len(name))}})
		put(&wire.Record{Process: process, Event: wire.Event{
			Time: now, Kind: wire.KindCreate, Flags: wire.FlagCarried, Tag: 1, Object: 1, Size: 1 << 20, Granted: 1 << 20,
		}})
		put(&wire.Record{Process: process, Event: wire.Event{Time: now, Kind: wire.KindCreate, Object: 2, Size: 2 << 20, Granted: 2 << 20}})
	}
	return 4 * len(f.pids)
}

// Detach waits for the script where the mode is "lingers".
func (f *fakeFeed) Detach() error {
	f.detached = true
	note("detaching", "")
	for f.mode == "lingers" {
		if _, err := os.Stat("go"); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (f *fakeFeed) WatchedCount() int {
	if f.mode == "nothing" {
		return 0
	}
	return len(f.pids)
}

func (f *fakeFeed) WakePoll() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (*fakeFeed) OpenablePath(_ uint32, path string) string { return path }
func (*fakeFeed) Close() error                              { return nil }
