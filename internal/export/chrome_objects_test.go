package export

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestChromeObjects: live objects of each type are a counter, which stands where it has changed.
func TestChromeObjects(t *testing.T) {
	object := func(us uint64, held wire.Held, tag uint32, created, released uint64) wire.Record {
		f := wire.ObjectFields{Time: origin + 1000*us, Held: held, Tag: tag, Created: created, Released: released}
		return wire.Record{Event: f.Event(), Process: 1, Thread: 101}
	}
	records := append(story(), object(2000, wire.HeldEvent, 1, 9, 4), object(2001, wire.HeldEvent, 2, 3, 1), object(4000, wire.HeldKernel, 1, 2, 1),
		object(6000, wire.HeldEvent, 1, 9, 9), object(6001, 200, 1, 9, 9))
	got, _, _ := exportPart(t, &tape{Records: records}, storyFacts(), TraceOptions{})
	contains(t, got, []string{
		`"name":"objects"`, `"event":5`, `"kernel":1,"event":2,"sampler":0,"command_buffer":0}`,
	}, []string{`"event":9`, `"event":7`})
}
