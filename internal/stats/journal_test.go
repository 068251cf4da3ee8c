package stats

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// namedTag is a tag of a process; several have the same name.
type namedTag struct {
	process, tag uint32
}

func (n namedTag) name() string { return fmt.Sprintf("f%d", n.tag%3) }

// playNames feeds a random run in which each name comes at a random time, if it is to come late. It returns the last snapshot,
// and the true peak of each name.
func playNames(seed uint64, late bool) (*Snapshot, map[string]uint64) {
	const steps, tags = 400, 9
	run, when := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	s := newStream(Options{})
	due := map[int][]namedTag{}
	for tag := range uint32(tags) {
		for process := uint32(1); process <= 2; process++ {
			at := 0
			if late {
				at = when.IntN(steps)
			}
			due[at] = append(due[at], namedTag{process, tag + 1})
		}
	}
	for tag := range uint32(tags) {
		for s.process = 1; s.process <= 2; s.process++ {
			s.feed(wire.Event{Kind: wire.KindTag, Tag: tag + 1, Op: uint8(wire.TagsStack)})
		}
	}
	inUse, peaks := map[string]uint64{}, map[string]uint64{}
	type live struct {
		namedTag
		object, size uint64
	}
	var held []live
	for i := range steps {
		for _, n := range due[i] {
			s.process = n.process
			s.site(n.tag, n.name()+"\ta.c\t1\tx+1")
		}
		if run.IntN(10) < 5 || len(held) == 0 {
			n := live{namedTag{1 + run.Uint32N(2), 1 + run.Uint32N(tags)}, uint64(i + 1), 1 + run.Uint64N(1000)}
			held = append(held, n)
			s.process = n.process
			s.miss(n.object, n.object, n.size, n.size, n.tag)
			inUse[n.name()] += n.size
			peaks[n.name()] = max(peaks[n.name()], inUse[n.name()])
		} else {
			at := run.IntN(len(held))
			n := held[at]
			held[at] = held[len(held)-1]
			held = held[:len(held)-1]
			s.process = n.process
			s.release(n.object, wire.OutcomeDriver)
			inUse[n.name()] -= n.size
		}
		if when.IntN(50) == 0 && late {
			s.Snapshot()
		}
	}
	return s.Snapshot(), peaks
}

// TestPeaksWhenNamesComeLate demands that rows show the same whenever their names came.
func TestPeaksWhenNamesComeLate(t *testing.T) {
	for seed := range uint64(200) {
		early, peaks := playNames(seed, false)
		late, _ := playNames(seed, true)
		if len(early.Tags) != len(late.Tags) || len(peaks) != len(late.Tags) {
			t.Fatalf("seed %d: %d rows and %d, of %d names", seed, len(early.Tags), len(late.Tags), len(peaks))
		}
		same := func(whose string, a, b []Tag) {
			for i := range a {
				w := &a[i]
				l := tagNamed(t, &Snapshot{Tags: b}, w.Name)
				if w.PeakInUse != l.PeakInUse || w.InUse != l.InUse || w.Creates != l.Creates || w.Live != l.Live {
					t.Fatalf("seed %d, %s, %s: peak %d with early names, %d with late ones", seed, whose, w.Name, w.PeakInUse, l.PeakInUse)
				}
			}
		}
		same("all", early.Tags, late.Tags)
		for i := range early.Processes {
			for k := range late.Processes {
				if early.Processes[i].Number == late.Processes[k].Number {
					same("a process", early.Processes[i].Tags, late.Processes[k].Tags)
				}
			}
		}
		for i := range late.Tags {
			if w := &late.Tags[i]; w.PeakInUse != peaks[w.Name[len("a.c:1 "):]] {
				t.Fatalf("seed %d, %s: peak %d, want %v", seed, w.Name, w.PeakInUse, peaks)
			}
		}
	}
}

// TestNamesThatNeverCome fills a journal: it stays bounded, and peaks are at least what rows hold.
func TestNamesThatNeverCome(t *testing.T) {
	s := newStream(Options{})
	for tag := range uint32(3) {
		s.feed(wire.Event{Kind: wire.KindTag, Tag: tag + 1, Op: uint8(wire.TagsStack)})
	}
	s.miss(1, 1, 64, 64, 1)
	s.miss(2, 2, 64, 64, 2)
	for range journalMax/2 + 10 {
		s.miss(3, 3, 64, 64, 3)
		s.release(3, wire.OutcomeDriver)
	}
	if n := len(s.sites.journal.changes); n > journalMax || len(s.sites.journal.waiting) != 0 {
		t.Fatalf("%d changes, %d rows waiting", n, len(s.sites.journal.waiting))
	}
	for tag := range uint32(3) {
		s.site(tag+1, "f\ta.c\t1\tx+1")
	}
	if got := tagNamed(t, s.Snapshot(), "a.c:1 f").PeakInUse; got < 128 {
		t.Errorf("peak %d", got)
	}
	if s.miss(4, 4, 64, 64, 4); cap(s.sites.journal.changes) > 16 {
		t.Errorf("the journal keeps room for %d", cap(s.sites.journal.changes))
	}
}
