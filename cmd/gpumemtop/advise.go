package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/merging"
	"codeberg.org/gpumemtop/gpumemtop/internal/merging/advice"
	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
)

// sizeRules are the values of --sizes.
var sizeRules = []string{"any", "equal"}

// formNames are the values of --form; the place of each is its merging.Form.
func formNames() []string { return names(merging.API, merging.Uses) }

func newAdvise() *cobra.Command {
	return command(onAdvise, &cobra.Command{
		Use:   "advise [flags] FILE...",
		Short: "Say which buffers could be one, and which copies could be spared",
		Long: "Looks for memory blocks that a program could merge: buffers that are never in use at once and could be one, and\n" +
			"copies that could go because their source could be made where they put it. It says what to change in which line,\n" +
			"and what that would save. A recording shows one path through a program and proves nothing: advice is called safe\n" +
			"only where it holds each time in two recordings or more. Record the program with different inputs, and give all.",
		Annotations: map[string]string{usageKey: "gpumemtop advise [--form api|uses|completion] [--sizes any|equal] [--format text|json] [--max N] FILE..."},
		Example: "  gpumemtop record -o a.gmt ./blur 4096 && gpumemtop record -o b.gmt ./blur 512\n" +
			"  gpumemtop advise a.gmt b.gmt\n" +
			"  gpumemtop advise --format json a.gmt | jq '.programs[].runs[].merged.peak'",
		Args: someFiles,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		options, err := adviceOptions(c)
		if err == nil {
			err = checkDifferent(args)
		}
		if err != nil {
			return err
		}
		reader := advice.New(options)
		for _, path := range args {
			if err := addRecording(reader, path); err != nil {
				return err
			}
		}
		result, err := reader.Advise()
		switch {
		case err != nil:
			return err
		case c.adviceFormat == "json":
			return result.JSON(cmd.OutOrStdout())
		}
		return result.Text(cmd.OutOrStdout(), c.mostAdvice())
	})
}

// someFiles is the Args of commands that read one recording or more.
func someFiles(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s takes one recording or more: see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

// adviceOptions checks the settings.
func adviceOptions(c *config) (advice.Options, error) {
	options := advice.Options{Steps: c.steps}
	if err := checkFormat(c.adviceFormat, textFormats); err != nil {
		return options, err
	}
	form, err := oneOf("form", c.form, formNames())
	if err != nil {
		return options, err
	}
	rule, err := oneOf("sizes", c.sizes, sizeRules)
	if err != nil {
		return options, err
	}
	if c.adviceMost < 0 {
		return options, fmt.Errorf("bad value %d for --max: want a number of pieces of advice, or 0 for all", c.adviceMost)
	}
	if c.steps < 1 {
		return options, fmt.Errorf("bad value %d for --steps: want at least 1", c.steps)
	}
	options.Form, options.Max = merging.Form(form), sizeRules[rule] == "any"
	return options, nil
}

// mostAdvice is --max; a negative number is no bound.
func (c *config) mostAdvice() int {
	if c.adviceMost == 0 {
		return -1
	}
	return c.adviceMost
}

// addRecording gives a recording to who advises.
func addRecording(to *advice.Reader, path string) error {
	reader, err := trace.Open(path)
	if err != nil {
		return err
	}
	err = to.Add(advice.Recording{Name: path, Source: watch(reader, path), Header: reader.Header()})
	if err == nil {
		warnDamage(path, reader)
	}
	return errors.Join(err, reader.Close())
}
