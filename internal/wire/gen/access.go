package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

const accessHead = `/*
 * event_access.h: the fields of events by their names in the tables of event.h, for C.
 *
 * GMT_EVENT_CREATE(.time = now, .object = 1, ...) makes an event, gmtcreate_object(&event) reads a field of one.
 *
 * Generated from event.h by internal/wire/gen; do not edit.
 */
#ifndef GMT_EVENT_ACCESS_H
#define GMT_EVENT_ACCESS_H

#include <stdbool.h>
#include <string.h>

#include "event.h"

static inline uint64_t gmt_bits_of(double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static inline double gmt_double_of(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof value);
	return value;
}
`

// generateCTables writes the C side of the tables.
func generateCTables(kinds []kind) []byte {
	var b bytes.Buffer
	b.WriteString(accessHead)
	for i := range kinds {
		k := &kinds[i]
		lower := strings.ToLower(k.upper)
		fmt.Fprintf(&b, "\n/* %s: %s. */\nstruct gmt%sfields {\n\tuint64_t time;\n", k.upper, k.doc, lower)
		for j := range k.columns {
			c := &k.columns[j]
			fmt.Fprintf(&b, "\t%s %s; /* %s */\n", c.cType(), toSnakeCase(c.name), c.meaningWithUnit())
		}
		b.WriteString("};\n")
		k.writeCPackFunction(&b, lower)
		fmt.Fprintf(&b, "#define GMT_EVENT_%s(...) gmt%s_event((struct gmt%sfields){__VA_ARGS__})\n", k.upper, lower, lower)
		for j := range k.columns {
			c := &k.columns[j]
			fmt.Fprintf(&b, "static inline %s gmt%s_%s(const struct gmtevent *e) { return %s; }\n",
				c.cType(), lower, toSnakeCase(c.name), k.cExpressionOf(c))
		}
	}
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

func (k *kind) writeCPackFunction(b *bytes.Buffer, lower string) {
	fmt.Fprintf(b, "\nstatic inline struct gmtevent gmt%[1]s_event(struct gmt%[1]sfields f)\n{\n\treturn (struct gmtevent){\n"+
		"\t\t.time = f.time,\n\t\t.kind = GMT_KIND_%[2]s,\n", lower, k.upper)
	values, order := map[field][]string{}, []field{}
	add := func(f field, value string) {
		if values[f] == nil {
			order = append(order, f)
		}
		values[f] = append(values[f], value)
	}
	for i := range k.columns {
		c := &k.columns[i]
		value := "f." + toSnakeCase(c.name)
		switch {
		case c.flag != "" && c.isEnum():
			add(c.field, fmt.Sprintf("(%s * (GMT_FLAG_%[2]s & -GMT_FLAG_%[2]s) & GMT_FLAG_%[2]s)", value, c.flag))
		case c.flag != "":
			add(c.field, "("+value+" ? GMT_FLAG_"+c.flag+" : 0u)")
		case c.low != nil:
			add(c.field, fmt.Sprintf("(%s)(%s >> %d)", c.field.cType(), value, c.low.bits))
			add(*c.low, fmt.Sprintf("(%s)%s", c.low.cType(), value))
		case c.typ == "double":
			add(c.field, "gmt_bits_of("+value+")")
		case c.isEnum():
			add(c.field, fmt.Sprintf("(%s)%s", c.field.cType(), value))
		default:
			add(c.field, value)
		}
	}
	for _, f := range order {
		value := strings.Join(values[f], " | ")
		if f.c == "flags" || len(values[f]) > 1 && f.bits < 32 {
			value = "(" + f.cType() + ")(" + value + ")"
		}
		fmt.Fprintf(b, "\t\t.%s = %s,\n", f.c, value)
	}
	b.WriteString("\t};\n}\n")
}

// cExpressionOf is the C expression for a column of the event e.
func (k *kind) cExpressionOf(c *column) string {
	value := "e->" + c.field.c
	switch {
	case c.low != nil:
		value = fmt.Sprintf("(uint64_t)%s << %d | e->%s", value, c.low.bits, c.low.c)
	case c.flag != "" && c.isEnum():
		value = fmt.Sprintf("(%[1]s)((%[2]s & GMT_FLAG_%[3]s) / (GMT_FLAG_%[3]s & -GMT_FLAG_%[3]s))", c.cType(), value, c.flag)
	case c.flag != "":
		value = fmt.Sprintf("%s & GMT_FLAG_%s", value, c.flag)
	case c.typ == "double":
		value = "gmt_double_of(" + value + ")"
	case c.isEnum():
		value = fmt.Sprintf("(%s)%s", c.cType(), value)
	}
	if c.where.c == "" {
		return value
	}
	enum := k.enumColumnFor(c.where)
	var terms []string
	compare, operator := " == ", " || "
	if c.negated {
		compare, operator = " != ", " && "
	}
	for _, v := range c.values {
		terms = append(terms, "e->"+c.where.c+compare+"GMT_"+strings.ToUpper(enum.typ)+"_"+v)
	}
	condition := strings.Join(terms, operator)
	if len(terms) > 1 {
		condition = "(" + condition + ")"
	}
	return condition + " ? " + value + " : 0"
}

func (c *column) cType() string {
	switch {
	case c.low != nil:
		return "uint64_t"
	case c.typ == "bool", c.typ == "double":
		return c.typ
	case c.isEnum():
		return "enum gmt" + strings.ToLower(c.typ)
	}
	return c.field.cType()
}

// toSnakeCase turns LargestAlloc into largest_alloc, and PID into pid.
func toSnakeCase(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && unicode.IsLower(runes[i-1]) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
