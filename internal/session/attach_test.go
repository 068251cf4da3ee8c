package session

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// fakeFeed hands over batches of records: those of script one by one, then nothing until it is woken or detached. rest
// is what it still has when it is detached.
type fakeFeed struct {
	script [][]wire.Record
	rest   [][]wire.Record
	last   error // behind the script; nil: it waits
	idle   chan struct{}

	wake     chan struct{}
	once     sync.Once
	calls    []string // but polls before Detach
	detached bool
	failing  error // of Detach
}

func newFakeFeed(script ...[]wire.Record) *fakeFeed {
	return &fakeFeed{script: script, wake: make(chan struct{}, 1), idle: make(chan struct{})}
}

func (f *fakeFeed) Poll(wait time.Duration, put func(*wire.Record)) (int, error) {
	from := &f.script
	if f.detached {
		f.calls = append(f.calls, fmt.Sprintf("poll %v", wait))
		from = &f.rest
	}
	if len(*from) > 0 {
		batch := (*from)[0]
		*from = (*from)[1:]
		for i := range batch {
			put(&batch[i])
		}
		return len(batch), nil
	}
	if f.last != nil || f.detached {
		return 0, f.last
	}
	f.once.Do(func() { close(f.idle) })
	select {
	case <-f.wake:
	case <-time.After(wait):
	}
	return 0, nil
}

func (f *fakeFeed) WatchedCount() int { return 1 }

func (f *fakeFeed) WakePoll() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fakeFeed) Detach() error {
	f.detached = true
	f.calls = append(f.calls, "detach")
	return f.failing
}

func (f *fakeFeed) Close() error {
	f.calls = append(f.calls, "close")
	return nil
}

// fed is a record of a process as a feed reports it.
func fed(process uint32, e wire.Event, payload string) wire.Record {
	if payload != "" {
		e.Size = uint64(len(payload))
	}
	return wire.Record{Process: process, Event: e, Payload: []byte(payload)}
}

func introduced(process uint32, pid int, command string) wire.Record {
	return fed(process, wire.Event{Time: 1, Kind: wire.KindProcess, Object: uint64(pid)}, command)
}

func gone(process uint32, status int, signal uint64) wire.Record {
	return fed(process, wire.Event{Time: 9, Kind: wire.KindExit, Status: int16(status), Object: signal}, "")
}

func attachTo(f Feed, recorder Recorder) *Attached {
	return Attach(AttachOptions{Feed: f, Model: stats.New(stats.Options{Started: 1}), Recorder: recorder, Recording: "fake.gmt"})
}

// TestAttachedTakesEverything: what a ring may not say, a feed may, and carried creates stay what they are.
func TestAttachedTakesEverything(t *testing.T) {
	before := create(2, 1)
	before.Flags, before.Tag = wire.FlagCarried, 7
	f := newFakeFeed([]wire.Record{
		introduced(1, 4711, "./blur\x004096\x00"),
		fed(1, wire.Event{Time: 1, Kind: wire.KindSite, Tag: 7}, "unknown before attach\t\t\t\n"),
		fed(1, before, ""), fed(1, create(3, 2), ""),
		fed(1, wire.Event{Time: 4, Kind: wire.KindLost, Size: 5, Granted: 2}, ""),
	})
	f.last = io.EOF
	kept := &memoryRecorder{}
	got := attachTo(f, kept).Wait()
	if want := "1:process 1:site 1:create 1:create 1:lost"; kept.kinds() != want {
		t.Errorf("recorded %s, want %s", kept.kinds(), want)
	}
	if kept.records[2].Flags&wire.FlagCarried == 0 {
		t.Error("what was there before attach is recorded as if it had just been created")
	}
	s := got.Snapshot
	if s.Totals.Creates != 1 || s.Totals.LiveBuffers != 2 || s.Totals.InUse != 128 || s.Lost != 5 || s.Program != "./blur" {
		t.Errorf("program %q, %d creates, %d live, %d in use, %d lost", s.Program, s.Totals.Creates, s.Totals.LiveBuffers, s.Totals.InUse, s.Lost)
	}
	if !slices.ContainsFunc(s.Tags, func(tag stats.Tag) bool { return tag.Name == "unknown before attach" && tag.InUse == 64 }) {
		t.Errorf("tags %+v: what was there before attach is in none", s.Tags)
	}
	if got.Running != 1 || got.Err != nil || got.Recording != nil {
		t.Errorf("%d run on, error %v, of the recording %v; want the one process", got.Running, got.Err, got.Recording)
	}
}

// TestAttachedEnds: a process's end goes the same way as one that we waited for, and only what still lives runs on.
func TestAttachedEnds(t *testing.T) {
	frame := string(make([]byte, wire.SizeofFrame))
	f := newFakeFeed([]wire.Record{
		introduced(1, 11, "a"), introduced(2, 12, "b"), introduced(3, 13, "c"), introduced(4, 14, "d"),
		fed(1, wire.Event{Time: 2, Kind: wire.KindTag, Tag: 5, Op: uint8(wire.TagsStack)}, frame),
		gone(1, 3, 0), gone(2, 137, 9), gone(3, -1, 0),
	})
	f.last = io.EOF
	k := &keeper{}
	a := newAttached(AttachOptions{
		Feed: f, Model: stats.New(stats.Options{Started: 1}), Recorder: k,
		Resolve: func(string, uint64) []symbol.Frame { return []symbol.Frame{{Function: "f"}} },
	})
	a.takeRecordsOfFeed()
	got := a.Wait()
	slices.Sort(k.ended)
	want := []string{"1: exit status 3, named true", "2: SIGKILL, named false", "3: exit status -1, named false"}
	if !slices.Equal(k.ended, want) {
		t.Errorf("ended %q, want %q", k.ended, want)
	}
	var states []string
	for _, p := range got.Snapshot.Processes {
		states = append(states, fmt.Sprintf("%d %d %d", p.Number, p.State, p.Status))
	}
	if want := []string{"1 1 3", "2 2 9", "3 1 -1", "4 0 -1"}; !slices.Equal(states, want) {
		t.Errorf("states %q, want %q", states, want)
	}
	exits := slices.DeleteFunc(k.records, func(r wire.Record) bool { return r.Kind != wire.KindExit })
	for i, status := range []int16{3, 137, -1} {
		if r := exits[i]; r.Thread != 0 || r.Status != status || r.Object != 0 {
			t.Errorf("exit %d recorded as %+v, want status %d", i, r.Event, status)
		}
	}
	if got.Running != 1 {
		t.Errorf("%d run on, want process 4 alone", got.Running)
	}
}

// TestAttachedStops: Stop lets go of the programs before what is left is read, and closes the feed once.
func TestAttachedStops(t *testing.T) {
	f := newFakeFeed([]wire.Record{introduced(1, 11, "a"), fed(1, create(2, 1), "")})
	f.rest = [][]wire.Record{{fed(1, create(3, 2), "")}, {fed(1, create(4, 3), "")}}
	kept := &memoryRecorder{}
	a := attachTo(f, kept)
	<-f.idle
	a.Stop()
	a.Stop()
	got := a.Wait()
	a.Stop() // too late: must not touch the feed
	if want := "detach|poll 0s|poll 0s|poll 0s|close"; strings.Join(f.calls, "|") != want {
		t.Errorf("the feed was asked %q, want %q", f.calls, want)
	}
	if got.Snapshot.Totals.Creates != 3 || len(kept.records) != 4 || kept.flushes == 0 {
		t.Errorf("%d creates, %d records, %d flushes: what was left in the feed is missing", got.Snapshot.Totals.Creates, len(kept.records), kept.flushes)
	}
	if got.Running != 1 || got.Err != nil {
		t.Errorf("%d run on, error %v", got.Running, got.Err)
	}
	if s := got.Snapshot; s.Finished < s.Started || s.EndTime() != s.Finished {
		t.Errorf("detached at %d, and the run ended at %d", s.Finished, s.EndTime())
	}
}

func TestAttachedFails(t *testing.T) {
	broken, stuck := errors.New("the ring is gone"), errors.New("a probe stays")
	f := newFakeFeed([]wire.Record{introduced(1, 11, "a")})
	f.last, f.failing = broken, stuck
	got := attachTo(f, nil).Wait()
	if !errors.Is(got.Err, broken) || !errors.Is(got.Err, stuck) || strings.Count(got.Err.Error(), broken.Error()) != 1 {
		t.Errorf("error %v, want both %v and %v, each once", got.Err, broken, stuck)
	}
	if f.calls[len(f.calls)-1] != "close" {
		t.Errorf("the feed was asked %q: not closed", f.calls)
	}
}

func TestAttachedFullDisk(t *testing.T) {
	f := newFakeFeed([]wire.Record{introduced(1, 11, "a"), fed(1, create(2, 1), ""), fed(1, create(3, 2), "")})
	f.last = io.EOF
	got := attachTo(f, &memoryRecorder{limit: 2}).Wait()
	if !errors.Is(got.Recording, errFull) || got.Err != nil || got.Snapshot.Totals.Creates != 2 {
		t.Errorf("recording %v, session %v, %d creates", got.Recording, got.Err, got.Snapshot.Totals.Creates)
	}
}

// TestSitesInContainers: files are opened where we can, and named as the process does.
func TestSitesInContainers(t *testing.T) {
	s := newSiteNamer(func(path string, offset uint64) []symbol.Frame {
		return []symbol.Frame{{Function: "in " + path, Module: path, Offset: offset}}
	})
	s.open = func(process uint32, path string) string { return fmt.Sprintf("/root/of/%d%s", process, path) }
	s.buildID = func(path string) string { return "id of " + path }
	id, _ := s.answerRequest(&wire.Record{Process: 2, Event: wire.Event{Kind: wire.KindModule, Object: 3}, Payload: []byte("/bin/blur")})
	if want := "/bin/blur\x00id of /root/of/2/bin/blur"; string(id.Payload) != want {
		t.Errorf("module %q, want %q", id.Payload, want)
	}
	frame := make([]byte, wire.SizeofFrame)
	frame[0], frame[8] = 3, 16
	site, _ := s.answerRequest(&wire.Record{Process: 2, Event: wire.Event{Kind: wire.KindTag, Op: uint8(wire.TagsCaller)}, Payload: frame})
	if want := "in /root/of/2/bin/blur\t\t\t/bin/blur+0x10\n"; string(site.Payload) != want {
		t.Errorf("site %q, want %q", site.Payload, want)
	}
}
