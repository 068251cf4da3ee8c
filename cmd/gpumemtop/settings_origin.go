package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor"
)

// origins says where the settings of a command come from.
type origins struct {
	flags *pflag.FlagSet
	file  *settingsFile     // nil without one
	of    map[string]string // variable or line of the file, by flag; missing for values from flags and defaults
}

// setUnsetSettings sets the settings that no flag has set from the environment, and then from the settings file.
func setUnsetSettings(flags *pflag.FlagSet, lookup func(string) (string, bool)) (*origins, error) {
	o := &origins{flags: flags, of: map[string]string{}}
	if err := o.setFromEnvironment(lookup); err != nil {
		return nil, err
	}
	if err := o.setFromSettingsFile(lookup); err != nil {
		return nil, err
	}
	return o, o.checkPolicy()
}

func (o *origins) setFromEnvironment(lookup func(string) (string, bool)) error {
	for _, s := range settingsOf(o.flags) {
		if !s.env || o.flags.Changed(s.name) {
			continue
		}
		value, ok := lookup(s.envName())
		if !ok || value == "" {
			continue
		}
		if err := o.flags.Set(s.name, value); err != nil {
			return fmt.Errorf("bad value %q in %s: want what --%s takes", value, s.envName(), s.name)
		}
		o.of[s.name] = s.envName()
	}
	return nil
}

// setFromSettingsFile reads the file that --config names, or else the user's. For a flag that can be given several times, all values in the
// file count, but only if neither flags nor variables give any.
func (o *origins) setFromSettingsFile(lookup func(string) (string, bool)) error {
	flag := o.flags.Lookup("config")
	if flag == nil { // the command takes no file
		return nil
	}
	var err error
	switch {
	case flag.Value.String() != "":
		o.file, err = readSettingsFile(flag.Value.String())
	case !flag.Changed:
		o.file, err = readUserSettings(lookup)
	}
	if err != nil {
		var placed *lineError
		if !errors.As(err, &placed) {
			err = fmt.Errorf("%s: %w", o.sourceOfSetting("config"), err)
		}
		return err
	}
	for _, s := range settingsOf(o.flags) {
		e := o.file.entryOfSetting(s.name)
		if e == nil || !s.mayBeInFile() || o.flags.Changed(s.name) || s.name == "set" && o.hasLimitsOfOtherPolicy() {
			continue
		}
		o.of[s.name] = o.file.fileAndLine(e.line)
		for _, value := range e.values {
			if err := o.flags.Set(s.name, value.text); err != nil {
				return fmt.Errorf("%s: %w", o.file.fileAndLine(value.line), err)
			}
		}
	}
	return nil
}

// hasLimitsOfOtherPolicy reports whether the limits in the user's file are for another policy than a flag or variable names.
func (o *origins) hasLimitsOfOtherPolicy() bool {
	return o.file.users && o.flags.Changed("policy") && !o.isFromFile("policy")
}

// sourceOfSetting returns what has set a setting: a variable, a line of the file, or else the flag.
func (o *origins) sourceOfSetting(flag string) string {
	if origin := o.of[flag]; origin != "" {
		return origin
	}
	return "--" + flag
}

// isFromFile reports whether a setting's value is from the file.
func (o *origins) isFromFile(flag string) bool {
	e := o.file.entryOfSetting(flag)
	return e != nil && o.of[flag] == o.file.fileAndLine(e.line)
}

// policyChoice returns the policy and limits.
func (o *origins) policyChoice() (policyChoice watch.PolicyChoice) {
	policyChoice.Policy, _ = o.flags.GetString("policy") // errors: the command has no such flag
	policyChoice.Set, _ = o.flags.GetStringArray("set")
	policyChoice.MaxCached, _ = o.flags.GetString("max-cached")
	return policyChoice
}

// impliedPolicy returns the policy that other flags want, if they want one.
func (o *origins) impliedPolicy() string {
	plan, _ := o.flags.GetString("plan") // errors: the command has no such flag
	if spill, _ := o.flags.GetBool("spill"); spill && plan == "" {
		return "none"
	}
	if plan != "" {
		return watch.PlannedPolicy
	}
	return ""
}

// checkPolicy checks the policy, and the limits from the file, whose errors name a line.
func (o *origins) checkPolicy() error {
	flag := o.flags.Lookup("policy")
	if flag == nil {
		return nil
	}
	if implied := o.impliedPolicy(); implied != "" && !flag.Changed {
		if err := flag.Value.Set(implied); err != nil {
			return err
		}
	}
	choice := o.policyChoice()
	if choice.Policy == allocator.Auto && flag.Annotations[keyAnnotation][0] == "policy:fixed" {
		return fmt.Errorf("%s: policy %s switches policies while a program runs: here it can only be one of %s",
			o.sourceOfSetting("policy"), allocator.Auto, strings.Join(allocator.PolicyNames(), ", "))
	}
	if err := checkPolicyName(choice.Policy); err != nil {
		return fmt.Errorf("%s: %w", o.sourceOfSetting("policy"), err)
	}
	if o.file == nil || !o.isFromFile("set") {
		return nil
	}
	description, _ := allocator.DescribePolicy(choice.Policy)
	set := o.file.entryOfSetting("set")
	together := watch.PolicyChoice{Policy: choice.Policy}
	for _, value := range set.values {
		if err := o.checkLimit(&description, value.text); err != nil {
			return fmt.Errorf("%s: %w", o.file.fileAndLine(value.line), err)
		}
		together.Set = append(together.Set, value.text)
	}
	if _, _, err := together.NewPool(); err != nil {
		return fmt.Errorf("%s: %w", o.file.fileAndLine(set.line), err)
	}
	return nil
}

// checkLimit checks one value of the file's limits by itself.
func (o *origins) checkLimit(description *allocator.Description, text string) error {
	choice := o.policyChoice()
	parsed, err := choice.ParseLimit(text)
	if err != nil {
		return err
	}
	var known []string
	for i := range description.Limits {
		known = append(known, description.Limits[i].Name)
	}
	for i := range parsed {
		if name := parsed[i].Name; !slices.Contains(known, name) {
			return o.unknownLimitError(choice.Policy, name, known)
		}
	}
	return nil
}

// unknownLimitError says that the policy has no such limit. The limit may be for the policy in the file, which a flag replaced.
func (o *origins) unknownLimitError(policy, name string, known []string) error {
	meant := o.file.entryOfSetting("policy")
	if meant != nil && !o.isFromFile("policy") && meant.values[0].text != policy {
		return fmt.Errorf("limit %s is for policy %s, which the file names in line %d; policy %s, from %s, has no such limit: "+
			"give limits with --set, which replace all of the file's, or another file",
			name, meant.values[0].text, meant.line, policy, o.sourceOfSetting("policy"))
	}
	hint := "it has " + strings.Join(known, ", ")
	if near := doctor.NearestWord(name, known); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(known) == 0 {
		hint = "it has none"
	}
	return fmt.Errorf("policy %s has no limit %s: %s", policy, name, hint)
}

// addSourcesToError adds to an error about flags where their values come from.
func (o *origins) addSourcesToError(err error) error {
	if err == nil || console.IsSilent(err) {
		return err
	}
	text := err.Error() + " "
	for _, name := range slices.Sorted(maps.Keys(o.of)) {
		if regexp.MustCompile("--" + name + `\b[^-]`).MatchString(text) {
			err = fmt.Errorf("%w; --%s is from %s", err, name, o.of[name])
		}
	}
	return err
}

// printConfig writes the settings in effect, and where each comes from, as a settings file.
func printConfig(w io.Writer, command string, o *origins) error {
	if o.flags.Lookup("policy") != nil { // the file must be readable by us
		choice := o.policyChoice()
		if _, _, err := choice.NewPool(); err != nil {
			return err
		}
	}
	var b, tables strings.Builder
	fmt.Fprintf(&b, "# The settings of %s.\n", command)
	for _, s := range settingsOf(o.flags) {
		if !s.mayBeInFile() {
			continue
		}
		origin, flag := o.of[s.name], o.flags.Lookup(s.name)
		switch {
		case origin != "":
		case flag.Changed:
			origin = "flag"
		default:
			origin = "default"
		}
		var err error
		if list, several := flag.Value.(pflag.SliceValue); several && len(list.GetSlice()) > 0 {
			err = printRepeatedSetting(&tables, s.name, list.GetSlice(), origin)
		} else if several {
			fmt.Fprintf(&b, "# %s is not set\n", s.name)
		} else {
			err = printSetting(&b, o.flags, flag, origin)
		}
		if err != nil {
			return err
		}
	}
	return console.WriteText(w, b.String()+tables.String())
}

func printSetting(b *strings.Builder, flags *pflag.FlagSet, flag *pflag.Flag, origin string) error {
	value, err := flagValue(flags, flag)
	if err != nil {
		return err
	}
	if value == "" && flag.DefValue == "" {
		fmt.Fprintf(b, "# %s is not set\n", flag.Name)
		return nil
	}
	line, err := tomlLine(flag.Name, value)
	fmt.Fprintf(b, "%s  # %s\n", line, cleanComment(origin))
	return err
}

func flagValue(flags *pflag.FlagSet, flag *pflag.Flag) (any, error) {
	switch flag.Value.Type() {
	case "bool":
		return flags.GetBool(flag.Name)
	case "int":
		return flags.GetInt(flag.Name)
	}
	if list, several := flag.Value.(pflag.SliceValue); several {
		return list.GetSlice(), nil
	}
	return flag.Value.String(), nil
}

// printRepeatedSetting writes a setting that can be given several times.
func printRepeatedSetting(b *strings.Builder, name string, list []string, origin string) error {
	fmt.Fprintf(b, "\n[%s]  # %s\n", name, cleanComment(origin))
	for assignment := range strings.SplitSeq(strings.Join(list, ","), ",") {
		name, value, _ := strings.Cut(assignment, "=")
		line, err := tomlLine(strings.TrimSpace(name), strings.TrimSpace(value))
		if err != nil {
			return err
		}
		b.WriteString(line + "\n")
	}
	return nil
}

// cleanComment replaces characters that may not be in a comment of TOML.
func cleanComment(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

// tomlLine writes a key and its value.
func tomlLine(name string, value any) (string, error) {
	if text, ok := value.(string); ok && !utf8.ValidString(text) {
		return "", fmt.Errorf("%q, the value of %s, is not UTF-8: a settings file cannot have it", text, name)
	}
	if !limitName().MatchString(name) {
		name = tomlText(name)
	}
	switch value := value.(type) {
	case string:
		return name + " = " + tomlText(value), nil
	case []string:
		texts := make([]string, len(value))
		for i := range value {
			texts[i] = tomlText(value[i])
		}
		return name + " = [" + strings.Join(texts, ", ") + "]", nil
	}
	return fmt.Sprintf("%s = %v", name, value), nil
}

// tomlText writes a text in quotes. TOML knows the escapes that JSON has.
func tomlText(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a builder never fails
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}
