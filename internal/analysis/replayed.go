package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// What a trial must gain to be named.
const (
	gainHits   = 0.05 // of the requests,
	gainMemory = 0.1  // or of the most reserved
	loseHits   = 0.01 // of the requests, which a trial that gains memory may lose
	sameHits   = 0.005
	sameMemory = 0.01
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
}

func (o *Outcome) rate() float64 { return float64(o.Hits) / float64(max(o.Requests, 1)) }

// gain is what a trial is for.
type gain uint8

const (
	anyGain gain = iota
	moreHits
	lessMemory
	noLoss // its gain is no figure of a replay
)

// reached reports whether a trial gained enough to be named.
func (g gain) reached(present, trial *Outcome) bool {
	if trial.Failures > present.Failures {
		return false
	}
	hits := trial.rate() - present.rate()
	less := float64(trial.PeakReserved) <= (1-gainMemory)*float64(present.PeakReserved) && hits >= -loseHits
	switch g {
	case moreHits:
		return hits >= gainHits
	case lessMemory:
		return less
	case noLoss:
		return hits >= -loseHits
	}
	return less || hits >= gainHits
}

// better reports whether one trial gained more than another.
func (g gain) better(a, b *Outcome) bool {
	if g == moreHits && math.Abs(a.rate()-b.rate()) > sameHits {
		return a.Hits > b.Hits
	}
	return a.PeakReserved < b.PeakReserved
}

// trials are what a finding would name, with what it says as long as nothing was replayed.
type trials struct {
	policies string // by space
	gain     gain
	untried  string // the end of Text
}

// try makes a finding name those policies that gain, once they were replayed.
func (d *Diagnosis) try(g gain, untried string, policies ...string) {
	d.trials = trials{strings.Join(policies, " "), g, untried}
	d.Text += untried
}

// Trials returns what the findings would name, for Replayed. There are none where the present configuration is not that of the whole run.
func (a *Analysis) Trials() (list []Trial) {
	s := a.Snapshot
	if s == nil || len(s.Change.Former) > 0 || s.Auto != nil || s.Spill != nil || s.Totals.Plans.Installed > 0 || s.Totals.Hits+s.Totals.Misses == 0 {
		return nil
	}
	add := func(t Trial) {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	for i := range a.Diagnoses {
		for _, t := range a.Diagnoses[i].tried(s.Policy) {
			add(t)
		}
	}
	for i := range a.Misses {
		if k := &a.Misses[i].Knob; k.Limit != "" {
			add(Trial{s.Policy, k.Limit, k.Value})
		}
	}
	return list
}

// tried returns what a finding would name.
func (d *Diagnosis) tried(present string) (list []Trial) {
	if d.Knob.Limit != "" {
		return []Trial{{present, d.Knob.Limit, d.Knob.Value}}
	}
	for _, policy := range strings.Fields(d.policies) {
		if policy != present {
			list = append(list, Trial{Policy: policy})
		}
	}
	return list
}

// Replayed completes the findings with what replays did, and takes back what gained nothing. part says which part of the recording was
// replayed; empty: all of it. Call it once, before the analysis is shared.
func (a *Analysis) Replayed(present Outcome, outcomes map[Trial]Outcome, part string) {
	for i := range a.Diagnoses {
		d := &a.Diagnoses[i]
		list := d.tried(a.Snapshot.Policy)
		if len(list) == 0 {
			continue
		}
		d.Text = strings.TrimSuffix(d.Text, d.untried)
		best := Trial{}
		for _, t := range list {
			o, known := outcomes[t]
			if b := outcomes[best]; known && d.gain.reached(&present, &o) && (best == Trial{} || d.gain.better(&o, &b)) {
				best = t
			}
		}
		if (best == Trial{}) {
			d.Knob = Knob{}
			continue
		}
		d.Text += "; " + present.against(best, outcomes[best], part)
	}
	for i := range a.Misses {
		k := &a.Misses[i].Knob
		t := Trial{a.Snapshot.Policy, k.Limit, k.Value}
		o, known := outcomes[t]
		switch {
		case k.Limit == "":
		case known && anyGain.reached(&present, &o):
			k.Why += "; " + present.against(t, o, part)
		default:
			k.Limit, k.Value = "", ""
		}
	}
}

// against says what a trial would have done.
func (o *Outcome) against(t Trial, then Outcome, part string) string {
	return fmt.Sprintf("replayed with %s%s: %s", t, part, o.versus(then))
}

func (o *Outcome) versus(then Outcome) string {
	memory := fmt.Sprintf("the same %s reserved at most", units.FormatLong(then.PeakReserved))
	if now, is := float64(o.PeakReserved), float64(then.PeakReserved); math.Abs(now-is) > sameMemory*now {
		a, b := units.Apart(then.PeakReserved, o.PeakReserved)
		memory = fmt.Sprintf("%s reserved at most instead of %s", a, b)
	}
	hits := "the same " + units.Percent(then.rate(), then.Requests) + " hits"
	if math.Abs(o.rate()-then.rate()) > sameHits {
		hits = fmt.Sprintf("%s hits instead of %s", units.Percent(then.rate(), then.Requests), units.Percent(o.rate(), o.Requests))
	}
	return memory + ", " + hits
}
