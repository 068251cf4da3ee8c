package watch

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The words that --measure takes besides configurations.
const (
	MeasureOn  = "on"
	MeasureOff = "off"
)

// MeasureOptions say what is measured in the program.
type MeasureOptions struct {
	Alternative string // MeasureOn, MeasureOff, or a configuration to compare with the present one; empty: on request
	Until       string // percent of the time: half the width of the interval with which it ends
}

// offerAfter is how long a program runs under a dashboard before it is measured although no user asked.
const offerAfter = 30 * time.Second

// DefaultUntil is the usual MeasureOptions.Until.
const DefaultUntil = "2"

// Experiment is a checked MeasureOptions.
type Experiment struct {
	Now         bool   // it begins with the program
	Never       bool   // nor on request
	Alternative string // as the pool takes it: "none", or "POLICY LIMIT=VALUE,..."
	Until       float64
}

// New checks the options against the present configuration.
func (o *MeasureOptions) New(present *PolicyChoice, spill bool) (e Experiment, err error) {
	percent, err := strconv.ParseFloat(strings.TrimSuffix(cmp.Or(o.Until, DefaultUntil), "%"), 64)
	if err != nil || !(percent >= 0.1 && percent <= 50) {
		return e, fmt.Errorf("bad value %q for --measure-until: want a percentage from 0.1 to 50, for example 2", o.Until)
	}
	e = Experiment{Now: o.Alternative != "" && o.Alternative != MeasureOff, Never: o.Alternative == MeasureOff, Until: percent / 100}
	if e.Now && spill {
		return e, errors.New("--spill works without a pool, so that there is nothing to compare: leave out --measure")
	}
	choice := PolicyChoice{Policy: "none"}
	before, after, parted := strings.Cut(o.Alternative, ":")
	switch {
	case o.Alternative == "" || o.Alternative == MeasureOn || o.Alternative == MeasureOff:
		if present.Policy == "none" {
			choice.Policy = allocator.Default
		}
	case strings.Contains(before, "="): // a colon may be part of a value
		if choice, err = present.with(o.Alternative); err != nil {
			return e, err
		}
	case parted && after == "":
		return e, fmt.Errorf("bad value %q for --measure: want LIMIT=VALUE behind the colon", o.Alternative)
	default:
		if choice.Policy = before; parted {
			choice.Set = []string{after}
		}
	}
	if choice.Policy == allocator.Auto {
		return e, fmt.Errorf("--measure compares with one policy, and %s has several: name another", allocator.Auto)
	}
	_, settings, err := choice.New()
	if err != nil {
		return e, fmt.Errorf("--measure: %w", err)
	}
	e.Alternative = configurationText(choice.Policy, settings)
	if len(e.Alternative) > wire.ControlMax-len("arms ") {
		return e, fmt.Errorf("--measure: %d limits are too many to compare with", len(settings))
	}
	return e, nil
}

// with returns the choice with other values of limits, "LIMIT=VALUE,...".
func (c *PolicyChoice) with(assignments string) (PolicyChoice, error) {
	settings, err := c.Parse()
	if err != nil {
		return *c, err
	}
	changed, err := c.ParseOne(assignments)
	if err != nil {
		return *c, fmt.Errorf("--measure: %w", err)
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

// configurationText writes a configuration as the pool takes it.
func configurationText(policy string, settings []allocator.Setting) string {
	separator := " "
	for _, s := range settings {
		policy, separator = policy+separator+s.Name+"="+s.Value, ","
	}
	return policy
}

// experimenter runs experiments in a program. It is a tap before others.
type experimenter struct {
	*measure.Director
	next    session.Tap // nil: none
	runner  *runner
	other   string                          // the alternative
	session atomic.Pointer[session.Session] // nil: not yet started
}

// experiment puts an experimenter before a tap.
func (r *runner) experiment(next session.Tap) session.Tap {
	e := &r.subject.Setup.Measure
	if e.Never || !r.subject.Setup.loadsPool() {
		return next
	}
	r.measured = &experimenter{next: next, runner: r, other: e.Alternative}
	r.measured.Director = measure.NewDirector(measure.Options{
		Alternative: e.Alternative, Until: e.Until, Budget: measure.Budget, Seed: rand.Uint64(), Session: r.measured,
	})
	switch {
	case e.Now:
		r.measured.Start()
	case r.screen != nil && !r.subject.Setup.Auto && r.subject.Setup.Policy.Name() != "none":
		time.AfterFunc(offerAfter, r.measured.Offer)
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
	case m.Wanted():
		m.Stop()
		return "the experiment ends; E begins another", nil
	default:
		m.Start()
		return "experiment: parts of the run are served by " + m.other + "; E ends it", nil
	}
}

// Take implements session.Tap.
func (e *experimenter) Take(record *wire.Record) {
	if e.next != nil {
		e.next.Take(record)
	}
	e.Director.Take(record)
}

// Flush implements session.Tap.
func (e *experimenter) Flush() {
	e.Director.Flush()
	if e.next != nil {
		e.next.Flush()
	}
}

// Close implements session.Tap.
func (e *experimenter) Close() {
	if e.next != nil {
		e.next.Close()
	}
}

// Ready implements measure.Session.
func (e *experimenter) Ready() bool { return e.session.Load() != nil }

// Send implements measure.Session.
func (e *experimenter) Send(process uint32, text string) uint64 {
	return e.session.Load().Send(process, text)
}

// Say implements measure.Session.
func (e *experimenter) Say(process uint32, time uint64, text string) {
	e.session.Load().Say(process, time, wire.DiagMeasure, text)
}

// Room implements measure.Session: half of the device, as it is not known what others use.
func (e *experimenter) Room(number uint32) (free, used uint64) {
	s := e.runner.model.Published()
	for i := range s.Processes {
		if p := &s.Processes[i]; p.Number == number && p.DeviceMemory > 0 {
			return p.DeviceMemory / 2, 2 * p.Totals.PeakReserved
		}
	}
	return 0, 0
}
