package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/study"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

// defaultSetupOptions returns the defaults of how programs run.
func defaultSetupOptions() watch.SetupOptions {
	return watch.SetupOptions{PolicyChoice: watch.PolicyChoice{Policy: allocator.Default}, Tags: "stack", Depth: 8, Scrub: "none", Measure: watch.MeasureOptions{Until: watch.DefaultUntil}}
}

func defaultDashboardOptions() watch.DashboardOptions {
	return watch.DashboardOptions{Refresh: watch.UsualRefreshInterval(), Theme: watch.Themes[0], Charts: watch.Charts[0], Mouse: true, NoColor: os.Getenv("NO_COLOR") != ""}
}

// fixedPolicyFields returns the settings of commands whose policy does not change.
func fixedPolicyFields(c *watch.PolicyChoice) fields {
	return fields{"policy:fixed": &c.Policy, "set": &c.Set, "max-cached": &c.MaxCached}
}

func callSiteFields(s *watch.SetupOptions) fields {
	return fields{"tags": &s.Tags, "stack-depth": &s.Depth, "wrapper": new(string)}
}

func outputFields(o *watch.OutputOptions) fields {
	return fields{"json": &o.Trace, "perfetto": &o.Perfetto, "output:record": &o.Recording, "summary": &o.Summary, "force": &o.Force, "label": &o.Labels, "app": &o.App}
}

func monitorFields(m *watch.MonitorOptions) fields {
	return fields{"listen": &m.Listen, "textfile": &m.Textfile, "push": &m.Push, "otlp": &m.OTLP}
}

func dashboardFields(d *watch.DashboardOptions) fields {
	return fields{"headless": &d.Headless, "refresh": &d.Refresh, "ascii": &d.ASCII, "charts": &d.Charts, "theme": &d.Theme, "mouse": &d.Mouse, "no-color": &d.NoColor}
}

// runFields returns the settings that run and record share.
func runFields(o *watch.RunOptions) fields {
	s := &o.Setup
	return fields{
		"policy": &s.Policy, "set": &s.Set, "max-cached": &s.MaxCached, "unsafe-no-gating": &s.Ungated, "scrub": &s.Scrub,
		"device-memory": &s.DeviceMemory, "spill": &s.Spill, "eager": &s.Eager, "answer-free-memory": &s.AnswerFree,
		"no-relief": &s.NoRelief, "hash-writes": &s.HashWrites, "ghosts": &o.Ghosts,
		"plan": &s.Plan, "memory-budget": &s.MemoryBudget, "measure": &s.Measure.Alternative, "measure-until": &s.Measure.Until,
	}.addFields(callSiteFields(s)).addFields(outputFields(&o.Outputs)).addFields(monitorFields(&o.Monitor))
}

func dashboardRunFields(o *watch.RunOptions) fields {
	return runFields(o).addFields(dashboardFields(&o.Dashboard)).
		addFields(fields{"dashboard": &o.Dashboard.Piped, "guide": &o.Dashboard.Guide, "exit-with-app": &o.ExitWithApp, "no-replay": &o.NoReplay, "read-only": &o.ReadOnly})
}

func newRunCommand() *cobra.Command {
	o := watch.RunOptions{Options: watch.Options{Setup: defaultSetupOptions(), Dashboard: defaultDashboardOptions()}}
	return makeMeasureValueOptional(newCommand(&cobra.Command{
		Use:   "gpumemtop [flags] [--] CMD [ARGS...]",
		Short: "Run an OpenCL program with a caching allocator and watch its device memory",
		Long: "gpumemtop runs an unmodified OpenCL program, serves its buffers from a caching allocator, and shows live where\n" +
			"its device memory goes. Without a terminal, in a pipeline, under CI, or with --headless it writes\n" +
			"a summary instead. Options end at the first non-option argument. The exit status is the program's own; 125, 126\n" +
			"and 127 mean that gpumemtop failed, or that the program cannot be executed or was not found.",
		Annotations: map[string]string{kindKey: runsPrograms, usageKey: "gpumemtop [flags] [--] CMD [ARGS...]\ngpumemtop COMMAND [flags] ..."},
		Example: "  gpumemtop ./blur 4096                        dashboard; ? explains it\n" +
			"  gpumemtop --policy none ./blur               only watch, no pool\n" +
			"  gpumemtop record -o blur.gmt -- ./blur 4096  record, no dashboard\n" +
			"  gpumemtop attach -p 4711                     watch a running program\n" +
			"  gpumemtop report blur.gmt                    what stands out\n" +
			"  gpumemtop view blur.gmt                      its dashboard\n" +
			"  gpumemtop export blur.gmt -o blur.json       for ui.perfetto.dev\n" +
			"  gpumemtop tune -- ./blur 4096                which policy and limits suit it?\n" +
			"  gpumemtop fit ./blur 4096                    how little memory is enough?\n" +
			"  gpumemtop -- report                          a program of that name",
		Args: cobra.ArbitraryArgs,
	}, dashboardRunFields(&o), func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no program to run: gpumemtop CMD [ARGS...], or see gpumemtop --help")
		}
		return suggestCommand(cmd, args[0], watch.RunProgram(&o, args))
	}))
}

// makeMeasureValueOptional lets --measure be given without a value.
func makeMeasureValueOptional(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Lookup("measure").NoOptDefVal = watch.MeasureOn
	return cmd
}

func newRecordCommand() *cobra.Command {
	o := watch.RunOptions{Options: watch.Options{Setup: defaultSetupOptions(), Dashboard: watch.DashboardOptions{Headless: true, Refresh: watch.DefaultRefresh}}}
	return makeMeasureValueOptional(newCommand(&cobra.Command{
		Use:         "record [flags] [--] CMD [ARGS...]",
		Short:       "Run a program and record it, without a dashboard",
		Annotations: map[string]string{kindKey: runsPrograms, usageKey: "gpumemtop record [flags] [--] CMD [ARGS...]"},
		Example: "  gpumemtop record ./blur 4096                 writes ./gpumemtop.blur.NUMBER.gmt\n" +
			"  gpumemtop record -o %n-%p.gmt -- ./train     one file for each of its processes\n" +
			"  gpumemtop record -o %h-%t.gmt -- ./blur      names the file after host and time\n" +
			"  gpumemtop record --json blur.json ./blur     a Chrome trace instead, which grows while the program runs",
		Args: cobra.ArbitraryArgs,
	}, runFields(&o), func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no program to record: gpumemtop record -o FILE CMD [ARGS...]")
		}
		if o.Outputs.Recording == "" && o.Outputs.Trace == "" && o.Outputs.Perfetto == "" {
			o.Outputs.Recording = files.DefaultName
		}
		return watch.RunProgram(&o, args)
	}))
}

func newAttachCommand(start watch.StartFeed) *cobra.Command {
	o := watch.AttachOptions{Options: watch.Options{Setup: defaultSetupOptions(), Dashboard: defaultDashboardOptions()}}
	session, readOnly := "", false
	cmd := newCommand(&cobra.Command{
		Use:   "attach [flags]",
		Short: "Watch programs that are already running",
		Long: "Watches the OpenCL calls of programs that were not started under gpumemtop. It neither pauses nor modifies\n" +
			"them, so there is no pool, and the size of older buffers is known only as far as they are used afterwards. Needs\n" +
			"Linux 5.15, and root or the capabilities that 'gpumemtop doctor' names. It ends with q or Ctrl-C, after\n" +
			"--duration, or when nothing is left to watch; the programs go on undisturbed.",
		Annotations: map[string]string{kindKey: watchesPrograms, usageKey: "gpumemtop attach (-p PID | --comm NAME | --cgroup PATH | --all)... [flags]\ngpumemtop attach --session [NAME|PID] [--read-only]"},
		Example: "  gpumemtop attach -p 4711                         dashboard over a running program\n" +
			"  gpumemtop attach -p 4711 --duration 1m -o a.gmt  a minute of it, recorded\n" +
			"  gpumemtop attach --comm train --follow           all programs of this name, and their children\n" +
			"  gpumemtop attach --all -o %h-%p.gmt              one file for each process that uses OpenCL\n" +
			"  gpumemtop attach --session                       the dashboard of gpumemtop --headless ./app elsewhere",
		Args: refuseProgramArguments,
	}, fields{
		"pid": &o.PIDs, "comm": &o.Comms, "cgroup": &o.Cgroups, "all": &o.All, "follow": &o.Follow, "duration": &o.Duration, "ghosts": &o.Ghosts,
		"session": &session, "read-only": &readOnly, "dashboard": &o.Dashboard.Piped,
		"memory-budget": &o.Setup.MemoryBudget,
	}.addFields(callSiteFields(&o.Setup)).addFields(outputFields(&o.Outputs)).addFields(monitorFields(&o.Monitor)).
		addFields(dashboardFields(&o.Dashboard)),
		func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("session") {
				return watch.Attach(&o, start)
			}
			return showOtherSession(cmd, append(args, session)[0], readOnly, &o.Dashboard)
		})
	cmd.Flags().Lookup("session").NoOptDefVal = anySession
	return cmd
}

// anySession is the value of --session if it is given without one.
const anySession = " "

// showOtherSession shows the dashboard of another session. It refuses flags that only concern watching programs.
func showOtherSession(cmd *cobra.Command, name string, readOnly bool, o *watch.DashboardOptions) error {
	for _, flag := range []string{"pid", "comm", "cgroup", "all", "follow", "duration", "output", "json", "perfetto", "summary", "label", "app", "listen", "textfile", "push", "otlp", "ghosts"} {
		if cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s is for watching programs: leave it out with --session", flag)
		}
	}
	return watch.ShowSession(strings.TrimSpace(name), readOnly, o)
}

// refuseProgramArguments is the Args of attach: it explains how to name a process, and how to start a program.
func refuseProgramArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 1 && cmd.Flags().Changed("session") { // flags after the name
		if err := cmd.Flags().Parse(args[1:]); err != nil {
			return err
		}
		args = append(args[:1:1], cmd.Flags().Args()...)
	}
	if len(args) == 0 || len(args) == 1 && cmd.Flags().Changed("session") {
		return nil
	}
	if _, err := strconv.Atoi(args[0]); err == nil {
		return fmt.Errorf("a process id takes -p before it: gpumemtop attach -p %s", args[0])
	}
	return fmt.Errorf("attach takes no program, only options such as -p PID that select running ones: gpumemtop %s starts one", args[0])
}

// writeTextOrJSON writes the result of find, as text or JSON.
func writeTextOrJSON[R interface{ WriteText(w io.Writer) error }](w io.Writer, format string, find func() (R, error)) error {
	if err := read.CheckFormat(format, read.TextFormats); err != nil {
		return err
	}
	result, err := find()
	switch {
	case err != nil:
		return err
	case format == "json":
		return console.WriteJSON(w, result)
	}
	return result.WriteText(w)
}

func newFitCommand() *cobra.Command {
	o, format, device, bandwidth, spill := study.FitOptions{Setup: defaultSetupOptions()}, "text", "", "", false
	return newCommand(&cobra.Command{
		Use:   "fit [flags] [--] CMD [ARGS...] | fit --on DEVICE FILE... | fit --spill FILE...",
		Short: "Find the least device memory that a program needs",
		Long: "Runs a program again and again with less and less device memory, without the pool and with it, and shows how\n" +
			"little is enough. A run survives when it ends with status 0, as it must without a limit. The program's input is\n" +
			"empty and its output is hidden. The result is the smallest size that the program survived; it may fail with a\n" +
			"little more. Each process has a device of its own.\n\n" +
			"With --on, fit runs nothing: it holds recordings against the limits of a device that need not be here, and says\n" +
			"what would fail first, where, and what would help. All processes of a recording share that device. The exit status\n" +
			"is 1 if one would not run. What neither the profile nor the recording tells is unknown.\n\n" +
			"With --spill, fit runs nothing either: it says with how little memory a recorded program would run with --spill,\n" +
			"and estimates what would move, and how long that takes, with 90, 75 and 50 % of its peak.",
		Annotations: map[string]string{kindKey: runsPrograms, usageKey: "gpumemtop fit [flags] [--] CMD [ARGS...]\ngpumemtop fit --on DEVICE|list [--format text|json] FILE...\ngpumemtop fit --spill [--bandwidth SIZE] [--format text|json] FILE..."},
		Example: "  gpumemtop fit ./blur 4096                          how little device memory is enough?\n" +
			"  gpumemtop fit --timeout 30s --format json ./blur   it may hang when memory is short\n" +
			"  gpumemtop fit --on adreno-740 blur.gmt             would it run there?",
		Args: cobra.ArbitraryArgs,
	}, fields{"on": &device, "spill:fit": &spill, "bandwidth": &bandwidth, "resolution": &o.Resolution, "timeout:fit": &o.Timeout, "format": &format}.
		addFields(fixedPolicyFields(&o.Setup.PolicyChoice)).addFields(callSiteFields(&o.Setup)), func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("on") {
			return fitOnDevice(cmd, device, format, args)
		}
		if spill {
			return fitSpill(cmd, bandwidth, format, args)
		}
		if cmd.Flags().Changed("bandwidth") {
			return errors.New("--bandwidth is for --spill")
		}
		if len(args) == 0 {
			return errors.New("no program to fit: gpumemtop fit CMD [ARGS...]")
		}
		return writeTextOrJSON(cmd.OutOrStdout(), format, func() (*study.FitResult, error) { return study.FindLeastMemory(&o, args) })
	})
}

// fitOnDevice holds recordings against a device that is not here. It refuses flags that only concern running a program.
func fitOnDevice(cmd *cobra.Command, device, format string, args []string) error {
	if err := refuseRunFlags(cmd, "on", "spill", "bandwidth"); err != nil {
		return err
	}
	defer console.CatchInterrupts()()
	return study.FitOnDevice(cmd.OutOrStdout(), device, format, args)
}

// fitSpill says what --spill would do for recordings. It refuses flags that only concern running a program.
func fitSpill(cmd *cobra.Command, bandwidth, format string, args []string) error {
	if err := refuseRunFlags(cmd, "spill"); err != nil {
		return err
	}
	defer console.CatchInterrupts()()
	return study.FitWithSpill(cmd.OutOrStdout(), bandwidth, format, args)
}

// refuseRunFlags refuses flags that do not go with the flag with, which analyses recordings instead of running a program.
func refuseRunFlags(cmd *cobra.Command, with string, others ...string) error {
	for _, name := range []string{"resolution", "timeout", "policy", "set", "max-cached", "tags", "stack-depth"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is for running a program: leave it out with --%s", name, with)
		}
	}
	for _, name := range others {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s does not go with --%s", name, with)
		}
	}
	return nil
}

func newCompareCommand() *cobra.Command {
	o, format, outputs := study.CompareOptions{Setup: defaultSetupOptions(), Runs: study.DefaultRuns}, "text", false
	return newCommand(&cobra.Command{
		Use:   "compare [flags] [--] CMD [ARGS...]",
		Short: "Measure how much faster a program is with the pool",
		Long: "Runs a program without gpumemtop and with the pool in turn, and shows the median times, how many times as fast\n" +
			"it is, and an interval for that. The interval is of order statistics: it assumes nothing about the times. Memory is\n" +
			"what the program requested at its peak, and what the pool reserved. Other work on the machine affects the times. A\n" +
			"first run that does not count warms up caches. The program's input is empty and its output is hidden; it must end\n" +
			"with status 0.\n\n" +
			"With --against, both sides run under gpumemtop: the configuration of --policy and --set, and another. compare shows what an\n" +
			"iteration takes after the start, what whole runs take, and what --measure finds in one more run of the program.\n\n" +
			"With --outputs, compare shows whether the program depends on memory that it never wrote, which without a pool is often\n" +
			"zero: it compares what the program prints on stdout, and how it ends, bare and with recycled memory full of 0xff bytes.\n" +
			"Lines that differ between bare runs are ignored. The exit status is 1 if something else differs.",
		Annotations: map[string]string{kindKey: runsPrograms, usageKey: "gpumemtop compare [flags] [--] CMD [ARGS...]"},
		Example: "  gpumemtop compare ./blur 4096                      is the pool worth it?\n" +
			"  gpumemtop compare --policy slab --runs 20 ./blur   … another policy, more precisely\n" +
			"  gpumemtop compare --budget 1m --format json ./blur\n" +
			"  gpumemtop compare --against none ./blur 4096       the pool alone, without the cost of being watched\n" +
			"  gpumemtop compare --outputs ./blur 4096            does it depend on memory that it never wrote?",
		Args: cobra.ArbitraryArgs,
	}, fields{"runs": &o.Runs, "budget:compare": &o.Budget, "against": &o.Against, "outputs": &outputs, "format": &format}.
		addFields(fixedPolicyFields(&o.Setup.PolicyChoice)).addFields(callSiteFields(&o.Setup)), func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no program to compare: gpumemtop compare CMD [ARGS...]")
		}
		if outputs {
			return compareOutputs(cmd, &o, format, args)
		}
		if cmd.Flags().Changed("against") {
			return writeTextOrJSON(cmd.OutOrStdout(), format, func() (*study.WatchedComparison, error) { return study.CompareConfigurations(&o, args) })
		}
		return writeTextOrJSON(cmd.OutOrStdout(), format, func() (*study.Comparison, error) { return study.CompareWithBare(&o, args) })
	})
}

// compareOutputs does, too.
func compareOutputs(cmd *cobra.Command, o *study.CompareOptions, format string, args []string) error {
	for _, name := range []string{"budget", "against"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is for measuring time: leave it out with --outputs", name)
		}
	}
	if !cmd.Flags().Changed("runs") {
		o.Runs = study.DefaultOutputRuns
	}
	differs := false
	err := writeTextOrJSON(cmd.OutOrStdout(), format, func() (*study.OutputComparison, error) {
		r, err := study.CompareOutputs(o, args)
		differs = err == nil && r.Differs
		return r, err
	})
	if err == nil && differs {
		return console.NewExit(console.StatusUnmet, nil)
	}
	return err
}
