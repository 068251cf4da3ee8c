package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// machined is a snapshot with figures of the machine.
func machined(figures ...stats.MachineFigure) *stats.Snapshot {
	s := fullSnapshot()
	s.Machine = figures
	return s
}

func TestMachineTexts(t *testing.T) {
	const mib = 1 << 20
	reserved := fullSnapshot().Totals.ReservedBytes()
	for name, test := range map[string]struct {
		figures []stats.MachineFigure
		want    []string
	}{
		"nothing":     {nil, nil},
		"short RSS":   {[]stats.MachineFigure{{Source: wire.MachineRSS, Bytes: mib, Since: 5, Latest: 6}}, nil},
		"RSS":         {[]stats.MachineFigure{{Source: wire.MachineRSS, Bytes: 2 * mib, Peak: 3 * mib, First: mib, Since: 5, Latest: 5 + rssLeast}}, []string{"anonymous 2.00 MiB, peak 3.00 MiB, 1.00 MiB at first"}},
		"device":      {[]stats.MachineFigure{{Source: wire.MachineNVML, Bytes: reserved + mib, Since: 5}}, []string{"of it reserved: driver's own 1.00 MiB"}},
		"group":       {[]stats.MachineFigure{{Source: wire.MachineDMEM, Bytes: mib, Peak: mib, Since: 5}}, []string{"control group 1.00 MiB, peak 1.00 MiB"}},
		"not allowed": {[]stats.MachineFigure{{Source: wire.MachineDRM, Unread: 13}}, []string{"DRM not readable: permission denied"}},
	} {
		got := machineFigureTexts(machined(test.figures...))
		if len(got) != len(test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], test.want[i]) {
				t.Errorf("%s: %q, want %q", name, got[i], test.want[i])
			}
		}
	}
}

// TestMachineInReports: summaries, all forms of a report, and their JSON have the figures.
func TestMachineInReports(t *testing.T) {
	const mib = 1 << 20
	s := machined(
		stats.MachineFigure{Source: wire.MachineRSS, Bytes: 90 * mib, Peak: 91 * mib, First: 10 * mib, Since: 1, Latest: 1 + rssLeast},
		stats.MachineFigure{Source: wire.MachineDRM, Device: 0x300, Bytes: 8 * mib, Peak: 9 * mib, First: mib, Since: 1},
		stats.MachineFigure{Source: wire.MachineDMEM, Unread: 13})
	a := &analysis.Analysis{Snapshot: s, Growth: []analysis.Growth{{Source: wire.MachineRSS, Each: 1000}}}
	a.Timeline = analysis.Timeline{
		Step: 1, InUse: []uint64{1, 2}, Cached: []uint64{0, 0}, Cooling: []uint64{0, 0}, Fragmentation: []float64{0, 0}, Waste: []float64{0, 0},
		Hits: []uint64{0, 0}, Misses: []uint64{0, 0}, Machine: []analysis.MachineSeries{{Source: "rss", Values: []uint64{3, 4}}},
	}
	summary := NewSummary(s)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"summary":  func(b *bytes.Buffer) error { return summary.WriteText(b) },
		"text":     func(b *bytes.Buffer) error { return WriteText(b, a, Options{All: true}) },
		"Markdown": func(b *bytes.Buffer) error { return WriteMarkdown(b, a, Options{All: true}) },
		"HTML":     func(b *bytes.Buffer) error { return WriteHTML(b, a, Options{}) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"anonymous 90.0 MiB", "own", "DMEM not readable"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
	}
	var page, text bytes.Buffer
	if err := errors.Join(WriteHTML(&page, a, Options{}), WriteText(&text, a, Options{All: true})); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "What the machine reports, and what is reserved, over time") || !strings.Contains(text.String(), "\nanonymous  ") {
		t.Errorf("over time:\n%s", text.String())
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, a, Options{}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Machine []json.RawMessage }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || len(got.Machine) != 3 {
		t.Fatalf("%v, %d figures", err, len(got.Machine))
	}
	for i, want := range []string{
		`{"source":"rss","bytes":94371840,"peak":95420416,"first":10485760,"growth_per_iteration":1000}`,
		`{"source":"drm","device":"0000:03:00.0","bytes":8388608,"peak":9437184,"first":1048576,"drivers_own":`,
		`{"source":"dmem","bytes":0,"peak":0,"first":0,"not_readable":"permission denied"}`,
	} {
		var text bytes.Buffer
		if err := json.Compact(&text, got.Machine[i]); err != nil || !strings.HasPrefix(text.String(), want) {
			t.Errorf("%s, %v, want %s", text.String(), err, want)
		}
	}
}
