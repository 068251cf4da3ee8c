package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/session"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

// resolutionMin is the finest resolution that is taken when nobody asks for one.
const resolutionMin = 64 << 10

func newFit() *cobra.Command {
	return command(onFit, &cobra.Command{
		Use:   "fit [flags] [--] CMD [ARGS...]",
		Short: "Find the least device memory that a program needs",
		Long: "gpumemtop fit runs a program again and again with less and less device memory, without the pool and with it,\n" +
			"and says how little it survived with. A run survives when it ends with status 0, as it does without any limit.\n" +
			"The program's input is empty and its output is not shown. The result is the least that was tried and survived:\n" +
			"a program may do worse with a little more. Each process has a card of its own.",
		Annotations: map[string]string{usageKey: "gpumemtop fit [flags] [--] CMD [ARGS...]"},
		Example: "  gpumemtop fit ./blur 4096                          how small a card will do?\n" +
			"  gpumemtop fit --timeout 30s --format json ./blur   it may hang when memory is short",
		Args: cobra.ArbitraryArgs,
	}, func(cmd *cobra.Command, c *config, args []string) error {
		if len(args) == 0 {
			return errors.New("no program to fit: gpumemtop fit CMD [ARGS...]")
		}
		f, err := newFitter(c, args)
		if err != nil {
			return err
		}
		result, err := f.fit()
		if err != nil {
			return err
		}
		if c.fitFormat == "json" {
			return result.writeJSON(cmd.OutOrStdout())
		}
		return result.writeText(cmd.OutOrStdout())
	})
}

// fitter looks for the least memory that a program survives with.
type fitter struct {
	repeater
	plans      []*plan // without the pool and with it
	resolution uint64  // bytes, 0: from the peak
}

// newFitter checks the command line.
func newFitter(c *config, command []string) (*fitter, error) {
	f := &fitter{repeater: repeater{command: command, timeout: c.timeout}}
	if err := checkFormat(c.fitFormat, textFormats); err != nil {
		return nil, err
	}
	if c.timeout < 0 {
		return nil, fmt.Errorf("bad value %v for --timeout: want a time, or 0s for no limit", c.timeout)
	}
	if c.policy == "none" {
		return nil, errors.New("fit compares a pool with none: name a policy that pools with --policy")
	}
	var err error
	if c.resolution != "" {
		if f.resolution, err = size.Parse(c.resolution); err != nil {
			return nil, fmt.Errorf("--resolution: %w", err)
		}
		if f.resolution == 0 {
			return nil, fmt.Errorf("bad value %q for --resolution: want more than nothing", c.resolution)
		}
	}
	pool, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	bare := *c
	bare.policy, bare.limits, bare.maxCached = "none", nil, ""
	without, err := newPlan(&bare)
	if err != nil {
		return nil, err
	}
	f.plans = []*plan{without, pool}
	f.path, err = session.Find(command[0])
	return f, err
}

// fit does all runs. When a signal ends them, the error is an ended with the status that a shell would give.
func (f *fitter) fit() (*fitResult, error) {
	f.signals = session.Catch()
	defer signal.Stop(f.signals)
	result := &fitResult{Command: f.command}
	if err := f.measure(result); err != nil {
		return nil, err
	}
	for _, p := range f.plans {
		line := fitLine{Policy: p.policy.Name()}
		least, found, err := bisect(result.Peak, result.Resolution, func(bytes uint64) (bool, error) {
			line.Runs++
			return f.try(p, bytes)
		})
		if err != nil {
			return nil, err
		}
		if found {
			line.Least = &least
		}
		result.Results = append(result.Results, line)
	}
	return result, nil
}

// measure runs the program without a limit, to learn what it takes and whether it works at all.
func (f *fitter) measure(result *fitResult) error {
	o, err := f.run(f.plans[0], 0, nil)
	if err != nil {
		return err
	}
	switch {
	case !o.survived():
		o.show()
		return fmt.Errorf("the program fails without any limit (%s): fit needs one that works", o)
	case !o.called:
		return errors.New("no OpenCL call was seen: there is nothing to fit")
	case o.peak == 0:
		return errors.New("the program never allocates device memory: it fits everywhere")
	}
	result.Peak = o.peak
	result.Resolution = f.resolution
	if result.Resolution == 0 {
		result.Resolution = max(o.peak/100, resolutionMin)
	}
	f.progress("without a limit: it takes " + size.FormatLong(o.peak))
	return nil
}

// try runs the program with so many bytes of device memory and says whether it survives.
func (f *fitter) try(p *plan, bytes uint64) (bool, error) {
	o, err := f.run(p, bytes, nil)
	if err != nil {
		return false, err
	}
	word := "survives"
	if !o.survived() {
		word = o.String()
	}
	f.progress(fmt.Sprintf("%s, %s: %s", size.FormatLong(bytes), poolWord(p.policy.Name()), word))
	return o.survived(), nil
}

func (f *fitter) progress(text string) { say(os.Stderr, fmt.Sprintf("run %d: %s", f.runs, text)) }

// poolWord names a policy for people.
func poolWord(policy string) string {
	if policy == "none" {
		return "no pool"
	}
	return policy
}
