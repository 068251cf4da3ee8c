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

// Summary is a run in a few figures: sizes in bytes, rates 0…1. Scripts rely on its JSON keys: those of setup, of the figures
// (package figures), and of details.
type Summary struct {
	setup
	details
	left
	snapshot *stats.Snapshot
}

// setup has the settings of a run.
type setup struct {
	Policy         string            `json:"policy"`                    // at the end
	FormerPolicies []string          `json:"former_policies,omitempty"` // that the program had before, oldest first
	Limits         recording.Limits  `json:"limits"`
	Labels         map[string]string `json:"labels,omitempty"`       // that the user chose
	WholeBlocks    string            `json:"whole_blocks,omitempty"` // why no policy can cut slabs into sub-allocations
	Hosted         *stats.Part       `json:"hosted,omitempty"`       // creates that got host memory, because the pool's waste filled the device
}

// details are the keys that are no single figures.
type details struct {
	MissReasons map[string]uint64 `json:"miss_reasons"`                 // all of them, "too_small" and so on
	FailedWith  []FailedWith      `json:"failed_with"`                  // statuses of creates that failed, the most frequent first
	FailedCalls []FailedCall      `json:"failed_calls"`                 // in the order of their first, at most stats.FailedCallsMax
	OtherFailed uint64            `json:"other_failed_calls,omitempty"` // failures beyond these
	// Machine has the machine's figures of all processes together.
	Machine   []MachineSummary `json:"machine,omitempty"`
	Saved     Saved            `json:"saved"`
	Measured  []Measured       `json:"measured,omitempty"` // experiments that the user asked for, one for each alternative; left out if none
	Transfers TransfersSummary `json:"transfers"`
	Spill     *stats.Spill     `json:"spill,omitempty"` // what --spill moved; left out if it took no memory from the device
	// Exit is how the first process ended. A caller that started the program may set it, since it knows more.
	Exit      Exit           `json:"exit"`
	Processes []units.Joined `json:"processes"`  // that made OpenCL calls, in the order of their first
	PerTag    []units.Joined `json:"per_tag"`    // by falling peak
	PerBucket []units.Joined `json:"per_bucket"` // by size
	PerClass  []units.Joined `json:"per_class"`
	PerKind   []units.Joined `json:"per_kind"` // of memory: "buffer", "image" and so on
	// Findings are the program's mistakes in the order of their first occurrence, at most stats.FindingsMax; OtherFindings counts
	// those beyond.
	Findings      []stats.Finding `json:"findings"`
	OtherFindings uint64          `json:"other_findings"`
	// Objects counts objects besides memory: events, kernels and so on, by type; see docs/METRICS.md.
	Objects []ObjectSummary `json:"objects"`
	// HeldAtExit says that the leaks are only memory that processes held when a signal ended them, or when they outlived the program.
	HeldAtExit bool `json:"held_at_exit"`
	// OutOfMemory are calls that failed for lack of memory, at most stats.PostMortemsMax.
	OutOfMemory []PostMortemSummary `json:"out_of_memory"`
	// Attached says that the programs were only watched; Running is how many of their processes continue.
	Attached bool `json:"attached,omitempty"`
	Running  int  `json:"running,omitempty"`
	// WithoutPool counts processes that should have had a pool; WithoutPoolWhy is the first one's reason.
	WithoutPool    uint64   `json:"processes_without_pool,omitempty"`
	WithoutPoolWhy string   `json:"without_pool_why,omitempty"`
	Asked          []string `json:"asked,omitempty"`               // devices that programs asked for before they had a context, in words
	NotWatched     []string `json:"not_watched,omitempty"`         // why processes are not watched, if they report it
	Unseen         []string `json:"unwatched_libraries,omitempty"` // that programs may call past gpumemtop, or their functions
	LeftOut        []string `json:"left_out,omitempty"`            // what gpumemtop did not keep because a program did too much of it, in words
	// Ghosts has the policies that were simulated beside the run, the best first.
	Ghosts []GhostSummary `json:"ghosts,omitempty"`
	Plan   *PlanJSON      `json:"plan_measured,omitempty"` // effect of plans, if the policy takes them
}

// left has keys that a report replaces by more detailed ones.
type left struct {
	Leaks []LeakSummary `json:"leaks"` // memory that was never released, the most bytes first
}

// MarshalJSON implements json.Marshaler.
func (s Summary) MarshalJSON() ([]byte, error) { return append(s.joinParts(), &s.left).MarshalJSON() }

func (s *Summary) joinParts() units.Joined {
	return units.Joined{&s.setup, figures.SubjectOfSnapshot(s.snapshot).JSONMembers(), &s.details}
}

// Saved estimates the time that hits saved, ns.
type Saved struct {
	Calls uint64 `json:"driver_calls_ns"` // minus the pool's own time
	Basis string `json:"basis"`           // of Calls: unknown or estimated
	// Releases says that the time of releases counts, too, not only that of creates.
	Releases bool   `json:"releases_counted"`
	Device   string `json:"probed_device,omitempty"` // the device whose probe gave the driver's times
	// Touches is about first touches; left out if unknown.
	Touches *stats.Touches `json:"first_touches,omitempty"`
}

func savedByHitsOf(t *stats.Totals) Saved {
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
	Signal int `json:"signal"` // 0 if no signal ended it
}

// NewSummary takes the figures from the last snapshot of a run.
func NewSummary(s *stats.Snapshot) Summary {
	t := &s.Totals
	summary := Summary{
		setup: setup{Policy: s.Policy, FormerPolicies: s.Change.Former, Limits: recording.Limits{}, Labels: s.Labels, WholeBlocks: s.WholeBlocks},
		details: details{
			MissReasons: missReasons(t.MissReasons[:], true), FailedWith: failuresMostFrequentFirst(t), FailedCalls: listFailedCalls(s), OtherFailed: s.OtherFailed, Machine: machineSummaries(s.Machine, t), Saved: savedByHitsOf(t), Measured: measuredResults(s.Measured),
			Transfers: transfersSummary(&s.Transfers), Spill: s.Spill, Exit: Exit{Status: -1}, Processes: []units.Joined{}, PerTag: []units.Joined{},
			Objects: objectSummaries(s.Objects), WithoutPool: s.Unpooled.Times, WithoutPoolWhy: s.Unpooled.Why, LeftOut: s.Exceeded, Unseen: s.Unseen, Asked: s.Asked,
			Ghosts: ghostSummaries(s.Ghosts), Plan: planEffectOfRun(&t.Plans),
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
		summary.Exit = exitOfProcess(&s.Processes[0])
	}
	run := figures.SubjectOfSnapshot(s)
	for _, tag := range tagsByPeak(s.Tags) {
		summary.PerTag = append(summary.PerTag, siteJSON(run, tag))
	}
	if s.Hosted.Buffers > 0 {
		summary.Hosted = &s.Hosted
	}
	summary.addFiguresByShare(s)
	summary.addMistakesAndLeaks(s)
	return summary
}

// NewWatchSummary is NewSummary for programs that were only watched. running is how many of their processes continue: if any
// does, memory in use is no leak. The end of a process counts as the program's only if it is the only process.
func NewWatchSummary(s *stats.Snapshot, running int) Summary {
	summary := NewSummary(s)
	summary.Attached, summary.Running = true, running
	if running > 0 {
		summary.Leaks, summary.HeldAtExit = []LeakSummary{}, false
	}
	if len(s.Processes) != 1 {
		summary.Exit = Exit{Status: -1}
	}
	return summary
}

func processJSON(p *stats.Process, now uint64) units.Joined {
	type process struct {
		PID     int     `json:"pid"`
		Rank    *uint64 `json:"rank,omitempty"` // in its job
		Parent  int     `json:"parent"`
		Folded  uint64  `json:"ended_processes,omitempty"` // the number of ended processes that this row sums up
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
		process{p.PID, p.Rank, p.Parent, p.Folded, p.Program, p.App, p.Place, append([]string{}, p.Arguments...), exitOfProcess(p)},
		figures.SubjectOfProcess(p, now).JSONMembers(), machine{machineSummaries(p.Machine, &p.Totals)},
	}
}

func exitOfProcess(p *stats.Process) Exit {
	switch p.State {
	case stats.Exited:
		return Exit{Status: p.Status}
	case stats.Signaled:
		return Exit{Status: -1, Signal: max(p.Status, 0)}
	}
	return Exit{Status: -1}
}

// missReasons returns counts by the names of their reasons: of all reasons, or only of those that occurred.
func missReasons(counts []uint64, all bool) map[string]uint64 {
	reasons := map[string]uint64{}
	for reason, n := range counts {
		if all && wire.Miss(reason) != wire.MissNone || !all && n > 0 {
			reasons[units.JSONKey(wire.Miss(reason).String())] = n
		}
	}
	return reasons
}

func siteJSON(run *figures.Subject, t *stats.Tag) units.Joined {
	type site struct {
		Tag         string            `json:"tag"`
		Stack       []string          `json:"stack,omitempty"` // innermost first
		MissReasons map[string]uint64 `json:"miss_reasons"`    // those that occurred
	}
	return units.Joined{site{t.Name, t.Stack, missReasons(t.MissReasons[:], false)}, run.JSONMembersOfSite(t)}
}

// WriteJSON writes the summary as one JSON object, for scripts.
func (s *Summary) WriteJSON(w io.Writer) error {
	if err := units.WriteJSON(w, s); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// summaryHead matches the beginning of what WriteJSON writes.
var summaryHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\{\n  "policy": "[^"\n]*",\n  "(former_policies|limits)": `)
})

// IsSummary reports whether a file that begins like this has figures in JSON: a summary, or a report, which begins with one.
func IsSummary(head []byte) bool { return summaryHead().Match(head) }

// LeakSummary is memory of one call site that was never released.
type LeakSummary struct {
	Tag     string   `json:"tag"`
	Stack   []string `json:"stack,omitempty"` // innermost first
	Buffers uint64   `json:"buffers"`
	Bytes   uint64   `json:"bytes"`
}

// addMistakesAndLeaks copies findings and leaks.
func (s *Summary) addMistakesAndLeaks(from *stats.Snapshot) {
	s.Findings, s.Leaks, s.OtherFindings = append([]stats.Finding{}, from.Findings...), []LeakSummary{}, from.OtherFindings
	s.HeldAtExit, s.OutOfMemory = from.WasAllHeldByKilled(), []PostMortemSummary{}
	for i := range from.PostMortems {
		s.OutOfMemory = append(s.OutOfMemory, postMortemSummary(&from.PostMortems[i], from.Started))
	}
	for _, t := range leakingTags(from) {
		s.Leaks = append(s.Leaks, LeakSummary{Tag: t.Name, Stack: t.Stack, Buffers: t.Live, Bytes: t.InUse})
	}
}

// shareOf identifies a row about a part of memory: a class, kind or bucket.
type shareOf struct {
	Class    string  `json:"class,omitempty"`    // of a class
	Kind     string  `json:"kind,omitempty"`     // of a kind
	Smallest *uint64 `json:"smallest,omitempty"` // of a bucket: smallest granted size of a bucket
	Largest  *uint64 `json:"largest,omitempty"`  // largest granted size of a bucket
}

// addFiguresByShare fills in the figures by size, class and kind.
func (s *Summary) addFiguresByShare(from *stats.Snapshot) {
	s.PerBucket, s.PerClass, s.PerKind = []units.Joined{}, []units.Joined{}, []units.Joined{}
	for i := range from.Buckets {
		b := &from.Buckets[i]
		s.PerBucket = append(s.PerBucket, units.Joined{shareOf{Smallest: &b.Smallest, Largest: &b.Largest}, figures.JSONMembersOfShare(&b.Share)})
	}
	for i := range from.Classes {
		c := &from.Classes[i]
		s.PerClass = append(s.PerClass, units.Joined{shareOf{Class: c.Name}, figures.JSONMembersOfShare(&c.Share)})
	}
	for i := range from.Kinds {
		k := &from.Kinds[i]
		s.PerKind = append(s.PerKind, units.Joined{shareOf{Kind: units.JSONKey(k.Memory.WordsForCreated())}, figures.JSONMembersOfShare(&k.Share)})
	}
}

// GhostSummary is the result of a configuration, another or the present one, that was simulated beside the run.
type GhostSummary struct {
	*stats.Ghost
	Late    bool    `json:"late,omitempty"` // its simulation has not seen the run's beginning
	HitRate float64 `json:"hit_rate"`
}

// ghostSummaries returns the simulated configurations, the best first; nil if there are none.
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
