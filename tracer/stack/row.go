package stack

import "slices"

// Registers by DWARF number (System V ABI for AMD64, figure 3.36): the sixteen general ones, and the return address, whose
// column stands for the instruction pointer.
const (
	rbx = 3
	rbp = 6
	rsp = 7
	r12 = 12
	r13 = 13
	r14 = 14
	r15 = 15
	rip = 16

	columns = 17
)

// how says how to find the caller's value of a register.
type how uint8

const (
	kept         how = iota // unchanged by the call
	lost                    // unknown
	stored                  // in memory at CFA + offset
	offsetItself            // CFA + offset; for the CFA: register + offset
	moved                   // in another register
	storedBy                // in memory at the value of an expression
	computed                // the value of an expression
)

// rule says how to find one register, or the CFA.
type rule struct {
	how        how
	register   uint8
	offset     int64
	expression []byte
}

// saved is the rule of one register.
type saved struct {
	column uint8
	rule
}

// row holds the rules at one place in the code, with which to get from a frame to its caller's.
type row struct {
	cfa    rule
	saved  []saved
	signal bool // a signal interrupted the caller: its address is not a return address
	last   bool // no caller
}

// plan is a row under construction.
type plan struct {
	cfa  rule
	rule [columns]rule
}

const (
	rememberedMax = 64  // depth of DW_CFA_remember_state; compilers use one
	expressionMax = 256 // bytes of an expression, kept with the row; compilers write a dozen
)

// program executes call frame instructions (DWARF 5, section 6.4.2).
type program struct {
	plan
	common     *common
	initial    plan
	remembered []plan
	at         uint64 // address that the instructions have reached
	bad        bool
}

// unwindRowAt returns the rules of an image for the code at pc, nil if there are none.
func (i *image) unwindRowAt(pc uint64) *row {
	if i.header == 0 {
		return nil
	}
	f, ok := i.unwindEntryAt(pc)
	if !ok {
		return nil
	}
	p := program{common: &f.common, at: f.begin}
	p.executeUntil(f.common.initialize, pc)
	p.initial, p.at = p.plan, f.begin
	p.executeUntil(f.code, pc)
	if p.bad || p.cfa.how == kept {
		return nil
	}
	return p.makeUnwindRow()
}

func (p *program) makeUnwindRow() *row {
	r := &row{cfa: p.cfa.copyRule(), signal: p.common.signal}
	for column, rule := range p.rule {
		if rule.how > lost {
			r.saved = append(r.saved, saved{uint8(column), rule.copyRule()})
		}
	}
	// An unchanged return address would lead to the same frame forever.
	r.last = p.common.ra != rip || p.rule[rip].how <= lost
	return r
}

// copyRule copies the expression, so that it does not keep the whole entry in memory.
func (r rule) copyRule() rule {
	r.expression = slices.Clone(r.expression)
	return r
}

// Call frame instructions; the first three have an operand in their lowest six bits.
const (
	cfaAdvance                = 0x40
	cfaOffset                 = 0x80
	cfaRestore                = 0xc0
	cfaNop                    = 0x00
	cfaSetLoc                 = 0x01
	cfaAdvance1               = 0x02
	cfaAdvance2               = 0x03
	cfaAdvance4               = 0x04
	cfaOffsetExtended         = 0x05
	cfaRestoreExtended        = 0x06
	cfaUndefined              = 0x07
	cfaSameValue              = 0x08
	cfaRegister               = 0x09
	cfaRememberState          = 0x0a
	cfaRestoreState           = 0x0b
	cfaDefCFA                 = 0x0c
	cfaDefCFARegister         = 0x0d
	cfaDefCFAOffset           = 0x0e
	cfaDefCFAExpression       = 0x0f
	cfaExpression             = 0x10
	cfaOffsetExtendedSigned   = 0x11
	cfaDefCFASigned           = 0x12
	cfaDefCFAOffsetSigned     = 0x13
	cfaValOffset              = 0x14
	cfaValOffsetSigned        = 0x15
	cfaValExpression          = 0x16
	cfaArgsSize               = 0x2e
	cfaNegativeOffsetExtended = 0x2f
)

// executeUntil executes the instructions that concern code up to pc.
func (p *program) executeUntil(code []byte, pc uint64) {
	c := &cursor{data: code}
	for c.bytesLeft() > 0 && p.at <= pc && !p.bad {
		op := c.readU8()
		low := op & 0x3f
		switch op &^ 0x3f {
		case cfaAdvance:
			p.at += uint64(low) * p.common.code
		case cfaOffset:
			p.setRule(uint64(low), rule{how: stored, offset: int64(c.readULEB()) * p.common.data})
		case cfaRestore:
			p.restoreRule(uint64(low))
		default:
			p.executeLocationInstruction(c, op)
		}
		p.bad = p.bad || c.short
	}
}

// executeLocationInstruction executes instructions on locations and states.
func (p *program) executeLocationInstruction(c *cursor, op uint8) {
	switch op {
	case cfaNop:
	case cfaSetLoc:
		p.bad = true // no compiler for amd64 writes it, and its base is unknown here
	case cfaAdvance1:
		p.at += uint64(c.readU8()) * p.common.code
	case cfaAdvance2:
		p.at += uint64(c.readU16()) * p.common.code
	case cfaAdvance4:
		p.at += uint64(c.readU32()) * p.common.code
	case cfaRememberState:
		if len(p.remembered) == rememberedMax {
			p.bad = true
			return
		}
		p.remembered = append(p.remembered, p.plan)
	case cfaRestoreState:
		n := len(p.remembered)
		if n == 0 {
			p.bad = true
			return
		}
		p.plan, p.remembered = p.remembered[n-1], p.remembered[:n-1]
	case cfaArgsSize:
		c.readULEB()
	default:
		p.executeCFAInstruction(c, op)
	}
}

// executeCFAInstruction executes instructions on the CFA.
func (p *program) executeCFAInstruction(c *cursor, op uint8) {
	switch op {
	case cfaDefCFA:
		p.setCFA(c.readULEB(), int64(c.readULEB()))
	case cfaDefCFASigned:
		p.setCFA(c.readULEB(), c.readSLEB()*p.common.data)
	case cfaDefCFARegister:
		p.setCFA(c.readULEB(), p.cfa.offset)
	case cfaDefCFAOffset:
		p.cfa.offset = int64(c.readULEB())
	case cfaDefCFAOffsetSigned:
		p.cfa.offset = c.readSLEB() * p.common.data
	case cfaDefCFAExpression:
		p.cfa = rule{how: computed, expression: p.readExpression(c)}
	default:
		p.executeRegisterInstruction(c, op)
	}
}

// executeRegisterInstruction executes instructions on one register, named by their first operand.
func (p *program) executeRegisterInstruction(c *cursor, op uint8) {
	column, data := c.readULEB(), p.common.data
	switch op {
	case cfaOffsetExtended:
		p.setRule(column, rule{how: stored, offset: int64(c.readULEB()) * data})
	case cfaOffsetExtendedSigned:
		p.setRule(column, rule{how: stored, offset: c.readSLEB() * data})
	case cfaNegativeOffsetExtended:
		p.setRule(column, rule{how: stored, offset: -int64(c.readULEB()) * data})
	case cfaValOffset:
		p.setRule(column, rule{how: offsetItself, offset: int64(c.readULEB()) * data})
	case cfaValOffsetSigned:
		p.setRule(column, rule{how: offsetItself, offset: c.readSLEB() * data})
	case cfaRestoreExtended:
		p.restoreRule(column)
	case cfaUndefined:
		p.setRule(column, rule{how: lost})
	case cfaSameValue:
		p.setRule(column, rule{how: kept})
	case cfaRegister:
		if from := c.readULEB(); from < columns {
			p.setRule(column, rule{how: moved, register: uint8(from)})
		} else {
			p.setRule(column, rule{how: lost})
		}
	case cfaExpression:
		p.setRule(column, rule{how: storedBy, expression: p.readExpression(c)})
	case cfaValExpression:
		p.setRule(column, rule{how: computed, expression: p.readExpression(c)})
	default:
		p.bad = true
	}
}

// setRule gives a column its rule. It ignores vector registers and the like.
func (p *program) setRule(column uint64, r rule) {
	if column < columns {
		p.rule[column] = r
	}
}

func (p *program) readExpression(c *cursor) []byte {
	code := c.readBlock()
	p.bad = p.bad || len(code) > expressionMax
	return code
}

func (p *program) restoreRule(column uint64) {
	if column < columns {
		p.rule[column] = p.initial.rule[column]
	}
}

func (p *program) setCFA(register uint64, offset int64) {
	if register >= columns {
		p.bad = true
		return
	}
	p.cfa = rule{how: offsetItself, register: uint8(register), offset: offset}
}
