package merging

import "slices"

// Topic is what advice is about.
type Topic uint8

// The topics.
const (
	Coalesce    Topic = iota // make a copy's source where the copy puts it
	Concat                   // the same for copies that fill one destination together
	NoOpCopy                 // a copy from a place to itself
	ShareBlock               // sites whose buffers could be one
	CreateOnce               // a site that could keep its buffer
	KeepSeveral              // a site that could keep a few buffers and use them in turn
	InPlace                  // a kernel that could write where it reads
	HeldEarly                // memory that nothing had used yet at the peak
	HeldLate                 // memory that nothing used any more at the peak
)

var topics = [...]string{
	"coalesce", "concat", "no-op copy", "share block", "create once", "keep several", "in place", "held early", "held late",
}

// String returns the topic's name.
func (t Topic) String() string { return topics[min(int(t), len(topics)-1)] }

// MarshalText returns the same.
func (t Topic) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Verdict is how far advice can be trusted. A run shows one path through a program: nothing here is a proof.
type Verdict uint8

// The verdicts, from the least to the most.
const (
	Unsure    Verdict = iota // a run lacks something that may speak against it
	Hinted                   // only who knows the kernels can tell
	NearMiss                 // one condition is not met
	HoldsHere                // it holds each time in the one run that shows it, or needs what a run cannot show
	Safe                     // it holds each time in runs from two recordings or more
)

var verdicts = [...]string{"unsure", "hint", "near miss", "holds in this run", "safe"}

// String returns the verdict in words.
func (v Verdict) String() string { return verdicts[min(int(v), len(verdicts)-1)] }

// MarshalText returns the same.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Advice is one thing to change in a program. No two pieces are about the same copies, but buffers that could share a
// block may also be held late, or be written in place: what can be had at once is in the metrics. Package advise adds the near miss and the sentence to its JSON.
type Advice struct {
	Topic   Topic   `json:"topic"`
	Verdict Verdict `json:"verdict"`
	// Sites are names. Of a copy: its own, its source's, its destination's; of Concat: the destination's, then those of
	// the first 64 sources, which are at Offsets; without Offsets, because the places are not always the same, each
	// source once. Else those of the buffers.
	Sites  []string `json:"sites"`
	Copies []string `json:"copies,omitempty"` // Concat: where the copies were enqueued
	Count  int      `json:"count"`            // copies, creates or kernels, in all runs
	// Bytes that are not copied, in all runs. ShareBlock and CreateOnce: by which the peak falls, of the run where it
	// does most; such advice adds up. HeldEarly and HeldLate: held at the peak, of the run where that is most.
	Bytes   uint64   `json:"bytes"`
	Nanos   uint64   `json:"copies_ns,omitempty"` // that the copies took, 0 when not known
	Runs    int      `json:"runs"`                // that show it
	Offsets []uint64 `json:"offsets,omitempty"`
	Blocks  int      `json:"blocks,omitempty"` // KeepSeveral: how many
	Grows   bool     `json:"-"`                // CreateOnce, ShareBlock: buffers of one site differ in size
	Unused  bool     `json:"unused,omitempty"` // HeldEarly: nothing used any of them later either

	// Of a near miss: the condition, whether it is only in the way in the kernel that makes the source, the run and the
	// step that broke it first (None when it was no step), and what would help.
	Failed   Condition `json:"-"`
	Producer bool      `json:"-"`
	Run      int       `json:"-"`
	Step     int       `json:"-"`
	Hoist    Hoist     `json:"-"`
	// OtherFlags says that source and destination differ in context or flags.
	OtherFlags bool `json:"other_flags,omitempty"`
	// Nested says that what is to become a sub-buffer has sub-buffers.
	Nested bool `json:"nested,omitempty"`
	// Refilled says that a source is wholly overwritten between its copies, or after them.
	Refilled bool `json:"refilled,omitempty"`

	Sentence string `json:"-"`
}

// Options say what is asked for.
type Options struct {
	// Form is Completion where advice is to be followed. A run that has all its commands on one queue is then looked at
	// by Uses: what comes later on a queue waits for what came before. One without any command that uses a buffer by
	// API.
	Form Form
	Max  bool // blocks of different sizes may share the largest
}

// Run is what one run shows.
type Run struct {
	Now, Merged Metrics
	Copies      int // between buffers
	NoOps       int
	NearMisses  int // copies that fail one condition only
	Reuse       *Reuse
}

// Report is what to change, the most bytes of the best verdict first.
type Report struct {
	Advice []Advice
	Runs   []Run
}

// evidence is one run with all that was found out about it.
type evidence struct {
	*Analysis
	form   Form
	copies []Copy
	reuse  *Reuse
}

// Advise looks for what to change, in runs of one program: sites are the same where their names are. An error says
// which run contradicts itself.
func Advise(programs []*Program, o Options) (*Report, error) {
	r := &Report{}
	var all []*evidence
	for _, p := range programs {
		e, err := gather(p, o)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		r.Runs = append(r.Runs, e.run())
	}
	r.Advice = append(r.Advice, adviseCopies(all)...)
	shared, err := adviseShares(all, o)
	if err != nil {
		return nil, err
	}
	r.Advice = append(r.Advice, shared...)
	r.Advice = append(r.Advice, adviseInPlace(all)...)
	r.Advice = append(r.Advice, adviseHeld(all)...)
	r.conclude(all)
	return r, nil
}

// conclude puts advice into words, and trusts none where a run lacks something.
func (r *Report) conclude(all []*evidence) {
	partial := slices.ContainsFunc(all, func(e *evidence) bool { return e.Program.Partial })
	for i := range r.Advice {
		a := &r.Advice[i]
		a.Sentence = a.sentence()
		if partial {
			a.Verdict = Unsure
		}
	}
	r.sort()
}

// recordings counts those that runs come from.
func recordings(all []*evidence, runs map[int]bool) int {
	seen := map[int]bool{}
	for run := range runs {
		seen[all[run].Program.Recording] = true
	}
	return len(seen)
}

// every returns all runs.
func every(all []*evidence) map[int]bool {
	runs := map[int]bool{}
	for i := range all {
		runs[i] = true
	}
	return runs
}

func gather(p *Program, o Options) (*evidence, error) {
	a, err := Analyse(p)
	if err != nil {
		return nil, err
	}
	e := &evidence{Analysis: a, copies: a.Copies(), form: o.Form}
	switch {
	case !p.used():
		e.form = API
	case o.Form == Completion && p.oneQueue():
		e.form = Uses
	}
	e.reuse, err = a.Reuse(e.form, o.Max, e.copies)
	return e, err
}

// used reports whether any command uses a buffer. Where none does, commands were not recorded, or the program has none.
func (p *Program) used() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind != KindCreate && len(s.Uses) > 0 })
}

// oneQueue reports whether all commands that use buffers are on one queue.
func (p *Program) oneQueue() bool {
	queue := int64(noUser)
	for i := range p.Steps {
		s := &p.Steps[i]
		if len(s.Uses) == 0 || s.Kind == KindCreate {
			continue
		}
		if q := int64(s.Queue); queue == noUser {
			queue = q
		} else if queue != q {
			return false
		}
	}
	return true
}

func (e *evidence) run() Run {
	r := Run{Now: e.Metrics(), Merged: e.merged(e.copies, e.reuse), Copies: len(e.copies), Reuse: e.reuse}
	for i := range e.copies {
		switch c := &e.copies[i]; {
		case c.NoOp:
			r.NoOps++
		case len(c.Failed) == 1:
			r.NearMisses++
		}
	}
	return r
}

// Metrics are the six that the thesis collects of a run.
type Metrics struct {
	Peak        uint64 `json:"peak"`            // most bytes held at once
	NS          uint64 `json:"time_ns"`         // from the first step to the last; 0 when the steps have no times
	Allocated   uint64 `json:"bytes_allocated"` // bytes, of all creates
	Freed       uint64 `json:"bytes_freed"`     // bytes, of what was released before the end
	Coalescings int    `json:"coalescings"`
	Reuses      int    `json:"reuses"`
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

// merged returns the metrics as they would be with copies and a plan applied. The time is that of the run without the
// copies that are gone, as far as their time is known.
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
