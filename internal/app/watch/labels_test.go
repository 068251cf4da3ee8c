package watch

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestParseLabels(t *testing.T) {
	got, err := ParseLabels([]string{"team=vision,tier=a b", "_x9=a=b", "where=Zürich"})
	if want := map[string]string{"team": "vision", "tier": "a b", "_x9": "a=b", "where": "Zürich"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	var many []string
	for i := range labelsMax + 1 {
		many = append(many, fmt.Sprintf("l%d=1", i))
	}
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{[]string{"team"}, `bad value "team" for --label: want NAME=VALUE`},
		{[]string{"Team=a"}, `bad name "Team"`},
		{[]string{"9a=a"}, `bad name "9a"`},
		{[]string{strings.Repeat("a", labelNameMax+1) + "=a"}, "bad name"},
		{[]string{"a="}, "bad value of --label a"},
		{[]string{"a=\x1b[2J"}, "bad value of --label a"},
		{[]string{"a=\xff"}, "bad value of --label a"},
		{[]string{"a=" + strings.Repeat("x", labelValueMax+1)}, "bad value of --label a"},
		{[]string{"a=1", "a=2"}, "--label a has two values"},
		{many, "more than 16 labels"},
	} {
		if got, err := ParseLabels(append([]string{"good=1"}, c.texts...)); got["good"] != "1" || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", c.texts, err, c.want)
		}
	}
}

// FuzzParseLabels: what is accepted is within bounds.
func FuzzParseLabels(f *testing.F) {
	for _, seed := range []string{"", "a=b", "a=b,c=d", "a", "=b", "a=b,a=c", ",,", "_=\x7f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		labels, err := ParseLabels([]string{text})
		if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%v, %q", labels, err)
		}
		for name, value := range labels {
			if name == "" || len(name) > labelNameMax || value == "" || len(value) > labelValueMax || len(labels) > labelsMax {
				t.Errorf("%q=%q of %d", name, value, len(labels))
			}
		}
	})
}

func TestIdentity(t *testing.T) {
	for name, value := range map[string]string{
		"USER": "ada", "SLURM_JOB_ID": "17", "SLURM_STEP_ID": "0", "SLURM_PROCID": "", "SLURM_NTASKS": "", "GPUMEMTOP_APP": "", "OMPI_COMM_WORLD_RANK": "3", "GIT_COMMIT": "", "GITHUB_SHA": "abc\n",
	} {
		t.Setenv(name, value)
	}
	s := Subject{Labels: map[string]string{"team": "vision"}}
	id := s.identityForFleet()
	if want := (wire.Place{Job: "17", Step: "0", Rank: "3"}); id.User != "ada" || id.Place != want || id.Revision != "abc " || id.Labels["team"] != "vision" || len(id.Boot) != 36 {
		t.Errorf("%+v", id)
	}
	s.Attached, s.App = true, "x"
	if id := s.identityForFleet(); id.User != "" || id.Place != (wire.Place{App: "x"}) || id.Revision != "" || id.Labels["team"] != "vision" {
		t.Errorf("%+v", id)
	}
}
