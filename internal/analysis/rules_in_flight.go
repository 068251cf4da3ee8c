package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// inFlightLeast is how much memory that was released in flight is worth a line, bytes. Where the processes grew by half of it, or by
// an eighth that is more than grownMuch, the driver holds it: it may allocate only when commands begin.
const (
	inFlightLeast = 16 << 20
	grownMuch     = 256 << 20
)

// findReleasedInFlight finds memory that the program released before it waited for the commands that use it, if that is as much as the
// program has in use. Commands may end without a wait: what the machine reports must have grown with it, where the machine reports
// something.
func findReleasedInFlight(e *Evidence) (Diagnosis, bool) {
	t := &e.Run.Totals
	held := t.InFlight.Peak
	if e.State == GoesOn {
		held = t.InFlight.Now
	}
	if held < max(inFlightLeast, t.PeakInUse) {
		return Diagnosis{}, false
	}
	grown, known := growthBesideBuffers(e.Run, false)
	if known && grown < min(held/2, max(held/8, grownMuch)) || !known && e.Attached {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "the driver may hold much more than the program has in use", Share: shareOfWhole(held, held+t.PeakInUse),
		Text: fmt.Sprintf("up to %s, beside at most %s in use: %s (%s in all) came before a wait for the commands that use the memory, which a driver "+
			"keeps until they end: wait now and then, with clFinish or for an event of an earlier round", units.FormatLong(held), units.FormatLong(t.PeakInUse),
			units.Count(t.InFlight.Releases, "release"), units.FormatLong(t.InFlight.Bytes)),
	}
	if e.Run.Policy == "none" && t.Misses > 0 {
		d.Text += ", or try whether a pool ends it (--policy futhark)"
	}
	if len(e.Run.Tags) > 0 {
		most := slices.MaxFunc(e.Run.Tags, func(a, b stats.Tag) int { return cmp.Compare(a.InFlight.Bytes, b.InFlight.Bytes) })
		d.Tag = most.Name
		d.Text += fmt.Sprintf("; the most, %s, was created at %s", units.FormatLong(most.InFlight.Bytes), d.Tag)
	}
	return d, true
}

// findMemoryBesideBuffers finds memory that a driver may hold where no command is an event, so that nothing is known of releases in flight:
// the processes grew beside buffers that are smaller, and at least half of that can be what the driver was asked for.
func findMemoryBesideBuffers(e *Evidence) (Diagnosis, bool) {
	t := &e.Run.Totals
	grown, known := growthBesideBuffers(e.Run, e.State == GoesOn)
	if !known || t.Uses > 0 || e.Run.Spill != nil || grown < max(grownMuch, t.PeakReserved) || grown/2 > t.BytesAllocated {
		return Diagnosis{}, false
	}
	whose := "of the process"
	if len(e.Run.Processes) > 1 {
		whose = "of the processes"
	}
	if !e.Run.Transfers.Unified {
		whose += " on the device"
	}
	d := Diagnosis{
		Severity: Advice, Title: "memory grew beside the buffers", Share: shareOfWhole(grown, grown+t.PeakReserved),
		Text: fmt.Sprintf("by %s, the memory %s, while at most %s was reserved: a driver keeps what is released until the commands that use it end, "+
			"which a wait now and then allows (clFinish, or an event of an earlier round)", units.FormatLong(grown), whose, units.FormatLong(t.PeakReserved)),
	}
	if e.Run.Policy == "none" {
		d.Text += ", or a pool makes needless (--policy futhark)"
	}
	d.Text += "; or it is the program's own: a recording (-o) shows what is released in flight"
	return d, true
}

// growthBesideBuffers returns by how much the memory of the processes grew, at most or until now, as the machine reports it, beyond the
// most reserved: their RSS where that is the devices' memory; false if the machine reports nothing.
func growthBesideBuffers(s *stats.Snapshot, untilNow bool) (bytes uint64, known bool) {
	sources := []wire.Machine{wire.MachineDRM, wire.MachineNVML}
	if s.Transfers.Unified {
		sources = []wire.Machine{wire.MachineRSS}
	}
	for _, source := range sources {
		for i := range s.Machine {
			if f := &s.Machine[i]; f.Source == source && f.Since != 0 {
				is := f.Peak
				if untilNow {
					is = f.Bytes
				}
				bytes, known = bytes+is-min(f.First, is), true
			}
		}
		if known {
			break
		}
	}
	return bytes - min(bytes, s.Totals.PeakReserved), known
}
