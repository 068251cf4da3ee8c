package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/study"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func newPoliciesCommand() *cobra.Command {
	return newCommand(&cobra.Command{
		Use:         "policies [NAME...]",
		Short:       "List policies and their limits",
		Annotations: map[string]string{usageKey: "gpumemtop policies [NAME...]"},
		Example:     "  gpumemtop policies\n  gpumemtop policies slab  one of them, with its limits",
		ValidArgs:   append(allocator.PolicyNames(), allocator.Auto),
	}, fields{}, makeInterruptible(func(cmd *cobra.Command, args []string) error {
		for _, name := range args {
			if err := checkPolicyName(name); err != nil {
				return err
			}
		}
		text, err := watch.DescribePolicies(args, console.TextWidth(cmd.OutOrStdout()))
		if err != nil {
			return err
		}
		return console.WriteText(cmd.OutOrStdout(), text)
	}))
}

func newProbeCommand() *cobra.Command {
	o := study.ProbeOptions{Budget: 10 * time.Second, Format: "text"}
	return newCommand(&cobra.Command{
		Use:   "probe [flags]",
		Short: "Measure what buffers cost on this machine's devices",
		Long: "Measures on each OpenCL device, by size, what it costs to create a buffer, to write it for the first time and\n" +
			"again, and to release it, and what sub-buffers cost; fits lines; and says whether memory comes with the create\n" +
			"call or later, and whether the driver keeps released memory. Other work on the machine affects the figures.\n" +
			"Drivers run in processes of their own: probe names one that crashes or hangs, and measures the other devices. An\n" +
			"interrupt ends it early, with the figures so far.",
		Annotations: map[string]string{usageKey: "gpumemtop probe [--device DEVICE] [--max SIZE] [--budget TIME] [--format text|json] [-o FILE] [--write FILE]"},
		Example:     "  gpumemtop probe                          all devices, in about 10 seconds\n  gpumemtop probe --max 64M --format json -o probe.json   for replay --device-cost probe.json",
		Args:        refuseArguments,
	}, fields{
		"device:probe": &o.Device, "platform": &o.Platform, "max:probe": &o.Max, "budget:probe": &o.Budget, "format": &o.Format,
		"output:text": &o.Output.Path, "force": &o.Output.Force, "write:probe": &o.Profile,
	}, func(cmd *cobra.Command, _ []string) error { return study.ProbeDevices(cmd.OutOrStdout(), &o) })
}

func newDoctorCommand() *cobra.Command {
	format := "text"
	return newCommand(&cobra.Command{
		Use:   "doctor [flags]",
		Short: "Check whether this machine can run gpumemtop",
		Long: "Checks OpenCL, its drivers and devices; what prevents preloading; what the kernel allows attach and which\n" +
			"capabilities are missing; the terminal, and the settings in the environment. Drivers run in processes of their\n" +
			"own, so that one that crashes or hangs is only reported. The exit status is 1 if programs cannot be run.",
		Annotations: map[string]string{usageKey: "gpumemtop doctor [--format text|json]"},
		Example:     "  gpumemtop doctor\n  gpumemtop doctor --format json | jq -r '.lines[].text'",
		Args:        refuseArguments,
	}, fields{"format": &format}, makeInterruptible(func(cmd *cobra.Command, _ []string) error {
		variables := map[string]string{}
		for i := range settings {
			if name := settings[i].envName(); name != "" {
				variables[name] = settings[i].name
			}
		}
		return study.WriteDoctorReport(cmd.OutOrStdout(), format, study.DoctorOptions{
			Version: "gpumemtop " + versionText(), Policies: allocator.PolicyNames(), Settings: variables,
			SettingsFile: existingUserSettingsPath(os.LookupEnv), Check: checkEnvironment,
		})
	}))
}

// checkEnvironment returns the error that a run would report about the settings in the environment.
func checkEnvironment() error {
	flags, o := newRunFlags()
	origins, err := setUnsetSettings(flags, os.LookupEnv)
	if err != nil {
		return err
	}
	return origins.addSourcesToError(o.Check())
}

func newVersionCommand() *cobra.Command {
	asJSON := false
	return newCommand(&cobra.Command{
		Use:         "version [--json]",
		Short:       "Show the version",
		Annotations: map[string]string{usageKey: "gpumemtop version [--json]"},
		Example:     "  gpumemtop version\n  gpumemtop version --json | jq .recording_format",
		Args:        refuseArguments,
	}, fields{"json:version": &asJSON}, makeInterruptible(func(cmd *cobra.Command, _ []string) error {
		if !asJSON {
			return console.WriteText(cmd.OutOrStdout(), "gpumemtop version "+versionText()+"\n")
		}
		text, err := json.MarshalIndent(currentVersion(), "", "  ")
		if err != nil {
			return err
		}
		return console.WriteText(cmd.OutOrStdout(), string(text)+"\n")
	}))
}

// version is the version for scripts.
type version struct {
	Version   string `json:"version"`
	Revision  string `json:"revision,omitempty"` // of the source
	Modified  bool   `json:"modified,omitempty"` // the source was modified since that revision
	Go        string `json:"go"`
	System    string `json:"system"`
	Recording int    `json:"recording_format"`
	Protocol  int    `json:"event_protocol"`
}

func currentVersion() version {
	v := version{
		Version: "(unknown)", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Recording: recording.Version, Protocol: wire.Version,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = cmp.Or(info.Main.Version, v.Version)
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func versionText() string {
	v := currentVersion()
	return fmt.Sprintf("%s, %s, recording format %d, event protocol %d", v.Version, v.Go, v.Recording, v.Protocol)
}
