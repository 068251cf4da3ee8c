package stack

import "slices"

// Registers by their DWARF numbers (System V ABI for AMD64, figure 3.36); a row knows of the sixteen general ones and
// of the return address, whose column stands for the instruction pointer.
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

// how says where the caller's value of a register is.
type how uint8

const (
	kept         how = iota // where it was: the call changes nothing
	lost                    // nowhere
	stored                  // in memory at CFA + offset
	offsetItself            // it is CFA + offset; of the CFA: register + offset
	moved                   // in another register
	storedBy                // in memory at what an expression says
	computed                // it is what an expression says
)

// rule is how one register, or the CFA, is found.
type rule struct {
	how        how
	register   uint8
	offset     int64
	expression []byte
}

// saved is the rule of a register.
type saved struct {
	column uint8
	rule
}

// row is how to get from one frame to its caller's: what the unwind information says of one place in the code.
type row struct {
	cfa    rule
	saved  []saved
	signal bool // the caller was interrupted there: its address is not that of a return
	last   bool // there is no caller
}

// plan is a row in the making.
type plan struct {
	cfa  rule
	rule [columns]rule
}

const (
	rememberedMax = 64  // bounds DW_CFA_remember_state; compilers nest it once
	expressionMax = 256 // bytes that are believed, and kept with the row; compilers write a dozen
)

// program runs call frame instructions (DWARF 5, section 6.4.2).
type program struct {
	plan
	common     *common
	initial    plan
	remembered []plan
	at         uint64 // address that the instructions have come to
	bad        bool
}

// row returns what the image knows of the code at pc, nil for nothing.
func (i *image) row(pc uint64) *row {
	if i.header == 0 {
		return nil
	}
	f, ok := i.function(pc)
	if !ok {
		return nil
	}
	p := program{common: &f.common, at: f.begin}
	p.run(f.common.initialize, pc)
	p.initial, p.at = p.plan, f.begin
	p.run(f.code, pc)
	if p.bad || p.cfa.how == kept {
		return nil
	}
	return p.finish()
}

func (p *program) finish() *row {
	r := &row{cfa: p.cfa.own(), signal: p.common.signal}
	for column, rule := range p.rule {
		if rule.how > lost {
			r.saved = append(r.saved, saved{uint8(column), rule.own()})
		}
	}
	// A return address that is kept would be the same for ever.
	r.last = p.common.ra != rip || p.rule[rip].how <= lost
	return r
}

// own copies the expression, which else would keep the whole entry.
func (r rule) own() rule {
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

// run carries out instructions as long as they are about code up to pc.
func (p *program) run(code []byte, pc uint64) {
	c := &cursor{data: code}
	for c.left() > 0 && p.at <= pc && !p.bad {
		op := c.u8()
		low := op & 0x3f
		switch op &^ 0x3f {
		case cfaAdvance:
			p.at += uint64(low) * p.common.code
		case cfaOffset:
			p.set(uint64(low), rule{how: stored, offset: int64(c.uleb()) * p.common.data})
		case cfaRestore:
			p.restore(uint64(low))
		default:
			p.place(c, op)
		}
		p.bad = p.bad || c.short
	}
}

// place carries out what is about places in the code and about states.
func (p *program) place(c *cursor, op uint8) {
	switch op {
	case cfaNop:
	case cfaSetLoc:
		p.bad = true // of no compiler for amd64, and relative to what cursors of code do not know
	case cfaAdvance1:
		p.at += uint64(c.u8()) * p.common.code
	case cfaAdvance2:
		p.at += uint64(c.u16()) * p.common.code
	case cfaAdvance4:
		p.at += uint64(c.u32()) * p.common.code
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
		c.uleb()
	default:
		p.define(c, op)
	}
}

// define carries out what is about the CFA.
func (p *program) define(c *cursor, op uint8) {
	switch op {
	case cfaDefCFA:
		p.base(c.uleb(), int64(c.uleb()))
	case cfaDefCFASigned:
		p.base(c.uleb(), c.sleb()*p.common.data)
	case cfaDefCFARegister:
		p.base(c.uleb(), p.cfa.offset)
	case cfaDefCFAOffset:
		p.cfa.offset = int64(c.uleb())
	case cfaDefCFAOffsetSigned:
		p.cfa.offset = c.sleb() * p.common.data
	case cfaDefCFAExpression:
		p.cfa = rule{how: computed, expression: p.expression(c)}
	default:
		p.register(c, op)
	}
}

// register carries out what is about one register, which its first operand names.
func (p *program) register(c *cursor, op uint8) {
	column, data := c.uleb(), p.common.data
	switch op {
	case cfaOffsetExtended:
		p.set(column, rule{how: stored, offset: int64(c.uleb()) * data})
	case cfaOffsetExtendedSigned:
		p.set(column, rule{how: stored, offset: c.sleb() * data})
	case cfaNegativeOffsetExtended:
		p.set(column, rule{how: stored, offset: -int64(c.uleb()) * data})
	case cfaValOffset:
		p.set(column, rule{how: offsetItself, offset: int64(c.uleb()) * data})
	case cfaValOffsetSigned:
		p.set(column, rule{how: offsetItself, offset: c.sleb() * data})
	case cfaRestoreExtended:
		p.restore(column)
	case cfaUndefined:
		p.set(column, rule{how: lost})
	case cfaSameValue:
		p.set(column, rule{how: kept})
	case cfaRegister:
		if from := c.uleb(); from < columns {
			p.set(column, rule{how: moved, register: uint8(from)})
		} else {
			p.set(column, rule{how: lost})
		}
	case cfaExpression:
		p.set(column, rule{how: storedBy, expression: p.expression(c)})
	case cfaValExpression:
		p.set(column, rule{how: computed, expression: p.expression(c)})
	default:
		p.bad = true
	}
}

// set gives a column its rule; of vector registers and the like nothing depends.
func (p *program) set(column uint64, r rule) {
	if column < columns {
		p.rule[column] = r
	}
}

func (p *program) expression(c *cursor) []byte {
	code := c.block()
	p.bad = p.bad || len(code) > expressionMax
	return code
}

func (p *program) restore(column uint64) {
	if column < columns {
		p.rule[column] = p.initial.rule[column]
	}
}

func (p *program) base(register uint64, offset int64) {
	if register >= columns {
		p.bad = true
		return
	}
	p.cfa = rule{how: offsetItself, register: uint8(register), offset: offset}
}
