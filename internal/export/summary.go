package export

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/model"
	"codeberg.org/gpumemtop/gpumemtop/internal/plain"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Summary is a run in a few figures: sizes in bytes, rates 0…1. Its JSON keys are what scripts rely on.
type Summary struct {
	Policy         string            `json:"policy"`                    // at the end
	FormerPolicies []string          `json:"former_policies,omitempty"` // that the program had before, oldest first
	Limits         trace.Limits      `json:"limits"`
	Hits           uint64            `json:"hits"`
	Misses         uint64            `json:"misses"`
	HitRate        float64           `json:"hit_rate"`
	SteadyHitRate  float64           `json:"steady_hit_rate"` // of the later half of the requests
	MissReasons    map[string]uint64 `json:"miss_reasons"`    // all of them, "too_small" and so on
	DriverCreates  uint64            `json:"driver_creates"`
	DriverReleases uint64            `json:"driver_releases"`
	BytesRequested uint64            `json:"bytes_requested"`
	BytesAllocated uint64            `json:"bytes_allocated"`
	InUse          uint64            `json:"in_use"` // at the end, and so are the next three
	BytesCached    uint64            `json:"bytes_cached"`
	LargestCached  uint64            `json:"largest_cached"` // block, or free range in a slab
	BytesCooling   uint64            `json:"bytes_cooling"`
	PeakInUse      uint64            `json:"peak_in_use"`
	PeakReserved   uint64            `json:"peak_reserved"`
	PeakRequested  uint64            `json:"peak_requested"`
	PeakCached     uint64            `json:"peak_cached"`
	PeakCooling    uint64            `json:"peak_cooling"`
	PeakSlabs      uint64            `json:"peak_slabs"` // so many at a time
	Slabs          uint64            `json:"slabs"`      // at the end
	SlabBytes      uint64            `json:"slab_bytes"`
	Waste          float64           `json:"waste"` // of what was in use at the end
	// Three forms, of what was cached at the end.
	ExternalFragmentation          float64 `json:"external_fragmentation"`
	ExternalFragmentationQuadratic float64 `json:"external_fragmentation_quadratic"`
	ExternalFragmentationRoot      float64 `json:"external_fragmentation_root"`
	HazardsAvoided                 uint64  `json:"hazards_avoided"`
	Events                         uint64  `json:"events"`
	LostEvents                     uint64  `json:"lost_events"`
	WallSeconds                    float64 `json:"wall_seconds"`
	// Exit is how the first process ended. Whoever started the program knows better and may set it.
	Exit      Exit             `json:"exit"`
	Processes []ProcessSummary `json:"processes"`  // that made OpenCL calls, in the order of their first
	PerTag    []TagSummary     `json:"per_tag"`    // by falling peak
	PerBucket []ShareSummary   `json:"per_bucket"` // by size
	PerClass  []ShareSummary   `json:"per_class"`
	// Findings are the program's mistakes in the order of their first time, at most model.FindingsMax; OtherFindings
	// came when that many were known.
	Findings      []FindingSummary `json:"findings"`
	OtherFindings uint64           `json:"other_findings"`
	Leaks         []LeakSummary    `json:"leaks"` // what was never released, the most bytes first
	// Attached says that the programs ran already, and were only watched; Running is how many of the processes went on.
	Attached bool `json:"attached,omitempty"`
	Running  int  `json:"running,omitempty"`
	// Ghosts are the policies that were simulated beside the run, the best first.
	Ghosts []GhostSummary `json:"ghosts,omitempty"`

	snapshot *model.Snapshot
}

// Exit is how a process ended.
type Exit struct {
	Status int `json:"status"` // -1 when unknown or ended by a signal
	Signal int `json:"signal"` // 0 when it was none
}

// ProcessSummary is one process.
type ProcessSummary struct {
	PID            int      `json:"pid"`
	Parent         int      `json:"parent"`
	Program        string   `json:"program"`
	Arguments      []string `json:"arguments"`
	Exit           Exit     `json:"exit"`
	WallSeconds    float64  `json:"wall_seconds"`
	Creates        uint64   `json:"creates"`
	Hits           uint64   `json:"hits"`
	Misses         uint64   `json:"misses"`
	HitRate        float64  `json:"hit_rate"`
	DriverCreates  uint64   `json:"driver_creates"`
	BytesRequested uint64   `json:"bytes_requested"`
	BytesAllocated uint64   `json:"bytes_allocated"`
	BytesCached    uint64   `json:"bytes_cached"`
	BytesCooling   uint64   `json:"bytes_cooling"`
	PeakInUse      uint64   `json:"peak_in_use"`
	PeakReserved   uint64   `json:"peak_reserved"`
	InUse          uint64   `json:"in_use"`
	LiveBuffers    uint64   `json:"live_buffers"`
}

// TagSummary is one allocation site.
type TagSummary struct {
	Tag         string            `json:"tag"`
	Stack       []string          `json:"stack,omitempty"` // innermost first
	Creates     uint64            `json:"creates"`
	Hits        uint64            `json:"hits"`
	Misses      uint64            `json:"misses"`
	HitRate     float64           `json:"hit_rate"`
	MissReasons map[string]uint64 `json:"miss_reasons"` // those that occurred
	PeakInUse   uint64            `json:"peak_in_use"`
	InUse       uint64            `json:"in_use"`
	BytesCached uint64            `json:"bytes_cached"`
	LiveBuffers uint64            `json:"live_buffers"`
	Waste       float64           `json:"waste"`
}

// NewSummary takes the figures from the last snapshot of a run.
func NewSummary(s *model.Snapshot) Summary {
	t := &s.Totals
	summary := Summary{
		Policy: s.Policy, FormerPolicies: s.Change.Former, Limits: trace.Limits{},
		Hits: t.Hits, Misses: t.Misses, HitRate: t.HitRate(), SteadyHitRate: t.SteadyHitRate(),
		MissReasons: map[string]uint64{}, DriverCreates: t.DriverCreates, DriverReleases: t.DriverReleases,
		BytesRequested: t.BytesRequested, BytesAllocated: t.BytesAllocated, InUse: t.InUse,
		BytesCached: t.Cached, LargestCached: t.LargestCached, BytesCooling: t.Cooling,
		PeakInUse: t.PeakInUse, PeakReserved: t.PeakReserved, Waste: t.Waste(),
		PeakRequested: t.PeakRequested, PeakCached: t.PeakCached, PeakCooling: t.PeakCooling,
		PeakSlabs: t.PeakSlabs, Slabs: t.Slabs, SlabBytes: t.SlabBytes,
		ExternalFragmentation: t.ExternalFragmentation(), ExternalFragmentationQuadratic: t.QuadraticFragmentation(),
		ExternalFragmentationRoot: t.RootFragmentation(), HazardsAvoided: t.HazardsAvoided, Events: s.Events, LostEvents: s.Lost,
		WallSeconds: plain.Seconds(s.Started, s.Time), Exit: Exit{Status: -1},
		Processes: []ProcessSummary{}, PerTag: []TagSummary{}, Ghosts: ghostSummaries(s.Ghosts), snapshot: s,
	}
	for i := range s.Limits {
		summary.Limits[s.Limits[i].Name] = s.Limits[i].Text
	}
	for reason := wire.MissCold; reason <= wire.MissPolicy; reason++ {
		summary.MissReasons[reasonKey(reason)] = t.MissReasons[reason]
	}
	for i := range s.Processes {
		summary.Processes = append(summary.Processes, processSummary(&s.Processes[i], s.Time))
	}
	if len(s.Processes) > 0 {
		summary.Exit = summary.Processes[0].Exit
	}
	for _, tag := range plain.TagsByPeak(s.Tags) {
		summary.PerTag = append(summary.PerTag, tagSummary(tag))
	}
	summary.shares(s)
	summary.mistakes(s)
	return summary
}

// NewWatchSummary is NewSummary for programs that were only watched, and of whose processes so many went on. What is in
// use then is no leak. The end of the first process counts as that of the program only where it is the only one.
func NewWatchSummary(s *model.Snapshot, running int) Summary {
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

// reasonKey is a reason as a JSON key: "too_small".
func reasonKey(reason wire.Miss) string { return strings.ReplaceAll(reason.String(), " ", "_") }

func processSummary(p *model.Process, now uint64) ProcessSummary {
	t := &p.Totals
	ended := p.Ended
	if ended == 0 {
		ended = now
	}
	return ProcessSummary{
		PID: p.PID, Parent: p.Parent, Program: p.Program, Arguments: append([]string{}, p.Arguments...),
		Exit: exitOf(p), WallSeconds: plain.Seconds(p.Started, ended), Creates: t.Creates,
		Hits: t.Hits, Misses: t.Misses, HitRate: t.HitRate(), DriverCreates: t.DriverCreates,
		BytesRequested: t.BytesRequested, BytesAllocated: t.BytesAllocated, BytesCached: t.Cached,
		BytesCooling: t.Cooling, PeakInUse: t.PeakInUse, PeakReserved: t.PeakReserved, InUse: t.InUse, LiveBuffers: t.LiveBuffers,
	}
}

func exitOf(p *model.Process) Exit {
	switch p.State {
	case model.Exited:
		return Exit{Status: p.Status}
	case model.Signaled:
		return Exit{Status: -1, Signal: max(p.Status, 0)}
	}
	return Exit{Status: -1}
}

func tagSummary(t *model.Tag) TagSummary {
	reasons := map[string]uint64{}
	for reason, n := range t.MissReasons {
		if n > 0 {
			reasons[reasonKey(wire.Miss(reason))] = n
		}
	}
	return TagSummary{
		Tag: t.Name, Stack: t.Stack, Creates: t.Creates, Hits: t.Hits, Misses: t.Misses, HitRate: t.HitRate(),
		MissReasons: reasons, PeakInUse: t.PeakInUse, InUse: t.InUse, BytesCached: t.Cached, LiveBuffers: t.Live,
		Waste: t.Waste(),
	}
}

// WriteJSON writes the summary as one JSON object, for scripts.
func (s *Summary) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}
