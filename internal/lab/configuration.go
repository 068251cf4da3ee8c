package lab

import (
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
