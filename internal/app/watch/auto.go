package watch

import (
	"fmt"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/measure"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/auto"
)

// controlEvery is how often auto considers another configuration.
const controlEvery = 200 * time.Millisecond

// controller lets a program under auto try configurations, and takes those that are better.
type controller struct {
	*runner
	decide  *auto.Controller
	trial   *measure.Proposal    // nil: none
	choice  replay.Configuration // that is tried
	begun   bool                 // the trial was asked for
	stopped atomic.Bool          // the user chose a policy, which stays
	done    chan struct{}
}

// startController starts to control the policy if it is auto.
func (r *runner) startController() {
	if !r.subject.Setup.Auto {
		return
	}
	r.controller = &controller{
		runner: r, decide: auto.New(r.simulations.Ghosts.InitialName(), r.simulations.Resting), done: make(chan struct{}),
	}
	go r.controller.controlPolicy()
}

// leavePolicyToUser leaves the policy to the user from now on.
func (c *controller) leavePolicyToUser() {
	if c != nil && !c.stopped.Swap(true) {
		c.measured.EndExperiment()
		c.auto.Store(&stats.Auto{})
		c.notes.Add("auto: the policy was changed by hand and stays as it is")
	}
}

// awaitEndOfControl waits until the policy no longer changes, when the program has ended.
func (c *controller) awaitEndOfControl() {
	if c != nil {
		<-c.done
	}
}

func (c *controller) controlPolicy() {
	defer close(c.done)
	ticker := time.NewTicker(controlEvery)
	defer ticker.Stop()
	for !c.stopped.Load() {
		select {
		case <-ticker.C:
			c.considerConfigurationChange()
		case <-c.session.Ended():
			return
		}
	}
}

// considerConfigurationChange proposes another configuration if that may be worth it, and takes it if a trial shows that it is.
func (c *controller) considerConfigurationChange() {
	if c.trial != nil {
		c.awaitTrial()
		return
	}
	t := &c.model.PublishedSnapshot().Totals
	choice, ok := c.decide.ChooseConfigurationToTry(auto.Observation{
		Time: c.model.PublishedSnapshot().Time, Requests: t.Hits + t.Misses, Misses: t.Misses, PoolNS: t.PoolNS, AvoidableNS: t.PoolNS - t.HitNS,
		Results: c.simulations.Ghosts.Results(),
	})
	c.simulations.Tap.SetResting(c.decide.IsResting())
	if ok {
		c.proposeTrial(&choice)
	}
}

// proposeTrial makes a choice the trial.
func (c *controller) proposeTrial(choice *auto.Choice) {
	to := choice.Configuration
	c.choice = to
	c.trial = &measure.Proposal{
		Alternative: ConfigurationText(to.Policy, to.Settings), Name: choice.Name, Present: choice.Current,
		Memory: LessMemoryText(choice.Peak[0], choice.Peak[1], c.model.PublishedSnapshot().Totals.Unpooled),
	}
	c.begun = c.measured.ProposeExperiment(c.trial)
}

// LessMemoryText says how much less memory a configuration needs than another, by their simulated peaks; empty: hardly any less. unpooled
// is how many creates these are without.
func LessMemoryText(peak, other, unpooled uint64) string {
	if choice := (auto.Choice{Peak: [2]uint64{peak, other}}); !choice.SavesMemory() {
		return ""
	}
	of := (&analysis.Outcome{Unpooled: unpooled}).PoolableSuffix()
	return fmt.Sprintf("%s%s at its peak instead of %s, simulated", units.FormatLong(peak), of, units.FormatLong(other))
}

// awaitTrial waits until the trial has begun, and then until it is over. While the user measures it waits.
func (c *controller) awaitTrial() {
	if !c.begun {
		c.begun = c.measured.ProposeExperiment(c.trial)
		return
	}
	wanted, v := c.measured.IsExperimentWanted(), c.measured.LatestVerdict()
	switch {
	case v != nil && v.Proposal == c.trial:
	case wanted:
		return
	default: // the user stopped it before it began
		v = &measure.Verdict{}
	}
	c.trial = nil
	if v.Adopted && !c.stopped.Load() {
		if _, err := c.session.SetPolicy(c.choice.Policy, c.choice.Settings); err != nil {
			c.notes.Add(err.Error())
			v = &measure.Verdict{}
		}
	}
	c.decide.NoteTrialResult(v.Adopted)
}
