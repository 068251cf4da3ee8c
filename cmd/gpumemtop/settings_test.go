package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestEnvironmentMirrorsFlags(t *testing.T) {
	c := defaults()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bind(flags, c, onRun)
	if err := flags.Parse([]string{"--policy", "pow2"}); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{
		"GPUMEMTOP_POLICY": "none", "GPUMEMTOP_SET": "min_block=4", "GPUMEMTOP_HEADLESS": "1",
		"GPUMEMTOP_REFRESH": "1s", "GPUMEMTOP_STACK_DEPTH": "", "GPUMEMTOP_FORCE": "1",
	}
	err := settle(flags, c, onRun, func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	if c.policy != "pow2" {
		t.Errorf("policy %q: the flag must win over the variable", c.policy)
	}
	if len(c.limits) != 1 || c.limits[0] != "min_block=4" || !c.headless || c.refresh != time.Second || c.depth != defaults().depth {
		t.Errorf("settings %+v", c)
	}
	if c.force {
		t.Error("files would be overwritten because of a variable")
	}
}

func TestEverySettingIsComplete(t *testing.T) {
	c := defaults()
	seen := map[string]scope{}
	for i := range settings {
		s := &settings[i]
		if s.help == "" || s.scope == 0 || seen[s.name]&s.scope != 0 {
			t.Errorf("--%s: incomplete, or twice on the same command", s.name)
		}
		seen[s.name] |= s.scope
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		s.bind(flags, c)
		if flags.Lookup(s.name) == nil {
			t.Errorf("--%s: no flag for a %T", s.name, s.field(c))
		}
		if name := s.envName(); name == wire.SessionEnv {
			t.Errorf("--%s: %s leads the target to its session", s.name, name)
		}
	}
}

// manualRow is a setting's row in the manual's table.
func manualRow(s *setting) string {
	variable := ""
	if name := s.envName(); name != "" {
		variable = "`" + name + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s |", s.flag(), variable, s.help+s.defaultText(defaults()))
}

var updateManual = flag.Bool("manual", false, "write the table of settings into the manual")

// TestManualHasTheSettings compares the table between the manual's markers with ours.
func TestManualHasTheSettings(t *testing.T) {
	const path, begin, end = "../../docs/MANUAL.md", "<!-- settings -->\n", "<!-- /settings -->"
	manual, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(manual), begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the manual has no place for a table of settings")
	}
	want := "| flag | environment | |\n|---|---|---|\n"
	for i := range settings {
		if s := &settings[i]; s.scope&(onRun|onRecord|onAttach) != 0 {
			want += manualRow(s) + "\n"
		}
	}
	if *updateManual {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("docs/MANUAL.md has another table of settings: run go generate ./cmd/gpumemtop")
	}
}

func TestPlanReadsLimits(t *testing.T) {
	c := defaults()
	c.limits = []string{"max_age=1m,max_waste_ratio=1.5", "min_block=64k"}
	c.maxCached = "512MiB"
	c.scrub, c.deviceMemory = "poison", "1.5 GiB"
	p, err := newPlan(c)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"max_cached_bytes": 512 << 20, "max_waste_ratio": 1.5, "min_block": 64 << 10}
	for _, l := range p.policy.Limits() {
		if value, set := want[l.Name]; set && l.Value != value {
			t.Errorf("%s is %v, want %v", l.Name, l.Value, value)
		}
	}
	config := p.config(true)
	if !config.Pooling || config.Wait != recordingPatience || config.Tags != wire.TagsStack ||
		config.Limits != "max_age=60,max_waste_ratio=1.5,min_block=65536,max_cached_bytes=536870912" {
		t.Errorf("config %+v", config)
	}
	if config.Scrub != wire.ScrubPoison || config.DeviceMemory != 3<<29 {
		t.Errorf("scrub %s, %d bytes of device memory", config.Scrub, config.DeviceMemory)
	}
	if live := p.config(false); live.Uses || !config.Uses {
		t.Error("uses are written for a recording, and only then")
	}
}
