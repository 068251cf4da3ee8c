package lab

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// tape is a source that plays a list; its methods write it.
type tape struct {
	records []wire.Record
	next    int
	err     error // instead of io.EOF
	process uint32
}

func (tape *tape) Next(r *wire.Record) error {
	if tape.next == len(tape.records) {
		if tape.err != nil {
			return tape.err
		}
		return io.EOF
	}
	*r = tape.records[tape.next]
	tape.next++
	return nil
}

func (tape *tape) Rewind() error {
	tape.next = 0
	return nil
}

const (
	scope     = 1
	readWrite = 1
)

func newTape() *tape {
	t := &tape{process: 1}
	t.device(1<<30, 1<<28, 128)
	t.add(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeCreate), Object: scope, Link: 7})
	return t
}

func (tape *tape) device(memory, largest uint64, align uint32) {
	tape.add(wire.Event{Kind: wire.KindDevice, Object: 7, Granted: memory, Link: largest, Tag: align})
}

func (tape *tape) add(e wire.Event) {
	e.Time = 1000 * uint64(len(tape.records)+1)
	tape.records = append(tape.records, wire.Record{Event: e, Process: tape.process})
}

// create asks for a buffer; the recorded block has the buffer's number.
func (tape *tape) create(object, size uint64) {
	tape.add(wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: object, Link: object, Size: size, Granted: size, Scope: scope, Access: readWrite,
	})
}

func (tape *tape) release(object uint64, outcome wire.Outcome, flags uint8) {
	tape.add(wire.Event{Kind: wire.KindRelease, Object: object, Link: object, Outcome: outcome, Flags: flags})
}

func (tape *tape) replay(t *testing.T, policy string, capacity uint64, settings ...string) *ReplayResult {
	t.Helper()
	parsed, err := allocator.ParseSettings(strings.Join(settings, ","))
	if err != nil {
		t.Fatal(err)
	}
	if err := tape.Rewind(); err != nil {
		t.Fatal(err)
	}
	r, err := Replay(tape, ReplayOptions{Policy: policy, Settings: parsed, Capacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSamePolicy plays recordings of programs with one thread through the policy that was recorded: it must do again
// what it did.
func TestSamePolicy(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gmt")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		reader, err := trace.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Replay(reader, recorded(reader.Header()))
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Rewind(); err != nil {
			t.Fatal(err)
		}
		totals := fold(t, reader)
		if err := reader.Rewind(); err != nil {
			t.Fatal(err)
		}
		pooled := fold(t, poolable{reader})
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		if r.Requests == 0 || r.Hits != totals.Hits || r.Misses != totals.Misses || r.MissReasons != totals.MissReasons {
			t.Errorf("%s: %d requests, hits %d, misses %d %v; recorded were %d, %d %v", file, r.Requests, r.Hits, r.Misses, r.MissReasons,
				totals.Hits, totals.Misses, totals.MissReasons)
		}
		if r.BytesAllocated != totals.BytesAllocated || r.DriverCreates+r.Unpooled != totals.DriverCreates {
			t.Errorf("%s: %d creates of %d bytes, recorded were %d of %d", file, r.DriverCreates, r.BytesAllocated,
				totals.DriverCreates-r.Unpooled, totals.BytesAllocated)
		}
		if r.PeakInUse != pooled.PeakInUse || r.PeakReserved != pooled.PeakReserved {
			t.Errorf("%s: peaks %d and %d, recorded were %d and %d", file, r.PeakInUse, r.PeakReserved, pooled.PeakInUse, pooled.PeakReserved)
		}
		if (r.Unpooled > 0) != (totals.PeakInUse > pooled.PeakInUse) {
			t.Errorf("%s: %d unpooled, peaks %d with them and %d without", file, r.Unpooled, totals.PeakInUse, pooled.PeakInUse)
		}
	}
}

// poolable leaves out the creates that no policy saw: what peaks are without them.
type poolable struct{ trace.Source }

func (p poolable) Next(r *wire.Record) error {
	for {
		err := p.Source.Next(r)
		if err != nil || r.Kind != wire.KindCreate || r.Outcome == wire.OutcomeHit || r.Outcome == wire.OutcomeMiss {
			return err
		}
	}
}

// TestOtherPolicy plays what was recorded without a pool through a policy, and looks at what that did when it ran.
func TestOtherPolicy(t *testing.T) {
	open := func(path string) *trace.Reader {
		reader, err := trace.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Close() })
		return reader
	}
	r, err := Replay(open("testdata/frag.none.gmt"), ReplayOptions{Policy: "mantissa"})
	if err != nil {
		t.Fatal(err)
	}
	totals := fold(t, open("testdata/frag.mantissa.gmt"))
	if r.Hits != totals.Hits || r.MissReasons != totals.MissReasons || r.PeakReserved != totals.PeakReserved || r.Hits == 0 || r.Recorded.Hits != 0 {
		t.Errorf("%+v\nrecorded was %+v", r, totals)
	}
}

func fold(t *testing.T, src trace.Source) model.Totals {
	t.Helper()
	m := model.New(model.Options{})
	var record wire.Record
	for {
		err := src.Next(&record)
		if errors.Is(err, io.EOF) {
			return m.Snapshot().Totals
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Apply(&record)
	}
}

func TestCoolingAsRecorded(t *testing.T) {
	tape := newTape()
	tape.create(1, 4096)
	tape.release(1, wire.OutcomeCooling, wire.FlagWouldRace)
	tape.create(2, 4096)
	tape.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish)}) // not what this waits for
	tape.create(3, 4096)
	tape.add(wire.Event{Kind: wire.KindCooled, Link: 1, Granted: 4096})
	tape.create(4, 4096)
	r := tape.replay(t, "futhark", 0)
	if r.Hits != 1 || r.MissReasons[wire.MissCooling] != 2 {
		t.Errorf("%+v", r)
	}
}

// TestCoolingUntold plays what a policy that does not pool recorded.
func TestCoolingUntold(t *testing.T) {
	tape := newTape()
	tape.create(1, 4096)
	tape.release(1, wire.OutcomeDriver, wire.FlagWouldRace)
	tape.create(2, 4096)
	tape.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFlush)})
	tape.create(3, 4096)
	tape.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncFinish)})
	tape.create(4, 4096)
	tape.release(4, wire.OutcomeDriver, 0)
	tape.create(5, 4096)
	r := tape.replay(t, "futhark", 0)
	if r.Hits != 2 || r.MissReasons[wire.MissCooling] != 2 || r.Recorded.Misses != 5 {
		t.Errorf("%+v", r)
	}
}

func TestRefused(t *testing.T) {
	for reason, hits := range map[wire.Evict]uint64{wire.EvictState: 0, wire.EvictLimit: 1} {
		tape := newTape()
		tape.create(1, 4096)
		tape.release(1, wire.OutcomeRefused, 0)
		tape.add(wire.Event{Kind: wire.KindEvict, Link: 1, Granted: 4096, Reason: uint8(reason)})
		tape.create(2, 4096)
		if r := tape.replay(t, "futhark", 0); r.Hits != hits || r.PeakReserved != 4096 {
			t.Errorf("%s: %+v", reason, r)
		}
	}
}

// TestEvictedWhileCooling cools at the next finish what the recorded policy gave up.
func TestEvictedWhileCooling(t *testing.T) {
	tape := newTape()
	tape.create(1, 4096)
	tape.release(1, wire.OutcomeCooling, wire.FlagWouldRace)
	tape.add(wire.Event{Kind: wire.KindEvict, Link: 1, Granted: 4096, Reason: uint8(wire.EvictDrain)})
	tape.create(2, 4096)
	tape.add(wire.Event{Kind: wire.KindSync, Op: uint8(wire.SyncWait)})
	tape.create(3, 4096)
	if r := tape.replay(t, "futhark", 0); r.Hits != 1 || r.MissReasons[wire.MissCooling] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestContextEnd(t *testing.T) {
	tape := newTape()
	tape.create(1, 4096)
	tape.release(1, wire.OutcomeCached, 0)
	tape.add(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeRelease), Object: scope})
	tape.create(2, 4096)
	tape.release(2, wire.OutcomeCached, 0)
	tape.add(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeEnd), Object: scope})
	tape.add(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeEnd), Object: 99})
	if r := tape.replay(t, "futhark", 0); r.Hits != 1 || r.Cached != 0 || r.Free != 4096 || r.Evictions != 1 {
		t.Errorf("%+v", r)
	}
}

// TestRequests looks at what a policy is told of a create.
func TestRequests(t *testing.T) {
	tape := newTape()
	plain := wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: 1, Size: 600, Granted: 600, Scope: scope, Access: readWrite}
	pinned, copied, other := plain, plain, plain
	pinned.Object, pinned.Access = 2, readWrite|allocHostPointer
	copied.Object, copied.Access = 3, readWrite|copyHostPointer
	other.Object, other.Scope = 4, 2
	for _, e := range []wire.Event{plain, pinned, copied, other} {
		tape.add(e)
	}
	tape.add(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Object: 5, Size: 600})
	tape.add(wire.Event{Kind: wire.KindCreate, Object: 6, Size: 600}) // never eligible
	if r := tape.replay(t, "pow2", 0); r.Requests != 4 || r.Unpooled != 1 || r.MissReasons[wire.MissCold] != 4 || r.BytesAllocated != 3*1024+600 {
		t.Errorf("pow2: %+v", r)
	}
	if r := tape.replay(t, "pinned", 0); r.BytesAllocated != 3*600+1024 || r.MissReasons[wire.MissPolicy] != 3 {
		t.Errorf("pinned: %+v", r)
	}
	// Three classes can have slabs; contents to copy make a block of their own.
	if r := tape.replay(t, "slab", 0); r.Slabs != 3 || r.DriverCreates != 4 || r.Hits != 0 {
		t.Errorf("slab: %+v", r)
	}
	tape.records[0].Tag = 0 // an old recording does not tell where parts may begin
	if r := tape.replay(t, "slab", 0); r.Slabs != 0 || r.DriverCreates != 4 {
		t.Errorf("slab without an alignment: %+v", r)
	}
}

func TestProcesses(t *testing.T) {
	tape := newTape()
	tape.create(1, 1<<20)
	tape.process = 2
	tape.device(1<<30, 1<<28, 128)
	tape.create(1, 2<<20)
	tape.process = 1
	tape.release(1, wire.OutcomeCached, 0)
	tape.process = 2
	tape.create(2, 1<<20) // what another process freed serves nobody here
	tape.add(wire.Event{Kind: wire.KindLost, Size: 7})
	r := tape.replay(t, "futhark", 3<<20)
	if r.Processes != 2 || r.Hits != 0 || r.PeakInUse != 3<<20 || r.PeakReserved != 4<<20 || r.Failures != 0 || r.Lost != 7 || r.Free != 1<<20 {
		t.Errorf("%+v", r)
	}
}

// TestChangesOfThePolicyAreLeftOut: they are counted, and change nothing.
func TestChangesOfThePolicyAreLeftOut(t *testing.T) {
	changed, plain := &tape{process: 1}, &tape{process: 1}
	for _, to := range []*tape{changed, plain} {
		to.create(1, 5000)
		for _, text := range []string{"policy=none", "policy=pow2,min_block=4", "policy nonsense is unknown"} {
			if to == changed {
				to.add(wire.Event{Kind: wire.KindLimit, Status: map[bool]int16{true: -1}[strings.Contains(text, "unknown")]})
				to.records[len(to.records)-1].Payload = []byte(text)
			} else {
				to.add(wire.Event{Kind: wire.KindGauge})
			}
		}
		to.release(1, wire.OutcomeCached, 0)
		to.create(2, 5000)
	}
	got, want := changed.replay(t, "futhark", 0), plain.replay(t, "futhark", 0)
	if want.Switches = 2; got.Hits != 1 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReplayErrors(t *testing.T) {
	broken := errors.New("bad block")
	for want, o := range map[string]ReplayOptions{
		"unknown policy":               {Policy: "futhork"},
		"limit":                        {Policy: "futhark", Settings: []allocator.Setting{{Name: "max_age", Value: "soon"}}},
		"read the recording: bad bloc": {Policy: "futhark"},
	} {
		if r, err := Replay(&tape{err: broken}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

func TestReplayIsTheSameEachTime(t *testing.T) {
	tape := thousand()
	first := tape.replay(t, "slab", 0)
	if diff := cmp.Diff(first, tape.replay(t, "slab", 0)); diff != "" {
		t.Error(diff)
	}
}
