package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
)

var (
	memberRE = regexp.MustCompile(`(?m)^\t(uint64_t|bool|enum gmtmemory) (\w+); +/\* (.*) \*/$`)
	ruleRE   = regexp.MustCompile(`(?m)^(GROUP|KNOWN|REASON)\((\w+), (.*?)\)(?: */\* (.*) \*/)?$`)
	termRE   = regexp.MustCompile(`CL_MEM_\w+|\br\.\w|~`)
	goTypes  = map[string]string{"uint64_t": "uint64", "bool": "bool", "enum gmtmemory": "Memory"}
)

const eligibleTail = `	return IneligibleNone
}

// several reports whether more than one bit is set.
func several(bits uint64) bool { return bits&(bits-1) != 0 }
`

// generateGoEligible writes the Go side of eligible.def, and of the struct in eligible.h that its conditions look at.
func generateGoEligible() []byte {
	header, err := os.ReadFile("eligible.h")
	if err != nil {
		log.Fatal(err)
	}
	rules, err := os.ReadFile("eligible.def")
	if err != nil {
		log.Fatal(err)
	}
	groups, known, conditions, reasons := "", "", "", "GMT_INELIGIBLE_NONE = 0, /* the pool may serve it */\n"
	for _, m := range ruleRE.FindAllStringSubmatch(string(rules), -1) {
		switch m[1] {
		case "GROUP":
			groups += fmt.Sprintf("\tconst %s = %s\n", m[2], conditionToGo(m[3]))
		case "KNOWN":
			known += fmt.Sprintf("\tcase Memory%s:\n\t\tknown = %s\n", toCamelCase(m[2]), conditionToGo(m[3]))
		case "REASON":
			conditions += fmt.Sprintf("\tif %s {\n\t\treturn Ineligible%s\n\t}\n", conditionToGo(m[3]), toCamelCase(m[2]))
			reasons += fmt.Sprintf("GMT_INELIGIBLE_%s = %d, /* %s */\n", m[2], strings.Count(reasons, "\n"), m[4])
		}
	}
	var b bytes.Buffer
	b.WriteString("// Code generated from eligible.def by internal/wire/gen; DO NOT EDIT.\n\npackage wire\n\nimport \"strconv\"\n")
	writeGoEnum(&b, "why the pool must leave a request for memory to the driver.", "ineligible", reasons)
	b.WriteString("\n// PoolRequest is a request for memory, as far as the rules look at it.\ntype PoolRequest struct {\n")
	for _, m := range memberRE.FindAllStringSubmatch(string(header), -1) {
		fmt.Fprintf(&b, "\t%s %s // %s\n", toCamelCase(m[2]), goTypes[m[1]], m[3])
	}
	b.WriteString("}\n\n// Ineligible returns why a pool must leave the request to the driver.\nfunc (r *PoolRequest) Ineligible() Ineligible {\n")
	b.WriteString(groups + "\tknown, served := uint64(0), true\n\tswitch r.Memory {\n" + known + "\tdefault:\n\t\tserved = false\n\t}\n")
	b.WriteString(conditions + eligibleTail)
	return b.Bytes()
}

// conditionToGo turns a condition of C into one of Go.
func conditionToGo(condition string) string {
	return termRE.ReplaceAllStringFunc(condition, func(term string) string {
		switch {
		case term == "~":
			return "^"
		case strings.HasPrefix(term, "r."):
			return "r." + strings.ToUpper(term[2:])
		default:
			return toCamelCase(strings.TrimPrefix(term, "CL_MEM_"))
		}
	})
}
