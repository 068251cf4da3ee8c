package replay

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/labtest"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// replay plays a program through a policy from its first record on.
func replay(t *testing.T, src recording.Source, policy string, capacity uint64, settings ...string) *Result {
	t.Helper()
	parsed, err := allocator.ParseSettings(strings.Join(settings, ","))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Replay(labtest.RewindSource(t, src), Options{Policy: policy, Settings: parsed, Capacity: capacity})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSamePolicy plays recordings of programs with one thread through the recorded policy: it must decide as recorded.
func TestSamePolicy(t *testing.T) {
	for file, reader := range labtest.Recordings(t, "testdata") {
		r, err := Replay(reader, recorded(reader.Header()))
		if err != nil {
			t.Fatal(err)
		}
		totals := fold(t, labtest.RewindSource(t, reader))
		pooled := fold(t, poolable{labtest.RewindSource(t, reader)})
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

// poolable leaves out the creates that no policy was asked for.
type poolable struct{ recording.Source }

func (p poolable) Next(r *wire.Record) error {
	for {
		err := p.Source.Next(r)
		if err != nil || r.Kind != wire.KindCreate || r.Outcome == wire.OutcomeHit || r.Outcome == wire.OutcomeMiss {
			return err
		}
	}
}

// TestOtherPolicy plays recordings made without a pool through a policy, and compares with a run under that policy.
func TestOtherPolicy(t *testing.T) {
	open := func(path string) *recording.Reader {
		reader, err := recording.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Close() })
		return reader
	}
	r, err := Replay(open("testdata/frag.none.gmt"), Options{Policy: "mantissa"})
	if err != nil {
		t.Fatal(err)
	}
	totals := fold(t, open("testdata/frag.mantissa.gmt"))
	if r.Hits != totals.Hits || r.MissReasons != totals.MissReasons || r.PeakReserved != totals.PeakReserved || r.Hits == 0 || r.Recorded.Hits != 0 {
		t.Errorf("%+v\nrecorded was %+v", r, totals)
	}
}

func fold(t *testing.T, src recording.Source) stats.Totals {
	t.Helper()
	m := stats.New(stats.Options{})
	labtest.EachRecord(t, src, m.Apply)
	return m.Snapshot().Totals
}

func TestCoolingAsRecorded(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 4096)
	tape.AddRelease(1, wire.OutcomeCooling).Flags = wire.FlagWouldRace
	tape.AddCreate(2, 4096)
	tape.AddSync(wire.SyncFinish) // not what this waits for
	tape.AddCreate(3, 4096)
	tape.AddCooled(1, 4096)
	tape.AddCreate(4, 4096)
	r := replay(t, tape, "futhark", 0)
	if r.Hits != 1 || r.MissReasons[wire.MissCooling] != 2 {
		t.Errorf("%+v", r)
	}
}

// TestCoolingUntold plays recordings of a policy that does not pool, which do not show when blocks cool.
func TestCoolingUntold(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 4096)
	tape.AddRelease(1, wire.OutcomeDriver).Flags = wire.FlagWouldRace
	tape.AddCreate(2, 4096)
	tape.AddSync(wire.SyncFlush)
	tape.AddCreate(3, 4096)
	tape.AddSync(wire.SyncFinish)
	tape.AddCreate(4, 4096)
	tape.AddRelease(4, wire.OutcomeDriver)
	tape.AddCreate(5, 4096)
	r := replay(t, tape, "futhark", 0)
	if r.Hits != 2 || r.MissReasons[wire.MissCooling] != 2 || r.Recorded.Misses != 5 {
		t.Errorf("%+v", r)
	}
}

func TestRefused(t *testing.T) {
	for reason, hits := range map[wire.Evict]uint64{wire.EvictState: 0, wire.EvictLimit: 1} {
		tape := labtest.NewTape()
		tape.AddCreate(1, 4096)
		tape.AddRelease(1, wire.OutcomeRefused)
		tape.AddEvict(1, 4096, reason)
		tape.AddCreate(2, 4096)
		if r := replay(t, tape, "futhark", 0); r.Hits != hits || r.PeakReserved != 4096 {
			t.Errorf("%s: %+v", reason, r)
		}
	}
}

// TestEvictedWhileCooling: a block that the recorded policy evicted while it cooled has cooled at the next finish.
func TestEvictedWhileCooling(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 4096)
	tape.AddRelease(1, wire.OutcomeCooling).Flags = wire.FlagWouldRace
	tape.AddEvict(1, 4096, wire.EvictDrain)
	tape.AddCreate(2, 4096)
	tape.AddSync(wire.SyncWait)
	tape.AddCreate(3, 4096)
	if r := replay(t, tape, "futhark", 0); r.Hits != 1 || r.MissReasons[wire.MissCooling] != 1 {
		t.Errorf("%+v", r)
	}
}

func TestContextEnd(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 4096)
	tape.AddRelease(1, wire.OutcomeCached)
	tape.AddEvent(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeRelease), Object: labtest.Scope})
	tape.AddCreate(2, 4096)
	tape.AddRelease(2, wire.OutcomeCached)
	tape.EndContext(labtest.Scope)
	tape.EndContext(99)
	if r := replay(t, tape, "futhark", 0); r.Hits != 1 || r.Cached != 0 || r.Free != 4096 || r.Evictions != 1 {
		t.Errorf("%+v", r)
	}
}

// TestRequests checks what request a create becomes.
func TestRequests(t *testing.T) {
	tape := labtest.NewTape()
	plain := wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: 1, Size: 600, Granted: 600, Scope: labtest.Scope, Access: labtest.ReadWrite}
	pinned, copied, other := plain, plain, plain
	pinned.Object, pinned.Access = 2, labtest.ReadWrite|wire.AllocHostPtr
	copied.Object, copied.Access = 3, labtest.ReadWrite|wire.CopyHostPtr
	other.Object, other.Scope = 4, 2
	for _, e := range []wire.Event{plain, pinned, copied, other} {
		tape.AddEvent(e)
	}
	tape.AddEvent(wire.Event{Kind: wire.KindCreate, Outcome: wire.OutcomeFailed, Object: 5, Size: 600})
	tape.AddEvent(wire.Event{Kind: wire.KindCreate, Object: 6, Size: 600}) // never eligible
	if r := replay(t, tape, "pow2", 0); r.Requests != 4 || r.Unpooled != 1 || r.MissReasons[wire.MissCold] != 4 || r.BytesAllocated != 3*1024+600 {
		t.Errorf("pow2: %+v", r)
	}
	if r := replay(t, tape, "pinned", 0); r.BytesAllocated != 3*600+1024 || r.MissReasons[wire.MissPolicy] != 3 {
		t.Errorf("pinned: %+v", r)
	}
	// Three classes can have slabs; contents to copy make a block of their own.
	if r := replay(t, tape, "slab", 0); r.Slabs != 3 || r.DriverCreates != 4 || r.Hits != 0 {
		t.Errorf("slab: %+v", r)
	}
	tape.Records[0].Tag = 0 // an old recording lacks the alignment of sub-allocations
	if r := replay(t, tape, "slab", 0); r.Slabs != 0 || r.DriverCreates != 4 {
		t.Errorf("slab without an alignment: %+v", r)
	}
}

func TestProcesses(t *testing.T) {
	tape := labtest.NewTape()
	tape.AddCreate(1, 1<<20)
	tape.Process = 2
	tape.AddDevice(1<<30, 1<<28, 128)
	tape.AddCreate(1, 2<<20)
	tape.Process = 1
	tape.AddRelease(1, wire.OutcomeCached)
	tape.Process = 2
	tape.AddCreate(2, 1<<20) // what another process freed serves no request here
	tape.AddLost(7)
	r := replay(t, tape, "futhark", 3<<20)
	if r.Processes != 2 || r.Hits != 0 || r.PeakInUse != 3<<20 || r.PeakReserved != 4<<20 || r.Failures != 0 || r.Lost != 7 || r.Free != 1<<20 {
		t.Errorf("%+v", r)
	}
}

// TestChangesOfThePolicyAreLeftOut: they are counted, and change nothing.
func TestChangesOfThePolicyAreLeftOut(t *testing.T) {
	changed, plain := labtest.NewEmptyTape(1), labtest.NewEmptyTape(1)
	for _, to := range []*labtest.Tape{changed, plain} {
		to.AddCreate(1, 5000)
		for _, text := range []string{"policy=none", "policy=pow2,min_block=4", "policy nonsense is unknown"} {
			if to == changed {
				to.AddLimit(text, map[bool]int16{true: -1}[strings.Contains(text, "unknown")])
			} else {
				to.AddEvent(wire.Event{Kind: wire.KindGauge})
			}
		}
		to.AddRelease(1, wire.OutcomeCached)
		to.AddCreate(2, 5000)
	}
	got, want := replay(t, changed, "futhark", 0), replay(t, plain, "futhark", 0)
	if want.Switches = 2; got.Hits != 1 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReplayErrors(t *testing.T) {
	broken := errors.New("bad block")
	for want, o := range map[string]Options{
		"unknown policy": {Policy: "futhork"},
		"limit":          {Policy: "futhark", Settings: []allocator.Setting{{Name: "max_age", Value: "soon"}}},
		"bad block":      {Policy: "futhark"},
	} {
		if r, err := Replay(labtest.Broken{Err: broken}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
}

func TestReplayIsTheSameEachTime(t *testing.T) {
	tape := thousand()
	first := replay(t, tape, "slab", 0)
	if diff := cmp.Diff(first, replay(t, tape, "slab", 0)); diff != "" {
		t.Error(diff)
	}
}
