package ghost

import (
	"math"
	"slices"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// usual are the policies that suit most programs: not those that serve only pinned buffers, or none.
var usual = []string{"futhark", "futhark-2018", "pow2", "buckets", "mantissa", "slab", "buddy", "arena"}

// Default returns the configurations that are worth a look beside a present one: the usual policies, with the limits
// that are set as far as they have them, and the present one with half and twice its cache limit, if that is set. The
// present one itself is not among them.
func Default(present replay.Configuration) []replay.Configuration {
	list := Of(present, usual)
	for i, s := range present.Settings {
		if s.Name != "max_cached_bytes" {
			continue
		}
		for _, scale := range []func(float64) float64{half, twice} {
			if value, ok := scaled(present, s.Name, scale); ok {
				settings := slices.Clone(present.Settings)
				settings[i].Value = value
				list = append(list, replay.Configuration{Policy: present.Policy, Settings: settings})
			}
		}
	}
	return list
}

// variations are what else a policy may do within the limits of what it keeps, which are the user's to set.
var variations = []allocator.Setting{{Name: "over_limit", Value: "reject-new"}, {Name: "max_waste_ratio", Value: "8"}}

// Successors returns the configurations that auto may switch to: the usual policies with the limits that are set, as
// far as they have them, and the present one with another limit where that is not set. None caches more than was
// allowed.
func Successors(present replay.Configuration) []replay.Configuration {
	list := Of(present, usual)
	for _, v := range variations {
		isSet := func(s allocator.Setting) bool { return s.Name == v.Name }
		to := replay.Configuration{Policy: present.Policy, Settings: append(slices.Clone(present.Settings), v)}
		if _, err := allocator.New(to.Policy, to.Settings); err == nil && !slices.ContainsFunc(present.Settings, isSet) {
			list = append(list, to)
		}
	}
	return list
}

func half(bytes float64) float64  { return math.Floor(bytes / 2) }
func twice(bytes float64) float64 { return bytes * 2 }

// scaled returns another value of a limit, and whether the policy takes it.
func scaled(c replay.Configuration, name string, scale func(float64) float64) (value string, ok bool) {
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

// Of returns policies with those limits of a present configuration that they have, too.
func Of(present replay.Configuration, policies []string) []replay.Configuration {
	var list []replay.Configuration
	for _, name := range policies {
		list = append(list, replay.Configuration{Policy: name, Settings: allocator.Carried(present.Policy, present.Settings, name)})
	}
	return list
}

// normal returns a configuration with only those settings that differ from the policy's defaults, in the order and the
// form in which the policy shows them: so the same has the same name. An error says what is wrong with it.
func normal(c replay.Configuration) (replay.Configuration, error) {
	description, known := allocator.Describe(c.Policy)
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

// nameOf returns the name of a configuration that is normal: its policy and its limits, of which sizes are short where
// that says all.
func nameOf(c replay.Configuration) string {
	description, _ := allocator.Describe(c.Policy)
	shown := replay.Configuration{Policy: c.Policy, Settings: slices.Clone(c.Settings)}
	for i := range shown.Settings {
		s := &shown.Settings[i]
		isBytes := slices.ContainsFunc(description.Limits, func(l allocator.Limit) bool { return l.Name == s.Name && l.Kind == allocator.Bytes })
		if isBytes {
			s.Value = short(s.Value)
		}
	}
	return shown.String()
}

// short writes a whole number of bytes with a unit if it is a multiple of that.
func short(text string) string {
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

// whole returns all limits of a configuration that is normal, so that none of them follows the program's.
func whole(c replay.Configuration) []allocator.Setting {
	description, _ := allocator.Describe(c.Policy)
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

// changed returns what a configuration becomes by what a LIMIT record says; the same where it says nothing of that.
func changed(c replay.Configuration, payload []byte) replay.Configuration {
	to, ok := c.After(payload)
	if !ok {
		return c
	}
	if to, err := normal(to); err == nil {
		return to
	}
	return c
}
