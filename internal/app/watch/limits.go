package watch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/planfile"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
	"codeberg.org/gpumemtop/gpumemtop/internal/setting"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// PolicyChoice is a policy and its limits as flags name them.
type PolicyChoice struct {
	Policy    string
	Set       []string // "LIMIT=VALUE", several with commas between
	MaxCached string   // max_cached_bytes
	Plan      string   // path of a file with a plan, which policy arena takes; empty: none
}

// PlannedPolicy is the policy that takes plans: the one that --plan means.
const PlannedPolicy = replay.LayoutPolicy

// ReadPlan reads the plan, nil without one.
func (c *PolicyChoice) ReadPlan() (*planfile.Plan, error) {
	switch {
	case c.Plan == "":
		return nil, nil
	case c.Policy != PlannedPolicy:
		return nil, fmt.Errorf("--plan is for policy %s, and not for %s: leave out one of --plan and --policy", PlannedPolicy, c.Policy)
	}
	text, err := files.ReadBoundedFile(c.Plan, planfile.TextMax)
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	plan, err := planfile.ParsePlan(string(text))
	if err != nil {
		return nil, fmt.Errorf("--plan %s: %w", c.Plan, err)
	}
	return plan, nil
}

// ParseLimits reads the limits. The allocator checks them against the policy.
func (c *PolicyChoice) ParseLimits() ([]allocator.Setting, error) {
	settings, err := c.parseSetFlags()
	if err != nil {
		return nil, err
	}
	if c.MaxCached != "" {
		setting, err := parseLimit(c.Policy, "max_cached_bytes", c.MaxCached)
		if err != nil {
			return nil, fmt.Errorf("--max-cached: %w", err)
		}
		settings = append(settings, setting)
	}
	for i := range settings {
		name := settings[i].Name
		if slices.ContainsFunc(settings[:i], func(s allocator.Setting) bool { return s.Name == name }) {
			by := "by --set"
			if i == len(settings)-1 && c.MaxCached != "" {
				by = "by --set and by --max-cached"
			}
			return nil, fmt.Errorf("limit %s is given twice, %s: give it once, in a flag, its environment variable or the settings file", name, by)
		}
	}
	return settings, nil
}

// NewPool reads the limits and makes the policy.
func (c *PolicyChoice) NewPool() (*allocator.Pool, []allocator.Setting, error) {
	if _, known := allocator.DescribePolicy(c.Policy); !known {
		_, err := allocator.New(c.Policy, nil)
		return nil, nil, err
	}
	settings, err := c.ParseLimits()
	if err != nil {
		return nil, nil, err
	}
	policy, err := allocator.New(c.Policy, settings)
	return policy, settings, err
}

// ParseLimit reads one value of Set.
func (c *PolicyChoice) ParseLimit(text string) ([]allocator.Setting, error) {
	one := PolicyChoice{Policy: c.Policy, Set: []string{text}}
	return one.parseSetFlags()
}

func (c *PolicyChoice) parseSetFlags() ([]allocator.Setting, error) {
	var settings []allocator.Setting
	for _, text := range c.Set {
		for assignment := range strings.SplitSeq(text, ",") {
			name, value, found := strings.Cut(assignment, "=")
			if !found || name == "" {
				return nil, fmt.Errorf("bad value %q for --set: want LIMIT=VALUE, for example max_cached_bytes=512MiB", assignment)
			}
			setting, err := parseLimit(c.Policy, strings.TrimSpace(name), strings.TrimSpace(value))
			if err != nil {
				return nil, fmt.Errorf("--set %s: %w", assignment, err)
			}
			settings = append(settings, setting)
		}
	}
	return settings, nil
}

// parseLimit turns a value as people write it into the allocator's form. It leaves unknown limits to the allocator.
func parseLimit(policy, name, value string) (allocator.Setting, error) {
	description, _ := allocator.DescribePolicy(policy)
	i := slices.IndexFunc(description.Limits, func(l allocator.Limit) bool { return l.Name == name })
	if i < 0 {
		return allocator.Setting{Name: name, Value: value}, nil
	}
	l := &description.Limits[i]
	text, err := canonicalLimitValue(l, value)
	if err == nil {
		err = checkLimitRange(l, text, value)
	}
	if err != nil {
		return allocator.Setting{}, fmt.Errorf("limit %s: %w: want %s, for example %s=%s", name, err, limitValuesText(l), name, exampleLimitValue(l))
	}
	return allocator.Setting{Name: name, Value: text}, nil
}

// canonicalLimitValue reads sizes with units, times and the words of switches. The allocator reads the rest.
func canonicalLimitValue(l *allocator.Limit, value string) (string, error) {
	switch l.Kind {
	case allocator.Bytes:
		return parseBytes(value)
	case allocator.Seconds:
		return parseSeconds(value)
	case allocator.Switch:
		return parseSwitch(value)
	case allocator.Choice:
		word := strings.ToLower(value)
		if !slices.Contains(l.Choices, word) {
			return "", fmt.Errorf("bad value %q", value)
		}
		return word, nil
	case allocator.Sizes:
		var sizes []string
		for field := range strings.SplitSeq(value, ":") {
			bytes, err := parseBytes(field)
			if err != nil {
				return "", err
			}
			sizes = append(sizes, bytes)
		}
		return strings.Join(sizes, ":"), nil
	case allocator.Number, allocator.Count:
	}
	return value, nil
}

func parseBytes(value string) (string, error) {
	bytes, err := units.ParseSize(value)
	if err != nil {
		return "", fmt.Errorf("bad size %q", value)
	}
	return strconv.FormatUint(bytes, 10), nil
}

// parseSeconds reads "30s", "1h30m" or a number of seconds.
func parseSeconds(value string) (string, error) {
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && !strings.ContainsAny(value, "xX") {
		return setting.NumberText(seconds), nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 {
		return "", fmt.Errorf("bad time %q", value)
	}
	return setting.NumberText(d.Seconds()), nil
}

func parseSwitch(value string) (string, error) {
	switch strings.ToLower(value) {
	case "on", "true", "yes", "1":
		return "on", nil
	case "off", "false", "no", "0":
		return "off", nil
	}
	return "", fmt.Errorf("bad value %q", value)
}

// checkLimitRange checks the range of a value. The allocator checks it against other limits.
func checkLimitRange(l *allocator.Limit, text, value string) error {
	if l.Choices != nil || l.Kind == allocator.Sizes {
		return nil
	}
	number, err := strconv.ParseFloat(text, 64)
	whole := l.Kind == allocator.Count || l.Kind == allocator.Bytes
	switch {
	case err != nil || math.IsNaN(number), whole && strings.Trim(text, "0123456789") != "":
		return fmt.Errorf("bad value %q", value)
	case number < l.Min || number > l.Max:
		return fmt.Errorf("%s is out of range", value)
	case !isDecimalNumber(text):
		return fmt.Errorf("bad value %q", value)
	}
	return nil
}

// isDecimalNumber accepts what the allocator accepts as a number: digits, with or without a point among them.
func isDecimalNumber(text string) bool {
	whole, fraction, pointed := strings.Cut(text, ".")
	digits := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	return digits(whole) && (!pointed || digits(fraction))
}

// limitValuesText describes the values that a limit takes.
func limitValuesText(l *allocator.Limit) string {
	switch l.Kind {
	case allocator.Bytes:
		return fmt.Sprintf("a size from %s to %s", setting.SizeText(l.Min), setting.SizeText(l.Max))
	case allocator.Seconds:
		return fmt.Sprintf("a time from %s to %s", setting.SecondsText(l.Min), setting.SecondsText(l.Max))
	case allocator.Count:
		return fmt.Sprintf("a whole number from %s to %s", setting.NumberText(l.Min), setting.NumberText(l.Max))
	case allocator.Switch, allocator.Choice:
		return "one of " + strings.Join(l.Choices, ", ")
	case allocator.Sizes:
		return fmt.Sprintf("ascending sizes from %s to %s with colons between them", setting.SizeText(l.Min), setting.SizeText(l.Max))
	case allocator.Number:
	}
	return fmt.Sprintf("a number from %s to %s", setting.NumberText(l.Min), setting.NumberText(l.Max))
}

// exampleLimitValue returns a value that a limit takes.
func exampleLimitValue(l *allocator.Limit) string {
	switch l.Kind {
	case allocator.Bytes:
		return setting.SizeText(max(l.Min, min(l.Max, 1<<20)))
	case allocator.Seconds:
		return "30s"
	case allocator.Sizes:
		return "4K:64K:1M"
	case allocator.Number, allocator.Count, allocator.Switch, allocator.Choice:
	}
	return l.Text
}

// LimitsForModel returns a policy's limits as a model follows them.
func LimitsForModel(policy *allocator.Pool) []stats.Limit {
	var list []stats.Limit
	for _, l := range policy.Limits() {
		list = append(list, stats.LimitOf(&l))
	}
	return list
}
