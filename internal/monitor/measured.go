package monitor

import (
	"slices"

	dto "github.com/prometheus/client_model/go"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// The metrics of an experiment in the program. Without an answer there are none.
var (
	iterationTime = measured("iteration_seconds", "Time of an iteration, measured in the program, by configuration.", "configuration")
	difference    = measured("iteration_difference_ratio", "Change of the time of an iteration with the present configuration: the estimate, and the ends of its interval of 95 %.",
		"configuration", "value")
	measuredMemory = measured("iteration_memory_bytes", "Memory from the driver at most in the measured blocks, by configuration.", "configuration")
	iterations     = measured("iterations_measured", "Iterations that the experiment has timed.")
)

func measured(name, help string, more ...string) description {
	return description{"gpumemtop_" + name, help, dto.MetricType_GAUGE, append(slices.Clone(labelNames), more...)}
}

// addMeasured adds what an experiment has found.
func addMeasured(s *stats.Snapshot, labels []string, out exposition) {
	m := s.Measured
	if !m.Known() {
		return
	}
	a := &m.Answer
	out.add(&iterationTime, a.Present.Time/1e9, labels, "present")
	out.add(&iterationTime, a.Alternative.Time/1e9, labels, m.Alternative)
	for value, number := range map[string]float64{"estimate": a.Difference, "low": a.Low, "high": a.High} {
		out.add(&difference, number, labels, m.Alternative, value)
	}
	out.add(&measuredMemory, float64(a.Present.Bytes), labels, "present")
	if m.Alternative == "none" {
		out.add(&measuredMemory, float64(a.Alternative.Bytes), labels, m.Alternative)
	}
	out.add(&iterations, float64(a.Iterations), labels)
}
