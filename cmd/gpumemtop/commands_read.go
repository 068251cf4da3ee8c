package main

import (
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

func timeRangeFields(p *files.Part) fields {
	return fields{"since": &p.Since, "until": &p.Until, "process": &p.Process}
}

func newViewCommand() *cobra.Command {
	o := watch.ViewOptions{Dashboard: defaultDashboardOptions()}
	return newCommand(&cobra.Command{
		Use:   "view [flags] FILE",
		Short: "Look at a recording in the dashboard, at any time in it",
		Long: "Shows a recording in the dashboard with a time cursor: the arrow keys move it, home and end go to the ends,\n" +
			"t goes to a time. Every pane shows that time. A long recording opens at once and loads in the background.",
		Annotations: map[string]string{usageKey: "gpumemtop view [--at TIME] FILE"},
		Example: "  gpumemtop view --at 12.5s blur.gmt\n" +
			"  gpumemtop view --film blur.svg blur.gmt  a moving picture, for a report",
		Args: oneFile,
	}, fields{"at:view": &o.At, "film": &o.Film.Path, "force": &o.Film.Force, "wrapper:read": new(string), "ascii": &o.Dashboard.ASCII, "charts": &o.Dashboard.Charts, "theme": &o.Dashboard.Theme, "mouse": &o.Dashboard.Mouse, "no-color": &o.Dashboard.NoColor},
		func(cmd *cobra.Command, args []string) error {
			return watch.ShowRecording(cmd.OutOrStdout(), &o, args[0])
		})
}

func newReportCommand() *cobra.Command {
	o := read.ReportOptions{Format: read.ReportFormats[0], Top: 20}
	return newCommand(&cobra.Command{
		Use:         "report [flags] FILE",
		Short:       "Show the figures of a recording",
		Annotations: map[string]string{usageKey: "gpumemtop report [--format " + strings.Join(read.ReportFormats, "|") + "] [-o OUT] FILE"},
		Example: "  gpumemtop report blur.gmt\n  gpumemtop report --format json blur.gmt | jq .hit_rate\n" +
			"  gpumemtop report --format md -o blur.md blur.gmt\n  gpumemtop report --format html -o blur.html blur.gmt\n  gpumemtop report --since 2s --tag blur.c blur.gmt",
		Args: oneFile,
	}, fields{
		"tag": &o.Tag, "all:report": &o.All, "section": &o.Section, "curve": &o.Curve, "top": &o.Top, "output:text": &o.Output.Path, "force": &o.Output.Force, "format:report": &o.Format,
		"wrapper:read": new(string), "device-cost:touch": &o.Cost.File, "device:cost": &o.Cost.Device,
	}.addFields(timeRangeFields(&o.Part)), makeInterruptible(func(cmd *cobra.Command, args []string) error {
		return read.WriteReport(cmd.OutOrStdout(), args[0], &o, cmd.Flags().Changed)
	}))
}

func newInfoCommand() *cobra.Command {
	format := "text"
	return newCommand(&cobra.Command{
		Use:   "info [flags] FILE",
		Short: "Show basic facts about a recording",
		Long: "Shows what was recorded, where, and how it ended, from the header, the footer and the definitions. It does not\n" +
			"read the events, so it is quick however large the recording is.",
		Annotations: map[string]string{usageKey: "gpumemtop info [--format text|json] FILE"},
		Example: "  gpumemtop info blur.gmt\n" +
			"  gpumemtop info --format json blur.gmt | jq .processes",
		Args: oneFile,
	}, fields{"format": &format}, makeInterruptible(func(cmd *cobra.Command, args []string) error {
		return read.WriteInfo(cmd.OutOrStdout(), args[0], format)
	}))
}

func newDiffCommand() *cobra.Command {
	format, top := "text", 20
	return newCommand(&cobra.Command{
		Use:   "diff [flags] A B",
		Short: "Show what changed between two recordings",
		Long: "Compares two runs, overall and by call site, and marks the changes that are more than chance. It matches call\n" +
			"sites whose line has moved by their function.",
		Annotations: map[string]string{usageKey: "gpumemtop diff [--format text|json] [--top N] A B"},
		Example: "  gpumemtop diff before.gmt after.gmt\n" +
			"  gpumemtop diff --top 5 --wrapper '^my_alloc$' before.gmt after.gmt",
		Args: checkArgumentCount(2, 2, "two recordings"),
	}, fields{"wrapper:read": new(string), "top": &top, "format": &format},
		makeInterruptible(func(cmd *cobra.Command, args []string) error {
			return read.DiffRecordings(cmd.OutOrStdout(), args[0], args[1], format, top)
		}))
}

func newCheckCommand() *cobra.Command {
	format, rules := "text", ""
	return newCommand(&cobra.Command{
		Use:   "check [flags] FILE",
		Short: "Check a recording against rules (for CI)",
		Long: "Exits with status 0 if a recording keeps to all rules and 1 if it does not; 125 means that it could not be\n" +
			"judged. The rules are TOML: keys with their bounds, for the whole run, and in [[tag]] sections for each call\n" +
			"site whose name matches a regular expression:\n\n" +
			"  max_peak_in_use = \"512MiB\"\n  max_leaked_bytes = 0\n  min_hit_rate = 0.95\n\n" +
			"  [[tag]]\n  match = \"^blur\\\\.c:\"\n  max_peak_in_use = \"64MiB\"\n\n" +
			"A rule with no data to judge fails, and so does an incomplete recording.\n\nRules:\n" + read.RulesHelp(),
		Annotations: map[string]string{usageKey: "gpumemtop check FILE --rules RULES.toml"},
		Example: "  gpumemtop record -o ci.gmt -- ./blur && gpumemtop check ci.gmt --rules memory.toml\n" +
			"  gpumemtop check ci.gmt --rules memory.toml --format json | jq .rules",
		Args: oneFile,
	}, fields{"wrapper:read": new(string), "rules": &rules, "format": &format}, makeInterruptible(func(cmd *cobra.Command, args []string) error {
		return read.CheckRecording(cmd.OutOrStdout(), args[0], rules, format)
	}))
}
