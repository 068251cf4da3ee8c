package calls_test

import (
	"slices"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// TestObjectsFromBeforeAttach: objects from before attach.
func TestObjectsFromBeforeAttach(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*sampler)
		want string
	}{
		{"context", func(p *sampler) {
			p.call("clCreateBuffer", buf, ctx, 1, 64, 0)
			p.call("clRetainContext", 0, ctx+1)
			p.call("clReleaseContext", 0, ctx+1)
			p.call("clReleaseContext", 0, ctx+1)
			p.call("clReleaseContext", 0, ctx+1) // it had more references
			p.call("clCreateContext", ctx+1)
		}, `
			context carried create object=1 scope=1
			create buffer miss size=64 object=1 granted=64 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			context carried create object=2 scope=2
			context retain object=2 scope=2
			context release object=2 scope=2
			context release object=2 scope=2
			context release object=2 scope=2
			context create object=3 scope=3`},
		{"queue", func(p *sampler) {
			p.call("clFinish", 0, queue)
			p.call("clFinish", code(-36), queue+1)
			p.call("clFlush", 0, queue+2)
			p.call("clReleaseCommandQueue", 0, queue)
			p.call("clRetainCommandQueue", 0, queue+3)
			p.call("clFinish", 0, queue)
		}, `
			queue carried create object=1
			sync finish link=1 duration=10
			sync finish duration=10
			queue carried create object=2
			sync flush link=2
			queue release object=1
			queue carried create object=3
			queue retain object=3
			sync finish link=1 duration=10`},
		{"kernel", func(p *sampler) {
			p.call("clEnqueueTask", 0, queue, kern)
			p.call("clReleaseKernel", 0, kern)
			p.call("clCloneKernel", kern+1, kern)
			p.call("clRetainKernel", 0, kern+2)
			p.call("clEnqueueTask", code(-48), queue, kern+3)
		}, `
			queue carried create object=1
			kernel carried "unknown before attach" object=1
			kernel "unknown before attach" object=2
			kernel carried "unknown before attach" object=3`},
		{"released", func(p *sampler) {
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf) // it had one more
			p.call("clReleaseMemObject", 0, 0)
			p.call("clSVMFree", 0, ctx, buf+1)
			p.do(call{name: "clEnqueueSVMFree", args: []uint64{queue, 1, 9, 0}, copies: [2][]byte{words(buf + 2)}})
			p.do(call{name: "clEnqueueSVMFree", args: []uint64{queue, 1, 9, 0}})
		}, `
			create carried buffer driver object=1 tag=99
			release buffer driver object=1 tag=99
			release buffer driver
			create carried svm driver object=2 tag=99
			release svm driver object=2 tag=99
			create carried svm driver object=3 tag=99
			release svm driver object=3 tag=99`},
		{"retained", func(p *sampler) {
			p.call("clRetainMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf)
		}, `
			create carried buffer driver object=1 tag=99
			retain buffer object=1 granted=2 tag=99
			release buffer driver object=1 granted=1 tag=99
			release buffer driver object=1 tag=99`},
		{"used", func(p *sampler) {
			p.setUp()
			p.call("clEnqueueReadBuffer", 0, queue, buf, 0, 100, 900)
			p.call("clEnqueueReadBuffer", 0, queue, buf, 0, 0, 500)
			p.call("clEnqueueWriteBuffer", 0, queue, buf, 0, 1000, 1000)
			p.call("clEnqueueWriteBuffer", 0, queue, buf, 0, 2000, 16) // too little to write
			p.call("clEnqueueWriteBuffer", code(-30), queue, buf, 0, 2000, 16000)
			p.call("clReleaseMemObject", 0, buf)
		}, `
			create carried buffer driver size=1000 object=1 granted=1000 scope=1 tag=99
			use read size=900 object=1 granted=100 link=1 scope=1 tag=99 reads
			use read size=500 object=1 link=1 scope=1 tag=99 reads
			release carried buffer driver size=1000 object=1 scope=1 tag=99
			create carried buffer driver size=2000 object=1 granted=2000 scope=1 tag=99
			use write size=1000 object=1 granted=1000 link=1 scope=1 tag=99 writes
			use write size=16 object=1 granted=2000 link=1 scope=1 tag=99 writes
			release buffer driver size=2000 object=1 scope=1 tag=99`},
		{"each command's least", func(p *sampler) {
			p.setUp()
			corners := [2][]byte{words(4, 3, 2), words(1, 1, 1)}
			p.call("clEnqueueCopyBuffer", 0, queue, buf, buf+1, 10, 20, 30)
			p.call("clEnqueueFillBuffer", 0, queue, buf+2, 9, 4, 10, 40)
			p.do(call{name: "clEnqueueReadBufferRect", args: []uint64{queue, buf + 3}, copies: corners})
			p.do(call{name: "clEnqueueWriteImage", args: []uint64{queue, buf + 4}, copies: corners})
			p.do(call{name: "clEnqueueCopyBufferToImage", args: []uint64{queue, buf + 5, buf + 6, 10}, copies: [2][]byte{words(4, 3, 2)}})
			p.call("clEnqueueMapBuffer", 0x9000, queue, buf+7, 0, 0, 10, 20)
			p.do(call{name: "clEnqueueAcquireGLObjects", args: []uint64{queue, 1}, copies: [2][]byte{words(buf + 8)}})
			p.call("clEnqueueMapBuffer", 0, queue, buf+9, 0, 0, 10, 20)
			p.call("clEnqueueSVMMemcpy", 0, queue, 0, buf+10, buf+11, 64)
		}, `
			create carried buffer driver size=40 object=1 granted=40 scope=1 tag=99
			create carried buffer driver size=50 object=2 granted=50 scope=1 tag=99
			use copy size=30 object=1 granted=10 link=1 scope=1 tag=5 reads
			use copy size=30 object=2 granted=20 link=1 scope=1 tag=5 writes
			create carried buffer driver size=50 object=3 granted=50 scope=1 tag=99
			use fill size=40 object=3 granted=10 link=1 scope=1 tag=99 writes
			create carried buffer driver size=41 object=4 granted=41 scope=1 tag=99
			use read size=24 object=4 link=1 scope=1 tag=99 reads scattered
			create carried image driver size=41 object=5 granted=41 scope=1 tag=99
			use write object=5 link=1 scope=1 tag=99 writes scattered
			create carried buffer driver size=34 object=6 granted=34 scope=1 tag=99
			create carried image driver size=24 object=7 granted=24 scope=1 tag=99
			use copy object=6 granted=10 link=1 scope=1 tag=5 reads
			use copy object=7 link=1 scope=1 tag=5 writes scattered
			create carried buffer driver size=30 object=8 granted=30 scope=1 tag=99
			use map size=20 object=8 granted=10 link=1 scope=1 tag=99
			create carried external driver object=9 scope=1 tag=99
			use acquire object=9 link=1 scope=1 tag=99 scattered`},
		{"shared with others", func(p *sampler) {
			p.setUp()
			p.do(call{name: "clCreateSubBuffer", args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(100, 50)}, err: -13})
			p.do(call{name: "clCreateSubBuffer", result: buf + 1, args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(100, 50)}})
			p.do(call{name: "clCreateImage", result: buf + 2, args: []uint64{ctx, 0}, copies: [2][]byte{format(0x10B5, 0x10DA), desc(image1DBuffer, 100, 0, 0, 0, 0, 0, buf)}})
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf) // it had one more
			p.call("clEnqueueReadBuffer", 0, queue, buf, 0, 0, 1000)
			p.call("clReleaseMemObject", 0, buf+1)
			p.call("clReleaseMemObject", 0, buf+2)
		}, `
			create subbuffer failed size=50 granted=101 tag=5 status=-13 duration=10 cost=10
			create carried buffer driver size=150 object=1 granted=150 tag=99
			create subbuffer driver size=50 object=2 granted=101 link=1 tag=5 duration=10 cost=10
			release carried buffer driver size=150 object=1 tag=99
			create carried buffer driver size=400 object=1 granted=400 tag=99
			create image driver size=400 object=3 link=1 scope=1 tag=5 duration=10 cost=10
			release buffer pinned size=400 object=1 tag=99
			use read size=1000 object=1 link=1 tag=99 reads
			release subbuffer driver size=50 object=2 tag=5
			release image driver size=400 object=3 scope=1 tag=5
			release buffer driver size=400 object=1 tag=99`},
		{"lives on after a release", func(p *sampler) {
			p.setUp()
			p.call("clEnqueueReadBuffer", 0, queue, buf, 0, 0, 4096)
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.call("clEnqueueReadBuffer", code(-38), queue, buf, 0, 0, 100)
			p.call("clEnqueueReadBuffer", 0, queue, buf, 0, 0, 100)
			p.call("clReleaseMemObject", 0, buf)
			p.call("clRetainMemObject", 0, buf)
		}, `
			create carried buffer driver size=4096 object=2 granted=4096 scope=1 tag=99
			use read size=100 object=2 link=1 scope=1 tag=99 reads
			release buffer driver size=4096 object=2 scope=1 tag=99
			create carried buffer driver size=4096 object=3 granted=4096 tag=99
			retain buffer size=4096 object=3 granted=2 tag=99`},
		{"arguments", func(p *sampler) {
			p.setUp()
			p.call("clCreateSampler", buf+3, ctx, 0, 0, 0)
			p.call("clRetainSampler", 0, buf+3)
			p.call("clReleaseSampler", 0, buf+3)
			p.call("clCreateSamplerWithProperties", buf+4, ctx, 0)
			p.call("clReleaseSampler", 0, buf+4)
			p.call("clReleaseSampler", 0, buf+5)
			for i, handle := range []uint64{buf, queue, kern, buf + 3, ctx, buf + 5} {
				p.do(call{name: "clSetKernelArg", args: []uint64{kern, uint64(i), 8, 9}, copies: [2][]byte{words(handle)}})
			}
			p.call("clSetKernelArgSVMPointer", 0, kern, 7, buf+6)
			p.call("clEnqueueTask", code(-52), queue, kern)
			p.call("clEnqueueTask", 0, queue, kern)
			p.call("clReleaseMemObject", 0, buf)
			p.call("clEnqueueTask", 0, queue, kern) // nothing shows that it lives on
			p.do(call{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(buf)}})
			p.call("clEnqueueTask", 0, queue, kern)
			p.call("clReleaseMemObject", 0, buf)
			p.do(call{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(buf)}})
			p.call("clReleaseMemObject", 0, buf) // it has ended as far as we know
			p.call("clEnqueueTask", 0, queue, kern)
		}, `
			create carried buffer driver object=1 scope=1 tag=99
			use kernel object=1 granted=1 link=1 scope=1 tag=99 argument=1
			release buffer driver object=1 scope=1 tag=99
			create carried buffer driver object=2 scope=1 tag=99
			use kernel object=2 granted=1 link=1 scope=1 tag=99 argument=1
			release buffer driver object=2 scope=1 tag=99`},
		{"an argument outlives the former object of its handle", func(p *sampler) {
			p.setUp()
			p.do(call{name: "clSetKernelArg", args: []uint64{kern, 0, 8, 9}, copies: [2][]byte{words(buf)}})
			p.call("clReleaseMemObject", 0, buf)
			p.buffer(buf, 64) // just attached, see below
			p.call("clReleaseMemObject", 0, buf)
			p.call("clEnqueueTask", 0, queue, kern)
		}, `
			create carried buffer driver object=1 tag=99
			release buffer driver object=1 tag=99
			create buffer miss size=64 object=2 granted=64 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			release buffer driver size=64 object=2 scope=1 tag=5`},
		{"its create was running", func(p *sampler) {
			p.setUp()
			p.buffer(buf, 64)
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.do(call{name: "clEnqueueWriteImage", args: []uint64{queue, buf}, copies: [2][]byte{words(4, 3, 1), words(0, 0, 0)}})
		}, `
			create carried image driver size=12 object=2 granted=12 scope=1 tag=99
			use write object=2 link=1 scope=1 tag=99 writes scattered`},
		{"a queue's context is that of the memory used with it", func(p *sampler) {
			p.call("clCreateContext", ctx)
			p.buffer(buf, 64)
			p.call("clEnqueueReadBuffer", 0, queue, buf, 1, 0, 64)
			p.call("clEnqueueReadBuffer", 0, queue, buf+1, 0, 0, 64)
		}, `
			context create object=1 scope=1
			create buffer miss size=64 object=1 granted=64 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			queue carried create object=1
			sync blocking link=1 scope=1 duration=10
			use read size=64 object=1 link=1 scope=1 tag=5 reads
			create carried buffer driver size=64 object=2 granted=64 scope=1 tag=99
			use read size=64 object=2 link=1 scope=1 tag=99 reads`},
		{"its handle is reused", func(p *sampler) {
			p.setUp()
			p.call("clEnqueueReadBuffer", 0, queue, buf, 0, 0, 64)
			p.buffer(buf, 32)
		}, `
			create carried buffer driver size=64 object=1 granted=64 scope=1 tag=99
			use read size=64 object=1 link=1 scope=1 tag=99 reads
			release buffer driver size=64 object=1 scope=1 tag=99
			create buffer miss size=32 object=2 granted=32 scope=1 tag=5 access=1 reason=9 duration=10 cost=10`},
		{"retained inside its own create", func(p *sampler) {
			p.setUp()
			entered := p.now + 5
			p.call("clRetainMemObject", 0, buf)
			p.do(call{name: "clCreateBuffer", result: buf, args: []uint64{ctx, 1, 64, 0}, entered: entered})
		}, `
			create carried buffer driver object=1 tag=99
			retain buffer object=1 granted=2 tag=99
			release carried buffer driver object=1 tag=99
			create buffer miss size=64 object=2 granted=64 scope=1 tag=5 access=1 reason=9 duration=35 cost=35`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newSampler(t)
			test.do(p)
			p.want(test.want)
		})
	}
}

// A create that was running when we attached is not reported, and may return a handle that we saw freed. A use of that
// handle is no mistake, until ten seconds later no such create can still be running.
func TestCreateThatWasRunning(t *testing.T) {
	for _, test := range []struct {
		name  string
		whole bool
		at    uint64 // ns after the first call
		want  bool   // a finding
	}{
		{"just attached", false, 1e9, false},
		{"settled", false, 11e9, true},
		{"from the first call on", true, 1e9, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newSampler(t)
			if test.whole {
				p.tracker.NoteSeenFromStart()
			}
			p.buffer(buf+1, 8)
			p.now += test.at
			p.buffer(buf, 64)
			p.call("clReleaseMemObject", 0, buf)
			p.records = nil
			p.call("clReleaseMemObject", 0, buf)
			found := slices.ContainsFunc(p.records, func(r wire.Record) bool { return r.Kind == wire.KindDiag })
			if found != test.want {
				t.Errorf("a finding: %v, want %v: %v", found, test.want, p.records)
			}
		})
	}
}
