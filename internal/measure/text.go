package measure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"codeberg.org/gpumemtop/gpumemtop/internal/lab/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// WriteJSON writes the result for scripts, and for gpumemtop itself.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the result for people.
func (r *Result) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for i := range r.Devices {
		if i > 0 {
			b.WriteString("\n")
		}
		r.Devices[i].text(&b)
	}
	_, err := b.WriteTo(w)
	return err
}

func (d *Device) text(b *bytes.Buffer) {
	fmt.Fprintf(b, "%d: %s (%s), driver %s\n", d.Number, plain.Clean(d.Device), plain.Clean(d.Platform), plain.Clean(d.Driver))
	plain.Pairs(b, d.facts())
	if len(d.Points) > 0 {
		b.WriteString("\n" + table(d.Points) + "\n" + chart(d.Points) + "\n")
		lines := [][2]string{
			{"create", d.Create.text()}, {"first touch", d.Touch.text()}, {"reuse", d.Reuse.text()}, {"release", d.Release.text()},
		}
		if d.New != nil {
			lines = append(lines, [2]string{"new: create", d.New.Create.text()}, [2]string{"new: touch", d.New.Touch.text()})
		}
		plain.Pairs(b, lines)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(b, "%s\n", plain.Clean(note))
	}
	if d.Error != "" {
		fmt.Fprintf(b, "failed: %s\n", plain.Clean(d.Error))
	}
}

func (d *Device) facts() [][2]string {
	shares := ""
	if d.Unified {
		shares = ", which is the host's"
	}
	rows := [][2]string{
		{"memory", fmt.Sprintf("%s%s; at most %s at a time", size.FormatLong(d.GlobalMemory), shares, size.FormatLong(d.MaxAlloc))},
		{"local memory", fmt.Sprintf("%s; cache line %s; %s", size.FormatLong(d.LocalMemory), size.FormatLong(uint64(d.CacheLine)), plain.Count(uint64(d.ComputeUnits), "compute unit"))},
	}
	parts := "begin at multiples of " + size.FormatLong(uint64(d.BaseAlign))
	if d.SubCreate > 0 {
		parts += fmt.Sprintf("; create %s, release %s", duration(d.SubCreate), duration(d.SubRelease))
	}
	rows = append(rows, [2]string{"sub-buffers", parts})
	if len(d.Points) == 0 {
		return rows
	}
	caching := "the driver keeps no released memory, as far as can be seen"
	if d.DriverCaches {
		caching = "released memory is kept for the next create, up to " + size.FormatLong(d.CachesUpTo)
	}
	return append(rows, [2]string{"allocation", d.Residency.text()}, [2]string{"caching", caching})
}

func (r Residency) text() string {
	switch r {
	case AtFirstUse:
		return "lazy: the first command that uses a buffer makes its memory"
	case ByPage:
		return "lazy: each page is made when it is first written"
	case AtCreate:
		return "the memory is there when the create returns"
	}
	return "buffers were too small to tell when their memory comes"
}

// duration writes ns.
func duration(ns float64) string { return plain.Duration(uint64(math.Round(ns))) }

// lineText writes a + b·size ns.
func lineText(a, b float64) string {
	if perMiB := b * (1 << 20); perMiB >= 0.5 {
		return fmt.Sprintf("%s + %s per MiB", duration(a), duration(perMiB))
	}
	return duration(a)
}

func (f *Fit) text() string {
	text := lineText(f.A, f.B)
	if f.Below != (cost.Below{}) {
		text = fmt.Sprintf("%s from %s on, below %s", text, size.FormatLong(f.Below.Bytes), lineText(f.Below.A, f.Below.B))
	}
	return fmt.Sprintf("%s; R² %.3f, at worst %.0f %% off", text, f.R2, 100*f.Error)
}

// table is a row for each size. New memory has columns of its own where it was measured.
func table(points []Point) string {
	var b strings.Builder
	fresh := len(withFresh(points)) > 0
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	heads := "SIZE\tN\tCREATE\tFIRST TOUCH\tREUSE\tRELEASE\t"
	if fresh {
		heads += "NEW: CREATE\tFIRST TOUCH\t"
	}
	fmt.Fprintln(w, heads)
	for i := range points {
		p := &points[i]
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t", size.Format(p.Size), p.N, duration(p.Create), duration(p.Touch), duration(p.Reuse), duration(p.Release))
		switch {
		case p.Fresh != nil:
			fmt.Fprintf(w, "%s\t%s\t", duration(p.Fresh.Create), duration(p.Fresh.Touch))
		case fresh:
			fmt.Fprint(w, "-\t-\t")
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	return b.String()
}
