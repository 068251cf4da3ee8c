// Package setting writes policies and limits as people write them, so that flags and settings files accept the same
// text.
package setting

import (
	"fmt"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// NameAndValueText writes a setting so that --set and a settings file accept it: "max_part", "1M".
func NameAndValueText(policy string, s allocator.Setting) (name, value string) {
	changed, err := allocator.New(policy, []allocator.Setting{s})
	if err == nil {
		for _, l := range changed.Limits() {
			if l.Name == s.Name {
				return s.Name, LimitValueText(&l)
			}
		}
	}
	return s.Name, s.Value
}

// ConfigurationText writes a configuration for people: "slab max_part=1M".
func ConfigurationText(c *replay.Configuration) string { return joinSettings(c, "", " ") }

// FlagsText writes a configuration as flags: "--policy slab --set max_part=1M".
func FlagsText(c *replay.Configuration) string { return joinSettings(c, "--policy ", " --set ") }

func joinSettings(c *replay.Configuration, before, between string) string {
	text := before + c.Policy
	for _, s := range c.Settings {
		name, value := NameAndValueText(c.Policy, s)
		text += between + name + "=" + value
	}
	return text
}

// SettingsFileText writes a policy and its limits as a settings file.
func SettingsFileText(policy string, settings []allocator.Setting) string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy = %q\n", policy)
	for i, setting := range settings {
		if i == 0 {
			b.WriteString("\n[set]\n")
		}
		name, value := NameAndValueText(policy, setting)
		fmt.Fprintf(&b, "%s = %q\n", name, value)
	}
	return b.String()
}

// ConfigurationOfRecording returns the configuration that a recording was made with, nil if this version has no such configuration.
// Limits at their defaults are left out.
func ConfigurationOfRecording(h *recording.Header) *replay.Configuration {
	c := &replay.Configuration{Policy: h.Policy}
	d, _ := allocator.DescribePolicy(h.Policy)
	for i := range d.Limits {
		l := &d.Limits[i]
		if value, ok := allocator.RecordedLimit(h.Limits, l.Name); ok && value != l.Text {
			c.Settings = append(c.Settings, allocator.Setting{Name: l.Name, Value: value})
		}
	}
	if _, err := allocator.New(c.Policy, c.Settings); err != nil {
		return nil
	}
	return c
}

// LimitValueText returns a limit's value for people.
func LimitValueText(l *allocator.Limit) string {
	switch l.Kind {
	case allocator.Bytes:
		return SizeText(l.Value)
	case allocator.Seconds:
		return SecondsText(l.Value)
	case allocator.Sizes:
		var sizes []string
		for field := range strings.SplitSeq(l.Text, ":") {
			bytes, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return l.Text
			}
			sizes = append(sizes, SizeText(float64(bytes)))
		}
		return strings.Join(sizes, ":")
	case allocator.Number, allocator.Count, allocator.Switch, allocator.Choice:
	}
	return l.Text
}

// SizeText writes a size so that --set reads the same size: in whole units, or in bytes.
func SizeText(v float64) string {
	bytes, unit := uint64(v), 0
	for unit < 5 && bytes > 0 && bytes%1024 == 0 {
		bytes /= 1024
		unit++
	}
	return strconv.FormatUint(bytes, 10) + [...]string{"", "K", "M", "G", "T", "P"}[unit]
}

// SecondsText writes a time so that --set reads the same.
func SecondsText(v float64) string { return NumberText(v) + "s" }

// NumberText writes a number in digits.
func NumberText(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
