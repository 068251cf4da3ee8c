package main

import (
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/export/csv"
	"codeberg.org/gpumemtop/gpumemtop/internal/importer"
)

// complete tells shells the words that the flags of a command take.
func complete(cmd *cobra.Command) {
	words := map[string][]string{
		"policy": append(allocator.Names(), allocator.Auto), "tags": tagNames(), "scrub": scrubNames(), "ghosts": append([]string{ghostsUsual, ghostsOff}, allocator.Names()...),
	}
	switch cmd.Name() {
	case "attach":
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		words["pid"], words["comm"] = nil, nil
	case "export":
		words["format"] = exporterNames()
		words["table"] = csv.Tables
	case "import":
		words["format"] = importer.Names()
	case "report":
		words["format"] = reporterNames()
	case "advise":
		words["format"], words["form"], words["sizes"] = textFormats, formNames(), sizeRules
	case "fit", "replay", "tune", "diff", "check", "info", "doctor", "probe":
		words["format"] = textFormats
	}
	if cmd.Flags().Lookup("set") != nil {
		_ = cmd.RegisterFlagCompletionFunc("set", completeLimit)
	}
	for name, list := range words {
		if cmd.Flags().Lookup(name) != nil {
			// Fails only for a flag that does not exist.
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// completeLimit offers the limits of the chosen policy, and the words of one that takes words.
func completeLimit(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	policy := defaults().policy
	if chosen, err := cmd.Flags().GetString("policy"); err == nil {
		policy = chosen
	}
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
