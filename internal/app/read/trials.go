package read

import (
	"fmt"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
)

// replayedMost bounds the steps that are replayed for findings, so that a report of a large recording does not take long. It is no
// bound on time: each machine says the same.
const replayedMost = 100_000

// tryAdvice replays what findings would name, and completes them.
func tryAdvice(a *analysis.Analysis, src recording.Source) error {
	trials := a.Trials()
	present := setting.OfRecording(&a.Run.Header)
	if len(trials) == 0 || present == nil {
		return nil
	}
	loaded, whole, err := replay.LoadFirst(src, replayedMost)
	if err != nil {
		return err
	}
	outcome := func(c replay.Configuration) (analysis.Outcome, error) {
		o := c.HeldOptions()
		o.Capacity = a.Run.Header.DeviceMemory
		r, err := loaded.Run(o)
		if err != nil {
			return analysis.Outcome{}, err
		}
		return analysis.Outcome{Hits: r.Hits, Requests: r.Hits + r.Misses, PeakReserved: r.PeakReserved, Failures: r.Failures}, nil
	}
	now, err := outcome(*present)
	if err != nil || now.Requests == 0 {
		return nil //nolint:nilerr // this version has no such configuration
	}
	outcomes := map[analysis.Trial]analysis.Outcome{}
	for _, t := range trials {
		c := replay.Configuration{Policy: t.Policy}
		if t.Limit != "" {
			c = present.With(t.Limit, t.Value)
		}
		if o, err := outcome(c); err == nil { // else the policy refuses the value
			outcomes[t] = o
		}
	}
	part := ""
	if !whole {
		part = fmt.Sprintf(" on a part of the run (its first %d steps)", loaded.Events())
	}
	a.Replayed(now, outcomes, part)
	return nil
}
