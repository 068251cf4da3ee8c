package main

import (
	"fmt"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/ghost"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
)

// The words that --ghosts takes besides the names of policies.
const (
	ghostsUsual = "usual"
	ghostsOff   = "off"
)

// checkGhosts reads --ghosts: which other configurations are played beside the run. By default there are some where a
// dashboard shows them.
func (j *job) checkGhosts(dashboard bool) error {
	present := lab.Configuration{Policy: j.plan.policy.Name(), Settings: j.plan.settings}
	text := j.config.ghosts
	if text == "" && (dashboard || j.plan.auto) {
		text = ghostsUsual
		j.resting = !dashboard
	}
	switch text {
	case ghostsOff:
		if j.plan.auto {
			return fmt.Errorf("--ghosts off: policy %s decides by what others would do; take another policy, or leave it out", allocator.Auto)
		}
		return nil
	case "":
		return nil
	case ghostsUsual:
		if j.plan.auto {
			j.rivals = ghost.Successors(present)
		} else {
			j.rivals = ghost.Default(present)
		}
		return nil
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		if _, known := allocator.Describe(name); !known {
			return fmt.Errorf("bad value %q for --ghosts: want %s, %s, or some of %s with commas between",
				name, ghostsUsual, ghostsOff, strings.Join(allocator.Names(), ", "))
		}
	}
	j.rivals = ghost.Of(present, names)
	return nil
}

// raise makes the ghosts, if there shall be some, and the curve for a dashboard, and starts what plays them beside the
// run: nil where there is nobody. It is the session's to close.
func (j *job) raise(dashboard bool) (session.Tap, error) {
	var listeners []live.Listener
	if dashboard {
		if err := j.follow(); err != nil {
			return nil, err
		}
		listeners = append(listeners, j.curve)
	}
	if j.rivals != nil {
		var err error
		j.ghosts, err = ghost.New(j.rivals, ghost.Options{
			Present: lab.Configuration{Policy: j.plan.policy.Name(), Settings: j.plan.settings}, Capacity: j.plan.memory,
			Late: j.resting,
		})
		if err != nil {
			return nil, err
		}
		j.model.SetGhosts(j.ghosts.Board)
		listeners = append(listeners, j.ghosts)
	}
	switch {
	case len(listeners) == 0:
		return nil, nil
	case j.resting:
		j.tap = live.StartResting(listeners...)
	default:
		j.tap = live.Start(listeners...)
	}
	return j.tap, nil
}

// setConfiguration goes over to the configuration of a ghost.
func (r *runner) setConfiguration(name string) error {
	c, known := r.ghosts.Configuration(name)
	if !known {
		return fmt.Errorf("nothing is known of a configuration %q", name)
	}
	r.takeOver()
	return r.session.SetPolicy(c.Policy, c.Settings)
}

// ghostNote says that another configuration would have been clearly better, or why nobody knows; empty when none would.
func ghostNote(g *model.Ghosts) string {
	if g != nil && g.Stopped != "" {
		return "no other policy was simulated to the end: " + g.Stopped
	}
	if !g.Worth() {
		return ""
	}
	ns, part, _ := g.Saving()
	leader := g.Leader()
	about := "of " + time.Duration(g.Present().DriverNS).Round(time.Microsecond).String()
	if g.Assumed {
		about += ", at assumed costs"
	}
	return fmt.Sprintf("%s would have taken %.3g %% less time in the driver (%v %s, simulated): %s",
		leader.Name, 100*part, time.Duration(ns).Round(time.Microsecond), about, leader.Flags())
}
