package main

import (
	"os"
	"testing"
)

func TestResultReadsWhatExamplesSay(t *testing.T) {
	r := result{stderr: "gpumemtop: hits 3 s\nstencil: 1.250000 s\n{\"enqueue_ns\":12.5}\n"}
	if got := r.work(); got != 1.25 {
		t.Errorf("work %v, want 1.25", got)
	}
	if got := r.costs()["enqueue_ns"]; got != 12.5 {
		t.Errorf("cost %v, want 12.5", got)
	}
	if pairs := (result{stderr: "churn: 250.0 ns per pair, 20 pairs, 2 threads\n"}); pairs.work() != 250e-9 {
		t.Errorf("work %v of a pair, want 250 ns", pairs.work())
	}
	var silent result
	if silent.work() != 0 || silent.costs() != nil {
		t.Error("figures out of nothing")
	}
}

func TestMedianIsTheMiddleOne(t *testing.T) {
	rs := []result{{bytes: 9}, {bytes: 1}, {bytes: 5}}
	if got := median(rs, func(r *result) float64 { return float64(r.bytes) }); got != 5 {
		t.Errorf("median %v, want 5", got)
	}
}

func TestCountedAdmitsIgnorance(t *testing.T) {
	for value, want := range map[float64]string{0: "?", -1: "?", 15.26: "15.3", 123456.7: "123457"} {
		if got := counted(value); got != want {
			t.Errorf("counted(%v) = %q, want %q", value, got, want)
		}
	}
	zero := 0.0
	if got := counted(5 / zero); got != "?" {
		t.Errorf("counted(infinity) = %q", got)
	}
}

func TestResidentPeakOfThisProcess(t *testing.T) {
	if got := residentPeak(os.Getpid()); got < 1024 {
		t.Errorf("this test has had %d KiB resident", got)
	}
}
