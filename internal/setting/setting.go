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

// Text writes a setting so that --set and a settings file accept it: "max_part", "1M".
func Text(policy string, s allocator.Setting) (name, value string) {
	changed, err := allocator.New(policy, []allocator.Setting{s})
	if err == nil {
		for _, l := range changed.Limits() {
			if l.Name == s.Name {
				return s.Name, Value(&l)
			}
		}
	}
	return s.Name, s.Value
}

// Configuration writes a configuration for people: "slab max_part=1M".
func Configuration(c *replay.Configuration) string { return joinSettings(c, "", " ") }

// Flags writes a configuration as flags: "--policy slab --set max_part=1M".
func Flags(c *replay.Configuration) string { return joinSettings(c, "--policy ", " --set ") }

func joinSettings(c *replay.Configuration, before, between string) string {
	text := before + c.Policy
	for _, s := range c.Settings {
		name, value := Text(c.Policy, s)
		text += between + name + "=" + value
	}
	return text
}

// File writes a policy and its limits as a settings file.
func File(policy string, settings []allocator.Setting) string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy = %q\n", policy)
	for i, setting := range settings {
		if i == 0 {
			b.WriteString("\n[set]\n")
		}
		name, value := Text(policy, setting)
		fmt.Fprintf(&b, "%s = %q\n", name, value)
	}
	return b.String()
}

// OfRecording returns the configuration that a recording was made with, nil if this version has no such configuration.
// Limits at their defaults are left out.
func OfRecording(h *recording.Header) *replay.Configuration {
	c := &replay.Configuration{Policy: h.Policy}
	d, _ := allocator.Describe(h.Policy)
	for i := range d.Limits {
		l := &d.Limits[i]
		if value, ok := allocator.Recorded(h.Limits, l.Name); ok && value != l.Text {
			c.Settings = append(c.Settings, allocator.Setting{Name: l.Name, Value: value})
		}
	}
	if _, err := allocator.New(c.Policy, c.Settings); err != nil {
		return nil
	}
	return c
}

// Value returns a limit's value for people.
func Value(l *allocator.Limit) string {
	switch l.Kind {
	case allocator.Bytes:
		return Size(l.Value)
	case allocator.Seconds:
		return Seconds(l.Value)
	case allocator.Sizes:
		var sizes []string
		for field := range strings.SplitSeq(l.Text, ":") {
			bytes, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return l.Text
			}
			sizes = append(sizes, Size(float64(bytes)))
		}
		return strings.Join(sizes, ":")
	case allocator.Number, allocator.Count, allocator.Switch, allocator.Choice:
	}
	return l.Text
}

// Size writes a size so that --set reads the same size: in whole units, or in bytes.
func Size(v float64) string {
	bytes, unit := uint64(v), 0
	for unit < 5 && bytes > 0 && bytes%1024 == 0 {
		bytes /= 1024
		unit++
	}
	return strconv.FormatUint(bytes, 10) + [...]string{"", "K", "M", "G", "T", "P"}[unit]
}

// Seconds writes a time so that --set reads the same.
func Seconds(v float64) string { return Number(v) + "s" }

// Number writes a number in digits.
func Number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
