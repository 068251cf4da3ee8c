package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// ReplaySummary is the result of replaying a recording with a policy, for scripts: sizes in bytes, rates 0…1. Keys that a run's
// summary has, too, mean the same. Figures that would differ from a run's have other keys: those of poolable memory only, and
// those of free memory from before the contexts ended (docs/METRICS.md).
type ReplaySummary struct {
	*replay.Result
	Limits                         recording.Limits  `json:"limits"`
	HitRate                        float64           `json:"hit_rate"`
	SteadyHitRate                  float64           `json:"steady_hit_rate"`
	MissReasons                    map[string]uint64 `json:"miss_reasons"`
	DriverCreatesAvoided           uint64            `json:"driver_creates_avoided"`
	WasteAtPeak                    float64           `json:"waste_at_peak"`
	Waste                          float64           `json:"waste_poolable"` // at the end
	ExternalFragmentation          float64           `json:"external_fragmentation_before_end"`
	ExternalFragmentationQuadratic float64           `json:"external_fragmentation_quadratic_before_end"`
	ExternalFragmentationRoot      float64           `json:"external_fragmentation_root_before_end"`
	DeviceName                     string            `json:"device"`              // the device whose costs count; empty: the recording's
	DriverNS                       uint64            `json:"driver_ns_simulated"` // the sum of the next four
	CreateNS                       uint64            `json:"create_ns_simulated"`
	TouchNS                        uint64            `json:"touch_ns_simulated"`
	ReleaseNS                      uint64            `json:"release_ns_simulated"`
	PartNS                         uint64            `json:"part_ns_simulated"`
	SavedNS                        uint64            `json:"saved_ns_simulated"` // time of creates and releases that hits avoided, minus that of sub-allocations
	RecordedHits                   uint64            `json:"recorded_hits"`
	RecordedMisses                 uint64            `json:"recorded_misses"`
	RecordedDriverNS               uint64            `json:"recorded_driver_ns,omitempty"` // measured; left out if unknown
	Plan                           *PlanJSON         `json:"plan,omitempty"`               // for a policy that takes plans
}

// WriteReplayJSON writes the result of a replay as one JSON object. device names the device whose costs count; empty: the
// recording's.
func WriteReplayJSON(w io.Writer, r *replay.Result, device string) error {
	s := ReplaySummary{
		Result: r, Limits: recording.Limits{}, HitRate: r.HitRate(), SteadyHitRate: r.SteadyHitRate(), MissReasons: missReasons(r.MissReasons[:], true),
		DriverCreatesAvoided: r.Hits, WasteAtPeak: r.WasteAtPeak(), Waste: r.WasteAtEnd(),
		ExternalFragmentation: r.ExternalFragmentation(), ExternalFragmentationQuadratic: r.QuadraticFragmentation(),
		ExternalFragmentationRoot: r.RootFragmentation(), RecordedHits: r.Recorded.Hits, RecordedMisses: r.Recorded.Misses, RecordedDriverNS: r.Recorded.DriverNS, DeviceName: device,
		DriverNS: roundToWholeNS(r.DriverNS), CreateNS: roundToWholeNS(r.CreateNS), TouchNS: roundToWholeNS(r.TouchNS), ReleaseNS: roundToWholeNS(r.ReleaseNS),
		PartNS: roundToWholeNS(r.PartNS), SavedNS: roundToWholeNS(r.SavedNS), Plan: planEffectOfReplay(r),
	}
	for i := range r.Limits {
		s.Limits[r.Limits[i].Name] = r.Limits[i].Text
	}
	if err := units.WriteJSON(w, s); err != nil {
		return fmt.Errorf("write replay: %w", err)
	}
	return nil
}

func roundToWholeNS(ns float64) uint64 { return uint64(min(max(ns, 0), 1<<62) + 0.5) }

// WriteReplayText writes the result of a replay as text. recorded names the policy that was recorded.
func WriteReplayText(w io.Writer, r *replay.Result, recorded, device string) error {
	var b bytes.Buffer
	units.WriteTwoColumns(&b, [][2]string{
		{"policy", replayedPolicyText(r)},
		{"hit rate", fmt.Sprintf("%s of %s, steady %s; as recorded with %s %s", units.Percent(r.HitRate(), r.Hits+r.Misses),
			units.Count(r.Hits+r.Misses, "request"), units.Percent(r.SteadyHitRate(), r.SteadyRequests), units.Clean(recorded), units.Percent(r.RecordedHitRate(), r.Recorded.Hits+r.Recorded.Misses))},
		{"misses", missReasonsText(r)},
		{"driver", fmt.Sprintf("%s of blocks and slabs, %d avoided; %d given back by the policy", units.Count(r.DriverCreates, "create"), r.Hits, r.Evictions)},
		{"time", driverTimeText(r, recorded, device)},
		{"memory", fmt.Sprintf("peak %s in use (waste %s), %s reserved", units.FormatLong(r.PeakInUse),
			units.Percent(r.WasteAtPeak(), r.PeakInUse), units.FormatLong(r.PeakReserved))},
		{"free", fmt.Sprintf("%s before the contexts ended; external fragmentation %s, quadratic %s, root %s", units.FormatLong(r.Free),
			units.Percent(r.ExternalFragmentation(), r.Free), units.Percent(r.QuadraticFragmentation(), r.Free), units.Percent(r.RootFragmentation(), r.Free))},
		{"at the end", fmt.Sprintf("%s in use, %s free, %s cooling", units.FormatLong(r.InUse), units.FormatLong(r.Cached),
			units.FormatLong(r.Cooling))},
		{"plan", ReplayPlanText(r.Policy, &r.Arena)},
		{"failures", failedRequestsText(r)},
		{"left out", skippedRequestsText(r)},
	})
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write replay: %w", err)
	}
	return nil
}

// replayedPolicyText names the policy, and says how often it could not do its work.
func replayedPolicyText(r *replay.Result) string {
	if r.Whole == 0 || !r.CarvesSlabs() {
		return r.Policy
	}
	return fmt.Sprintf("%s: %d of %s need a block of their own", r.Policy, r.Whole, units.Count(r.Requests, "request"))
}

func missReasonsText(r *replay.Result) string {
	var reasons []string
	for reason, n := range r.MissReasons {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("%d %s", n, wire.Miss(reason)))
		}
	}
	if len(reasons) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", r.Misses, strings.Join(reasons, ", "))
}

// driverTimeText says how long the driver would take, and by whose costs.
func driverTimeText(r *replay.Result, recorded, device string) string {
	if r.Device == (cost.Device{}) {
		return "" // nothing in the recording was timed
	}
	parts := []string{"creates " + units.Duration(roundToWholeNS(r.CreateNS))}
	if r.Device.Touch != (cost.Line{}) {
		parts = append(parts, "first touches "+units.Duration(roundToWholeNS(r.TouchNS)))
	}
	parts = append(parts, "releases "+units.Duration(roundToWholeNS(r.ReleaseNS)))
	if r.PartNS > 0 {
		assumed := ""
		if r.Device.PartAssumed {
			assumed = fmt.Sprintf(", assumed to take %s each", units.Duration(roundToWholeNS(r.Device.Part.A)))
		}
		parts = append(parts, "parts "+units.Duration(roundToWholeNS(r.PartNS))+assumed)
	}
	whose := "what calls usually took in the recording"
	if device != "" {
		whose = units.Clean(device)
	}
	text := fmt.Sprintf("~%s in the driver (%s)%s: simulated, by %s", units.Duration(roundToWholeNS(r.DriverNS)), strings.Join(parts, ", "), timeSavedByHitsText(r), whose)
	if ns := r.Recorded.DriverNS; ns > 0 {
		text += fmt.Sprintf("; as recorded with %s %s, measured", units.Clean(recorded), units.Duration(ns))
	}
	return text
}

// timeSavedByHitsText says how much time hits saved; empty: none.
func timeSavedByHitsText(r *replay.Result) string {
	switch {
	case roundToWholeNS(r.SavedNS) == 0:
		return ""
	case r.Device.Release == (cost.Line{}):
		return fmt.Sprintf(", ~%s of creates saved", units.Duration(roundToWholeNS(r.SavedNS)))
	}
	return fmt.Sprintf(", ~%s of creates and releases saved", units.Duration(roundToWholeNS(r.SavedNS)))
}

func failedRequestsText(r *replay.Result) string {
	if r.Capacity == 0 {
		return ""
	}
	text := fmt.Sprintf("%s found no memory within %s", units.Count(r.Failures, "request"), units.FormatLong(r.Capacity))
	if r.Processes > 1 {
		text += " for each process"
	}
	if r.Direct > 0 {
		text += fmt.Sprintf("; %d had to be met without the policy, which rounds them up", r.Direct)
	}
	if r.Rescued > 0 {
		text += fmt.Sprintf("; %s failed in the recording and would not have", units.Count(r.Rescued, "other"))
	}
	return text
}

// skippedRequestsText counts the recording's requests that no policy was asked for.
func skippedRequestsText(r *replay.Result) string {
	var parts []string
	if r.Unpooled > 0 {
		parts = append(parts, units.Count(r.Unpooled, "create")+" that no policy sees")
	}
	if r.Before > 0 {
		parts = append(parts, units.Count(r.Before, "buffer")+" from before the recording, of unknown kind and size")
	}
	if r.LeftOut > 0 {
		parts = append(parts, units.Count(r.LeftOut, "change")+" of limits during the run")
	}
	if r.Switches > 0 {
		parts = append(parts, units.Count(r.Switches, "change")+" of the policy while the program ran")
	}
	if r.Lost > 0 {
		parts = append(parts, units.Count(r.Lost, "event")+" that the recording misses")
	}
	return strings.Join(parts, ", ")
}
