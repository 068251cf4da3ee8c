package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// What a trial must gain to be named.
const (
	gainHits   = 0.05 // of the requests,
	gainMemory = 0.1  // or of the most reserved
	loseHits   = 0.01 // of the requests, which a trial that gains memory may lose
	moreMemory = 2    // times the most reserved, which a trial that gains hits may take
	sameHits   = 0.005
)

// Trial is a configuration that a finding would name: another policy, or the present one with another value of a limit.
type Trial struct{ Policy, Limit, Value string }

// String names the trial in sentences.
func (t Trial) String() string {
	if t.Limit != "" {
		return t.Limit + "=" + t.Value
	}
	return t.Policy
}

// Outcome is what a replay of a configuration did.
type Outcome struct {
	Hits, Requests, PeakReserved uint64
	Failures                     uint64 // requests that found no memory
	Unpooled                     uint64 // creates that no pool serves: PeakReserved is without their memory
}

func (o *Outcome) hitRate() float64 { return float64(o.Hits) / float64(max(o.Requests, 1)) }

// gain is what a trial is for.
type gain uint8

const (
	anyGain gain = iota
	moreHits
	lessMemory
	halfMemory // at any loss of hits
	noLoss     // its gain is no figure of a replay
)

// hasGainedEnough reports whether a trial gained enough to be named.
func (g gain) hasGainedEnough(present, trial *Outcome) bool {
	if trial.Failures > present.Failures {
		return false
	}
	hits := trial.hitRate() - present.hitRate()
	more := hits >= gainHits && trial.PeakReserved <= moreMemory*present.PeakReserved
	less := float64(trial.PeakReserved) <= (1-gainMemory)*float64(present.PeakReserved) && hits >= -loseHits
	switch g {
	case moreHits:
		return more
	case lessMemory:
		return less
	case halfMemory:
		return 2*trial.PeakReserved <= present.PeakReserved && trial.Hits > 0
	case noLoss:
		return hits >= -loseHits
	}
	return less || more
}

// hasGainedMore reports whether one trial gained more than another.
func (g gain) hasGainedMore(a, b *Outcome) bool {
	if g == moreHits && math.Abs(a.hitRate()-b.hitRate()) > sameHits {
		return a.Hits > b.Hits
	}
	return a.PeakReserved < b.PeakReserved
}

// trials are what a finding would name, beside its limit.
type trials struct {
	policies string // by space
	gain     gain
	needed   bool // the finding holds only if one of them serves more, as far as they were replayed
}

// offerBestPolicy makes a finding name that policy which gains most, once they were replayed.
func (d *Diagnosis) offerBestPolicy(g gain, policies ...string) {
	d.policies, d.gain = strings.Join(policies, " "), g
}

// Replays are what replays of trials did.
type Replays struct {
	Present  Outcome // of the configuration in force
	Outcomes map[Trial]Outcome
	Part     string // which part of the run was replayed; empty: all of it
}

// TrialsOfFindings returns what the findings would name, for Replayed. There are none where the present configuration is not that of the whole run.
func (a *Analysis) TrialsOfFindings() (list []Trial) {
	if s := a.Snapshot; s == nil || len(s.Change.Former) > 0 || !showsWhatRunsDo(s) {
		return nil
	}
	list = trialsOfFindings(a.Diagnoses, a.Snapshot.Policy)
	for i := range a.Misses {
		if k := &a.Misses[i].Knob; k.Limit != "" {
			list = append(list, Trial{a.Snapshot.Policy, k.Limit, k.Value})
		}
	}
	return list
}

// showsWhatRunsDo reports whether a replay of the present configuration shows what a run does.
func showsWhatRunsDo(s *stats.Snapshot) bool {
	return s.Auto == nil && s.Spill == nil && s.Totals.Plans.Installed == 0 && s.Totals.Hits+s.Totals.Misses > 0
}

// trialsOfFindings returns what findings would name.
func trialsOfFindings(found []Diagnosis, present string) (list []Trial) {
	for i := range found {
		list = append(list, found[i].listTrials(present)...)
	}
	return list
}

// listTrials returns what a finding would name.
func (d *Diagnosis) listTrials(present string) (list []Trial) {
	if d.Knob.simulated {
		return nil
	}
	if d.Knob.Limit != "" {
		return []Trial{{present, d.Knob.Limit, d.Knob.Value}}
	}
	for _, policy := range strings.Fields(d.policies) { // the present one, too: the run may have other limits than its defaults
		list = append(list, Trial{Policy: policy})
	}
	return list
}

// ApplyReplays completes the findings with what replays did, and takes back what gained nothing or was not replayed. Call it once, before
// the analysis is shared.
func (a *Analysis) ApplyReplays(r *Replays) {
	a.Diagnoses = slices.DeleteFunc(a.Diagnoses, func(d Diagnosis) bool { return r.refutesFinding(&d, a.Snapshot.Policy) })
	for i := range a.Diagnoses {
		a.Diagnoses[i].applyReplays(a.Snapshot.Policy, r)
	}
	for i := range a.Misses {
		k := &a.Misses[i].Knob
		t := Trial{a.Snapshot.Policy, k.Limit, k.Value}
		o, known := r.Outcomes[t]
		switch {
		case k.Limit == "":
		case known && anyGain.hasGainedEnough(&r.Present, &o):
			k.Why += "; " + r.TrialText(t)
		default:
			k.Limit, k.Value = "", ""
		}
	}
}

// applyReplays completes a finding likewise.
func (d *Diagnosis) applyReplays(present string, r *Replays) {
	list := d.listTrials(present)
	best := r.bestTrial(d.gain, list)
	if best == (Trial{}) && d.gain == lessMemory { // the sentence has both figures
		best = r.bestTrial(halfMemory, list)
	}
	if best != (Trial{}) {
		gives := r.TrialText(best)
		if best == (Trial{Policy: present}) { // the run has other limits
			gives = strings.Replace(gives, present, present+" and its default limits", 1)
		}
		d.Text += "; " + gives
	} else if len(list) > 0 {
		d.Knob = Knob{}
	}
}

// refutesFinding reports whether a finding needs a trial that serves more, and replays show that none does.
func (r *Replays) refutesFinding(d *Diagnosis, present string) bool {
	tried, serve := false, false
	for _, t := range d.listTrials(present) {
		o, known := r.Outcomes[t]
		tried, serve = tried || known, serve || known && o.hitRate()-r.Present.hitRate() >= gainHits
	}
	return d.needed && tried && !serve
}

// bestTrial returns the trial that gained most; the zero Trial: none gained enough.
func (r *Replays) bestTrial(g gain, list []Trial) (best Trial) {
	for _, t := range list {
		o, known := r.Outcomes[t]
		if b := r.Outcomes[best]; known && g.hasGainedEnough(&r.Present, &o) && (best == Trial{} || g.hasGainedMore(&o, &b)) {
			best = t
		}
	}
	return best
}

// BestTrialText says what that of the trials would have done which gained most; empty: none gained enough to be named.
func (r *Replays) BestTrialText(list []Trial) string {
	if best := r.bestTrial(anyGain, list); best != (Trial{}) {
		return r.TrialText(best)
	}
	return ""
}

// TrialText says what a trial would have done.
func (r *Replays) TrialText(t Trial) string {
	return fmt.Sprintf("replayed with %s%s: %s", t, r.Part, r.Present.ComparedWithPresentText(r.Outcomes[t]))
}

// PoolableSuffix ends words about reserved memory; empty: the memory is all of the program's.
func (o *Outcome) PoolableSuffix() string {
	if o.Unpooled > 0 {
		return " of poolable memory"
	}
	return ""
}

// ComparedWithPresentText says what another outcome is beside the present one.
func (o *Outcome) ComparedWithPresentText(then Outcome) string {
	of := then.PoolableSuffix()
	memory := fmt.Sprintf("the same %s%s reserved at most", units.FormatLong(then.PeakReserved), of)
	if then.PeakReserved != o.PeakReserved {
		a, b := units.FormatApart(then.PeakReserved, o.PeakReserved)
		memory = fmt.Sprintf("%s%s reserved at most instead of %s", a, of, b)
	}
	now, is := units.Percent(o.hitRate(), o.Requests), units.Percent(then.hitRate(), then.Requests)
	if now == is {
		return memory + ", the same " + is + " hits"
	}
	return memory + ", " + is + " hits instead of " + now
}
