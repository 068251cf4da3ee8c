package report

import (
	"fmt"
	"io"
	"regexp"
	"sync"

	"codeberg.org/gpumemtop/gpumemtop/internal/figures"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Summary is a run in a few figures: sizes in bytes, rates 0…1. Its JSON keys are what scripts rely on: those of setup, of the figures
// (package figures), and of details.
type Summary struct {
	setup
	details
	left
	snapshot *stats.Snapshot
}

// setup is how a run was set up.
type setup struct {
	Policy         string            `json:"policy"`                    // at the end
	FormerPolicies []string          `json:"former_policies,omitempty"` // that the program had before, oldest first
	Limits         recording.Limits  `json:"limits"`
	Labels         map[string]string `json:"labels,omitempty"`       // that the user chose
	WholeBlocks    string            `json:"whole_blocks,omitempty"` // why no policy can cut slabs into sub-allocations
	Hosted         *stats.Part       `json:"hosted,omitempty"`       // creates that got the host's memory, as the device's was full
}

// details are what is more than a figure.
type details struct {
	MissReasons map[string]uint64 `json:"miss_reasons"`                 // all of them, "too_small" and so on
	FailedWith  []FailedWith      `json:"failed_with"`                  // statuses of creates that failed, the most frequent first
	FailedCalls []FailedCall      `json:"failed_calls"`                 // in the order of their first, at most stats.FailedCallsMax
	OtherFailed uint64            `json:"other_failed_calls,omitempty"` // failures beyond these
	// Machine is what the machine reports of all processes together.
	Machine   []MachineSummary `json:"machine,omitempty"`
	Saved     Saved            `json:"saved"`
	Measured  []Measured       `json:"measured,omitempty"` // in the program, one for each alternative; left out where no user asked
	Transfers TransfersSummary `json:"transfers"`
	Spill     *stats.Spill     `json:"spill,omitempty"` // what --spill did, where it took memory from the device
	// Exit is how the first process ended. A caller that started the program knows better and may set it.
	Exit      Exit           `json:"exit"`
	Processes []units.Joined `json:"processes"`  // that made OpenCL calls, in the order of their first
	PerTag    []units.Joined `json:"per_tag"`    // by falling peak
	PerBucket []units.Joined `json:"per_bucket"` // by size
	PerClass  []units.Joined `json:"per_class"`
	PerKind   []units.Joined `json:"per_kind"` // of memory: "buffer", "image" and so on
	// Findings are the program's mistakes in the order of their first time, at most stats.FindingsMax; OtherFindings
	// came when that many were known.
	Findings      []stats.Finding `json:"findings"`
	OtherFindings uint64          `json:"other_findings"`
	// Objects are what programs create besides memory: events, kernels and so on, by type; see docs/METRICS.md.
	Objects []ObjectSummary `json:"objects"`
	// HeldAtExit says that the leaks are what processes held when a signal ended them.
	HeldAtExit bool `json:"held_at_exit"`
	// OutOfMemory are calls that failed for lack of memory, at most stats.PostMortemsMax.
	OutOfMemory []PostMortemSummary `json:"out_of_memory"`
	// Attached says that the programs ran already, and were only watched; Running is how many of the processes went on.
	Attached bool `json:"attached,omitempty"`
	Running  int  `json:"running,omitempty"`
	// WithoutPool counts processes that should have had a pool; WithoutPoolWhy is the first one's reason.
	WithoutPool    uint64   `json:"processes_without_pool,omitempty"`
	WithoutPoolWhy string   `json:"without_pool_why,omitempty"`
	Asked          []string `json:"asked,omitempty"`       // which devices programs asked for before a context, in words
	NotWatched     []string `json:"not_watched,omitempty"` // why processes are not, where they say so
	LeftOut        []string `json:"left_out,omitempty"`    // what a program did more of than gpumemtop keeps, in words
	// Ghosts are the policies that were simulated beside the run, the best first.
	Ghosts []GhostSummary `json:"ghosts,omitempty"`
	Plan   *PlanJSON      `json:"plan_measured,omitempty"` // what plans did, where the policy takes them
}

// left is what a report describes more closely.
type left struct {
	Leaks []LeakSummary `json:"leaks"` // what was never released, the most bytes first
}

// MarshalJSON implements json.Marshaler.
func (s Summary) MarshalJSON() ([]byte, error) { return append(s.joined(), &s.left).MarshalJSON() }

func (s *Summary) joined() units.Joined {
	return units.Joined{&s.setup, figures.Run(s.snapshot).Members(), &s.details}
}

// Saved is an estimate of the time that hits saved, ns.
type Saved struct {
	Calls uint64 `json:"driver_calls_ns"` // less the pool's own time
	Basis string `json:"basis"`           // of that: unknown, estimated
	// Releases says that these are counted, otherwise only creates.
	Releases bool   `json:"releases_counted"`
	Device   string `json:"probed_device,omitempty"` // whose probe gave the driver's times
	// Touches are first touches: left out where nothing is known of them.
	Touches *stats.Touches `json:"first_touches,omitempty"`
}

func savedOf(t *stats.Totals) Saved {
	basis := map[bool]string{false: "unknown", true: "estimated"}[t.Saved.NS > 0]
	s := Saved{Calls: t.Saved.NS, Basis: basis, Releases: t.Saved.Releases, Device: t.Saved.Device}
	if t.SavedTouches.Hits > 0 {
		s.Touches = &t.SavedTouches
	}
	return s
}

// Exit is how a process ended.
type Exit struct {
	Status int `json:"status"` // -1 when unknown or ended by a signal
	Signal int `json:"signal"` // 0 when it was none
}

// NewSummary takes the figures from the last snapshot of a run.
func NewSummary(s *stats.Snapshot) Summary {
	t := &s.Totals
	summary := Summary{
		setup: setup{Policy: s.Policy, FormerPolicies: s.Change.Former, Limits: recording.Limits{}, Labels: s.Labels, WholeBlocks: s.WholeBlocks},
		details: details{
			MissReasons: missReasons(t.MissReasons[:], true), FailedWith: failedWith(t), FailedCalls: failedCalls(s), OtherFailed: s.OtherFailed, Machine: machineSummaries(s.Machine, t), Saved: savedOf(t), Measured: measuredOf(s.Measured),
			Transfers: transfersSummary(&s.Transfers), Spill: s.Spill, Exit: Exit{Status: -1}, Processes: []units.Joined{}, PerTag: []units.Joined{},
			Objects: objectSummaries(s.Objects), WithoutPool: s.Unpooled.Times, WithoutPoolWhy: s.Unpooled.Why, LeftOut: s.Exceeded, Asked: s.Asked,
			Ghosts: ghostSummaries(s.Ghosts), Plan: planOf(&t.Plans),
		},
		snapshot: s,
	}
	for i := range s.Limits {
		summary.Limits[s.Limits[i].Name] = s.Limits[i].Text
	}
	for i := range s.Processes {
		summary.Processes = append(summary.Processes, processJSON(&s.Processes[i], s.Time))
	}
	if len(s.Processes) > 0 {
		summary.Exit = exitOf(&s.Processes[0])
	}
	run := figures.Run(s)
	for _, tag := range tagsByPeak(s.Tags) {
		summary.PerTag = append(summary.PerTag, siteJSON(run, tag))
	}
	if s.Hosted.Buffers > 0 {
		summary.Hosted = &s.Hosted
	}
	summary.shares(s)
	summary.mistakes(s)
	return summary
}

// NewWatchSummary is NewSummary for programs that were only watched. running is how many of their processes continue: if
// any does, what is in use is no leak. The end of a process counts as that of the program only if it is the only one.
func NewWatchSummary(s *stats.Snapshot, running int) Summary {
	summary := NewSummary(s)
	summary.Attached, summary.Running = true, running
	if running > 0 {
		summary.Leaks = []LeakSummary{}
	}
	if len(s.Processes) != 1 {
		summary.Exit = Exit{Status: -1}
	}
	return summary
}

// processJSON has one process with its figures.
func processJSON(p *stats.Process, now uint64) units.Joined {
	type process struct {
		PID     int     `json:"pid"`
		Rank    *uint64 `json:"rank,omitempty"` // in its job
		Parent  int     `json:"parent"`
		Folded  uint64  `json:"ended_processes,omitempty"` // how many ended processes this row is
		Program string  `json:"program"`
		App     string  `json:"app,omitempty"` // name of the program
		wire.Place
		Arguments []string `json:"arguments"`
		Exit      Exit     `json:"exit"`
	}
	type machine struct {
		Machine []MachineSummary `json:"machine,omitempty"`
	}
	return units.Joined{
		process{p.PID, p.Rank, p.Parent, p.Folded, p.Program, p.App, p.Place, append([]string{}, p.Arguments...), exitOf(p)},
		figures.Process(p, now).Members(), machine{machineSummaries(p.Machine, &p.Totals)},
	}
}

func exitOf(p *stats.Process) Exit {
	switch p.State {
	case stats.Exited:
		return Exit{Status: p.Status}
	case stats.Signaled:
		return Exit{Status: -1, Signal: max(p.Status, 0)}
	}
	return Exit{Status: -1}
}

// missReasons gives counts their names: those of all reasons, or of those that occurred.
func missReasons(counts []uint64, all bool) map[string]uint64 {
	reasons := map[string]uint64{}
	for reason, n := range counts {
		if all && wire.Miss(reason) != wire.MissNone || !all && n > 0 {
			reasons[units.Key(wire.Miss(reason).String())] = n
		}
	}
	return reasons
}

// siteJSON has one call site with its figures.
func siteJSON(run *figures.Subject, t *stats.Tag) units.Joined {
	type site struct {
		Tag         string            `json:"tag"`
		Stack       []string          `json:"stack,omitempty"` // innermost first
		MissReasons map[string]uint64 `json:"miss_reasons"`    // those that occurred
	}
	return units.Joined{site{t.Name, t.Stack, missReasons(t.MissReasons[:], false)}, run.SiteMembers(t)}
}

// WriteJSON writes the summary as one JSON object, for scripts.
func (s *Summary) WriteJSON(w io.Writer) error {
	if err := units.WriteJSON(w, s); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// summaryHead is how WriteJSON begins.
var summaryHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{\n  "policy": "[^"\n]*",\n  "(former_policies|limits)": `)
})

// IsSummary reports whether a file that begins like this has figures in JSON: a summary, or a report, which begins with one.
func IsSummary(head []byte) bool { return summaryHead().Match(head) }

// LeakSummary is what one call site left behind.
type LeakSummary struct {
	Tag     string   `json:"tag"`
	Stack   []string `json:"stack,omitempty"` // innermost first
	Buffers uint64   `json:"buffers"`
	Bytes   uint64   `json:"bytes"`
}

// mistakes takes findings and leaks over.
func (s *Summary) mistakes(from *stats.Snapshot) {
	s.Findings, s.Leaks, s.OtherFindings = append([]stats.Finding{}, from.Findings...), []LeakSummary{}, from.OtherFindings
	s.HeldAtExit, s.OutOfMemory = from.HeldAtExit(), []PostMortemSummary{}
	for i := range from.PostMortems {
		s.OutOfMemory = append(s.OutOfMemory, postMortemSummary(&from.PostMortems[i], from.Started))
	}
	for _, t := range leaks(from) {
		s.Leaks = append(s.Leaks, LeakSummary{Tag: t.Name, Stack: t.Stack, Buffers: t.Live, Bytes: t.InUse})
	}
}

// shareOf is what a share of the memory is a share of.
type shareOf struct {
	Class    string  `json:"class,omitempty"`    // of a class
	Kind     string  `json:"kind,omitempty"`     // of a kind
	Smallest *uint64 `json:"smallest,omitempty"` // of a bucket: granted sizes from here
	Largest  *uint64 `json:"largest,omitempty"`  // to here
}

// shares fills in what is counted by size, class and kind.
func (s *Summary) shares(from *stats.Snapshot) {
	s.PerBucket, s.PerClass, s.PerKind = []units.Joined{}, []units.Joined{}, []units.Joined{}
	for i := range from.Buckets {
		b := &from.Buckets[i]
		s.PerBucket = append(s.PerBucket, units.Joined{shareOf{Smallest: &b.Smallest, Largest: &b.Largest}, figures.ShareMembers(&b.Share)})
	}
	for i := range from.Classes {
		c := &from.Classes[i]
		s.PerClass = append(s.PerClass, units.Joined{shareOf{Class: c.Name}, figures.ShareMembers(&c.Share)})
	}
	for i := range from.Kinds {
		k := &from.Kinds[i]
		s.PerKind = append(s.PerKind, units.Joined{shareOf{Kind: k.Memory.String()}, figures.ShareMembers(&k.Share)})
	}
}

// GhostSummary is what another configuration would have done, or the present one, as far as it was simulated beside the
// run.
type GhostSummary struct {
	*stats.Ghost
	Late    bool    `json:"late,omitempty"` // it has not seen the begin
	HitRate float64 `json:"hit_rate"`
}

// ghostSummaries returns the best first, nil where there are none.
func ghostSummaries(g *stats.Ghosts) []GhostSummary {
	if g == nil {
		return nil
	}
	list := []GhostSummary{}
	for i := range g.Rows {
		row := &g.Rows[i]
		list = append(list, GhostSummary{row, row.Since != 0, row.HitRate()})
	}
	return list
}
