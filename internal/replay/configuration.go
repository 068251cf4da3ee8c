package replay

import (
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Configuration is a policy with the limits that differ from its defaults.
type Configuration struct {
	Policy   string
	Settings []allocator.Setting
}

// String returns the policy's name and its limits, for example "slab max_part=1MiB".
func (c Configuration) String() string {
	words := []string{c.Policy}
	for _, s := range c.Settings {
		words = append(words, s.Name+"="+s.Value)
	}
	return strings.Join(words, " ")
}

// AfterChange returns the configuration after the change that a LIMIT record's payload describes: one limit has another
// value, or there is another policy with the limits that differ from its defaults. ok is false if the payload describes
// something else, such as a trim, a relief, a period or an experiment. The values are not checked.
func (c Configuration) AfterChange(payload []byte) (changed Configuration, ok bool) {
	name, value := wire.ParseLimit(payload)
	switch {
	case value == nil, string(name) == wire.PlanSetting, string(name) == wire.RelieveSetting, string(name) == wire.PeriodSetting, string(name) == wire.ArmsSetting, string(name) == wire.ArmSetting:
		return c, false
	case string(name) == wire.PolicySetting:
		name, limits := wire.ParsePolicyValue(string(value))
		settings, err := allocator.ParseSettings(limits)
		return Configuration{Policy: name, Settings: settings}, err == nil
	}
	return c.WithLimit(string(name), string(value)), true
}

// WithLimit returns the configuration with a limit at another value, which is not checked.
func (c Configuration) WithLimit(name, value string) Configuration {
	settings := slices.DeleteFunc(slices.Clone(c.Settings), func(s allocator.Setting) bool { return s.Name == name })
	return Configuration{Policy: c.Policy, Settings: append(settings, allocator.Setting{Name: name, Value: value})}
}

// OptionsKeepingLimits returns options that simulate the configuration and keep its limits, even where the recording changes
// them.
func (c Configuration) OptionsKeepingLimits() Options {
	return Options{Policy: c.Policy, Settings: c.Settings, HoldSettings: true}
}
