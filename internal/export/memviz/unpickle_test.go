package memviz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// machine reads pickles of the opcodes that are written, and no others; and only as PyTorch's viewer does: in one
// APPENDS are no more than chunk things.
type machine struct {
	stack []any
	marks []int
	memo  []any
}

// reference makes lists and dictionaries things that can be changed in place.
type (
	listOf struct{ items []any }
	dictOf map[string]any
)

func unpickle(b []byte) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is cut off or damaged: %v", r)
		}
	}()
	m := &machine{}
	if b[0] != opProto || b[1] != 4 {
		return nil, errors.New("it does not begin with PROTO 4")
	}
	for b = b[2:]; ; {
		op := b[0]
		b = b[1:]
		if op == opStop {
			if len(b) > 0 || len(m.stack) != 1 || len(m.marks) > 0 {
				return nil, fmt.Errorf("at STOP %d bytes, %d things, %d marks are left", len(b), len(m.stack), len(m.marks))
			}
			return m.stack[0], nil
		}
		if b, err = m.do(op, b); err != nil {
			return nil, err
		}
	}
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

func (m *machine) do(op byte, b []byte) ([]byte, error) {
	switch op {
	case opMark:
		m.marks = append(m.marks, len(m.stack))
	case opDict:
		m.push(dictOf{})
	case opList:
		m.push(&listOf{})
	case opText:
		n := binary.LittleEndian.Uint32(b)
		text := string(b[4 : 4+n])
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("%q is no UTF-8", text)
		}
		m.push(text)
		return b[4+n:], nil
	case opInt1:
		m.push(uint64(b[0]))
		return b[1:], nil
	case opInt2:
		m.push(uint64(binary.LittleEndian.Uint16(b)))
		return b[2:], nil
	case opInt4:
		m.push(uint64(binary.LittleEndian.Uint32(b)))
		return b[4:], nil
	case opLong:
		m.push(binary.LittleEndian.Uint64(b[1:]))
		if m.stack[len(m.stack)-1].(uint64) >= 1<<53 {
			return nil, errors.New("a number is too large for a double")
		}
		return b[1+b[0]:], nil
	case opMemoize:
		m.memo = append(m.memo, m.stack[len(m.stack)-1])
	case opGet:
		m.push(m.memo[b[0]])
		return b[1:], nil
	case opGetLong:
		m.push(m.memo[binary.LittleEndian.Uint32(b)])
		return b[4:], nil
	case opAppends, opSetItems:
		return b, m.gather(op)
	default:
		return nil, fmt.Errorf("unknown opcode %q", op)
	}
	return b, nil
}

// gather does APPENDS and SETITEMS.
func (m *machine) gather(op byte) error {
	mark := m.marks[len(m.marks)-1]
	items := m.stack[mark:]
	m.marks, m.stack = m.marks[:len(m.marks)-1], m.stack[:mark]
	if op == opAppends {
		if len(items) > chunk || len(items) == 0 {
			return fmt.Errorf("%d things in one APPENDS", len(items))
		}
		list := m.stack[mark-1].(*listOf)
		list.items = append(list.items, items...)
		return nil
	}
	dict := m.stack[mark-1].(dictOf)
	for i := 0; i < len(items); i += 2 {
		key := items[i].(string)
		if _, twice := dict[key]; twice {
			return fmt.Errorf("key %q comes twice", key)
		}
		dict[key] = items[i+1]
	}
	return nil
}

func (d dictOf) number(key string) uint64 { return d[key].(uint64) }

func (d dictOf) text(key string) string { return d[key].(string) }

// dicts are the things of a list of dictionaries.
func (d dictOf) dicts(key string) []dictOf {
	var list []dictOf
	for _, item := range d[key].(*listOf).items {
		list = append(list, item.(dictOf))
	}
	return list
}
