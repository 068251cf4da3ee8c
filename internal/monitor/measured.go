package monitor

import (
	"slices"

	dto "github.com/prometheus/client_model/go"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// The metrics of experiments in the program, by their alternative. An experiment without an answer has none.
var (
	iterationTime = describeExperimentMetric("iteration_seconds", "Time of an iteration, measured in the program, by configuration.", "configuration", "alternative")
	difference    = describeExperimentMetric("iteration_difference_ratio", "Change of the time of an iteration with the present configuration: the estimate, and the ends of its interval of 95 %.",
		"configuration", "value")
	measuredMemory = describeExperimentMetric("iteration_memory_bytes", "Memory from the driver at most in the measured blocks, by configuration.", "configuration", "alternative")
	iterations     = describeExperimentMetric("iterations_measured", "Iterations that an experiment has timed.", "alternative")
)

func describeExperimentMetric(name, help string, more ...string) description {
	return description{"gpumemtop_" + name, help, dto.MetricType_GAUGE, append(slices.Clone(labelNames), more...)}
}

// addExperimentResults adds the results of experiments.
func addExperimentResults(s *stats.Snapshot, labels []string, out exposition) {
	for i := range s.Measured {
		m := &s.Measured[i]
		if !m.IsKnown() {
			continue
		}
		a, other := &m.Answer, m.Alternative
		out.addValue(&iterationTime, a.Present.Time/1e9, labels, "present", other)
		out.addValue(&iterationTime, a.Alternative.Time/1e9, labels, other, other)
		for value, number := range map[string]float64{"estimate": a.Difference, "low": a.Low, "high": a.High} {
			out.addValue(&difference, number, labels, other, value)
		}
		out.addValue(&measuredMemory, float64(a.Present.Bytes), labels, "present", other)
		if other == "none" {
			out.addValue(&measuredMemory, float64(a.Alternative.Bytes), labels, other, other)
		}
		out.addValue(&iterations, float64(a.Iterations), labels, other)
	}
}
