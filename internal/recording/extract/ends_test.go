package extract_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

const second = 1_000_000_000

func rec(process uint32, time uint64, kind wire.Kind, payload string, set func(*wire.Record)) wire.Record {
	r := wire.Record{Process: process, Thread: 7, Event: wire.Event{Time: time, Kind: kind, Size: uint64(len(payload))}}
	if payload != "" {
		r.Payload = []byte(payload)
	}
	set(&r)
	return r
}

func nothing(*wire.Record) {}

func buffer(r *wire.Record) { r.Object, r.Size = 1, 64 }

// TestEndedProcessesAreGone, unless they ended a moment ago by their own word: exit handlers may still release.
func TestEndedProcessesAreGone(t *testing.T) {
	whole := []wire.Record{
		rec(1, second, wire.KindProcess, "gone", nothing),
		rec(2, second, wire.KindProcess, "leaving", nothing),
		rec(3, second, wire.KindProcess, "left", nothing),
		rec(1, second+1, wire.KindCreate, "", buffer),
		rec(2, second+1, wire.KindCreate, "", buffer),
		rec(3, second+1, wire.KindCreate, "", buffer),
		rec(3, second+2, wire.KindExit, "", nothing),
		rec(1, 3*second-2, wire.KindExit, "", func(r *wire.Record) { r.Thread = 0 }),
		rec(2, 3*second-1, wire.KindExit, "", nothing),
		rec(2, 3*second, wire.KindRelease, "", func(r *wire.Record) { r.Object = 1 }),
		rec(1, 3*second, wire.KindSite, "late\t\t\t", nothing),
	}
	got := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 3*second - 1}))
	want := []wire.Record{whole[1], whole[4], whole[8], whole[9]}
	want[1].Flags, want[1].Granted = wire.FlagCarried, 64
	got2 := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 3 * second}))
	if diff := cmp.Diff(want, got2); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as the exit comes (-want +got):\n%s", diff)
	}
}

func TestLimitsKeepTheirLastValue(t *testing.T) {
	limit := func(time uint64, text string, status int16) wire.Record {
		return rec(1, time, wire.KindLimit, text, func(r *wire.Record) { r.Status, r.Object = status, time })
	}
	whole := []wire.Record{limit(1, "a=1", 0), limit(2, "b=1", 0), limit(3, "a=2", 0), limit(4, "bad value", -1), limit(9, "a=3", 0)}
	got := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 5}))
	if diff := cmp.Diff([]wire.Record{whole[1], whole[2], whole[4]}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLimitsBeginAnewWithAPolicy: what was changed before is no limit of the policy in force.
func TestLimitsBeginAnewWithAPolicy(t *testing.T) {
	limit := func(process uint32, time uint64, text string) wire.Record {
		return rec(process, time, wire.KindLimit, text, func(r *wire.Record) { r.Object = time })
	}
	whole := []wire.Record{
		limit(1, 1, "a=1"), limit(2, 1, "a=1"), limit(1, 2, "policy=x"), limit(1, 3, "a=2"), limit(1, 4, "policy=y,a=3"), limit(1, 5, "b=1"),
		limit(2, 9, "policy=y"),
	}
	got := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 7}))
	want := []wire.Record{whole[1], whole[4], whole[5], whole[6]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFiguresKeepTheirLastValue: what the machine reported last of each process, source and device holds in the part.
func TestFiguresKeepTheirLastValue(t *testing.T) {
	figure := func(process uint32, time uint64, source wire.Machine, device uint64) wire.Record {
		e := wire.MachineFields{Time: time, Source: source, Device: device, Resident: time}.Event()
		return wire.Record{Event: e, Process: process, Thread: 100}
	}
	whole := []wire.Record{
		figure(1, 1, wire.MachineRSS, 0), figure(1, 2, wire.MachineDRM, 1), figure(1, 2, wire.MachineDRM, 2), figure(2, 3, wire.MachineRSS, 0),
		figure(1, 4, wire.MachineRSS, 0), figure(1, 4, wire.MachineDRM, 1), rec(1, 9, wire.KindSync, "", nothing), figure(1, 10, wire.MachineRSS, 0),
	}
	got := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 7}))
	want := []wire.Record{whole[2], whole[3], whole[4], whole[5], whole[6], whole[7]}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLossesOfOthersAreNotInThePart: those before the part, and those of other processes, are not in it; a loss of
// unknown process may concern any of them.
func TestLossesOfOthersAreNotInThePart(t *testing.T) {
	whole := []wire.Record{
		rec(1, 1, wire.KindLost, "", nothing), rec(1, 10, wire.KindLost, "", nothing), rec(2, 10, wire.KindLost, "", nothing),
		rec(0, 10, wire.KindLost, "", nothing),
	}
	o := extract.Options{Since: 5, Process: func(n uint32) bool { return n == 2 }}
	if diff := cmp.Diff(whole[2:], read(t, extract.CutRange(&randomrun.Tape{Records: whole}, o))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNamesComeLate: call sites get their names even if these come behind the part, and only these.
func TestNamesComeLate(t *testing.T) {
	tag := func(time uint64, tag uint32, kind wire.Kind) wire.Record {
		return rec(1, time, kind, "x", func(r *wire.Record) { r.Tag, r.Op = tag, uint8(wire.TagsStack) })
	}
	whole := []wire.Record{
		tag(1, 1, wire.KindTag), tag(5, 2, wire.KindTag), tag(11, 1, wire.KindSite), tag(12, 3, wire.KindTag),
		tag(13, 3, wire.KindSite), tag(14, 2, wire.KindSite),
	}
	got := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 2, Until: 10}))
	want := []wire.Record{whole[0], whole[1], whole[2], whole[5]}
	want[2].Time, want[3].Time = 10, 10
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var errBroken = errors.New("bad block")

func TestErrorsOfTheSource(t *testing.T) {
	for _, o := range []extract.Options{{Since: 2}, {Until: 2}} {
		src := extract.CutRange(&randomrun.Tape{Records: []wire.Record{rec(1, 1, wire.KindSync, "", nothing)}, Err: errBroken}, o)
		var r wire.Record
		err := src.Next(&r)
		for err == nil {
			err = src.Next(&r)
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// FuzzRange takes anything: a part comes to its end, and is the same when it is read again.
func FuzzRange(f *testing.F) {
	f.Add([]byte{10, 2, 0, 0x11, 9, 1, 12, 4, 0, 0x11, 0, 2, 10, 1, 32, 0x21, 9, 3, 21, 0, 0, 3, 9, 4, 16, 0, 0, 3, 9, 5, 15, 0, 32, 1, 1, 6}, uint64(4), uint64(0))
	f.Add([]byte{19, 0, 0, 0, 0, 1, 17, 0, 0, 0, 0, 2, 22, 0, 0, 0, 0, 3, 4, 2, 0, 0, 0, 4, 5, 0, 0, 0, 0, 9}, uint64(5), uint64(6))
	f.Fuzz(func(t *testing.T, data []byte, since, until uint64) {
		var records []wire.Record
		for b := range slices.Chunk(data, 6) {
			if len(b) < 6 {
				break
			}
			r := wire.Record{Process: uint32(b[0] >> 6), Thread: uint32(b[1] >> 7), Event: wire.Event{
				Time: uint64(b[5]) * second / 4, Kind: wire.Kind(b[0] & 31), Outcome: wire.Outcome(b[1] & 7), Op: b[1] >> 3 & 15,
				Flags: b[2], Object: uint64(b[3] & 15), Link: uint64(b[3] >> 4), Size: uint64(b[4]), Granted: uint64(b[4] & 0xf0),
			}}
			if r.Kind.HasPayload() {
				r.Payload = b[3:5]
			}
			records = append(records, r)
		}
		o := extract.Options{Since: since % (70 * second), Until: until % (70 * second)}
		src := extract.CutRange(&randomrun.Tape{Records: records}, o)
		first := read(t, src)
		if err := src.Rewind(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, read(t, src)); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
		for i := range first {
			if o.Until > 0 && o.Until >= o.Since && first[i].Time > o.Until {
				t.Errorf("record %d at %d is after %d", i, first[i].Time, o.Until)
			}
		}
	})
}

// TestCopiesKeepTheirSites: the call site of a copy may have been seen before the part, and get its name behind it.
func TestCopiesKeepTheirSites(t *testing.T) {
	use := func(time, object uint64, flags uint8) wire.Record {
		return rec(1, time, wire.KindUse, "", func(r *wire.Record) {
			r.Op, r.Object, r.Flags, r.Tag, r.Size, r.Granted = uint8(wire.CommandCopy), object, flags, 5, 64, 16
		})
	}
	whole := []wire.Record{
		rec(1, second, wire.KindProcess, "copier", nothing),
		rec(1, second, wire.KindCreate, "", buffer),
		rec(1, second, wire.KindTag, "0123456789abcdef", func(r *wire.Record) { r.Tag, r.Op = 5, uint8(wire.TagsStack) }),
		use(second+1, 1, wire.FlagReads),
		use(second+1, 2, wire.FlagWrites),
		use(2*second, 1, wire.FlagReads),
		use(2*second, 2, wire.FlagWrites),
		use(3*second, 1, wire.FlagReads),
		rec(1, 3*second+1, wire.KindSite, "copy\tcopy.c\t7\tcopier+0x1\n", func(r *wire.Record) { r.Tag = 5 }),
	}
	got := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 2 * second, Until: 2*second + 1}))
	want := []wire.Record{whole[0], whole[2], whole[1], whole[5], whole[6], whole[8]}
	want[2].Flags, want[2].Granted = wire.FlagCarried, 64
	want[5].Time = 2*second + 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestObjectsAreCarriedOver with the counts that they had, whichever thread wrote them last.
func TestObjectsAreCarriedOver(t *testing.T) {
	object := func(process uint32, time uint64, f wire.ObjectFields) wire.Record {
		f.Time = time
		return wire.Record{Process: process, Thread: 7, Event: f.Event()}
	}
	whole := []wire.Record{
		object(2, second, wire.ObjectFields{Held: wire.HeldKernel, Tag: 3, Created: 2, Most: 2}),
		object(1, second, wire.ObjectFields{Held: wire.HeldEvent, Tag: 3, Created: 9, Released: 4, Most: 6}),
		object(1, second+1, wire.ObjectFields{Held: wire.HeldEvent, Tag: 3, Created: 8, Released: 4, Most: 5}),
		object(1, 2*second, wire.ObjectFields{Held: wire.HeldEvent, Tag: 3, Created: 20, Released: 4, Most: 16}),
	}
	want := []wire.Record{
		object(1, second+1, wire.ObjectFields{Held: wire.HeldEvent, Tag: 3, Created: 9, Released: 4, Most: 5, CarriedOver: true}),
		object(2, second, wire.ObjectFields{Held: wire.HeldKernel, Tag: 3, Created: 2, Most: 2, CarriedOver: true}),
		whole[3],
	}
	got := read(t, extract.CutRange(&randomrun.Tape{Records: whole}, extract.Options{Since: 2 * second}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
