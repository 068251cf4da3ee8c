package merging

import "slices"

// Topic is the kind of a piece of advice.
type Topic uint8

// The topics.
const (
	Coalesce    Topic = iota // create a copy's source in place at the destination
	Concat                   // the same for copies that fill one destination together
	NoOpCopy                 // remove a copy from a place to itself
	ShareBlock               // call sites whose buffers could share one
	CreateOnce               // a call site that could keep its buffer
	KeepSeveral              // a call site that could keep a few buffers and use them in turn
	InPlace                  // a kernel that could write where it reads
	HeldEarly                // memory that was not yet used at the peak
	HeldLate                 // memory that was no longer used at the peak
	WriteInto                // creates that copy, where a few buffers could be written instead; package advise finds them
)

var topics = [...]string{
	"coalesce", "concat", "no-op copy", "share block", "create once", "keep several", "in place", "held early", "held late", "write into",
}

// String returns the topic's name.
func (t Topic) String() string { return topics[min(int(t), len(topics)-1)] }

// MarshalText returns the topic's name.
func (t Topic) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Verdict is how far advice can be trusted. A run shows one path through a program, so no verdict is a proof.
type Verdict uint8

// The verdicts, from the least to the most certain.
const (
	Unsure    Verdict = iota // the run lacks something that may contradict the advice
	Hinted                   // only someone who knows the kernels can tell
	NearMiss                 // one condition is not met
	HoldsHere                // it holds each time in the only run that shows it, or it depends on facts that a run cannot show
	Safe                     // it holds each time in runs from two or more recordings
)

var verdicts = [...]string{"unsure", "hint", "near miss", "holds in this run", "safe"}

// String returns the verdict in words.
func (v Verdict) String() string { return verdicts[min(int(v), len(verdicts)-1)] }

// MarshalText returns the verdict in words.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Advice is one thing to change in a program. No two pieces of advice concern the same copies, but buffers that could share a
// block may also be held late, or be written in place. The metrics show what can be gained at once. Package advise adds
// the near miss and the sentence to the JSON.
type Advice struct {
	Topic   Topic   `json:"topic"`
	Verdict Verdict `json:"verdict"`
	// Sites are names. For a copy: its own site, its source's, its destination's. For Concat: the destination's, then
	// those of the first 64 sources, whose offsets are in Offsets; if the offsets differ between times, Offsets is
	// empty and each source is named once. Otherwise the sites of the buffers.
	Sites  []string `json:"sites"`
	Copies []string `json:"copies,omitempty"` // Concat: where the copies were enqueued
	Count  int      `json:"count"`            // copies, creates or kernels, in all runs
	// Bytes that need not be copied, in all runs. ShareBlock and CreateOnce: by how much the peak falls in the run
	// where it falls most; these figures add up. HeldEarly and HeldLate: bytes held at the peak, in the run where they
	// are most.
	Bytes   uint64   `json:"bytes"`
	Nanos   uint64   `json:"copies_ns,omitempty"` // WriteInto: time of the creates, ns
	Runs    int      `json:"runs"`                // number of runs that show it
	Offsets []uint64 `json:"offsets,omitempty"`
	Blocks  int      `json:"blocks,omitempty"` // KeepSeveral, WriteInto: number of buffers to keep
	Grows   bool     `json:"-"`                // CreateOnce, ShareBlock: the buffers differ in size
	Unused  bool     `json:"unused,omitempty"` // HeldEarly: none of them was used later either
	// Instead: HeldEarly, HeldLate: other advice keeps or shares the buffers of the site, and only one can be followed
	Instead bool `json:"instead,omitempty"`

	// For a near miss: the condition that fails; whether it fails only in the kernel that produces the source; the run
	// and the step where it failed first (None: not at a step); and what would help.
	Failed   Condition `json:"-"`
	Producer bool      `json:"-"`
	Run      int       `json:"-"`
	Step     int       `json:"-"`
	Hoist    Hoist     `json:"-"`
	// OtherFlags says that source and destination differ in context or flags.
	OtherFlags bool `json:"other_flags,omitempty"`
	// Nested says that a buffer that would become a sub-buffer has sub-buffers.
	Nested bool `json:"nested,omitempty"`
	// Refilled says that a source is wholly overwritten between its copies, or after them.
	Refilled bool `json:"refilled,omitempty"`

	Sentence string `json:"-"`
}

// Options select what is planned for.
type Options struct {
	// Form is Completion for advice that will be followed. A run with all its commands on one queue is then analysed by
	// Uses, because later commands on a queue wait for earlier ones. A run without commands that use buffers is
	// analysed by API.
	Form Form
	Max  bool // blocks of different sizes may share a block as large as the largest
}

// Run is the result for one run.
type Run struct {
	Now, Merged Metrics
	Copies      int // copies between buffers
	NoOps       int
	NearMisses  int // copies for which exactly one condition fails
	Reuse       *Reuse
}

// Report is the advice: the best verdict first, then the most bytes.
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

// AdviseOnRuns finds what to change, in several runs of one program. Call sites are the same if their names are. The error
// names a run that contradicts itself.
func AdviseOnRuns(programs []*Program, o Options) (*Report, error) {
	r := &Report{}
	var all []*evidence
	for _, p := range programs {
		e, err := analyseRun(p, o)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
		r.Runs = append(r.Runs, e.runSummary())
	}
	r.Advice = append(r.Advice, adviseCopies(all)...)
	shared, err := adviseShares(all, o)
	if err != nil {
		return nil, err
	}
	r.Advice = append(r.Advice, shared...)
	r.Advice = append(r.Advice, adviseInPlaceKernels(all)...)
	r.Advice = append(r.Advice, adviseHeldUnused(all)...)
	r.addSentences(all)
	return r, nil
}

// addSentences adds the sentences, and makes all advice Unsure if a run lacks something.
func (r *Report) addSentences(all []*evidence) {
	partial := slices.ContainsFunc(all, func(e *evidence) bool { return e.Program.Partial })
	for i := range r.Advice {
		a := &r.Advice[i]
		a.Sentence = a.adviceSentence()
		if partial {
			a.Verdict = Unsure
		}
	}
	r.sortAdvice()
}

// countRecordings returns from how many recordings the given runs come.
func countRecordings(all []*evidence, runs map[int]bool) int {
	seen := map[int]bool{}
	for run := range runs {
		seen[all[run].Program.Recording] = true
	}
	return len(seen)
}

// allRuns returns the set of all runs.
func allRuns(all []*evidence) map[int]bool {
	runs := map[int]bool{}
	for i := range all {
		runs[i] = true
	}
	return runs
}

func analyseRun(p *Program, o Options) (*evidence, error) {
	a, err := Analyse(p)
	if err != nil {
		return nil, err
	}
	e := &evidence{Analysis: a, copies: a.CheckCopies(), form: o.Form}
	switch {
	case !p.usesBuffers():
		e.form = API
	case o.Form == Completion && p.onOneQueue():
		e.form = Uses
	}
	e.reuse, err = a.GroupForReuse(e.form, o.Max, e.copies)
	return e, err
}

// usesBuffers reports whether any command uses a buffer. If not, commands were not recorded, or the program has none.
func (p *Program) usesBuffers() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind != KindCreate && len(s.Uses) > 0 })
}

// onOneQueue reports whether all commands that use buffers are on one queue.
func (p *Program) onOneQueue() bool {
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

func (e *evidence) runSummary() Run {
	r := Run{Now: e.Metrics(), Merged: e.mergedMetrics(e.copies, e.reuse), Copies: len(e.copies), Reuse: e.reuse}
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

// Metrics are the six figures that the thesis collects for a run.
type Metrics struct {
	Peak        uint64 `json:"peak"`              // the most bytes held at one time
	NS          uint64 `json:"time_ns,omitempty"` // from the first step to the last; 0 if unknown, as it is for a run that was not made
	Allocated   uint64 `json:"bytes_allocated"`   // bytes of all creates
	Freed       uint64 `json:"bytes_freed"`       // bytes released before the end
	Coalescings int    `json:"coalescings"`
	Reuses      int    `json:"reuses"`
}

// Metrics returns the metrics of the run as it was.
func (a *Analysis) Metrics() Metrics {
	var m Metrics
	steps := a.Program.Steps
	m.Peak, _ = a.Lifetimes(API).Peak()
	if n := len(steps); n > 0 {
		m.NS = steps[n-1].Time - min(steps[0].Time, steps[n-1].Time)
	}
	for i := range a.Program.Buffers {
		if !a.isRoot(i) {
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

// mergedMetrics returns the metrics of the run with the taken copies coalesced and the groups of a reuse applied.
func (a *Analysis) mergedMetrics(copies []Copy, r *Reuse) Metrics {
	m := a.Metrics()
	m.NS, m.Peak, m.Reuses = 0, r.After.Peak, r.Reuses
	_, removed := a.lifetimesAfterCoalescing(r.Form, copies)
	drop := func(root int, bytes uint64) {
		m.Allocated -= bytes
		if a.Program.Buffers[root].Released != None {
			m.Freed -= bytes
		}
	}
	for root := range removed {
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
		if copies[i].Taken {
			m.Coalescings++
		}
	}
	return m
}
