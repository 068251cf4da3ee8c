package watch

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
)

// DescribePolicies describes policies, all when names is empty, in text as wide as width: what each does, its source, and its limits
// with their defaults and the values that they take.
func DescribePolicies(names []string, width int) (string, error) {
	if len(names) == 0 {
		names = append(allocator.PolicyNames(), allocator.Auto)
	}
	var texts []string
	for _, name := range names {
		description, known := allocator.DescribePolicy(name)
		if !known {
			_, err := allocator.New(name, nil)
			return "", err
		}
		texts = append(texts, policyDescription(&description, width))
	}
	return strings.Join(texts, "\n"), nil
}

// defaultWidth is the width of the column of defaults. Longer ones take a line of their own.
const defaultWidth = 13

func policyDescription(d *allocator.Description, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n  %s\n", d.Name, console.WrapIndented(d.Summary, 2, width), console.WrapIndented("Source: "+d.Source+".", 2, width))
	if len(d.Limits) == 0 {
		return b.String()
	}
	names := 0
	for i := range d.Limits {
		names = max(names, len(d.Limits[i].Name))
	}
	takesAt := 2 + names + 2 + defaultWidth + 2
	fmt.Fprintf(&b, "  %-*s  %-*s  %s\n", names, "LIMIT", defaultWidth, "DEFAULT", "TAKES")
	for i := range d.Limits {
		l := &d.Limits[i]
		row := fmt.Sprintf("  %-*s  %-*s", names, l.Name, defaultWidth, setting.LimitValueText(l))
		if len(row) > takesAt {
			row += "\n" + strings.Repeat(" ", takesAt-2)
		}
		fmt.Fprintf(&b, "%s  %s\n      %s\n", row, console.WrapIndented(limitValuesText(l), takesAt, width), console.WrapIndented(l.Help, 6, width))
	}
	return b.String()
}

// limitsOfRecording returns the limits of a recording that its policy still has.
func limitsOfRecording(h *recording.Header) (settings []allocator.Setting) {
	d, _ := allocator.DescribePolicy(h.Policy)
	for i := range d.Limits {
		if value, ok := allocator.RecordedLimit(h.Limits, d.Limits[i].Name); ok {
			settings = append(settings, allocator.Setting{Name: d.Limits[i].Name, Value: value})
		}
	}
	return settings
}

// configurationOfCurve returns the configuration that a hit-rate curve is about: that of the program, or the default one for a program
// without a pool.
func configurationOfCurve(policy string, settings []allocator.Setting) (string, []allocator.Setting) {
	if policy == "none" {
		return allocator.Default, nil
	}
	return policy, settings
}
