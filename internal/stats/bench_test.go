package stats

import (
	"fmt"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// mix feeds creates and releases of eight sizes at eight tags with 64 buffers live: one miss in 16, the others hits.
type mix struct {
	*Model
	record wire.Record
	n      uint64
	blocks [64]uint64
}

func newMix() *mix {
	m := &mix{Model: New(Options{Started: 1})}
	m.record.Process = 1
	return m
}

// pair feeds a release and a create.
func (m *mix) pair() {
	i := m.n % 64
	size := uint64(1000) << (m.n % 8)
	r := &m.record
	r.Time += 500
	if m.n >= 64 {
		r.Event = wire.Event{Time: r.Time, Kind: wire.KindRelease, Object: m.n - 63, Outcome: wire.OutcomeCached, Link: m.blocks[i]}
		m.Apply(r)
		if m.n%16 == 0 {
			r.Event = wire.Event{Time: r.Time, Kind: wire.KindEvict, Link: m.blocks[i], Granted: size}
			m.Apply(r)
		}
	}
	r.Event = wire.Event{
		Time: r.Time + 500, Kind: wire.KindCreate, Outcome: wire.OutcomeHit, Duration: 300, Object: m.n + 1,
		Size: size - 1, Granted: size, Tag: uint32(m.n % 8),
	}
	if m.n < 64 || m.n%16 == 0 {
		r.Outcome, r.Cost = wire.OutcomeMiss, 5000
		m.blocks[i] = m.n + 1
	}
	r.Link = m.blocks[i]
	m.Apply(r)
	m.n++
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := newMix()
	for range 100_000 {
		m.pair()
	}
	if got := testing.AllocsPerRun(200_000, m.pair); got != 0 {
		t.Errorf("%g allocations per create and release", got)
	}
	if got := m.Snapshot(); got.Unknown != 0 || got.Totals.LiveBuffers != 64 {
		t.Errorf("the stream is wrong: unknown %d, live %d", got.Unknown, got.Totals.LiveBuffers)
	}
}

func BenchmarkApply(b *testing.B) {
	m := newMix()
	before := m.events
	b.ReportAllocs()
	for b.Loop() {
		m.pair()
	}
	b.ReportMetric(float64(m.events-before)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

func BenchmarkSnapshot(b *testing.B) {
	for _, tags := range []uint32{10, 1000} {
		b.Run(fmt.Sprintf("tags=%d", tags), func(b *testing.B) {
			m := New(Options{Started: 1})
			for tag := range tags {
				for i := range uint64(4) {
					n := uint64(tag)*4 + i + 1
					m.Apply(&wire.Record{Process: 1, Event: wire.Event{
						Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: n, Link: n, Size: 64 << i, Granted: 64 << i, Tag: tag,
					}})
					if i%2 == 1 {
						m.Apply(&wire.Record{Process: 1, Event: wire.Event{Kind: wire.KindRelease, Object: n, Outcome: wire.OutcomeCached}})
					}
				}
			}
			now := uint64(100_000_000_000)
			b.ReportAllocs()
			for b.Loop() {
				now += slotNS
				m.AdvanceTime(now)
				m.Snapshot()
			}
		})
	}
}
