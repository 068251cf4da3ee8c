// Command intercept is the Go core of a target process: a C library that the shim loads for pooling policies. The
// functions that it exports convert and call; what they do is in package broker.
package main

// #include "../shim/base/core.h"
import "C"

import (
	"runtime"
	"unsafe"

	"codeberg.org/gpumemtop/gpumemtop/allocator"
	"codeberg.org/gpumemtop/gpumemtop/intercept/broker"
	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func main() {} // a C library has none, but -buildmode=c-shared wants one

// core is the process's one broker. It is set by gmt_core_start, before the shim calls anything else.
var core *broker.Broker

// The ledger is the shim's.
var _ [C.sizeof_struct_gmt_ledger]byte = [unsafe.Sizeof(broker.Ledger{})]byte{}

// failed is what a call returns once the core has failed, instead of the number of its decision.
const failed = C.int64_t(-1)

// few is how many evictions the frequent calls take at once: clearing room for more would cost them more than the
// call itself. The shim asks for the rest.
const few = 4

//export gmt_core_start
func gmt_core_start(
	config *C.struct_gmtconfig, callbacks *C.struct_gmt_callbacks, region *C.struct_gmtregion, ledger *C.struct_gmt_ledger,
) (status C.int64_t) {
	defer func() {
		if recover() != nil {
			status = failed
		}
	}()
	b, err := broker.New(text(config.policy[:]), text(config.limits[:]), (*broker.Ledger)(unsafe.Pointer(ledger)))
	if err != nil {
		return failed
	}
	runtime.GOMAXPROCS(C.GMT_CORE_PROCESSORS)
	core = b
	go listen(wire.NewMailbox(unsafe.Pointer(region)), *callbacks)
	return 0
}

//export gmt_core_plan
func gmt_core_plan(request *C.struct_gmt_request, plan *C.struct_gmt_plan, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	var p broker.Decision
	req := requested(request)
	n, out, err := core.Decide(&p, &req, scratch[:0])
	if err != nil {
		return failed
	}
	answer(plan, &p)
	give(evictions, out)
	return C.int64_t(n)
}

//export gmt_core_resume
func gmt_core_resume(request *C.struct_gmt_request, plan *C.struct_gmt_plan, late C.uint32_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	p := broker.Decision{Decision: planned(plan)}
	req := requested(request)
	n, out, err := core.Resume(&p, &req, broker.Number(plan.number), late != 0, scratch[:0])
	if err != nil {
		return failed
	}
	answer(plan, &p)
	give(evictions, out)
	return C.int64_t(n)
}

func requested(request *C.struct_gmt_request) allocator.Request {
	return allocator.Request{
		Size:  uint64(request.size),
		Max:   uint64(request.max),
		Round: uint64(request.round),
		Heap:  uint64(request.heap),
		Align: uint64(request.align),
		Class: allocator.Class(request.class),
		Tag:   allocator.Tag(request.tag),
		Time:  int64(request.time),

		Exact:  request.exact != 0,
		Pinned: request.pinned != 0,
	}
}

// answer fills the shim's plan field by field: a composite would be built elsewhere, and copied.
func answer(plan *C.struct_gmt_plan, p *broker.Decision) {
	plan.block, plan.size, plan.handle = C.uint64_t(p.Block), C.uint64_t(p.Size), C.uint64_t(p.Handle)
	plan.slab, plan.offset, plan.slabsize = C.uint64_t(p.Slab), C.uint64_t(p.Offset), C.uint64_t(p.SlabSize)
	plan.number, plan.committed, plan.waived = 0, C.int64_t(p.Committed), C.int64_t(p.Waived)
	plan.tag, plan.reason, plan.route = C.uint32_t(p.Tag), C.uint8_t(p.Reason), C.uint8_t(p.Route)
	plan.hit, plan.fresh, plan.waits = flag(p.Hit), flag(p.Fresh), flag(p.Waits)
}

func flag(set bool) C.uint8_t {
	if set {
		return 1
	}
	return 0
}

//export gmt_core_grown
func gmt_core_grown(plan *C.struct_gmt_plan, handle C.uint64_t) C.int64_t {
	return number(core.Grown(planned(plan), uint64(handle)))
}

//export gmt_core_commit
func gmt_core_commit(plan *C.struct_gmt_plan, handle C.uint64_t) C.int64_t {
	return number(core.Commit(planned(plan), uint64(handle)))
}

//export gmt_core_abort
func gmt_core_abort(plan *C.struct_gmt_plan) C.int64_t {
	return number(core.Abort(planned(plan)))
}

//export gmt_core_free
func gmt_core_free(block C.uint64_t, busy C.uint32_t, time C.int64_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	out, n, err := core.Free(allocator.Block(block), busy != 0, int64(time), scratch[:0])
	give(evictions, out)
	return number(n, err)
}

//export gmt_core_cooled
func gmt_core_cooled(block C.uint64_t, time C.int64_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	out, n, err := core.Cooled(allocator.Block(block), int64(time), scratch[:0])
	give(evictions, out)
	return number(n, err)
}

//export gmt_core_forget
func gmt_core_forget(block C.uint64_t) C.int64_t {
	return number(core.Forget(allocator.Block(block)))
}

//export gmt_core_drain
func gmt_core_drain(need C.uint64_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	out, n, err := core.Drain(uint64(need), scratch[:0])
	give(evictions, out)
	return number(n, err)
}

//export gmt_core_drop_class
func gmt_core_drop_class(class C.uint32_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	out, n, err := core.DropClass(allocator.Class(class), scratch[:0])
	give(evictions, out)
	return number(n, err)
}

//export gmt_core_more
func gmt_core_more(evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	out, err := core.More(scratch[:0])
	give(evictions, out)
	return number(0, err)
}

//export gmt_core_gauge
func gmt_core_gauge(gauge *C.struct_gmt_gauge) C.int64_t {
	s, err := core.Stats()
	*gauge = C.struct_gmt_gauge{
		bytes:   C.uint64_t(s.InSlabs.Bytes),
		largest: C.uint64_t(s.InSlabs.Largest),
		ranges:  C.uint64_t(s.InSlabs.Ranges),
		squares: C.double(s.InSlabs.Squares),
		excess:  C.uint64_t(s.Excess()),
	}
	return number(0, err)
}

func number(n broker.Number, err error) C.int64_t {
	if err != nil {
		return failed
	}
	return C.int64_t(n)
}

func planned(plan *C.struct_gmt_plan) allocator.Decision {
	return allocator.Decision{
		Hit:    plan.hit != 0,
		Block:  allocator.Block(plan.block),
		Size:   uint64(plan.size),
		Reason: wire.Miss(plan.reason),
		Tag:    allocator.Tag(plan.tag),

		Slab:     allocator.Block(plan.slab),
		Offset:   uint64(plan.offset),
		SlabSize: uint64(plan.slabsize),
		Fresh:    plan.fresh != 0,
		Route:    wire.Route(plan.route),
	}
}

// give fills the shim's list, which may not be all.
func give(to *C.struct_gmt_evictions, out []broker.Eviction) {
	to.count, to.more = C.uint32_t(len(out)), 0
	for i, e := range out {
		to.list[i] = C.struct_gmt_eviction{
			block:  C.uint64_t(e.Block),
			size:   C.uint64_t(e.Size),
			handle: C.uint64_t(e.Handle),
			tag:    C.uint32_t(e.Tag),
			reason: C.uint8_t(e.Reason),
		}
	}
	if len(out) > 0 && core.Pending() {
		to.more = 1
	}
}

// text returns what stands before the first NUL.
func text(b []C.uint8_t) string {
	var out []byte
	for _, c := range b {
		if c == 0 {
			break
		}
		out = append(out, byte(c))
	}
	return string(out)
}
