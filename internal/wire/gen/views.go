package main

import (
	"bytes"
	"fmt"
	"strings"
)

// generateGoTables writes the Go side of the tables.
func generateGoTables(kinds []kind) []byte {
	var b bytes.Buffer
	b.WriteString(notice + "package wire\n\nimport \"math\"\n")
	for i := range kinds {
		k := &kinds[i]
		k.writeView(&b)
		k.writeFieldsStruct(&b)
		k.writePackMethod(&b)
		k.writeFieldsMethod(&b)
	}
	return b.Bytes()
}

func (k *kind) writeView(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// %sView reads a %s event: %s.\n", k.name, k.upper, k.doc)
	if k.note != "" {
		fmt.Fprintf(b, "// %s\n", capitalize(k.note))
	}
	if k.payload != "" {
		fmt.Fprintf(b, "// Payload: %s.\n", k.payload)
	}
	fmt.Fprintf(b, "type %[1]sView struct{ e *Event }\n\n"+
		"// As%[1]s reads e as a %[2]s event; the caller has checked its kind.\n"+
		"func (e *Event) As%[1]s() %[1]sView { return %[1]sView{e} }\n\n"+
		"// Time is when it took effect: CLOCK_MONOTONIC in ns.\n"+
		"func (v %[1]sView) Time() uint64 { return v.e.Time }\n", k.name, k.upper)
	for i := range k.columns {
		c := &k.columns[i]
		fmt.Fprintf(b, "// %s: %s.\n", c.name, c.meaningWithUnit())
		if c.where.c == "" {
			fmt.Fprintf(b, "func (v %sView) %s() %s { return %s }\n", k.name, c.name, c.goType(), c.goExpression())
			continue
		}
		if c.goType() == "bool" {
			fmt.Fprintf(b, "func (v %sView) %s() bool { return (%s) && %s }\n", k.name, c.name, k.goConditionOf(c), c.goExpression())
			continue
		}
		fmt.Fprintf(b, "func (v %sView) %s() %s {\nif %s {\nreturn %s\n}\nreturn 0\n}\n",
			k.name, c.name, c.goType(), k.goConditionOf(c), c.goExpression())
	}
}

// goConditionOf is the Go condition under which a column holds.
func (k *kind) goConditionOf(c *column) string {
	enum := k.enumColumnFor(c.where)
	var terms []string
	compare, operator := " == ", " || "
	if c.negated {
		compare, operator = " != ", " && "
	}
	for _, v := range c.values {
		terms = append(terms, enum.goExpression()+compare+enum.typ+toCamelCase(v))
	}
	return strings.Join(terms, operator)
}

func (k *kind) writeFieldsStruct(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// %sFields are the fields of a %s event.\ntype %sFields struct {\nTime uint64 // ns\n", k.name, k.upper, k.name)
	for i := range k.columns {
		c := &k.columns[i]
		fmt.Fprintf(b, "%s %s // %s\n", c.name, c.goType(), c.meaningWithUnit())
	}
	b.WriteString("}\n")
}

// writePackMethod writes the method that makes an event of the fields. Columns that share a field are joined by or: the caller
// sets the one that holds.
func (k *kind) writePackMethod(b *bytes.Buffer) {
	if k.payload == "" {
		fmt.Fprintf(b, "\n// Event returns the %s event with these fields.\nfunc (f %sFields) Event() Event {\ne := ", k.upper, k.name)
	} else {
		fmt.Fprintf(b, "\n// Record returns the %s event with these fields and a payload; Process and Thread are the caller's to set.\n"+
			"func (f %sFields) Record(payload []byte) Record {\ne := ", k.upper, k.name)
	}
	values, order := map[string][]string{}, []string{}
	add := func(f field, value string) {
		if values[f.goName] == nil {
			order = append(order, f.goName)
		}
		values[f.goName] = append(values[f.goName], value)
	}
	var flags []*column
	for i := range k.columns {
		c := &k.columns[i]
		switch {
		case c.flag != "":
			flags = append(flags, c)
		case c.low != nil:
			add(c.field, fmt.Sprintf("%s(f.%s>>%d)", c.field.goType(), c.name, c.low.bits))
			add(*c.low, fmt.Sprintf("%s(f.%s)", c.low.goType(), c.name))
		case c.typ == "double":
			add(c.field, fmt.Sprintf("math.Float64bits(f.%s)", c.name))
		case c.isEnum() && c.field.goName != "Outcome":
			add(c.field, fmt.Sprintf("%s(f.%s)", c.field.goType(), c.name))
		default:
			add(c.field, "f."+c.name)
		}
	}
	fmt.Fprintf(b, "Event{Time: f.Time, Kind: Kind%s", k.name)
	for _, name := range order {
		fmt.Fprintf(b, ", %s: %s", name, strings.Join(values[name], " | "))
	}
	if k.payload != "" {
		b.WriteString(", Size: uint64(len(payload))")
	}
	b.WriteString("}\n")
	for _, c := range flags {
		if c.isEnum() {
			fmt.Fprintf(b, "e.Flags |= uint8(f.%[1]s) * (Flag%[2]s & -Flag%[2]s) & Flag%[2]s\n", c.name, toCamelCase(c.flag))
			continue
		}
		fmt.Fprintf(b, "if f.%s {\ne.Flags |= Flag%s\n}\n", c.name, toCamelCase(c.flag))
	}
	if k.payload == "" {
		b.WriteString("return e\n}\n")
	} else {
		b.WriteString("return Record{Event: e, Payload: payload}\n}\n")
	}
}

func (k *kind) writeFieldsMethod(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// Fields returns all fields of the event.\nfunc (v %[1]sView) Fields() %[1]sFields {\nreturn %[1]sFields{Time: v.e.Time", k.name)
	for i := range k.columns {
		fmt.Fprintf(b, ", %[1]s: v.%[1]s()", k.columns[i].name)
	}
	b.WriteString("}\n}\n")
}

// meaningWithUnit is the meaning of a column, with its unit when that is one.
func (c *column) meaningWithUnit() string {
	switch c.typ {
	case "bytes", "ns", "count":
		return c.typ + " " + c.meaning
	}
	return c.meaning
}

func (c *column) goType() string {
	switch {
	case c.low != nil:
		return "uint64"
	case c.typ == "bool":
		return "bool"
	case c.typ == "double":
		return "float64"
	case c.isEnum():
		return c.typ
	}
	return c.field.goType()
}

// goExpression is the Go expression for the column of an event.
func (c *column) goExpression() string {
	const e = "v.e"
	value := e + "." + c.field.goName
	switch {
	case c.low != nil:
		return fmt.Sprintf("uint64(%s)<<%d | uint64(%s.%s)", value, c.low.bits, e, c.low.goName)
	case c.flag != "" && c.isEnum():
		return fmt.Sprintf("%[1]s(%[2]s & Flag%[3]s / (Flag%[3]s & -Flag%[3]s))", c.typ, value, toCamelCase(c.flag))
	case c.flag != "":
		return fmt.Sprintf("%s&Flag%s != 0", value, toCamelCase(c.flag))
	case c.typ == "double":
		return fmt.Sprintf("math.Float64frombits(%s)", value)
	case c.isEnum() && c.field.goName != "Outcome":
		return fmt.Sprintf("%s(%s)", c.typ, value)
	}
	return value
}

func capitalize(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
