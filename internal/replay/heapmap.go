package replay

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// HeapMapOfMember returns the offsets of a member's sub-allocations now. It has at most stats.MappedSlabsMax slabs of each
// process, and no more in all.
func (b *Batch) HeapMapOfMember(member int) *stats.HeapMap {
	m := &stats.HeapMap{}
	for _, p := range b.members[member].processes {
		if p == nil {
			continue
		}
		present := p.policy.PresentPool()
		m.Total += present.Stats().Slabs
		for _, s := range present.SlabMaps(stats.MappedSlabsMax) {
			m.Slabs = append(m.Slabs, stats.MappedSlab{Process: b.resolver.script.processNumber(p.number), SlabMap: s})
		}
	}
	slices.SortStableFunc(m.Slabs, func(a, b stats.MappedSlab) int {
		return cmp.Or(cmp.Compare(b.ScatteredBytes(), a.ScatteredBytes()), cmp.Compare(b.FreeBytes(), a.FreeBytes()))
	})
	m.Slabs = m.Slabs[:min(len(m.Slabs), stats.MappedSlabsMax)]
	return m
}

// SlabMapper simulates the recorded policy to map its slabs: the same requests in the same order give the same offsets.
// It is a member of its batch while that policy carves.
type SlabMapper struct {
	current  Configuration
	capacity uint64
	batch    *Batch
	member   int    // -1: not in the batch
	time     uint64 // of the latest record
	since    uint64 // allocations before this time are unknown; 0: none are
}

// NewSlabMapper returns a mapper for a program that starts under a configuration. capacity is the memory of its device;
// 0: unlimited. The mapper has a batch of its own until Join gives it another.
func NewSlabMapper(current Configuration, capacity uint64) *SlabMapper {
	s := &SlabMapper{current: current, capacity: capacity}
	s.JoinBatch(NewBatch(), false)
	return s
}

// JoinBatch moves the mapper to another batch. late: records before that batch are missing.
func (s *SlabMapper) JoinBatch(b *Batch, late bool) {
	s.batch, s.member = b, -1
	s.joinIfCarving(late)
}

// joinIfCarving joins the batch if the current policy carves, and leaves it if not.
func (s *SlabMapper) joinIfCarving(late bool) {
	if carves := allocator.UsesSlabs(s.current.Policy); carves == (s.member >= 0) {
		return
	} else if !carves {
		s.LeaveBatch()
		return
	}
	member, err := s.batch.AddSimulation(Options{Policy: s.current.Policy, Settings: s.current.Settings, Capacity: s.capacity, AsRecorded: true})
	if err != nil { // the target has refused these settings, too
		return
	}
	s.member, s.since = member, 0
	if late {
		s.since = max(s.time, 1)
	}
}

// LeaveBatch leaves the batch.
func (s *SlabMapper) LeaveBatch() {
	if s.member >= 0 {
		s.batch.RemoveMember(s.member)
		s.member = -1
	}
}

// IsIdle reports that the policy does not carve, so that there is nothing to map.
func (s *SlabMapper) IsIdle() bool { return s.member < 0 }

// PlayUntil plays what the batch has read up to a time. change is the payload of the last record if that changes a limit or
// the policy, else nil. After an error there is no map.
func (s *SlabMapper) PlayUntil(time uint64, change []byte) error {
	s.time = max(s.time, time)
	if s.member >= 0 {
		if err := s.batch.PlayMember(s.member); err != nil {
			return err
		}
	}
	if change != nil {
		s.current, _ = s.current.AfterChange(change)
		s.joinIfCarving(true)
	}
	return nil
}

// PlayRecord reads and plays one record, in a batch of the mapper's own.
func (s *SlabMapper) PlayRecord(r *wire.Record) {
	if s.member < 0 && r.Kind != wire.KindDevice && r.Kind != wire.KindContext && r.Kind != wire.KindLimit {
		return
	}
	if r.CarriedOver() && s.since == 0 {
		s.since = max(r.Time, 1)
	}
	s.batch.ReadRecord(r)
	var change []byte
	if r.Kind == wire.KindLimit && r.AsLimit().Status() == 0 {
		change = r.Payload
	}
	if s.PlayUntil(r.Time, change) != nil {
		s.LeaveBatch()
	}
	s.batch.ForgetReadSteps()
}

// CurrentHeapMap returns the map of this moment, nil while the policy does not carve.
func (s *SlabMapper) CurrentHeapMap() *stats.HeapMap {
	if s.member < 0 {
		return nil
	}
	m := s.batch.HeapMapOfMember(s.member)
	m.Time, m.Since = s.time, s.since
	return m
}
