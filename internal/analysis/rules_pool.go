package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// driverTimeOfMisses is what the driver took for misses.
func driverTimeOfMisses(e *Evidence) (lost uint64) {
	for i := range e.Whole.Misses {
		lost += e.Whole.Misses[i].LostNS
	}
	return lost
}

// findLowHitRate judges the later half of the requests: if the driver took time for what the pool could have served, or if the
// simplest pool would serve far more.
func findLowHitRate(e *Evidence) (Diagnosis, bool) {
	t, all := &e.Run.Totals, e.Whole.Misses
	if e.Run.Policy == "none" || t.Hits+t.Misses < requestsLeast || t.SteadyHitRate() >= hitRateLow || len(all) == 0 {
		return Diagnosis{}, false
	}
	main := &all[0]
	for i := range all {
		if all[i].Count > main.Count {
			main = &all[i]
		}
	}
	if main.Reason == Reason(wire.MissCold.String()) && (e.Rise != nil || e.Whole.Keeps != nil) {
		return Diagnosis{}, false // a buffer that is never released cannot serve again: findMemoryGrowth reports it
	}
	lost, simplest := driverTimeOfMisses(e), ""
	if e.Whole.Simplest-t.SteadyHitRate() >= simplestServes {
		simplest = fmt.Sprintf("; a pool that keeps all that is released would serve up to %s", units.Percent(e.Whole.Simplest, 1))
	} else if float64(lost) < driverShare*float64(e.Length) {
		return Diagnosis{}, false // nothing to gain
	}
	return Diagnosis{
		Severity: Advice, Title: "the pool serves few requests", Share: shareOfWhole(lost, e.Length),
		Text: fmt.Sprintf("hit rate %s in the later half; %d of %s have the reason %s: %s%s", units.Percent(t.SteadyHitRate(), t.SteadyRequests),
			main.Count, units.Plural(t.Misses, "miss", "misses"), main.Reason, main.Knob.Why, simplest),
		Knob: main.Knob,
	}, true
}

// findLoopWithoutPool finds a loop that calls the driver each time, in a run without a pool. Creates in a row without a release are no loop
// that a pool could serve.
func findLoopWithoutPool(e *Evidence) (Diagnosis, bool) {
	t := &e.Run.Totals
	loops := slices.ContainsFunc(e.Whole.Phases, func(p Phase) bool { return p.Recycles })
	if e.Run.Policy != "none" || !loops || t.MissReasons[wire.MissPolicy] < requestsLeast {
		return Diagnosis{}, false
	}
	lost := driverTimeOfMisses(e)
	if float64(lost) < driverShare*float64(e.Length) {
		return Diagnosis{}, false
	}
	probes := ""
	if e.Attached {
		probes = ", including the time of the probes"
	}
	d := Diagnosis{
		Severity: Advice, Title: "every iteration goes to the driver", Share: shareOfWhole(lost, e.Length),
		Text: fmt.Sprintf("%s of poolable buffers took %s%s", units.Count(t.MissReasons[wire.MissPolicy], "create"), e.callTimeText(lost, false), probes),
	}
	d.offerBestPolicy(moreHits, "futhark", "slab", "arena")
	d.needed = true
	return d, true
}

// findWorstMissSite finds the call site that missed most of late, if the driver took time.
func findWorstMissSite(e *Evidence) (Diagnosis, bool) {
	l := e.Late
	reason := l.AtSite.mainMissReason()
	if l.Site == "" || float64(l.DriverNS) < driverShare*float64(l.Length) || e.Run.Policy == "none" || e.doMissesFollowGrowth(reason) {
		return Diagnosis{}, false
	}
	knob := e.knobForMiss(reason)
	d := Diagnosis{
		Severity: Advice, Title: l.Site + " hits " + units.Percent(l.AtSite.hitRate(), 1), Tag: l.Site, Knob: knob,
		Text:  fmt.Sprintf("%s of late, mostly %s", units.Plural(l.AtSite.Misses, "miss", "misses"), reason),
		Share: shareOfWhole(l.DriverNS, l.Length),
	}
	if knob.Why != "" {
		d.Text += ": " + knob.Why
	}
	return d, true
}

// findHarmfulLimit finds a limit that evicted what was needed soon after, unless findWorstMissSite names it.
func findHarmfulLimit(e *Evidence) (Diagnosis, bool) {
	l := e.Late
	site, _ := findWorstMissSite(e)
	for _, reason := range []wire.Miss{wire.MissLimit, wire.MissTagCap} {
		knob, n := e.knobForMiss(reason), l.Reasons[reason]
		if reason == wire.MissLimit { // each block that another limit evicted explains one miss at most
			_, others := limitThatEvictsMost(e.Run)
			n -= min(n, others)
		}
		if n >= requestsLeast && knob.Limit != "" {
			return Diagnosis{
				Severity: Advice, Title: knob.Limit + " bites", Knob: knob, Share: shareOfWhole(n, l.Hits+l.Misses),
				Text: fmt.Sprintf("of late %s for blocks that it had evicted", units.Plural(n, "miss", "misses")),
			}, knob.Limit != site.Knob.Limit
		}
	}
	return Diagnosis{}, false
}

// doMissesFollowGrowth reports whether misses follow from growth: a buffer that is never released cannot serve again.
func (e *Evidence) doMissesFollowGrowth(reason wire.Miss) bool {
	return e.Rise != nil && reason == wire.MissCold
}

// findUselessPolicy finds a policy that cannot do its work, or has none to do.
func findUselessPolicy(e *Evidence) (Diagnosis, bool) {
	t, least := &e.Run.Totals, uint64(1)
	d := Diagnosis{Severity: Advice, Title: e.Run.Policy + " makes no sub-allocations", Text: e.Run.WhyNothingCarved()}
	if d.Text != "" {
		d.offerBestPolicy(anyGain, "futhark")
		return d, true
	}
	if e.State == GoesOn {
		least = requestsLeast
	}
	d.Severity, d.Title = Note, e.Run.Policy+" served nothing from slabs"
	d.Text = units.Count(t.Hits+t.Misses, "request") + " got blocks of their own, as do images and what is larger than max_part"
	return d, limitNamed(e.Run, "max_part") != nil && t.PeakSlabs == 0 && t.Hits+t.Misses >= least && e.Run.Lost == 0
}

// findExposedContents finds kernels that may have read what earlier owners left, where the driver's new memory would have been zero: the
// program may depend on that without a pool. Many programs have such kernels, and are fine.
func findExposedContents(e *Evidence) (Diagnosis, bool) {
	t := &e.Run.Totals
	if t.ExposedNewZero == 0 || len(e.Run.Tags) == 0 {
		return Diagnosis{}, false
	}
	most := slices.MaxFunc(e.Run.Tags, func(a, b stats.Tag) int { return cmp.Compare(a.Exposed, b.Exposed) })
	equal := 0
	for i := range e.Run.Tags {
		if e.Run.Tags[i].Exposed == most.Exposed {
			equal++
		}
	}
	others := ""
	if equal > 1 {
		others = fmt.Sprintf(" and of %s each", units.Plural(uint64(equal-1), "other call site", "other call sites"))
	}
	return Diagnosis{
		Severity: Note, Title: "kernels may read what a block's earlier owner left", Tag: most.Name, About: AboutContents,
		Text: fmt.Sprintf("%s; most often (%d) of %s%s; gpumemtop compare --outputs shows whether the program reads them", ExposedText(t), most.Exposed, most.Name, others),
	}, true
}

// ExposedCountText says how many buffers were exposed. Only a release shows whether a buffer was.
func ExposedCountText(t *stats.Totals) string {
	text := units.Count(t.Exposed, "recycled buffer")
	if t.LiveBuffers > 0 {
		return "at least " + text
	}
	return text
}

// ExposedText says how many buffers were exposed, where the driver's new memory was zero.
func ExposedText(t *stats.Totals) string {
	text := "kernels were the first to use " + ExposedCountText(t) + ", which nothing had written; the driver's new memory was zero"
	if t.ExposedNewZero < t.Exposed {
		text += fmt.Sprintf(" for %d of them", t.ExposedNewZero)
	}
	return text
}

// findWorseChange finds a change of the user's after which less is served.
func findWorseChange(e *Evidence) (Diagnosis, bool) {
	c := e.Change
	if c == nil || e.State != GoesOn || !c.IsWorse() {
		return Diagnosis{}, false
	}
	before, after := &c.Before, &c.After
	return Diagnosis{
		Severity: Advice, Title: "worse since " + c.Label, About: AboutChange, Share: before.HitRate() - after.HitRate(),
		Text: fmt.Sprintf("hit rate %s before, %s after", units.Percent(before.HitRate(), before.Requests), units.Percent(after.HitRate(), after.Requests)),
	}, true
}

// knobForMiss returns the limit of the present policy that may help against a reason for misses, or why none does.
func (e *Evidence) knobForMiss(reason wire.Miss) Knob {
	now, s := misses{}, e.Run
	if l := limitNamed(s, "max_waste_ratio"); l != nil {
		now.ratios = []float64{l.Value + 0.4}
	}
	for _, name := range []string{"max_per_tag", "max_per_bucket"} {
		if l := limitNamed(s, name); l != nil && now.capMost == 0 {
			now.capMost = uint64(l.Value) // twice as many
		}
	}
	if l := limitNamed(s, stats.MaxCachedBytes); l != nil {
		now.cachedMost = uint64(min(2*l.Value, 1<<62))
	}
	if knob, known := e.kneeKnob(); known && reason == wire.MissLimit {
		if most, _ := limitThatEvictsMost(s); most == wire.EvictLimit {
			return knob
		}
	}
	knob := now.knobForMissReason(reason, s)
	if knob.Limit != "" {
		knob.Why = "" // which a replay says
	}
	return knob
}

// kneeKnob sets the limit of cached bytes to the knee of the curve, where that is more than what is in force.
func (e *Evidence) kneeKnob() (Knob, bool) {
	l := limitNamed(e.Run, stats.MaxCachedBytes)
	if l == nil || e.Knee == nil || float64(e.Knee.Limit) <= l.Value || float64(e.Knee.Limit) > l.Max {
		return Knob{}, false
	}
	if f := limitNamed(e.Run, "max_cached_fraction"); f != nil && f.Value*float64(e.Run.Device.Global) < float64(e.Knee.Limit) && e.Run.Device.Global > 0 {
		return Knob{}, false // it bites first
	}
	return Knob{
		Limit: l.Name, Value: strconv.FormatUint(e.Knee.Limit, 10), simulated: true,
		Why: l.Name + "=" + units.FormatLong(e.Knee.Limit) + " is the knee of the curve (c), the least limit within two points of its best hit rate",
	}, true
}
