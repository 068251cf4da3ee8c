package stats

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// stream feeds a model with events one microsecond apart.
type stream struct {
	*Model
	time    uint64
	process uint32
	thread  uint32
}

const streamStart = 1_000_000_000

func newStream(o Options) *stream {
	o.Started = streamStart
	return &stream{Model: New(o), time: streamStart, process: 1, thread: 77}
}

func (s *stream) feed(e wire.Event, payload ...byte) {
	s.time += 1000
	if e.Time == 0 {
		e.Time = s.time
	}
	if e.Kind.HasPayload() {
		e.Size = uint64(len(payload))
	}
	s.Apply(&wire.Record{Event: e, Process: s.process, Thread: s.thread, Payload: payload})
}

func (s *stream) miss(object, block, size, granted uint64, tag uint32) {
	s.feed(wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Reason: uint8(wire.MissCold), Duration: 1000, Cost: 800,
		Object: object, Link: block, Size: size, Granted: granted, Tag: tag,
	})
}

func (s *stream) hit(object, block, size, granted uint64, tag uint32) {
	s.feed(wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Duration: 100,
		Object: object, Link: block, Size: size, Granted: granted, Tag: tag,
	})
}

func (s *stream) release(object uint64, outcome wire.Outcome) {
	s.feed(wire.Event{Kind: wire.KindRelease, Object: object, Outcome: outcome})
}

func (s *stream) evict(block uint64, why wire.Evict) {
	s.feed(wire.Event{Kind: wire.KindEvict, Link: block, Reason: uint8(why), Cost: 50})
}

func (s *stream) site(tag uint32, text string) {
	s.feed(wire.Event{Kind: wire.KindSite, Tag: tag}, []byte(text)...)
}

// tagNamed returns the row with a name; it fails the test when there is none.
func tagNamed(t *testing.T, s *Snapshot, name string) *Tag {
	t.Helper()
	for i := range s.Tags {
		if s.Tags[i].Name == name {
			return &s.Tags[i]
		}
	}
	t.Fatalf("no tag %q in %+v", name, s.Tags)
	return nil
}

// checkGauges compares in use, cached and cooling bytes.
func checkGauges(t *testing.T, s *Snapshot, inUse, cached, cooling uint64) {
	t.Helper()
	got := &s.Totals
	if got.InUse != inUse || got.Cached != cached || got.Cooling != cooling {
		t.Errorf("in use %d, cached %d, cooling %d; want %d, %d, %d",
			got.InUse, got.Cached, got.Cooling, inUse, cached, cooling)
	}
}
