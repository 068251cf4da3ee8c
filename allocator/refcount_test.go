package allocator

// This file is the part of the reference that counts.

// stats counts the gauges from the blocks, and raises the peaks.
func (r *reference) stats() Stats {
	s := &r.count
	s.BytesInUse, s.BytesWanted, s.BytesCached, s.BytesCooling = 0, 0, 0, 0
	s.Blocks, s.Largest, s.Ranges, s.Squares = 0, 0, 0, 0
	for _, b := range r.blocks {
		if b.state != decided || b.hit {
			s.Blocks++
		}
		switch b.state {
		case inUse:
			s.BytesInUse += b.size
			s.BytesWanted += b.wanted
		case cooling:
			s.BytesCooling += b.size
		case cached:
			s.BytesCached += b.size
			s.Largest = max(s.Largest, b.size)
			s.Ranges++
			s.Squares += float64(b.size) * float64(b.size) // small enough to be exact
		}
	}
	s.PeakInUse = max(s.PeakInUse, s.BytesInUse)
	s.PeakWanted = max(s.PeakWanted, s.BytesWanted)
	s.PeakCached = max(s.PeakCached, s.BytesCached)
	s.PeakCooling = max(s.PeakCooling, s.BytesCooling)
	s.PeakReserved = max(s.PeakReserved, s.BytesInUse+s.BytesCached+s.BytesCooling)
	return *s
}
