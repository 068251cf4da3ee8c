package replay

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// HeapMap returns where a voice's sub-allocations lie now. Of each process it has at most stats.MappedSlabsMax slabs, and
// no more in all.
func (c *Batch) HeapMap(voice int) *stats.HeapMap {
	m := &stats.HeapMap{}
	for _, p := range c.players[voice].processes {
		if p == nil {
			continue
		}
		m.Total += p.policy.Stats().Slabs
		for _, s := range p.policy.MapSlabs(stats.MappedSlabsMax) {
			m.Slabs = append(m.Slabs, stats.MappedSlab{Process: c.resolver.script.origin(p.number), SlabMap: s})
		}
	}
	slices.SortStableFunc(m.Slabs, func(a, b stats.MappedSlab) int {
		return cmp.Or(cmp.Compare(b.Scattered(), a.Scattered()), cmp.Compare(b.Free(), a.Free()))
	})
	m.Slabs = m.Slabs[:min(len(m.Slabs), stats.MappedSlabsMax)]
	return m
}

// Slabs follows the recorded policy, as it decides, for a map of its slabs: the same requests in the same order give the
// same offsets. It takes part in a batch while that policy carves.
type Slabs struct {
	present  Configuration
	capacity uint64
	batch    *Batch
	voice    int    // -1: none
	time     uint64 // of the latest record
	since    uint64 // what was there before is not known; 0: nothing was
}

// NewSlabs returns one for a program that begins under a configuration, with so much memory on its device, 0: any. It
// has a batch of its own until Join gives it another one.
func NewSlabs(present Configuration, capacity uint64) *Slabs {
	s := &Slabs{present: present, capacity: capacity}
	s.Join(NewBatch(), false)
	return s
}

// Join lets it take part in another batch. Late: records are missing before that.
func (s *Slabs) Join(b *Batch, late bool) {
	s.batch, s.voice = b, -1
	s.follow(late)
}

// follow begins or ends to take part, as the present policy is.
func (s *Slabs) follow(late bool) {
	if carves := allocator.Carves(s.present.Policy); carves == (s.voice >= 0) {
		return
	} else if !carves {
		s.Leave()
		return
	}
	voice, err := s.batch.Add(Options{Policy: s.present.Policy, Settings: s.present.Settings, Capacity: s.capacity, AsRecorded: true})
	if err != nil { // settings that the target has refused as well
		return
	}
	s.voice, s.since = voice, 0
	if late {
		s.since = max(s.time, 1)
	}
}

// Leave ends its part in the batch.
func (s *Slabs) Leave() {
	if s.voice >= 0 {
		s.batch.Remove(s.voice)
		s.voice = -1
	}
}

// Idle reports that the policy does not carve: there is nothing to follow.
func (s *Slabs) Idle() bool { return s.voice < 0 }

// Play plays what the batch has read, up to a time. Change is what its last record says if that is of a limit or the
// policy, else nil. An error says that there will be no map any more.
func (s *Slabs) Play(time uint64, change []byte) error {
	s.time = max(s.time, time)
	if s.voice >= 0 {
		if err := s.batch.Play(s.voice); err != nil {
			return err
		}
	}
	if change != nil {
		s.present, _ = s.present.After(change)
		s.follow(true)
	}
	return nil
}

// Take reads and plays one record, in a batch of its own.
func (s *Slabs) Take(r *wire.Record) {
	if s.voice < 0 && r.Kind != wire.KindDevice && r.Kind != wire.KindContext && r.Kind != wire.KindLimit {
		return
	}
	if r.CarriedOver() && s.since == 0 {
		s.since = max(r.Time, 1)
	}
	s.batch.Read(r)
	var change []byte
	if r.Kind == wire.KindLimit && r.AsLimit().Status() == 0 {
		change = r.Payload
	}
	if s.Play(r.Time, change) != nil {
		s.Leave()
	}
	s.batch.Clear()
}

// Map returns the map of this moment, nil while the policy does not carve.
func (s *Slabs) Map() *stats.HeapMap {
	if s.voice < 0 {
		return nil
	}
	m := s.batch.HeapMap(s.voice)
	m.Time, m.Since = s.time, s.since
	return m
}
