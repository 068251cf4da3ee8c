package monitor

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestNames compares the metrics, their types and labels with those that dashboards and alerts are made of.
func TestNames(t *testing.T) {
	s := snapshot(1, 2)
	s.Machine = []stats.MachineFigure{{Source: wire.MachineRSS, Bytes: 1}}
	source := func() *stats.Snapshot { return s }
	var list strings.Builder
	for _, f := range newCollector(source, Run{}).collectMetrics() {
		list.WriteString(f.GetName() + " " + strings.ToLower(f.GetType().String()))
		for _, l := range f.GetMetric()[0].GetLabel() {
			list.WriteString(" " + l.GetName())
		}
		list.WriteString("\n")
	}
	golden.RequireEqual(t, list.String())
}
