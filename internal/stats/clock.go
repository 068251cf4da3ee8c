package stats

// clock is the time of the session in slots of 100 ms and in seconds, both since its start. All observers count by these slots
// and seconds. heap.Heap has the time in ns.
type clock struct {
	begun        bool
	started      uint64 // ns, CLOCK_MONOTONIC
	turning      uint64 // when the present slot ends
	slot, second uint64 // present
}

func (c *clock) beginAt(time uint64) { c.begun, c.started, c.turning = true, time, time+slotNS }

// beginSlot begins the slot that contains a time.
func (c *clock) beginSlot(time uint64) {
	c.slot = (time - c.started) / slotNS
	c.second = c.slot / windowSlots
	c.turning = c.started + (c.slot+1)*slotNS
}

// AdvanceTime moves time on without an event, so that windows and history go on while the program is silent. now is
// CLOCK_MONOTONIC ns; an earlier time than the latest seen changes nothing.
func (m *Model) AdvanceTime(now uint64) {
	m.endCarriedOver()
	m.advanceTimeTo(now)
}

// advanceTimeTo moves time on. The gauges have not changed since the last call.
func (m *Model) advanceTimeTo(time uint64) {
	if !m.clock.begun {
		m.beginClock(time)
	}
	if time <= m.heap.Now() {
		return
	}
	if time >= m.clock.turning {
		m.closeSlots(time)
	}
	m.heap.AdvanceTime(time)
}

func (m *Model) beginClock(time uint64) {
	m.clock.beginAt(time)
	m.heap.AdvanceTime(time)
}

// closeSlots closes the slots that end before a time.
func (m *Model) closeSlots(time uint64) {
	m.clock.beginSlot(time)
	m.noteIdlePeaks(m.clock.turning - slotNS)
	m.totals.beginSlot(m.sampleOfGauges())
	for _, p := range m.processes.list {
		m.totals.beginProcessSlot(p)
	}
	m.objects.advanceToSecond(m.clock.second)
}

// sampleOfGauges reads the gauges.
func (m *Model) sampleOfGauges() Sample {
	s := m.totals.run.sampleOfGauges(m.processes.freeSpread())
	s.Machine = m.machine.reportedBytes()
	return s
}
