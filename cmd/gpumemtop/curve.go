package main

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/lab/curve"
	"codeberg.org/gpumemtop/gpumemtop/ui"
)

// follow starts to work out the hit rate by limit, for the dashboard.
func (r *runner) follow() error {
	var err error
	r.curve, err = curve.NewLive(r.plan.policy.Name(), r.plan.settings, curve.Options{})
	return err
}

// hitRates tells the dashboard of it.
func (r *runner) hitRates() *ui.Curve {
	v := r.curve.View()
	c := &ui.Curve{
		Limits: v.Limits, Error: v.Error, Knee: curvePoint(v.Knee), Enough: curvePoint(v.Enough),
		Requests: uint64(v.Requests), Missed: v.Missed, LeftOut: v.LeftOut,
	}
	for _, p := range v.Points {
		c.Points = append(c.Points, curvePoint(p))
	}
	for _, e := range v.Exact {
		c.Exact = append(c.Exact, ui.CurvePoint{Limit: e.Limit, HitRate: e.HitRate})
	}
	return c
}

func curvePoint(p curve.Point) ui.CurvePoint {
	return ui.CurvePoint{Limit: p.Limit, HitRate: p.HitRate}
}
