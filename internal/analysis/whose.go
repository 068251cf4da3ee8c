package analysis

import (
	"fmt"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// processOf returns a process by its number; nil: it shares a row with others, or is unknown.
func processOf(s *stats.Snapshot, number uint32) *stats.Process {
	at := slices.IndexFunc(s.Processes, func(p stats.Process) bool { return p.Number == number && p.Folded == 0 })
	if at < 0 {
		return nil
	}
	return &s.Processes[at]
}

// totalsOfPhaseProcess returns the figures of the process of a phase: the others may have ended before, or go on. Where they
// are unknown, they are those of the run.
func (x *run) totalsOfPhaseProcess(p *Phase) *stats.Totals {
	if q := processOf(x.snapshot, p.Process); q != nil {
		return &q.Totals
	}
	return &x.snapshot.Totals
}

// fullestSite returns the call site that has the most in use in a process of several; empty: none has.
func fullestSite(p *stats.Process) string {
	most, name := uint64(0), ""
	for i := range p.Tags {
		if t := &p.Tags[i]; t.InUse > most {
			most, name = t.InUse, t.Name
		}
	}
	return name
}

// inProcessText names a process by its number, after " in ", where there are several; empty: there is one, or the process is unknown.
func (e *Evidence) inProcessText(number uint32) string {
	p := processOf(e.Run, number)
	if p == nil || len(e.Run.Processes) < 2 || p.TitleAmongSeveral() == "" {
		return ""
	}
	return " in " + p.TitleAmongSeveral()
}

// LeftByProcessText says which process left the most behind, where there are several; empty: there is one, or they are unknown.
func LeftByProcessText(s *stats.Snapshot, leaks []Leak) string {
	if len(s.Processes) < 2 {
		return ""
	}
	var all, most, several uint64
	var holder *stats.Process
	held, names := s.WasAllHeldByKilled(), map[string]bool{}
	for i := range leaks {
		all, names[leaks[i].Name] = all+leaks[i].Buffers, true
	}
	broken := !slices.ContainsFunc(s.Processes, func(p stats.Process) bool { return p.State != stats.Running })
	for i := range s.Processes {
		p, left := &s.Processes[i], uint64(0)
		if !held && (s.IsNotKnownToLeak(p) || p.State == stats.Running && !broken) {
			continue
		}
		for k := range p.Tags {
			if names[p.Tags[k].Name] {
				left += p.Tags[k].Live
			}
		}
		if left > 0 {
			several++
		}
		if left > most {
			most, holder = left, p
		}
	}
	switch {
	case holder == nil || holder.TitleAmongSeveral() == "":
		return ""
	case most >= all:
		return "all in " + holder.TitleAmongSeveral()
	case 2*most <= all:
		return "in " + units.Plural(several, "process", "processes")
	}
	return fmt.Sprintf("%s of them in %s", units.FormatGrouped(most), holder.TitleAmongSeveral())
}

// nameProcessOfSite adds which process has the call site that a diagnosis is about, where others have not.
func (e *Evidence) nameProcessOfSite(d *Diagnosis) {
	if d.Tag == "" || d.placed || len(e.Run.Processes) < 2 {
		return
	}
	var only *stats.Process
	for i := range e.Run.Processes {
		p := &e.Run.Processes[i]
		switch {
		case p.Folded > 0: // whose call sites are unknown
			return
		case !slices.ContainsFunc(p.Tags, func(t stats.Tag) bool { return t.Name == d.Tag }):
		case only != nil:
			return
		default:
			only = p
		}
	}
	if only != nil && only.TitleAmongSeveral() != "" {
		d.Text += "; that call site is in " + only.TitleAmongSeveral() + " alone"
	}
}
