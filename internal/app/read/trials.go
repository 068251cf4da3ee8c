package read

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/trial"
)

// tryAdvice replays what findings would name, and completes them.
func tryAdvice(a *analysis.Analysis, src recording.Source) error {
	r := &analysis.Replays{}
	trials, present := a.Trials(), setting.ConfigurationOfRecording(&a.Run.Header)
	if len(trials) > 0 && present != nil {
		tape, err := trial.Read(src, a.Run.Header.DeviceMemory)
		if err != nil {
			return err
		}
		if replays := tape.Run(*present, trials); replays != nil {
			r = replays
		}
	}
	a.ApplyReplays(r)
	return nil
}
