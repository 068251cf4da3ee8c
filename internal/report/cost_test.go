package report

import (
	"math"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/analysis"
)

// TestCostsThatNoLineDescribes: where a line explains less than half of the variance, the report has the median and no line.
func TestCostsThatNoLineDescribes(t *testing.T) {
	for r2, want := range map[float64]string{
		0.5:        "300µs + 24µs per MiB; R² 0.50; 9 measured, p50 9µs, p99 2ms",
		0.49:       "no line fits: median 9µs (9 calls), p99 2ms",
		math.NaN(): "no line fits: median 9µs (9 calls), p99 2ms",
	} {
		c := analysis.CostCurve{Calls: 9, A: 300_000, B: 24_000. / (1 << 20), R2: r2, P50: 9000, P99: 2_000_000, Points: []analysis.CostPoint{
			{Size: 1 << 10, Calls: 4, P25: 300_000, P50: 300_000, P75: 300_000}, {Size: 1 << 19, Calls: 2, P25: 312_000, P50: 312_000, P75: 312_000},
			{Size: 1 << 20, Calls: 3, P25: 324_000, P50: 324_000, P75: 324_000},
		}}
		two, falls := c, c
		two.Points, falls.B = c.Points[1:], -c.B
		if two.LineFits() || falls.LineFits() {
			t.Errorf("R² %g: a line fits two sizes: %t; a falling line fits: %t", r2, two.LineFits(), falls.LineFits())
		}
		if got := callCostText(&c); got != want {
			t.Errorf("R² %g: %s, want %s", r2, got, want)
		}
		if svg := costPlot("creates", &c).SVG; strings.Contains(svg, `class="line fit"`) != (r2 >= 0.5) {
			t.Errorf("R² %g: the chart is\n%s", r2, svg)
		}
	}
	slow := analysis.CostCurve{Calls: 5, A: -11_000, B: 4e-4, R2: 0.8, P50: 2500, P99: 117_000, Points: []analysis.CostPoint{{Size: 4096, Calls: 1}, {Size: 8192}, {Size: 1 << 20}}}
	if got := callCostText(&slow); got != "no line fits: median 2.5µs (5 calls), p99 117µs" {
		t.Errorf("of a line that is negative for the smallest: %s", got)
	}
	below := analysis.CostCurve{Calls: 5, A: -243_110, B: 0.0863, R2: 0.98, P50: 1_870_000, P99: 4_590_000, Points: []analysis.CostPoint{{Size: 16 << 20, Calls: 1}, {Size: 32 << 20}, {Size: 64 << 20}}}
	if got := callCostText(&below); got != "no line fits: median 1.87ms (5 calls), p99 4.59ms" {
		t.Errorf("of a line that is negative at 0 bytes: %s", got)
	}
	one := analysis.CostCurve{Calls: 1, A: 9000, P50: 9000, P99: 9000}
	if got := callCostText(&one); got != "9µs (1 call)" {
		t.Errorf("of one size: %s", got)
	}
}
