package figures

import (
	"maps"
	"math"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// rateIfPooled returns a rate of requests, which is known where there was a pool and a request that it could have served.
func (s *Subject) rateIfPooled(rate float64, requests uint64) Value {
	v := rateValue(rate, requests)
	switch {
	case s.Evidence != nil && s.Run.Policy == "none":
		v.Why = noPool
	case requests == 0:
		v.Why = noRequest
	}
	return v
}

// valueIfUsesKnown returns a figure that needs the commands.
func (s *Subject) valueIfUsesKnown(n uint64) Value {
	if s.Uses == 0 {
		return unknownValue(noUses)
	}
	return countValue(n)
}

func leakedBytes(l *analysis.Leak) uint64   { return l.Bytes }
func leakedBuffers(l *analysis.Leak) uint64 { return l.Buffers }

// sumOfLeaks adds up leaks: those of a call site, or all for "". What processes held when a signal ended them is none.
func (s *Subject) sumOfLeaks(site string, of func(*analysis.Leak) uint64) Value {
	if s.State == analysis.GoesOn {
		return unknownValue(goesOn)
	}
	var sum uint64
	if s.Run.WasAllHeldByKilled() {
		return countValue(0)
	}
	for i := range s.Leaks {
		if l := &s.Leaks[i]; site == "" || l.Name == site {
			sum += of(l)
		}
	}
	return countValue(sum)
}

// countLeakedObjects counts objects of some types.
func (s *Subject) countLeakedObjects(counts func(stats.ObjectType) bool) Value {
	var sum uint64
	for i := range s.Run.Objects {
		if c := &s.Run.Objects[i]; counts(c.Type) {
			sum += c.Leaked
		}
	}
	return countValue(sum)
}

// phasesThatRepeat returns the phases in which something repeats.
func (s *Subject) phasesThatRepeat() (list []*analysis.Phase, why string) {
	if s.Whole == nil {
		return nil, noRecording
	}
	for i := range s.Whole.Phases {
		if p := &s.Whole.Phases[i]; p.Iterations > 0 {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, noIteration
	}
	return list, ""
}

func objectGrowthValue(s *Subject) Value {
	phases, why := s.phasesThatRepeat()
	if why != "" {
		return unknownValue(why)
	}
	most := 0.0
	for _, p := range phases {
		sum := 0.0
		for _, g := range p.Objects {
			if !g.IsOfMemory() {
				sum += g.PerIteration
			}
		}
		most = max(most, sum)
	}
	return Value{Number: most}
}

func bufferGrowthValue(s *Subject) Value {
	phases, why := s.phasesThatRepeat()
	if why != "" {
		return unknownValue(why)
	}
	most := math.Inf(-1)
	for _, p := range phases {
		most = max(most, float64(p.MedianGrowth()))
	}
	return Value{Number: most}
}

func peakWasteValue(s *Subject) Value {
	if s.Whole == nil {
		return unknownValue(noRecording)
	}
	var granted, requested uint64
	for i := range s.Whole.Peak.Tags {
		granted += s.Whole.Peak.Tags[i].InUse
		requested += s.Whole.Peak.Tags[i].Requested
	}
	if granted <= requested { // nothing in use wastes nothing
		return rateValue(0, granted)
	}
	return rateValue(float64(granted-requested)/float64(granted), granted)
}

func createCostCurve(a *analysis.Analysis) *analysis.CostCurve  { return &a.CreateCost }
func copyCostCurve(a *analysis.Analysis) *analysis.CostCurve    { return &a.CopyCost }
func releaseCostCurve(a *analysis.Analysis) *analysis.CostCurve { return &a.ReleaseCost }

// medianCallCost returns the median duration of the driver's calls of one kind.
func (s *Subject) medianCallCost(of func(*analysis.Analysis) *analysis.CostCurve) Value {
	if s.Whole == nil {
		return unknownValue(noRecording)
	}
	c := of(s.Whole.Analysis)
	return Value{Number: float64(c.P50), Of: c.Calls, Times: &c.Times}
}

// countCertainMistakes counts the certain ones, and those beyond the list.
func countCertainMistakes(s *Subject) Value {
	certain := s.Run.OtherFindings
	for i := range s.Run.Findings {
		if s.Run.Findings[i].IsCertain() {
			certain++
		}
	}
	return countValue(certain)
}

// splitCreatesByOutcome splits creates by how they were served.
func splitCreatesByOutcome(s *Subject, take func(string, uint64)) {
	take("hit", s.Hits)
	take("miss", s.Misses)
	take("ineligible", s.Unpooled)
	take("other", s.Creates-min(s.Creates, s.Hits+s.Misses+s.Unpooled))
}

// splitFailuresByStatus splits failures by status. Those for lack of memory are always there, so that the first failure is an
// increase: mem object allocation failure, out of resources, out of host memory, invalid buffer size.
func splitFailuresByStatus(s *Subject, take func(string, uint64)) {
	counts := map[string]uint64{"-4": 0, "-5": 0, "-6": 0, "-61": 0, "other": s.Failures}
	for _, f := range s.FailedWith {
		if f.Count > 0 {
			counts[f.StatusNumberText()] = f.Count
			counts["other"] -= min(counts["other"], f.Count)
		}
	}
	visitInOrderOfNames(counts, take)
}

func splitBytesByDirection(s *Subject, take func(string, uint64)) {
	for i := range s.Run.Transfers.Directions {
		take(stats.Direction(i).String(), s.Run.Transfers.Directions[i].Bytes)
	}
}

func splitMistakesByKind(s *Subject, take func(string, uint64)) {
	counts := map[string]uint64{}
	for i := range s.Run.Findings {
		counts[s.Run.Findings[i].Kind.String()] += s.Run.Findings[i].Count
	}
	visitInOrderOfNames(counts, take)
}

func splitMachineBySource(s *Subject, take func(string, uint64)) {
	counts := map[string]uint64{}
	for i := range s.Run.Machine {
		counts[s.Run.Machine[i].Source.String()] += s.Run.Machine[i].Bytes
	}
	visitInOrderOfNames(counts, take)
}

func splitLeftOut(s *Subject, take func(string, uint64)) {
	take("creates", s.Run.Beyond)
	take("files", s.Run.Nameless)
}

func visitInOrderOfNames(counts map[string]uint64, take func(string, uint64)) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		take(name, counts[name])
	}
}
