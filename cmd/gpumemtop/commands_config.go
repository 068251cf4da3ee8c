package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
)

func newConfigCommand() *cobra.Command {
	edit := false
	return newCommand(&cobra.Command{
		Use:   "config [--edit]",
		Short: "Show or edit your settings",
		Long: "Shows the settings that a run would have, and where each comes from. --edit opens ~/.config/gpumemtop/config.toml in\n" +
			"$VISUAL or $EDITOR; a new file lists all settings, as comments.",
		Annotations: map[string]string{usageKey: "gpumemtop config [--edit]"},
		Example:     "  gpumemtop config\n  EDITOR=nano gpumemtop config --edit",
		Args:        refuseArguments,
	}, fields{"edit": &edit}, func(cmd *cobra.Command, _ []string) error {
		if edit {
			return editSettingsFile(userSettingsPath(os.LookupEnv))
		}
		flags, _ := newRunFlags()
		origins, err := setUnsetSettings(flags, os.LookupEnv)
		if err != nil {
			return err
		}
		return printConfig(cmd.OutOrStdout(), "gpumemtop", origins)
	})
}

// newRunFlags returns the flags of run, and the options that they set, which have the defaults.
func newRunFlags() (*pflag.FlagSet, *watch.RunOptions) {
	o := &watch.RunOptions{Options: watch.Options{Setup: defaultSetupOptions(), Dashboard: defaultDashboardOptions()}}
	flags := pflag.NewFlagSet("gpumemtop", pflag.ContinueOnError)
	bindFlags(flags, dashboardRunFields(o))
	return flags, o
}

// editSettingsFile opens a settings file in the user's editor, and checks it afterwards.
func editSettingsFile(path string) error {
	if path == "" {
		return errors.New("no folder for the settings file: set HOME or XDG_CONFIG_HOME to one")
	}
	if err := createSettingsTemplate(path); err != nil {
		return fmt.Errorf("settings file: %w", err)
	}
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if value := os.Getenv(name); value != "" {
			editor = value
		}
	}
	// The editor may have options, such as "code --wait".
	cmd := exec.Command("sh", "-c", editor+` "$1"`, "sh", path) //nolint:gosec // the user's own
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w; VISUAL or EDITOR names an editor", editor, path, err)
	}
	flags, _ := newRunFlags()
	_, err := setUnsetSettings(flags, func(name string) (string, bool) {
		if name == "GPUMEMTOP_CONFIG" {
			return path, true
		}
		return "", false
	})
	return err
}

// createSettingsTemplate creates a settings file in which all settings are comments, unless the file exists.
func createSettingsTemplate(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := settingsTemplateText()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// settingsTemplateText returns a settings file in which all settings are comments.
func settingsTemplateText() (string, error) {
	var b strings.Builder
	b.WriteString("# Settings of gpumemtop. Options and GPUMEMTOP_ variables override them. Remove a # to set one.\n")
	flags, _ := newRunFlags()
	for _, s := range settingsOf(flags) {
		if !s.mayBeInFile() {
			continue
		}
		value, err := flagValue(flags, flags.Lookup(s.name))
		if err != nil {
			return "", err
		}
		line, err := tomlLine(s.name, value)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n# %s\n#%s\n", s.help, line)
	}
	return b.String(), nil
}
