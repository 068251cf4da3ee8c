package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor"
	"codeberg.org/gpumemtop/gpumemtop/internal/session"
)

func newDoctor() *cobra.Command {
	return command(onDoctor, &cobra.Command{
		Use:   "doctor [flags]",
		Short: "Look whether programs can be run on this machine, and with what",
		Long: "Looks at OpenCL, its drivers and devices, at what keeps libraries from being preloaded, at what the kernel lets attach\n" +
			"do and which capabilities are missing, at the terminal and the settings in the environment. Drivers are asked in\n" +
			"processes of their own, so that one that crashes or hangs is only told of. The exit status is 1 where programs cannot\n" +
			"be run.",
		Annotations: map[string]string{usageKey: "gpumemtop doctor [--format text|json]"},
		Args:        noArguments,
	}, func(cmd *cobra.Command, c *config, _ []string) error {
		if err := checkFormat(c.doctorFormat, textFormats); err != nil {
			return err
		}
		report := doctor.Examine(doctor.Here(), doctorOptions())
		write := report.WriteText
		if c.doctorFormat == "json" {
			write = report.WriteJSON
		}
		if err := write(cmd.OutOrStdout()); err != nil {
			return err
		}
		if !report.Usable {
			return ended{session.Status{Code: 1}}
		}
		return nil
	})
}

func doctorOptions() doctor.Options {
	variables := map[string]string{}
	for i := range settings {
		if name := settings[i].envName(); name != "" {
			variables[name] = settings[i].name
		}
	}
	return doctor.Options{Version: versionText(), Policies: allocator.Names(), Settings: variables, Check: checkEnvironment}
}

// checkEnvironment says what a run would find wrong with the settings in the environment.
func checkEnvironment() error {
	c := defaults()
	flags := pflag.NewFlagSet("environment", pflag.ContinueOnError)
	bind(flags, c, onRun)
	if err := settle(flags, c, onRun, os.LookupEnv); err != nil {
		return err
	}
	_, err := newPlan(c)
	return c.traced(err)
}
