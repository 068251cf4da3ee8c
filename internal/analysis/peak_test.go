package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// play appends random creates and releases of several processes, call sites and pools.
func play(t *rapid.T, exits bool) *tape {
	s := newTape()
	type held struct {
		object, block, size uint64
		process             uint32
	}
	var live, free []held
	blocks, ended := uint64(0), map[uint32]bool{}
	for range rapid.IntRange(0, 120).Draw(t, "steps") {
		s.process = rapid.Uint32Range(1, 3).Draw(t, "process")
		size := rapid.Uint64Range(1, 5).Draw(t, "size") * 100
		tag := rapid.Uint32Range(0, 4).Draw(t, "tag")
		if ended[s.process] {
			continue
		}
		mine := slices.IndexFunc(free, func(h held) bool { return h.process == s.process })
		switch action := rapid.IntRange(0, 10).Draw(t, "action"); {
		case action < 2:
			live = append(live, held{s.driver(tag, size), 0, size, s.process})
		case action < 4 && mine >= 0:
			h := free[mine]
			free = slices.Delete(free, mine, mine+1)
			h.object = s.create(wire.OutcomeHit, tag, h.size/2, h.size, h.block)
			live = append(live, h)
		case action < 5:
			blocks++
			live = append(live, held{s.create(wire.OutcomeMiss, tag, size-1, size, blocks), blocks, size, s.process})
		case action == 10 && exits:
			s.exit()
			s.last().Thread, ended[s.process] = 0, true
			gone := func(h held) bool { return h.process == s.process }
			live, free = slices.DeleteFunc(live, gone), slices.DeleteFunc(free, gone)
		case len(live) > 0:
			at := rapid.IntRange(0, len(live)-1).Draw(t, "which")
			h := live[at]
			live = slices.Delete(live, at, at+1)
			s.process = h.process
			outcome := wire.OutcomeDriver
			if h.block > 0 {
				outcome = wire.OutcomeCached
				free = append(free, h)
			}
			s.release(h.object, outcome)
		}
	}
	return s
}

// naivePeak adds up everything after each record.
func naivePeak(s *tape) Peak {
	var top Peak
	live := map[uint64]wire.Event{}
	for i := range s.Records {
		r := &s.Records[i]
		switch r.Kind {
		case wire.KindCreate:
			live[r.Object] = r.Event
		case wire.KindRelease:
			delete(live, r.Object)
		}
		p := Peak{Time: r.Time - origin, Buffers: uint64(len(live))}
		tags := map[uint32]*PeakTag{}
		for _, e := range live {
			t := tags[e.Tag]
			if t == nil {
				t = &PeakTag{Name: fmt.Sprintf("tag %d", e.Tag)}
				if e.Tag == 0 {
					t.Name = "(untagged)"
				}
				tags[e.Tag] = t
			}
			t.InUse, t.Requested, t.Buffers = t.InUse+e.Granted, t.Requested+e.Size, t.Buffers+1
			p.InUse, p.Requested = p.InUse+e.Granted, p.Requested+e.Size
		}
		if p.InUse > top.InUse {
			for _, t := range tags {
				p.Tags = append(p.Tags, *t)
			}
			top = p
		}
	}
	slices.SortFunc(top.Tags, func(a, b PeakTag) int {
		return cmp.Or(cmp.Compare(b.InUse, a.InUse), cmp.Compare(b.Buffers, a.Buffers), cmp.Compare(a.Name, b.Name))
	})
	return top
}

func TestPeakIsTheNaiveOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := play(t, false)
		got := s.analyse(t).Peak
		got.Reserved, got.Fragmentation = 0, 0
		if diff := gocmp.Diff(naivePeak(s), got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestAgreesWithTheModel compares with what the dashboard would show, also when processes end.
func TestAgreesWithTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := play(t, true).analyse(t)
		totals := &a.Snapshot.Totals
		if a.Peak.InUse != totals.PeakInUse || totals.PeakInUse > 0 && a.Peak.Time != totals.PeakInUseTime-origin {
			t.Fatalf("peak %d at %d, the model has %d at %d", a.Peak.InUse, a.Peak.Time, totals.PeakInUse, totals.PeakInUseTime-origin)
		}
		var inUse, most, creates, lives, buffers, left uint64
		for _, tag := range a.Peak.Tags {
			inUse += tag.InUse
		}
		for _, v := range a.Timeline.InUse {
			most = max(most, v)
		}
		for _, bin := range a.Sizes {
			creates += bin.Count
		}
		for _, bin := range a.Lifetimes {
			lives += bin.Count
		}
		for _, leak := range a.Leaks {
			buffers += leak.Buffers
		}
		for i := range a.Snapshot.Processes {
			left += a.Snapshot.Processes[i].Totals.LiveBuffers
		}
		if inUse != a.Peak.InUse || most != a.Peak.InUse {
			t.Fatalf("tags have %d of the peak, the timeline %d: want %d", inUse, most, a.Peak.InUse)
		}
		if creates != totals.Creates || lives != totals.Releases || buffers != left {
			t.Fatalf("%d creates, %d lives, %d leaked: the model has %d, %d, %d", creates, lives, buffers, totals.Creates,
				totals.Releases, left)
		}
	})
}
