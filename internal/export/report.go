package export

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// reportRows is how many tags and processes a report lists when nobody says.
const reportRows = 20

// ReportOptions choose what a report shows.
type ReportOptions struct {
	Top int // rows in each table; 0: 20, negative: all
}

// Report writes a run as text: what ran, totals, tags, miss reasons, what was never released, what happened.
func Report(w io.Writer, s *model.Snapshot, opts ReportOptions) error {
	if opts.Top == 0 {
		opts.Top = reportRows
	}
	var b bytes.Buffer
	reportHead(&b, s)
	if len(s.Processes) == 0 {
		fmt.Fprintln(&b, "\nno OpenCL call was seen")
	} else {
		reportTotals(&b, s)
		reportProcesses(&b, s, opts.Top)
		reportTagTable(&b, s, opts.Top)
		reportShares(&b, s, opts.Top)
		reportMisses(&b, &s.Totals)
		reportMistakes(&b, s, opts.Top)
		reportAlive(&b, s, opts.Top)
	}
	reportMarks(&b, s)
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// table aligns the cells that fill writes, separated by tabs. Cells but the first stand right.
func table(b *bytes.Buffer, fill func(w io.Writer)) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(w)
	_ = w.Flush() // a bytes.Buffer takes everything
}

// pairs aligns names and their values, which stand left.
func pairs(b *bytes.Buffer, rows [][2]string) {
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(b, "%-12s %s\n", row[0], row[1])
		}
	}
}

func reportHead(b *bytes.Buffer, s *model.Snapshot) {
	words := append([]string{s.Program}, s.Arguments...)
	rows := [][2]string{
		{"program", clean(strings.Join(words, " "))},
		{"policy", policyText(s)},
	}
	for i := range s.Limits {
		rows = append(rows, [2]string{"limit", s.Limits[i].Name + " = " + limitText(&s.Limits[i])})
	}
	if d := s.Device; d.Name != "" {
		rows = append(rows, [2]string{"device", fmt.Sprintf("%s (%s), %s", d.Name, d.Driver, size.FormatLong(d.Global))})
	}
	rows = append(rows, [2]string{"time", fmt.Sprintf("%.3f s, %d events", seconds(s.Started, s.Time), s.Events)})
	if s.Lost > 0 {
		rows = append(rows, [2]string{"lost", fmt.Sprintf("%d events (%d of them uses): figures are too low", s.Lost, s.LostUses)})
	}
	if s.Unknown > 0 {
		rows = append(rows, [2]string{"unknown", fmt.Sprintf("%d events about objects that were never seen created", s.Unknown)})
	}
	pairs(b, rows)
}

// limitText writes a limit's value for people.
func limitText(l *model.Limit) string {
	switch {
	case l.Kind == model.LimitBytes:
		return size.FormatLong(uint64(max(l.Value, 0)))
	case l.Kind == model.LimitSeconds && l.Value == 0 && l.Min == 0:
		return "off"
	case l.Kind == model.LimitSeconds:
		return l.Text + " s"
	}
	return l.Text
}

func heading(b *bytes.Buffer, text string) { fmt.Fprintf(b, "\n%s\n", strings.ToUpper(text)) }

func reportTotals(b *bytes.Buffer, s *model.Snapshot) {
	t := &s.Totals
	heading(b, "totals")
	pairs(b, [][2]string{
		{"hit rate", hitText(t)},
		{"driver", driverText(t)},
		{"in driver", fmt.Sprintf("%s in %d creates and %d releases; create p50 %s, p99 %s", duration(t.DriverNS),
			t.DriverCreates, t.DriverReleases, duration(t.DriverCreateP50), duration(t.DriverCreateP99))},
		{"calls", fmt.Sprintf("%d creates (%d failed, %d never eligible), %d releases; create p50 %s, p99 %s",
			t.Creates, t.Failures, t.Unpooled, t.Releases, duration(t.CreateP50NS), duration(t.CreateP99NS))},
		{"bytes", fmt.Sprintf("%s requested in all, %s created by the driver", size.FormatLong(t.BytesRequested),
			size.FormatLong(t.BytesAllocated))},
		{"memory", fmt.Sprintf("%s, at %.3f s", memoryText(t), seconds(s.Started, t.PeakInUseTime))},
		{"at the end", endText(t)},
		{"slabs", slabsText(t)},
		{"hazards", fmt.Sprintf("%d releases of buffers that commands still used", t.HazardsAvoided)},
	})
}

// topOf bounds a list and tells how many it leaves out.
func topOf[T any](list []T, most int) (kept []T, left int) {
	if most < 0 || len(list) <= most {
		return list, 0
	}
	return list[:most], len(list) - most
}

func reportTagTable(b *bytes.Buffer, s *model.Snapshot, most int) {
	heading(b, "tags, by peak")
	tags, left := topOf(tagsByPeak(s.Tags), most)
	table(b, func(w io.Writer) {
		fmt.Fprintln(w, "peak\tin use\tlive\tcached\tcreates\thits\thit rate\twaste\t  tag")
		for _, t := range tags {
			fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t  %s\n", size.Format(t.PeakInUse), size.Format(t.InUse), t.Live,
				size.Format(t.Cached+t.Cooling), t.Creates, t.Hits, percent(t.HitRate(), t.Hits+t.Misses),
				percent(t.Waste(), t.InUse), clean(t.Name))
		}
	})
	reportLeft(b, left)
}

func reportLeft(b *bytes.Buffer, left int) {
	if left > 0 {
		fmt.Fprintf(b, "and %s\n", count(uint64(left), "more tag"))
	}
}

func reportMisses(b *bytes.Buffer, t *model.Totals) {
	if t.Misses == 0 {
		return
	}
	heading(b, "misses, by reason")
	table(b, func(w io.Writer) {
		for reason, n := range t.MissReasons {
			if n > 0 {
				fmt.Fprintf(w, "%d\t%s\t  %s\n", n, percent(float64(n)/float64(t.Misses), t.Misses), wire.Miss(reason))
			}
		}
	})
}

func reportAlive(b *bytes.Buffer, s *model.Snapshot, most int) {
	heading(b, "leaked at exit, by tag")
	tags, left := topOf(leaks(s.Tags), most)
	if len(tags) == 0 {
		fmt.Fprintln(b, "nothing")
		return
	}
	table(b, func(w io.Writer) {
		fmt.Fprintln(w, "buffers\tbytes\t  tag")
		for _, t := range tags {
			fmt.Fprintf(w, "%d\t%s\t  %s\n", t.Live, size.Format(t.InUse), clean(t.Name))
			for _, frame := range t.Stack {
				fmt.Fprintf(w, "\t\t    %s\n", clean(frame))
			}
		}
	})
	reportLeft(b, left)
}

func reportMarks(b *bytes.Buffer, s *model.Snapshot) {
	if len(s.Marks) == 0 {
		return
	}
	heading(b, "what happened")
	for _, mark := range s.Marks {
		fmt.Fprintf(b, "%10.3f s  %-6s %s\n", seconds(s.Started, mark.Time), mark.Kind, clean(mark.Text))
	}
	if len(s.Marks) == model.MarksMax {
		fmt.Fprintf(b, "(the last %d)\n", model.MarksMax)
	}
}
