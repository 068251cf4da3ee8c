package analysis

import (
	"fmt"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

func wasteIsHigh(x *run, a *Analysis) (Diagnosis, bool) {
	return wasted(x.snapshot, a.Peak.InUse, a.Peak.Requested, "at the peak")
}

// wasted judges what is in use at a time, which when names.
func wasted(s *stats.Snapshot, inUse, requested uint64, when string) (Diagnosis, bool) {
	wasted := inUse - min(requested, inUse)
	rate := wasteOf(int64(inUse), int64(requested))
	if rate < wasteHigh || wasted < bytesLeast {
		return Diagnosis{}, false
	}
	d := Diagnosis{
		Severity: Advice, Title: "blocks are much larger than requested", Share: rate,
		Text: fmt.Sprintf("%s of the %s in use %s are waste, %s", units.FormatLong(wasted), units.FormatLong(inUse), when,
			units.Percent(rate, 1)),
	}
	if l := limit(s, "mantissa_bits"); l != nil && l.Value < l.Max {
		d.Knob = Knob{Limit: l.Name, Value: strconv.Itoa(int(l.Value) + 1), Why: "more bits waste less"}
	} else if l := limit(s, "max_waste_ratio"); l != nil && l.Value > wasteRatio && s.Policy == "futhark-2018" {
		// With futhark the limit concerns only blocks of other call sites.
		d.Knob = Knob{Limit: l.Name, Value: strconv.FormatFloat(wasteRatio, 'f', -1, 64), Why: "larger blocks then serve no such request"}
	}
	return d, true
}

func poolIsFragmented(x *run, a *Analysis) (Diagnosis, bool) {
	if x.snapshot.WholeBlocks != "" {
		return Diagnosis{}, false // slabs cannot help
	}
	l := &a.Timeline
	if a.Peak.InUse == 0 || len(l.Fragmentation) == 0 {
		return Diagnosis{}, false
	}
	at := min((a.Peak.Time-min(l.Start, a.Peak.Time))/l.Step, uint64(len(l.Fragmentation)-1))
	return fragmented(a.Peak.InUse, a.Peak.Reserved, l.Fragmentation[at], x.snapshot, "at the peak")
}

// fragmented judges free memory at a time, which when names.
func fragmented(inUse, reserved uint64, fragmentation float64, s *stats.Snapshot, when string) (Diagnosis, bool) {
	free := reserved - min(inUse, reserved)
	if fragmentation < fragmentationHigh || free < bytesLeast || float64(free) < idleShare*float64(reserved) {
		return Diagnosis{}, false
	}
	text := units.FormatLong(free) + " is free"
	if when != now {
		text = when + " " + units.FormatLong(free) + " was free"
	}
	other := "slab whether sub-allocations fit better"
	if s.Carves() {
		other = "futhark whether whole blocks fit better"
	}
	return Diagnosis{
		Severity: Advice, Title: "free memory is fragmented " + when, Share: share(free, reserved),
		Text: fmt.Sprintf("%s beside %s in use, no piece larger than %s of it: check with gpumemtop replay --policy %s",
			text, units.FormatLong(inUse), units.Percent(1-fragmentation, free), other),
	}, true
}

// nothingCarved finds a policy that cannot do its work.
func nothingCarved(x *run, _ *Analysis) (Diagnosis, bool) {
	why := x.snapshot.CarvesNothing()
	if why == "" {
		return Diagnosis{}, false
	}
	return Diagnosis{
		Severity: Advice, Title: x.snapshot.Policy + " makes no sub-allocations", Text: why + ": choose a policy of whole blocks (--policy futhark)",
	}, true
}
