package report

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MachineSummary is a figure of the machine about memory, from one source and for one device.
type MachineSummary struct {
	Source      string  `json:"source"` // rss (anonymous memory), drm, nvml, dmem or resident (RSS)
	Device      string  `json:"device,omitempty"`
	Bytes       uint64  `json:"bytes"` // at the end, or when it was last read
	Peak        uint64  `json:"peak"`
	First       uint64  `json:"first"`                          // when it was read first
	DriversOwn  *uint64 `json:"drivers_own,omitempty"`          // on all devices together, beyond what is reserved; only in one entry
	Growth      int64   `json:"growth_per_iteration,omitempty"` // beyond the growth of buffers, if an analysis finds it
	NotReadable string  `json:"not_readable,omitempty"`         // why
}

// machineSummaries returns the figures. The first of those from which the driver's own memory is computed has that, too.
func machineSummaries(figures []stats.MachineFigure, t *stats.Totals) []MachineSummary {
	var list []MachineSummary
	own, known := stats.DriversOwnBytes(figures, t)
	for i := range figures {
		f := &figures[i]
		m := MachineSummary{
			Source: f.Source.String(), Device: f.DeviceName(), Bytes: f.Bytes, Peak: f.Peak, First: f.First, NotReadable: f.WhyUnread(),
		}
		if known && f.Unread == 0 && (f.Source == wire.MachineDRM || f.Source == wire.MachineNVML) {
			m.DriversOwn, known = &own, false
		}
		list = append(list, m)
	}
	return list
}

// addGrowth adds the growth that an analysis found.
func addGrowth(list []MachineSummary, growth []analysis.Growth) {
	for _, g := range growth {
		for i := range list {
			if m := &list[i]; m.Source == g.Source.String() && m.Growth == 0 {
				m.Growth = g.Each
			}
		}
	}
}

// rssLeast is the least time in ns between the first and the last value of a process's memory for a line about it.
const rssLeast = 1_000_000_000

// machineFigureTexts return sentences about the machine's figures; none if they show nothing.
func machineFigureTexts(s *stats.Snapshot) []string {
	var texts, unread []string
	if _, known := stats.BytesOnDevice(s.Machine); known {
		texts = append(texts, memoryOnDeviceText(s))
	}
	for i := range s.Machine {
		f := &s.Machine[i]
		switch {
		case f.Unread != 0:
			unread = append(unread, f.SourceWord()+" not readable: "+f.WhyUnread())
		case (f.Source == wire.MachineRSS || f.Source == wire.MachineResident) && f.Latest >= f.Since+rssLeast:
			texts = append(texts, f.SourceWord()+" "+units.FormatLong(f.Bytes)+", peak "+units.FormatLong(f.Peak)+", "+units.FormatLong(f.First)+" at first")
		case f.Source == wire.MachineDMEM:
			texts = append(texts, "control group "+units.FormatLong(f.Bytes)+", peak "+units.FormatLong(f.Peak))
		}
	}
	return append(texts, unread...)
}

func memoryOnDeviceText(s *stats.Snapshot) string {
	bytes, _ := stats.BytesOnDevice(s.Machine)
	own, _ := stats.DriversOwnBytes(s.Machine, &s.Totals)
	return units.FormatLong(bytes) + " on the device at the end, " + runFigureText(figures.Reserved, figures.SubjectOfSnapshot(s)) + " of it reserved: driver's own " + units.FormatLong(own)
}
