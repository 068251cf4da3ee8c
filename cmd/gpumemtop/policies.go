package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/size"
)

func newPolicies() *cobra.Command {
	return command(0, &cobra.Command{
		Use:         "policies",
		Short:       "List the policies and their limits",
		Annotations: map[string]string{usageKey: "gpumemtop policies"},
		Args:        noArguments,
	}, func(cmd *cobra.Command, _ *config, _ []string) error {
		var b strings.Builder
		for _, name := range allocator.Names() {
			description, _ := allocator.Describe(name)
			fmt.Fprintf(&b, "%s (%s)\n  %s\n", name, description.Source, description.Summary)
			for _, l := range description.Limits {
				fmt.Fprintf(&b, "    %-18s %-8s %s\n", l.Name, limitValue(l), l.Help)
			}
		}
		_, err := io.WriteString(cmd.OutOrStdout(), b.String())
		return err
	})
}

func limitValue(l allocator.Limit) string {
	if l.Kind == allocator.Bytes {
		return size.Format(uint64(l.Value))
	}
	return strconv.FormatFloat(l.Value, 'g', -1, 64)
}
