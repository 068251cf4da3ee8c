package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor"
)

// settle gives the settings that no flag has set the values of the environment, and then those of the file of settings.
func settle(flags *pflag.FlagSet, c *config, where scope, lookup func(string) (string, bool)) error {
	c.origins = map[string]string{}
	if err := fromEnvironment(flags, c, where, lookup); err != nil {
		return err
	}
	if err := fromFile(flags, c, where); err != nil {
		return err
	}
	switch {
	case flags.Lookup("policy") == nil:
		return nil
	case c.policy == allocator.Auto && where&(onRun|onRecord) == 0:
		return fmt.Errorf("%s: policy %s goes from one to another while a program runs: here it can only be one of %s",
			c.nameOf("policy"), allocator.Auto, strings.Join(allocator.Names(), ", "))
	case c.file == nil:
		return nil
	}
	return c.checkFilePolicy()
}

// fromFile gives the settings that nothing has set so far those of the file. Of a flag that can be given several times
// those of the file count together, and only where there are no others.
func fromFile(flags *pflag.FlagSet, c *config, where scope) error {
	if c.configPath == "" {
		return nil
	}
	var err error
	if c.file, err = readConfig(c.configPath); err != nil {
		var placed *lineError
		if !errors.As(err, &placed) {
			err = fmt.Errorf("%s: %w", c.nameOf("config"), err)
		}
		return err
	}
	for i := range settings {
		s := &settings[i]
		e := c.file.entry(s.name)
		if e == nil || s.scope&where == 0 || !s.inFile() || flags.Changed(s.name) {
			continue
		}
		c.origins[s.name] = c.file.at(e.line)
		for _, value := range e.values {
			if err := flags.Set(s.name, value.text); err != nil {
				return fmt.Errorf("%s: %w", c.file.at(value.line), err)
			}
		}
	}
	return nil
}

// nameOf is what set a setting: a variable, or else the flag.
func (c *config) nameOf(name string) string {
	if origin := c.origins[name]; origin != "" {
		return origin
	}
	return "--" + name
}

// fileHas reports whether the value of a setting is the file's.
func (c *config) fileHas(name string) bool {
	e := c.file.entry(name)
	return e != nil && c.origins[name] == c.file.at(e.line)
}

// checkFilePolicy says in which line the file has a policy that there is not, or limits that the policy does not take.
func (c *config) checkFilePolicy() error {
	description, known := allocator.Describe(c.policy)
	if !known {
		_, err := allocator.New(c.policy, nil)
		return fmt.Errorf("%s: %w", c.nameOf("policy"), err)
	}
	if !c.fileHas("set") {
		return nil
	}
	set := c.file.entry("set")
	together := config{policy: c.policy}
	for _, value := range set.values {
		if err := c.checkFileLimit(&description, value.text); err != nil {
			return fmt.Errorf("%s: %w", c.file.at(value.line), err)
		}
		together.limits = append(together.limits, value.text)
	}
	parsed, err := parseLimits(&together)
	if err == nil {
		_, err = allocator.New(c.policy, parsed)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.file.at(set.line), err)
	}
	return nil
}

// checkFileLimit checks one value of the file's limits by itself.
func (c *config) checkFileLimit(description *allocator.Description, text string) error {
	parsed, err := parseSettings(&config{policy: c.policy, limits: []string{text}})
	if err != nil {
		return err
	}
	var known []string
	for i := range description.Limits {
		known = append(known, description.Limits[i].Name)
	}
	for i := range parsed {
		if !slices.Contains(known, parsed[i].Name) {
			return c.unknownLimit(parsed[i].Name, known)
		}
	}
	return nil
}

// unknownLimit says that the policy has no such limit, and whose it is when the file meant another policy.
func (c *config) unknownLimit(name string, known []string) error {
	meant := c.file.entry("policy")
	if meant != nil && !c.fileHas("policy") && meant.values[0].text != c.policy {
		return fmt.Errorf("limit %s is for policy %s, which the file names in line %d; policy %s, from %s, has no such limit: "+
			"give limits with --set, which takes the place of all of the file's, or take another file",
			name, meant.values[0].text, meant.line, c.policy, c.nameOf("policy"))
	}
	hint := "it has " + strings.Join(known, ", ")
	if near := doctor.Nearest(name, known); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(known) == 0 {
		hint = "it has none"
	}
	return fmt.Errorf("policy %s has no limit %s: %s", c.policy, name, hint)
}

// traced adds to an error that is about flags where their values come from.
func (c *config) traced(err error) error {
	var program ended
	if err == nil || errors.As(err, &program) {
		return err
	}
	text := err.Error()
	for i := range settings {
		name := settings[i].name
		origin := c.origins[name]
		// Some flags are on several lines of the table, one for each kind of command.
		first := slices.IndexFunc(settings, func(s setting) bool { return s.name == name }) == i
		if origin != "" && first && regexp.MustCompile("--"+name+`\b[^-]`).MatchString(text+" ") {
			err = fmt.Errorf("%w; --%s is from %s", err, name, origin)
		}
	}
	return err
}

// printConfig writes the settings that hold, with where they come from, as --config reads them.
func printConfig(w io.Writer, cmd *cobra.Command, c *config, where scope) error {
	if cmd.Flags().Lookup("policy") != nil { // what is printed can be read back
		limits, err := parseLimits(c)
		if err == nil {
			_, err = allocator.New(c.policy, limits)
		}
		if err != nil {
			return err
		}
	}
	var b, tables strings.Builder
	fmt.Fprintf(&b, "# The settings of %s.\n", cmd.CommandPath())
	for i := range settings {
		s := &settings[i]
		if s.scope&where == 0 || !s.inFile() {
			continue
		}
		origin := c.origins[s.name]
		switch {
		case origin != "":
		case cmd.Flags().Changed(s.name):
			origin = "flag"
		default:
			origin = "default"
		}
		var err error
		if list, several := s.field(c).(*[]string); several {
			err = printTable(&tables, s, *list, origin)
		} else {
			err = s.print(&b, c, origin)
		}
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String()+tables.String())
	return err
}

// print writes one setting.
func (s *setting) print(b *strings.Builder, c *config, origin string) error {
	var value any
	switch field := s.field(c).(type) {
	case *string:
		if *field == "" && *s.field(defaults()).(*string) == "" {
			fmt.Fprintf(b, "# %s is not set\n", s.name)
			return nil
		}
		value = *field
	case *time.Duration:
		value = field.String()
	default:
		value = field
	}
	line, err := tomlLine(s.name, value)
	fmt.Fprintf(b, "%s  # %s\n", line, comment(origin))
	return err
}

// printTable writes a setting that can be given several times.
func printTable(b *strings.Builder, s *setting, list []string, origin string) error {
	if len(list) == 0 {
		fmt.Fprintf(b, "# %s is not set\n", s.name)
		return nil
	}
	fmt.Fprintf(b, "\n[%s]  # %s\n", s.name, comment(origin))
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

// comment keeps a comment on its line, and TOML.
func comment(text string) string {
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
		return "", fmt.Errorf("%q, the value of %s, is not UTF-8: a file of settings cannot have it", text, name)
	}
	line, err := toml.Marshal(map[string]any{name: value})
	return strings.TrimSpace(string(line)), err
}
