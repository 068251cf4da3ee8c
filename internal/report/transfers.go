package report

import (
	"fmt"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TransfersSummary sums up the commands that moved memory.
type TransfersSummary struct {
	Unified  bool           `json:"unified"`   // a device uses the host's memory
	OwnSites bool           `json:"own_sites"` // sites are those of the calls, not of the creates
	ToDevice units.Joined   `json:"to_device"`
	ToHost   units.Joined   `json:"to_host"`
	Within   units.Joined   `json:"within"` // within a device's memory, fills and migrations
	Mapped   units.Joined   `json:"mapped"`
	Between  units.Joined   `json:"between_devices"` // contents that only other devices had: the driver chose how to move them
	AtCreate units.Joined   `json:"at_create"`       // by creates with CL_MEM_COPY_HOST_PTR
	PerSite  []units.Joined `json:"per_site"`        // the most time first, then the most bytes; at most stats.TransferSitesMax
	Others   uint64         `json:"other_sites"`
}

// flowJSON returns the bytes, counts and times of a flow, and its rate.
func flowJSON(f *stats.Flow, first ...any) units.Joined {
	type speed struct {
		Rate float64 `json:"bytes_per_second"` // as measured by the device, or else by blocking calls; 0: unknown
	}
	return append(first, f, speed{f.BytesPerSecond()})
}

func transfersSummary(t *stats.Transfers) TransfersSummary {
	of := func(d stats.Direction) units.Joined { return flowJSON(&t.Directions[d]) }
	s := TransfersSummary{
		Unified: t.Unified, OwnSites: t.OwnSites, ToDevice: of(stats.ToDevice), ToHost: of(stats.ToHost), Within: of(stats.Within),
		Mapped: of(stats.Mapped), Between: of(stats.Between), AtCreate: of(stats.AtCreate), PerSite: []units.Joined{}, Others: t.OtherSites,
	}
	type site struct {
		Site    string   `json:"site"`
		Stack   []string `json:"stack,omitempty"` // innermost first
		Command string   `json:"command"`
	}
	for i := range t.Sites {
		x := &t.Sites[i]
		s.PerSite = append(s.PerSite, flowJSON(&x.Flow, site{x.Name, x.Stack, x.CommandText()}))
	}
	return s
}

// movedBytesText says in one line how many bytes were moved; empty: none.
func movedBytesText(t *stats.Transfers) string {
	var parts []string
	for d, words := range [...]string{"to the device", "read back", "within the device", "mapped", "between devices", "copied by creates"} {
		f := &t.Directions[d]
		if f.Calls == 0 {
			continue
		}
		text := units.FormatLong(f.Bytes) + " " + words
		if stats.Direction(d) < stats.Mapped {
			text += transferSpeedText(f)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// transferSpeedText says how fast bytes were moved, if known. The rate of blocking calls includes waits.
func transferSpeedText(f *stats.Flow) string {
	least := units.FormatRateAtLeast(f.BytesPerSecond())
	switch {
	case least == "":
		return ""
	case f.Profiled == 0:
		return " at " + least + " or more"
	case f.ProfiledBytes < f.Bytes:
		return " at " + units.FormatRate(f.BytesPerSecond()) + ", as far as profiled (" + units.FormatLong(f.ProfiledBytes) + ")"
	}
	return " at " + units.FormatRate(f.BytesPerSecond())
}

// blockedByTransfersText says how long transfers blocked; empty: none did.
func blockedByTransfersText(s *stats.Snapshot) string {
	var calls, ns uint64
	for i := range s.Transfers.Directions {
		calls, ns = calls+s.Transfers.Directions[i].Blocking, ns+s.Transfers.Directions[i].NS
	}
	if calls == 0 {
		return ""
	}
	return fmt.Sprintf("%s of all threads in %s, with waits for earlier commands; the run took %s", units.Duration(ns), units.Plural(calls, "blocking transfer", "blocking transfers"), units.Duration(s.WallNS()))
}

func transferLines(s *stats.Snapshot) []string {
	if text := movedBytesText(&s.Transfers); text != "" {
		return []string{"  transfers  " + text}
	}
	return nil
}

// transfersSection shows moved bytes by direction and by call site, and transfers that are superfluous.
func (v *view) transfersSection() section {
	t := &v.s.Transfers
	if !t.HasAny() {
		return section{}
	}
	s := section{ID: "transfers", Title: "Transfers", Intro: "What commands, and creates that copy, moved between host and device. Blocking calls are timed, with their waits for earlier commands; " +
		"a device with profiling times the others."}
	if t.Unified {
		s.Intro += " Device and host have the same memory."
		s.Notes = append(s.Notes, "device and host have the same memory")
	}
	if !t.OwnSites {
		s.Intro += " Call sites are those of the memory's creates."
		s.Notes = append(s.Notes, "call sites are those of the memory's creates: the recording has no others")
	}
	s.Tables = []table{v.directionsTable(t), v.transferSitesTable(t), v.transferFindingsTable(v.a.Transfers)}
	return s
}

var flowColumns = []column{
	numberColumn("calls"), numberColumn("bytes"), numberColumn("blocking"), numberColumn("with waits"), numberColumn("profiled"), numberColumn("speed"), numberColumn("pinned"), numberColumn("cold"),
}

// cellsOfFlow show the figures of a flow. moves: its bytes move, not only the right to use them.
func (v *view) cellsOfFlow(f *stats.Flow, moves bool) []cell {
	at, text := v.unknownCell(), units.FormatRate(f.BytesPerSecond())
	if !moves { // a map need not move bytes
		text = ""
	} else if f.Profiled == 0 { // blocking calls also wait
		text = units.FormatRateAtLeast(f.BytesPerSecond())
		if text != "" {
			text = "≥ " + text
		}
	}
	if text != "" {
		at = numberCell(v.narrowSpaces(text), f.BytesPerSecond())
	}
	cold := v.unknownCell()
	if f.IsColdKnown() {
		cold = v.rateCell(fractionOf(f.Cold, f.Pages), f.Pages)
	}
	return []cell{
		v.countCell(f.Calls), v.bytesCell(f.Bytes), v.countCell(f.Blocking), v.durationCell(f.NS), v.durationCell(f.ProfiledNS), at,
		v.rateCell(fractionOf(f.Pinned, f.Pinned+f.Pageable), f.Pinned+f.Pageable),
		cold,
	}
}

func (v *view) directionsTable(t *stats.Transfers) table {
	table := v.newTable("Transfers, by direction", 0, append(slices.Clip(flowColumns), wordsColumn("direction").withFirstPlace())...)
	table.heading = "by direction"
	for d := stats.ToDevice; d <= stats.AtCreate; d++ {
		if f := &t.Directions[d]; f.Calls > 0 {
			table.addRow(append(v.cellsOfFlow(f, d != stats.Mapped), cell{Text: d.String()})...)
		}
	}
	return table
}

func (v *view) transferSitesTable(t *stats.Transfers) table {
	n := len(t.Sites)
	table := v.newTable("Transfers, by call site", n+int(min(t.OtherSites, 1<<20)), append(slices.Clip(flowColumns), wordsColumn("command"),
		wordsColumn("call site").withFirstPlace())...)
	table.heading = "by call site"
	for i := range t.Sites[:min(v.countRowsToShow(n), n)] {
		x, stack := &t.Sites[i], []string(nil)
		if v.page {
			stack = x.Stack
		}
		table.addRow(append(v.cellsOfFlow(&x.Flow, x.Between || x.Command != wire.CommandMap), cell{Text: x.CommandText()}, v.siteCell(x.Name, stack))...)
	}
	return table
}

func (v *view) transferFindingsTable(list []analysis.TransferFinding) table {
	table := v.newTable("Transfers that could go or be faster", len(list), numberColumn("calls"), numberColumn("bytes"),
		numberColumn("time"),
		wordsColumn("what to do").withPageOnly(), wordsColumn("call site"), wordsColumn("finding").withFirstPlace())
	table.heading = "that could go or be faster"
	for i := range list[:v.countRowsToShow(len(list))] {
		f := &list[i]
		name := string(f.Kind)
		if !f.Certain {
			name += " (sampled)"
		}
		took := v.unknownCell()
		if f.NS > 0 {
			took = v.durationCell(f.NS)
		}
		table.addRow(v.countCell(f.Count), v.bytesCell(f.Bytes), took, cell{Text: f.Advice}, v.siteCell(f.Name, nil),
			cell{Text: name})
	}
	return table
}
