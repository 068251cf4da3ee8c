package merging

// Metrics are the six that the thesis collects of a run.
type Metrics struct {
	Peak        uint64 // most bytes held at once
	NS          uint64 // from the first step to the last; 0 when the steps have no times
	Allocated   uint64 // bytes, of all creates
	Freed       uint64 // bytes, of what was released before the end
	Coalescings int
	Reuses      int
}

// Metrics returns those of the run as it was: nothing coalesced, nothing reused.
func (a *Analysis) Metrics() Metrics {
	var m Metrics
	steps := a.Program.Steps
	m.Peak, _ = a.Lifetimes(API).Peak()
	if n := len(steps); n > 0 {
		m.NS = steps[n-1].Time - min(steps[0].Time, steps[n-1].Time)
	}
	for i := range a.Program.Buffers {
		if !a.root(i) {
			continue
		}
		b := &a.Program.Buffers[i]
		m.Allocated += b.Size
		if b.Released != None {
			m.Freed += b.Size
		}
	}
	return m
}

// merged returns the metrics as they would be with copies and a plan applied. The time is that of the run but for the
// copies that are gone, as far as the run tells how long these took.
func (a *Analysis) merged(copies []Copy, r *Reuse) Metrics {
	m := a.Metrics()
	m.Peak, m.Reuses = r.After.Peak, r.Reuses
	_, gone := a.coalesced(API, copies)
	drop := func(root int, bytes uint64) {
		m.Allocated -= bytes
		if a.Program.Buffers[root].Released != None {
			m.Freed -= bytes
		}
	}
	for root := range gone {
		drop(root, a.Program.Buffers[root].Size)
	}
	for _, group := range r.Groups {
		var most uint64
		for _, b := range group {
			most = max(most, a.Program.Buffers[b].Size)
			drop(b, a.Program.Buffers[b].Size)
		}
		m.Allocated += most
		if last := group[len(group)-1]; a.Program.Buffers[last].Released != None {
			m.Freed += most
		}
	}
	for i := range copies {
		if c := &copies[i]; c.Taken || c.NoOp {
			m.NS -= min(m.NS, a.Program.Steps[c.Step].Nanos)
			if c.Taken {
				m.Coalescings++
			}
		}
	}
	return m
}
