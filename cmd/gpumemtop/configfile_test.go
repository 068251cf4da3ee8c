package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// settled are the settings of a command line and a file of settings.
func settled(t *testing.T, where scope, file string, args ...string) (*config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c := defaults()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bind(flags, c, where)
	if err := flags.Parse(append([]string{"--config", path}, args...)); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"GPUMEMTOP_TAGS": "size"}
	return c, settle(flags, c, where, func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
}

// A flag wins over a variable, that over the file, and the file over the default. What is another command's is left.
func TestFileIsLast(t *testing.T) {
	c, err := settled(t, onRun, `
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
	if c.policy != "slab" || c.tags != "size" || c.depth != 7 || c.refresh != 2*time.Second || !c.headless || c.deviceMemory != "1048576" {
		t.Errorf("settings %+v", c)
	}
	if want := []string{"max_part=1MiB", "max_age=2.5"}; !reflect.DeepEqual(c.limits, want) {
		t.Errorf("limits %q", c.limits)
	}
	c, err = settled(t, onReplay, "headless = true\nset = [\"max_age=1,min_block=4K\", \"max_waste_ratio=2\"]")
	if err != nil || c.headless || len(c.limits) != 2 {
		t.Errorf("%v; a replay got %+v", err, c)
	}
	c, err = settled(t, onRun, "set = {max_age = 1}", "--set", "min_block=4K")
	if err != nil || len(c.limits) != 1 || c.limits[0] != "min_block=4K" {
		t.Errorf("%v; limits %q: those of the flag count alone", err, c.limits)
	}
}

// Whatever is wrong is said with its line.
func TestFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\npolcy = \"none\"":                         `line 2: unknown setting "polcy": did you mean policy?`,
		"zzz = 1":                                    `line 1: unknown setting "zzz": there are policy, set, `,
		"max_cached = 1":                             "did you mean max-cached?",
		"policy = 5":                                 "line 1: policy is 5: want a text in quotes",
		"policy = {a = 1}":                           "line 1: policy is a table: want a text",
		"headless = \"yes\"":                         `line 1: headless is the text "yes": want true or false`,
		"stack-depth = 1.5":                          "line 1: stack-depth is 1.5: want a whole number",
		"refresh = 100":                              `line 1: refresh is 100: want a time in quotes`,
		"refresh = \"soon\"":                         `line 1: bad value "soon" for refresh: want what --refresh takes`,
		"policy = 1979-05-27":                        "line 1: policy is a date or time",
		"force = true":                               "line 1: force is no setting for a file: give --force on the command line",
		"config = \"x\"":                             "line 1: config is no setting for a file",
		"\n\npolicy = \"a\"\npolicy = \"b\"":         "line 4: Key 'policy' has already been defined: want TOML",
		"[set]\nmax_age=1\n[set]\nmin_block=2":       "line 3: ",
		"policy":                                     "line 1: ",
		"\n\npolicy = \"\\ \"\n":                     "line 3: ",
		"\npolicy = \"a\nb":                          "line 2: ",
		"\n\"\\":                                     "line 2: ",
		"\x00\x01\xff\xfe":                           "line 1: ",
		"# \x1b[2J\npolicy = \x1b[2J":                "line 1: ",
		"set = 3":                                    "line 1: set is 3: want a table",
		"[[set]]\nmax_age = 1":                       "set is a list: want a table",
		"set = [1]":                                  "line 1: set has 1 in its list: want texts",
		"[set]\n\nmax_age = [1]":                     "line 3: limit max_age is a list",
		"[set]\n\"max_age=1,min_block\" = 3":         `line 2: "max_age=1,min_block" is no name of a limit`,
		"[set]\nmax_age = \"1,min_block=3\"":         "line 2: limit max_age is the text",
		"[set]\n\nmax_age = \"soon\"":                "line 3: --set max_age=soon: limit max_age: bad time",
		"set.max_aeg = 3":                            "line 1: policy futhark has no limit max_aeg: did you mean max_age?",
		"[set]\nother = 3":                           "line 2: policy futhark has no limit other: it has ",
		"policy = \"none\"\n[set]\nother = 3":        "line 3: policy none has no limit other: it has none",
		"set = [\"max_age\"]":                        "line 1: bad value \"max_age\" for --set",
		"\nset = [\"max_age=1\", \"max_age=2\"]":     "line 2: limit max_age is given twice",
		"tags = \"x\"\n\npolicy = \"slap\"":          `line 3: unknown policy "slap"`,
		strings.Repeat("#", configMax+1):             "has more than 65536 bytes",
		"set = " + strings.Repeat("[", configMax-10): "line 1: ",
	} {
		_, err := settled(t, onRun, text)
		shown := min(len(text), 60)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.toml") {
			t.Errorf("%q: %v; want %q", text[:shown], err, want)
		} else if strings.ContainsAny(err.Error(), "\x1b\x00\n") {
			t.Errorf("%q: the error is not fit for a terminal: %q", text[:shown], err)
		}
	}
}

// Limits of the file that are for its policy are not given to another without a word.
func TestFileOfAnotherPolicy(t *testing.T) {
	const file = "policy = \"slab\"\n\n[set]\nmax_part = \"1MiB\"\n"
	_, err := settled(t, onRun, file, "--policy", "futhark")
	for _, want := range []string{"x.toml, line 4: limit max_part is for policy slab", "in line 1", "policy futhark, from --policy"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if c, err := settled(t, onRun, file, "--policy", "futhark", "--set", "max_age=1"); err != nil || len(c.limits) != 1 {
		t.Errorf("%v; limits %q", err, c.limits)
	}
}

// An error about a flag says where its value is from, when that was no flag.
func TestTraced(t *testing.T) {
	c, err := settled(t, onRun, "\nstack-depth = 99\nmax-cached = 1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = newPlan(c)
	if got := c.traced(err).Error(); !strings.Contains(got, "bad value 99 for --stack-depth: want 1 to 32; --stack-depth is from ") || !strings.HasSuffix(got, "x.toml, line 2") {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"see --tags":            "see --tags; --tags is from GPUMEMTOP_TAGS",
		"--max-cached: too big": "--max-cached: too big; --max-cached is from ",
		"bad --max, --policy":   "bad --max, --policy",
	} {
		if got := c.traced(errors.New(text)).Error(); !strings.HasPrefix(got, want) || want == text && got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if c.traced(nil) != nil {
		t.Error("an error out of nothing")
	}
}

// Every command with settings that have a variable takes a file of them, and no other does.
func TestCommandsWithFiles(t *testing.T) {
	var mirrored, takes scope
	for i := range settings {
		switch s := &settings[i]; {
		case s.name == "config" || s.name == "print-config":
			takes |= s.scope
		case s.env:
			mirrored |= s.scope
		}
	}
	if mirrored != takes {
		t.Errorf("commands %b have variables, %b take files", mirrored, takes)
	}
}

// FuzzConfigFile reads files of settings: each is taken or refused with a line, and what is taken is, written and read
// again, the same.
func FuzzConfigFile(f *testing.F) {
	f.Add("policy = \"slab\"\n[set]\nmax_part = \"1MiB\"\nmax_age = 2.5\n")
	f.Add("set = [\"max_age=1,min_block=4K\"]\nheadless = true\nrefresh = \"1s\"\noutput = \"\\u00e9\\n%p\"")
	f.Add("set.\"max_age\" = 0x10\nset.'min_block' = 1_000\nstack-depth = -0\n")
	f.Add("policy = \"\"\ntags = \"\"\noutput = \"\"")
	f.Add("\"\\")
	f.Add("\x1a0")
	f.Add("[set]\nx = nan\n[[set]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > configMax {
			return
		}
		entries, err := parseConfig(text)
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
