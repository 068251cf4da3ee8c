package main

import (
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/convert"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
)

func newExportCommand() *cobra.Command {
	o := convert.ExportOptions{Format: convert.ExportFormats()[0], At: "peak", CountersEvery: time.Millisecond}
	asLake := false
	return newCommand(&cobra.Command{
		Use:         "export [flags] FILE...",
		Short:       "Write a recording in another format, or many for a database",
		Annotations: map[string]string{usageKey: "gpumemtop export [--format NAME] -o OUT [-f] FILE\ngpumemtop export --format parquet -o FOLDER [-f] FILE FILE..."},
		Example: "  gpumemtop export blur.gmt -o blur.pftrace    open it at https://ui.perfetto.dev\n" +
			"  gpumemtop export blur.gmt --format parquet -o runs/\n" +
			"  gpumemtop export *.gmt --format parquet -o lake/   a few rows of each, for questions over thousands\n" +
			"  gpumemtop export blur.gmt --format pprof -o blur.pb.gz && go tool pprof -http=: blur.pb.gz",
		Args: checkArgumentCount(1, 0, "one recording or more"),
	}, fields{
		"lake": &asLake, "tag": &o.Tag, "wrapper:read": new(string), "at:export": &o.At, "max-events": &o.MaxEvents, "min-size": &o.MinSize, "counters-every": &o.CountersEvery,
		"lifetimes": &o.Lifetimes, "no-lifetimes": &o.NoLifetimes, "flows": &o.Flows, "compact": &o.Compact, "output:export": &o.Output.Path,
		"format:export": &o.Format, "table": &o.Table, "force": &o.Output.Force,
	}.addFields(timeRangeFields(&o.Part)), makeInterruptible(func(cmd *cobra.Command, args []string) error {
		if asLake || len(args) > 1 {
			return convert.ExportToLake(args, &o, cmd.Flags().Changed)
		}
		return convert.Export(cmd.OutOrStdout(), args[0], &o, cmd.Flags().Changed)
	}))
}

func newImportCommand() *cobra.Command {
	var output files.Output
	format := ""
	return newCommand(&cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make a recording from another tool's file",
		Long: "Reads the log of another allocator, or what export wrote, and writes a recording for report, replay and export.\n" +
			"Imported logs look like a run under --policy none: replay shows what a pool would have done.",
		Annotations: map[string]string{usageKey: "gpumemtop import [--format NAME] -o OUT [-f] FILE"},
		Example: "  gpumemtop import rmm_log.csv -o run.gmt && gpumemtop replay --policy slab run.gmt\n" +
			"  gpumemtop import --format clintercept clintercept_log.txt -o run.gmt",
		Args: oneFile,
	}, recordingOutputFields(&output).addFields(fields{"format:import": &format}),
		makeInterruptible(func(_ *cobra.Command, args []string) error {
			return convert.Import(args[0], format, output)
		}))
}

func newTrimCommand() *cobra.Command {
	var part files.Part
	var output files.Output
	return newCommand(&cobra.Command{
		Use:   "trim [flags] FILE",
		Short: "Extract a time range, or repair a recording that was cut off",
		Long: "Writes a part of a recording as a recording. State from before the part is carried over: memory in use and in\n" +
			"the pool counts, the calls that created it do not. The exit status is kept if the end is. Without --since,\n" +
			"--until and --process it makes an intact recording of all that can be read.",
		Annotations: map[string]string{usageKey: "gpumemtop trim [--since TIME] [--until TIME] [--process PID] -o OUT [-f] FILE"},
		Example:     "  gpumemtop trim run.gmt --since 10s --until 20s -o ten.gmt\n  gpumemtop trim torn.gmt -o whole.gmt",
		Args:        oneFile,
	}, recordingOutputFields(&output).addFields(timeRangeFields(&part)), makeInterruptible(func(_ *cobra.Command, args []string) error {
		return convert.TrimRecording(args[0], part, output)
	}))
}

func newMergeCommand() *cobra.Command {
	var output files.Output
	return newCommand(&cobra.Command{
		Use:   "merge [flags] FILE FILE...",
		Short: "Make one recording from several",
		Long: "Writes one recording from several, such as those of the ranks of an MPI program. Processes get new numbers.\n" +
			"Recordings from one boot of one host share a clock, so their times stay exact to the nanosecond. Recordings from\n" +
			"other hosts start when the wall clock said so: they are off by the difference of the hosts' clocks. The exit\n" +
			"status is the worst of all.",
		Annotations: map[string]string{usageKey: "gpumemtop merge -o OUT [-f] FILE FILE..."},
		Example:     "  mpirun -n 4 gpumemtop record -o rank-%h-%p.gmt ./app\n  gpumemtop merge rank-*.gmt -o all.gmt",
		Args:        checkArgumentCount(2, 0, "two recordings or more"),
	}, recordingOutputFields(&output), makeInterruptible(func(_ *cobra.Command, args []string) error {
		return convert.Merge(args, output)
	}))
}

func recordingOutputFields(o *files.Output) fields {
	return fields{"output:recording": &o.Path, "force": &o.Force}
}

func newReduceCommand() *cobra.Command {
	o := convert.ReduceOptions{Top: 20}
	return newCommand(&cobra.Command{
		Use:   "reduce [flags] DIR...",
		Short: "Compare the flight logs of many processes",
		Long: "Reads the records that processes without a session left in folders (see gpumemtop library), and says for each\n" +
			"call site what it held at most: minimum, median and maximum over the processes, and which stand out. A file that\n" +
			"is no whole record is skipped and named, and the exit status is 1.",
		Annotations: map[string]string{usageKey: "gpumemtop reduce [--json] [-o OUT.parquet] [-f] DIR..."},
		Example:     "  gpumemtop reduce logs/ -o job.parquet\n  gpumemtop reduce --top 5 logs/",
		Args:        checkArgumentCount(1, 0, "one folder or more"),
	}, fields{"output:reduce": &o.Output.Path, "force": &o.Output.Force, "json:reduce": &o.JSON, "top": &o.Top},
		makeInterruptible(func(cmd *cobra.Command, args []string) error {
			return convert.ReduceFlightLogs(cmd.OutOrStdout(), args, &o)
		}))
}

func newLibraryCommand() *cobra.Command {
	var output files.Output
	return newCommand(&cobra.Command{
		Use:   "library -o FILE",
		Short: "Write the library that goes into programs",
		Long: "Programs with this library preloaded and GPUMEMTOP_LOG=DIR in their environment need no gpumemtop beside them:\n" +
			"each leaves a record of 38 KB in that folder when it ends, by exit, _exit, abort, SIGTERM, SIGINT or SIGHUP, not\n" +
			"by other signals. GPUMEMTOP_LABEL is kept in it. OPENCL_LAYERS=FILE does instead of LD_PRELOAD for programs that\n" +
			"end with exit. 'gpumemtop reduce DIR' reads the records.\n\n" +
			"Tools of eBPF find static probes in it, gpumemtop:alloc(object, size, requested, tag) and gpumemtop:free(object).\n" +
			"GPUMEMTOP_USDT=1 lets them fire without a log; with otel, those that OpenTelemetry's profiler looks for fire, too.",
		Annotations: map[string]string{usageKey: "gpumemtop library -o FILE [-f]"},
		Example: "  gpumemtop library -o /shared/libgpumemtop.so\n" +
			"  GPUMEMTOP_LOG=/shared/logs LD_PRELOAD=/shared/libgpumemtop.so ./app",
		Args: refuseArguments,
	}, fields{"output:library": &output.Path, "force": &output.Force}, makeInterruptible(func(*cobra.Command, []string) error {
		return convert.WriteLibrary(output)
	}))
}
