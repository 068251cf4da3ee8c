package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func (s *stream) counted(held wire.Held, tag uint32, created, released, most uint64) {
	s.feed(wire.ObjectFields{Held: held, Tag: tag, Created: created, Released: released, Most: most}.Event())
}

// Counts are since the start, in any order, and sites fold like those of memory.
func TestObjectsCountSinceTheStart(t *testing.T) {
	s := newStream(Options{})
	s.counted(wire.HeldEvent, 1, 100, 40, 70)
	s.counted(wire.HeldEvent, 2, 10, 0, 10)
	s.counted(wire.HeldEvent, 1, 90, 30, 60) // of another thread, late
	s.MarkObjectCounts()
	s.counted(wire.HeldEvent, 1, 150, 60, 95)
	s.MarkObjectCounts()
	s.counted(wire.HeldKernel, 3, 2, 2, 1)
	s.counted(200, 3, 2, 2, 1)             // of a later version
	s.counted(wire.HeldQueue, 3, 1, 5, 99) // makes no sense
	s.site(1, "step\tmain.c\t88\tapp+0x1")
	s.site(2, "step\tmain.c\t88\tapp+0x2")
	want := []ObjectCount{
		{Type: ObjectType(wire.HeldQueue), Peak: 1, Created: 1, Sites: []ObjectSite{{Tag: "tag 3", Created: 1}}},
		{Type: ObjectType(wire.HeldKernel), Peak: 1, Created: 2, Sites: []ObjectSite{{Tag: "tag 3", Created: 2}}},
		{
			Type: Events, Live: 100, Peak: 105, Created: 160, Grown: 30, Recent: 100,
			Sites: []ObjectSite{{Tag: "main.c:88 step", Stack: []string{"step main.c:88"}, Live: 100, Created: 160, Grown: 30, Recent: 100, Most: Opener{1, 90}}},
		},
	}
	shown := s.Snapshot()
	if diff := cmp.Diff(want, shown.Objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if shown.Unknown != 1 || len(shown.Tags) != 0 {
		t.Errorf("%d unknown, and call sites of memory %+v", shown.Unknown, shown.Tags)
	}
	if held := s.HeldObjectCounts(1); held[Events] != 100 || s.HeldObjectCounts(9) != nil {
		t.Errorf("the process holds %v", held)
	}
}

// Sub-buffers and images of buffers are counted as memory is, and objects of processes that ended are leaked.
func TestObjectsThatShareMemory(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 1)
	for id := range uint64(3) {
		s.feed(wire.CreateFields{Memory: wire.MemorySubBuffer, Object: 2 + id, Parent: 1, Requested: 8, Tag: 2}.Event())
	}
	s.feed(wire.CreateFields{Memory: wire.MemoryImage, Object: 9, Parent: 1, Requested: 8, Tag: 3}.Event())
	s.feed(wire.CreateFields{Memory: wire.MemoryImage, Object: 10, Requested: 8, Tag: 3}.Event())
	s.release(2, wire.OutcomeDriver)
	running := s.Snapshot().Objects
	if len(running) != 2 || running[0].Type != SubBuffers || running[0].Live != 2 || running[0].Leaked != 0 || running[0].Created != 3 || running[0].Peak != 3 {
		t.Errorf("while it runs: %+v", running)
	}
	s.NoteProcessEnded(1, End{Status: 0, Signal: 0}, s.time+1)
	ended := s.Snapshot().Objects
	if ended[0].Leaked != 2 || ended[1].Type != ImagesOfBuffers || ended[1].Leaked != 1 || ended[1].Sites[0].Leaked != 1 {
		t.Errorf("after its end: %+v", ended)
	}
}

// What a process holds that a signal ended is no leak, and what was there before a recording was not created in it.
func TestObjectsHeldAtExit(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.ObjectFields{Held: wire.HeldEvent, Tag: 1, Created: 500, Released: 100, Most: 400, CarriedOver: true}.Event())
	s.counted(wire.HeldEvent, 1, 600, 150, 450)
	s.NoteProcessEnded(1, End{Status: 0, Signal: 9}, s.time+1)
	e := s.Snapshot().Objects[0]
	if e.Live != 450 || e.Created != 100 || e.Leaked != 0 || e.Peak != 450 {
		t.Errorf("%+v", e)
	}
}

func TestObjectTypesHaveWords(t *testing.T) {
	for kind, want := range map[ObjectType][3]string{
		Events: {"event", "events", "event"}, ObjectType(wire.HeldCommandBuffer): {"command buffer", "command buffers", "command_buffer"},
		SubBuffers: {"sub-buffer", "sub-buffers", "sub_buffer"}, ImagesOfBuffers: {"image of a buffer", "images of buffers", "image_of_a_buffer"},
	} {
		if got := [3]string{kind.String(), kind.PluralWords(), kind.JSONKey()}; got != want {
			t.Errorf("%d: %q, want %q", kind, got, want)
		}
	}
}

// What is new is counted from the half minute before this one; long silence makes nothing new.
func TestObjectsOfTheLastMinute(t *testing.T) {
	s := newStream(Options{})
	recent := func(at, created uint64) int64 {
		e := wire.ObjectFields{Held: wire.HeldEvent, Tag: 1, Created: created, Most: created}.Event()
		e.Time = streamStart + at*1e9
		s.feed(e)
		return s.Snapshot().Objects[0].Recent
	}
	for _, step := range []struct {
		at, created uint64
		want        int64
	}{{2, 10, 10}, {29, 20, 20}, {32, 30, 30}, {62, 45, 25}, {89, 50, 30}, {95, 60, 30}, {300, 61, 1}} {
		if got := recent(step.at, step.created); got != step.want {
			t.Errorf("at %d s: %d more, want %d", step.at, got, step.want)
		}
	}
}

// What the shim had no room for makes counts lower bounds.
func TestObjectsThatAreNotTracked(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.ObjectFields{Held: wire.HeldEvent, Tag: 1, Created: 500, Most: 500, Untracked: 7}.Event())
	s.feed(wire.ObjectFields{Held: wire.HeldEvent, Tag: 2, Created: 1, Most: 1, Untracked: 2}.Event())
	if c := s.Snapshot().Objects[0]; c.Live != 501 || c.Untracked != 9 {
		t.Errorf("%+v", c)
	}
}
