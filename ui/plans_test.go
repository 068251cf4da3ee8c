package ui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestPlansShow where a policy takes them: the arena, and why requests were not served as planned.
func TestPlansShow(t *testing.T) {
	s := sampleSnapshot()
	p := &s.Totals.Plans
	for _, c := range []struct {
		change func()
		want   []string
	}{
		{func() { p.Routes[wire.RouteNoPlanYet] = 50 }, []string{"PLAN none yet", "0.0 % as planned, 50 no plan yet"}},
		{func() {
			*p = stats.Plans{Installed: 1, Arenas: 2 << 20, Bound: 1 << 20, Learning: 8 << 20, Reserved: 2 << 20}
			p.Routes[wire.RoutePlanned], p.Routes[wire.RouteRangeInUse] = 150, 50
		}, []string{"PLAN arena 2.00M, at least 1.00M; reserved 8.00M before, 2.00M now", "75.0 % as planned, 50 range in use"}},
		{func() { p.Bound = p.Arenas }, []string{"arena 2.00M, optimal"}},
	} {
		c.change()
		d := newTest((&calls{}).options(), 140, 40, s)
		screen := newCanvas(80, 6)
		missesPane{basePane{d}}.draw(screen.wholeRegion(), s)
		text := ansi.Strip(screen.encodeForTerminal(d.theme))
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	}
}
