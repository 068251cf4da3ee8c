package calls_test

import (
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
	"codeberg.org/gpumemtop/gpumemtop/tracer/calls"
)

// TestLives: creates and releases of all kinds.
func TestLives(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*sampler)
		want string
	}{
		{"context and queues", func(p *sampler) {
			p.call("clCreateContextFromType", ctx)
			p.call("clRetainContext", 0, ctx)
			p.call("clCreateCommandQueue", queue, ctx, 1, 1)
			p.do(call{name: "clCreateCommandQueueWithProperties", result: queue + 1, args: []uint64{ctx, 1, 9},
				copies: [2][]byte{words(0x4000, 1, 0x1093, 4, 0, 7, 0x1093, 0)}})
			p.do(call{name: "clCreateCommandQueueWithPropertiesKHR", result: queue + 2, args: []uint64{ctx, 1, 9},
				copies: [2][]byte{words(0, 0x1093, 1)}})
			p.call("clCreateCommandQueue", 0, ctx, 1, 1)
			p.call("clRetainCommandQueue", 0, queue)
			p.call("clReleaseCommandQueue", 0, queue)
			p.call("clReleaseCommandQueue", 0, queue)
			p.call("clReleaseContext", 0, ctx)
			p.call("clReleaseContext", 0, ctx) // its queues keep it
			p.call("clRetainContext", 0, ctx)
			p.call("clReleaseCommandQueue", 0, queue+1)
			p.call("clReleaseContext", 0, ctx)
			p.call("clReleaseCommandQueue", 0, queue+2)
			p.call("clCreateCommandQueue", queue, ctx, 1, 0) // a buffer still kept it
			p.call("clReleaseCommandQueue", 0, queue)
			p.call("clCreateContext", 0)
			p.call("clCreateContext", ctx)
		}, `
			context create object=1 scope=1
			context retain object=1 scope=1
			queue create object=1 scope=1 out of order
			queue create object=2 scope=1 out of order
			queue create object=3 scope=1
			queue retain object=1 scope=1 out of order
			queue release object=1 scope=1 out of order
			queue end object=1 scope=1 out of order
			context release object=1 scope=1
			context release object=1 scope=1
			context retain object=1 scope=1
			queue end object=2 scope=1 out of order
			context release object=1 scope=1
			queue end object=3 scope=1
			context end object=1 scope=1
			context create object=1 scope=1
			queue create object=4 scope=1
			queue end object=4 scope=1
			context end object=1 scope=1
			context create object=2 scope=2`},
		{"buffer", func(p *sampler) {
			p.setUp()
			p.buffer(buf, 4096)
			p.call("clRetainMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf)
			p.buffer(buf, 8192) // reused handle
			p.do(call{name: "clCreateBuffer", args: []uint64{ctx, 1, 100, 0}, err: -61})
			p.do(call{name: "clCreateBuffer", args: []uint64{0x99, 1, 100, 0}, err: -34})
		}, `
			create buffer miss size=4096 object=1 granted=4096 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			retain buffer size=4096 object=1 granted=2 scope=1 tag=5
			release buffer driver size=4096 object=1 granted=1 scope=1 tag=5
			release buffer driver size=4096 object=1 scope=1 tag=5
			create buffer miss size=8192 object=2 granted=8192 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			create buffer failed size=100 granted=100 scope=1 tag=5 access=1 status=-61 duration=10 cost=10
			create buffer failed size=100 granted=100 tag=5 access=1 status=-34 duration=10 cost=10`},
		{"buffers with properties", func(p *sampler) {
			p.setUp()
			p.call("clCreateBufferWithProperties", buf, ctx, 0, 1, 100, 0)
			p.call("clCreateBufferWithProperties", buf+1, ctx, 0x77, 1, 100, 0)
			p.call("clCreateBufferWithPropertiesINTEL", buf+2, ctx, 0x77, 1, 100, 0)
		}, `
			create buffer miss size=100 object=1 granted=100 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			create buffer driver size=100 object=2 granted=100 scope=1 tag=5 access=1 duration=10 cost=10
			create buffer driver size=100 object=3 granted=100 scope=1 tag=5 access=1 duration=10 cost=10`},
		{"sub-buffers keep their buffer", func(p *sampler) {
			p.setUp()
			p.buffer(buf, 4096)
			for i := uint64(1); i < 3; i++ {
				p.do(call{name: "clCreateSubBuffer", result: buf + i, args: []uint64{buf, 4, 0x1220, 9}, copies: [2][]byte{words(1024, 512*i)}})
			}
			p.do(call{name: "clCreateSubBuffer", args: []uint64{buf, 4, 0x1220, 9}, copies: [2][]byte{words(1024, 5000)}, err: -30})
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf+1)
			p.call("clReleaseMemObject", 0, buf+2)
		}, `
			create buffer miss size=4096 object=1 granted=4096 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			create subbuffer driver size=512 object=2 granted=1025 link=1 scope=1 tag=5 access=4 duration=10 cost=10
			create subbuffer driver size=1024 object=3 granted=1025 link=1 scope=1 tag=5 access=4 duration=10 cost=10
			create subbuffer failed size=5000 granted=1025 link=1 scope=1 tag=5 access=4 status=-30 duration=10 cost=10
			release buffer pinned size=4096 object=1 scope=1 tag=5
			release subbuffer driver size=512 object=2 scope=1 tag=5
			release subbuffer driver size=1024 object=3 scope=1 tag=5
			release buffer driver size=4096 object=1 scope=1 tag=5`},
		{"retained while pinned", func(p *sampler) {
			p.setUp()
			p.buffer(buf, 100)
			p.do(call{name: "clCreateSubBuffer", result: buf + 1, args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(0, 50)}})
			p.records = nil
			p.call("clReleaseMemObject", 0, buf)
			p.call("clRetainMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf+1)
			p.call("clReleaseMemObject", 0, buf)
		}, `
			release buffer pinned size=100 object=1 scope=1 tag=5
			retain buffer size=100 object=1 granted=1 scope=1 tag=5
			release subbuffer driver size=50 object=2 scope=1 tag=5
			release buffer driver size=100 object=1 scope=1 tag=5`},
		{"images and pipes", func(p *sampler) {
			p.setUp()
			p.buffer(buf, 4096)
			rgba := format(0x10B5, 0x10DA)
			p.do(call{name: "clCreateImage", result: buf + 1, args: []uint64{ctx, 1, 8, 9, 0}, copies: [2][]byte{rgba, desc(image2D, 64, 16, 0, 0, 0, 0, 0)}})
			p.do(call{name: "clCreateImage", args: []uint64{ctx, 1, 8, 9, 0}, copies: [2][]byte{rgba, desc(image2D, 64, 16, 0, 0, 0, 0, 0)}, err: -10})
			p.do(call{name: "clCreateImageWithProperties", result: buf + 2, args: []uint64{ctx, 7, 4, 8, 9, 0},
				copies: [2][]byte{rgba, desc(image1DBuffer, 64, 0, 0, 0, 0, 0, buf)}})
			p.do(call{name: "clCreateImageWithProperties", args: []uint64{ctx, 7, 4, 8, 9, 0},
				copies: [2][]byte{rgba, desc(image1DBuffer, 64, 0, 0, 0, 0, 0, buf)}})
			p.do(call{name: "clCreateImage2D", result: buf + 3, args: []uint64{ctx, 1, 8, 64, 16, 1024}, copies: [2][]byte{rgba}})
			p.do(call{name: "clCreateImage3D", result: buf + 4, args: []uint64{ctx, 1, 8, 64, 16, 2}, copies: [2][]byte{rgba}})
			p.do(call{name: "clCreateImage3D", args: []uint64{ctx, 1, 8, 64, 16, 2}, copies: [2][]byte{rgba}})
			p.call("clCreatePipe", buf+5, ctx, 2, 16, 10, 0)
			p.call("clReleaseMemObject", 0, buf)
			p.call("clReleaseMemObject", 0, buf+2)
		}, `
			create buffer miss size=4096 object=1 granted=4096 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			create image driver size=4096 object=2 granted=4096 scope=1 tag=5 access=1 duration=10 cost=10
			create image failed scope=1 tag=5 access=1 status=-10 duration=10 cost=10
			create image driver size=256 object=3 link=1 scope=1 tag=5 access=4 duration=10 cost=10
			create image failed link=1 scope=1 tag=5 access=4 duration=10 cost=10
			create image driver size=16384 object=4 granted=16384 scope=1 tag=5 access=1 duration=10 cost=10
			create image driver size=8192 object=5 granted=8192 scope=1 tag=5 access=1 duration=10 cost=10
			create image failed scope=1 tag=5 access=1 duration=10 cost=10
			create pipe driver size=160 object=6 granted=160 scope=1 tag=5 access=2 duration=10 cost=10
			release buffer pinned size=4096 object=1 scope=1 tag=5
			release image driver size=256 object=3 scope=1 tag=5
			release buffer driver size=4096 object=1 scope=1 tag=5`},
		{"shared memory", func(p *sampler) {
			p.setUp()
			p.call("clSVMAlloc", buf, ctx, 1, 100, 0)
			p.call("clSVMAlloc", 0, ctx, 1, 100, 0)
			p.call("clSVMAlloc", 0, ctx, 1, 0, 0)
			p.call("clHostMemAllocINTEL", buf+1, ctx, 0, 200, 0)
			p.call("clDeviceMemAllocINTEL", buf+2, ctx, 3, 0, 300, 0)
			p.call("clSharedMemAllocINTEL", buf+3, ctx, 3, 0, 400, 0)
			p.do(call{name: "clSharedMemAllocINTEL", args: []uint64{ctx, 3, 0, 400, 0}, err: -61})
			p.call("clSVMFree", 0, ctx, buf)
			p.call("clSVMFree", 0, ctx, 0)
			p.call("clSVMFree", 0, ctx, buf) // undefined; we report nothing
			p.call("clMemFreeINTEL", 0, ctx, buf+1)
			p.call("clMemBlockingFreeINTEL", 0, ctx, buf+2)
			list := [2][]byte{words(buf+3, 0)}
			p.do(call{name: "clEnqueueSVMFree", args: []uint64{queue, 1, 9, 0x55}, copies: list}) // its callback frees them
			p.do(call{name: "clEnqueueSVMFree", args: []uint64{queue, 2, 9, 0}, copies: list})
		}, `
			create svm driver size=100 object=1 granted=100 scope=1 tag=5 access=1 duration=10 cost=10
			create svm failed size=100 granted=100 scope=1 tag=5 access=1 status=-4 duration=10 cost=10
			create svm failed scope=1 tag=5 access=1 status=-30 duration=10 cost=10
			create usm host driver size=200 object=2 granted=200 scope=1 tag=5 access=16 duration=10 cost=10
			create usm device driver size=300 object=3 granted=300 scope=1 tag=5 duration=10 cost=10
			create usm shared driver size=400 object=4 granted=400 scope=1 tag=5 duration=10 cost=10
			create usm shared failed size=400 granted=400 scope=1 tag=5 status=-61 duration=10 cost=10
			release svm driver size=100 object=1 scope=1 tag=5
			release usm host driver size=200 object=2 scope=1 tag=5
			release usm device driver size=300 object=3 scope=1 tag=5
			release usm shared driver size=400 object=4 scope=1 tag=5`},
		{"memory of OpenGL", func(p *sampler) {
			p.setUp()
			for i, name := range []string{"Buffer", "Renderbuffer", "Texture", "Texture2D", "Texture3D"} {
				p.call("clCreateFromGL"+name, buf+uint64(i), ctx, 4, 17)
			}
			p.do(call{name: "clCreateFromGLBuffer", args: []uint64{ctx, 4, 17}, err: -60})
			p.call("clReleaseMemObject", 0, buf)
		}, `
			create external driver object=1 scope=1 tag=5 access=4 duration=10 cost=10
			create external driver object=2 scope=1 tag=5 access=4 duration=10 cost=10
			create external driver object=3 scope=1 tag=5 access=4 duration=10 cost=10
			create external driver object=4 scope=1 tag=5 access=4 duration=10 cost=10
			create external driver object=5 scope=1 tag=5 access=4 duration=10 cost=10
			create external failed scope=1 tag=5 access=4 status=-60 duration=10 cost=10
			release external driver object=1 scope=1 tag=5`},
		{"kernels", func(p *sampler) {
			p.do(call{name: "clCreateKernel", result: kern, args: []uint64{1, 2}, copies: [2][]byte{[]byte("add\x00")}})
			p.call("clCreateKernel", 0, 1, 2)
			list := words(kern+1, kern+2, kern+3)
			p.do(call{name: "clCreateKernelsInProgram", args: []uint64{1, 3, 9, 8}, copies: [2][]byte{list, format(2, 77)}})
			p.do(call{name: "clCreateKernelsInProgram", args: []uint64{1, 1, 9, 0}, copies: [2][]byte{words(kern + 4)}})
			p.do(call{name: "clCreateKernelsInProgram", args: []uint64{1, 0, 0, 8}, copies: [2][]byte{nil, format(2, 77)}})
			p.do(call{name: "clCreateKernelsInProgram", result: code(-30), args: []uint64{1, 3, 9, 8}, copies: [2][]byte{words(kern + 5)}})
			p.call("clCloneKernel", kern+6, kern)
			p.call("clRetainKernel", 0, kern)
			p.call("clReleaseKernel", 0, kern)
			p.call("clReleaseKernel", 0, kern)
			p.do(call{name: "clCreateKernel", result: kern, args: []uint64{1, 2}, copies: [2][]byte{[]byte("sub\x00")}})
		}, `
			kernel "add" object=1
			kernel "made by clCreateKernelsInProgram" object=2
			kernel "made by clCreateKernelsInProgram" object=3
			kernel "made by clCreateKernelsInProgram" object=4
			kernel "add" object=5
			kernel "sub" object=6`},
		{"one object from two functions", func(p *sampler) {
			p.setUp()
			p.do(call{name: "clCreateImage", result: buf, args: []uint64{ctx, 1}, copies: [2][]byte{format(0x10B5, 0x10DA), desc(image2D, 4, 4, 0, 0, 0, 0, 0)}})
			p.do(call{name: "clCreateImage2D", result: buf, args: []uint64{ctx, 1, 8, 4, 4}, entered: p.now - 15})
			p.call("clReleaseMemObject", 0, buf)
		}, `
			create image driver size=64 object=1 granted=64 scope=1 tag=5 access=1 duration=10 cost=10
			release image driver size=64 object=1 scope=1 tag=5`},
		{"a call of another thread is separate", func(p *sampler) {
			p.setUp()
			p.buffer(buf, 100)
			p.tid = 8
			p.do(call{name: "clCreateBufferWithProperties", result: buf, args: []uint64{ctx, 0, 1, 200}, entered: p.now - 15})
		}, `
			create buffer miss size=100 object=1 granted=100 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			release buffer driver size=100 object=1 scope=1 tag=5
			create buffer miss size=200 object=2 granted=200 scope=1 tag=5 access=1 reason=9 duration=35 cost=35`},
		{"an unseen release", func(p *sampler) {
			p.setUp()
			p.buffer(buf, 100)
			p.do(call{name: "clCreateSubBuffer", result: buf + 1, args: []uint64{buf, 0, 0x1220, 9}, copies: [2][]byte{words(0, 50)}})
			p.buffer(buf, 200)
			p.call("clReleaseMemObject", 0, buf+1)
			p.do(call{name: "clCreateSampler", result: buf, args: []uint64{ctx}})
		}, `
			create buffer miss size=100 object=1 granted=100 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			create subbuffer driver size=50 object=2 granted=1 link=1 scope=1 tag=5 duration=10 cost=10
			release buffer driver size=100 object=1 scope=1 tag=5
			create buffer miss size=200 object=3 granted=200 scope=1 tag=5 access=1 reason=9 duration=10 cost=10
			release subbuffer driver size=50 object=2 scope=1 tag=5
			release buffer driver size=200 object=3 scope=1 tag=5`},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newFromStart(t)
			test.do(p)
			p.want(test.want)
		})
	}
}

const (
	image2D       = 0x10F1
	image3D       = 0x10F2
	image2DArray  = 0x10F3
	image1D       = 0x10F4
	image1DArray  = 0x10F5
	image1DBuffer = 0x10F6
)

func TestEligible(t *testing.T) {
	const host = 0x5000
	for _, test := range []struct {
		flags, size, host uint64
		want              bool
	}{
		{0, 1, 0, true},
		{1, 0, 0, false},        // the driver refuses it
		{1 | 2, 64, 0, false},   // READ_WRITE and WRITE_ONLY
		{4 | 1<<9, 64, 0, true}, // READ_ONLY, HOST_NO_ACCESS
		{1<<7 | 1<<8, 64, 0, false},
		{1 << 3, 64, host, false}, // USE_HOST_PTR
		{1 << 4, 64, 0, true},     // ALLOC_HOST_PTR
		{0, 64, host, false},
		{1 << 5, 8 << 20, 0, false}, // COPY_HOST_PTR without a pointer
		{1 << 5, 8 << 20, host, true},
		{1 << 5, 4<<20 - 1, host, false},
		{1<<5 | 1<<8, 8 << 20, host, false},
		{1 << 40, 64, 0, false},
	} {
		p := newFromStart(t)
		p.setUp()
		p.call("clCreateBuffer", buf, ctx, test.flags, test.size, test.host)
		got := p.records[0].Outcome == wire.OutcomeMiss && wire.Miss(p.records[0].Reason) == wire.MissPolicy
		if got != test.want || !got && p.records[0].Outcome != wire.OutcomeDriver {
			t.Errorf("flags %#x, %d bytes, host %#x: %s", test.flags, test.size, test.host, line(&p.records[0]))
		}
	}
}

// TestImageBytes: the sizes are those that PoCL 3.1 reports.
func TestImageBytes(t *testing.T) {
	floats, bytes := format(0x10B5, 0x10DE), format(0x10B5, 0x10D2)
	for _, test := range []struct {
		format, desc []byte
		want         uint64
	}{
		{floats, desc(image1D, 17, 0, 0, 0, 0, 0, 0), 272},
		{bytes, desc(image1D, 17, 5, 9, 7, 0, 0, 0), 68},
		{floats, desc(image1D, 17, 0, 0, 0, 512, 0, 0), 512},
		{floats, desc(image1DArray, 17, 0, 0, 3, 0, 0, 0), 816},
		{floats, desc(image1DArray, 17, 0, 0, 3, 512, 0, 0), 1536},
		{floats, desc(image1DArray, 17, 0, 0, 3, 512, 1024, 0), 3072},
		{floats, desc(image1DArray, 17, 0, 0, 3, 0, 1088, 0), 3264},
		{bytes, desc(image1DBuffer, 17, 0, 0, 0, 0, 0, buf), 68},
		{floats, desc(image2D, 17, 5, 9, 7, 0, 0, 0), 1360},
		{floats, desc(image2D, 17, 5, 0, 0, 512, 8192, 0), 2560},
		{floats, desc(image2DArray, 17, 5, 0, 3, 0, 0, 0), 4080},
		{floats, desc(image2DArray, 17, 5, 0, 3, 512, 0, 0), 7680},
		{floats, desc(image2DArray, 17, 5, 0, 3, 512, 8192, 0), 24576},
		{floats, desc(image3D, 17, 5, 4, 7, 0, 0, 0), 5440},
		{floats, desc(image3D, 17, 5, 4, 0, 512, 0, 0), 10240},
		{floats, desc(image3D, 17, 5, 4, 0, 512, 8192, 0), 32768},
		{floats, desc(0x10F0, 17, 5, 4, 0, 0, 0, 0), 0},
		{nil, desc(image2D, 17, 5, 4, 0, 0, 0, 0), 0},
		{floats, nil, 0},
		{floats, desc(image3D, 1<<40, 1<<40, 2, 0, 0, 0, 0), 1<<64 - 1},
	} {
		if got := calls.ImageBytes(test.format, test.desc); got != test.want {
			t.Errorf("format %v, desc %v: %d bytes, want %d", test.format, test.desc, got, test.want)
		}
	}
	for channel, want := range map[uint32][3]uint64{ // of R, RG, RGBA
		0x10D0: {1, 2, 4}, 0x10D1: {2, 4, 8}, 0x10D2: {1, 2, 4}, 0x10D3: {2, 4, 8}, 0x10D7: {1, 2, 4}, 0x10D8: {2, 4, 8},
		0x10D9: {4, 8, 16}, 0x10DA: {1, 2, 4}, 0x10DB: {2, 4, 8}, 0x10DC: {4, 8, 16}, 0x10DD: {2, 4, 8}, 0x10DE: {4, 8, 16},
		0x10D4: {2, 2, 2}, 0x10D5: {2, 2, 2}, 0x10D6: {4, 4, 4}, 0x10E0: {4, 4, 4}, 0x1000: {},
	} {
		for i, order := range []uint32{0x10B0, 0x10B2, 0x10B5} {
			if got := calls.ImageBytes(format(order, channel), desc(image1D, 1, 0, 0, 0, 0, 0, 0)); got != want[i] {
				t.Errorf("channel %#x of order %#x: %d bytes, want %d", channel, order, got, want[i])
			}
		}
	}
}
