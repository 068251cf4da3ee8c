package calls_test

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
)

// TestCommandsThatFailRecordNothing checks what each command records of two buffers, an image and shared memory, and that it records nothing
// when it fails.
func TestCommandsThatFailRecordNothing(t *testing.T) {
	const (
		other  = buf + 0x100
		image  = buf + 0x200
		svm    = buf + 0x300
		shared = buf + 0x400
	)
	region, origin := words(4, 3, 2), words(1, 1, 1)
	corners := [2][]byte{region, origin}
	both := [2][]byte{words(buf, other)}
	tests := []struct {
		call
		want string
	}{
		{call{name: "clEnqueueReadBuffer", args: []uint64{queue, buf, 0, 16, 64}}, "use read size=64 object=1 granted=16 link=1 scope=1 tag=5 reads"},
		{call{name: "clEnqueueReadBuffer", args: []uint64{queue, buf, 1<<32 | 1, 16, 64}}, `
			sync blocking link=1 scope=1 duration=10
			use read size=64 object=1 granted=16 link=1 scope=1 tag=5 reads`},
		{call{name: "clEnqueueWriteBuffer", args: []uint64{queue, buf, 1, 16, 64}}, "use write size=64 object=1 granted=16 link=1 scope=1 tag=5 writes"},
		{call{name: "clEnqueueCopyBuffer", args: []uint64{queue, buf, other, 0, 16, 64}}, `
			use copy size=64 object=1 link=1 scope=1 tag=6 reads
			use copy size=64 object=2 granted=16 link=1 scope=1 tag=6 writes`},
		{call{name: "clEnqueueFillBuffer", args: []uint64{queue, buf, 9, 4, 16, 64}}, "use fill size=64 object=1 granted=16 link=1 scope=1 tag=5 writes"},
		{call{name: "clEnqueueReadBufferRect", args: []uint64{queue, buf, 1, 9, 9, 9}, copies: corners}, `
			sync blocking link=1 scope=1 duration=10
			use read size=24 object=1 link=1 scope=1 tag=5 reads scattered`},
		{call{name: "clEnqueueWriteBufferRect", args: []uint64{queue, buf, 1, 9, 9, 9}, copies: corners}, "use write size=24 object=1 link=1 scope=1 tag=5 writes scattered"},
		{call{name: "clEnqueueCopyBufferRect", args: []uint64{queue, buf, other, 9, 9, 9}, copies: corners}, `
			use copy size=24 object=1 link=1 scope=1 tag=6 reads scattered
			use copy size=24 object=2 link=1 scope=1 tag=6 writes scattered`},
		{call{name: "clEnqueueReadImage", args: []uint64{queue, image, 1, 9, 9}, copies: corners}, `
			sync blocking link=1 scope=1 duration=10
			use read size=96 object=3 link=1 scope=1 tag=5 reads scattered`},
		{call{name: "clEnqueueWriteImage", args: []uint64{queue, image, 1, 9, 9}, copies: corners}, "use write size=96 object=3 link=1 scope=1 tag=5 writes scattered"},
		{call{name: "clEnqueueCopyImage", args: []uint64{queue, image, image, 9, 9, 9}, copies: [2][]byte{region}}, `
			use copy size=96 object=3 link=1 scope=1 tag=6 reads scattered
			use copy size=96 object=3 link=1 scope=1 tag=6 writes scattered`},
		{call{name: "clEnqueueFillImage", args: []uint64{queue, image, 9, 9, 9}, copies: corners}, "use fill size=96 object=3 link=1 scope=1 tag=5 writes scattered"},
		{call{name: "clEnqueueCopyImageToBuffer", args: []uint64{queue, image, buf, 9, 9, 0}, copies: corners}, `
			use copy size=96 object=3 link=1 scope=1 tag=6 reads scattered
			use copy size=96 object=1 link=1 scope=1 tag=6 writes`},
		{call{name: "clEnqueueCopyBufferToImage", args: []uint64{queue, buf, image, 0, 9, 9}, copies: corners}, `
			use copy size=96 object=1 link=1 scope=1 tag=6 reads
			use copy size=96 object=3 link=1 scope=1 tag=6 writes scattered`},
		{call{name: "clEnqueueMapBuffer", args: []uint64{queue, buf, 0, 1, 16, 64}, result: 0x9000}, "use map size=64 object=1 granted=16 link=1 scope=1 tag=5 reads"},
		{call{name: "clEnqueueMapBuffer", args: []uint64{queue, buf, 1, 3, 16, 64}, result: 0x9000}, `
			sync blocking link=1 scope=1 duration=10
			use map size=64 object=1 granted=16 link=1 scope=1 tag=5 reads writes`},
		{call{name: "clEnqueueMapImage", args: []uint64{queue, image, 0, 4, 9, 9}, result: 0x9000, copies: corners}, "use map size=96 object=3 link=1 scope=1 tag=5 writes scattered"},
		{call{name: "clEnqueueUnmapMemObject", args: []uint64{queue, buf, 0x9000}}, "use unmap object=1 link=1 scope=1 tag=5 scattered"},
		{call{name: "clEnqueueMigrateMemObjects", args: []uint64{queue, 2, 9}, copies: both}, `
			use migrate size=4096 object=1 link=1 scope=1 tag=5
			use migrate size=4096 object=2 link=1 scope=1 tag=5`},
		{call{name: "clEnqueueMigrateMemObjects", args: []uint64{queue, 1, 9, 2}, copies: both}, "use migrate object=1 link=1 scope=1 tag=5 scattered"},
		{call{name: "clEnqueueMigrateMemObjectEXT", args: []uint64{queue, 1, 9}, copies: both}, "use migrate size=4096 object=1 link=1 scope=1 tag=5"},
		{call{name: "clEnqueueNativeKernel", args: []uint64{queue, 9, 9, 16, 2, 9}, copies: both}, `
			use native object=1 link=1 scope=1 tag=5
			use native object=2 link=1 scope=1 tag=5`},
		{call{name: "clEnqueueAcquireGLObjects", args: []uint64{queue, 1, 9}, copies: both}, "use acquire object=1 link=1 scope=1 tag=5 scattered"},
		{call{name: "clEnqueueReleaseGLObjects", args: []uint64{queue, 1, 9}, copies: both}, "use release object=1 link=1 scope=1 tag=5 scattered"},
		{call{name: "clEnqueueSVMMemcpy", args: []uint64{queue, 1, svm, shared, 64}}, `
			sync blocking link=1 scope=1 duration=10
			use copy size=64 object=5 link=1 scope=1 tag=6 reads
			use copy size=64 object=4 link=1 scope=1 tag=6 writes`},
		{call{name: "clEnqueueMemcpyINTEL", args: []uint64{queue, 0, svm, 0x123450, 64}}, "use write size=64 object=4 link=1 scope=1 tag=5 writes"},
		{call{name: "clEnqueueSVMMemcpy", args: []uint64{queue, 0, 0x123450, svm, 64}}, "use read size=64 object=4 link=1 scope=1 tag=5 reads"},
		{call{name: "clEnqueueSVMMemFill", args: []uint64{queue, svm, 9, 4, 64}}, "use fill size=64 object=4 link=1 scope=1 tag=5 writes"},
		{call{name: "clEnqueueMemFillINTEL", args: []uint64{queue, shared, 9, 4, 64}}, "use fill size=64 object=5 link=1 scope=1 tag=5 writes"},
		{call{name: "clEnqueueSVMMap", args: []uint64{queue, 1, 1, svm, 64}}, `
			sync blocking link=1 scope=1 duration=10
			use map size=64 object=4 link=1 scope=1 tag=5 reads`},
		{call{name: "clEnqueueSVMUnmap", args: []uint64{queue, svm}}, "use unmap object=4 link=1 scope=1 tag=5 scattered"},
		{call{name: "clEnqueueSVMMigrateMem", args: []uint64{queue, 2, 9}, copies: [2][]byte{words(svm, 0x5550)}}, "use migrate size=4096 object=4 link=1 scope=1 tag=5"},
		{call{name: "clEnqueueSVMMigrateMem", args: []uint64{queue, 1, 9, 0, 2}, copies: [2][]byte{words(svm)}}, "use migrate object=4 link=1 scope=1 tag=5 scattered"},
		{call{name: "clEnqueueMigrateMemINTEL", args: []uint64{queue, shared, 64, 2}}, "use migrate object=5 link=1 scope=1 tag=5 scattered"},
		{call{name: "clEnqueueMigrateMemINTEL", args: []uint64{queue, shared, 64}}, "use migrate size=64 object=5 link=1 scope=1 tag=5"},
		{call{name: "clEnqueueNDRangeKernel", args: []uint64{queue, kern}}, `
			use kernel object=2 granted=1 link=1 scope=1 tag=5 argument=2
			use kernel object=4 granted=1 link=1 scope=1 tag=5 argument=6
			use kernel object=5 granted=1 link=1 scope=1 tag=5 argument=7`},
		{call{name: "clEnqueueTask", args: []uint64{queue, kern}}, `
			use kernel object=2 granted=1 link=1 scope=1 tag=5 argument=2
			use kernel object=4 granted=1 link=1 scope=1 tag=5 argument=6
			use kernel object=5 granted=1 link=1 scope=1 tag=5 argument=7`},
		{call{name: "clEnqueueCommandBufferKHR", args: []uint64{0, 0, 9}}, "use other scattered"},
		{call{name: "clFinish", args: []uint64{queue}}, "sync finish link=1 scope=1 duration=10"},
		{call{name: "clFlush", args: []uint64{queue}}, "sync flush link=1 scope=1"},
		{call{name: "clWaitForEvents", args: []uint64{1, 9}}, "sync wait duration=10"},
	}
	tested := map[string]bool{}
	for _, test := range tests {
		tested[test.name] = true
		t.Run(test.name, func(t *testing.T) {
			p := newFromStart(t)
			p.setUp()
			p.buffer(buf, 4096)
			p.buffer(other, 4096)
			p.do(call{name: "clCreateImage", result: image, args: []uint64{ctx, 1}, copies: [2][]byte{format(0x10B5, 0x10DA), desc(image2D, 64, 64, 0, 0, 0, 0, 0)}})
			p.call("clSVMAlloc", svm, ctx, 1, 4096, 0)
			p.call("clSharedMemAllocINTEL", shared, ctx, 3, 0, 4096, 0)
			set := func(index uint64, value []byte) {
				p.do(call{name: "clSetKernelArg", args: []uint64{kern, index, 8, 9}, copies: [2][]byte{value}})
			}
			set(0, words(buf))
			set(1, words(other))
			set(0, nil) // not memory
			p.call("clSetKernelArgSVMPointer", 0, kern, 1<<33|5, svm)
			p.call("clSetKernelArgMemPointerINTEL", 0, kern, 6, shared)
			p.call("clSetKernelArgSVMPointer", code(-50), kern, 7, svm)
			p.call("clSetKernelArgSVMPointer", 0, kern, 8, svm+8) // not its beginning
			p.call("clSetKernelArgSVMPointer", 0, kern, 1<<31, svm)
			p.records = nil
			test.from = 6
			p.do(test.call)
			p.want(test.want)
			if calls.Functions[numbers[test.name]].Shape.Flags&wire.ShapeReturn == 0 || test.want[:4] == "sync" {
				return
			}
			c := test.call
			if c.result != 0 {
				c.result = 0
			} else {
				c.result = code(-5)
			}
			p.do(c)
			p.want("")
		})
	}
	for i := range calls.Functions {
		f := &calls.Functions[i]
		if f.Shape.Flags&wire.ShapeUse != 0 && !tested[f.Name] && !argumentOnly[f.Name] {
			t.Errorf("%s is not tested", f.Name)
		}
	}
}

// argumentOnly are functions that are no commands. They count as uses because only uses need them.
var argumentOnly = map[string]bool{
	"clSetKernelArg": true, "clSetKernelArgSVMPointer": true, "clSetKernelArgMemPointerINTEL": true, "clCreateSampler": true,
	"clCreateSamplerWithProperties": true, "clRetainSampler": true, "clReleaseSampler": true,
	// Tested with the counts of objects.
	"clEnqueueMarker": true, "clEnqueueMarkerWithWaitList": true, "clEnqueueBarrierWithWaitList": true, "clCreateUserEvent": true,
	"clRetainEvent": true, "clReleaseEvent": true,
}

// TestClonedKernelHasItsSourcesArguments: a cloned kernel starts with the arguments of its source.
func TestClonedKernelHasItsSourcesArguments(t *testing.T) {
	p := newFromStart(t)
	p.setUp()
	p.buffer(buf, 64)
	p.buffer(buf+1, 64)
	p.do(call{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(buf)}})
	p.call("clCloneKernel", kern+1, kern)
	p.do(call{name: "clSetKernelArg", args: []uint64{kern + 1, 0, 8, 9}, copies: [2][]byte{words(buf + 1)}})
	p.records = nil
	p.call("clEnqueueTask", 0, queue, kern)
	p.call("clEnqueueTask", 0, queue, kern+1)
	p.want(`
		use kernel object=1 granted=1 link=1 scope=1 tag=5 argument=1
		use kernel object=2 granted=2 link=1 scope=1 tag=5 argument=1`)
}

// TestMoreThanIsCopied: a command with more memory than is copied says that there is more.
func TestMoreThanIsCopied(t *testing.T) {
	p := newFromStart(t)
	p.setUp()
	var all []uint64
	for i := range uint64(17) {
		p.buffer(buf+i, 64)
		all = append(all, buf+i)
	}
	for n, last := range map[uint64]string{
		16: "use migrate size=64 object=16 link=1 scope=1 tag=5",
		17: "use migrate link=1 scattered",
	} {
		p.records = nil
		p.do(call{name: "clEnqueueMigrateMemObjects", args: []uint64{queue, n, 9}, copies: [2][]byte{words(all[:n]...)}})
		if len(p.records) != int(n) {
			t.Errorf("%d records for %d buffers", len(p.records), n)
		}
		p.records = p.records[len(p.records)-1:]
		p.want(last)
	}
}

// TestPointerArguments: addresses of device memory may be in the upper half, as with Intel's cards.
func TestPointerArguments(t *testing.T) {
	for _, address := range []uint64{1 << 12, 0x7fff_ffff_f000, 0xffff_b800_0020_0000, 0xff00_0000_0020_0000} {
		p := newFromStart(t)
		p.setUp()
		p.call("clDeviceMemAllocINTEL", address, ctx, 3, 0, 300, 0)
		p.call("clSetKernelArgMemPointerINTEL", 0, kern, 0, address)
		p.records = nil
		p.call("clEnqueueTask", 0, queue, kern)
		p.want("use kernel object=1 granted=1 link=1 scope=1 tag=5 argument=1")
	}
}

// TestFindings: detectable mistakes, and calls that look like mistakes.
func TestFindings(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*sampler)
		want string
	}{
		{"double release", func(p *sampler) {
			p.buffer(buf, 64)
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.call("clReleaseMemObject", 0, buf)
		}, `
			diag double release: "clReleaseMemObject" object=1 granted=64 tag=5
			release buffer driver`},
		{"double release of a buffer that its sub-buffer keeps", func(p *sampler) {
			p.buffer(buf, 64)
			p.do(call{name: "clCreateSubBuffer", result: buf + 1, args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(0, 50)}})
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.call("clReleaseMemObject", 0, buf)
		}, `
			diag double release: "clReleaseMemObject" object=1 granted=64 scope=1 tag=5
			release buffer driver`},
		{"use after release", func(p *sampler) {
			p.buffer(buf, 64)
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.call("clEnqueueReadBuffer", code(-38), queue, buf, 0, 0, 64)
			p.call("clRetainMemObject", 0, buf)
			p.do(call{name: "clCreateSubBuffer", args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(0, 50)}, err: -38})
			p.do(call{name: "clCreateImage", args: []uint64{ctx, 0}, copies: [2][]byte{format(0, 0), desc(image1DBuffer, 1, 0, 0, 0, 0, 0, buf)}, err: -38})
		}, `
			diag use after release: "clEnqueueReadBuffer" object=1 granted=64 tag=5
			diag use after release: "clRetainMemObject" object=1 granted=64 tag=5
			diag use after release: "clCreateSubBuffer" object=1 granted=64 tag=5
			create subbuffer failed size=50 granted=1 tag=5 status=-38 duration=10 cost=10
			diag use after release: "clCreateImage" object=1 granted=64 tag=5
			create image failed scope=1 tag=5 status=-38 duration=10 cost=10`},
		{"released while a command was running", func(p *sampler) {
			p.buffer(buf, 64)
			entered := p.now + 5
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.do(call{name: "clEnqueueReadBuffer", args: []uint64{queue, buf, 0, 0, 64}, entered: entered})
		}, ""},
		{"released while a command was running, and its handle reused", func(p *sampler) {
			p.buffer(buf, 64)
			entered := p.now + 5
			p.call("clReleaseMemObject", 0, buf)
			p.buffer(buf, 32)
			p.records = nil
			p.do(call{name: "clEnqueueMapBuffer", result: 0x9000, args: []uint64{queue, buf, 1, 1, 0, 64}, entered: entered})
			p.call("clReleaseMemObject", 0, buf)
		}, `
			sync blocking link=1 scope=1 duration=55
			release buffer driver size=32 object=2 scope=1 tag=5`},
		{"stale arguments are no finding", func(p *sampler) {
			p.buffer(buf, 64)
			p.do(call{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(buf)}})
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.call("clEnqueueTask", 0, queue, kern)
			for i := range uint64(3000) { // until the handle is forgotten
				p.buffer(buf+1+i, 64)
				p.call("clReleaseMemObject", 0, buf+1+i)
			}
			p.records = nil
			p.call("clEnqueueTask", 0, queue, kern)
		}, ""},
		{"unknown memory", func(p *sampler) {
			p.call("clEnqueueReadBuffer", code(-38), queue, buf, 0, 0, 64)
			p.call("clEnqueueReadBuffer", code(-30), queue, buf, 0, 0, 64)
		}, `diag unknown memory: "clEnqueueReadBuffer" status=-38`},
		{"wrong context", func(p *sampler) {
			p.call("clCreateContext", ctx+1)
			p.call("clCreateBuffer", buf, ctx+1, 1, 64, 0)
			p.do(call{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(buf)}})
			p.records = nil
			p.call("clEnqueueReadBuffer", code(-34), queue, buf, 0, 0, 64)
			p.call("clEnqueueReadBuffer", code(-30), queue, buf, 0, 0, 65)
			p.call("clEnqueueMapBuffer", 0, queue, buf, 0, 1, 0, 64)
			p.call("clEnqueueTask", 0, queue, kern)
		}, `
			diag wrong context: "clEnqueueReadBuffer" object=1 granted=64 scope=2 tag=5 status=-34
			diag wrong context: "clEnqueueMapBuffer" object=1 granted=64 scope=2 tag=5
			diag wrong context: "clEnqueueTask" object=1 granted=64 link=1 scope=2 tag=5
			use kernel object=1 granted=1 link=1 scope=2 tag=5 argument=1`},
		{"the context of carried memory is uncertain", func(p *sampler) {
			p.call("clCreateContext", ctx+1)
			p.call("clCreateBuffer", buf, ctx+1, 1, 64, 0)
			p.call("clEnqueueReadBuffer", 0, queue+1, buf, 0, 0, 64)
			p.call("clEnqueueReadBuffer", 0, queue, buf+1, 0, 0, 64)
			p.records = nil
			p.buffer(buf+2, 64)
			p.call("clEnqueueCopyBuffer", 0, queue+1, buf+2, buf+1, 0, 0, 64)
		}, `
			create buffer miss size=64 object=3 granted=64 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			use copy size=64 object=3 link=2 scope=1 tag=5 reads
			use copy size=64 object=2 link=2 scope=1 tag=5 writes`},
		{"still mapped", func(p *sampler) {
			p.buffer(buf, 64)
			p.call("clEnqueueMapBuffer", 0x9000, queue, buf, 0, 1, 0, 64)
			p.call("clEnqueueMapBuffer", 0x9000, queue, buf, 0, 1, 0, 64)
			p.call("clEnqueueUnmapMemObject", 0, queue, buf, 0x9000)
			p.records = nil
			p.call("clReleaseMemObject", 0, buf)
		}, `
			diag still mapped: "clReleaseMemObject" object=1 granted=64 scope=1 tag=5
			release buffer driver size=64 object=1 scope=1 tag=5`},
		{"a mapping of a sub-buffer counts for its buffer", func(p *sampler) {
			p.buffer(buf, 64)
			p.do(call{name: "clCreateSubBuffer", result: buf + 1, args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(0, 50)}})
			p.call("clEnqueueMapBuffer", 0x9000, queue, buf+1, 0, 1, 0, 50)
			p.call("clEnqueueUnmapMemObject", 0, queue, buf+1, 0x9000)
			p.call("clEnqueueUnmapMemObject", 0, queue, buf, 0x9000) // perhaps mapped before attach
			p.call("clEnqueueMapBuffer", 0x9000, queue, buf+1, 0, 1, 0, 50)
			p.records = nil
			p.call("clReleaseMemObject", 0, buf+1)
			p.call("clReleaseMemObject", 0, buf)
		}, `
			diag still mapped: "clReleaseMemObject" object=2 granted=50 scope=1 tag=5
			release subbuffer driver size=50 object=2 scope=1 tag=5
			diag still mapped: "clReleaseMemObject" object=1 granted=64 scope=1 tag=5
			release buffer driver size=64 object=1 scope=1 tag=5`},
		{"no findings after a loss", func(p *sampler) {
			p.buffer(buf, 64)
			p.buffer(buf+1, 64)
			p.call("clEnqueueMapBuffer", 0x9000, queue, buf, 0, 1, 0, 64)
			p.call("clReleaseMemObject", 0, buf+1)
			p.tracker.NoteCallsLost()
			p.records = nil
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf+1)
		}, `
			release buffer driver size=64 object=1 scope=1 tag=5
			create carried buffer driver object=3 tag=99
			release buffer driver object=3 tag=99`},
		{"memory may have more references after a loss", func(p *sampler) {
			p.buffer(buf, 64)
			p.do(call{name: "clCreateSubBuffer", result: buf + 1, args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(0, 50)}})
			p.tracker.NoteCallsLost()
			p.records = nil
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf)
			p.call("clEnqueueMapBuffer", 0x9000, queue, buf+1, 0, 1, 0, 50) // mappings since the loss count
			p.call("clReleaseMemObject", 0, buf+1)
			p.call("clReleaseMemObject", 0, buf+1)
			p.call("clEnqueueReadBuffer", 0, queue, buf, 0, 0, 64)
		}, `
			release buffer pinned size=64 object=1 scope=1 tag=5
			use map size=50 object=2 link=1 scope=1 tag=5 reads
			diag still mapped: "clReleaseMemObject" object=2 granted=50 scope=1 tag=5
			release subbuffer driver size=50 object=2 scope=1 tag=5
			release buffer driver size=64 object=1 scope=1 tag=5
			create carried buffer driver size=64 object=3 granted=64 scope=1 tag=99
			use read size=64 object=3 link=1 scope=1 tag=99 reads`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newFromStart(t)
			p.setUp()
			test.do(p)
			p.want(test.want)
		})
	}
}
