package study

import (
	"bytes"
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise"
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
	"codeberg.org/gpumemtop/gpumemtop/internal/whatif/trial"
)

// SizeRules are the values of --sizes.
var SizeRules = []string{"any", "equal"}

// FormNames returns the values of --form; the index of each is its merging.Form.
func FormNames() []string { return watch.WordsOfEnum(merging.API, merging.Uses) }

// AdviseOptions say what advice is wanted.
type AdviseOptions struct {
	Form   string
	Sizes  string
	Steps  int // calls to look at in each recording
	Most   int // pieces of advice in the text for each program, 0: all
	Format string
	Plan   files.Output // of a plan that is written instead; without a path: none
}

// DefaultAdviseOptions are the usual options.
func DefaultAdviseOptions() AdviseOptions {
	return AdviseOptions{Form: merging.Completion.String(), Sizes: SizeRules[0], Steps: advise.MostSteps, Most: 20, Format: "text"}
}

// WriteAdvice writes which buffers could share memory and which copies could be spared in the program of some recordings.
func WriteAdvice(w io.Writer, paths []string, o *AdviseOptions) error {
	options, err := o.check()
	if err == nil {
		err = files.CheckDifferentFiles(paths)
	}
	if err != nil {
		return err
	}
	if o.Plan.Path != "" {
		return writePlan(w, paths, o.Plan)
	}
	reader, width := advise.New(options), console.WidthWithin(w, adviceWidth)
	var policies bytes.Buffer
	for _, path := range paths {
		err := files.ReadRecording(path, func(t *files.Tracked) error {
			if err := reader.AddRecording(advise.Recording{Name: path, Source: t, Header: t.Header()}); err != nil || o.Format == "json" {
				return err
			}
			text, err := adviseBetterPolicy(t)
			if text != "" {
				units.Wrap(&policies, width, "- ", path+": "+text)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	result, err := reader.AdviseOnRuns()
	switch {
	case err != nil:
		return err
	case o.Format == "json":
		return result.WriteJSON(w)
	}
	most := o.Most
	if most == 0 {
		most = -1
	}
	if err := result.WriteText(w, most, width); err != nil || policies.Len() == 0 {
		return err
	}
	return console.WriteText(w, "\nPOLICY\n"+policies.String())
}

// adviceWidth is how many columns the text has at most.
const adviceWidth = 100

// adviseBetterPolicy says what the best of some policies would have done in a recording; empty: none is clearly better than the
// present one.
func adviseBetterPolicy(t *files.Tracked) (string, error) {
	h := t.Header()
	present := setting.ConfigurationOfRecording(&h)
	if present == nil || h.Auto {
		return "", nil
	}
	tape, err := trial.ReadTape(t, h.DeviceMemory)
	if err != nil {
		return "", err
	}
	list := []analysis.Trial{{Policy: "futhark"}, {Policy: "slab"}, {Policy: "arena"}}
	r := tape.ReplayTrials(*present, list)
	if r == nil {
		return "", nil
	}
	return r.BestTrialText(list), nil
}

func (o *AdviseOptions) check() (advise.Options, error) {
	options := advise.Options{Steps: o.Steps}
	if err := read.CheckFormat(o.Format, read.TextFormats); err != nil {
		return options, err
	}
	form, err := watch.IndexOfFlagValue("form", o.Form, FormNames())
	if err != nil {
		return options, err
	}
	rule, err := watch.IndexOfFlagValue("sizes", o.Sizes, SizeRules)
	if err != nil {
		return options, err
	}
	if o.Most < 0 {
		return options, fmt.Errorf("bad value %d for --max: want a number of pieces of advice, or 0 for all", o.Most)
	}
	if o.Steps < 1 {
		return options, fmt.Errorf("bad value %d for --steps: want at least 1", o.Steps)
	}
	options.Form, options.Max = merging.Form(form), SizeRules[rule] == "any"
	return options, nil
}
