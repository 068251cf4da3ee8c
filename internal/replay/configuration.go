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

// String returns the policy's name and its limits, as in "slab max_part=1MiB".
func (c Configuration) String() string {
	words := []string{c.Policy}
	for _, s := range c.Settings {
		words = append(words, s.Name+"="+s.Value)
	}
	return strings.Join(words, " ")
}

// After returns what a configuration becomes by what a LIMIT record says: one of its limits has another value, or there
// is another policy, with the limits that differ from its defaults. ok is false for what says neither, such as a trim.
// The values are unchecked.
func (c Configuration) After(payload []byte) (to Configuration, ok bool) {
	name, value := wire.ParseLimit(payload)
	if value == nil || string(name) == wire.PlanSetting {
		return c, false
	}
	if string(name) == wire.PolicySetting {
		name, limits := wire.ParsePolicy(string(value))
		settings, err := allocator.ParseSettings(limits)
		return Configuration{Policy: name, Settings: settings}, err == nil
	}
	return c.With(string(name), string(value)), true
}

// With returns the configuration with a limit at another value, which is unchecked.
func (c Configuration) With(name, value string) Configuration {
	settings := slices.DeleteFunc(slices.Clone(c.Settings), func(s allocator.Setting) bool { return s.Name == name })
	return Configuration{Policy: c.Policy, Settings: append(settings, allocator.Setting{Name: name, Value: value})}
}

// Held returns the options that play a configuration and keep its limits, whatever the recording does to them.
func (c Configuration) Held() Options {
	return Options{Policy: c.Policy, Settings: c.Settings, HoldSettings: true}
}
