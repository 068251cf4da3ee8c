package report

import (
	"bytes"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/recording"
	"codeberg.org/gpumemtop/gpumemtop/internal/replay"
)

func TestPlanText(t *testing.T) {
	a := replay.Arena{Layouts: 1, Period: 10, Outside: 2, Size: 3 << 20, Bound: 2 << 20, Planned: 97}
	a.Departures[0], a.Departures[5] = 1, 2
	for want, text := range map[string]string{
		"":                                      ReplayPlanText("slab", &a),
		"none: no period of requests was found": ReplayPlanText("arena", &replay.Arena{}),
		"none: the recording has none of the plan's call sites": ReplayPlanText("arena", &replay.Arena{Given: true}),
		"8 requests of each period in 3.00 MiB (at least 2.00 MiB, gap 50.0 %); 2 outside; 97.0 % of 100 requests as planned; 1 no plan yet, 2 range in use": ReplayPlanText("arena", &a),
		"1 request of each period in 4.00 KiB (optimal); 100.0 % of 7 requests as planned; then peak 5.00 KiB reserved for 4.00 KiB requested": ReplayPlanText("arena", &replay.Arena{
			Layouts: 1, Period: 1, Size: 4096, Bound: 4096, Planned: 7, Reserved: 5120, Wanted: 4096,
		}),
	} {
		if text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	}
}

// TestReplayTellsOfPlans in text and in JSON, and only where the policy takes any.
func TestReplayTellsOfPlans(t *testing.T) {
	for _, policy := range []string{"arena", "slab"} {
		file, err := recording.Open("testdata/train.gmt")
		if err != nil {
			t.Fatal(err)
		}
		r, err := replay.Replay(file, replay.Options{Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		var text, json bytes.Buffer
		if err := WriteReplayText(&text, r, "none", ""); err != nil {
			t.Fatal(err)
		}
		if err := WriteReplayJSON(&json, r, ""); err != nil {
			t.Fatal(err)
		}
		takes := policy == "arena"
		if strings.Contains(text.String(), "10 requests of each period in 374.9 KiB (optimal)") != takes ||
			strings.Contains(json.String(), `"no_plan_yet": 50`) != takes {
			t.Errorf("%s:\n%s\n%s", policy, text.String(), json.String())
		}
	}
}
