package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kind is the table of one kind of event in event.h.
type kind struct {
	upper   string // CREATE
	name    string // Create
	doc     string // what the kind enumeration says of it
	note    string // what the heading of its table adds, empty or a sentence
	columns []column
	payload string // what follows the event; empty: nothing
}

// column is a row of such a table: a named meaning of a field.
type column struct {
	field   field
	low     *field // the low half, where two fields hold one number
	flag    string // GMT_FLAG_*, where one bit of flags is meant, or several that hold an enumeration
	where   field  // the column holds only for some values of this field...
	values  []string
	negated bool // ...or for all but these
	name    string
	typ     string
	meaning string
}

// field is a field of struct gmtevent.
type field struct {
	c, goName string
	bits      int
	signed    bool
}

var fields = map[string]field{
	"time": {"time", "Time", 64, false}, "duration": {"duration", "Duration", 32, false}, "cost": {"cost", "Cost", 32, false},
	"op": {"op", "Op", 8, false}, "outcome": {"outcome", "Outcome", 8, false}, "reason": {"reason", "Reason", 8, false},
	"flags": {"flags", "Flags", 8, false}, "scope": {"scope", "Scope", 16, false}, "status": {"status", "Status", 16, true},
	"access": {"access", "Access", 16, false}, "tag": {"tag", "Tag", 32, false}, "object": {"object", "Object", 64, false},
	"size": {"size", "Size", 64, false}, "granted": {"granted", "Granted", 64, false}, "link": {"link", "Link", 64, false},
}

func (f field) goType() string {
	if f.signed {
		return fmt.Sprintf("int%d", f.bits)
	}
	return fmt.Sprintf("uint%d", f.bits)
}

func (f field) cType() string { return f.goType() + "_t" }

// units are the types that only say what a number counts.
var units = []string{"id", "tag", "pid", "tid", "bytes", "ns", "time", "count", "number", "scope", "flags", "cl_int"}

func (c *column) isEnum() bool {
	return c.typ != "bool" && c.typ != "double" && !slices.Contains(units, c.typ)
}

var (
	tableRE  = regexp.MustCompile(`(?ms)^/\*\n \* ([A-Z]+)(?:: ([^\n]+))?\n((?: \*   [^\n]+\n)+) \*/$`)
	splitRE  = regexp.MustCompile(`\s{2,}`)
	columnRE = regexp.MustCompile(`^([a-z]+)(?::([a-z]+))?(?:\.([A-Z_]+))?(?:\[([a-z]+)(!?)=([A-Z_|]+)\])?$`)
	kindRE   = regexp.MustCompile(`GMT_KIND_([A-Z]+) = \d+,\s*/\* (.*?) \*/`)
)

// parseTables reads the tables of all kinds, in the order of enum gmtkind.
func parseTables(header string) ([]kind, error) {
	tables := map[string][]string{}
	for _, m := range tableRE.FindAllStringSubmatch(header, -1) {
		tables[m[1]] = m
	}
	var kinds []kind
	for _, m := range kindRE.FindAllStringSubmatch(header, -1) {
		table, ok := tables[m[1]]
		if !ok {
			return nil, fmt.Errorf("kind %s has no table", m[1])
		}
		k := kind{upper: m[1], name: toCamelCase(m[1]), doc: m[2], note: table[2]}
		if err := k.parseRows(table[3]); err != nil {
			return nil, fmt.Errorf("table of %s: %w", m[1], err)
		}
		delete(tables, m[1])
		kinds = append(kinds, k)
	}
	for name := range tables {
		return nil, fmt.Errorf("table of %s, which is no kind", name)
	}
	return kinds, nil
}

func (k *kind) parseRows(rows string) error {
	used := map[string]bool{}
	for line := range strings.Lines(rows) {
		text := strings.TrimSuffix(strings.TrimPrefix(line, " *   "), "\n")
		if strings.HasPrefix(text, " ") { // goes on with the meaning above
			last := &k.columns[len(k.columns)-1]
			last.meaning += " " + strings.TrimSpace(text)
			continue
		}
		cells := splitRE.Split(text, 4)
		if cells[0] == "payload" {
			k.payload = strings.Join(cells[1:], " ")
			used["size"] = true
			continue
		}
		if len(cells) != 4 {
			return fmt.Errorf("row %q has %d columns, want 4", text, len(cells))
		}
		c, err := parseColumn(cells[0])
		if err != nil {
			return err
		}
		c.name, c.typ, c.meaning = cells[1], cells[2], cells[3]
		if used[cells[0]] || c.where.c == "" && c.flag == "" && used[c.field.c] {
			return fmt.Errorf("row %q uses a field again", text)
		}
		if c.flag == "" && c.typ == "bool" || c.flag != "" && c.typ != "bool" && !c.isEnum() {
			return fmt.Errorf("row %q: only a flag is a bool; it is that or an enumeration", text)
		}
		used[cells[0]] = true
		if c.where.c == "" && c.flag == "" {
			used[c.field.c] = true
		}
		k.columns = append(k.columns, c)
	}
	return nil
}

func parseColumn(text string) (column, error) {
	m := columnRE.FindStringSubmatch(text)
	if m == nil {
		return column{}, fmt.Errorf("no field: %q", text)
	}
	c := column{flag: m[3], negated: m[5] != ""}
	var ok bool
	if c.field, ok = fields[m[1]]; !ok {
		return column{}, fmt.Errorf("struct gmtevent has no field %q", m[1])
	}
	if m[2] != "" {
		low, ok := fields[m[2]]
		if !ok {
			return column{}, fmt.Errorf("struct gmtevent has no field %q", m[2])
		}
		c.low = &low
	}
	if m[4] != "" {
		if c.where, ok = fields[m[4]]; !ok {
			return column{}, fmt.Errorf("struct gmtevent has no field %q", m[4])
		}
		c.values = strings.Split(m[6], "|")
	}
	return c, nil
}

// enumColumnFor returns the column of the field on which another one depends.
func (k *kind) enumColumnFor(f field) *column {
	for i := range k.columns {
		if k.columns[i].field == f && k.columns[i].flag == "" && k.columns[i].isEnum() {
			return &k.columns[i]
		}
	}
	panic(fmt.Sprintf("table of %s: no enumeration in %s", k.upper, f.c))
}
