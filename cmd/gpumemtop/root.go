package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

// newRootCommand makes the command line with all commands, or only with those that words name, because to make all takes
// longer than a short program runs.
func newRootCommand(words ...string) *cobra.Command {
	root := newRunCommand()
	root.Version = versionText() // Cobra writes "gpumemtop version" before it. A template would make the linker keep every method
	all := len(words) == 0 || slices.ContainsFunc(words, needsAllCommands)
	for _, group := range commandGroups() {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, c := range group.commands {
			if all || slices.Contains(words, c.name) {
				cmd := c.make()
				cmd.GroupID = group.title
				root.AddCommand(cmd)
			}
		}
	}
	root.CompletionOptions.DisableDefaultCmd = !all
	if all {
		root.SetCompletionCommandGroupID(machineCommands)
		addCompletionCommand(root)
		addHelpCommand(root)
	}
	return root
}

type commandGroup struct {
	title    string
	commands []command
}

type command struct {
	name string
	make func() *cobra.Command
}

const machineCommands = "This machine, and gpumemtop itself"

// commandGroups returns the groups: each is a question of users, with the commands that answer it.
func commandGroups() []commandGroup {
	return []commandGroup{
		{"Watch a program", []command{{"record", newRecordCommand}, {"attach", func() *cobra.Command { return newAttachCommand(watch.StartTracerFeed) }}}},
		{"Read recordings", []command{
			{"view", newViewCommand}, {"report", newReportCommand}, {"info", newInfoCommand}, {"diff", newDiffCommand}, {"check", newCheckCommand}, {"reduce", newReduceCommand},
		}},
		{"Improve the program or the pool", []command{
			{"compare", newCompareCommand}, {"tune", newTuneCommand}, {"fit", newFitCommand}, {"replay", newReplayCommand}, {"advise", newAdviseCommand}, {"plan", newPlanCommand},
		}},
		{"Convert recordings", []command{{"export", newExportCommand}, {"import", newImportCommand}, {"trim", newTrimCommand}, {"merge", newMergeCommand}}},
		{machineCommands, []command{
			{"doctor", newDoctorCommand}, {"policies", newPoliciesCommand}, {"probe", newProbeCommand}, {"config", newConfigCommand}, {"library", newLibraryCommand}, {"version", newVersionCommand},
		}},
	}
}

// needsAllCommands reports whether a word is a command that may need all commands, such as help and completion.
func needsAllCommands(word string) bool {
	return word == "help" || word == "completion" || word == cobra.ShellCompRequestCmd || word == cobra.ShellCompNoDescRequestCmd
}

// makeAllCommands returns a command with all commands below it. newRootCommand may have left some out.
func makeAllCommands(cmd *cobra.Command) *cobra.Command {
	if cmd.HasParent() {
		return cmd
	}
	return newRootCommand()
}

// addHelpCommand adds the command that shows the help of others.
func addHelpCommand(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{Use: "help", Hidden: true, RunE: func(_ *cobra.Command, words []string) error {
		cmd, rest, err := root.Find(words) // the root if there is no such command
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return unknownTopicError(cmd, rest[0])
		}
		return cmd.Help()
	}})
}

// action is what a command does when its settings are complete.
type action func(cmd *cobra.Command, args []string) error

// newCommand gives a command its flags, our help and our error messages.
func newCommand(cmd *cobra.Command, fields fields, do action) *cobra.Command {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	bindFlags(cmd.Flags(), fields)
	cmd.Flags().SetInterspersed(groupOfCommand(cmd) == "")
	cmd.SetFlagErrorFunc(describeFlagError)
	cmd.SetHelpFunc(func(cmd *cobra.Command, _ []string) { showHelp(cmd) })
	addHelpAllFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if groupOfCommand(cmd) != "" {
			warnOfUnusedVariables(os.Environ())
		}
		origins, err := setUnsetSettings(cmd.Flags(), os.LookupEnv)
		switch {
		case err != nil:
			return err
		case wantsConfigPrinted(cmd.Flags()):
			err = printConfig(cmd.OutOrStdout(), cmd.CommandPath(), origins)
		default:
			wrapper, _ := cmd.Flags().GetString("wrapper") // empty for commands that name no call sites
			if err = read.SetWrapperPattern(wrapper); err == nil {
				err = do(cmd, args)
			}
		}
		return origins.addSourcesToError(err)
	}
	if wanted := cmd.Args; wanted != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if wantsConfigPrinted(cmd.Flags()) { // --print-config needs no arguments
				return nil
			}
			return wanted(cmd, args)
		}
	}
	completeFlagValues(cmd)
	return cmd
}

// makeInterruptible lets signals end an action as console.CatchInterrupts does.
func makeInterruptible(do action) action {
	return func(cmd *cobra.Command, args []string) error {
		defer console.CatchInterrupts()()
		return do(cmd, args)
	}
}

// kindKey is the annotation of commands that run programs or watch running ones. Others have none.
const (
	kindKey         = "kind"
	runsPrograms    = "runs"
	watchesPrograms = "watches"
)

func groupOfCommand(cmd *cobra.Command) string { return cmd.Annotations[kindKey] }

func wantsConfigPrinted(flags *pflag.FlagSet) bool {
	set, err := flags.GetBool("print-config")
	return err == nil && set
}

// describeFlagError describes a wrong flag.
func describeFlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = "-" + unknown.GetSpecifiedName()
		}
		text := fmt.Sprintf("unknown flag %s: %ssee %s --help", name, suggestFlag(cmd.Flags(), unknown.GetSpecifiedName()), cmd.CommandPath())
		if groupOfCommand(cmd) == runsPrograms {
			text += "; flags of the program come after its name"
		}
		return errors.New(text)
	case errors.As(err, &value):
		return fmt.Errorf("bad value %q for --%s: %ssee %s --help",
			value.GetValue(), value.GetFlag().Name, suggestDuration(value.GetFlag(), value.GetValue()), cmd.CommandPath())
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value: see %s --help", missing.GetFlag().Name, cmd.CommandPath())
	}
	return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
}

// checkArgumentCount returns a check that there are from least to most arguments; most 0: no bound. what names them in errors.
func checkArgumentCount(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		n := len(args)
		switch {
		case n >= least && (n <= most || most == 0):
			return nil
		case n == 0 && least == 1 && most == 0:
			return fmt.Errorf("%s takes %s: see %s --help", cmd.CommandPath(), what, cmd.CommandPath())
		}
		return fmt.Errorf("%s takes %s, not %d: see %s --help", cmd.CommandPath(), what, n, cmd.CommandPath())
	}
}

// oneFile is the Args of commands that read one recording.
var oneFile = checkArgumentCount(1, 1, "one recording")

// refuseArguments is the Args of commands without arguments.
func refuseArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments: see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}
