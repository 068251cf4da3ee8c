package analysis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const transferTag = 7 // the call site of the transfers below

// moving is a tape of one buffer on a device whose memory is the host's or not.
func moving(access uint16, unified bool) (*tape, uint64) {
	s := newTape()
	s.site(1, "made")
	s.site(transferTag, "moved")
	s.device(64 * mib)
	if unified {
		s.last().Flags = wire.FlagUnified
	}
	object := s.driver(1, mib)
	s.last().Access = access
	return s, object
}

// command is a command on the buffer, with a TRANSFER before it if that says anything. It takes a millisecond if it blocks.
func (s *tape) command(u wire.UseFields, more wire.TransferFields) {
	s.now += ms
	u.Time, more.Time = s.now, s.now
	if u.Duration > 0 {
		s.now += uint64(u.Duration)
	}
	if more.Site != 0 {
		s.put(more.Event(), "")
	}
	s.put(u.Event(), "")
}

func (s *tape) write(object, offset, bytes, hash uint64) {
	u := wire.UseFields{Command: wire.CommandWrite, Writes: true, Object: object, Offset: offset, Bytes: bytes, Tag: 1, Duration: ms}
	s.command(u, wire.TransferFields{Site: transferTag, Pageable: true, Hashed: bytes, Hash: hash})
}

func (s *tape) read(object, offset, bytes uint64, cold uint32) {
	s.put(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncBlocking)}, "")
	s.now -= ms
	u := wire.UseFields{Command: wire.CommandRead, Reads: true, Object: object, Offset: offset, Bytes: bytes, Tag: 1, Duration: ms}
	s.command(u, wire.TransferFields{Site: transferTag, Pageable: true, Pages: 16, Cold: cold})
}

// mapped is a blocking map for reading, or for writing.
func (s *tape) mapped(object uint64, reads bool) { s.mapOrRead(object, wire.CommandMap, reads, ms) }

func (s *tape) mapOrRead(object uint64, command wire.Command, reads bool, ns uint32) {
	u := wire.UseFields{Command: command, Reads: reads, Writes: !reads, Object: object, Bytes: 4, Tag: 1, Duration: ns}
	s.command(u, wire.TransferFields{Site: transferTag})
}

// kernel runs with the buffer as an argument that it may write, or only read.
func (s *tape) kernel(object uint64, reads bool) {
	s.command(wire.UseFields{Command: wire.CommandKernel, Reads: reads, Object: object, ArgumentNumber: 1, Tag: 1}, wire.TransferFields{})
}

// onDevices has commands that may write the buffer, or read it, on some devices in turn.
func onDevices(s *tape, object uint64, reads bool, devices ...uint64) {
	for _, device := range devices {
		s.put(wire.QueueFields{Queue: device, Device: device}.Event(), "")
		s.command(wire.UseFields{Command: wire.CommandKernel, Reads: reads, Object: object, Queue: device, Tag: 1}, wire.TransferFields{})
	}
}

// finish waits for all commands.
func (s *tape) finish() { s.put(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish)}, "") }

func kindsOf(a *Analysis) (kinds []TransferKind) {
	for i := range a.Transfers {
		kinds = append(kinds, a.Transfers[i].Kind)
	}
	return kinds
}

// Where the pages of some reads were not looked at, these may be cold as well.
func TestColdReadsAreCountedAsFarAsLookedAt(t *testing.T) {
	for every, want := range map[uint64]string{1: "8 calls, 8.00 MiB in all", 4: "at least 8 calls, 8.00 MiB in all"} {
		s, object := moving(0, false)
		for i := range 8 * every {
			if s.kernel(object, false); i%every == 0 {
				s.read(object, 0, mib, 16)
				continue
			}
			u := wire.UseFields{Command: wire.CommandRead, Reads: true, Object: object, Bytes: mib, Tag: 1, Duration: ms}
			s.command(u, wire.TransferFields{Site: transferTag, Pageable: true})
		}
		a := s.analyse(t)
		at := slices.IndexFunc(a.Diagnoses, func(d Diagnosis) bool { return d.Title == string(ColdRead) })
		if at < 0 || !strings.HasPrefix(a.Diagnoses[at].Text, want) {
			t.Errorf("1 of %d looked at: %+v, want %s", every, a.Diagnoses, want)
		}
	}
}

// The advice compares with warm memory where that is faster.
func TestColdReadsAreCompared(t *testing.T) {
	for _, test := range []struct {
		cold, warm uint64 // ns for 1 GB
		said       bool
	}{{2e9, 1e9, true}, {1e9, 2e9, false}, {1e9, 0, false}} {
		f := TransferFinding{Kind: ColdRead, Bytes: 1e9, NS: test.cold}
		f.compareWithWarmReads(&stats.Flow{TimedBytes: 1e9 * min(test.warm, 1), NS: test.warm})
		if said := f.Advice == " (0.5 GiB/s, into warm memory 0.9 GiB/s)"; said != test.said || !said && f.Advice != "" {
			t.Errorf("%+v: %q", test, f.Advice)
		}
	}
}

// Each rule has a run that it is about, and one that nearly is.
func TestTransfersThatCouldGo(t *testing.T) {
	loop := func(times int, do func(s *tape, object uint64, i uint64)) func(*tape, uint64) {
		return func(s *tape, object uint64) {
			for i := range times {
				do(s, object, uint64(i))
			}
		}
	}
	late := func(do func(*tape, uint64)) func(*tape, uint64) { // after a slow start
		return func(s *tape, object uint64) {
			s.now += 500 * ms
			do(s, object)
		}
	}
	tests := []struct {
		kind    TransferKind
		access  uint16
		unified bool
		found   func(*tape, uint64)
		nearly  []func(*tape, uint64)
	}{
		{kind: Rewritten, found: loop(8, func(s *tape, o, _ uint64) {
			s.write(o, 0, mib, 5)
			s.kernel(o, true)
		}), nearly: []func(*tape, uint64){
			loop(8, func(s *tape, o, i uint64) { s.write(o, 0, mib, 5+i) }),
			loop(8, func(s *tape, o, i uint64) { s.write(o, i*1024, 1024, 5) }),
			loop(8, func(s *tape, o, _ uint64) {
				s.write(o, 0, mib, 5)
				s.kernel(o, false) // it may have written
			}),
			loop(8, func(s *tape, o, _ uint64) { s.write(o, 0, mib, 5); s.kernel(0, false) }),
		}},
		{kind: ReadBack, found: loop(8, func(s *tape, o, i uint64) { s.write(o, 0, mib, i); s.read(o, 64, mib/2, 0) }), nearly: []func(*tape, uint64){
			loop(8, func(s *tape, o, i uint64) { s.write(o, 0, mib, i); s.kernel(o, false); s.read(o, 64, mib/2, 0) }),
			loop(8, func(s *tape, o, i uint64) { s.write(o, 0, mib/2, i); s.read(o, 64, mib/2, 0) }), // beyond it
		}},
		{kind: Unchanged, found: loop(8, func(s *tape, o, i uint64) {
			if i == 0 {
				s.kernel(o, false)
			}
			s.kernel(o, true)
			s.read(o, 0, mib, 0)
		}), nearly: []func(*tape, uint64){
			loop(8, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, mib, 0) }),
			loop(8, func(s *tape, o, i uint64) { s.read(o, i*4096, 4096, 0) }),
		}},
		{kind: Unchanged, access: wire.CopyHostPtr, found: loop(8, func(s *tape, o, _ uint64) { s.kernel(o, true); s.read(o, 0, mib, 0) }),
			nearly: []func(*tape, uint64){loop(8, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, mib, 0) })}},
		{kind: Copied, unified: true, found: loop(8, func(s *tape, o, i uint64) { s.write(o, 0, mib, i); s.kernel(o, false) }),
			nearly: []func(*tape, uint64){loop(8, func(s *tape, o, i uint64) { s.write(o, 0, 4, i); s.kernel(o, false) })}}, // it only waits
		{kind: SecondOne, access: wire.CopyHostPtr, unified: true, found: loop(2, func(s *tape, o, _ uint64) { s.kernel(o, true) }),
			nearly: []func(*tape, uint64){func(s *tape, _ uint64) { s.driver(1, 100*mib) }}}, // a hundredth of the peak
		{kind: ColdRead, found: loop(8, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, mib, 16) }), nearly: []func(*tape, uint64){
			loop(8, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, mib, 2) }),
			loop(8, func(s *tape, o, i uint64) { s.kernel(o, false); s.read(o, 0, mib, uint32(16*(1-min(i, 1)))) }), // the first only
			loop(8, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, 4096, 16) }),                      // it only waits
			loop(8, func(s *tape, o, _ uint64) { s.kernel(o, false); s.now += 40 * ms; s.read(o, 0, mib, 16) }),     // most of it may be a wait
			loop(16, func(s *tape, o, i uint64) { s.kernel(o, false); s.read(o, 0, mib, uint32(16*(i%2))) }),        // into warm memory no less
		}},
		{kind: Small, found: loop(64, func(s *tape, o, i uint64) { s.write(o, i*4096, 4096, i) }), nearly: []func(*tape, uint64){
			loop(64, func(s *tape, o, i uint64) { s.write(o, i*8192, 4096, i) }),
			loop(64, func(s *tape, o, i uint64) { s.write(o, i*4096, 4096, i); s.kernel(o, true) }),
			loop(7, func(s *tape, o, i uint64) { s.write(o, i*4096, 4096, i) }),
		}},
		{kind: Copied, unified: true, found: late(loop(8, func(s *tape, o, i uint64) { s.write(o, 0, mib, i); s.kernel(o, false) })),
			nearly: []func(*tape, uint64){late(loop(5, func(s *tape, o, i uint64) { s.write(o, 0, mib, i) }))}}, // a hundredth of the run
		{kind: Blocking, found: late(loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, 4, 0) })), nearly: []func(*tape, uint64){
			late(loop(8, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, 4, 0) })), // a hundredth of the run
			late(loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, 4, 0); s.now += 10 * ms })),
			func(s *tape, o uint64) { // the first waits for what is done once
				s.kernel(o, false)
				s.mapOrRead(o, wire.CommandRead, true, 600*ms)
				for range 20 {
					s.kernel(o, false)
					s.mapOrRead(o, wire.CommandRead, true, ms/10)
				}
			},
		}},
		{kind: Blocking, found: loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, 4, 0); s.now -= ms }), nearly: []func(*tape, uint64){
			loop(20, func(s *tape, o, _ uint64) { s.read(o, 0, 4, 0) }),
			loop(7, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, 4, 0) }),
			loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.finish(); s.read(o, 0, 4, 0) }),
			loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.read(o, 0, 4, 0); s.now += 10 * ms }),
		}},
		{kind: BlockingMap, found: loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.mapped(o, true) }), nearly: []func(*tape, uint64){
			loop(20, func(s *tape, o, _ uint64) { s.mapped(o, true) }),
			loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.finish(); s.mapped(o, true) }),
			loop(20, func(s *tape, o, _ uint64) { s.kernel(o, false); s.mapped(o, false) }), // to write
		}},
		{kind: Returned, found: loop(4, func(s *tape, o, _ uint64) { onDevices(s, o, false, 1, 2) }), nearly: []func(*tape, uint64){
			loop(4, func(s *tape, o, _ uint64) { onDevices(s, o, true, 1, 2) }), // each keeps a copy
			loop(8, func(s *tape, o, _ uint64) { onDevices(s, o, false, 1) }),
			func(s *tape, o uint64) { onDevices(s, o, false, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6) }, // and never back
			loop(2, func(s *tape, o, _ uint64) { onDevices(s, o, false, 1, 2) }),
		}},
	}
	for _, test := range tests {
		t.Run(string(test.kind), func(t *testing.T) {
			s, object := moving(test.access, test.unified)
			test.found(s, object)
			a := s.analyse(t)
			at := slices.IndexFunc(a.Transfers, func(f TransferFinding) bool { return f.Kind == test.kind })
			if at < 0 {
				t.Fatalf("not found among %v", kindsOf(a))
			}
			if f := &a.Transfers[at]; f.Bytes == 0 || f.Share == 0 || f.Advice == "" || f.Name != "moved.c:7 moved" && test.kind != SecondOne && test.kind != Returned {
				t.Errorf("%+v", f)
			}
			if !slices.ContainsFunc(a.Diagnoses, func(d Diagnosis) bool { return d.Title == string(test.kind) }) {
				t.Errorf("not among the diagnoses")
			}
			for i, nearly := range test.nearly {
				s, object := moving(test.access, test.unified)
				nearly(s, object)
				if a := s.analyse(t); slices.Contains(kindsOf(a), test.kind) {
					t.Errorf("false alarm %d: %+v", i, a.Transfers)
				}
			}
		})
	}
}

// Memory that has two names is left alone.
func TestTransfersThroughSubBuffers(t *testing.T) {
	s, object := moving(1, false)
	part := s.driver(1, mib/2)
	s.last().Op, s.last().Link, s.last().Granted = uint8(wire.MemorySubBuffer), object, 1
	for i := range uint64(8) {
		s.write(object, 0, mib, i)
		s.kernel(part, false)
		s.read(object, 0, mib, 0)
	}
	if a := s.analyse(t); slices.Contains(kindsOf(a), ReadBack) {
		t.Errorf("%+v", a.Transfers)
	}
}

// Without TRANSFER records there are no hashes and pages, and the call site is that of the memory's create.
func TestTransfersOfOlderRecordings(t *testing.T) {
	s, object := moving(1, false)
	for range 8 {
		u := wire.UseFields{Command: wire.CommandWrite, Writes: true, Object: object, Bytes: mib, Tag: 1}
		s.command(u, wire.TransferFields{})
		u = wire.UseFields{Command: wire.CommandRead, Reads: true, Object: object, Bytes: mib, Tag: 1}
		s.command(u, wire.TransferFields{})
	}
	a := s.analyse(t)
	if !slices.Equal(kindsOf(a), []TransferKind{ReadBack}) || a.Transfers[0].Name != "made.c:1 made" || a.Transfers[0].Bytes != 8*mib {
		t.Errorf("%+v", a.Transfers)
	}
	if w := a.Snapshot.Transfers; w.OwnSites || w.Directions[0].Bytes != 8*mib || w.Directions[1].Calls != 8 {
		t.Errorf("%+v", w)
	}
}

// A finding never counts more calls or bytes than there were.
func TestTransferFindingsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, object := moving(uint16(rapid.SampledFrom([]int{1, wire.CopyHostPtr}).Draw(t, "access")), rapid.Bool().Draw(t, "unified"))
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			offset := rapid.Uint64Range(0, 3).Draw(t, "offset") * 1024
			switch rapid.IntRange(0, 3).Draw(t, "command") {
			case 0:
				s.write(object, offset, 1024*rapid.Uint64Range(1, 64).Draw(t, "kib"), rapid.Uint64Range(1, 2).Draw(t, "hash"))
			case 1:
				s.read(object, offset, 1024*rapid.Uint64Range(1, 64).Draw(t, "kib"), rapid.Uint32Range(0, 16).Draw(t, "cold"))
			case 2:
				s.kernel(object, rapid.Bool().Draw(t, "reads"))
			default:
				s.kernel(0, false)
			}
		}
		a := s.analyse(t)
		w := &a.Snapshot.Transfers
		calls, bytes := w.Directions[0].Calls+w.Directions[1].Calls, w.Directions[0].Bytes+w.Directions[1].Bytes
		for _, f := range a.Transfers {
			if f.Kind != SecondOne && (f.Count > calls || f.Bytes > bytes) || f.Share < 0 || f.Share > 1 {
				t.Errorf("%+v of %d calls, %d bytes", f, calls, bytes)
			}
		}
	})
}

// TestCallsOfTwoFindings: of two findings about blocking reads of one call site the larger speaks.
func TestCallsOfTwoFindings(t *testing.T) {
	list := []TransferFinding{
		{Kind: Blocking, Name: "a", Count: 12}, {Kind: Copied, Name: "a", Count: 30}, {Kind: Unchanged, Name: "a", Count: 12},
		{Kind: Copied, Name: "b", Count: 12}, {Kind: Copied, Name: "c", Count: 40}, {Kind: ColdRead, Name: "c", Count: 40},
	}
	for kind, want := range map[TransferKind]string{Blocking: "a", Copied: "b", Unchanged: "a", ColdRead: "c", Small: ""} {
		got := ""
		if f := largestUnreported(list, kind); f != nil {
			got = f.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// Most of the time of a blocking copy may be a wait for commands, which a map waits for, too.
func TestWhatAMapMaySave(t *testing.T) {
	f := TransferFinding{Kind: Copied, Name: "a.c:1 f", Count: 6, Bytes: 24_000_000, NS: 117_550_000, Certain: true, Advice: "map"}
	if got, want := f.findingText(&Evidence{}), "6 calls, 22.9 MiB in all, a map may save up to 24ms (estimated) at a.c:1 f: map"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.rate = 10e9
	if got := f.copyingNS(); got != 2_400_000 {
		t.Errorf("%d ns, where such calls take 2.4 ms if they wait for nothing", got)
	}
}

// Of reads at one call site those behind a kernel wait for it: what the others took is what copying takes.
func TestCopiesThatWaitForNothing(t *testing.T) {
	s, o := moving(0, true)
	for range 8 {
		s.kernel(o, false)
		s.command(wire.UseFields{Command: wire.CommandRead, Reads: true, Object: o, Bytes: mib, Tag: 1, Duration: ms}, wire.TransferFields{Site: transferTag})
		s.command(wire.UseFields{Command: wire.CommandRead, Reads: true, Object: o, Bytes: mib, Tag: 1, Duration: ms / 100}, wire.TransferFields{Site: transferTag})
	}
	s.exit()
	a := s.analyse(t)
	at := slices.IndexFunc(a.Transfers, func(f TransferFinding) bool { return f.Kind == Copied })
	if at >= 0 {
		t.Errorf("copying takes %d ns of %d, a hundredth of the run at most", a.Transfers[at].copyingNS(), a.Transfers[at].NS)
	}
}

// The copies of host memory are those of the call site that is named, at one time.
func TestSecondOnesAreCounted(t *testing.T) {
	s, _ := moving(wire.CopyHostPtr, true)
	s.driver(1, 2*mib)
	s.last().Access = wire.CopyHostPtr
	s.driver(2, mib)
	s.last().Access = wire.CopyHostPtr
	a := s.analyse(t)
	if len(a.Transfers) != 1 || a.Transfers[0].Count != 2 || a.Transfers[0].Bytes != 3*mib || a.Transfers[0].Name != "made.c:1 made" {
		t.Errorf("%+v", a.Transfers)
	}
}

// TestBlockingReadsWait: the time of reads that waited for commands is not that of copying.
func TestBlockingReadsWait(t *testing.T) {
	for kind, want := range map[TransferKind]bool{Blocking: true, Small: false} {
		f := TransferFinding{Kind: kind, Name: "a", Count: 12, NS: 5, Certain: true, Share: 0.125, within: 0.125}
		const said = "5ns including waits for earlier commands, 12.5 % of the time after the first call at a" // the first may have taken all
		if text := f.findingText(&Evidence{Run: &stats.Snapshot{}, Length: 10}); strings.Contains(text, said) != want {
			t.Errorf("%s: %q", kind, text)
		}
	}
}

// Calls of one line are of one call site, though a compiler made two of it, and count once where threads wait at the same time.
func TestThreadsThatWaitAtTheSameTime(t *testing.T) {
	for name, test := range map[string]struct {
		second        uint32 // thread of every other read
		apart         uint64 // time between two reads
		share         float64
		ofAllTogether bool
	}{
		"two threads": {12, 5 * ms, 0.75, true},
		"one thread":  {11, 10 * ms, 1, false},
	} {
		s, o := moving(0, false)
		s.put(wire.Event{Kind: wire.KindSite, Tag: transferTag + 1}, "moved\t/src/moved.c\t7\tapp+0x20\n")
		start := s.now
		for i := range uint64(20) {
			for j := range uint64(2) {
				s.thread, s.now = []uint32{11, test.second}[j], start+20*ms*i+test.apart*j
				u := wire.UseFields{Time: s.now, Command: wire.CommandKernel, Object: o, ArgumentNumber: 1, Tag: 1}
				s.put(u.Event(), "")
				s.put(wire.TransferFields{Time: u.Time, Site: transferTag + uint32(j), Pageable: true}.Event(), "")
				u = wire.UseFields{Time: u.Time, Command: wire.CommandRead, Reads: true, Object: o, Bytes: 4, Tag: 1, Duration: 10 * ms}
				s.put(u.Event(), "")
			}
		}
		s.exit()
		a := s.analyse(t)
		if len(a.Transfers) != 1 || a.Transfers[0].Count != 40 || math.Abs(a.Transfers[0].Share-test.share) > 0.02 {
			t.Fatalf("%s: %+v", name, a.Transfers)
		}
		text := a.Transfers[0].findingText(&Evidence{Run: a.Snapshot, Length: 1000 * ms})
		if strings.Contains(text, "400ms of all threads together") != test.ofAllTogether {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Records of one thread may come after later ones of another.
func TestWindowsTakeLateCalls(t *testing.T) {
	var w window
	for _, call := range []span{{0, 10}, {20, 30}, {60, 70}, {35, 50}, {45, 55}} {
		w.addCall(call.from, call.to)
	}
	if w.busy != 40 || !w.several {
		t.Errorf("%+v", w)
	}
	w = window{}
	for _, call := range []span{{0, 10}, {20, 30}, {60, 70}, {35, 50}} {
		w.addCall(call.from, call.to)
	}
	if w.busy != 35 || w.several {
		t.Errorf("%+v", w)
	}
}
