package watch

import (
	"fmt"
	"sync/atomic"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/auto"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"
)

// controlEvery is how often auto considers another configuration.
const controlEvery = 200 * time.Millisecond

// controller switches a program under auto from configuration to configuration.
type controller struct {
	*runner
	decide  *auto.Controller
	started time.Time
	stopped atomic.Bool // the user chose a policy, which stays
	done    chan struct{}
}

// startController starts to control the policy if it is auto.
func (r *runner) startController() {
	if !r.subject.Setup.Auto {
		return
	}
	r.controller = &controller{
		runner: r, decide: auto.New(r.simulations.Ghosts.InitialName(), r.simulations.Resting), started: time.Now(), done: make(chan struct{}),
	}
	go r.controller.run()
}

// stop leaves the policy to the user from now on.
func (c *controller) stop() {
	if c != nil && !c.stopped.Swap(true) {
		c.auto.Store(&stats.Auto{})
		c.notes.Add("auto: the policy was changed by hand and stays as it is")
	}
}

// wait waits until the policy no longer changes, when the program has ended.
func (c *controller) wait() {
	if c != nil {
		<-c.done
	}
}

func (c *controller) run() {
	defer close(c.done)
	ticker := time.NewTicker(controlEvery)
	defer ticker.Stop()
	for !c.stopped.Load() {
		select {
		case <-ticker.C:
			c.consider()
		case <-c.session.Ended():
			return
		}
	}
}

// consider switches to another configuration if that is worth it.
func (c *controller) consider() {
	results := c.simulations.Ghosts.Results()
	s := c.model.Published()
	t := &s.Totals
	choice, ok := c.decide.Decide(auto.Observation{
		Time: s.Time, Requests: t.Hits + t.Misses, Misses: t.Misses, PoolNS: t.PoolNS, AvoidableNS: t.PoolNS - t.HitNS, Results: results,
	})
	c.simulations.Tap.SetResting(c.decide.Resting())
	if ok && !c.stopped.Load() {
		c.switchTo(&choice, results)
	}
}

// switchTo changes the configuration and says why.
func (c *controller) switchTo(choice *auto.Choice, results *ghost.Results) {
	if _, err := c.session.SetPolicy(choice.Configuration.Policy, choice.Configuration.Settings); err != nil {
		c.notes.Add(err.Error())
		return
	}
	why := fmt.Sprintf("%.3g %% less time in the driver than", 100*choice.Saving)
	if choice.ToBase {
		why = "the program took longer than it would under that with"
	}
	before := ""
	for i := range results.Rows {
		if results.Rows[i].Present {
			before = results.Rows[i].Name
		}
	}
	text := fmt.Sprintf("auto: %s after %v: %s %s", choice.Name, time.Since(c.started).Round(100*time.Millisecond), why, before)
	if last := c.auto.Load(); last.Steers {
		c.auto.CompareAndSwap(last, &stats.Auto{Steers: true, Said: text, Number: last.Number + 1})
	}
	c.notes.Add(text)
}
