package replay

import (
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// applyExperiment applies a recorded change of an experiment, if the replay is as recorded. Otherwise one configuration
// serves all requests. A step that fails here did not fail in the run: the recording's version had other policies, or
// events are missing.
func (p *simulatedProcess) applyExperiment(c *change, time int64) {
	what, request, ok := wire.ParseArmsSetting(c.value)
	if !p.simulation.options.AsRecorded || !ok {
		return
	}
	limit, isLimit := strings.CutPrefix(what, "+")
	switch {
	case c.name == wire.ArmSetting:
		if arm, err := strconv.ParseUint(what, 10, 1); err == nil {
			_ = p.policy.LetArmDecideFrom(int(arm), request)
		}
	case isLimit:
		name, value, _ := strings.Cut(limit, "=")
		p.evictions, _ = p.policy.SetAlternativeLimit(name, value, time, p.evictions[:0])
	case what == wire.ArmsOff:
		p.evictions = p.policy.EndExperiment(time, p.evictions[:0])
	default:
		if next, err := newRecordedPool(what); err == nil {
			p.evictions = p.policy.BeginExperiment(next, time, p.evictions[:0])
		}
	}
	p.returnEvictedBlocks()
}
