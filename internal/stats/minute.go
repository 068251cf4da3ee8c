package stats

// minute keeps the samples of the last minute, one for each slot. A sample in the list never changes, so snapshots share the
// list.
type minute struct {
	samples []Sample
	most    Sample // gauges when most was in use in the present slot
	slot    uint64 // present
}

// closeSlots closes the slots before slot. gauges are the present values, counts those of the slot that ends.
func (m *minute) closeSlots(started, slot uint64, gauges Sample, counts *Rates) {
	if slot > m.slot+MinuteMax { // nothing happened for longer than a minute
		m.slot, m.most, counts = slot-MinuteMax, Sample{}, &Rates{}
	}
	for ; m.slot < slot; m.slot++ {
		s := gauges
		s.Time = started + (m.slot+1)*slotNS
		s.Hits, s.Misses, s.Creates, s.DriverNS, s.Reasons = counts.Hits, counts.Misses, counts.Creates, counts.DriverNanos, counts.Reasons
		s.mergeNextSample(&m.most)
		m.appendSample(s)
		m.most, counts = Sample{}, &Rates{}
	}
}

// appendSample makes room by copying the last minute.
func (m *minute) appendSample(s Sample) {
	if len(m.samples) == cap(m.samples) {
		kept := m.samples[max(0, len(m.samples)-MinuteMax):]
		m.samples = append(make([]Sample, 0, 2*MinuteMax), kept...)
	}
	m.samples = append(m.samples, s)
}

// listSamples returns the samples, which are immutable.
func (m *minute) listSamples() []Sample {
	from := max(0, len(m.samples)-MinuteMax)
	return m.samples[from:len(m.samples):len(m.samples)]
}
