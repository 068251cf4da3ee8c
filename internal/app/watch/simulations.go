package watch

import (
	"fmt"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/learn"
	"codeberg.org/gpumemtop/gpumemtop/internal/planfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/view"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/ghost"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/live"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/trial"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// The words that --ghosts takes besides the names of policies.
const (
	GhostsUsual = "usual"
	GhostsOff   = "off"
)

// Simulations run beside a program: ghosts, which are other configurations, and for a dashboard the hit-rate curve.
type Simulations struct {
	Ghosts *ghost.Ghosts // nil: none
	// Resting reports that the ghosts wait until there is something to gain, because only auto looks at them.
	Resting bool
	Tap     *live.Tap // feeds events to the simulations
	// SendPlan gives a process of the program a plan; nil: no policy takes any. It is set before Start.
	SendPlan func(process uint32, plan *learn.Layout)

	setup     *Setup
	dashboard bool
	rivals    []replay.Configuration // of the ghosts; nil: none
	curve     *curve.Live
	trials    *trial.Live
}

// NewSimulations reads --ghosts. Without it there are ghosts where a dashboard or auto uses them.
func NewSimulations(text string, setup *Setup, dashboard bool) (*Simulations, error) {
	s := &Simulations{setup: setup, dashboard: dashboard}
	current := setup.Configuration()
	if text == "" && (dashboard || setup.Auto) {
		text = GhostsUsual
		s.Resting = !dashboard
	}
	switch {
	case text == "":
	case text == GhostsOff && setup.Auto:
		return nil, fmt.Errorf("--ghosts off: policy %s decides by what the ghosts would do; take another policy, or leave --ghosts out", allocator.Auto)
	case text == GhostsOff:
	case text == GhostsUsual && setup.Auto:
		s.rivals = ghost.SuccessorConfigurations(current)
	case text == GhostsUsual:
		s.rivals = ghost.DefaultConfigurations(current)
	default:
		names := strings.Split(text, ",")
		for _, name := range names {
			if _, known := allocator.DescribePolicy(name); !known {
				return nil, fmt.Errorf("bad value %q for --ghosts: want %s, %s, or some of %s with commas between",
					name, GhostsUsual, GhostsOff, strings.Join(allocator.PolicyNames(), ", "))
			}
		}
		s.rivals = ghost.ConfigurationsOfPolicies(current, names)
	}
	return s, nil
}

// Start starts the simulations. It returns what feeds them, nil when there are none, for the session to close.
func (s *Simulations) Start(model *stats.Model) (session.Tap, error) {
	var listeners []live.Listener
	var err error
	if s.dashboard {
		policy, settings := configurationOfCurve(s.setup.Policy.PolicyName(), s.setup.Settings)
		if s.curve, err = curve.NewLive(policy, settings, curve.Options{}); err != nil {
			return nil, err
		}
		s.trials = trial.NewLive(s.setup.Memory)
		listeners = append(listeners, s.curve, s.trials)
	}
	if s.dashboard || s.rivals != nil && !s.Resting {
		mapper := live.NewMapper(s.setup.Configuration(), s.setup.Memory)
		model.SetHeapMapSource(mapper.LatestMap)
		listeners = append(listeners, mapper)
	}
	if s.rivals != nil {
		s.Ghosts, err = ghost.New(s.rivals, ghost.Options{Current: s.setup.Configuration(), Capacity: s.setup.Memory, MidRun: s.Resting})
		if err != nil {
			return nil, err
		}
		model.SetGhostSource(s.Ghosts.Leaderboard)
		listeners = append(listeners, s.Ghosts)
	}
	if current := s.setup.Configuration(); s.SendPlan != nil && s.setup.Plan == nil && (len(listeners) > 0 || current.Policy == replay.LayoutPolicy) {
		listeners = append(listeners, live.NewPlanner(current, s.SendPlan))
	}
	switch {
	case len(listeners) == 0:
		return s.withPlanTap(nil), nil
	case s.Resting:
		s.Tap = live.StartResting(listeners...)
	default:
		s.Tap = live.Start(listeners...)
	}
	return s.withPlanTap(s.Tap), nil
}

// withPlanTap returns a tap that also gives processes the plan of the setup, where there is one.
func (s *Simulations) withPlanTap(next session.Tap) session.Tap {
	if s.setup.Plan == nil {
		return next
	}
	return &planTap{next: next, finder: planfile.NewFinder(s.setup.Plan), send: s.SendPlan}
}

// planTap gives the processes of a program their plan when their call sites are known.
type planTap struct {
	next   session.Tap // nil: none
	finder *planfile.Finder
	send   func(process uint32, plan *learn.Layout)
}

// TakeRecord implements session.Tap.
func (t *planTap) TakeRecord(r *wire.Record) {
	if plan := t.finder.TakeRecord(r); plan != nil {
		go t.send(r.Process, plan) // the session may not have started yet, and would wait for us
	}
	if t.next != nil {
		t.next.TakeRecord(r)
	}
}

// Flush implements session.Tap.
func (t *planTap) Flush() {
	if t.next != nil {
		t.next.Flush()
	}
}

// Close implements session.Tap.
func (t *planTap) Close() {
	if t.next != nil {
		t.next.Close()
	}
}

// EndCurve ends the curve, which only the dashboard shows.
func (s *Simulations) EndCurve() {
	if s != nil {
		s.curve.EndCurve()
	}
}

// Curve returns the hit-rate curve for the dashboard.
func (s *Simulations) Curve() *view.Curve { return s.curve.View() }

// Replay replays what the dashboard's findings would name.
func (s *Simulations) Replay() analysis.Replay { return (&trial.Replayer{Tape: s.trials.Tape}).Replay }

// betterConfigurationNote says which configuration would have been clearly better in a run of some ns, or why that is unknown; empty when
// none would.
func betterConfigurationNote(g *stats.Ghosts, run uint64) string {
	if g != nil && g.Stopped != "" {
		return "no other policy was simulated to the end: " + g.Stopped
	}
	if !g.IsWorthMention(run) {
		return ""
	}
	ns, part, _ := g.LeaderSaving()
	leader := g.Leader()
	about := "of " + time.Duration(g.PresentGhost().DriverNS).Round(time.Microsecond).String()
	return fmt.Sprintf("%s would have taken %.3g %% less time in the driver (%v %s, simulated): %s",
		leader.Name, 100*part, time.Duration(ns).Round(time.Microsecond), about, leader.FlagsText())
}
