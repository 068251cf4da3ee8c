package stack

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/target"
)

// heard collects records.
type heard []wire.Record

func (h *heard) put(r *wire.Record) {
	copied := *r
	copied.Payload = bytes.Clone(r.Payload)
	*h = append(*h, copied)
}

func (h *heard) of(kind wire.Kind) []wire.Record {
	return slices.DeleteFunc(slices.Clone(*h), func(r wire.Record) bool { return r.Kind != kind })
}

func sampleAt(time, ip uint64, tid uint32) *wire.Sample {
	return &wire.Sample{Call: wire.Call{Time: time, Ip: ip, Tid: tid}}
}

func TestTagsOfEveryMode(t *testing.T) {
	for _, test := range []struct {
		mode    wire.TagMode
		numbers []uint32 // of the calls below
		links   []uint64 // of the TAGs
		frames  int
	}{
		{wire.TagsNone, []uint32{0, 0, 0, 0}, nil, 0},
		{wire.TagsCaller, []uint32{1, 1, 2, 2}, []uint64{0, 0}, 1},
		{wire.TagsStack, []uint32{1, 1, 2, 2}, []uint64{0, 0}, 1},
		{wire.TagsSize, []uint32{1, 2, 1, 1}, []uint64{4096, 1}, 0},
		{wire.TagsThread, []uint32{1, 2, 2, 2}, []uint64{70, 71}, 0},
	} {
		t.Run(test.mode.String(), func(t *testing.T) {
			var h heard
			tags := NewTags(test.mode, 8, newWalker(t, jit()), h.put)
			got := []uint32{
				tags.Tag(sampleAt(10, codeAt+1, 70), 4096), tags.Tag(sampleAt(11, codeAt+1, 71), 0),
				tags.Tag(sampleAt(12, codeAt+2, 71), 2049), tags.Tag(sampleAt(13, codeAt+2, 71), 4095),
			}
			if !slices.Equal(got, test.numbers) {
				t.Errorf("tags %d, want %d", got, test.numbers)
			}
			records := h.of(wire.KindTag)
			if len(records) != len(test.links) || len(h) != len(records) {
				t.Fatalf("records %+v, want %d tags", h, len(test.links))
			}
			for i, r := range records {
				frames := wire.FramesOfTag(r.Payload)
				if wire.TagMode(r.Op) != test.mode || r.Tag != uint32(i+1) || r.Link != test.links[i] || len(frames) != test.frames || r.Size != uint64(len(r.Payload)) {
					t.Errorf("record %d: %+v with frames %+v", i, r, frames)
				}
				if test.frames > 0 && frames[0] != (wire.Frame{Offset: codeAt + 1 + uint64(i)}) {
					t.Errorf("frame %+v: code made at run time is in no module", frames[0])
				}
				if r.Time < 10+uint64(i) || r.Time > 12 || r.Thread != 70+uint32(i) {
					t.Errorf("record %d at %d of thread %d", i, r.Time, r.Thread)
				}
			}
		})
	}
}

func TestSizeClassesAreTheShims(t *testing.T) {
	for size, want := range map[uint64]uint64{0: 1, 1: 1, 2: 2, 3: 4, 4096: 4096, 4097: 8192, 1 << 63: 1 << 63} {
		if got := sizeClass(size); got != want {
			t.Errorf("size class of %d is %d, want %d", size, got, want)
		}
	}
}

func TestTagsOfRealStacks(t *testing.T) {
	p := start(t, compile(t, "gcc", "testdata/chain.c", "-O2", "-fomit-frame-pointer"))
	var h heard
	tags := NewTags(wire.TagsStack, wire.StackMax, newWalker(t, p), h.put)
	numbers := map[uint32]*capture{}
	for i := range p.captures {
		c := &p.captures[i]
		number := tags.Tag(&c.sample, 1)
		if again := tags.Tag(&c.sample, 2); number == 0 || again != number {
			t.Fatalf("tags %d and %d of one stack", number, again)
		}
		if other := numbers[number]; other != nil && !slices.Equal(other.frames, c.frames) {
			t.Errorf("%s and %s have tag %d", c.name, other.name, number)
		}
		numbers[number] = c
	}
	if len(h.of(wire.KindTag)) != len(numbers) {
		t.Errorf("%d tags defined for %d", len(h.of(wire.KindTag)), len(numbers))
	}
	modules := map[uint64]string{}
	for _, r := range h {
		if r.Kind == wire.KindModule {
			if modules[r.Object] != "" || r.Object != uint64(len(modules))+1 {
				t.Errorf("module %d %s defined again or out of order", r.Object, r.Payload)
			}
			modules[r.Object] = string(r.Payload)
			continue
		}
		c := numbers[r.Tag]
		for i, f := range wire.FramesOfTag(r.Payload) {
			if modules[f.Module] == "" || f.Offset != c.frames[i]-c.bases[i] {
				t.Errorf("%s: frame %d is %+v of %q, want offset %#x", c.name, i, f, modules[f.Module], c.frames[i]-c.bases[i])
			}
		}
	}
	var names []string
	for _, path := range modules {
		names = append(names, filepath.Base(path))
	}
	for _, want := range []string{"program", "libnest.so", "libc.so.6", "[vdso]"} {
		if !slices.Contains(names, want) {
			t.Errorf("modules %q, want %s among them", names, want)
		}
	}
	if path := modules[wire.FramesOfTag(h.of(wire.KindTag)[0].Payload)[0].Module]; path != p.path {
		t.Errorf("the first frame is in %q, want %q", path, p.path)
	}
}

func TestDepth(t *testing.T) {
	p := start(t, compile(t, "gcc", "testdata/chain.c", "-O2"))
	for depth, want := range map[int]int{-1: 1, 0: 1, 1: 1, 3: 3, 1000: len(p.captures[0].frames)} {
		var h heard
		NewTags(wire.TagsStack, depth, newWalker(t, p), h.put).Tag(&p.captures[0].sample, 0)
		if tag := h.of(wire.KindTag); len(tag) != 1 || len(wire.FramesOfTag(tag[0].Payload)) != want {
			t.Errorf("depth %d: %+v", depth, tag)
		}
	}
}

func TestTooManyTags(t *testing.T) {
	var h heard
	tags := NewTags(wire.TagsCaller, 1, newWalker(t, jit()), h.put)
	for i := range uint64(tagsMax) {
		if got := tags.Tag(sampleAt(i, 1<<40+i, 1), 0); got != uint32(i)+1 {
			t.Fatalf("tag %d of place %d", got, i)
		}
	}
	for i := range uint64(3) {
		if got := tags.Tag(sampleAt(1, 1<<50+i, 1), 0); got != 0 {
			t.Errorf("tag %d where there are no more", got)
		}
	}
	if got := tags.Tag(sampleAt(1, 1<<40+99, 1), 0); got != 100 {
		t.Errorf("tag %d of a place that had 100", got)
	}
	if got := tags.UnknownTag(); got != 0 {
		t.Errorf("unknown has tag %d where there are no more", got)
	}
	if diag := h.of(wire.KindDiag); len(diag) != 1 || wire.Diag(diag[0].Op) != wire.DiagTagsFull || string(diag[0].Payload) != fullText {
		t.Errorf("diagnostics %+v, want one", diag)
	}
	if len(h.of(wire.KindTag)) != tagsMax {
		t.Errorf("%d tags defined", len(h.of(wire.KindTag)))
	}
}

// Frames of modules without a number are absolute addresses.
func TestTooManyModules(t *testing.T) {
	space := &fixed{}
	for i := range uint64(modulesMax + 1) {
		space.mappings = append(space.mappings, target.Mapping{
			Start: i << 20, End: i<<20 + 0x1000, Exec: true, Inode: i + 1, Path: "/gone" + strconv.Itoa(int(i)),
		})
	}
	var h heard
	tags := NewTags(wire.TagsCaller, 1, newWalker(t, space), h.put)
	for i := range space.mappings {
		tags.Tag(sampleAt(1, space.mappings[i].Start+5, 1), 0)
	}
	records := h.of(wire.KindTag)
	for i, want := range map[int]wire.Frame{
		modulesMax - 1: {Module: modulesMax, Offset: 5},
		modulesMax:     {Offset: modulesMax<<20 + 5},
	} {
		if got := wire.FramesOfTag(records[i].Payload); len(got) != 1 || got[0] != want {
			t.Errorf("call site %d is %+v, want %+v", i, got, want)
		}
	}
	if n := len(h.of(wire.KindModule)); n != modulesMax {
		t.Errorf("%d modules defined", n)
	}
}

// The tag of objects from before attach has a name that every reader shows.
func TestUnknown(t *testing.T) {
	var h heard
	tags := NewTags(wire.TagsCaller, 1, newWalker(t, jit()), h.put)
	tags.SetTimeFromSample(sampleAt(77, 0, 9))
	number := tags.UnknownTag()
	if again := tags.UnknownTag(); number == 0 || again != number || len(h) != 2 {
		t.Fatalf("tags %d and %d, records %+v", number, again, h)
	}
	if other := tags.Tag(sampleAt(78, codeAt, 9), 0); other == number || other == 0 {
		t.Errorf("a call has tag %d, unknown is %d", other, number)
	}
	const want = "unknown before attach"
	names := callsite.NewNames()
	m := stats.New(stats.Options{})
	for i := range h {
		if h[i].Process = 1; h[i].Time < 77 || h[i].Thread != 9 {
			t.Errorf("record at %d of thread %d", h[i].Time, h[i].Thread)
		}
		names.AddRecord(&h[i])
		m.Apply(&h[i])
	}
	m.Apply(&wire.Record{Process: 1, Event: wire.Event{
		Time: 79, Kind: wire.KindCreate, Flags: wire.FlagCarried, Object: 1, Size: 4096, Granted: 4096, Tag: number,
	}})
	if site := names.Process(1).Site(number); site.Name != want || !slices.Equal(site.Stack, []string{want}) {
		t.Errorf("reports call it %+v", site)
	}
	if !slices.ContainsFunc(m.Snapshot().Tags, func(tag stats.Tag) bool { return tag.Name == want }) {
		t.Errorf("the dashboard has %+v", m.Snapshot().Tags)
	}
}
