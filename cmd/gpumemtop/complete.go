package main

import (
	"bytes"
	_ "embed" // bashWords
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/convert"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/read"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/study"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

// completions are the values that flags take, by the keys of their settings.
var completions = map[string][]string{
	"policy": append(allocator.PolicyNames(), allocator.Auto), "policy:fixed": allocator.PolicyNames(),
	"tags": watch.TagNames(), "scrub": watch.ScrubNames(), "ghosts": append([]string{watch.GhostsUsual, watch.GhostsOff}, allocator.PolicyNames()...),
	"measure": append([]string{watch.MeasureOn, watch.MeasureOff}, allocator.PolicyNames()...),
	"against": allocator.PolicyNames(), "charts": watch.Charts,
	"format": read.TextFormats, "format:report": read.ReportFormats, "format:export": convert.ExportFormats(),
	"format:import": convert.ImportFormats(), "table": convert.Tables, "form": study.FormNames(), "section": read.SectionNames(), "sizes": study.SizeRules,
}

// recordingReaders are the commands whose arguments are recordings, and nothing else.
var recordingReaders = []string{"view", "report", "info", "diff", "check", "export", "trim", "merge", "replay", "advise", "plan"}

// bashWords has the functions of the package bash-completion that cobra's script for bash needs.
//
//go:embed bash_words.sh
var bashWords string

// Where only files with some endings are wanted, cobra's script for fish lists all files. fishSome lists those, and folders.
const (
	fishAll  = "        # Do full file completion instead\n        return 1\n"
	fishSome = `        set --global __gpumemtop_comp_results (__fish_complete_suffix .$__gpumemtop_comp_results[1] | string match --regex '^[^\t]*(?:/|[.]'$__gpumemtop_comp_results[1]')(?:\t.*)?$')
        return 0
`
)

// addCompletionCommand adds the command that writes scripts for shells.
func addCompletionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	addHelpAllFlag(completion)
	completion.RunE = func(cmd *cobra.Command, words []string) error {
		if len(words) > 0 {
			return unknownTopicError(cmd, words[0])
		}
		return cmd.Help()
	}
	completion.Args = cobra.ArbitraryArgs
	completion.Example = "  source <(gpumemtop completion bash)\n  gpumemtop completion fish > ~/.config/fish/completions/gpumemtop.fish"
	if fish, _, err := completion.Find([]string{"fish"}); err == nil {
		fish.RunE = func(cmd *cobra.Command, _ []string) error {
			short, _ := cmd.Flags().GetBool("no-descriptions")
			var script bytes.Buffer
			if err := root.GenFishCompletion(&script, !short); err != nil {
				return err
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), strings.Replace(script.String(), fishAll, fishSome, 1))
			return err
		}
	}
	if bash, _, err := completion.Find([]string{"bash"}); err == nil {
		script := bash.RunE
		bash.RunE = func(cmd *cobra.Command, words []string) error {
			if _, err := fmt.Fprint(cmd.OutOrStdout(), bashWords); err != nil {
				return err
			}
			return script(cmd, words)
		}
		bash.Long = strings.Replace(bash.Long, "This script depends on the 'bash-completion' package.\nIf it is not installed already, you can install it via your OS's package manager.\n\n", "", 1)
	}
}

// completeFlagValues lets shells complete the values of a command's flags.
func completeFlagValues(cmd *cobra.Command) {
	flags := cmd.Flags()
	switch {
	case slices.Contains(recordingReaders, cmd.Name()):
		cmd.ValidArgsFunction = cobra.FixedCompletions([]string{"gmt"}, cobra.ShellCompDirectiveFilterFileExt)
	case cmd.Name() == "policies":
		cmd.ValidArgsFunction = cobra.FixedCompletions(allocator.PolicyNames(), cobra.ShellCompDirectiveNoFileComp)
	case groupOfCommand(cmd) == watchesPrograms: // attach takes no arguments
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	case groupOfCommand(cmd) == runsPrograms:
		cmd.ValidArgsFunction = completeProgram
	}
	for _, s := range settingsOf(flags) {
		words, known := completions[s.tableKey()]
		switch {
		case s.name == "set":
			_ = cmd.RegisterFlagCompletionFunc("set", completeLimit)
		case s.name == "theme":
			_ = cmd.RegisterFlagCompletionFunc("theme", completeTheme)
		case s.name == "pid", s.name == "comm":
			_ = cmd.RegisterFlagCompletionFunc(s.name, completeProcess(s.name))
		case known: // registering fails only for flags that do not exist
			_ = cmd.RegisterFlagCompletionFunc(s.name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// completeTheme completes the names of themes; if none begins with typed, files of colours.
func completeTheme(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	if slices.ContainsFunc(watch.Themes, func(name string) bool { return strings.HasPrefix(name, typed) }) {
		return watch.Themes, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"toml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completeLimit completes limits of the chosen policy, and the values of limits that take words.
func completeLimit(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	policy, _ := cmd.Flags().GetString("policy") // every command with --set has it
	description, _ := allocator.DescribePolicy(policy)
	var offers []string
	for i := range description.Limits {
		l := &description.Limits[i]
		if !strings.HasPrefix(typed, l.Name+"=") {
			offers = append(offers, l.Name+"=\t"+l.Help)
			continue
		}
		for _, word := range l.Choices {
			offers = append(offers, l.Name+"="+word)
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeProcess completes pids or names of the processes that use OpenCL and that the user may inspect.
func completeProcess(flag string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var offers []string
		processes, _ := filepath.Glob("/proc/[1-9]*/maps")
		for _, maps := range processes {
			text, err := os.ReadFile(maps)
			if err != nil || !strings.Contains(string(text), "/libOpenCL.so") {
				continue
			}
			folder := filepath.Dir(maps)
			name, _ := os.ReadFile(filepath.Join(folder, "comm"))
			comm := strings.TrimSpace(string(name))
			if flag == "comm" {
				offers = append(offers, comm)
			} else {
				offers = append(offers, fmt.Sprintf("%s\t%s", filepath.Base(folder), comm))
			}
		}
		slices.Sort(offers)
		return slices.Compact(offers), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeProgram completes the program to run as a shell does, with files or programs on the path, if no command of ours begins
// with the word. The shell itself completes files, also for the program's arguments.
func completeProgram(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	var offers []string
	ours := func(c *cobra.Command) bool { return strings.HasPrefix(c.Name(), typed) }
	if len(args) == 0 && typed != "" && !strings.ContainsRune(typed, '/') && !slices.ContainsFunc(cmd.Commands(), ours) {
		for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
			entries, _ := os.ReadDir(folder)
			for _, entry := range entries {
				if !strings.HasPrefix(entry.Name(), typed) {
					continue
				}
				if info, err := os.Stat(filepath.Join(folder, entry.Name())); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
					offers = append(offers, entry.Name())
				}
			}
		}
	}
	slices.Sort(offers)
	return slices.Compact(offers), cobra.ShellCompDirectiveDefault
}
