package study

import (
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/planfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// writePlan writes a plan of the program of some recordings.
func writePlan(w io.Writer, paths []string, to files.Output) error {
	if err := to.RequireOtherFile(paths...); err != nil {
		return err
	}
	var runs planfile.Collection
	for _, path := range paths {
		err := files.ReadRecording(path, func(t *files.Tracked) error { return runs.AddRecording(t, t.Header().Tags) })
		if err != nil {
			return err
		}
	}
	plan, others, err := runs.PlanOfMostRuns()
	if err != nil {
		return err
	}
	if others > 0 {
		console.SayLine("the plan is for %s alone, and not for %s", plan.Program, units.Count(uint64(others), "other program"))
	}
	return to.Write(w, plan.Write)
}
