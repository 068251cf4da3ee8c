package watch

import (
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// What a beginning has.
const (
	BeginningNS       = 2_000_000_000 // from the first request on
	BeginningRequests = 128           // at least
	beginningMost     = 1 << 17       // records
)

// Beginning keeps the records of a run's beginning, which can then be read again and again. It is a tap before an experimenter.
type Beginning struct {
	*Experimenter
	Requests int           // that a pool can serve, until it was full
	Enough   chan struct{} // closed when it is full

	records []wire.Record
	from    uint64 // time of the first request
	full    bool   // nothing more is kept
	read    int    // records
}

// Take implements session.Tap.
func (b *Beginning) Take(r *wire.Record) {
	if !b.full && replay.Matters(&r.Event) {
		b.keep(r)
	}
	b.Experimenter.Take(r)
}

func (b *Beginning) keep(r *wire.Record) {
	kept := *r
	kept.Payload = nil
	if r.Kind == wire.KindLimit { // no other record's payload is read
		kept.Payload = append(kept.Payload, r.Payload...)
	}
	b.records = append(b.records, kept)
	if r.Kind == wire.KindCreate && (r.AsCreate().Outcome() == wire.OutcomeHit || r.AsCreate().Outcome() == wire.OutcomeMiss) {
		if b.Requests++; b.Requests == 1 {
			b.from = r.Time
		}
	}
	if b.Requests >= BeginningRequests && r.Time > b.from+BeginningNS || len(b.records) == beginningMost {
		b.full = true
		close(b.Enough)
	}
}

// Next implements recording.Source.
func (b *Beginning) Next(r *wire.Record) error {
	if b.read == len(b.records) {
		return io.EOF
	}
	*r = b.records[b.read]
	b.read++
	return nil
}

// Rewind implements recording.Source.
func (b *Beginning) Rewind() error {
	b.read = 0
	return nil
}
