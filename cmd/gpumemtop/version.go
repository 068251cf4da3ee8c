package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/internal/trace"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func newVersion() *cobra.Command {
	return command(0, &cobra.Command{
		Use:         "version",
		Short:       "Show the version",
		Annotations: map[string]string{usageKey: "gpumemtop version"},
		Args:        noArguments,
	}, func(cmd *cobra.Command, _ *config, _ []string) error {
		_, err := io.WriteString(cmd.OutOrStdout(), versionText())
		return err
	})
}

func versionText() string {
	version := "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	return fmt.Sprintf("gpumemtop %s, %s, recording format %d, event protocol %d\n", version, runtime.Version(), trace.Version, wire.Version)
}
