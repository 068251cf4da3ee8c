package calls_test

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
)

// benchTracker is a tracker of a program with a thousand buffers.
func benchTracker(b *testing.B) *calls.Tracker {
	b.Helper()
	var at tags
	tracker := calls.NewTracker(&at, func(*wire.Record) {})
	for i := range uint64(1000) {
		c := call{name: "clCreateBuffer", result: 0x10000 + 0x100*i, args: []uint64{ctx, 1, 4096, 0}}
		tracker.HandleCall(c.sample(b, 100, 1))
	}
	return tracker
}

// BenchmarkLife is a create and its release.
func BenchmarkLife(b *testing.B) {
	tracker := benchTracker(b)
	create := (&call{name: "clCreateBuffer", result: buf, args: []uint64{ctx, 1, 4096, 0}}).sample(b, 100, 1)
	release := (&call{name: "clReleaseMemObject", args: []uint64{buf}}).sample(b, 100, 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		handle := buf + uint64(i&63)*0x80
		create.Result, release.Argument[0] = handle, handle
		tracker.HandleCall(create)
		tracker.HandleCall(release)
	}
}

// BenchmarkArgument is a kernel argument.
func BenchmarkArgument(b *testing.B) {
	tracker := benchTracker(b)
	s := (&call{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(0x10000)}}).sample(b, 100, 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Argument[1] = uint64(i & 7)
		tracker.HandleCall(s)
	}
}

// BenchmarkLaunch is a kernel with eight arguments: eight uses.
func BenchmarkLaunch(b *testing.B) {
	tracker := benchTracker(b)
	for i := range uint64(8) {
		s := (&call{name: "clSetKernelArg", args: []uint64{kern, i, 8, 9}, copies: [2][]byte{words(0x10000 + 0x100*i)}}).sample(b, 100, 1)
		tracker.HandleCall(s)
	}
	s := (&call{name: "clEnqueueNDRangeKernel", args: []uint64{queue, kern}}).sample(b, 100, 1)
	b.ReportAllocs()
	for b.Loop() {
		tracker.HandleCall(s)
	}
}
