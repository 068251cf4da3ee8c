package stats

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
	counts := cmpopts.IgnoreFields(Share{}, "Window", "Live", "Requested", "Held", "PeakInUse")
	if diff := cmp.Diff(buckets, got.Buckets, counts); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
	s.AdvanceTime(s.time + 5_000_000_000)
	if later := s.Snapshot(); len(later.Buckets) != 3 || len(later.Kinds) != 1 || len(later.Classes) != len(got.Classes) {
		t.Errorf("some seconds later there are %d buckets, %d kinds, %d classes", len(later.Buckets), len(later.Kinds), len(later.Classes))
	}
	classes := []Class{
		{"context 1, READ_WRITE", 1, 1, Share{Misses: 2, Creates: 2, InUse: 2047}},
		{"context 2, READ_ONLY | ALLOC_HOST_PTR", 2, 20, Share{Misses: 1, Creates: 1, Cooling: 2048}},
		{"context 2, no flags", 2, 0, Share{Creates: 1, InUse: 5000}},
		{"context 0, no flags", 0, 0, Share{Hits: 1, Creates: 1, Cached: 1024, Blocks: 1}}, // of stream.hit
	}
	if diff := cmp.Diff(classes, got.Classes, counts); diff != "" {
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

// Memory belongs to the thread that created it, wherever it is released, and to the device of its context.
func TestThreadsAndDevices(t *testing.T) {
	s := newStream(Options{})
	for _, number := range []uint64{7, 8} {
		s.feed(wire.Event{Kind: wire.KindDevice, Object: number}, []byte("Arc A770\x00v1\x00")...)
	}
	s.feed(wire.Event{Kind: wire.KindDevice, Object: 9}, []byte("cpu\x00v1\x00")...)
	for scope, device := range []uint64{7, 8, 9} {
		s.feed(wire.Event{Kind: wire.KindContext, Op: uint8(wire.LifeCreate), Object: 100 + uint64(scope), Link: device, Scope: uint16(scope)})
	}
	s.classed(1, 1000, 0, 1)
	s.thread = 78
	s.classed(2, 2000, 1, 1)
	s.classed(3, 4000, 2, 1)
	s.thread = 77
	s.release(3, wire.OutcomeCached)
	got := s.Snapshot()
	threads := []Named{
		{"thread 77", Share{Misses: 1, Creates: 1, Live: 1, InUse: 1000, Requested: 1000, Held: 1000, PeakInUse: 1000}},
		{"thread 78", Share{Misses: 2, Creates: 2, Live: 1, InUse: 2000, Requested: 2000, Held: 6000, PeakInUse: 6000, Cached: 4000, Blocks: 1}},
	}
	if diff := cmp.Diff(threads, got.Threads); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
	devices := []Named{
		{"Arc A770 #1", Share{Misses: 1, Creates: 1, Live: 1, InUse: 1000, Requested: 1000, Held: 1000, PeakInUse: 1000}},
		{"Arc A770 #2", Share{Misses: 1, Creates: 1, Live: 1, InUse: 2000, Requested: 2000, Held: 2000, PeakInUse: 2000}},
		{"cpu", Share{Misses: 1, Creates: 1, Held: 4000, PeakInUse: 4000, Cached: 4000, Blocks: 1}},
	}
	if diff := cmp.Diff(devices, got.Devices); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	s.AdvanceTime(s.time + 1_000_000_000)
	if d := s.Snapshot().Devices[2]; d.Held != 4000 || d.Window != 1 {
		t.Errorf("a second later: %+v", d)
	}
	s.AdvanceTime(s.time + 3_000_000_000)
	if d := s.Snapshot().Devices[2]; d.Held != 0 || d.PeakInUse != 4000 || d.Window != 0 {
		t.Errorf("three seconds later: %+v", d)
	}
}

func TestThreadsAreBounded(t *testing.T) {
	s := newStream(Options{})
	for i := range uint64(ClassesMax + 3) {
		s.thread = uint32(i)
		s.classed(i+1, 64, 1, 1)
	}
	got := s.Snapshot().Threads
	if len(got) != ClassesMax+1 || got[0].Name != "thread unknown" || got[ClassesMax].Name != "others" || got[ClassesMax].Creates != 3 {
		t.Errorf("%d threads: %+v", len(got), got)
	}
}

func TestFlagsText(t *testing.T) {
	for flags, want := range map[uint16]string{0: "no flags", 1: "READ_WRITE", 1 << 9: "HOST_NO_ACCESS", 1 << 15: "0x8000", 0x41: "READ_WRITE | 0x40"} {
		if got := flagsText(flags); got != want {
			t.Errorf("%#x is %q, want %q", flags, got, want)
		}
	}
}
