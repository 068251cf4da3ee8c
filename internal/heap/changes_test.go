package heap_test

import (
	"fmt"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/heap"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// story writes down what an observer hears.
type story struct {
	heap.Base
	said  []string
	stays uint64 // in the pool
}

func (s *story) say(what string, args ...any) { s.said = append(s.said, fmt.Sprintf(what, args...)) }

func (s *story) ObjectAllocated(_ *heap.Process, o *heap.Object, b *heap.Block) {
	if b == nil {
		s.say("got %d", o.ID)
		return
	}
	s.say("got %d in %d", o.ID, b.ID)
}

func (s *story) ObjectReleased(_ *heap.Process, o *heap.Object, how heap.How) {
	s.say("%s %d", how, o.ID)
}
func (s *story) MemoryFreed(_ *heap.Process, o *heap.Object, _ heap.How) { s.say("freed %d", o.ID) }
func (s *story) BlockCooled(_ *heap.Process, b *heap.Block)              { s.say("cooled %d", b.ID) }
func (s *story) BlockGone(_ *heap.Process, b *heap.Block)                { s.say("gone %d", b.ID) }
func (s *story) ProcessLeaving(p *heap.Process)                          { s.say("leaving %d", p.Number) }
func (s *story) ProcessLeft(p *heap.Process)                             { s.say("left %d", p.Number) }

func (s *story) BlockPooled(_ *heap.Process, b *heap.Block) {
	if s.stays++; b.Serial != s.stays {
		s.say("stay %d is number %d", s.stays, b.Serial)
	}
	s.say("pooled %d at %d", b.ID, b.Freed)
}

func (s *story) BlockUnpooled(_ *heap.Process, b *heap.Block, how heap.How) {
	s.say("unpooled %d: %s", b.ID, how)
}

func (s *story) ProcessesFolded(list []*heap.Process) {
	for _, p := range list {
		s.say("folded %d", p.Number)
	}
}

// TestChanges: what observers hear of each record, and the gauges after it: bytes in use, requested, cached, cooling and room in slabs; objects,
// cached blocks, slabs and their bytes; hits, misses and records of unknown objects.
func TestChanges(t *testing.T) {
	const sub, carried = wire.FlagSubAlloc, wire.FlagCarried
	create := func(object uint64, outcome wire.Outcome, block uint64, flags uint8) wire.Event {
		return wire.Event{Kind: wire.KindCreate, Outcome: outcome, Object: object, Link: block, Size: 90, Granted: 100, Flags: flags}
	}
	release := func(object uint64, outcome wire.Outcome, flags uint8) wire.Event {
		return wire.Event{Kind: wire.KindRelease, Outcome: outcome, Object: object, Flags: flags}
	}
	cooled := func(block uint64, flags uint8) wire.Event {
		return wire.Event{Kind: wire.KindCooled, Link: block, Flags: flags}
	}
	evict := func(block uint64) wire.Event { return wire.Event{Kind: wire.KindEvict, Link: block} }
	slab := func(block uint64, access uint16, status int16) wire.Event {
		return wire.Event{Kind: wire.KindSlab, Link: block, Granted: 1000, Access: access, Status: status}
	}
	const hit, miss = wire.OutcomeHit, wire.OutcomeMiss
	for name, steps := range map[string][]struct {
		event wire.Event
		want  string
	}{
		"a block": {
			{create(1, miss, 7, 0), "got 1 in 7 | 100 90 0 0 0 | 1 0 0 0 | 0 1 0"},
			{wire.Event{Kind: wire.KindRetain, Object: 1}, " | 100 90 0 0 0 | 1 0 0 0 | 0 1 0"},
			{wire.Event{Kind: wire.KindRelease, Object: 1, Granted: 1}, " | 100 90 0 0 0 | 1 0 0 0 | 0 1 0"},
			{release(1, wire.OutcomeCached, 0), "released 1, freed 1, pooled 7 at 4 | 0 0 100 0 0 | 0 1 0 0 | 0 1 0"},
			{create(2, hit, 7, 0), "unpooled 7: hit, got 2 in 7 | 100 90 0 0 0 | 1 0 0 0 | 1 1 0"},
			{release(2, wire.OutcomeCooling, 0), "released 2, freed 2, pooled 7 at 6 | 0 0 0 100 0 | 0 0 0 0 | 1 1 0"},
			{cooled(7, 0), "cooled 7 | 0 0 100 0 0 | 0 1 0 0 | 1 1 0"},
			{cooled(7, 0), " | 0 0 100 0 0 | 0 1 0 0 | 1 1 0"},
			{evict(7), "unpooled 7: evicted, gone 7 | 0 0 0 0 0 | 0 0 0 0 | 1 1 0"},
			{evict(7), " | 0 0 0 0 0 | 0 0 0 0 | 1 1 1"},
			{cooled(7, 0), " | 0 0 0 0 0 | 0 0 0 0 | 1 1 2"},
			{cooled(7, sub), " | 0 0 0 0 0 | 0 0 0 0 | 1 1 2"},
		},
		"ends of blocks": {
			{create(1, miss, 7, 0), "got 1 in 7 | 100 90 0 0 0 | 1 0 0 0 | 0 1 0"},
			{release(1, wire.OutcomeRefused, 0), "released 1, freed 1 | 0 0 0 0 0 | 0 0 0 0 | 0 1 0"},
			{evict(7), "gone 7 | 0 0 0 0 0 | 0 0 0 0 | 0 1 0"},
			{create(2, miss, 8, 0), "got 2 in 8 | 100 90 0 0 0 | 1 0 0 0 | 0 2 0"},
			{release(2, wire.OutcomeDriver, 0), "released 2, freed 2, gone 8 | 0 0 0 0 0 | 0 0 0 0 | 0 2 0"},
			{create(3, miss, 9, 0), "got 3 in 9 | 100 90 0 0 0 | 1 0 0 0 | 0 3 0"},
			{cooled(9, 0), " | 100 90 0 0 0 | 1 0 0 0 | 0 3 0"}, // overtakes the release
			{release(3, wire.OutcomeCooling, 0), "released 3, freed 3, pooled 9 at 8 | 0 0 100 0 0 | 0 1 0 0 | 0 3 0"},
			{create(4, wire.OutcomeFailed, 0, 0), " | 0 0 100 0 0 | 0 1 0 0 | 0 3 0"},
		},
		"no pool": {
			{create(1, wire.OutcomeDriver, 0, 0), "got 1 | 100 90 0 0 0 | 1 0 0 0 | 0 0 0"},
			{wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: 2, Link: 1, Size: 40}, "got 2 | 100 90 0 0 0 | 2 0 0 0 | 0 0 0"},
			{release(1, wire.OutcomePinned, 0), "released 1 | 100 90 0 0 0 | 1 0 0 0 | 0 0 0"},
			{release(2, wire.OutcomeDriver, 0), "released 2, freed 2 | 100 90 0 0 0 | 0 0 0 0 | 0 0 0"},
			{release(1, wire.OutcomeDriver, 0), "freed 1 | 0 0 0 0 0 | 0 0 0 0 | 0 0 0"},
			{release(1, wire.OutcomeDriver, 0), " | 0 0 0 0 0 | 0 0 0 0 | 0 0 1"},
		},
		"slabs": {
			{slab(5, 1, -4), " | 0 0 0 0 0 | 0 0 0 0 | 0 0 0"},
			{slab(5, 0, 0), "pooled 5 at 2 | 0 0 0 0 1000 | 0 0 1 1000 | 0 0 0"},
			{create(1, miss, 10, sub), "got 1 in 10 | 100 90 0 0 900 | 1 0 1 1000 | 0 1 0"},
			{create(2, hit, 11, sub), "got 2 in 11 | 200 180 0 0 800 | 2 0 1 1000 | 1 1 0"},
			{create(3, hit, 12, sub), "got 3 in 12 | 300 270 0 0 700 | 3 0 1 1000 | 2 1 0"},
			{release(1, wire.OutcomeCached, sub), "released 1, freed 1, gone 10 | 200 180 0 0 800 | 2 0 1 1000 | 2 1 0"},
			{release(2, wire.OutcomeCooling, sub), "released 2, freed 2, pooled 11 at 7 | 100 90 0 100 800 | 1 0 1 1000 | 2 1 0"},
			{cooled(11, sub), "unpooled 11: cooled, gone 11 | 100 90 0 0 900 | 1 0 1 1000 | 2 1 0"},
			{release(3, wire.OutcomeCooling, sub), "released 3, freed 3, pooled 12 at 9 | 0 0 0 100 900 | 0 0 1 1000 | 2 1 0"},
			{slab(6, 0, 0), "pooled 6 at 10 | 0 0 0 100 1900 | 0 0 2 2000 | 2 1 0"},
			{slab(8, 1, 0), "pooled 8 at 11 | 0 0 0 100 2900 | 0 0 3 3000 | 2 1 0"},
			{evict(8), "unpooled 8: evicted, gone 8 | 0 0 0 100 1900 | 0 0 2 2000 | 2 1 0"},
			{evict(6), "unpooled 6: evicted, gone 6 | 0 0 0 100 900 | 0 0 1 1000 | 2 1 0"},
			{evict(5), "unpooled 5: evicted, gone 5, unpooled 12: evicted, gone 12 | 0 0 0 0 0 | 0 0 0 0 | 2 1 0"},
		},
		"a slab whose end was lost": {
			{slab(5, 0, 0), "pooled 5 at 1 | 0 0 0 0 1000 | 0 0 1 1000 | 0 0 0"},
			{slab(5, 0, 0), "unpooled 5: unknown, gone 5, pooled 5 at 2 | 0 0 0 0 1000 | 0 0 1 1000 | 0 0 1"},
		},
		"a release on its way": {
			{create(1, miss, 7, 0), "got 1 in 7 | 100 90 0 0 0 | 1 0 0 0 | 0 1 0"},
			{create(2, hit, 7, 0), "freed 1, got 2 in 7 | 100 90 0 0 0 | 2 0 0 0 | 1 1 0"},
			{release(1, wire.OutcomeCached, 0), "released 1 | 100 90 0 0 0 | 1 0 0 0 | 1 1 0"},
			{release(2, wire.OutcomeCached, 0), "released 2, freed 2, pooled 7 at 4 | 0 0 100 0 0 | 0 1 0 0 | 1 1 0"},
		},
		"a release that was lost": {
			{create(1, miss, 7, 0), "got 1 in 7 | 100 90 0 0 0 | 1 0 0 0 | 0 1 0"},
			{create(1, miss, 8, 0), "freed 1, unknown 1, gone 7, got 1 in 8 | 100 90 0 0 0 | 1 0 0 0 | 0 2 1"},
			{create(1, miss, 9, carried), "freed 1, unknown 1, gone 8, got 1 in 9 | 100 90 0 0 0 | 1 0 0 0 | 0 2 1"},
			{release(1, wire.OutcomeCached, carried), "released 1, freed 1, pooled 9 at 4 | 0 0 100 0 0 | 0 1 0 0 | 0 2 1"},
		},
	} {
		s := &story{}
		h := heap.New(heap.Options{}, s)
		for i, step := range steps {
			s.said = nil
			step.event.Time = uint64(i + 1)
			p := h.Apply(&wire.Record{Event: step.event, Process: 1, Thread: 1})
			got := fmt.Sprintf("%s | %d %d %d %d %d | %d %d %d %d | %d %d %d", strings.Join(s.said, ", "), h.InUse, h.Requested, h.Cached, h.Cooling, h.Room,
				h.Live, h.CachedBlocks, h.Slabs, h.SlabBytes, p.Hits, p.Misses, h.Unknown)
			if got != step.want || p.Gauges != h.Gauges || p.Population != h.Population {
				t.Errorf("%s: after step %d (%s)\n%s, want\n%s; of the process %+v %+v", name, i+1, step.event.Kind, got, step.want, p.Gauges, p.Population)
			}
		}
	}
}

// TestProcessesMakeRoom: the oldest processes that have left make room for others, a sixteenth of all at once, except for the first; without
// room, others are counted.
func TestProcessesMakeRoom(t *testing.T) {
	for name, c := range map[string]struct {
		options heap.Options
		running uint32 // from this number on, processes do not end
		folded  string
		unknown uint64
	}{
		"too many processes":      {heap.Options{EndProcesses: true, ProcessesMax: 32}, 100, "2 3 4, 5 6 7", 0},
		"too many have left":      {heap.Options{EndProcesses: true, LeftMax: 30}, 100, "2 3 4, 5 6 7", 0},
		"too few have left":       {heap.Options{EndProcesses: true, ProcessesMax: 32}, 3, "2", 4},
		"the first has left only": {heap.Options{EndProcesses: true, ProcessesMax: 32}, 2, "", 5},
		"room for all":            {heap.Options{EndProcesses: true}, 100, "", 0},
	} {
		s := &story{}
		h := heap.New(c.options, s)
		var folds []string
		for number := uint32(1); number <= 37; number++ {
			s.said = nil
			h.Apply(&wire.Record{Process: number, Thread: 1, Event: wire.Event{Kind: wire.KindCreate, Object: 1, Size: 1, Time: 1}})
			if number < c.running {
				h.NoteProcessEnded(number)
			}
			var fold []string
			for _, what := range s.said {
				if n, ok := strings.CutPrefix(what, "folded "); ok {
					fold = append(fold, n)
				}
			}
			if fold != nil {
				folds = append(folds, strings.Join(fold, " "))
			}
		}
		if got := strings.Join(folds, ", "); got != c.folded || h.Unknown != c.unknown || h.Crowded != (c.unknown > 0) {
			t.Errorf("%s: folded %q, %d unknown, crowded %v, want %q and %d", name, got, h.Unknown, h.Crowded, c.folded, c.unknown)
		}
		for i, p := range h.Processes() {
			if p.Place != i || h.FindProcess(p.Number) != p {
				t.Errorf("%s: process %d has place %d of %d", name, p.Number, p.Place, i)
			}
		}
		if c.folded != "" && (h.FindProcess(2) != nil || h.Apply(&wire.Record{Process: 2}) != nil) {
			t.Errorf("%s: a process that was folded is back", name)
		}
	}
}
