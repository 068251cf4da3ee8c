package study

import (
	"fmt"
	"io"

	"codeberg.org/gpumemtop/gpumemtop/internal/advise"
	"codeberg.org/gpumemtop/gpumemtop/internal/advise/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

// SizeRules are the values of --sizes.
var SizeRules = []string{"any", "equal"}

// Forms returns the values of --form; the index of each is its merging.Form.
func Forms() []string { return watch.Names(merging.API, merging.Uses) }

// AdviseOptions say what advice is wanted.
type AdviseOptions struct {
	Form   string
	Sizes  string
	Steps  int // calls to look at in each recording
	Most   int // pieces of advice in the text for each program, 0: all
	Format string
	Plan   files.Output // of a plan that is written instead; without a path: none
}

// DefaultAdvice are the usual options.
func DefaultAdvice() AdviseOptions {
	return AdviseOptions{Form: merging.Completion.String(), Sizes: SizeRules[0], Steps: advise.MostSteps, Most: 20, Format: "text"}
}

// Advise writes which buffers could share memory and which copies could be spared in the program of some recordings.
func Advise(w io.Writer, paths []string, o *AdviseOptions) error {
	options, err := o.check()
	if err == nil {
		err = files.CheckDifferent(paths)
	}
	if err != nil {
		return err
	}
	if o.Plan.Path != "" {
		return writePlan(w, paths, o.Plan)
	}
	reader := advise.New(options)
	for _, path := range paths {
		err := files.Read(path, func(t *files.Tracked) error {
			return reader.Add(advise.Recording{Name: path, Source: t, Header: t.Header()})
		})
		if err != nil {
			return err
		}
	}
	result, err := reader.Advise()
	switch {
	case err != nil:
		return err
	case o.Format == "json":
		return result.JSON(w)
	case o.Most == 0:
		return result.Text(w, -1)
	}
	return result.Text(w, o.Most)
}

func (o *AdviseOptions) check() (advise.Options, error) {
	options := advise.Options{Steps: o.Steps}
	if err := read.CheckFormat(o.Format, read.TextFormats); err != nil {
		return options, err
	}
	form, err := watch.OneOf("form", o.Form, Forms())
	if err != nil {
		return options, err
	}
	rule, err := watch.OneOf("sizes", o.Sizes, SizeRules)
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
