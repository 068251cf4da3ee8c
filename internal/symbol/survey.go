package symbol

import "debug/dwarf"

// findAndChargeUnits finds the units, and charges the memory that debug/dwarf keeps for them and for their tables of abbreviations,
// which may overlap. False: there is no room, or an entry has more attributes than compilers write.
func (d *debugInfo) findAndChargeUnits(info, abbreviations []byte) bool {
	tables := map[uint64]bool{}
	for c := (cursor{rest: info}); len(c.rest) > 0 && !c.short; {
		size, offsetSize := c.readUnitLength()
		header := cursor{rest: c.nextBytes(size)}
		if size == 0 || c.short {
			continue
		}
		version := header.readNumber(2)
		kind, rest := uint64(0), uint64(1) // bytes after the offset of the table: the size of an address
		if version >= 5 {
			kind, rest = header.readNumber(1), 0
			header.nextBytes(1)
		}
		switch kind {
		case 2, 6: // DW_UT_type, DW_UT_split_type
			rest = 8 + offsetSize
		case 4, 5: // DW_UT_skeleton, DW_UT_split_compile
			rest = 8
		}
		table := header.readNumber(offsetSize)
		header.nextBytes(rest)
		root := len(info) - len(c.rest) - len(header.rest)
		if !d.keep.Charge(unitBytes) || !tables[table] && !d.chargeAbbreviations(cursorAt(abbreviations, table)) {
			return false
		}
		tables[table] = true
		d.units = append(d.units, &unit{root: dwarf.Offset(root)})
	}
	return true
}

func (d *debugInfo) chargeAbbreviations(c cursor) bool {
	const implicit = 0x21 // DW_FORM_implicit_const
	for c.readUnsigned() != 0 && !c.short {
		c.readUnsigned() // tag
		c.nextBytes(1)   // whether it has children
		attributes := int64(0)
		for {
			attribute, form := c.readUnsigned(), c.readUnsigned()
			if attribute == 0 && form == 0 {
				break
			}
			if form == implicit {
				c.readSigned()
			}
			if attributes++; attributes > attributesMax {
				return false
			}
		}
		if !d.keep.Charge(abbrevBytes + attributes*attributeBytes) {
			return false
		}
	}
	return true
}
