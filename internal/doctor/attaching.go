package doctor

import "codeberg.org/gpumemtop/gpumemtop/tracer/rights"

// attaching tells whether programs that run already can be watched, and what that depends on. Without it programs can
// still be run under gpumemtop, so that nothing of this is a problem.
func (r *Report) attaching(s *System) {
	report := s.Rights()
	lost := Warning
	if report.Obstacle != "" {
		r.say(areaAttaching, Warning, report.Advice, "programs that run already cannot be watched: %s", report.Obstacle)
		// What else is missing matters only once that is settled.
		lost = Fact
	} else {
		r.say(areaAttaching, OK, "", "programs that run already can be watched: gpumemtop attach")
	}
	for _, f := range report.Features {
		level := Fact
		switch f.State {
		case rights.Yes:
			level = OK
		case rights.No:
			level = lost
		}
		r.say(areaAttaching, level, f.Advice, "%s", f.Detail)
	}
}
