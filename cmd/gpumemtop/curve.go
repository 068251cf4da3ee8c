package main

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// follow starts to work out the hit rate by limit, for the dashboard.
func (j *job) follow() error {
	policy, settings := pooling(j.plan.policy.Name(), j.plan.settings)
	var err error
	j.curve, err = curve.NewLive(policy, settings, curve.Options{})
	return err
}

// pooling returns what a curve is of: the configuration of a program, and where that has no pool, the one that it would
// have by default.
func pooling(policy string, settings []allocator.Setting) (string, []allocator.Setting) {
	if policy == "none" {
		return allocator.Default, nil
	}
	return policy, settings
}

// measureLimits works out the hit rate by limit of a recording. Of one without a pool there is no present limit.
func measureLimits(src trace.Source, h *trace.Header) (*curve.Measurement, error) {
	policy, settings := pooling(h.Policy, settingsOf(h))
	m, err := curve.Measure(src, policy, settings)
	if err == nil && policy != h.Policy {
		m.Present = 0
	}
	return m, err
}

// hitRates tells the dashboard of it.
func (j *job) hitRates() *ui.Curve {
	v := j.curve.View()
	c := &ui.Curve{
		Policy: v.Policy, Limits: v.Limits, Error: v.Error, Knee: curvePoint(v.Knee), Enough: curvePoint(v.Enough),
		Requests: uint64(v.Requests), Missed: v.Missed, LeftOut: v.LeftOut,
	}
	for _, p := range v.Points {
		c.Points = append(c.Points, curvePoint(p))
	}
	for _, e := range v.Exact {
		c.Exact = append(c.Exact, exactPoint(e))
	}
	return c
}

func curvePoint(p curve.Point) ui.CurvePoint {
	return ui.CurvePoint{Limit: p.Limit, HitRate: p.HitRate}
}
