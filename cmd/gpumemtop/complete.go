package main

import (
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/analyze"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/convert"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

// completions are the words that flags take, by the keys of their settings.
var completions = map[string][]string{
	"policy": append(allocator.Names(), allocator.Auto), "policy:fixed": allocator.Names(),
	"tags": watch.TagNames(), "scrub": watch.ScrubNames(), "ghosts": append([]string{watch.GhostsUsual, watch.GhostsOff}, allocator.Names()...),
	"format": analyze.TextFormats, "format:report": analyze.ReportFormats, "format:export": convert.ExportFormats(),
	"format:import": convert.ImportFormats(), "table": convert.Tables, "form": analyze.Forms(), "sizes": analyze.SizeRules,
	"pid": nil, "comm": nil, // no files
}

// complete lets shells complete the values of a command's flags.
func complete(cmd *cobra.Command) {
	flags := cmd.Flags()
	if flags.Lookup("pid") != nil { // attach, which takes no arguments
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, s := range settingsOf(flags) {
		words, known := completions[s.key()]
		switch {
		case s.name == "set":
			_ = cmd.RegisterFlagCompletionFunc("set", completeLimit)
		case known: // registering fails only for flags that do not exist
			_ = cmd.RegisterFlagCompletionFunc(s.name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// completeLimit completes the limits of the chosen policy, and the values of those that take words.
func completeLimit(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	policy, _ := cmd.Flags().GetString("policy") // every command with --set has it
	description, _ := allocator.Describe(policy)
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
