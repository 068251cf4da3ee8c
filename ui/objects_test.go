package ui

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// holding has objects of many call sites.
func holding(s *stats.Snapshot) *stats.Snapshot {
	events := stats.ObjectCount{Type: stats.Events, Live: 12345, Peak: 13000, Created: 1234567, Recent: 600}
	for i := range 30 {
		events.Sites = append(events.Sites, stats.ObjectSite{
			Tag: fmt.Sprintf("loop.c:%d launch", i+1), Live: uint64(3000 - 100*i), Created: 40000, Recent: int64(20 - i),
		})
	}
	kernels := stats.ObjectCount{
		Type: stats.ObjectType(wire.HeldKernel), Live: 2, Peak: 2, Created: 2,
		Sites: []stats.ObjectSite{{Tag: "setup.c:9 compile", Live: 2, Created: 2}},
	}
	s.Objects = []stats.ObjectCount{kernels, events}
	return s
}

func TestObjectsGolden(t *testing.T) {
	for _, size := range [][2]int{{140, 40}, {80, 24}, {60, 12}} {
		t.Run(itoa(size[0])+"x"+itoa(size[1]), func(t *testing.T) {
			d := newTest((&calls{}).options(), size[0], size[1], holding(sampleSnapshot()))
			press(d, "n")
			checkFrame(t, frameText(d), size[0], size[1])
			golden.RequireEqual(t, screen(d))
		})
	}
}

func TestObjectsPane(t *testing.T) {
	s := sampleSnapshot()
	d := newTest((&calls{}).options(), 100, 30, s)
	press(d, "n")
	shows(t, d, "no object but memory has been created")
	d = newTest((&calls{}).options(), 100, 30, holding(s))
	press(d, "n")
	shows(t, d, "loop.c:1 launch", "+600", "events", "kernels")
	hides(t, d, "setup.c:9 compile")
	press(d, "G")
	shows(t, d, "setup.c:9 compile")
	hides(t, d, "loop.c:1 launch")
	press(d, "n")
	hides(t, d, "setup.c:9 compile")
}
