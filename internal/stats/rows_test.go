package stats

import (
	"regexp"
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestSiteNames(t *testing.T) {
	for _, test := range []struct{ name, site, want string }{
		{"line known", "make_tmp\t/src/blur.c\t88\t/bin/blur+0x12\n", "blur.c:88 make_tmp"},
		{"no line", "make_tmp\t\t\t/bin/blur+0x12", "make_tmp blur+0x12"},
		{"stripped", "\t\t\t/lib/libblur.so+0x1234", "libblur.so+0x1234"},
		{"wrappers", "clCreateBuffer\ta.c\t1\tx+1\ncl::Buffer::Buffer\tcl2.hpp\t9\tx+2\nstd::make_shared<int>\tm\t3\tx+3\n" +
			"upload\tmain.cpp\t140\tx+4\nmain\tmain.cpp\t9\tx+5", "main.cpp:140 upload"},
		{"only wrappers", "cl::Buffer::Buffer\tcl2.hpp\t9\tx+2\nstd::f\tm\t3\tx+3", "cl2.hpp:9 cl::Buffer::Buffer"},
		{"unknown is no wrapper", "\t\t\tlibx.so+0x1\nmain\tmain.c\t9\tx+5", "main.c:9 main via libx"},
		{"clever is no API name", "clever\tmain.c\t9\tx+5", "main.c:9 clever"},
		{"few fields", "lonely", "lonely"},
		{"control characters", "f\x1b[2J\ta.c\t1\tx", "a.c:1 f [2J"},
		{"bad UTF-8", "f\xff\ta.c\t1\tx", "a.c:1 f�"},
		{"empty", "\n\n", "tag 7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStream(Options{})
			s.miss(1, 1, 64, 64, 7)
			s.site(7, test.site)
			tagNamed(t, s.Snapshot(), test.want)
		})
	}
}

func TestOwnWrappers(t *testing.T) {
	callsite.SetWrapperPattern(regexp.MustCompile(`^my_`))
	defer callsite.SetWrapperPattern(nil)
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 7)
	s.site(7, "my_alloc\tpool.c\t3\tx+1\nmain\ta.c\t4\tx+2")
	tag := tagNamed(t, s.Snapshot(), "a.c:4 main")
	if want := []string{"my_alloc pool.c:3", "main a.c:4"}; !slices.Equal(tag.Stack, want) {
		t.Errorf("stack is %q, want %q", tag.Stack, want)
	}
}

// TestStackOfSeveralCallers: a row shows no caller that only some of its buffers have.
func TestStackOfSeveralCallers(t *testing.T) {
	for _, test := range []struct {
		stacks []string
		want   []string
	}{
		{[]string{"make\ta.c\t3\tx+1\nfill\ta.c\t4\tx+2\nmain\ta.c\t9\tx+3", "make\ta.c\t3\tx+1\ncopy\ta.c\t5\tx+2\nmain\ta.c\t9\tx+3"}, []string{"make a.c:3"}},
		{[]string{"make\ta.c\t3\tx+1\nmain\ta.c\t8\tx+3", "make\ta.c\t3\tx+1\nmain\ta.c\t8\tx+3\nstart\tb.c\t1\tx+4"}, []string{"make a.c:3", "main a.c:8"}},
		{[]string{"\t\t\tlibx.so+0x1\nmain\ta.c\t8\tx+3", "\t\t\tlibx.so+0x2\nmain\ta.c\t8\tx+3\nstart\tb.c\t1\tx+4"}, []string{"libx.so+0x1", "main a.c:8"}},
	} {
		s := newStream(Options{})
		for i, stack := range test.stacks {
			s.miss(uint64(i+1), uint64(i+1), 64, 64, uint32(i+7))
			s.site(uint32(i+7), stack)
		}
		if tags := s.Snapshot().Tags; len(tags) != 1 || !slices.Equal(tags[0].Stack, test.want) {
			t.Errorf("%+v, want the stack %q", tags, test.want)
		}
	}
}

func TestTagModes(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.Event{Kind: wire.KindTag, Tag: 1, Op: uint8(wire.TagsSize), Link: 64 << 20})
	s.feed(wire.Event{Kind: wire.KindTag, Tag: 2, Op: uint8(wire.TagsThread), Link: 1234})
	s.feed(wire.Event{Kind: wire.KindTag, Tag: 3, Op: uint8(wire.TagsStack)})
	if got := s.Snapshot().Tags; len(got) != 0 {
		t.Errorf("tags without an event are shown: %+v", got)
	}
	for tag := range uint32(4) {
		s.miss(uint64(tag+1), uint64(tag+1), 64, 64, tag)
	}
	snapshot := s.Snapshot()
	for _, name := range []string{"(untagged)", "size 64.0M", "thread 1234", "tag 3"} {
		tagNamed(t, snapshot, name)
	}
}

func TestSameNameIsOneRow(t *testing.T) {
	s := newStream(Options{})
	for i := range uint64(6) {
		tag := uint32(1 + i%2)
		s.miss(i+1, i+1, 100, 100+i%2, tag)
	}
	for i := range uint64(4) {
		s.release(i+1, wire.OutcomeCached)
	}
	s.site(1, "f\ta.c\t1\tx+1\nmain\ta.c\t9\tx+9")
	s.site(2, "f\ta.c\t1\tx+1\nother\ta.c\t7\tx+7")
	s.miss(7, 7, 100, 100, 2)
	s.release(7, wire.OutcomeCached)
	snapshot := s.Snapshot()
	if len(snapshot.Tags) != 1 {
		t.Fatalf("%d rows, want 1", len(snapshot.Tags))
	}
	tag := snapshot.Tags[0]
	if tag.ID != 1 || tag.Live != 2 || tag.InUse != 201 || tag.Requested != 200 || tag.Creates != 7 || tag.Misses != 7 ||
		tag.Cached != 502 || tag.CachedCount != 5 || tag.MissReasons[wire.MissCold] != 7 {
		t.Errorf("row is %+v", tag)
	}
	first := uint64(streamStart + 7000)
	want := []FreeClass{{Size: 100, Blocks: 3, Oldest: first}, {Size: 101, Blocks: 2, Oldest: first + 1000}}
	if !slices.Equal(tag.Free, want) {
		t.Errorf("free list is %+v, want %+v", tag.Free, want)
	}
	s.hit(8, 1, 100, 100, 1)
	if got := s.Snapshot().Tags[0].Free[0]; got.Blocks != 2 || got.Oldest <= first {
		t.Errorf("after a hit on the oldest block: %+v", got)
	}
}

func TestRowsOfTwoProcesses(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 7)
	s.process = 2
	s.miss(1, 1, 32, 32, 7)
	if got := len(s.Snapshot().Tags); got != 2 {
		t.Errorf("%d rows before the names are known, want 2", got)
	}
	s.site(7, "f\ta.c\t1\tx")
	s.process = 1
	s.site(7, "f\ta.c\t1\tx")
	snapshot := s.Snapshot()
	if got := tagNamed(t, snapshot, "a.c:1 f"); got.InUse != 96 || len(snapshot.Tags) != 1 {
		t.Errorf("rows are %+v", snapshot.Tags)
	}
}

func TestTagWindowAndTrend(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 1)
	s.AdvanceTime(streamStart + 1_500_000_000)
	tag := tagNamed(t, s.Snapshot(), "tag 1")
	if tag.Window != 0 || !slices.Equal(tag.Trend.Points(), []uint64{64}) {
		t.Errorf("after 1.5 s: window %d, trend %v", tag.Window, tag.Trend.Points())
	}
	s.time = streamStart + 1_600_000_000
	s.miss(2, 2, 36, 36, 1)
	s.AdvanceTime(streamStart + 2_100_000_000)
	tag = tagNamed(t, s.Snapshot(), "tag 1")
	if tag.Window != 1 || !slices.Equal(tag.Trend.Points(), []uint64{64, 100}) {
		t.Errorf("after 2.1 s: window %d, trend %v", tag.Window, tag.Trend.Points())
	}
}

// A row that takes another in shows the trend of both at once, not from the next second on.
func TestTrendOfAFoldedRow(t *testing.T) {
	s := newStream(Options{})
	s.miss(1, 1, 64, 64, 1)
	s.miss(2, 2, 36, 36, 2)
	s.site(1, "f\ta.c\t1\tx")
	s.AdvanceTime(streamStart + 1_500_000_000)
	s.Snapshot()
	s.site(2, "f\ta.c\t1\tx")
	if tag := tagNamed(t, s.Snapshot(), "a.c:1 f"); !slices.Equal(tag.Trend.Points(), []uint64{100}) {
		t.Errorf("trend %v, want 100 bytes", tag.Trend.Points())
	}
}
