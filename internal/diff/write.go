package diff

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// formatFigure writes a figure for people, with a sign where it is a difference.
func formatFigure(u figures.Unit, value float64, signed bool) string {
	sign := ""
	if signed && value > 0 {
		sign = "+"
	}
	if value < 0 {
		sign, value = "-", -value
	}
	switch u {
	case figures.Bytes:
		return sign + units.FormatLong(uint64(value))
	case figures.Rate:
		unit := "%"
		if signed {
			unit = "points" // percentage points
		}
		return sign + fmt.Sprintf("%.2f %s", 100*value, unit)
	case figures.Nanos, figures.Seconds:
		return sign + units.Duration(uint64(value))
	default:
		return sign + fmt.Sprintf("%.0f", value)
	}
}

// lacksCallsOnOneSide reports whether it compares with calls that one run does not have.
func (c *Change) lacksCallsOnOneSide() bool { return c.Test == Ranks && min(c.OfA, c.OfB) == 0 }

// deltaText returns the change from A to B.
func (c *Change) deltaText() string {
	switch {
	case c.A == c.B:
		return "="
	case c.lacksCallsOnOneSide():
		return ""
	}
	return formatFigure(c.Figure.Unit, c.Delta(), true)
}

// percentText returns the relative change from A to B.
func (c *Change) percentText() string {
	if c.Figure.Unit == figures.Rate || c.A == 0 || c.A == c.B || c.slight || c.Test == Ranks && min(c.OfA, c.OfB) < callsLeast {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*c.Delta()/c.A)
}

// valueOfRunText returns the value of one run, and how many calls a median is of.
func (c *Change) valueOfRunText(value float64, of uint64) string {
	text := formatFigure(c.Figure.Unit, value, false)
	switch {
	case c.Test != Ranks:
		return text
	case of == 0:
		return "no call"
	}
	return fmt.Sprintf("%s of %d", text, of)
}

func (c *Change) significanceMark() string {
	switch {
	case c.Significant && c.Delta() > 0:
		return "▲"
	case c.Significant:
		return "▼"
	}
	return ""
}

// WriteText writes the changes for people. top bounds the call sites; 0: all. width bounds the tables, in columns.
func (d *Diff) WriteText(w io.Writer, a, b string, top, width int) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "A  %s\nB  %s\n", units.Clean(a), units.Clean(b))
	for _, note := range d.Notes {
		fmt.Fprintf(&out, "   %s\n", units.Clean(note))
	}
	fmt.Fprintln(&out, "\nOVERALL")
	writeChanges(&out, d.Overall, false, width)
	d.writeSites(&out, top, width)
	fmt.Fprintf(&out, "\n▲ ▼ significant: counts, rates and medians (of N calls) differ by more than chance (%g %% over all rows), sizes by more than %g %% "+
		"and %s, times measured once by more than %g %% and %g %% of the run\n", 100*level, 100*thresholdRate,
		units.FormatLong(thresholdBytes), 100*thresholdTime, 100*thresholdRun)
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write changes: %w", err)
	}
	return nil
}

// writeSites lists the call sites that changed.
func (d *Diff) writeSites(out *bytes.Buffer, top, width int) {
	shown, same := 0, 0
	for i := range d.Tags {
		t := &d.Tags[i]
		if !t.hasDifferences() {
			same++
			continue
		}
		if shown++; top > 0 && shown > top {
			continue
		}
		name := units.Clean(t.Name)
		switch t.Fate {
		case Moved:
			name += ", before " + units.Clean(t.Before)
		case Added, Removed:
			name += " (" + string(t.Fate) + ")"
		case Kept:
		}
		fmt.Fprintf(out, "\n%s\n", name)
		writeChanges(out, t.Changes, true, width)
	}
	if top > 0 && shown > top {
		fmt.Fprintf(out, "\nand %s\n", units.Plural(uint64(shown-top), "more call site that differs", "more call sites that differ"))
	}
	if same > 0 {
		fmt.Fprintf(out, "\n%s the same in both\n", units.Plural(uint64(same), "call site is", "call sites are"))
	}
}

func (t *Tag) hasDifferences() bool {
	if t.Fate != Kept {
		return true
	}
	for i := range t.Changes {
		if t.Changes[i].A != t.Changes[i].B {
			return true
		}
	}
	return false
}

// writeChanges writes a table. With only it leaves out equal figures.
func writeChanges(out *bytes.Buffer, list []Change, only bool, width int) {
	table := units.Table{
		Align: "rrrrrl", Indent: "  ", Width: width, Titles: []string{"figure", "A", "B", "change", "percent", "mark"}, Least: []string{"change", "percent"},
	}
	if !only {
		table.Add("", "A", "B", "change")
	}
	for i := range list {
		c := &list[i]
		if only && c.A == c.B || c.Test == Ranks && c.OfA+c.OfB == 0 {
			continue
		}
		table.Add(fmt.Sprintf("%20s", c.Figure.Name), c.valueOfRunText(c.A, c.OfA), c.valueOfRunText(c.B, c.OfB), c.deltaText(), c.percentText(), c.significanceMark())
	}
	out.WriteString(table.String())
}

type changeJSON struct {
	Figure      string   `json:"figure"`
	Unit        string   `json:"unit"`
	A           float64  `json:"a"`
	B           float64  `json:"b"`
	Delta       float64  `json:"delta"`
	Test        Test     `json:"test"`
	P           *float64 `json:"p,omitempty"` // where the test gives one
	Significant bool     `json:"significant"`
}

type tagJSON struct {
	Tag     string       `json:"tag"`
	Before  string       `json:"before,omitempty"`
	Fate    Fate         `json:"fate"`
	Changes []changeJSON `json:"changes"`
}

func changesJSON(list []Change) []changeJSON {
	out := make([]changeJSON, 0, len(list))
	for i := range list {
		c := &list[i]
		j := changeJSON{c.Figure.Name, c.Figure.Unit.String(), c.A, c.B, c.Delta(), c.Test, nil, c.Significant}
		if c.Test != Exact && c.Test != Threshold && !math.IsNaN(c.P) {
			j.P = &c.P
		}
		out = append(out, j)
	}
	return out
}

// WriteJSON writes the changes for scripts: sizes in bytes, times in ns, rates 0 to 1.
func (d *Diff) WriteJSON(w io.Writer, a, b string) error {
	tags := make([]tagJSON, 0, len(d.Tags))
	for i := range d.Tags {
		t := &d.Tags[i]
		tags = append(tags, tagJSON{units.Clean(t.Name), units.Clean(t.Before), t.Fate, changesJSON(t.Changes)})
	}
	notes := d.Notes
	if notes == nil {
		notes = []string{}
	}
	if err := units.WriteJSON(w, map[string]any{"a": a, "b": b, "notes": notes, "overall": changesJSON(d.Overall), "tags": tags}); err != nil {
		return fmt.Errorf("write changes: %w", err)
	}
	return nil
}
