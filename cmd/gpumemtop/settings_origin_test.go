package main

import (
	"bytes"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// printed returns the settings of a run with some on the command line, and how --print-config writes them.
func printed(t *testing.T, args ...string) (*watch.RunOptions, string, error) {
	t.Helper()
	o := defaultRun()
	var out bytes.Buffer
	cmd := newCommand(&cobra.Command{Use: "test"}, dashboardRunFields(o), nil)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append(args, "--print-config"))
	err := cmd.Execute()
	return o, out.String(), err
}

// roundTrip demands that settings of a file are the same when they are written and read again.
func roundTrip(t *testing.T, entries []entry) {
	var args []string
	for _, e := range entries {
		for _, value := range e.values {
			args = append(args, "--"+e.setting.name+"="+value.text)
		}
	}
	first, text, err := printed(t, args...)
	if err != nil {
		return // limits that a policy does not take
	}
	path := filepath.Join(t.TempDir(), "again.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	second, again, err := printed(t, "--config", path)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	first.Setup.Set, second.Setup.Set = joined(first.Setup.Set), joined(second.Setup.Set)
	if !reflect.DeepEqual(first, second) {
		t.Fatalf("%+v became %+v through\n%s", first, second, text)
	}
	for line := range strings.Lines(again) {
		if strings.Contains(line, "# flag") || strings.Contains(line, "# default") && !strings.Contains(text, line) {
			t.Fatalf("where it is from is wrong in %q, of\n%s", line, again)
		}
	}
}

// joined splits limits that were given together.
func joined(limits []string) []string {
	var list []string
	for one := range strings.SplitSeq(strings.Join(limits, ","), ",") {
		name, value, _ := strings.Cut(one, "=")
		list = append(list, strings.TrimSpace(name)+"="+strings.TrimSpace(value))
	}
	return list
}

// What --print-config writes says where each setting is from, and reads back as the same settings.
func TestPrintConfig(t *testing.T) {
	t.Setenv("GPUMEMTOP_TAGS", "size")
	const file = "policy = \"slab\"\noutput = \"a # b\\n\\\"c\\\".gmt\"\n[set]\nmax_part = \"1MiB\"\n"
	path := filepath.Join(t.TempDir(), "x\n.toml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	_, text, err := printed(t, "--config", path, "--refresh", "2s")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# The settings of test.\n", "\npolicy = \"slab\"  # ", "x?.toml, line 1\n", "\ntags = \"size\"  # GPUMEMTOP_TAGS\n",
		"\nrefresh = \"2s\"  # flag\n", "\nstack-depth = 8  # default\n", "\n# device-memory is not set\n", "\nmax_part = \"1MiB\"\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	entries, err := parseSettings(text)
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, entries)
	if _, _, err := printed(t, "-o", "\xff.gmt"); err == nil || !strings.Contains(err.Error(), "is not UTF-8") {
		t.Errorf("a name that TOML cannot have: %v", err)
	}
}
