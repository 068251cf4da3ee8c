package calls_test

import (
	"fmt"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// held returns the last counts of a type and call site, as "created released most".
func (p *sampler) held(held wire.Held, tag uint32) string {
	for i := len(p.objects) - 1; i >= 0; i-- {
		if v := p.objects[i].AsObject(); v.Held() == held && v.Tag() == tag {
			return fmt.Sprintf("%d %d %d", v.Created(), v.Released(), v.Most())
		}
	}
	return ""
}

func (p *sampler) wantHeld(held wire.Held, tag uint32, want string) {
	p.t.Helper()
	if got := p.held(held, tag); got != want {
		p.t.Errorf("%s of call site %d: %q, want %q", held, tag, got, want)
	}
}

// TestObjectsCountByTypeAndCallSite: what is created and released while we watch is counted by type and call site, each change at once.
func TestObjectsCountByTypeAndCallSite(t *testing.T) {
	p := newFromStart(t)
	const program = 0x7000
	p.do(call{name: "clCreateContext", result: ctx, from: 6})
	p.do(call{name: "clCreateCommandQueue", result: queue, args: []uint64{ctx, 1, 0}, from: 6})
	p.wantHeld(wire.HeldContext, 6, "1 0 1")
	p.wantHeld(wire.HeldQueue, 6, "1 0 1")
	for i, name := range []string{"clCreateProgramWithSource", "clCreateProgramWithBinary", "clCreateProgramWithBuiltInKernels", "clCreateProgramWithIL", "clLinkProgram"} {
		p.call(name, program+uint64(i), ctx)
	}
	p.call("clCreateProgramWithSource", 0, ctx)
	p.call("clRetainProgram", 0, program)
	p.call("clReleaseProgram", 0, program)
	p.call("clReleaseProgram", 0, program)
	p.call("clReleaseProgram", 0, program)
	p.call("clReleaseProgram", 0, 0x9999)
	p.call("clCreateProgramWithSource", program+1, ctx) // the release of its predecessor was missed
	p.wantHeld(wire.HeldProgram, 5, "6 2 4")
	p.do(call{name: "clCreateKernel", result: kern, args: []uint64{program}, copies: [2][]byte{[]byte("add\x00")}})
	p.do(call{name: "clCreateKernelsInProgram", args: []uint64{program, 2}, copies: [2][]byte{words(kern+1, kern+2), words(2)}})
	p.call("clCloneKernel", kern+3, kern)
	p.call("clReleaseKernel", 0, kern)
	p.wantHeld(wire.HeldKernel, 5, "4 1 4")
	p.call("clCreateSampler", 0x8000, ctx)
	p.call("clReleaseSampler", 0, 0x8000)
	p.wantHeld(wire.HeldSampler, 5, "1 1 1")
	p.call("clReleaseCommandQueue", 0, queue)
	p.call("clReleaseContext", 0, ctx)
	p.wantHeld(wire.HeldContext, 6, "1 1 1")
	p.wantHeld(wire.HeldQueue, 6, "1 1 1")
}

// TestEvents: those of commands, markers and the program's own are counted; records of them follow now and then.
func TestEvents(t *testing.T) {
	p := newFromStart(t)
	p.setUp()
	const e = 0x5000
	for i := range uint64(10) {
		p.do(call{name: "clEnqueueNDRangeKernel", args: []uint64{queue, kern}, event: e + i, from: 8})
	}
	p.do(call{name: "clEnqueueNDRangeKernel", args: []uint64{queue, kern}, event: e + 99, result: code(-5), from: 8}) // stale
	p.do(call{name: "clEnqueueNDRangeKernel", args: []uint64{queue, kern}, from: 8})
	p.do(call{name: "clEnqueueMarker", args: []uint64{queue}, event: e + 20})
	p.do(call{name: "clEnqueueMarkerWithWaitList", args: []uint64{queue}, event: e + 21})
	p.do(call{name: "clEnqueueBarrierWithWaitList", args: []uint64{queue}, event: e + 22})
	p.do(call{name: "clEnqueueMapBuffer", args: []uint64{queue, buf}, event: e + 23}) // failed: no pointer
	p.do(call{name: "clEnqueueMapBuffer", args: []uint64{queue, buf}, result: 0x9000, event: e + 24})
	p.call("clCreateUserEvent", e+30, ctx)
	p.call("clCreateUserEvent", 0, ctx)
	p.call("clRetainEvent", 0, e)
	for i := range uint64(5) {
		p.call("clReleaseEvent", 0, e+i)
	}
	p.call("clReleaseEvent", 0, e)
	p.call("clReleaseEvent", 0, 0x1234)                                                   // from before
	p.do(call{name: "clEnqueueTask", args: []uint64{queue, kern}, event: e + 9, from: 8}) // a release was missed
	few := len(p.objects)
	p.tracker.WriteRestAt(p.now)
	p.wantHeld(wire.HeldEvent, 8, "11 6 10")
	p.wantHeld(wire.HeldEvent, 5, "5 0 5")
	if few > 6 {
		t.Errorf("%d records within %d ns", few, p.now)
	}
	p.now += 20e6
	p.call("clReleaseEvent", 0, e+5)
	p.wantHeld(wire.HeldEvent, 8, "11 7 5")
}

// TestEventsAreBounded: a program that leaks them does not make us grow without bound, and shows no more than it leaks.
func TestEventsAreBounded(t *testing.T) {
	p := newFromStart(t)
	p.setUp()
	const most = 1 << 18
	for i := range uint64(most + 1000) {
		p.tracker.HandleCall((&call{name: "clCreateUserEvent", result: 1<<32 + i}).sample(t, 5000+i, 7))
	}
	p.tracker.HandleCall((&call{name: "clReleaseEvent", args: []uint64{1<<32 + most + 5}}).sample(t, 9e6, 7))
	p.tracker.WriteRestAt(9e6)
	p.wantHeld(wire.HeldEvent, 5, fmt.Sprintf("%d 0 %d", most, most))
	if more := p.objects[len(p.objects)-1].AsObject().Untracked(); more != 1000 {
		t.Errorf("%d more", more)
	}
}
