package stack

import "encoding/binary"

// registers are the known registers of one frame.
type registers struct {
	value [columns]uint64
	known uint32 // one bit each
}

func (r *registers) set(column uint8, value uint64) {
	r.value[column] = value
	r.known |= 1 << column
}

func (r *registers) get(column uint8) (uint64, bool) {
	return r.value[column], r.known>>column&1 != 0
}

// machine is the frame that a walk has reached, and the stack memory of the sample.
type machine struct {
	registers
	memory []byte
	bottom uint64 // address of memory[0]
	beyond bool   // a read went past the memory
}

// loadFromStack reads size bytes of the stack, at most 8.
func (m *machine) loadFromStack(address uint64, size uint64) (uint64, bool) {
	within := address - m.bottom
	if within > uint64(len(m.memory)) || uint64(len(m.memory))-within < size {
		m.beyond = m.beyond || address >= m.bottom
		return 0, false
	}
	if size == 8 {
		return binary.LittleEndian.Uint64(m.memory[within:]), true
	}
	var raw [8]byte
	copy(raw[:size], m.memory[within:])
	return binary.LittleEndian.Uint64(raw[:]), true
}

// stepToCaller goes to the caller's frame. It returns false if that is unknown.
func (m *machine) stepToCaller(r *row) bool {
	cfa, ok := m.evaluateRule(&r.cfa, 0)
	if r.cfa.how == offsetItself {
		cfa, ok = m.get(r.cfa.register)
		cfa += uint64(r.cfa.offset)
	}
	if !ok {
		return false
	}
	next := m.registers
	next.set(rsp, cfa) // by definition of the CFA, unless a rule differs
	next.known &^= 1 << rip
	for i := range r.saved {
		s := &r.saved[i]
		value, ok := m.evaluateRule(&s.rule, cfa)
		if ok {
			next.set(s.column, value)
		} else {
			next.known &^= 1 << s.column
		}
	}
	m.registers = next
	return m.known>>rip&1 != 0
}

// evaluateRule applies a rule in the frame with that CFA.
func (m *machine) evaluateRule(r *rule, cfa uint64) (uint64, bool) {
	switch r.how {
	case stored:
		return m.loadFromStack(cfa+uint64(r.offset), 8)
	case offsetItself:
		return cfa + uint64(r.offset), true
	case moved:
		return m.get(r.register)
	case storedBy:
		address, ok := m.evaluateExpression(r.expression, cfa)
		if !ok {
			return 0, false
		}
		return m.loadFromStack(address, 8)
	case computed:
		return m.evaluateExpression(r.expression, cfa)
	}
	return 0, false
}
