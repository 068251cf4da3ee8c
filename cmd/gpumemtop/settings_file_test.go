package main

import (
	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// settled returns the settings of a run from a command line and a settings file.
func settled(t *testing.T, file string, args ...string) (*watch.RunOptions, *origins, error) {
	t.Helper()
	o := defaultRun()
	origins, err := settleFile(t, dashboardRunFields(o), file, args...)
	return o, origins, err
}

func defaultRun() *watch.RunOptions {
	return &watch.RunOptions{Options: watch.Options{Setup: defaultSetupOptions(), Dashboard: defaultDashboardOptions()}}
}

func settleFile(t *testing.T, fields fields, file string, args ...string) (*origins, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bindFlags(flags, fields)
	if err := flags.Parse(append([]string{"--config", path}, args...)); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"GPUMEMTOP_TAGS": "size"}
	return setUnsetSettings(flags, func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
}

// A flag wins over a variable, that over the file, and the file over the default. Settings of other commands are ignored.
func TestFileIsLast(t *testing.T) {
	c, _, err := settled(t, `
policy = "slab"
tags = "none"
stack-depth = 4
refresh = "2s"
headless = true
device-memory = 1048576
[set]
max_part = "1MiB"
max_age = 2.5
`, "--stack-depth", "7")
	if err != nil {
		t.Fatal(err)
	}
	if s := &c.Setup; s.Policy != "slab" || s.Tags != "size" || s.Depth != 7 || s.DeviceMemory != "1048576" ||
		c.Dashboard.Refresh != 2*time.Second || !c.Dashboard.Headless {
		t.Errorf("settings %+v", c)
	}
	if want := []string{"max_part=1MiB", "max_age=2.5"}; !reflect.DeepEqual(c.Setup.Set, want) {
		t.Errorf("limits %q", c.Setup.Set)
	}
	choice := watch.PolicyChoice{Policy: allocator.Default}
	_, err = settleFile(t, fixedPolicyFields(&choice), "headless = true\nset = [\"max_age=1,min_block=4K\", \"max_waste_ratio=2\"]")
	if err != nil || len(choice.Set) != 2 {
		t.Errorf("%v; a replay got %+v", err, choice)
	}
	c, _, err = settled(t, "set = {max_age = 1}", "--set", "min_block=4K")
	if err != nil || len(c.Setup.Set) != 1 || c.Setup.Set[0] != "min_block=4K" {
		t.Errorf("%v; limits %q: those of the flag count alone", err, c.Setup.Set)
	}
}

// Errors name the line.
func TestFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\npolcy = \"none\"": `line 2: unknown setting "polcy": did you mean policy?`,
		"policy = \"slab\"\nx = " + strings.Repeat("[", 17) + strings.Repeat("]", 17): "line 2: nested too deeply",
		"zzz = 1":                                          `line 1: unknown setting "zzz": want one of policy, set, `,
		"max_cached = 1":                                   "did you mean max-cached?",
		"policy = 5":                                       "line 1: policy is 5: want a text in quotes",
		"policy = {a = 1}":                                 "line 1: policy is a table: want a text",
		"headless = \"yes\"":                               `line 1: headless is the text "yes": want true or false`,
		"stack-depth = 1.5":                                "line 1: stack-depth is 1.5: want a whole number",
		"refresh = 100":                                    `line 1: refresh is 100: want a time in quotes`,
		"refresh = \"soon\"":                               `line 1: bad value "soon" for refresh: want what --refresh takes`,
		"policy = 1979-05-27":                              "line 1: policy is a date or time",
		"force = true":                                     "line 1: a settings file cannot set force: give --force on the command line",
		"config = \"x\"":                                   "line 1: a settings file cannot set config",
		"\n\npolicy = \"a\"\npolicy = \"b\"":               "line 4: key policy is already defined: want TOML",
		"[set]\nmax_age=1\n[set]\nmin_block=2":             "line 3: ",
		"policy":                                           "line 1: ",
		"\n\npolicy = \"\\ \"\n":                           "line 3: ",
		"\npolicy = \"a\nb":                                "line 2: ",
		"\n\"\\":                                           "line 2: ",
		"\x00\x01\xff\xfe":                                 "line 1: ",
		"# \x1b[2J\npolicy = \x1b[2J":                      "line 1: ",
		"set = 3":                                          "line 1: set is 3: want a table",
		"[[set]]\nmax_age = 1":                             "set has a table in its list: want texts",
		"set = [1]":                                        "line 1: set has 1 in its list: want texts",
		"[set]\n\nmax_age = [1]":                           "line 3: limit max_age is a list",
		"[set]\n\"max_age=1,min_block\" = 3":               `line 2: "max_age=1,min_block" is not the name of a limit`,
		"[set]\nmax_age = \"1,min_block=3\"":               "line 2: limit max_age is the text",
		"[set]\n\nmax_age = \"soon\"":                      "line 3: --set max_age=soon: limit max_age: bad time",
		"set.max_aeg = 3":                                  "line 1: policy futhark has no limit max_aeg: did you mean max_age?",
		"[set]\nother = 3":                                 "line 2: policy futhark has no limit other: it has ",
		"policy = \"none\"\n[set]\nother = 3":              "line 3: policy none has no limit other: it has none",
		"set = [\"max_age\"]":                              "line 1: bad value \"max_age\" for --set",
		"\nset = [\"max_age=1\", \"max_age=2\"]":           "line 2: limit max_age is given twice",
		"tags = \"x\"\n\npolicy = \"slap\"":                `line 3: unknown policy "slap"`,
		strings.Repeat("#", settingsFileMax+1):             "has more than 65536 bytes",
		"set = " + strings.Repeat("[", settingsFileMax-10): "line 1: ",
	} {
		_, _, err := settled(t, text)
		shown := min(len(text), 60)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.toml") {
			t.Errorf("%q: %v; want %q", text[:shown], err, want)
		} else if strings.ContainsAny(err.Error(), "\x1b\x00\n") {
			t.Errorf("%q: the error is not fit for a terminal: %q", text[:shown], err)
		}
	}
}

// Limits of the file for its policy are an error under another policy.
func TestFileOfAnotherPolicy(t *testing.T) {
	const file = "policy = \"slab\"\n\n[set]\nmax_part = \"1MiB\"\n"
	_, _, err := settled(t, file, "--policy", "futhark")
	for _, want := range []string{"x.toml, line 4: limit max_part is for policy slab", "in line 1", "policy futhark, from --policy"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if c, _, err := settled(t, file, "--policy", "futhark", "--set", "max_age=1"); err != nil || len(c.Setup.Set) != 1 {
		t.Errorf("%v; limits %q", err, c.Setup.Set)
	}
}

// An error about a flag says where its value is from, unless that is the flag.
func TestExplain(t *testing.T) {
	c, origins, err := settled(t, "\nstack-depth = 99\nmax-cached = 1")
	if err != nil {
		t.Fatal(err)
	}
	if got := origins.addSourcesToError(c.Check()).Error(); !strings.Contains(got, "bad value 99 for --stack-depth: want 1 to 32; --stack-depth is from ") || !strings.HasSuffix(got, "x.toml, line 2") {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"see --tags":            "see --tags; --tags is from GPUMEMTOP_TAGS",
		"--max-cached: too big": "--max-cached: too big; --max-cached is from ",
		"bad --max, --policy":   "bad --max, --policy",
	} {
		if got := origins.addSourcesToError(errors.New(text)).Error(); !strings.HasPrefix(got, want) || want == text && got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if origins.addSourcesToError(nil) != nil {
		t.Error("an error out of nothing")
	}
}

// Every command with settings that have a variable takes a settings file, and no other does.
func TestCommandsWithFiles(t *testing.T) {
	for _, cmd := range append(newRootCommand().Commands(), newRootCommand()) {
		variables := slices.ContainsFunc(settingsOf(cmd.Flags()), func(s *setting) bool { return s.mayBeInFile() })
		if takes := cmd.Flags().Lookup("config") != nil; takes != variables {
			t.Errorf("%s: has variables: %v, takes files: %v", cmd.Name(), variables, takes)
		}
	}
}

// FuzzSettingsFile reads settings files: each is taken or refused with a line, and what is taken is, written and read
// again, the same.
func FuzzSettingsFile(f *testing.F) {
	f.Add("policy = \"slab\"\n[set]\nmax_part = \"1MiB\"\nmax_age = 2.5\n")
	f.Add("set = [\"max_age=1,min_block=4K\"]\nheadless = true\nrefresh = \"1s\"\noutput = \"\\u00e9\\n%p\"")
	f.Add("set.\"max_age\" = 0x10\nset.'min_block' = 1_000\nstack-depth = -0\n")
	f.Add("policy = \"\"\ntags = \"\"\noutput = \"\"")
	f.Add("\"\\")
	f.Add("\x1a0")
	f.Add("[set]\nx = nan\n[[set]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > settingsFileMax {
			return
		}
		entries, err := parseSettings(text)
		var placed *lineError
		if err != nil && (!errors.As(err, &placed) || placed.line < 1) {
			t.Fatalf("%v has no line", err)
		}
		for _, e := range entries {
			if e.line < 1 || e.line > strings.Count(text, "\n")+1 {
				t.Fatalf("%s is in line %d of %q", e.setting.name, e.line, text)
			}
		}
		if err != nil {
			return
		}
		roundTrip(t, entries)
	})
}
