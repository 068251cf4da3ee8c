package limits

import (
	"fmt"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

// Describe describes policies, all when names is empty, in text as wide as width: what each does, its source, and its limits
// with their defaults and the values that they take.
func Describe(names []string, width int) (string, error) {
	if len(names) == 0 {
		names = append(allocator.Names(), allocator.Auto)
	}
	var texts []string
	for _, name := range names {
		description, known := allocator.Describe(name)
		if !known {
			_, err := allocator.New(name, nil)
			return "", err
		}
		texts = append(texts, policyText(&description, width))
	}
	return strings.Join(texts, "\n"), nil
}

// defaultWidth is the width of the column of defaults. Longer ones take a line of their own.
const defaultWidth = 13

func policyText(d *allocator.Description, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s\n  %s\n", d.Name, console.Wrap(d.Summary, 2, width), console.Wrap("Source: "+d.Source+".", 2, width))
	if len(d.Limits) == 0 {
		return b.String()
	}
	names := 0
	for i := range d.Limits {
		names = max(names, len(d.Limits[i].Name))
	}
	takesAt := 2 + names + 2 + defaultWidth + 2
	fmt.Fprintf(&b, "  %-*s  %-*s  %s\n", names, "LIMIT", defaultWidth, "DEFAULT", "TAKES")
	for i := range d.Limits {
		l := &d.Limits[i]
		row := fmt.Sprintf("  %-*s  %-*s", names, l.Name, defaultWidth, valueText(l))
		if len(row) > takesAt {
			row += "\n" + strings.Repeat(" ", takesAt-2)
		}
		fmt.Fprintf(&b, "%s  %s\n      %s\n", row, console.Wrap(takes(l), takesAt, width), console.Wrap(l.Help, 6, width))
	}
	return b.String()
}

// Text writes a setting so that --set and a settings file read it again: "max_part", "1M".
func Text(policy string, s allocator.Setting) (name, value string) {
	changed, err := allocator.New(policy, []allocator.Setting{s})
	if err == nil {
		for _, l := range changed.Limits() {
			if l.Name == s.Name {
				return s.Name, valueText(&l)
			}
		}
	}
	return s.Name, s.Value
}

// ConfigurationText writes a configuration for people: "slab max_part=1M".
func ConfigurationText(c *replay.Configuration) string { return configuration(c, "", " ") }

// FlagsText writes a configuration as flags: "--policy slab --set max_part=1M".
func FlagsText(c *replay.Configuration) string { return configuration(c, "--policy ", " --set ") }

func configuration(c *replay.Configuration, before, between string) string {
	text := before + c.Policy
	for _, s := range c.Settings {
		name, value := Text(c.Policy, s)
		text += between + name + "=" + value
	}
	return text
}

// OfRecording returns the limits of a recording that its policy still has.
func OfRecording(h *recording.Header) (settings []allocator.Setting) {
	d, _ := allocator.Describe(h.Policy)
	for i := range d.Limits {
		if value, ok := h.Limits[d.Limits[i].Name]; ok {
			settings = append(settings, allocator.Setting{Name: d.Limits[i].Name, Value: value})
		}
	}
	return settings
}

// ConfigurationOf returns what a recording was made with, nil if that is no configuration of this version. Limits at
// their defaults are left out.
func ConfigurationOf(h *recording.Header) *replay.Configuration {
	c := &replay.Configuration{Policy: h.Policy}
	d, _ := allocator.Describe(h.Policy)
	for i := range d.Limits {
		if value, ok := h.Limits[d.Limits[i].Name]; ok && value != d.Limits[i].Text {
			c.Settings = append(c.Settings, allocator.Setting{Name: d.Limits[i].Name, Value: value})
		}
	}
	if _, err := allocator.New(c.Policy, c.Settings); err != nil {
		return nil
	}
	return c
}

// Pooled returns the configuration that a hit-rate curve is about: that of the program, or the default one for a program
// without a pool.
func Pooled(policy string, settings []allocator.Setting) (string, []allocator.Setting) {
	if policy == "none" {
		return allocator.Default, nil
	}
	return policy, settings
}
