package portable

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// Text writes the result for people.
func (r *Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.Device.Name, verdictTexts[r.Verdict])
	if r.First != "" {
		fmt.Fprintf(&b, "; what fails first: %s", r.First)
	}
	b.WriteString("\n")
	var table units.Table
	for i := range r.Checks {
		c := &r.Checks[i]
		table.Add("  "+string(c.Verdict), c.What, c.Text)
		if c.Failure != nil {
			table.Add("", "", fmt.Sprintf("first at %s, %s after the start", units.Clean(c.Failure.Site), units.Duration(c.Failure.Time)))
		}
		if c.Remedy != "" {
			table.Add("", "", c.Remedy)
		}
	}
	b.WriteString(table.String())
	return b.String()
}

var verdictTexts = map[Verdict]string{
	Fits: "it would run", Fails: "it would not run", Unknown: "nothing speaks against it, but not all is known",
}

// ProfileTable returns a table of the built-in devices, at most width columns wide.
func ProfileTable(width int) string {
	table := units.Table{Width: width, Least: []string{"ALIGNMENT", "LARGEST BUFFER"}}
	table.Add("DEVICE", "MEMORY", "LARGEST BUFFER", "ALIGNMENT", "WHAT IT IS")
	for _, name := range ProfileNames() {
		p, _ := BuiltInProfile(name)
		align := "?"
		if p.Align > 0 {
			align = units.FormatLong(p.Align / 8)
		}
		table.Add(name, sizeOrUnknown(p.Memory), sizeOrUnknown(p.Largest), align, p.Name)
	}
	return table.String()
}

// sizeOrUnknown writes a size, or that it is unknown.
func sizeOrUnknown(bytes uint64) string {
	if bytes == 0 {
		return "?"
	}
	return units.FormatLong(bytes)
}
