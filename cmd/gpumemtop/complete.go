package main

import (
	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
)

// complete tells shells the words that the flags of a command take.
func complete(cmd *cobra.Command) {
	words := map[string][]string{"policy": allocator.Names(), "tags": tagNames(), "scrub": scrubNames()}
	switch cmd.Name() {
	case "export":
		words["format"] = exportFormats
	case "report", "fit":
		words["format"] = textFormats
	}
	for name, list := range words {
		if cmd.Flags().Lookup(name) != nil {
			// Fails only for a flag that does not exist.
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}
