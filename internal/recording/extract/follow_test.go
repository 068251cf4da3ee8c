package extract_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording/extract"
	"codeberg.org/gpumemtop/gpumemtop/internal/testkit/randomrun"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestFollowerGivesWhatRangeGives: parts that begin and end while a run goes on are those of the whole run.
func TestFollowerGivesWhatRangeGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := randomrun.DrawRun(t, randomrun.Options{Apart: true})
		memory := heap.New(heap.Options{EndProcesses: true})
		follower := extract.NewFollower(memory)
		at := 0
		take := func(to int) (list []wire.Record) {
			for ; at < to; at++ {
				r := records[at]
				memory.Apply(&r)
				if follower.TakeRecord(&r) {
					r.Payload = slices.Clone(r.Payload)
					list = append(list, r)
				}
			}
			return list
		}
		for range 2 {
			start := at + slices.IndexFunc(records[at:], func(r wire.Record) bool { return !r.Kind.IsMadeLater() })
			if start < at {
				return
			}
			from := rapid.IntRange(start, len(records)-1).Draw(t, "from")
			if records[from].Kind.IsMadeLater() {
				from = start
			}
			if len(take(from)) != 0 {
				t.Fatal("a record is in no part")
			}
			got := []wire.Record{}
			since := records[from].Time
			if err := follower.BeginPart(since, func(r *wire.Record) error {
				kept := *r
				kept.Payload = slices.Clone(r.Payload)
				got = append(got, kept)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			to := rapid.IntRange(from+1, len(records)).Draw(t, "to")
			for to < len(records) && records[to].Kind.IsMadeLater() { // it would belong to the part
				to++
			}
			got = append(got, take(to)...)
			until := since
			for i := range records[from:to] {
				if r := &records[from+i]; !r.Kind.IsMadeLater() {
					until = r.Time
				}
			}
			follower.EndPart(until)
			want := read(t, extract.CutRange(&randomrun.Tape{Records: records}, extract.Options{Since: since, Until: until}))
			more := to
			for more < len(records) && !follower.HasAllNames() {
				more++
				got = append(got, take(more)...)
			}
			for i := range got {
				if got[i].Kind.IsMadeLater() {
					got[i].Time = min(got[i].Time, until)
				}
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%d to %d of %d records (-range +follower):\n%s", from, to, len(records), diff)
			}
			follower.ForgetPart()
		}
	})
}

// Of a process that is gone a bit remains: a shell may start any number.
func TestGoneProcessesTakeABit(t *testing.T) {
	const many = 200_000
	used := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	f := extract.NewFollower(heap.New(heap.Options{}))
	before := used()
	for process := range uint32(many) {
		f.TakeRecord(&wire.Record{Process: process + 1, Event: wire.Event{Time: uint64(process) + 1, Kind: wire.KindExit}})
	}
	if bytes := used() - before; bytes > many {
		t.Errorf("%d bytes for %d processes", bytes, many)
	}
	runtime.KeepAlive(f)
}
