package report

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// MachineSummary is what the machine reports of memory, from one source and of one device.
type MachineSummary struct {
	Source      string  `json:"source"` // rss (anonymous memory), drm, nvml, dmem or resident (RSS)
	Device      string  `json:"device,omitempty"`
	Bytes       uint64  `json:"bytes"` // at the end, or when it could be read last
	Peak        uint64  `json:"peak"`
	First       uint64  `json:"first"`                          // when it was read first
	DriversOwn  *uint64 `json:"drivers_own,omitempty"`          // on all devices, beyond what is reserved; in one entry
	Growth      int64   `json:"growth_per_iteration,omitempty"` // beyond that of the buffers, where a report finds it
	NotReadable string  `json:"not_readable,omitempty"`         // why
}

// machineSummaries returns the figures with the driver's own memory in the first that it is made of.
func machineSummaries(figures []stats.MachineFigure, t *stats.Totals) []MachineSummary {
	var list []MachineSummary
	own, known := stats.DriversOwn(figures, t)
	for i := range figures {
		f := &figures[i]
		m := MachineSummary{
			Source: f.Source.String(), Device: f.DeviceName(), Bytes: f.Bytes, Peak: f.Peak, First: f.First, NotReadable: f.Why(),
		}
		if known && f.Unread == 0 && (f.Source == wire.MachineDRM || f.Source == wire.MachineNVML) {
			m.DriversOwn, known = &own, false
		}
		list = append(list, m)
	}
	return list
}

// addGrowth notes what an analysis found.
func addGrowth(list []MachineSummary, growth []analysis.Growth) {
	for _, g := range growth {
		for i := range list {
			if m := &list[i]; m.Source == g.Source.String() && m.Growth == 0 {
				m.Growth = g.Each
			}
		}
	}
}

// rssLeast is how long a figure of the process must have changed, ns, to be worth a line: a shorter course shows nothing.
const rssLeast = 1_000_000_000

// machineTexts say what the machine reports: empty where there is nothing to see.
func machineTexts(s *stats.Snapshot) []string {
	var texts, unread []string
	if _, known := stats.OnDevice(s.Machine); known {
		texts = append(texts, onDeviceText(s))
	}
	for i := range s.Machine {
		f := &s.Machine[i]
		switch {
		case f.Unread != 0:
			unread = append(unread, f.Word()+" not readable: "+f.Why())
		case (f.Source == wire.MachineRSS || f.Source == wire.MachineResident) && f.Latest >= f.Since+rssLeast:
			texts = append(texts, f.Word()+" "+units.FormatLong(f.Bytes)+", peak "+units.FormatLong(f.Peak)+", "+units.FormatLong(f.First)+" at first")
		case f.Source == wire.MachineDMEM:
			texts = append(texts, "control group "+units.FormatLong(f.Bytes)+", peak "+units.FormatLong(f.Peak))
		}
	}
	return append(texts, unread...)
}

func onDeviceText(s *stats.Snapshot) string {
	bytes, _ := stats.OnDevice(s.Machine)
	own, _ := stats.DriversOwn(s.Machine, &s.Totals)
	return units.FormatLong(bytes) + " on the device at the end, " + figureText(figures.Reserved, figures.Run(s)) + " of it reserved: driver's own " + units.FormatLong(own)
}
