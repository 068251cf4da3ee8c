package ghost

import (
	"math"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// usualPolicies are the policies that suit most programs. Policies that serve only pinned buffers, or none, are not
// among them.
var usualPolicies = []string{"futhark", "futhark-2018", "pow2", "buckets", "mantissa", "slab", "buddy", "arena"}

// DefaultConfigurations returns the configurations that are worth comparing with the current one: the usual policies, with those
// current limits that each policy has; the current policy with half and twice its cache limit, if that limit is set;
// and the current policy with less and more memory that the program no longer needs. The list may contain the current
// configuration.
func DefaultConfigurations(current replay.Configuration) []replay.Configuration {
	list := append(ConfigurationsOfPolicies(current, usualPolicies), proportionVariations(current)...)
	for i, s := range current.Settings {
		if s.Name != "max_cached_bytes" {
			continue
		}
		for _, scale := range []func(float64) float64{halfOfBytes, twiceBytes} {
			if value, ok := scaledLimit(current, s.Name, scale); ok {
				settings := slices.Clone(current.Settings)
				settings[i].Value = value
				list = append(list, replay.Configuration{Policy: current.Policy, Settings: settings})
			}
		}
	}
	return list
}

// tight is a proportion below the usual one of 1.5.
const tight = 1.1

// proportionVariations returns the current policy with a lower proportion, and without its limits of unneeded memory.
func proportionVariations(current replay.Configuration) []replay.Configuration {
	policy, err := allocator.New(current.Policy, current.Settings)
	if err != nil {
		return nil
	}
	var list []replay.Configuration
	all := current
	for _, l := range policy.Limits() {
		if off, there := map[string]string{"proportion": "0", "outgrown": "off", "max_age": "0"}[l.Name]; there {
			all = all.WithLimit(l.Name, off)
		}
		if l.Name == "proportion" && (l.Value == 0 || l.Value > tight) {
			list = append(list, current.WithLimit(l.Name, strconv.FormatFloat(tight, 'f', -1, 64)))
		}
	}
	return append(list, all)
}

// variations are settings that change how a policy behaves without letting it cache more. How much a policy may cache
// is the user's choice.
var variations = []allocator.Setting{{Name: "over_limit", Value: "reject-new"}, {Name: "max_waste_ratio", Value: "8"}}

// SuccessorConfigurations returns the configurations that auto may switch to: the usual policies, with those current limits that
// each policy has, and the current policy with each variation whose limit the user has not set. No successor caches
// more than the user allowed. The list has no pool as well, for comparison, but not the policy of plans, because the
// trial of another policy gets no plan.
func SuccessorConfigurations(current replay.Configuration) []replay.Configuration {
	usual := slices.DeleteFunc(slices.Clone(usualPolicies), func(name string) bool { return name == replay.LayoutPolicy })
	list := ConfigurationsOfPolicies(current, append(usual, "none"))
	for _, variation := range variations {
		isSet := func(s allocator.Setting) bool { return s.Name == variation.Name }
		varied := replay.Configuration{Policy: current.Policy, Settings: append(slices.Clone(current.Settings), variation)}
		if _, err := allocator.New(varied.Policy, varied.Settings); err == nil && !slices.ContainsFunc(current.Settings, isSet) {
			list = append(list, varied)
		}
	}
	return list
}

func halfOfBytes(bytes float64) float64 { return math.Floor(bytes / 2) }
func twiceBytes(bytes float64) float64  { return bytes * 2 }

// scaledLimit returns the scaled value of a limit. ok is false if the policy has no such limit or refuses the value.
func scaledLimit(c replay.Configuration, name string, scale func(float64) float64) (value string, ok bool) {
	policy, err := allocator.New(c.Policy, c.Settings)
	if err != nil {
		return "", false
	}
	for _, l := range policy.Limits() {
		if l.Name == name {
			value = strconv.FormatFloat(scale(l.Value), 'f', 0, 64)
			_, err := allocator.New(c.Policy, []allocator.Setting{{Name: name, Value: value}})
			return value, err == nil
		}
	}
	return "", false
}

// ConfigurationsOfPolicies returns one configuration for each policy, with those limits of the current configuration that the
// policy has as well.
func ConfigurationsOfPolicies(current replay.Configuration, policies []string) []replay.Configuration {
	var list []replay.Configuration
	for _, name := range policies {
		list = append(list, replay.Configuration{Policy: name, Settings: allocator.CarriedSettings(current.Policy, current.Settings, name)})
	}
	return list
}

// normalize returns a configuration that lists only the settings that differ from the policy's defaults, in the order
// and the form in which the policy shows them, so that equal configurations have equal names. The error reports an
// invalid policy or setting.
func normalize(c replay.Configuration) (replay.Configuration, error) {
	description, known := allocator.DescribePolicy(c.Policy)
	out := replay.Configuration{Policy: c.Policy}
	if known && len(c.Settings) == 0 {
		return out, nil
	}
	policy, err := allocator.New(c.Policy, c.Settings)
	if err != nil {
		return c, err
	}
	for i, l := range policy.Limits() {
		if l.Text != description.Limits[i].Text {
			out.Settings = append(out.Settings, allocator.Setting{Name: l.Name, Value: l.Text})
		}
	}
	return out, nil
}

// nameOfConfiguration returns the name of a normalized configuration: policy and limits, with sizes abbreviated where
// that is exact.
func nameOfConfiguration(c replay.Configuration) string {
	description, _ := allocator.DescribePolicy(c.Policy)
	shown := replay.Configuration{Policy: c.Policy, Settings: slices.Clone(c.Settings)}
	for i := range shown.Settings {
		s := &shown.Settings[i]
		isBytes := slices.ContainsFunc(description.Limits, func(l allocator.Limit) bool { return l.Name == s.Name && l.Kind == allocator.Bytes })
		if isBytes {
			s.Value = shortBytes(s.Value)
		}
	}
	return shown.String()
}

// shortBytes writes a whole number of bytes with the largest unit that divides it.
func shortBytes(text string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return text
	}
	units := []string{"", "K", "M", "G", "T", "P"}
	i := 0
	for ; i < len(units)-1 && n%1024 == 0; i++ {
		n /= 1024
	}
	return strconv.FormatUint(n, 10) + units[i]
}

// settingsOfAllLimits returns every limit of a normalized configuration, so that no limit follows the program's.
func settingsOfAllLimits(c replay.Configuration) []allocator.Setting {
	description, _ := allocator.DescribePolicy(c.Policy)
	all := make([]allocator.Setting, 0, len(description.Limits))
	for _, l := range description.Limits {
		value := l.Text
		for _, s := range c.Settings {
			if s.Name == l.Name {
				value = s.Value
			}
		}
		all = append(all, allocator.Setting{Name: l.Name, Value: value})
	}
	return all
}

// configurationAfterChange returns the configuration after the change that a LIMIT record describes. If the record describes no
// valid change, the configuration stays as it is.
func configurationAfterChange(c replay.Configuration, payload []byte) replay.Configuration {
	after, ok := c.AfterChange(payload)
	if !ok {
		return c
	}
	if after, err := normalize(after); err == nil {
		return after
	}
	return c
}
