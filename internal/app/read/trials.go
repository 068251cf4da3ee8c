package read

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/trial"
)

// replayFindings replays what findings would name, and completes them.
func replayFindings(a *analysis.Analysis, src recording.Source) error {
	r := &analysis.Replays{}
	trials, present := a.TrialsOfFindings(), setting.ConfigurationOfRecording(&a.Run.Header)
	if len(trials) > 0 && present != nil {
		tape, err := trial.ReadTape(src, a.Run.Header.DeviceMemory)
		if err != nil {
			return err
		}
		if replays := tape.ReplayTrials(*present, trials); replays != nil {
			r = replays
		}
	}
	a.ApplyReplays(r)
	return nil
}
