// Package check tests a run against rules, so that a build can fail if a program needs more memory, leaks more, or misses
// the pool more often than allowed.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/budget"
	"codeberg.org/gpumemtop/gpumemtop/internal/document"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Rules are what a run must satisfy.
type Rules struct {
	list []rule
}

// rule bounds one figure.
type rule struct {
	figure *figures.Figure
	bound  float64
	tag    *regexp.Regexp // each call site that matches must satisfy the rule; nil: the whole run must
}

// isLowerBound reports whether the figure must be at least the bound.
func (r *rule) isLowerBound() bool { return r.figure.Better == figures.More }

// ParseRules reads rules in TOML: keys of the table in HelpText with their bounds, and [[tag]] sections whose match is a regular
// expression for call sites. Sizes are texts such as "512MiB", or bytes; rates 0 to 1; times texts such as "1.5s".
// Errors name the key.
func ParseRules(text string) (*Rules, error) {
	var all map[string]any
	if _, err := document.DecodeTOML(text, &all); err != nil {
		return nil, err
	}
	sections, err := sectionsForTags(all["tag"])
	if err != nil {
		return nil, err
	}
	delete(all, "tag")
	rules := &Rules{}
	patterns := budget.New(patternsMax)
	if err := rules.addRules(all, nil); err != nil {
		return nil, err
	}
	for i, section := range sections {
		if err := rules.addTagSection(section, patterns); err != nil {
			return nil, fmt.Errorf("[[tag]] %d: %w", i+1, err)
		}
	}
	if len(rules.list) == 0 {
		return nil, errors.New("no rules: want for example max_peak_in_use = \"512MiB\"")
	}
	return rules, nil
}

func sectionsForTags(value any) ([]map[string]any, error) {
	switch sections := value.(type) {
	case nil:
		return nil, nil
	case []any:
		list := make([]map[string]any, len(sections))
		tables := true
		for i := range sections {
			var table bool
			list[i], table = sections[i].(map[string]any)
			tables = tables && table
		}
		if tables {
			return list, nil
		}
	}
	return nil, errors.New("tag is not a list of sections: write [[tag]] with two brackets, then match = \"...\"")
}

// addTagSection adds rules for call sites.
func (s *Rules) addTagSection(section map[string]any, patterns *budget.Budget) error {
	pattern, ok := section["match"].(string)
	if !ok {
		return errors.New("no match: want match = \"regular expression for call sites\"")
	}
	tag, err := compilePattern(pattern, patterns)
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	delete(section, "match")
	if len(section) == 0 {
		return errors.New("no rules")
	}
	return s.addRules(section, tag)
}

// addRules adds the rules of one section.
func (s *Rules) addRules(section map[string]any, tag *regexp.Regexp) error {
	for _, key := range slices.Sorted(maps.Keys(section)) {
		at := slices.IndexFunc(metrics, func(f *figures.Figure) bool { return f.Rule == key })
		if at < 0 {
			return fmt.Errorf("unknown rule %q: %s", key, similarRules(key, tag != nil))
		}
		f := metrics[at]
		if tag != nil && !f.IsForSites() {
			return fmt.Errorf("%s is for whole runs, not for call sites", key)
		}
		bound, err := parseBound(f.Unit, section[key])
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		s.list = append(s.list, rule{figure: f, bound: bound, tag: tag})
	}
	slices.SortStableFunc(s.list, func(a, b rule) int { return cmp.Compare(a.orderInTable(), b.orderInTable()) })
	return nil
}

// orderInTable sorts rules as in the table, those for the whole run first.
func (r *rule) orderInTable() int {
	at := slices.Index(metrics, r.figure)
	if r.tag != nil {
		at += len(metrics)
	}
	return at
}

// similarRules names rules similar to an unknown one.
func similarRules(key string, tag bool) string {
	var known []string
	for _, f := range metrics {
		if !tag || f.IsForSites() {
			known = append(known, f.Rule)
		}
	}
	for _, name := range known {
		if strings.HasPrefix(name, key) || strings.HasSuffix(name, key) {
			return "do you mean " + name + "?"
		}
	}
	return "there are " + strings.Join(known, ", ")
}

// parseBound reads a bound.
func parseBound(unit figures.Unit, value any) (float64, error) {
	number, isNumber := 0.0, false
	switch v := value.(type) {
	case int64:
		number, isNumber = float64(v), true
	case float64:
		number, isNumber = v, true
	}
	text, isText := value.(string)
	switch {
	case isNumber && (number < 0 || math.IsNaN(number) || math.IsInf(number, 0)):
		return 0, fmt.Errorf("bad bound %v: want 0 or more", value)
	case unit == figures.Bytes && isText:
		n, err := units.ParseSize(text)
		return float64(n), err
	case unit == figures.Nanos && isText:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, fmt.Errorf("bad time %q: want for example \"1.5s\" or \"200ms\"", text)
		}
		return float64(d), nil
	case unit == figures.Rate && isNumber && number <= 1, (unit == figures.Bytes || unit == figures.Count) && isNumber && number == math.Trunc(number):
		return number, nil
	}
	return 0, fmt.Errorf("bad bound %v: want %s", value, bounds[unit].want)
}

// bounds are the forms of bounds, by unit.
var bounds = [...]struct{ placeholder, want string }{
	figures.Bytes: {"SIZE", "a size such as \"512MiB\", or bytes"}, figures.Count: {"N", "a whole number"},
	figures.Rate: {"RATE", "a rate from 0 to 1"}, figures.Nanos: {"TIME", "a time such as \"1.5s\""},
}

// formatFigure writes a figure for people.
func formatFigure(unit figures.Unit, value float64) string {
	switch unit {
	case figures.Bytes:
		if value < 0 {
			return "-" + units.FormatLong(uint64(-value))
		}
		return units.FormatLong(uint64(value))
	case figures.Rate:
		return fmt.Sprintf("%.2f %%", 100*value)
	case figures.Nanos:
		return time.Duration(value).String()
	default:
		return fmt.Sprintf("%.0f", value)
	}
}

// formatWithAllDigits writes a figure with all digits.
func formatWithAllDigits(unit figures.Unit, value float64) string {
	text := strconv.FormatFloat(value, 'f', -1, 64)
	switch unit {
	case figures.Bytes:
		return text + " B"
	case figures.Nanos:
		return text + " ns"
	default:
		return text
	}
}

// HelpText lists the rules, one per line, and the forms of their bounds.
func HelpText() string {
	var b strings.Builder
	for _, f := range metrics {
		where := ""
		if f.IsForSites() {
			where = " *"
		}
		fmt.Fprintf(&b, "  %-26s = %-4s  %s%s\n", f.Rule, bounds[f.Unit].placeholder, f.Meaning, where)
	}
	b.WriteString("\n")
	for _, form := range bounds {
		fmt.Fprintf(&b, "  %-4s  %s\n", form.placeholder, form.want)
	}
	b.WriteString("  *     also in [[tag]]\n")
	return b.String()
}
