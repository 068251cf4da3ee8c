package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// changedLimits returns the limits that differ from the defaults of their policy.
func changedLimits(policy string, present []stats.Limit) (settings []allocator.Setting) {
	defaults := map[string]string{}
	for _, l := range stats.DefaultLimits(policy) {
		defaults[l.Name] = l.Text
	}
	for i := range present {
		if l := &present[i]; l.Text != defaults[l.Name] {
			settings = append(settings, allocator.Setting{Name: l.Name, Value: l.Text})
		}
	}
	return settings
}

// saveLimitsFile writes a policy and its limits to a new file that only its owner can read.
func saveLimitsFile(path, policy string, present []stats.Limit) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: type another name", path)
	}
	if err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	_, err = file.WriteString("# gpumemtop: settings of the dashboard\n" + setting.SettingsFileText(policy, changedLimits(policy, present)))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	return nil
}

// parseLimitValue turns a value of a limit as --set takes it into the allocator's form.
func parseLimitValue(policy, name, value string) (string, error) {
	setting, err := parseLimit(policy, name, strings.TrimSpace(value))
	return setting.Value, err
}
