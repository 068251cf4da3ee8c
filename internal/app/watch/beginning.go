package watch

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// What a beginning has.
const (
	BeginningNS       = 2_000_000_000 // from the first request on
	BeginningRequests = 128           // at least
	beginningMost     = 1 << 17       // steps
)

// Beginning keeps what a program does at its beginning, for replays. It is a tap before an experimenter. Make one with NewBeginning.
type Beginning struct {
	*Experimenter
	Requests int            // that a pool can serve, until there is a tape
	Enough   chan struct{}  // closed when there is a tape
	Tape     *replay.Loaded // once Enough is closed

	batch *replay.Batch // nil: nothing more is kept
	from  uint64        // time of the first request
}

// NewBeginning returns a beginning without an experimenter.
func NewBeginning() *Beginning {
	return &Beginning{Enough: make(chan struct{}), batch: replay.NewBatch()}
}

// TakeRecord implements session.Tap.
func (b *Beginning) TakeRecord(r *wire.Record) {
	if b.batch != nil && replay.ConcernsPolicy(&r.Event) {
		b.addAndCountRequest(r)
	}
	b.Experimenter.TakeRecord(r)
}

func (b *Beginning) addAndCountRequest(r *wire.Record) {
	b.batch.ReadRecord(r)
	if r.Kind == wire.KindCreate && (r.AsCreate().Outcome() == wire.OutcomeHit || r.AsCreate().Outcome() == wire.OutcomeMiss) {
		if b.Requests++; b.Requests == 1 {
			b.from = r.Time
		}
	}
	if b.Requests >= BeginningRequests && r.Time > b.from+BeginningNS || b.batch.EventCount() >= beginningMost {
		var kept replay.Loaded
		b.batch.AppendReadSteps(&kept)
		b.Tape, b.batch = b.batch.CopyOfAppended(&kept), nil
		close(b.Enough)
	}
}
