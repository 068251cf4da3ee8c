package watch

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The words that --measure takes besides configurations.
const (
	MeasureOn  = "on"
	MeasureOff = "off"
)

// MeasureOptions say what is measured in the program.
type MeasureOptions struct {
	Alternative string // MeasureOn, MeasureOff, or configurations to compare with the present one, commas between; empty: on request
	Until       string // percent of the time: half the width of the interval with which it ends
}

// offerAfter is how long a program runs under a dashboard before it is measured although no user asked.
const offerAfter = 30 * time.Second

// DefaultUntil is the usual MeasureOptions.Until.
const DefaultUntil = "2"

// Experiment is a checked MeasureOptions.
type Experiment struct {
	Now          bool     // it begins with the program
	Never        bool     // nor on request
	Alternatives []string // as the pool takes them: "none", or "POLICY LIMIT=VALUE,..."
	Until        float64
	Budget       float64 // part of the run's time that it may cost
}

// NewExperiment checks the options against the present configuration.
func (o *MeasureOptions) NewExperiment(present *PolicyChoice, spill bool) (e Experiment, err error) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(cmp.Or(o.Until, DefaultUntil), "%"), 64)
	if err != nil || !(percent >= 0.1 && percent <= 50) {
		return e, fmt.Errorf("bad value %q for --measure-until: want a percentage from 0.1 to 50, for example 2", o.Until)
	}
	e = Experiment{Now: o.Alternative != "" && o.Alternative != MeasureOff, Never: o.Alternative == MeasureOff, Until: percent / 100, Budget: measure.Budget}
	if e.Now && spill {
		return e, errors.New("--spill works without a pool, so that there is nothing to compare: leave out --measure")
	}
	if o.Alternative == "" || o.Alternative == MeasureOn || o.Alternative == MeasureOff {
		e.Alternatives = []string{"none"}
		if present.Policy == "none" {
			e.Alternatives[0] = allocator.Default
		}
		return e, nil
	}
	for _, text := range splitAlternatives(o.Alternative) {
		one, err := parseAlternative(text, present)
		if err == nil && slices.Contains(e.Alternatives, one) {
			err = fmt.Errorf("bad value %q for --measure: it names %s twice", o.Alternative, text)
		}
		if err != nil {
			return e, err
		}
		e.Alternatives = append(e.Alternatives, one)
	}
	return e, nil
}

// splitAlternatives splits the value of --measure at its commas. A limit behind a policy's first one belongs to that policy.
func splitAlternatives(text string) (list []string) {
	limited := false // the last one is a policy with limits
	for _, part := range strings.Split(text, ",") {
		policy, _, _ := strings.Cut(part, "=")
		switch isLimit := policy != part && !strings.Contains(policy, ":"); {
		case isLimit && limited:
			list[len(list)-1] += "," + part
			continue
		case isLimit:
			limited = false
		default:
			limited = strings.Contains(part, ":")
		}
		list = append(list, part)
	}
	return list
}

// parseAlternative reads one configuration, and writes it as the pool takes it.
func parseAlternative(text string, present *PolicyChoice) (string, error) {
	switch text {
	case "":
		return "", errors.New("bad value for --measure: a configuration is missing beside a comma")
	case MeasureOn, MeasureOff:
		return "", fmt.Errorf("bad value for --measure: %s stands alone", text)
	}
	choice, err := present.ParseOtherChoice("measure", text)
	if err != nil {
		return "", err
	}
	_, settings, err := choice.NewPool()
	if err != nil {
		return "", fmt.Errorf("--measure: %w", err)
	}
	out := ConfigurationText(choice.Policy, settings)
	if len(out) > wire.ControlMax-len("arms ") {
		return "", fmt.Errorf("--measure: %d limits are too many to compare with", len(settings))
	}
	return out, nil
}

// ParseOtherChoice reads the value of a flag, a configuration to compare with this one: POLICY, POLICY:LIMIT=VALUE,..., or LIMIT=VALUE,...
func (c *PolicyChoice) ParseOtherChoice(flag, text string) (other PolicyChoice, err error) {
	policy, limits, parted := strings.Cut(text, ":")
	switch {
	case strings.Contains(policy, "="): // a colon may be part of a value
		if other, err = c.withFlagLimits(flag, text); err != nil {
			return other, err
		}
	case parted && limits == "":
		return other, fmt.Errorf("bad value %q for --%s: want LIMIT=VALUE behind the colon", text, flag)
	default:
		if other.Policy = policy; parted {
			other.Set = []string{limits}
		}
	}
	if other.Policy == allocator.Auto {
		return other, fmt.Errorf("--%s compares with one policy, and %s has several: name another", flag, allocator.Auto)
	}
	return other, nil
}

// withFlagLimits returns the choice with other values of limits, "LIMIT=VALUE,...", of a flag.
func (c *PolicyChoice) withFlagLimits(flag, assignments string) (PolicyChoice, error) {
	settings, err := c.ParseLimits()
	if err != nil {
		return *c, err
	}
	changed, err := c.ParseLimit(assignments)
	if err != nil {
		return *c, fmt.Errorf("--%s: %w", flag, err)
	}
	values := map[string]string{}
	out := PolicyChoice{Policy: c.Policy}
	for _, s := range append(settings, changed...) {
		if _, twice := values[s.Name]; !twice {
			out.Set = append(out.Set, s.Name)
		}
		values[s.Name] = s.Value
	}
	for i, name := range out.Set {
		out.Set[i] = name + "=" + values[name]
	}
	return out, nil
}

// ConfigurationText writes a configuration as the pool takes it.
func ConfigurationText(policy string, settings []allocator.Setting) string {
	separator := " "
	for _, s := range settings {
		policy, separator = policy+separator+s.Name+"="+s.Value, ","
	}
	return policy
}

// Experimenter runs experiments in a program. It is a tap before others.
type Experimenter struct {
	*measure.Director
	next    session.Tap // nil: none
	model   *stats.Model
	session atomic.Pointer[session.Session] // nil: not yet started
}

// NewExperimenter returns a tap before another, which begins with the program if the experiment does.
func NewExperimenter(e *Experiment, model *stats.Model, next session.Tap) *Experimenter {
	x := &Experimenter{next: next, model: model}
	x.Director = measure.NewDirector(measure.Options{
		Alternatives: e.Alternatives, Until: e.Until, Budget: e.Budget, Seed: rand.Uint64(), Session: x,
	})
	if e.Now {
		x.AskForExperiment()
	}
	return x
}

// SetSession gives the experimenter the session, when that has started.
func (e *Experimenter) SetSession(s *session.Session) { e.session.Store(s) }

// withExperimenter puts an experimenter before a tap.
func (r *runner) withExperimenter(next session.Tap) session.Tap {
	setup := r.subject.Setup
	if setup.Measure.Never || !setup.loadsPoolLibrary() {
		return next
	}
	r.measured = NewExperimenter(&setup.Measure, r.model, next)
	if !setup.Measure.Now && r.screen != nil && !setup.Auto && setup.Policy.PolicyName() != "none" {
		time.AfterFunc(offerAfter, r.measured.OfferUnaskedExperiment)
	}
	return r.measured
}

// toggleExperiment begins an experiment, or ends the present one, and says so.
func (r *runner) toggleExperiment() (string, error) {
	switch m := r.measured; {
	case r.subject.Setup.Measure.Never:
		return "", errors.New("--measure=off: nothing is measured in this run")
	case m == nil:
		return "", errors.New("the program was started without the library that pools: gpumemtop --policy none --measure ./app can measure")
	case m.IsExperimentWanted():
		m.EndExperiment()
		return "the experiment ends; E begins another", nil
	default:
		m.AskForExperiment()
		return "experiment: parts of the run are served by " + strings.Join(r.subject.Setup.Measure.Alternatives, ", then ") + "; E ends it", nil
	}
}

// TakeRecord implements session.Tap.
func (e *Experimenter) TakeRecord(record *wire.Record) {
	if e.next != nil {
		e.next.TakeRecord(record)
	}
	e.Director.TakeRecord(record)
}

// Flush implements session.Tap.
func (e *Experimenter) Flush() {
	e.Director.Flush()
	if e.next != nil {
		e.next.Flush()
	}
}

// Close implements session.Tap.
func (e *Experimenter) Close() {
	if e.next != nil {
		e.next.Close()
	}
}

// ResultOf returns what the experiment about a proposal has found; nil: it is not over.
func (e *Experimenter) ResultOf(p *measure.Proposal) *measure.Result {
	results := e.model.PublishedSnapshot().Measured
	for i := range results {
		if r := &results[i]; r.Auto != "" && r.Alternative == strings.Replace(p.Alternative, " ", ",", 1) {
			return r
		}
	}
	return nil
}

// IsReady implements measure.Session.
func (e *Experimenter) IsReady() bool { return e.session.Load() != nil }

// SendMessage implements measure.Session.
func (e *Experimenter) SendMessage(process uint32, text string) uint64 {
	return e.session.Load().SendMessage(process, text)
}

// RecordText implements measure.Session.
func (e *Experimenter) RecordText(process uint32, time uint64, text string) {
	e.session.Load().RecordDiag(process, time, wire.DiagMeasure, text)
}

// RoomBytes implements measure.Session: what is free on the device, where that can be read; else half of the device, as it is not known
// what others use.
func (e *Experimenter) RoomBytes(number uint32) (free, used uint64) {
	s := e.model.PublishedSnapshot()
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.Number != number {
			continue
		}
		used = p.Totals.PeakReserved
		if room, known := e.session.Load().FreeBeyondHeadroom(number); known {
			if p.DeviceMemory > 0 { // which may be simulated
				room = min(room, p.DeviceMemory-min(p.DeviceMemory, used))
			}
			return room, used
		}
		if half := p.DeviceMemory / 2; half > 0 {
			return half - min(half, used), used
		}
	}
	return 0, 0
}
