package stats

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// card feeds a device of 1000 KiB, at most half of it in one buffer.
func (s *stream) card() {
	r := wire.DeviceFields{Device: 1, Memory: 1000 << 10, LargestAlloc: 500 << 10}.Record([]byte("card\x001.0\x00"))
	s.feed(r.Event, r.Payload...)
}

func (s *stream) refuse(size uint64, status int16, memory wire.Memory) {
	s.feed(wire.CreateFields{Duration: 100, Outcome: wire.OutcomeFailed, Memory: memory, Scope: 1, Status: status, Tag: 9, Requested: size}.Event())
}

func (s *stream) commandFails(status int16) {
	s.feed(wire.Event{Kind: wire.KindDiag, Op: uint8(wire.DiagOutOfMemory), Status: status, Scope: 1}, []byte("clEnqueueNDRangeKernel")...)
}

const kib = 1 << 10

func TestVerdicts(t *testing.T) {
	create := func(size uint64, status int16) func(*stream) {
		return func(s *stream) { s.refuse(size*kib, status, wire.MemoryBuffer) }
	}
	hold := func(s *stream, n uint64, granted uint64) {
		for i := range n {
			s.miss(i+1, i+1, 100*kib, granted, 1)
		}
	}
	for name, test := range map[string]struct {
		before func(*stream)
		fails  func(*stream)
		want   Verdict
		blame  bool
		none   bool // no post-mortem
	}{
		"too large":            {fails: create(501, -61), want: VerdictTooLarge},
		"too large, says size": {fails: create(501, -4), want: VerdictTooLarge},
		"as large as may be":   {fails: create(500, -4), want: VerdictNotMemory},
		"no size":              {fails: create(0, -61), none: true},
		"bad flags":            {fails: create(501, -30), none: true},
		"SVM too large":        {fails: func(s *stream) { s.refuse(501*kib, -30, wire.MemorySVM) }, want: VerdictTooLarge},
		"SVM":                  {fails: func(s *stream) { s.refuse(500*kib, -30, wire.MemorySVM) }, none: true},
		"full":                 {before: func(s *stream) { hold(s, 9, 100*kib) }, fails: create(101, -4), want: VerdictFull},
		"nearly full":          {before: func(s *stream) { hold(s, 9, 100*kib) }, fails: create(99, -4), want: VerdictFull},
		"half full":            {before: func(s *stream) { hold(s, 5, 100*kib) }, fails: create(99, -4), want: VerdictNotMemory},
		"full of rounding":     {before: func(s *stream) { hold(s, 7, 140*kib) }, fails: create(100, -4), want: VerdictFull, blame: true},
		"command":              {before: func(s *stream) { hold(s, 8, 100*kib) }, fails: func(s *stream) { s.commandFails(-4) }, want: VerdictFull},
		"command, room":        {before: func(s *stream) { hold(s, 7, 100*kib) }, fails: func(s *stream) { s.commandFails(-5) }, want: VerdictNotMemory},
		"fragmented, cooling": {before: func(s *stream) {
			hold(s, 9, 100*kib)
			s.release(1, wire.OutcomeCooling)
		}, fails: create(101, -4), want: VerdictFragmented, blame: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(Options{})
			s.card()
			if test.before != nil {
				test.before(s)
			}
			test.fails(s)
			got := s.Snapshot().PostMortems
			if test.none {
				if len(got) != 0 {
					t.Errorf("there is one: %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Verdict != test.want || got[0].PoolToBlame != test.blame {
				t.Errorf("got %+v, want %v, pool to blame %v", got, test.want, test.blame)
			}
		})
	}
	s := newStream(Options{})
	s.refuse(1, -4, wire.MemoryBuffer)
	if got := s.Snapshot().PostMortems; len(got) != 1 || got[0].Verdict != VerdictUnknown {
		t.Errorf("without a device: %+v", got)
	}
}

func TestPostMortem(t *testing.T) {
	s := newStream(Options{})
	s.card()
	s.site(1, "old\ta.c\t1\tx")
	s.miss(1, 1, 100*kib, 100*kib, 1)
	s.feed(wire.Event{Kind: wire.KindUse, Object: 1, Cost: 1}) // it blocks
	s.time += 4 * uint64(time.Second)
	s.site(2, "grows\ta.c\t2\tx")
	s.site(3, "grows\ta.c\t2\tx")
	s.miss(2, 2, 300*kib, 300*kib, 2)
	s.miss(3, 3, 300*kib, 300*kib, 3)
	s.miss(4, 4, 200*kib, 200*kib, 2)
	s.feed(wire.Event{Kind: wire.KindUse, Object: 4})
	s.release(4, wire.OutcomeCached)
	s.feed(wire.Event{Kind: wire.KindEvict, Link: 4, Reason: uint8(wire.EvictDrain), Granted: 200 * kib})
	s.refuse(400*kib, -4, wire.MemoryBuffer)
	s.refuse(400*kib, -4, wire.MemoryBuffer)
	shot := s.Snapshot()
	got := shot.PostMortems
	if want := "create of a buffer failed with CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)"; len(shot.Marks) == 0 || shot.Marks[0].Text != want {
		t.Errorf("marks %v, want %q", shot.Marks, want)
	}
	if unused := got[0].Recency.BytesUnusedFor(5500); unused != 400*kib {
		t.Errorf("%d bytes were not used for 5.5 µs", unused)
	}
	got[0].Recency = nil
	age := 4*uint64(time.Second) + 12*1000
	want := []PostMortem{{
		Time: got[0].Time, Age: age, Process: 1, Call: "create of a buffer", Status: -4, Tag: "tag 9", Size: 400 * kib, Repeats: 1,
		InUse: 700 * kib, Requested: 700 * kib, Buffers: 3, Noun: "buffer", UsesKnown: true,
		Holders: []Holder{
			{Tag: "a.c:2 grows", Part: Part{2, 600 * kib}, Oldest: 6000, Newest: 5000},
			{Tag: "a.c:1 old", Part: Part{1, 100 * kib}, Oldest: age - 2000, Newest: age - 2000},
		},
		Grew: "a.c:2 grows", GrewBytes: 600 * kib, Idle: Part{1, 100 * kib}, Lately: Lately{NS: 1e9, Bytes: 600 * kib},
		Untouched: Part{2, 600 * kib},
		GivenBack: Part{1, 200 * kib}, LargestCreated: 300 * kib, Movable: 700 * kib,
		Device: Device{Name: "card", Driver: "1.0", Global: 1000 * kib, Largest: 500 * kib}, Verdict: VerdictFull,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUntouchedMemoryIsNew: commands may have used the memory of a recycled buffer, and of a piece of a slab.
func TestUntouchedMemoryIsNew(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 100*kib, 100*kib, 1)
	s.feed(wire.Event{Kind: wire.KindUse, Object: 1})
	s.release(1, wire.OutcomeCached)
	s.hit(2, 1, 100*kib, 100*kib, 1)
	s.miss(3, 3, 10*kib, 10*kib, 1)
	s.miss(4, 4, kib, kib, 1)
	s.refuse(400*kib, -4, wire.MemoryBuffer)
	if got := s.Snapshot().PostMortems[0].Untouched; got != (Part{2, 11 * kib}) {
		t.Errorf("untouched: %+v", got)
	}
}

// TestSpillHelps: --spill moves buffers with memory of their own; nothing of SVM or of the host's.
func TestSpillHelps(t *testing.T) {
	for name, test := range map[string]struct {
		memory wire.Memory
		access uint16
		want   bool
	}{
		"buffers":        {want: true},
		"USE_HOST_PTR":   {access: wire.UseHostPtr},
		"SVM":            {memory: wire.MemorySVM},
		"buffers of USM": {memory: wire.MemoryUSMDevice},
	} {
		s := newStream(Options{})
		s.card()
		for i := range uint64(9) {
			s.feed(wire.CreateFields{
				Outcome: wire.OutcomeDriver, Memory: test.memory, Access: test.access, Object: i + 1, Requested: 100 * kib, Granted: 100 * kib, Scope: 1,
			}.Event())
		}
		s.refuse(200*kib, -4, test.memory)
		if got := s.Snapshot().PostMortems; len(got) != 1 || got[0].Verdict != VerdictFull || got[0].SpillHelps() != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestPostMortemsAreFew(t *testing.T) {
	s := newStream(Options{})
	s.card()
	for i := range uint64(50) {
		s.miss(i+1, i+1, 10*kib<<i, 10*kib<<(i%8), 1)
		s.refuse(400*kib, -4, wire.MemoryBuffer)
	}
	got := s.Snapshot().PostMortems
	if len(got) != PostMortemsMax || got[PostMortemsMax-1].Repeats == 0 {
		t.Fatalf("there are %d: %+v", len(got), got)
	}
	total := uint64(0)
	for i := range got {
		total += 1 + got[i].Repeats
	}
	if total != s.Snapshot().Totals.Failures {
		t.Errorf("%d failures counted of %d", total, s.Snapshot().Totals.Failures)
	}
}

// A process that SIGKILL ends while it holds memory gets a picture, live and recorded; no other end makes one.
func TestKilledWhileItHeldMemory(t *testing.T) {
	exit := func(status int16, kills uint64) func(*stream) {
		return func(s *stream) {
			s.Apply(&wire.Record{Process: 1, Event: wire.ExitFields{Time: s.time + 1, Status: status, OOMKillsNumber: kills}.Event()})
		}
	}
	end := func(e End) func(*stream) { return func(s *stream) { s.NoteProcessEnded(1, e, s.time+1) } }
	for name, test := range map[string]struct {
		end  func(*stream)
		free bool
		want uint64 // OOMKillsNumber
		none bool
	}{
		"live":           {end: end(End{Signal: 9, OOMKillsNumber: 3}), want: 3},
		"live, unknown":  {end: end(End{Signal: 9})},
		"recorded":       {end: exit(137, 2), want: 2},
		"holds nothing":  {end: end(End{Signal: 9}), free: true, none: true},
		"another signal": {end: end(End{Signal: 15, OOMKillsNumber: 2}), none: true},
		"aborted":        {end: exit(134, 0), none: true},
		"exit":           {end: end(End{}), none: true},
		"exit 9":         {end: end(End{Status: 9}), none: true},
		"unknown":        {end: exit(-1, 0), none: true},
		"exit handlers ran": {end: func(s *stream) {
			s.feed(wire.ExitFields{Status: -1}.Event())
			exit(137, 0)(s)
		}, none: true},
	} {
		s := newStream(Options{})
		s.card()
		s.miss(1, 1, 100*kib, 200*kib, 1)
		if test.free {
			s.release(1, wire.OutcomeCached)
		}
		test.end(s)
		got := s.Snapshot().PostMortems
		if test.none {
			if len(got) != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 {
			t.Errorf("%s: %d pictures", name, len(got))
			continue
		}
		if p := &got[0]; p.Verdict != VerdictKilled || p.OOMKillsNumber != test.want || p.InUse != 200*kib || len(p.Holders) != 1 || p.Device.Global != 1000*kib {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// A session may notice late that a process was killed: its picture is of the time of its last record.
func TestKilledLately(t *testing.T) {
	for age, want := range map[uint64]Lately{3e9: {NS: 1e8, Bytes: 100 * kib}, 5e9: {NS: 1e9, Bytes: 100 * kib}} {
		for _, recorded := range []bool{false, true} {
			s := newStream(Options{})
			s.card()
			s.miss(1, 1, 100*kib, 100*kib, 1)
			s.feed(wire.UseFields{Command: wire.CommandRead, Object: 1, Bytes: 4, Duration: 1}.Event())
			s.time += age
			s.miss(2, 2, 100*kib, 100*kib, 1)
			if noticed := s.time + 3e9; recorded {
				s.Apply(&wire.Record{Process: 1, Event: wire.ExitFields{Time: noticed, Status: 137}.Event()})
			} else {
				s.NoteProcessEnded(1, End{Signal: 9}, noticed)
			}
			if got := s.Snapshot().PostMortems; len(got) != 1 || got[0].Time != s.time || got[0].Lately != want || got[0].Holders[0].Newest != 0 {
				t.Errorf("after %d ns: %+v, want %+v at %d", age, got, want, s.time)
			}
		}
	}
}

// What is in use at the end is held, not leaked, where a signal ended every process that has some.
func TestHeldAtExit(t *testing.T) {
	holds := Totals{LiveBuffers: 1}
	for name, test := range map[string]struct {
		processes []Process
		want      bool
	}{
		"nothing":           {[]Process{{State: Signaled, Status: 9}}, false},
		"killed":            {[]Process{{State: Signaled, Status: 9, Totals: holds}}, true},
		"killed, recorded":  {[]Process{{State: Exited, Status: 137, Totals: holds}}, true},
		"exit 137":          {[]Process{{State: Exited, Status: 137, Orderly: true, Totals: holds}}, false},
		"exited":            {[]Process{{State: Exited, Status: 1, Orderly: true, Totals: holds}}, false},
		"beside a leak":     {[]Process{{State: Signaled, Status: 9, Totals: holds}, {State: Exited, Orderly: true, Totals: holds}}, false},
		"beside a good one": {[]Process{{State: Signaled, Status: 9, Totals: holds}, {State: Exited, Orderly: true}}, true},
		"running":           {[]Process{{Totals: holds}}, false},
		"gave up":           {[]Process{{State: Exited, Status: 1, Orderly: true, RanOut: true, Totals: holds}}, true},
		"went on":           {[]Process{{State: Exited, Orderly: true, RanOut: true, Totals: holds}}, false},
		"unknown":           {[]Process{{State: Exited, Status: -1, Totals: holds}}, true},
		"another's child":   {[]Process{{State: Exited, Status: -1, Orderly: true, Totals: holds}}, false},
	} {
		if got := (&Snapshot{Processes: test.processes}).WasAllHeldByKilled(); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The words are about those that held memory, or about all where none did: they may hold other objects.
func TestAbortedBy(t *testing.T) {
	holds := Totals{LiveBuffers: 1}
	killed, gaveUp := Process{State: Signaled, Status: 9, Totals: holds}, Process{State: Exited, Status: 1, Orderly: true, RanOut: true}
	for want, processes := range map[string][]Process{
		"a signal ended their process":                       {gaveUp, killed, {State: Exited, Status: 139, RanOut: true, Totals: holds}}, // as a recording has signals
		"a failed call ended the program":                    {gaveUp},
		"a signal or _exit ended their process":              {{State: Exited, Status: -1, Totals: holds}},
		"the program ended, and their process goes on":       {{State: Exited}, {PID: 1, Totals: holds}},
		"a signal ended their process, or the program ended": {killed, {PID: 1, Totals: holds}},
	} {
		if got := (&Snapshot{Finished: 1, Processes: processes}).AbortedText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A process that outlives the program leaks nothing yet, also alone, and what another one leaked is listed without what it holds.
// Imported recordings do not show that a process goes on.
func TestOutlivingProcessesLeakNothing(t *testing.T) {
	live := Totals{LiveBuffers: 1}
	outlives := Process{PID: 1, Totals: live, Tags: []Tag{{Name: "a", Live: 1, InUse: 4}}}
	leaks := Process{State: Exited, Orderly: true, Totals: live, Tags: []Tag{{Name: "b", Live: 1, InUse: 2}}}
	s := &Snapshot{Finished: 1, Processes: []Process{outlives, leaks}}
	if left := s.MemoryLeftBehind(); len(left) != 1 || left[0].Name != "b" || s.WasAllHeldByKilled() {
		t.Errorf("left behind: %+v", left)
	}
	s.Finished = 0
	if left := s.MemoryLeftBehind(); len(left) != 2 {
		t.Errorf("while it runs: %+v", left)
	}
	for pid, held := range []bool{false, true} {
		if alone := (&Snapshot{Finished: 1, Processes: []Process{{PID: pid, Totals: live}}}); alone.WasAllHeldByKilled() != held {
			t.Errorf("alone, with pid %d: held %v, want %v", pid, !held, held)
		}
	}
}

// TestPostMortemsOfTwoDevices: the numbers of devices and those of contexts differ.
func TestPostMortemsOfTwoDevices(t *testing.T) {
	s := newStream(Options{})
	for number := range uint64(2) {
		r := wire.DeviceFields{Device: number + 1, Memory: (number + 1) * 1000 * kib}.Record([]byte("card\x001.0\x00"))
		s.feed(r.Event, r.Payload...)
	}
	s.feed(wire.ContextFields{Life: wire.LifeCreate, Scope: 1, Context: 5, Device: 2}.Event())
	s.feed(wire.ContextFields{Life: wire.LifeCreate, Scope: 2, Context: 6, Device: 1}.Event())
	s.refuse(1200*kib, -4, wire.MemoryBuffer)
	if p := s.Snapshot().PostMortems[0]; p.Device.Global != 2000*kib || p.Verdict != VerdictNotMemory {
		t.Errorf("the first context is on the second device, with room: %d bytes, %v", p.Device.Global, p.Verdict)
	}
}

// TestPostMortemsOfAContextOfTwoDevices: nothing shows which of them has a buffer, so full is no verdict, except where the process was
// made to have so much.
func TestPostMortemsOfAContextOfTwoDevices(t *testing.T) {
	for _, test := range []struct {
		devices   uint16
		simulated uint64
		size      uint64
		status    int16
		verdict   Verdict
		shown     int
	}{
		{1, 0, 900 * kib, -4, VerdictFull, 1},
		{2, 0, 900 * kib, -4, VerdictUnknown, 2},
		{2, 1000 * kib, 900 * kib, -4, VerdictFull, 1},
		{2, 0, 100 * kib, -4, VerdictNotMemory, 2},
		{2, 0, 900 * kib, -61, VerdictTooLarge, 2},
	} {
		s := newStream(Options{DeviceMemory: test.simulated})
		r := wire.DeviceFields{Device: 1, Devices: test.devices, Memory: 1000 * kib}.Record([]byte("card\x001.0\x00"))
		s.feed(r.Event, r.Payload...)
		s.feed(wire.ContextFields{Life: wire.LifeCreate, Scope: 1, Context: 1, Device: 1}.Event())
		s.miss(1, 1, 200*kib, 200*kib, 1)
		s.refuse(test.size, test.status, wire.MemoryBuffer)
		if p := s.Snapshot().PostMortems[0]; p.Verdict != test.verdict || p.Devices != test.shown || p.Device.Devices != int(test.devices) {
			t.Errorf("%+v: %v, %d devices", test, p.Verdict, p.Devices)
		}
	}
}

func TestNeedSaturates(t *testing.T) {
	p := PostMortem{Size: math.MaxUint64 - 10}
	p.Others = 6
	if got := p.NeededBytes(4); got != math.MaxUint64 {
		t.Errorf("got %d", got)
	}
	if got := p.NeededBytes(5); got != math.MaxUint64 {
		t.Errorf("got %d: want the most there is", got)
	}
	p.InUse, p.Requested, p.Device.Global = 5, 5, 1<<30
	if p.judgeVerdict(); p.Verdict != VerdictFull || p.PoolToBlame {
		t.Errorf("%v, the pool to blame: %v; want full, whatever the pool holds", p.Verdict, p.PoolToBlame)
	}
}

// What another process has counts where both are on one device, and failures among several processes name theirs.
func TestFailuresOfOneOfSeveral(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		others  uint64
		who     string
	}{
		"one card":      {Options{}, 600 << 10, "rank 2 (pid 4711)"},
		"a device each": {Options{DeviceMemory: 1000 << 10}, 0, "rank 2 (pid 4711)"},
		"several hosts": {Options{Apart: func(a, b uint32) bool { return a != b }, NodeOf: func(uint32) string { return "n1" }}, 0, "rank 2 (pid 4711 on n1)"},
	} {
		s := newStream(test.options)
		s.card()
		s.miss(1, 1, 600<<10, 600<<10, 1)
		s.process = 2
		r := wire.ProcessFields{PID: 4711, RankNumber: 3}.Record(wire.AppendProcess(nil, []string{"app"}))
		s.feed(r.Event, r.Payload...)
		s.card()
		s.miss(1, 1, 300<<10, 300<<10, 1)
		s.refuse(200<<10, -4, wire.MemoryBuffer)
		s.feed(wire.DiagFields{Diag: wire.DiagDoubleRelease}.Record(nil).Event, []byte("clReleaseMemObject")...)
		shown := s.Snapshot()
		if p := &shown.PostMortems[0]; p.Others != test.others || p.Who != test.who || *p.Rank != 2 {
			t.Errorf("%s: %d bytes of others, by %q: %+v", name, p.Others, p.Who, p)
		}
		if f := &shown.Findings[0]; f.Who != test.who {
			t.Errorf("%s: found in %q", name, f.Who)
		}
	}
}

// A rank that is alone in its session is one of several in its job.
func TestFailuresOfARankAlone(t *testing.T) {
	for ranks, want := range map[uint64]string{3: "rank 2 (pid 4711)", 0: ""} {
		s := newStream(Options{})
		r := wire.ProcessFields{PID: 4711, RankNumber: ranks}.Record(wire.AppendProcess(nil, []string{"app"}))
		s.feed(r.Event, r.Payload...)
		s.card()
		s.refuse(200<<10, -4, wire.MemoryBuffer)
		s.feed(wire.DiagFields{Diag: wire.DiagDoubleRelease}.Record(nil).Event, []byte("clReleaseMemObject")...)
		if shown := s.Snapshot(); shown.PostMortems[0].Who != want || shown.Findings[0].Who != want {
			t.Errorf("%d: %q %q", ranks, shown.PostMortems[0].Who, shown.Findings[0].Who)
		}
	}
}

// What the driver says of devices distinguishes them.
func TestDevicesAreToldApart(t *testing.T) {
	describe := func(s *stream, number uint64, identity string) {
		r := wire.DeviceFields{Device: number, Memory: 1000 << 10}.Record([]byte("card\x001.0\x00" + identity))
		s.feed(r.Event, r.Payload...)
		s.feed(wire.ContextFields{Scope: uint16(number), Context: number, Device: number}.Event())
	}
	for _, test := range []struct {
		first, second string
		devices       int
		title         string // of the second context's device
		others        uint64 // of a process on the second device, where the other is on the first
	}{
		{"", "", 0, "card #2", 100},
		{"local 1", "local 1", 1, "card", 100},
		{"local 1", "local 2", 2, "card #2", 100},
		{"pci 0000:01:00.0", "pci 0000:02:00.0", 2, "card at 0000:02:00.0", 0},
		{"pci 0000:01:00.0 uuid 1", "pci 0000:01:00.0 uuid 1", 1, "card", 100},
	} {
		s := newStream(Options{})
		describe(s, 1, test.first)
		describe(s, 2, test.second)
		if p := s.processes.list[0]; p.devices.deviceTitle(2) != test.title || s.Snapshot().Processes[0].Devices != test.devices {
			t.Errorf("%q and %q: %q, %d devices", test.first, test.second, p.devices.deviceTitle(2), s.Snapshot().Processes[0].Devices)
		}
		s.miss(1, 1, 100, 100, 1)
		s.process = 2
		describe(s, 1, test.second)
		s.refuse(10, -4, wire.MemoryBuffer)
		if got := s.Snapshot().PostMortems[0].Others; got != test.others {
			t.Errorf("%q and %q: others have %d, want %d", test.first, test.second, got, test.others)
		}
	}
}

// TestCommandThatTakesMemory: a driver that takes memory at first use lets a command fail. The picture has the call site of the command and that of the
// create, and says that the command is the first to use the memory where that is so.
func TestCommandThatTakesMemory(t *testing.T) {
	for name, test := range map[string]struct {
		uses, recycled, elsewhere bool
		first                     bool
		at                        string
	}{
		"new":               {first: true, at: "a.c:20 step"},
		"used before":       {uses: true, at: "a.c:20 step"},
		"recycled":          {recycled: true, at: "a.c:20 step"},
		"of another thread": {elsewhere: true, first: true},
	} {
		s := newStream(Options{})
		s.card()
		s.site(1, "load\ta.c\t1\tx")
		s.site(2, "step\ta.c\t20\tx")
		s.miss(1, 1, kib, kib, 1)
		s.feed(wire.Event{Kind: wire.KindUse, Object: 1})
		if test.recycled {
			s.release(1, wire.OutcomeCached)
			s.feed(wire.CreateFields{Outcome: wire.OutcomeHit, Object: 2, Requested: kib, Granted: kib, Tag: 1, Block: 1}.Event())
		} else {
			s.miss(2, 2, kib, kib, 1)
		}
		if test.uses {
			s.feed(wire.Event{Kind: wire.KindUse, Object: 2})
		}
		diag := func(thread uint32, f wire.DiagFields) {
			s.time += 1000
			f.Time, f.Status = s.time, -4
			r := f.Record([]byte("clEnqueueNDRangeKernel"))
			r.Process, r.Thread = 1, thread
			s.Apply(&r)
		}
		thread := uint32(7)
		diag(thread, wire.DiagFields{Diag: wire.DiagCallFailed, Tag: 2})
		if test.elsewhere {
			thread++
		}
		diag(thread, wire.DiagFields{Diag: wire.DiagOutOfMemory, Tag: 1, Object: 2, Bytes: kib})
		got := s.Snapshot().PostMortems
		if len(got) != 1 || got[0].First != test.first || got[0].At != test.at || got[0].Tag != "a.c:1 load" || got[0].Given != kib {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
