package stats

// Tick moves time on without an event, so that windows and history go on while the program is silent. now is
// CLOCK_MONOTONIC ns; an earlier time than the latest seen changes nothing.
func (m *Model) Tick(now uint64) {
	m.carriedAll()
	m.advance(now)
}

func (m *Model) begin(time uint64) {
	m.begun = true
	m.heap.Advance(time)
	m.options.Started, m.turning = time, time+slotNS
}

// advance moves time on. Gauges had their present values until now.
func (m *Model) advance(time uint64) {
	if !m.begun {
		m.begin(time)
	}
	if time <= m.heap.Now() {
		return
	}
	if time >= m.turning {
		m.turn(time)
	}
	m.heap.Advance(time)
}

// turn closes the slots that end until a time.
func (m *Model) turn(time uint64) {
	started := m.options.Started
	slot := (time - started) / slotNS
	gauges := m.sample()
	m.history.advance(started, slot, gauges)
	m.minute.advance(started, slot, gauges, m.window.current())
	m.books.turn(slot)
	m.turnProcesses(slot)
	m.turning = started + (slot+1)*slotNS
	m.second = slot / windowSlots
	m.holdings.advance(m.second)
}

// sample reads the gauges.
func (m *Model) sample() Sample {
	s := m.ledger.sample(m.spread())
	s.Machine = m.machine.reported()
	return s
}
