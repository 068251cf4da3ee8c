package main

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestResultReadsWhatExamplesSay(t *testing.T) {
	r := result{stderr: "gpumemtop: hits 3 s\nstencil: 1.250000 s\n{\"enqueue_ns\":12.5}\n"}
	if got := r.reportedWorkSeconds(); got != 1.25 {
		t.Errorf("work %v, want 1.25", got)
	}
	if got := r.callCosts()["enqueue_ns"]; got != 12.5 {
		t.Errorf("cost %v, want 12.5", got)
	}
	if pairs := (result{stderr: "churn: 250.0 ns per pair, 20 pairs, 2 threads\n"}); pairs.reportedWorkSeconds() != 250e-9 {
		t.Errorf("work %v of a pair, want 250 ns", pairs.reportedWorkSeconds())
	}
	var silent result
	if silent.reportedWorkSeconds() != 0 || silent.callCosts() != nil {
		t.Error("figures out of nothing")
	}
}

func TestMedianIsTheMiddleOne(t *testing.T) {
	rs := []result{{bytes: 9}, {bytes: 1}, {bytes: 5}}
	if got := medianOfResults(rs, func(r *result) float64 { return float64(r.bytes) }); got != 5 {
		t.Errorf("median %v, want 5", got)
	}
}

func TestCountedAdmitsIgnorance(t *testing.T) {
	for value, want := range map[float64]string{0: "?", -1: "?", 15.26: "15.3", 123456.7: "123457"} {
		if got := formatIfCounted(value); got != want {
			t.Errorf("counted(%v) = %q, want %q", value, got, want)
		}
	}
	zero := 0.0
	if got := formatIfCounted(5 / zero); got != "?" {
		t.Errorf("counted(infinity) = %q", got)
	}
}

func TestResidentPeakOfThisProcess(t *testing.T) {
	if got := peakResidentKiB(os.Getpid()); got < 1024 {
		t.Errorf("this test has had %d KiB resident", got)
	}
}

func TestOneRunAndWholeRuns(t *testing.T) {
	for text, want := range map[string]string{
		`{"measured":[{"difference":-0.5,"difference_low":-0.55,"difference_high":-0.45,"blocks":40,"iterations":960}]}`: "[-50.0 ± 5.0 % 40 960 7.0 -48.0 ± 2.0 % 2 4.0 yes yes]",
		`{"measured":[{"difference":-0.1,"difference_low":-0.14,"difference_high":-0.06,"blocks":40,"iterations":960}]}`: "[-10.0 ± 4.0 % 40 960 7.0 -48.0 ± 2.0 % 2 4.0 no no]",
		`{"measured":[{"why":"too short"}]}`: "[too short   7.0 -48.0 ± 2.0 % 2 4.0 ? no]",
		`{}`:                                 "[?   7.0 -48.0 ± 2.0 % 2 4.0 ? no]",
	} {
		var inside insideRun
		var whole watchedComparison
		if err := json.Unmarshal([]byte(text), &inside); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(`{"ns":[3e9,4e9],"iteration":{"difference":-0.48,"difference_low":-0.5,"difference_high":-0.46}}`), &whole); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(formatComparison(&inside, &whole, 7e9)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
