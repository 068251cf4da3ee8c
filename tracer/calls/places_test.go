package calls_test

import "testing"

// TestPlaces: the extent of commands, as far as six arguments show it.
func TestPlaces(t *testing.T) {
	const image = buf + 0x100
	tests := []struct {
		name string
		call
		want string
	}{
		{"a row at the top", call{
			name: "clEnqueueReadBufferRect", args: []uint64{queue, buf, 0, 9, 9, 9}, copies: [2][]byte{words(64, 1, 1), words(32, 0, 0)},
		}, "use read size=64 object=1 granted=32 link=1 scope=1 tag=5 reads"},
		{"a row further down, with an unknown pitch", call{
			name: "clEnqueueReadBufferRect", args: []uint64{queue, buf, 0, 9, 9, 9}, copies: [2][]byte{words(64, 1, 1), words(32, 1, 0)},
		}, "use read size=64 object=1 link=1 scope=1 tag=5 reads scattered"},
		{"a rectangle with an unreadable origin", call{
			name: "clEnqueueReadBufferRect", args: []uint64{queue, buf, 0, 9, 9, 9}, copies: [2][]byte{words(64, 1, 1)},
		}, "use read size=64 object=1 link=1 scope=1 tag=5 reads scattered"},
		{"all of an image", call{
			name: "clEnqueueWriteImage", args: []uint64{queue, image, 0, 9, 9}, copies: [2][]byte{words(64, 32, 1), words(0, 0, 0)},
		}, "use write size=8192 object=2 link=1 scope=1 tag=5 writes"},
		{"shared memory, with sizes", call{
			name: "clEnqueueSVMMigrateMem", args: []uint64{queue, 2, 9, 9}, copies: [2][]byte{words(0x9000, 0x9000), words(0, 100)},
		}, `
			use migrate size=4096 object=3 link=1 scope=1 tag=5
			use migrate size=100 object=3 link=1 scope=1 tag=5`},
		{"memory of unknown size", call{
			name: "clEnqueueMigrateMemObjects", args: []uint64{queue, 1, 9}, copies: [2][]byte{words(0x9990)},
		}, `
			create carried buffer driver object=4 scope=1 tag=99
			use migrate object=4 link=1 scope=1 tag=99 scattered`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newFromStart(t)
			p.setUp()
			p.buffer(buf, 4096)
			p.do(call{name: "clCreateImage", result: image, args: []uint64{ctx, 1}, copies: [2][]byte{format(0x10B5, 0x10DA), desc(image2D, 64, 32, 0, 0, 0, 0, 0)}})
			p.call("clSVMAlloc", 0x9000, ctx, 1, 4096, 0)
			p.call("clEnqueueFillBuffer", 0, queue, buf, 9, 4, 0, 16)
			p.records = nil
			p.do(test.call)
			p.want(test.want)
		})
	}
}

// TestFlagsSayWhatAKernelMayDo: the flags of memory say what a kernel may do with it.
func TestFlagsSayWhatAKernelMayDo(t *testing.T) {
	const readOnly, writeOnly, part = buf + 0x100, buf + 0x200, buf + 0x300
	p := newFromStart(t)
	p.setUp()
	p.buffer(buf, 4096)
	p.call("clCreateBuffer", readOnly, ctx, 1<<2, 4096, 0, 0)
	p.call("clCreateBuffer", writeOnly, ctx, 1<<1, 4096, 0, 0)
	p.do(call{name: "clCreateSubBuffer", result: part, args: []uint64{readOnly, 0, 0x1220, 9}, copies: [2][]byte{words(0, 64)}})
	for i, handle := range []uint64{part, writeOnly, readOnly, buf} {
		p.do(call{name: "clSetKernelArg", args: []uint64{kern, uint64(i), 8, 9}, copies: [2][]byte{words(handle)}})
	}
	p.records = nil
	p.call("clEnqueueNDRangeKernel", 0, queue, kern)
	p.want(`
		use kernel object=4 granted=1 link=1 scope=1 tag=5 argument=1
		use kernel object=3 granted=1 link=1 scope=1 tag=5 argument=2 writes
		use kernel object=2 granted=1 link=1 scope=1 tag=5 argument=3
		use kernel object=1 granted=1 link=1 scope=1 tag=5 argument=4`)
}

// TestCopySites: a copy that fails asks for no call site, since it writes nothing.
func TestCopySites(t *testing.T) {
	p := newFromStart(t)
	p.setUp()
	p.buffer(buf, 4096)
	asked := p.tags.asked
	p.call("clEnqueueCopyBuffer", code(-30), queue, buf, buf, 0, 64, 16)
	p.call("clEnqueueFillBuffer", 0, queue, buf, 9, 4, 0, 16)
	if p.tags.asked != asked {
		t.Errorf("asked for %d call sites, want none", p.tags.asked-asked)
	}
	p.call("clEnqueueCopyBuffer", 0, queue, buf, buf, 0, 64, 16)
	if p.tags.asked != asked+1 {
		t.Errorf("asked for %d call sites, want 1", p.tags.asked-asked)
	}
}
