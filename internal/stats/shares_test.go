package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func (s *stream) classed(object, size uint64, scope, access uint16) {
	s.feed(wire.Event{
		Kind: wire.KindCreate, Outcome: wire.OutcomeMiss, Object: object, Link: object, Size: size, Granted: size, Scope: scope, Access: access,
	})
}

func TestBucketsAndClasses(t *testing.T) {
	s := newStream(Options{})
	s.classed(1, 1024, 1, 1)
	s.classed(2, 2047, 1, 1)
	s.classed(3, 2048, 2, 4|16)
	s.feed(wire.Event{Kind: wire.KindCreate, Object: 4, Size: 5000, Scope: 2})                           // unpooled
	s.feed(wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemorySubBuffer), Object: 5, Size: 1 << 20}) // owns nothing
	s.release(1, wire.OutcomeCached)
	s.release(3, wire.OutcomeCooling)
	s.hit(6, 1, 1000, 1024, 0)
	s.release(6, wire.OutcomeCached)
	got := s.Snapshot()
	buckets := []Bucket{
		{1024, 2047, Share{Hits: 1, Misses: 2, Creates: 3, InUse: 2047, Cached: 1024, Blocks: 1}},
		{2048, 4095, Share{Misses: 1, Creates: 1, Cooling: 2048}},
		{4096, 8191, Share{Creates: 1, InUse: 5000}},
	}
	if diff := cmp.Diff(buckets, got.Buckets); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
	classes := []Class{
		{"context 1, READ_WRITE", 1, 1, Share{Misses: 2, Creates: 2, InUse: 2047}},
		{"context 2, READ_ONLY | ALLOC_HOST_PTR", 2, 20, Share{Misses: 1, Creates: 1, Cooling: 2048}},
		{"context 2, no flags", 2, 0, Share{Creates: 1, InUse: 5000}},
		{"context 0, no flags", 0, 0, Share{Hits: 1, Creates: 1, Cached: 1024, Blocks: 1}}, // of stream.hit
	}
	if diff := cmp.Diff(classes, got.Classes); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

func TestClassesAreBounded(t *testing.T) {
	s := newStream(Options{})
	for i := range uint64(ClassesMax + 3) {
		s.classed(i+1, 64, uint16(i), 1)
	}
	s.classed(1000, 64, 0, 1)
	got := s.Snapshot().Classes
	if len(got) != ClassesMax+1 || got[0].Creates != 2 || got[ClassesMax].Name != "others" || got[ClassesMax].Creates != 3 {
		t.Errorf("%d classes: %+v", len(got), got)
	}
}

func TestFlagsText(t *testing.T) {
	for flags, want := range map[uint16]string{0: "no flags", 1: "READ_WRITE", 1 << 9: "HOST_NO_ACCESS", 1 << 15: "0x8000", 0x41: "READ_WRITE | 0x40"} {
		if got := flagsText(flags); got != want {
			t.Errorf("%#x is %q, want %q", flags, got, want)
		}
	}
}
