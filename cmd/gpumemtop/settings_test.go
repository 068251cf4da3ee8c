package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/watch"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestEnvironmentMirrorsFlags(t *testing.T) {
	o := defaultRun()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bindFlags(flags, dashboardRunFields(o))
	if err := flags.Parse([]string{"--policy", "pow2"}); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"GPUMEMTOP_POLICY": "none", "GPUMEMTOP_SET": "min_block=4", "GPUMEMTOP_HEADLESS": "1",
		"GPUMEMTOP_REFRESH": "1s", "GPUMEMTOP_STACK_DEPTH": "", "GPUMEMTOP_FORCE": "1",
	}
	if _, err := setUnsetSettings(flags, func(name string) (string, bool) { v, ok := variables[name]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	want := defaultRun()
	want.Setup.Policy, want.Setup.Set = "pow2", []string{"min_block=4"} // the flag wins over the variable
	want.Dashboard.Headless, want.Dashboard.Refresh = true, time.Second
	if !reflect.DeepEqual(o, want) { // with Force, a variable would overwrite files
		t.Errorf("have %+v, want %+v", o, want)
	}
}

// TestPlanMeansArena: a plan takes the place of the default policy, and of no policy that was named.
func TestPlanMeansArena(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // the policy; empty: an error
	}{
		{nil, allocator.Default},
		{[]string{"--plan", "x"}, watch.PlannedPolicy},
		{[]string{"--plan", "x", "--policy", watch.PlannedPolicy}, watch.PlannedPolicy},
		{[]string{"--plan", "x", "--policy", allocator.Default}, ""},
	} {
		o := defaultRun()
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		bindFlags(flags, dashboardRunFields(o))
		if err := flags.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if _, err := setUnsetSettings(flags, func(string) (string, bool) { return "", false }); err != nil {
			t.Fatal(err)
		}
		_, err := o.Setup.ReadPlan()
		refused := err != nil && strings.Contains(err.Error(), "leave out one of --plan and --policy")
		if refused != (c.want == "") || !refused && o.Setup.Policy != c.want {
			t.Errorf("%q: policy %s, %v", c.args, o.Setup.Policy, err)
		}
	}
}

// TestEverySettingIsComplete: each has help, a group, a key of its own and a command.
func TestEverySettingIsComplete(t *testing.T) {
	used := map[string]bool{}
	for _, cmd := range append(newRootCommand().Commands(), newRootCommand()) {
		for _, s := range settingsOf(cmd.Flags()) {
			used[s.tableKey()] = true
		}
	}
	seen := map[string]bool{}
	for i := range settings {
		s := &settings[i]
		if s.help == "" || !slices.Contains(groups, s.group) || seen[s.tableKey()] || !used[s.tableKey()] {
			t.Errorf("--%s: incomplete, twice in the table, or of no command", s.tableKey())
		}
		seen[s.tableKey()] = true
		if name := s.envName(); name == wire.SessionEnv {
			t.Errorf("--%s: %s leads the target to its session", s.name, name)
		}
	}
}
