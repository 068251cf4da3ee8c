package stack

// Bounds of an expression: compilers write some twenty operations, and libgcc's stack has 64 values.
const (
	operandsMax = 64
	stepsMax    = 1024
)

// operands is the stack of an expression. Underflow and overflow set bad.
type operands struct {
	values [operandsMax]uint64
	n      int
	bad    bool
}

func (o *operands) push(value uint64) {
	if o.n == operandsMax {
		o.bad = true
		return
	}
	o.values[o.n] = value
	o.n++
}

func (o *operands) pop() uint64 {
	if o.n == 0 {
		o.bad = true
		return 0
	}
	o.n--
	return o.values[o.n]
}

// pushCopy pushes a copy of the value at a depth below the top.
func (o *operands) pushCopy(depth uint8) {
	if int(depth) >= o.n {
		o.bad = true
		return
	}
	o.push(o.values[o.n-1-int(depth)])
}

// Operations (DWARF 5, section 7.7.1).
const (
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst1s    = 0x09
	opConst2u    = 0x0a
	opConst2s    = 0x0b
	opConst4u    = 0x0c
	opConst4s    = 0x0d
	opConst8u    = 0x0e
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opRot        = 0x17
	opAbs        = 0x19
	opAnd        = 0x1a
	opMinus      = 0x1c
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opGt         = 0x2b
	opLe         = 0x2c
	opLt         = 0x2d
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opReg0       = 0x50
	opBreg0      = 0x70
	opBreg31     = 0x8f
	opRegx       = 0x90
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

// evaluateExpression evaluates an expression whose stack begins with first, as in libgcc, for the CFA and for registers.
func (m *machine) evaluateExpression(code []byte, first uint64) (uint64, bool) {
	c := &cursor{data: code}
	o := &operands{}
	o.push(first)
	for steps := 0; c.bytesLeft() > 0; steps++ {
		if steps == stepsMax {
			return 0, false
		}
		switch op := c.readU8(); {
		case op >= opLit0 && op < opReg0:
			o.push(uint64(op - opLit0))
		case op >= opReg0 && op <= opBreg31 || op == opRegx || op == opBregx:
			m.pushRegister(c, o, op)
		case op == opDeref:
			m.pushLoadedValue(o, 8)
		case op == opDerefSize:
			m.pushLoadedValue(o, uint64(c.readU8()))
		case op == opSkip || op == opBra:
			executeJump(c, o, op)
		case op <= opConsts:
			pushConstant(c, o, op)
		case op <= opRot:
			reorderOperands(c, o, op)
		default:
			executeUnary(c, o, op)
		}
		if o.bad || c.short {
			return 0, false
		}
	}
	value := o.pop()
	return value, !o.bad
}

// pushRegister pushes a register, with or without an offset.
func (m *machine) pushRegister(c *cursor, o *operands, op uint8) {
	var number, offset uint64
	switch {
	case op == opRegx:
		number = c.readULEB()
	case op == opBregx:
		number = c.readULEB()
		offset = uint64(c.readSLEB())
	case op < opBreg0:
		number = uint64(op - opReg0)
	default:
		number = uint64(op - opBreg0)
		offset = uint64(c.readSLEB())
	}
	if number >= columns {
		o.bad = true
		return
	}
	value, known := m.get(uint8(number))
	o.bad = o.bad || !known
	o.push(value + offset)
}

func (m *machine) pushLoadedValue(o *operands, size uint64) {
	switch size {
	case 1, 2, 4, 8:
		value, ok := m.loadFromStack(o.pop(), size)
		o.bad = o.bad || !ok
		o.push(value)
	default:
		o.bad = true
	}
}

func executeJump(c *cursor, o *operands, op uint8) {
	by := int(int16(c.readU16()))
	if op == opBra && o.pop() == 0 {
		return
	}
	to := c.at + by
	if to < 0 || to > len(c.data) {
		o.bad = true
		return
	}
	c.at = to
}

func pushConstant(c *cursor, o *operands, op uint8) {
	switch op {
	case opConst1u:
		o.push(uint64(c.readU8()))
	case opConst1s:
		o.push(uint64(int64(int8(c.readU8()))))
	case opConst2u:
		o.push(uint64(c.readU16()))
	case opConst2s:
		o.push(uint64(int64(int16(c.readU16()))))
	case opConst4u:
		o.push(uint64(c.readU32()))
	case opConst4s:
		o.push(uint64(int64(int32(c.readU32()))))
	case opConst8u, opConst8s:
		o.push(c.readU64())
	case opConstu:
		o.push(c.readULEB())
	case opConsts:
		o.push(uint64(c.readSLEB()))
	default: // an address would need relocation
		o.bad = true
	}
}

func reorderOperands(c *cursor, o *operands, op uint8) {
	switch op {
	case opDup:
		o.pushCopy(0)
	case opDrop:
		o.pop()
	case opOver:
		o.pushCopy(1)
	case opPick:
		o.pushCopy(c.readU8())
	case opSwap:
		a, b := o.pop(), o.pop()
		o.push(a)
		o.push(b)
	case opRot:
		a, b, third := o.pop(), o.pop(), o.pop()
		o.push(a)
		o.push(third)
		o.push(b)
	default:
		o.bad = true
	}
}

// executeUnary executes operations on one operand.
func executeUnary(c *cursor, o *operands, op uint8) {
	switch op {
	case opNop:
	case opAbs:
		value := int64(o.pop())
		o.push(uint64(max(value, -value)))
	case opNeg:
		o.push(-o.pop())
	case opNot:
		o.push(^o.pop())
	case opPlusUconst:
		o.push(o.pop() + c.readULEB())
	default:
		b, a := o.pop(), o.pop()
		o.executeBinary(op, a, b)
	}
}

func boolToNumber(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// executeBinary executes operations on two operands. Like libgcc it takes numbers as signed, except for shifts.
func (o *operands) executeBinary(op uint8, a, b uint64) {
	x, y := int64(a), int64(b)
	switch op {
	case opAnd:
		o.push(a & b)
	case opOr:
		o.push(a | b)
	case opXor:
		o.push(a ^ b)
	case opPlus:
		o.push(a + b)
	case opMinus:
		o.push(a - b)
	case opMul:
		o.push(a * b)
	case opShl:
		o.push(a << b)
	case opShr:
		o.push(a >> b)
	case opShra:
		o.push(uint64(x >> b))
	case opEq:
		o.push(boolToNumber(x == y))
	case opNe:
		o.push(boolToNumber(x != y))
	case opGe:
		o.push(boolToNumber(x >= y))
	case opGt:
		o.push(boolToNumber(x > y))
	case opLe:
		o.push(boolToNumber(x <= y))
	case opLt:
		o.push(boolToNumber(x < y))
	default: // division, and others that amd64 unwind information does not use
		o.bad = true
	}
}
