package session

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/symbol"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// memoryRecorder is a Recorder that keeps everything, or fails after some records.
type memoryRecorder struct {
	records []wire.Record
	limit   int // 0: none
	flushes int
}

var errFull = errors.New("no space left")

func (m *memoryRecorder) Append(r *wire.Record) error {
	if m.limit > 0 && len(m.records) == m.limit {
		return errFull
	}
	copied := *r
	copied.Payload = slices.Clone(r.Payload)
	m.records = append(m.records, copied)
	return nil
}

func (m *memoryRecorder) Flush() error  { m.flushes++; return nil }
func (m *memoryRecorder) Bytes() uint64 { return uint64(len(m.records)) }

// kinds lists the records, without what the machine reports, which comes by the clock.
func (m *memoryRecorder) kinds() string {
	var b strings.Builder
	for i := range m.records {
		if m.records[i].Kind == wire.KindMachine {
			continue
		}
		fmt.Fprintf(&b, "%d:%v ", m.records[i].Process, m.records[i].Kind)
	}
	return strings.TrimSpace(b.String())
}

// testCollector returns a collector without its goroutine, on a clock that stands until it is moved.
func testCollector(recorder Recorder) (*collector, *uint64) {
	now := uint64(1_000_000_000)
	c := newCollector(stats.New(stats.Options{Program: "fake", Started: now}), recorder, "fake.gmt")
	c.clock = func() uint64 { return now }
	return c, &now
}

func create(time uint64, object uint64) wire.Event {
	return wire.Event{Time: time, Kind: wire.KindCreate, Object: object, Size: 64, Granted: 64, Outcome: wire.OutcomeDriver}
}

func TestCollectorMergesByTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kept := &memoryRecorder{}
		c, now := testCollector(kept)
		targets := make([]*fakeTarget, rapid.IntRange(1, 3).Draw(rt, "processes"))
		for i := range targets {
			targets[i] = newFakeTarget(rt)
			c.addProcess(targets[i].peer(100 + i))
		}
		kept.records = nil
		total := rapid.IntRange(0, 300).Draw(rt, "events")
		time, object := *now, uint64(0)
		for range total {
			time += uint64(rapid.IntRange(0, 50_000).Draw(rt, "gap"))
			object++
			target := targets[rapid.IntRange(0, len(targets)-1).Draw(rt, "target")]
			target.put(rapid.SampledFrom([]int{0, 1, 2, 31}).Draw(rt, "ring"), create(time, object), "")
			if rapid.IntRange(0, 9).Draw(rt, "pass") == 0 {
				*now = time
				c.readRings()
			}
		}
		for _, target := range targets {
			_ = target.conn.Close()
		}
		*now = time + sweepNS
		c.drainAndEndIntake(Status{})
		got := slices.DeleteFunc(kept.records, func(r wire.Record) bool { return r.Kind != wire.KindCreate })
		if len(got) != total {
			rt.Fatalf("%d of %d events came out", len(got), total)
		}
		if !slices.IsSortedFunc(got, func(a, b wire.Record) int { return int(int64(a.Time - b.Time)) }) {
			rt.Fatalf("not in the order of time")
		}
	})
}

// A signal that is pending interrupts poll(2) even where that need not wait.
func TestProcessIsThereWhileSignalsCome(t *testing.T) {
	p := newFakeTarget(t).peer(100)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	ended, sent := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sent)
		for {
			select {
			case <-ended:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG) // Go's own signal for preemption
			}
		}
	}()
	for range 50_000 {
		if p.hasProcessGone() {
			t.Error("a process that holds its socket counts as gone")
			break
		}
	}
	close(ended)
	<-sent
}

func TestCollectorFindsEveryRing(t *testing.T) {
	kept := &memoryRecorder{}
	c, now := testCollector(kept)
	target := newFakeTarget(t)
	c.addProcess(target.peer(7))
	c.readRings()
	target.put(wire.Rings-1, create(1, 1), "")
	*now += sweepNS
	if n := c.readRings(); n != 1 {
		t.Errorf("a sweep found %d events in the last ring, want 1", n)
	}
}

func TestCollectorHoldsBackTheFuture(t *testing.T) {
	kept := &memoryRecorder{}
	c, now := testCollector(kept)
	target := newFakeTarget(t)
	c.addProcess(target.peer(7))
	target.put(0, create(*now-settleNS, 1), "")
	target.put(0, create(*now+1, 2), "")
	if n := c.readRings(); n != 1 {
		t.Errorf("first pass delivered %d events, want 1: the other is not due", n)
	}
	*now += 1 + settleNS
	if n := c.readRings(); n != 1 {
		t.Errorf("second pass delivered %d events, want 1", n)
	}
}

// TestCollectorEndOfProcess: a process leaves before what others did after its exit, as a parent that waited for it, and no event of a process
// follows its end.
func TestCollectorEndOfProcess(t *testing.T) {
	kept := &memoryRecorder{}
	c, _ := testCollector(kept)
	loud, quiet := newFakeTarget(t), newFakeTarget(t)
	c.addProcess(loud.peer(7))
	c.addProcess(quiet.peer(8))
	loud.put(0, create(5, 1), "")
	loud.put(0, wire.Event{Time: 6, Kind: wire.KindExit, Status: -1}, "")
	quiet.put(0, create(7, 1), "")
	quiet.lose(3, 10, 4)
	for _, p := range slices.Clone(c.peers) {
		p.hungUp.Store(true)
	}
	c.readRings()
	want := "1:process 2:process 1:create 1:exit 1:exit 2:create 2:lost 2:exit"
	if got := kept.kinds(); got != want {
		t.Errorf("recorded %s\n   want %s", got, want)
	}
	if len(c.peers) != 0 {
		t.Errorf("%d processes are still watched", len(c.peers))
	}
	lost := kept.records[len(kept.records)-2]
	if lost.Size != 10 || lost.Granted != 4 {
		t.Errorf("LOST says %d events, %d uses; want 10, 4", lost.Size, lost.Granted)
	}
	if s := c.model.PublishSnapshot(); s.Lost != 10 || s.Processes[1].State != stats.Exited || s.Disordered > 0 || s.Totals.PeakInUse != 64 {
		t.Errorf("model: lost %d, state %v, %d events out of order, %d bytes at most", s.Lost, s.Processes[1].State, s.Disordered, s.Totals.PeakInUse)
	}
}

// TestCollectorRecordsWhatItKnows: who reads the recording takes the memory of a process that left some behind off the
// gauges when the session does.
func TestCollectorRecordsWhatItKnows(t *testing.T) {
	kept := &memoryRecorder{}
	c, _ := testCollector(kept)
	leaver, other := newFakeTarget(t), newFakeTarget(t)
	c.addProcess(leaver.peer(7))
	c.addProcess(other.peer(8))
	leaver.put(0, wire.Event{Time: 5, Kind: wire.KindCreate, Object: 1, Size: 100, Granted: 100}, "")
	leaver.put(0, wire.Event{Time: 6, Kind: wire.KindExit, Status: -1}, "")
	c.peers[0].hungUp.Store(true)
	c.readRings()
	replayed := stats.New(stats.Options{})
	for i := range kept.records {
		replayed.Apply(&kept.records[i])
	}
	if live, read := c.model.PublishSnapshot().Totals.InUse, replayed.PublishSnapshot().Totals.InUse; live != 0 || read != live {
		t.Errorf("%d bytes in use while it ran, %d in its recording, want none", live, read)
	}
}

// TestCollectorKnowsWhoIsGone: a program may close our socket, and its children may keep it.
func TestCollectorKnowsWhoIsGone(t *testing.T) {
	c, now := testCollector(&memoryRecorder{})
	closer, parent := newFakeTarget(t), newFakeTarget(t)
	c.addProcess(closer.leased(7))
	c.addProcess(parent.leased(8))
	_ = closer.conn.Close()
	c.peers[0].hungUp.Store(true)
	c.readRings()
	closer.put(0, create(*now-settleNS, 1), "")
	parent.vanish()
	*now += sweepNS
	c.readRings()
	if s := c.model.PublishSnapshot(); s.Totals.Creates != 1 || len(c.peers) != 1 || c.peers[0].pid != 7 {
		t.Errorf("%d creates, %d processes left; want 1 of the one that closed its socket", s.Totals.Creates, len(c.peers))
	}
	closer.vanish()
	c.readRings()
	if len(c.peers) != 0 {
		t.Error("a process that is gone stays")
	}
}

// TestBell: each process that rings wakes the collector, and only until the end.
func TestBell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(path, []byte("settings"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := openBell(path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := openBell(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.endListening()
	woken := make(chan bool, 1)
	b.listenForRings(func() {
		select {
		case woken <- true:
		default:
		}
	})
	for range 3 {
		for heard := false; !heard; {
			wakeAll(other.futex()) // which goes unheard while the other side is not waiting yet
			select {
			case heard = <-woken:
			case <-time.After(time.Millisecond):
			}
		}
	}
	b.endListening()
	if _, err := openBell(path + "x"); err == nil {
		t.Error("a bell without settings")
	}
}

// A program can shorten the file that rings, so that no wake reaches its waiter: the session ends all the same.
func TestBellWithoutAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings")
	if err := os.WriteFile(path, []byte("settings"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := openBell(path)
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan bool, 1000)
	b.listenForRings(func() { woken <- true })
	for heard := false; !heard; { // so that it waits
		wakeAll(b.futex())
		select {
		case heard = <-woken:
		case <-time.After(time.Millisecond):
		}
	}
	time.Sleep(10 * time.Millisecond)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	b.endListening()
}

func TestCollectorStatusOfTheProgram(t *testing.T) {
	kept := &memoryRecorder{}
	c, _ := testCollector(kept)
	c.child = func() int { return 7 }
	program, daemon := newFakeTarget(t), newFakeTarget(t)
	c.addProcess(program.peer(7))
	c.addProcess(daemon.peer(9))
	program.put(0, wire.Event{Time: 6, Kind: wire.KindExit, Status: -1}, "")
	_ = program.conn.Close()
	c.drainAndEndIntake(Status{Signal: 11})
	last := kept.records[len(kept.records)-1]
	if last.Process != 1 || last.Kind != wire.KindExit || last.Status != 139 || last.Thread != 0 {
		t.Errorf("last record %+v, want the program's EXIT with status 139", last)
	}
	s := c.model.PublishedSnapshot()
	if p := s.Processes[0]; p.State != stats.Signaled || p.Status != 11 {
		t.Errorf("program: state %v, status %d; want signaled by 11", p.State, p.Status)
	}
	if p := s.Processes[1]; p.State != stats.Running {
		t.Errorf("a process that still runs is shown as %v", p.State)
	}
}

// A program that a signal ends is shown as ended at once, not when its session ends, which takes none of its time.
func TestCollectorTellsTheExit(t *testing.T) {
	for _, before := range []bool{true, false} {
		kept := &memoryRecorder{}
		c, now := testCollector(kept)
		end := *now + 1000
		c.child = func() int { return 7 }
		program := newFakeTarget(t)
		c.addProcess(program.peer(7))
		program.put(0, wire.Event{Time: 5, Kind: wire.KindCreate, Object: 1, Size: 1 << 20, Granted: 1 << 20}, "")
		if before {
			c.noteProgramEnd(Status{Signal: 9}, end)
		}
		_ = program.conn.Close()
		*now += 1e6 // the end is noticed late
		for c.sweep = 0; len(c.peers) > 0; c.sweep = 0 {
			c.readRings()
		}
		if !before {
			c.noteProgramEnd(Status{Signal: 9}, end)
		}
		c.model.AdvanceTime(c.clock())
		s := c.model.PublishSnapshot()
		if p := s.Processes[0]; p.State != stats.Signaled || p.Status != 9 || p.Ended != end || len(s.PostMortems) != 1 {
			t.Errorf("status known first: %v: %+v, %d failures", before, p, len(s.PostMortems))
		}
		*now += 30e9 // the dashboard is left
		c.drainAndEndIntake(Status{Signal: 9})
		if last := c.model.PublishedSnapshot(); last.WallNS() != s.WallNS() || last.Time-s.Time < 30e9 {
			t.Errorf("status known first: %v: %d ns, at the end of the session %d", before, s.WallNS(), last.WallNS())
		}
		exits := slices.DeleteFunc(kept.records, func(r wire.Record) bool { return r.Kind != wire.KindExit })
		if len(exits) != 1 || exits[0].Status != 137 {
			t.Errorf("status known first: %v: %+v", before, exits)
		}
	}
}

func TestCollectorSurvivesHostileTargets(t *testing.T) {
	tests := map[string]func(*fakeTarget){
		"memory taken away": func(f *fakeTarget) {
			if err := unix.Ftruncate(f.fd, 0); err != nil {
				f.t.Fatal(err)
			}
		},
		"head far ahead":    func(f *fakeTarget) { f.use(0); *f.word(0, 0) = 1 << 60 },
		"rings beyond all":  func(f *fakeTarget) { f.use(1 << 30) },
		"payload past head": func(f *fakeTarget) { f.put(0, wire.Event{Time: 1, Kind: wire.KindTag, Size: 4096}, "") },
		"unknown kinds":     func(f *fakeTarget) { f.put(0, wire.Event{Time: 1, Kind: 9999, Size: 1 << 60}, "") },
		"forged records":    func(f *fakeTarget) { f.put(0, wire.Event{Time: 1, Kind: wire.KindLost}, "") },
		"a forged past": func(f *fakeTarget) {
			f.put(0, wire.Event{Time: 1, Kind: wire.KindCreate, Object: 1, Size: 1, Flags: wire.FlagCarried}, "")
		},
		"counters backwards": func(f *fakeTarget) { f.lose(0, ^uint64(0), 5) },
		"random bytes": func(f *fakeTarget) {
			random := rand.NewChaCha8([32]byte{1})
			_, _ = random.Read(f.mem[fakeRings : fakeRings+40*fakeRingSize])
			f.use(39)
		},
	}
	for name, harm := range tests {
		t.Run(name, func(t *testing.T) {
			kept := &memoryRecorder{}
			c, now := testCollector(kept)
			good, bad := newFakeTarget(t), newFakeTarget(t)
			c.addProcess(bad.peer(7))
			c.addProcess(good.peer(8))
			harm(bad)
			for i := range uint64(50) {
				good.put(0, create(*now, i+1), "")
				*now += sweepNS
				c.readRings()
			}
			_ = bad.conn.Close()
			_ = good.conn.Close()
			c.drainAndEndIntake(Status{})
			creates := 0
			for i := range kept.records {
				if r := &kept.records[i]; r.Process == 2 && r.Kind == wire.KindCreate {
					creates++
				}
				if r := &kept.records[i]; r.Process == 1 && r.Kind == wire.KindLost && name == "forged records" {
					t.Error("a forged record got through")
				}
				if r := &kept.records[i]; r.Kind == wire.KindCreate && r.Flags&wire.FlagCarried != 0 && name == "a forged past" {
					t.Error("something happened before the recording")
				}
			}
			if creates != 50 {
				t.Errorf("%d of 50 events of the other process came out", creates)
			}
		})
	}
}

func TestCollectorNamesSites(t *testing.T) {
	kept := &memoryRecorder{}
	c, _ := testCollector(kept)
	c.sites = newSiteNamer(func(module string, offset uint64) []symbol.Frame {
		return []symbol.Frame{{Function: "make\ttmp", File: "blur.c", Line: 88, Module: module, Offset: offset}}
	})
	c.sites.buildID = func(path string) string { return map[string]string{"/bin/blur": "c0ffee"}[path] }
	target := newFakeTarget(t)
	c.addProcess(target.peer(7))
	target.put(0, wire.Event{Time: 1, Kind: wire.KindModule, Object: 3}, "/bin/blur")
	frame := append([]byte{3, 0, 0, 0, 0, 0, 0, 0}, 0x10, 0, 0, 0, 0, 0, 0, 0)
	target.put(0, wire.Event{Time: 2, Kind: wire.KindTag, Tag: 5, Op: uint8(wire.TagsStack)}, string(frame))
	_ = target.conn.Close()
	c.drainAndEndIntake(Status{})
	last := kept.records[len(kept.records)-1]
	checkModule(t, kept.records[len(kept.records)-2], "/bin/blur\x00c0ffee")
	if want := "make tmp\tblur.c\t88\t/bin/blur+0x10\n"; last.Kind != wire.KindSite || last.Tag != 5 || string(last.Payload) != want {
		t.Errorf("last record %v tag %d %q, want the site %q", last.Kind, last.Tag, last.Payload, want)
	}
}

func checkModule(t *testing.T, r wire.Record, payload string) {
	t.Helper()
	if r.Kind != wire.KindModule || r.Object != 3 || string(r.Payload) != payload || int(r.Size) != len(payload) {
		t.Errorf("record %v of %d %q, want the module %q", r.Kind, r.Object, r.Payload, payload)
	}
}

// keeper notes when processes have ended, and whether their call sites were named before.
type keeper struct {
	memoryRecorder
	ended []string
}

func (k *keeper) Ended(process uint32, status Status) {
	named := slices.ContainsFunc(k.records, func(r wire.Record) bool { return r.Process == process && r.Kind == wire.KindSite })
	k.ended = append(k.ended, fmt.Sprintf("%d: %v, named %v", process, status, named))
}

// TestKeeperHearsOfEnds: after the names of the process's call sites, and with the program's own status.
func TestKeeperHearsOfEnds(t *testing.T) {
	for _, resolve := range []resolver{nil, func(string, uint64) []symbol.Frame { return []symbol.Frame{{Function: "f"}} }} {
		k := &keeper{}
		c, _ := testCollector(k)
		c.sites = newSiteNamer(resolve)
		c.child = func() int { return 7 }
		for _, pid := range []int{7, 8} {
			target := newFakeTarget(t)
			c.addProcess(target.peer(pid))
			target.put(0, wire.Event{Time: 2, Kind: wire.KindTag, Tag: 5, Op: uint8(wire.TagsStack)}, string(make([]byte, wire.SizeofFrame)))
			_ = target.conn.Close()
		}
		c.drainAndEndIntake(Status{Code: 3})
		want := []string{
			fmt.Sprintf("2: exit status -1, named %v", resolve != nil), fmt.Sprintf("1: exit status 3, named %v", resolve != nil),
		}
		if len(c.leaving) != 0 || !slices.Equal(k.ended, want) {
			t.Errorf("ended %q, want %q; %d still leaving", k.ended, want, len(c.leaving))
		}
	}
}

func TestCollectorFullDisk(t *testing.T) {
	kept := &memoryRecorder{limit: 3}
	c, now := testCollector(kept)
	target := newFakeTarget(t)
	c.addProcess(target.peer(7))
	for i := range uint64(20) {
		target.put(0, create(*now-settleNS, i+1), "")
	}
	c.readRings()
	if !errors.Is(c.failure, errFull) || len(kept.records) != 3 {
		t.Errorf("failure %v after %d records, want %v after 3", c.failure, len(kept.records), errFull)
	}
	if s := c.model.PublishSnapshot(); s.Totals.Creates != 20 {
		t.Errorf("the model saw %d creates, want all 20", s.Totals.Creates)
	}
}

func TestCollectorLimits(t *testing.T) {
	now := uint64(1)
	c := newCollector(stats.New(stats.Options{Limits: []stats.Limit{{Name: "max_cached_bytes", Value: 1, Max: 1 << 50}}}), nil, "")
	c.clock = func() uint64 { return now }
	early := newFakeTarget(t)
	c.addProcess(early.peer(7))
	for i, value := range []string{"512", "1024"} {
		if err := c.setLimit("max_cached_bytes", value, uint64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.setLimit(strings.Repeat("x", 200), "1", 3); err == nil {
		t.Error("a name that fits no message was accepted")
	}
	todo, _ := c.takeQueuedCalls()
	for _, fn := range todo {
		fn()
	}
	late := newFakeTarget(t)
	c.addProcess(late.peer(8))
	for _, want := range []struct {
		target   *fakeTarget
		sequence uint64
		text     string
	}{{early, 1, "limit max_cached_bytes=512"}, {early, 2, "limit max_cached_bytes=1024"}, {late, 2, "limit max_cached_bytes=1024"}} {
		got, ok := want.target.message()
		if !ok || got.Sequence != want.sequence || got.Text != want.text {
			t.Errorf("got %d %q (%v), want %d %q", got.Sequence, got.Text, ok, want.sequence, want.text)
		}
	}
	if l := c.model.PublishSnapshot().Limits[0]; !l.IsPending() || l.Sequence != 2 || l.Wanted != 1024 {
		t.Errorf("limit %+v, want 1024 pending", l)
	}
}

func TestSitePayloadKeepsWholeLines(t *testing.T) {
	s := newSiteNamer(func(string, uint64) []symbol.Frame {
		return []symbol.Frame{{Function: strings.Repeat("f", 1000)}}
	})
	r := wire.Record{Event: wire.Event{Op: uint8(wire.TagsStack)}, Payload: make([]byte, 32*wire.SizeofFrame)}
	site, ok := s.nameFrames(&r)
	if !ok || len(site.Payload) > wire.PayloadMax || !bytes.HasSuffix(site.Payload, []byte("\n")) {
		t.Errorf("site of %d bytes, ok %v", len(site.Payload), ok)
	}
}

// TestSitesShareTheBudget: what many programs let wait for names, and the names that they get, have one bound together.
func TestSitesShareTheBudget(t *testing.T) {
	const most, processes, each = 1 << 20, 20, 100
	keep, said := budget.New(most), 0
	s := newSiteNamer(func(string, uint64) []symbol.Frame { return []symbol.Frame{{Function: strings.Repeat("f", 1000)}} })
	s.names = symbol.Options{Budget: keep, Say: func(string) { said++ }}
	path, frames := []byte(strings.Repeat("p", wire.PayloadMax)), make([]byte, wire.StackMax*wire.SizeofFrame)
	kept, texts := 0, 0
	for p := range uint32(processes) {
		for i := range uint64(each) {
			module, tag := wire.ModuleFields{Module: i + 1}.Record(path), wire.TagFields{Mode: wire.TagsStack, Tag: uint32(i)}.Record(frames)
			module.Process, tag.Process = p, p
			s.answerRequest(&module)
			if site, ok := s.answerRequest(&tag); ok {
				texts += len(site.Payload)
			}
		}
		kept += len(s.unnamed[p]) * len(frames)
	}
	if kept += len(s.modules) * len(path); kept+texts > most || keep.UsedBytes() > most || said != 1 {
		t.Errorf("%d bytes of modules and tags and %d of names are kept, %d charged; said %d times", kept, texts, keep.UsedBytes(), said)
	}
	exit := wire.ExitFields{}.Event()
	if !s.queueRequest(&wire.Record{Process: 1, Event: exit}) {
		t.Error("the end of a process finds no room")
	}
	s.waitForAnswers()
	for p := range uint32(processes) {
		s.answerRequest(&wire.Record{Process: p, Event: exit})
		for _, site := range s.nameLateCode(p) {
			texts += len(site.Payload)
		}
	}
	for _, site := range s.takeReadyRecords() {
		texts += len(site.Payload)
	}
	if int(keep.UsedBytes()) != texts || texts == 0 {
		t.Errorf("%d bytes are charged in the end, for %d of names", keep.UsedBytes(), texts)
	}
	for range leftMax {
		s.answerRequest(&wire.Record{Process: processes, Event: exit})
	}
	if keep.UsedBytes() > int64(wire.PayloadMax*each) { // of what was named last, after its process had ended
		t.Errorf("%d bytes are charged once the model has forgotten the processes", keep.UsedBytes())
	}
}

// A function of a script is no file: its frames have lines instead of addresses, and no build id.
func TestSitesInScripts(t *testing.T) {
	s := newSiteNamer(func(string, uint64) []symbol.Frame { return []symbol.Frame{{Function: "native"}} })
	for _, r := range []wire.Record{
		wire.ModuleFields{Module: 1}.Record([]byte("/lib/_cl.so")),
		wire.ModuleFields{Module: 2, Script: true}.Record([]byte("a b.py\x00Solver.step")),
	} {
		if got, ok := s.answerRequest(&r); ok && r.AsModule().Script() {
			t.Errorf("an answer to a script: %+v", got)
		}
	}
	tag := wire.TagFields{Mode: wire.TagsStack, Tag: 7}.Record(wire.AppendFrame(wire.AppendFrame(nil, wire.Frame{Module: 1, Offset: 16}), wire.Frame{Module: 2, Offset: 42}))
	site, ok := s.answerRequest(&tag)
	if want := "native\t\t\t/lib/_cl.so+0x0\nSolver.step\ta b.py\t42\ta b.py\n"; !ok || string(site.Payload) != want {
		t.Errorf("%q, want %q", site.Payload, want)
	}
}

// Code that a runtime generated is in no module: its names come from the file that the runtime writes for perf.
func TestSitesInGeneratedCode(t *testing.T) {
	path := fmt.Sprintf("/tmp/perf-%d.map", os.Getpid())
	if err := os.WriteFile(path, []byte("7f0010 20 LazyCompile:*step /home/a b/solve.js:42:9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	s := newSiteNamer(symbol.NewResolver(symbol.Options{}).FramesAt)
	process := wire.ProcessFields{PID: uint64(os.Getpid())}.Record([]byte("node"))
	if _, ok := s.answerRequest(&process); ok {
		t.Error("an answer to a process")
	}
	tag := wire.TagFields{Mode: wire.TagsStack, Tag: 7}.Record(wire.AppendFrame(wire.AppendFrame(nil, wire.Frame{Offset: 0x7f0018}), wire.Frame{Offset: 0x99}))
	site, ok := s.answerRequest(&tag)
	if want := "step\t/home/a b/solve.js\t42\t+0x7f0018\n\t\t\t+0x99\n"; !ok || string(site.Payload) != want {
		t.Errorf("%q, want %q", site.Payload, want)
	}
}

// A forked child may report before its parent has been greeted: the report waits. One of a process that never comes is nothing.
func TestReportsOfChildrenWait(t *testing.T) {
	kept := &memoryRecorder{}
	c, _ := testCollector(kept)
	c.recordChildUse(7, "clCreateBuffer")
	c.recordChildUse(8, "clCreateBuffer")
	run := func() {
		todo, _ := c.takeQueuedCalls()
		for _, fn := range todo {
			fn()
		}
	}
	run()
	target := newFakeTarget(t)
	p := target.peer(7)
	p.own = 7
	c.addProcess(p)
	c.recordChildUse(7, "clEnqueueTask")
	run()
	if got := kept.kinds(); got != "1:process 1:diag 1:diag" || len(c.early) != 1 {
		t.Errorf("recorded %q, %d wait", got, len(c.early))
	}
}

// What a child does is recorded after what its parent wrote before: a later record would put forward the time of the parent's
// peak.
func TestReportsOfChildrenComeInOrder(t *testing.T) {
	kept := &memoryRecorder{}
	c, now := testCollector(kept)
	target := newFakeTarget(t)
	p := target.peer(7)
	p.own = 7
	c.addProcess(p)
	created := *now + 1000
	target.put(0, create(created, 1), "")
	*now += 5_000_000
	c.recordChildUse(7, "clCreateBuffer")
	todo, _ := c.takeQueuedCalls()
	for _, fn := range todo {
		fn()
	}
	if got := kept.kinds(); got != "1:process 1:create 1:diag" {
		t.Errorf("recorded %q", got)
	}
	if at := c.model.Snapshot().Totals.PeakInUseTime; at != created {
		t.Errorf("the peak is at %d, want %d", at, created)
	}
}
