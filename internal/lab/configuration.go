package lab

import (
	"bytes"
	"slices"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
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
// Nobody has checked the values.
func (c Configuration) After(payload []byte) (to Configuration, ok bool) {
	name, value, isLimit := strings.Cut(string(bytes.TrimRight(payload, "\x00")), "=")
	if !isLimit {
		return c, false
	}
	if name == policy {
		name, rest, _ := strings.Cut(value, ",")
		settings, err := allocator.ParseSettings(rest)
		return Configuration{Policy: name, Settings: settings}, err == nil
	}
	settings := slices.DeleteFunc(slices.Clone(c.Settings), func(s allocator.Setting) bool { return s.Name == name })
	return Configuration{Policy: c.Policy, Settings: append(settings, allocator.Setting{Name: name, Value: value})}, true
}
