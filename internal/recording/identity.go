package recording

import "maps"

// Identity is how a fleet knows a run: by whom, in which job, of which state of the sources. What is unknown is empty.
type Identity struct {
	User     string            `json:"user,omitempty"`
	Job      string            `json:"job,omitempty"` // of Slurm
	Step     string            `json:"step,omitempty"`
	Rank     string            `json:"rank,omitempty"`     // in MPI or the step
	Revision string            `json:"revision,omitempty"` // of the program's sources, as CI calls it
	Labels   map[string]string `json:"labels,omitempty"`   // that the user chose
}

// Common returns what two runs share.
func (a Identity) Common(b Identity) Identity {
	same := func(x, y string) string {
		if x == y {
			return x
		}
		return ""
	}
	labels := maps.Clone(a.Labels)
	maps.DeleteFunc(labels, func(name, value string) bool { v, ok := b.Labels[name]; return !ok || v != value })
	if len(labels) == 0 {
		labels = nil
	}
	return Identity{same(a.User, b.User), same(a.Job, b.Job), same(a.Step, b.Step), same(a.Rank, b.Rank), same(a.Revision, b.Revision), labels}
}

// IdentityOf returns that of the run that a process belongs to.
func (h *Header) IdentityOf(process uint32) Identity {
	for i := range h.Merged {
		if o := &h.Merged[i]; process >= o.First && process <= o.Last {
			return o.Identity
		}
	}
	return h.Identity
}
