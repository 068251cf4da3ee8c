package stats

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// found feeds a DIAG that reports a mistake.
func (s *stream) found(kind wire.Diag, function string, tag uint32, size, kernel uint64, status int16) {
	s.feed(wire.Event{
		Kind: wire.KindDiag, Op: uint8(kind), Tag: tag, Object: 9, Granted: size, Link: kernel, Status: status,
	}, []byte(function)...)
}

func TestHostedCreatesAreCounted(t *testing.T) {
	s := newStream(Options{})
	s.found(wire.DiagHosted, "clCreateBuffer", 1, 100, 0, 0)
	s.found(wire.DiagHosted, "clCreateImage", 2, 50, 0, 0)
	got := s.Snapshot()
	if got.Hosted != (Part{Buffers: 2, Bytes: 150}) || len(got.Findings) != 0 {
		t.Errorf("hosted %+v, and mistakes %v", got.Hosted, got.Findings)
	}
	if n := len(got.Marks); n == 0 || got.Marks[n-1].Text != "hosted: clCreateBuffer" {
		t.Errorf("marks %v, want one of the first", got.Marks)
	}
}

func TestFindingsAreCounted(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.Event{Kind: wire.KindKernel, Object: 3}, []byte("step\x00")...)
	s.found(wire.DiagDoubleRelease, "clReleaseMemObject", 1, 1<<20, 0, -38)
	s.found(wire.DiagStaleArgument, "clEnqueueNDRangeKernel", 2, 4096, 3, 0)
	s.found(wire.DiagStaleArgument, "clEnqueueNDRangeKernel", 2, 4096, 4, 0)
	s.found(wire.DiagDoubleRelease, "clReleaseMemObject", 1, 2<<20, 0, -5)
	s.found(wire.DiagUnknownMemory, "clReleaseMemObject", 0, 0, 0, -38)
	s.process = 2
	s.found(wire.DiagDoubleRelease, "clReleaseMemObject", 1, 1<<20, 0, -38)
	at := func(n uint64) uint64 { return streamStart + 1000*n }
	want := []Finding{
		{Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Tag: "tag 1", Process: 1, Count: 2, First: at(2), Last: at(5), Size: 1 << 20, Varied: true, Status: -38},
		{Kind: wire.DiagStaleArgument, Function: "clEnqueueNDRangeKernel", Tag: "tag 2", Process: 1, Kernel: "step", Count: 1, First: at(3), Last: at(3), Size: 4096},
		{Kind: wire.DiagStaleArgument, Function: "clEnqueueNDRangeKernel", Tag: "tag 2", Process: 1, Count: 1, First: at(4), Last: at(4), Size: 4096},
		{Kind: wire.DiagUnknownMemory, Function: "clReleaseMemObject", Process: 1, Count: 1, First: at(6), Last: at(6), Status: -38},
		{Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Tag: "tag 1", Process: 2, Count: 1, First: at(7), Last: at(7), Size: 1 << 20, Status: -38},
	}
	snapshot := s.Snapshot()
	if diff := cmp.Diff(want, snapshot.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if snapshot.Unknown != 0 || len(snapshot.Tags) != 0 {
		t.Errorf("a finding shows elsewhere: %d unknown, tags %+v", snapshot.Unknown, snapshot.Tags)
	}
}

// TestFindingsNameTheMemory: an image is none of the buffers of its call site.
func TestFindingsNameTheMemory(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.Event{Kind: wire.KindCreate, Op: uint8(wire.MemoryImage), Object: 9, Tag: 1, Size: 8192, Granted: 8192})
	s.found(wire.DiagWrongContext, "clEnqueueCopyBufferToImage", 1, 8192, 0, -34)
	s.feed(wire.Event{Kind: wire.KindRelease, Object: 9})
	s.feed(wire.Event{Kind: wire.KindCreate, Object: 9, Tag: 1, Size: 8192, Granted: 8192})
	s.found(wire.DiagWrongContext, "clEnqueueCopyBufferToImage", 1, 8192, 0, -34)
	for i, want := range []string{"with a 8192 image created at tag 1", "with a 8192 buffer created at tag 1"} {
		if got := s.Snapshot().Findings; len(got) != 2 || !strings.Contains(got[i].Text(func(n uint64) string { return strconv.FormatUint(n, 10) }), want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// TestFindingsNameReleasedMemory: what is gone is of the kind that its call site makes, where that is one.
func TestFindingsNameReleasedMemory(t *testing.T) {
	for want, kinds := range map[string][]wire.Memory{
		"a 64 image": {wire.MemoryImage}, "a 64 buffer": {wire.MemoryBuffer}, "a 64 memory object": {wire.MemoryBuffer, wire.MemoryImage}, "a 64 pipe": {wire.MemoryPipe, wire.MemoryPipe},
	} {
		s := newStream(Options{})
		for i, kind := range kinds {
			s.feed(wire.Event{Kind: wire.KindCreate, Op: uint8(kind), Object: uint64(i + 1), Tag: 1, Size: 64, Granted: 64})
			s.feed(wire.Event{Kind: wire.KindRelease, Object: uint64(i + 1)})
		}
		s.found(wire.DiagUseAfterRelease, "clEnqueueFillImage", 1, 64, 0, -38)
		got := s.Snapshot().Findings
		if len(got) != 1 || !strings.Contains(got[0].Text(func(n uint64) string { return strconv.FormatUint(n, 10) }), "on "+want+" created at tag 1, after its last release") {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// Names come late, and two tags may turn out to be one line: so do their findings.
func TestFindingsFoldLikeTags(t *testing.T) {
	s := newStream(Options{})
	s.found(wire.DiagStillMapped, "clReleaseMemObject", 1, 64, 0, 0)
	s.found(wire.DiagStillMapped, "clReleaseMemObject", 2, 64, 0, 0)
	before := s.Snapshot().Findings
	s.site(1, "step\tstencil.c\t88\tstencil+0x1")
	s.site(2, "step\tstencil.c\t88\tstencil+0x2")
	s.found(wire.DiagStillMapped, "clReleaseMemObject", 2, 64, 0, 0)
	after := s.Snapshot().Findings
	if len(after) != 1 || after[0].Tag != "stencil.c:88 step" || after[0].Count != 3 || after[0].Last != s.time {
		t.Errorf("findings are %+v", after)
	}
	if len(before) != 2 || before[0].Tag != "tag 1" || before[0].Count != 1 {
		t.Errorf("an older snapshot changed: %+v", before)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	s := newStream(Options{})
	for i := range 2 * FindingsMax {
		s.found(wire.DiagUnknownMemory, fmt.Sprintf("f%d", i), 0, 0, 0, -38)
	}
	s.found(wire.DiagUnknownMemory, "f0", 0, 0, 0, -38)
	snapshot := s.Snapshot()
	if len(snapshot.Findings) != FindingsMax || snapshot.OtherFindings != FindingsMax || snapshot.Findings[0].Count != 2 {
		t.Errorf("%d findings, %d others", len(snapshot.Findings), snapshot.OtherFindings)
	}
	if got := s.Snapshot().Findings; &got[0] != &snapshot.Findings[0] {
		t.Error("nothing changed, and the findings were copied all the same")
	}
	if allocations := testing.AllocsPerRun(100, func() { s.findings.listInOrder(s.sites.untagged, false) }); allocations != 0 {
		t.Errorf("%g allocations for findings that did not change", allocations)
	}
}

func TestFindingsMarkOnce(t *testing.T) {
	s := newStream(Options{})
	s.feed(wire.Event{Kind: wire.KindKernel, Object: 3}, []byte("step")...)
	for range 3 {
		s.found(wire.DiagDoubleRelease, "clReleaseMemObject", 1, 64, 0, -38)
		s.found(wire.DiagWrongContext, "clSetKernelArg", 1, 64, 3, -38)
	}
	want := []Mark{
		{Time: streamStart + 2000, Kind: wire.KindDiag, Text: "double release: clReleaseMemObject"},
		{Time: streamStart + 3000, Kind: wire.KindDiag, Text: "wrong context: clSetKernelArg of step"},
	}
	if diff := cmp.Diff(want, s.Snapshot().Marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

func TestFindingTexts(t *testing.T) {
	for want, f := range map[string]Finding{
		"double release: clReleaseMemObject of a 1.0M buffer created at stencil.c:88 step (3 times, also with other sizes)": {
			Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Size: 1 << 20, Varied: true, Tag: "stencil.c:88 step", Count: 3,
		},
		"double release: clReleaseMemObject of a buffer": {Kind: wire.DiagDoubleRelease, Function: "clReleaseMemObject", Count: 1},
		"unknown memory: clRetainMemObject was given something that no create returned": {
			Kind: wire.DiagUnknownMemory, Function: "clRetainMemObject", Status: -38, Count: 1,
		},
		"unknown memory: clRetainMemObject was given something that no create seen here returned, and that the driver accepts": {
			Kind: wire.DiagUnknownMemory, Function: "clRetainMemObject", Count: 1,
		},
		"use after release: clEnqueueReadBuffer on a 64B buffer created at a.c:1 f, after its last release": {
			Kind: wire.DiagUseAfterRelease, Function: "clEnqueueReadBuffer", Size: 64, Tag: "a.c:1 f", Count: 1,
		},
		"wrong context: clSetKernelArg of k with a 64B buffer, which belongs to another context": {
			Kind: wire.DiagWrongContext, Function: "clSetKernelArg", Kernel: "k", Size: 64, Count: 1,
		},
		"still mapped: clReleaseMemObject of a 64B buffer that is still mapped": {
			Kind: wire.DiagStillMapped, Function: "clReleaseMemObject", Size: 64, Count: 1,
		},
		"stale read: clEnqueueReadBuffer reads a recycled block before anything wrote it (certain): a 64B buffer created at a.c:1 f": {
			Kind: wire.DiagStaleRead, Function: "clEnqueueReadBuffer", Size: 64, Tag: "a.c:1 f", Count: 1,
		},
		"stale argument: a 64B buffer given to kernel k, which cannot write it, before anything wrote it: k may read it": {
			Kind: wire.DiagStaleArgument, Function: "clEnqueueNDRangeKernel", Kernel: "k", Size: 64, Count: 1,
		},
		"stale argument: a buffer given to a kernel that cannot write it, before anything wrote it: the kernel may read it (2 times)": {
			Kind: wire.DiagStaleArgument, Count: 2,
		},
	} {
		if got := f.Text(func(n uint64) string { return map[uint64]string{64: "64B", 1 << 20: "1.0M"}[n] }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCertainty(t *testing.T) {
	for kind := wire.DiagUnknownMemory; kind <= wire.DiagStaleArgument; kind++ {
		refused, accepted := Finding{Kind: kind, Status: -38}, Finding{Kind: kind}
		want := kind != wire.DiagStaleArgument
		if refused.IsCertain() != want || accepted.IsCertain() != (want && kind != wire.DiagUnknownMemory) {
			t.Errorf("%s: certain %v when refused, %v when accepted", kind, refused.IsCertain(), accepted.IsCertain())
		}
	}
}
