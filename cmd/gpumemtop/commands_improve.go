package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/study"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

func deviceCostFields(o *read.CostOptions) fields {
	return fields{"device-cost": &o.File, "device:cost": &o.Device}
}

func newReplayCommand() *cobra.Command {
	o := study.ReplayOptions{PolicyChoice: watch.PolicyChoice{Policy: allocator.Default}, Format: "text"}
	return newCommand(&cobra.Command{
		Use:   "replay [flags] FILE",
		Short: "Replay a recording through another policy",
		Long: "Feeds the requests and releases of each process of a recording to a policy and shows what it would have done\n" +
			"with them. Timing does not change: buffers are requested, released and cool down when they were. Memory that no\n" +
			"policy manages is left out, and so are switches of the policy during the run. Limits that were changed during the\n" +
			"run change here, too, except those set here. Only recordings under policies with slabs show whether a program\n" +
			"that can make images from buffers could have used sub-allocations.",
		Annotations: map[string]string{usageKey: "gpumemtop replay [--policy NAME] [--set LIMIT=VALUE] [--capacity SIZE] [--device-cost FILE] FILE"},
		Example: "  gpumemtop record --policy none -o run.gmt ./blur && gpumemtop replay --policy slab run.gmt\n" +
			"  gpumemtop probe --format json -o card.json       on another machine; here, what the run would cost there:\n" +
			"  gpumemtop replay --device-cost card.json run.gmt",
		Args: oneFile,
	}, fields{"capacity": &o.Capacity, "format": &o.Format, "plan": &o.Plan}.addFields(fixedPolicyFields(&o.PolicyChoice)).addFields(deviceCostFields(&o.Cost)),
		makeInterruptible(func(cmd *cobra.Command, args []string) error { return study.Replay(cmd.OutOrStdout(), args[0], &o) }))
}

func newTuneCommand() *cobra.Command {
	o, format, live := study.TuneOptions{Setup: defaultSetupOptions(), Budget: 30 * time.Second, Configurations: study.DefaultConfigurations}, "text", false
	return newCommand(&cobra.Command{
		Use:   "tune [flags] FILE... | tune [flags] -- CMD [ARGS...]",
		Short: "Find the policy and limits that suit a program",
		Long: "Replays recordings through many policies and limits, shows the Pareto front of time in the driver and memory,\n" +
			"recommends one configuration, and says how much a policy that knew the future could still save. Several\n" +
			"recordings count together: the sum of their times, and the highest of their peaks. Cross-validation then scores\n" +
			"the choice made without one recording, or without half of a single one, on the part left out: where it does badly,\n" +
			"it over-fits.\n\n" +
			"With a program after --, tune records the program, without a pool to learn the driver's costs and as it would run,\n" +
			"searches, and runs it again with the recommendation to measure the gain, also against the bare program as compare\n" +
			"does, for at most --budget. The program's input is empty and its output is hidden. Ctrl-C ends the search with the\n" +
			"best so far. The exit status is 1 if nothing keeps to --max-memory.\n\n" +
			"With --live it does so in one run: replays of its first seconds give up to five candidates, no pool among them.\n" +
			"Each candidate serves parts of the run in turn, as with --measure; tune takes a candidate that is faster, or as fast\n" +
			"with a quarter less memory. --write writes the best configuration with what was measured, if it is better than the\n" +
			"present one. The program goes on to its end, or to Ctrl-C.",
		Annotations: map[string]string{usageKey: "gpumemtop tune [flags] FILE...\ngpumemtop tune [--live] [flags] -- CMD [ARGS...]"},
		Example: "  gpumemtop tune run.gmt --write tuned.toml          what suits this run?\n" +
			"  gpumemtop tune small.gmt large.gmt --budget 2m     … and both of these?\n" +
			"  gpumemtop tune --max-memory 512MiB -- ./blur 4096  record, search, and run again\n" +
			"  gpumemtop tune --live --write tuned.toml -- ./blur measure in one run",
		Args: cobra.ArbitraryArgs,
	}, fields{
		"live": &live, "budget:tune": &o.Budget, "configurations": &o.Configurations, "max-memory": &o.MaxMemory, "write": &o.Output.Path,
		"force": &o.Output.Force, "format": &format,
	}.addFields(fixedPolicyFields(&o.Setup.PolicyChoice)).addFields(deviceCostFields(&o.Cost)), func(cmd *cobra.Command, args []string) error {
		o.PresentGiven = slices.ContainsFunc([]string{"policy", "set", "max-cached"}, cmd.Flags().Changed)
		out := cmd.OutOrStdout()
		if o.Output.Path == "-" { // standard output gets only the settings
			out = cmd.ErrOrStderr()
		}
		at := cmd.ArgsLenAtDash()
		switch {
		case live && at != 0:
			return errors.New("--live tunes a program while it runs: gpumemtop tune --live -- CMD [ARGS...]")
		case live:
			return writeTextOrJSON(out, format, func() (*study.LiveResult, error) { return study.TuneLive(&o, args) })
		}
		return writeTextOrJSON(out, format, func() (*study.TuneResult, error) {
			switch {
			case len(args) == 0:
				return nil, errors.New("nothing to tune: gpumemtop tune FILE..., or gpumemtop tune -- CMD [ARGS...]")
			case at > 0:
				return nil, fmt.Errorf("%q stands before --: tune either recordings or a program", args[0])
			case at == 0:
				return study.TuneProgram(&o, args)
			default:
				return study.TuneRecordings(&o, args)
			}
		})
	})
}

func newAdviseCommand() *cobra.Command {
	o := study.DefaultAdviseOptions()
	return newCommand(&cobra.Command{
		Use:   "advise [flags] FILE...",
		Short: "Find buffers that could share memory, and copies that could go",
		Long: "Finds memory that a program could merge: buffers that are never needed at once and could share one block, and\n" +
			"copies that could go because their source could be created in place. It says what to change in which line, and\n" +
			"what that would save. A recording shows one path through a program and proves nothing: advice is called safe only\n" +
			"if it holds each time in two recordings or more. Record the program with different inputs, and give all.\n\n" +
			"With --write it writes a plan for policy arena instead: where the buffers of each iteration go, as far as that is\n" +
			"the same in all recordings. --plan uses it.",
		Annotations: map[string]string{usageKey: "gpumemtop advise [--form api|uses|completion] [--sizes any|equal] [--format text|json] [--max N] FILE...\ngpumemtop advise --write PLAN.toml [-f] FILE..."},
		Example: "  gpumemtop record -o a.gmt ./blur 4096 && gpumemtop record -o b.gmt ./blur 512\n" +
			"  gpumemtop advise a.gmt b.gmt\n" +
			"  gpumemtop advise --write plan.toml a.gmt b.gmt && gpumemtop --plan plan.toml ./blur 4096\n" +
			"  gpumemtop advise --format json a.gmt | jq '.programs[].runs[].merged.peak'",
		Args: checkArgumentCount(1, 0, "one recording or more"),
	}, fields{"wrapper:read": new(string), "form": &o.Form, "sizes": &o.Sizes, "steps": &o.Steps, "max:advise": &o.Most, "format": &o.Format,
		"write:plan": &o.Plan.Path, "force": &o.Plan.Force},
		makeInterruptible(func(cmd *cobra.Command, args []string) error { return study.WriteAdvice(cmd.OutOrStdout(), args, &o) }))
}

func newPlanCommand() *cobra.Command {
	o := study.PlaceOptions{Timeout: 30 * time.Second}
	return newCommand(&cobra.Command{
		Use:   "plan [flags] FILE",
		Short: "Pack buffers with known lifetimes into one arena",
		Long: "Reads lifetimes from a recording or a CSV file of MiniMalloc, and finds an offset for each buffer so that buffers\n" +
			"that live at the same time do not overlap. Without --capacity it looks for the smallest arena until a lower bound\n" +
			"is met, time is up, or Ctrl-C. With it the first placement that fits will do, and the exit status is 1 if none was\n" +
			"found. That proves that none exists only where the message says so.",
		Annotations: map[string]string{usageKey: "gpumemtop plan [--capacity SIZE] [--alignment SIZE] [--timeout TIME] [-o OUT.csv] [-f] FILE"},
		Example: "  gpumemtop plan run.gmt -o offsets.csv\n" +
			"  gpumemtop plan problem.csv --capacity 1MiB --timeout 5s -o -",
		Args: oneFile,
	}, fields{
		"capacity:plan": &o.Capacity, "alignment": &o.Alignment, "timeout:plan": &o.Timeout, "output:plan": &o.Output.Path, "force": &o.Output.Force,
	}, func(cmd *cobra.Command, args []string) error {
		return study.PlaceBuffers(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], &o)
	})
}
