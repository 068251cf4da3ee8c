package recorded

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/records"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tape writes records; each has a time of its own unless it is given one.
type tape struct{ records.Tape }

func (t *tape) add(e wire.Event) *tape {
	if e.Time == 0 {
		e.Time = uint64(len(t.Records)+1) * 100
	}
	r := wire.Record{Event: e, Process: 1, Thread: uint32(max(e.Reason, 1))} // no command has a reason: here it is the thread
	r.Reason = 0
	t.Records = append(t.Records, r)
	return t
}

func (t *tape) queue(number uint64, flags uint8) *tape {
	return t.add(wire.Event{Kind: wire.KindQueue, Object: number, Flags: flags})
}

// create creates 64 bytes.
func (t *tape) create(number uint64, access uint16) *tape {
	return t.add(wire.Event{Kind: wire.KindCreate, Object: number, Size: 64, Granted: 64, Access: access, Tag: uint32(number)})
}

func (t *tape) release(number uint64) *tape {
	return t.add(wire.Event{Kind: wire.KindRelease, Object: number})
}

func (t *tape) read(number, queue, size uint64) *tape {
	return t.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandRead), Object: number, Link: queue, Size: size, Flags: wire.FlagReads})
}

func one(t *testing.T, src *tape, o Options) Run {
	t.Helper()
	runs, err := ReadRuns(src, o)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v, %d runs", err, len(runs))
	}
	if _, err := merging.Analyse(runs[0].Program); err != nil {
		t.Fatal(err)
	}
	return runs[0]
}

// shape writes steps in a word or two each.
func shape(p *merging.Program) string {
	var words []string
	for i := range p.Steps {
		s := &p.Steps[i]
		word := s.Kind.String()
		for _, u := range s.Uses {
			word += fmt.Sprintf(" %d", u.Buffer)
			if u.Reads {
				word += "r"
			}
			if u.Writes {
				word += "w"
			}
			if u.Extent == merging.Range {
				word += fmt.Sprintf("[%d+%d]", u.Offset, u.Bytes)
			}
		}
		if s.Done != merging.None && s.Done != i {
			word += fmt.Sprintf(" done %d", s.Done)
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func TestStepsOfARun(t *testing.T) {
	src := new(tape).queue(9, 0).create(1, 1).create(2, 1)
	at := uint64(5000)
	use := func(op wire.Command, object uint64, flags uint8, e wire.Event) {
		e.Kind, e.Op, e.Object, e.Flags, e.Link, e.Time = wire.KindUse, uint8(op), object, flags, 9, at
		src.add(e)
	}
	use(wire.CommandWrite, 1, wire.FlagWrites, wire.Event{Size: 32, Granted: 16})
	at += 100
	use(wire.CommandKernel, 1, wire.FlagReads, wire.Event{Duration: 1, Granted: 7})
	use(wire.CommandKernel, 2, 0, wire.Event{Duration: 2, Granted: 7})
	use(wire.CommandKernel, 2, 0, wire.Event{Duration: 1, Granted: 7}) // another one in the same nanosecond
	at += 100
	use(wire.CommandCopy, 1, wire.FlagReads, wire.Event{Size: 32, Tag: 77})
	use(wire.CommandCopy, 2, wire.FlagWrites, wire.Event{Size: 32, Granted: 32, Tag: 77})
	at += 100
	use(wire.CommandRead, 2, wire.FlagReads, wire.Event{Size: 64})
	src.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish), Link: 9, Time: at + 10, Duration: 50})
	at += 100
	src.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncBlocking), Link: 9, Time: at, Duration: 50})
	src.add(wire.TransferFields{Time: at, Pageable: true, Site: 7}.Event()) // of the read, for which the thread waits
	use(wire.CommandRead, 1, wire.FlagReads, wire.Event{Size: 8, Granted: 8})
	src.add(wire.Event{Kind: wire.KindRelease, Object: 1, Time: at + 60})
	run := one(t, src, Options{})
	want := "create, create, write 0w[16+32] done 7, kernel 0r 1 done 7, kernel 1 done 7, copy 0r[0+32] 1w[32+32] done 7, " +
		"read 1r[0+64] done 7, host read, read 0r[8+8] done 9, wait, release"
	if got := shape(run.Program); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s := run.Program.Steps[5].Site; s != 77 {
		t.Errorf("the copy's site is %d", s)
	}
	if b := run.Program.Buffers; b[0].Released != 10 || b[1].Released != merging.None || b[0].Site != 1 {
		t.Errorf("%+v", b)
	}
}

// A TRANSFER of another time is of a command that has completed: it comes when a wait is over.
func TestATransferAloneEndsAWait(t *testing.T) {
	src := new(tape).queue(9, 0).create(1, 1)
	src.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncBlocking), Link: 9, Time: 5000, Duration: 50})
	src.add(wire.TransferFields{Time: 5050, Profiled: wire.CommandWrite, Site: 7}.Event())
	src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandRead), Object: 1, Link: 9, Size: 8, Flags: wire.FlagReads, Time: 5050})
	if got, want := shape(one(t, src, Options{}).Program), "create, wait, read 0r[0+8]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A wait of one thread says nothing to another until it is over.
func TestWaitsEndWhenTheyDid(t *testing.T) {
	src := new(tape).queue(9, 0).create(1, 1).read(1, 9, 64)
	src.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish), Link: 9, Time: 500, Duration: 1000})
	src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandRead), Object: 1, Link: 9, Size: 64, Flags: wire.FlagReads, Time: 600, Reason: 2})
	src.add(wire.Event{Kind: wire.KindCreate, Object: 2, Size: 8, Time: 1600, Reason: 2})
	want := "create, read 0r[0+64] done 3, read 0r[0+64], host read, create"
	if got := shape(one(t, src, Options{}).Program); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What a wait is for has ended with it, and with that what it waited for in turn; what a marker waits for, what comes
// behind the marker waits for, too.
func TestWaitsForEvents(t *testing.T) {
	src := new(tape).queue(7, 0).queue(8, 0).queue(9, wire.FlagOutOfOrder).create(1, 1)
	at := uint64(5000)
	read := func(queue uint64) uint64 {
		at += 100
		src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandRead), Object: 1, Link: queue, Size: 8, Flags: wire.FlagReads, Time: at})
		return at
	}
	await := func(link, time, queue, awaited uint64, op wire.Await) {
		src.add(wire.Event{Kind: wire.KindAwait, Op: uint8(op), Link: link, Time: time, Object: queue, Size: awaited})
	}
	read(7)           // step 1
	second := read(7) // 2
	read(7)           // 3
	free := read(9)   // 4
	read(9)           // 5
	at += 100         // a marker
	await(8, at, 7, second, wire.AwaitAll)
	await(8, at+100, 9, free, wire.AwaitOne)
	last := read(8) // 6
	at += 100
	await(0, at, 8, last, wire.AwaitAll)
	src.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncWait), Time: at, Duration: 50})
	src.add(wire.Event{Kind: wire.KindRelease, Object: 1, Time: at + 100})
	run := one(t, src, Options{})
	var done, after []int
	for i := range run.Program.Steps {
		done = append(done, run.Program.Steps[i].Done)
		after = append(after, run.Program.Steps[i].After...)
	}
	if want := []int{0, 7, 7, merging.None, 7, merging.None, 7, 7, 8}; !slices.Equal(done, want) {
		t.Errorf("done %v, want %v", done, want)
	}
	if want := []int{4, 2}; !slices.Equal(after, want) {
		t.Errorf("the last command comes after %v, want %v", after, want)
	}
	if says(run, "waits do not tell") {
		t.Errorf("%q", run.Lacks)
	}
}

// Commands of a queue without an order, or of one whose create was not seen, may run at any time.
func TestQueuesWithoutAnOrder(t *testing.T) {
	src := new(tape).queue(9, 0).queue(8, wire.FlagOutOfOrder).create(1, 1)
	for _, queue := range []uint64{9, 9, 8, 8, 7, 7} {
		src.read(1, queue, 64)
	}
	run := one(t, src, Options{})
	var numbers []uint32
	for i := range run.Program.Steps[1:] {
		numbers = append(numbers, run.Program.Steps[i+1].Queue)
	}
	distinct := slices.Clone(numbers)
	slices.Sort(distinct)
	if numbers[0] != numbers[1] || len(slices.Compact(distinct)) != 5 {
		t.Errorf("queues %v", numbers)
	}
	if !says(run, "2 commands are on queues that were not seen made") {
		t.Errorf("%q", run.Lacks)
	}
}

func says(r Run, what string) bool {
	return slices.ContainsFunc(r.Lacks, func(l string) bool { return strings.Contains(l, what) })
}

func TestKindsOfMemory(t *testing.T) {
	src := new(tape).queue(9, 0)
	src.create(1, 1)                  // plain
	src.create(2, 1|wire.CopyHostPtr) // comes with data, of the same class
	src.create(3, memReadOnly|wire.UseHostPtr)
	part := func(number, size, parent uint64, kind wire.Memory) {
		src.add(wire.Event{Kind: wire.KindCreate, Op: uint8(kind), Object: number, Size: size, Link: parent})
	}
	part(4, 16, 1, wire.MemorySubBuffer) // as earlier versions recorded them
	part(5, 64, 1, wire.MemorySubBuffer)
	part(6, 64, 0, wire.MemoryImage)
	part(7, 64, 1, wire.MemoryImage)
	part(8, 64, 0, wire.MemoryExternal)
	part(9, 64, 0, wire.MemorySVM)
	src.add(wire.Event{Kind: wire.KindCreate, Object: 10, Size: 64, Flags: wire.FlagCarried})
	src.add(wire.Event{Kind: wire.KindCreate, Object: 11, Size: 64, Outcome: wire.OutcomeFailed})
	src.read(4, 9, 16).read(5, 9, 16)
	run := one(t, src, Options{})
	b := run.Program.Buffers
	var pins []merging.Pin
	for i := range b {
		pins = append(pins, b[i].Pinned)
	}
	want := []merging.Pin{merging.Free, merging.Free, merging.HostPtr, merging.Free, merging.Free, merging.Image, merging.Image,
		merging.Imported, merging.SVM, merging.Earlier}
	if !slices.Equal(pins, want) || b[0].Class != b[1].Class || b[0].Class == b[2].Class {
		t.Errorf("%v, classes %x %x %x", pins, b[0].Class, b[1].Class, b[2].Class)
	}
	if b[3].Parent != 0 || b[3].Size != 64 || b[4].Parent != 0 || b[6].Parent != 0 || b[7].Size != 0 {
		t.Errorf("%+v", b)
	}
	steps := run.Program.Steps
	if u := steps[len(steps)-2].Uses[0]; u.Extent != merging.Unknown {
		t.Errorf("%+v: the origin of that sub-buffer is unknown", u)
	}
	if u := steps[len(steps)-1].Uses[0]; u.Extent != merging.Range {
		t.Errorf("%+v: that part is all of its buffer", u)
	}
	if !says(run, "lacks where 2 sub-buffers and images begin") || !says(run, "1 objects are from before the recording") ||
		!says(run, "creates have no call site") {
		t.Errorf("%q", run.Lacks)
	}
}

// Sub-buffers are where they were created, and what commands touch in them is there, too.
func TestPlacesOfSubBuffers(t *testing.T) {
	src := new(tape).queue(9, 0).create(1, 1)
	part := func(number, origin, size uint64, flags uint8) {
		src.add(wire.Event{
			Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: number, Size: size, Granted: 1 + origin, Link: 1, Flags: flags,
		})
	}
	part(2, 0, 16, 0)
	part(3, 48, 16, 0)
	part(4, 56, 16, 0) // reaches beyond what is known of its buffer
	part(5, 48, 16, wire.FlagCarried)
	src.read(3, 9, 8).read(4, 9, 8)
	run := one(t, src, Options{})
	b := run.Program.Buffers
	if b[1].Offset != 0 || b[1].Size != 16 || b[2].Offset != 48 || b[2].Size != 16 || b[2].Parent != 0 {
		t.Errorf("%+v", b)
	}
	if b[3].Offset != 0 || b[3].Size != 64 || b[4].Size != 64 || !says(run, "lacks where 2 sub-buffers and images begin") {
		t.Errorf("%+v %q", b, run.Lacks)
	}
	if got := shape(run.Program); !strings.HasSuffix(got, "read 2r[0+8], read 3r") {
		t.Errorf("%s", got)
	}
}

// What ends early, lacks records or is longer than asked for makes no memory free that may not be.
func TestWhatIsMissingCountsAsUse(t *testing.T) {
	some := func() *tape {
		return new(tape).queue(9, 0).create(1, 1).create(2, 1).read(1, 9, 64).release(1)
	}
	torn := some()
	torn.Part = true
	if run := one(t, torn, Options{}); !strings.HasSuffix(shape(run.Program), "release, command 1") || !says(run, "ends before the program") {
		t.Errorf("%s %q", shape(run.Program), run.Lacks)
	}
	ended := some()
	ended.Part = true
	ended.add(wire.Event{Kind: wire.KindExit})
	if run := one(t, ended, Options{}); !strings.HasSuffix(shape(run.Program), "release") {
		t.Errorf("%s", shape(run.Program))
	}
	if run := one(t, some(), Options{Steps: 3}); shape(run.Program) != "create, create, read 0r[0+64], command 0 1" || !says(run, "only the first 3 steps") {
		t.Errorf("%s %q", shape(run.Program), run.Lacks)
	}
	lost := some().add(wire.Event{Kind: wire.KindLost, Size: 4})
	if run := one(t, lost, Options{}); !run.Program.Partial || !says(run, "4 events were lost") {
		t.Errorf("%v %q", run.Program.Partial, run.Lacks)
	}
}

// An unmap ends what the map began: one that only read leaves the bytes as they were.
func TestUnmapsDoWhatTheirMapsWereFor(t *testing.T) {
	src := new(tape).queue(9, 0).create(1, 1)
	for _, flags := range []uint8{wire.FlagReads, wire.FlagWrites} {
		src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandMap), Object: 1, Link: 9, Size: 64, Flags: flags})
		src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandUnmap), Object: 1, Link: 9})
	}
	src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandUnmap), Object: 1, Link: 9})
	want := "create, map 0r[0+64], unmap 0r, map 0w[0+64], unmap 0w, unmap 0"
	if got := shape(one(t, src, Options{}).Program); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Recordings of the first versions do not show where commands touch memory.
func TestUsesWithoutAPlace(t *testing.T) {
	src := new(tape).queue(9, 0).create(1, 1)
	src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandCopy), Object: 1, Link: 9, Size: 8, Flags: wire.FlagReads | wire.FlagScattered})
	src.create(2, 1)
	for _, object := range []uint64{1, 2} { // one kernel, whose arguments have no numbers
		src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandKernel), Object: object, Link: 9, Granted: 5, Time: 9000})
	}
	run := one(t, src, Options{})
	if got := shape(run.Program); !strings.HasSuffix(got, "create, kernel 0 1") {
		t.Errorf("%s", got)
	}
	if u := run.Program.Steps[1].Uses[0]; u.Extent != merging.Scattered || u.Offset != 0 || !says(run, "lacks which bytes") {
		t.Errorf("%+v %q", u, run.Lacks)
	}
}

// FuzzRead reads random records: the programs never contradict themselves.
func FuzzRead(f *testing.F) {
	f.Add([]byte("\x08\x01\x00\x0a\x02\x01\x0d\x03\x02\x0e\x01\x03\x0c\x02\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		src := &tape{records.Tape{Part: len(b)%2 == 0}}
		kinds := []wire.Kind{
			wire.KindQueue, wire.KindCreate, wire.KindRelease, wire.KindUse, wire.KindUse, wire.KindUse, wire.KindSync, wire.KindLost,
			wire.KindExit, wire.KindDevice, wire.KindAwait, wire.KindAwait,
		}
		for ; len(b) >= 12; b = b[12:] {
			src.Records = append(src.Records, wire.Record{Process: uint32(b[0] >> 7), Thread: uint32(b[1] & 3), Event: wire.Event{
				Kind: kinds[int(b[0]&0x7f)%len(kinds)], Op: b[1] >> 2 % 12, Outcome: wire.Outcome(b[2] % 8), Flags: b[3],
				Access: uint16(b[4]), Object: uint64(b[5] % 8), Link: uint64(b[6] % 8), Size: uint64(b[7]) * 8,
				Granted: uint64(b[8] % 4 * 8), Duration: uint32(b[9] % 5), Time: uint64(binary.LittleEndian.Uint16(b[10:])), Tag: uint32(b[4] % 3),
			}})
		}
		runs, err := ReadRuns(src, Options{Steps: 20})
		if err != nil {
			t.Fatal(err)
		}
		var programs []*merging.Program
		for _, run := range runs {
			programs = append(programs, run.Program)
		}
		for _, form := range []merging.Form{merging.API, merging.Completion, merging.Uses} {
			report, err := merging.AdviseOnRuns(programs, merging.Options{Form: form, Max: len(src.Records)%2 == 0})
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range report.Runs {
				if r.Merged.Peak > r.Now.Peak {
					t.Fatalf("run %d: the peak rises from %d to %d", i, r.Now.Peak, r.Merged.Peak)
				}
			}
		}
	})
}

// TestUnknownUses: a replay of a command buffer may use any memory.
func TestUnknownUses(t *testing.T) {
	run := func(object uint64) Run {
		src := new(tape).queue(9, 0).create(1, 1).read(1, 9, 64)
		src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandOther), Object: object, Link: 9, Flags: wire.FlagScattered})
		return one(t, src.release(1), Options{})
	}
	if r := run(1); r.Program.Partial {
		t.Errorf("a command on what is known: %q", r.Lacks)
	}
	if r := run(0); !r.Program.Partial || !slices.ContainsFunc(r.Lacks, func(s string) bool { return strings.Contains(s, "1 commands use unknown memory") }) {
		t.Errorf("partial %v: %q", r.Program.Partial, r.Lacks)
	}
}

// TestThreadsAreNoted for each command, and for all commands together if there are several threads.
func TestThreadsAreNoted(t *testing.T) {
	run := func(thread uint8) Run {
		src := new(tape).queue(9, 0).create(1, 1).read(1, 9, 64)
		src.add(wire.Event{Kind: wire.KindUse, Op: uint8(wire.CommandRead), Object: 1, Link: 9, Size: 64, Flags: wire.FlagReads, Reason: thread})
		return one(t, src.release(1), Options{})
	}
	for thread, want := range map[uint8]bool{1: false, 2: true} {
		r := run(thread)
		steps := r.Program.Steps
		found := slices.ContainsFunc(r.Lacks, func(s string) bool { return strings.Contains(s, "2 threads enqueue commands") })
		if other := steps[1].Thread != steps[2].Thread; other != want || found != want || steps[1].Thread == 0 {
			t.Errorf("threads %d and %d, %q", steps[1].Thread, steps[2].Thread, r.Lacks)
		}
	}
}

// TestCopying: creates that copy count by call site, with what they took and how many of their buffers lived at once.
func TestCopying(t *testing.T) {
	const copies = memReadOnly | wire.CopyHostPtr
	src := &tape{}
	create := func(object, size uint64, access uint16, site, cost uint32) {
		src.add(wire.Event{Kind: wire.KindCreate, Object: object, Size: size, Granted: size, Access: access, Tag: site, Cost: cost})
	}
	create(1, 64, copies, 7, 100)
	create(2, 64, copies, 7, 200)
	src.release(1)
	create(3, 128, copies, 7, 300)
	src.release(2).release(3)
	create(4, 64, copies, 8, 50)
	create(5, 64, memReadOnly|wire.UseHostPtr, 9, 60)
	create(6, 64, memReadOnly, 9, 70)
	run := one(t, src, Options{})
	if c := run.Copying[7]; c == nil || c.Creates != 3 || c.NS != 600 || c.Most != 2 || c.Largest != 128 || !c.Differ {
		t.Errorf("%+v", c)
	}
	if c := run.Copying[8]; len(run.Copying) != 2 || c == nil || c.Creates != 1 || c.Differ || run.NS != 800 {
		t.Errorf("%+v in %d ns", run.Copying, run.NS)
	}
}
