package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot builds the whole command line.
func newRoot() *cobra.Command {
	root := command(onRun, &cobra.Command{
		Use:   "gpumemtop [flags] [--] CMD [ARGS...]",
		Short: "Run an OpenCL program with a caching allocator and watch its device memory",
		Long: "gpumemtop runs an unmodified OpenCL program, serves its buffers from a caching allocator, and shows live where\n" +
			"its device memory goes. Without a terminal, under CI, or with --headless it writes a summary instead.\n" +
			"Flags end at the first word that is none. The exit status is the program's own; 125, 126 and 127 mean that\n" +
			"gpumemtop failed, the program cannot be executed, or was not found.",
		Annotations: map[string]string{usageKey: "gpumemtop [flags] [--] CMD [ARGS...]\ngpumemtop COMMAND [flags] ..."},
		Example: "  gpumemtop ./blur 4096                        dashboard around ./blur; ? in it explains all of it\n" +
			"  gpumemtop --policy none ./blur               only watch, no pool\n" +
			"  gpumemtop record -o blur.gmt -- ./blur 4096  record, no dashboard\n" +
			"  gpumemtop attach -p 4711                     watch a program that runs already\n" +
			"  gpumemtop report blur.gmt                    what stands out in the recording\n" +
			"  gpumemtop view blur.gmt                      the dashboard over the recording\n" +
			"  gpumemtop export blur.gmt -o blur.json       the recording for https://ui.perfetto.dev\n" +
			"  gpumemtop tune -- ./blur 4096                which policy and limits suit it?\n" +
			"  gpumemtop fit ./blur 4096                    how small a card will do?\n" +
			"  gpumemtop -- report                          a program that is called like a command of ours",
	}, func(cmd *cobra.Command, c *config, args []string) error {
		if len(args) == 0 {
			return errors.New("no program to run: gpumemtop CMD [ARGS...], or see gpumemtop --help")
		}
		return run(c, args, true)
	})
	root.Args = cobra.ArbitraryArgs
	root.Version = versionText()
	root.SetVersionTemplate("{{.Version}}")
	addGroup(root, "Commands that run or watch programs", newRecord(), newAttach(startTracer), newFit())
	addGroup(root, "Commands that read recordings",
		newView(), newReport(), newInfo(), newDiff(), newCheck(), newExport(), newImport(), newTrim(), newMerge())
	addGroup(root, "Commands that find something better", newReplay(), newTune(), newAdvise(), newPlanner())
	const others = "Other commands"
	addGroup(root, others, newPolicies(), newProbe(), newDoctor(), newVersion())
	root.SetCompletionCommandGroupID(others)
	root.SetHelpCommand(&cobra.Command{Use: "help", Hidden: true, RunE: func(_ *cobra.Command, words []string) error {
		asked, _, err := root.Find(words) // the root where there is no such command
		if err != nil {
			return err
		}
		return asked.Help()
	}})
	return root
}

// addGroup adds commands that stand together in the help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// command gives a command its flags from the settings table, and our way with help and errors.
func command(where scope, cmd *cobra.Command, do func(*cobra.Command, *config, []string) error) *cobra.Command {
	c := defaults()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.Flags().SetInterspersed(where&onWatch == 0)
	bind(cmd.Flags(), c, where)
	cmd.SetFlagErrorFunc(flagError)
	cmd.SetHelpFunc(func(asked *cobra.Command, _ []string) {
		if asked != cmd { // one of cobra's own commands
			showHelp(asked, 0)
			return
		}
		showHelp(asked, where)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := settle(cmd.Flags(), c, where, os.LookupEnv); err != nil {
			return err
		}
		if c.printConfig {
			return c.traced(printConfig(cmd.OutOrStdout(), cmd, c, where))
		}
		if where&onSignal == 0 {
			defer interruptible()()
		}
		return c.traced(do(cmd, c, args))
	}
	if wanted := cmd.Args; wanted != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if c.printConfig { // which needs none of them
				return nil
			}
			return wanted(cmd, args)
		}
	}
	complete(cmd)
	return cmd
}

// flagError says what is wrong with a flag in our words.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			name = "-" + unknown.GetSpecifiedName()
		}
		text := fmt.Sprintf("unknown flag %s: see %s --help", name, cmd.CommandPath())
		if flags := cmd.Flags(); flags.Lookup("tags") != nil && flags.Lookup("pid") == nil { // it runs programs
			text += "; flags of the program come after its name"
		}
		return errors.New(text)
	case errors.As(err, &value):
		return fmt.Errorf("bad value %q for --%s: see %s --help", value.GetValue(), value.GetFlag().Name, cmd.CommandPath())
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value: see %s --help", missing.GetFlag().Name, cmd.CommandPath())
	}
	return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
}

// oneFile is the Args of commands that read a recording.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s takes one recording, not %d: see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())
	}
	return nil
}

// noArguments is the Args of commands that take none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments: see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}
