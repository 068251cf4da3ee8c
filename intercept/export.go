// Command intercept is the Go core of a target process: a C library that the shim loads for pooling policies. Its exported
// functions convert their arguments and call package broker, which does the work.
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

func main() {} // -buildmode=c-shared needs it; nothing calls it

// core is the process's only broker. gmt_core_start sets it, before the shim calls any other function.
var core *broker.Broker

// The compiler refuses these arrays unless the Go and the C type of the ledger have the same size,
var _ [C.sizeof_struct_gmt_ledger]byte = [unsafe.Sizeof(broker.Ledger{})]byte{}

// and both sides find the arm of a block in the same bit of its number.
var _ [C.GMT_BLOCK_ARM - allocator.ArmBit]byte = [0]byte{}

// failed is the result of every call once the core has failed, instead of the number of a decision.
const failed = C.int64_t(-1)

// few is the most evictions that a frequent call returns, because clearing a larger array would cost more than the call. The shim
// fetches the others with gmt_core_more.
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
	b, err := broker.New(textBeforeNUL(config.policy[:]), textBeforeNUL(config.limits[:]), (*broker.Ledger)(unsafe.Pointer(ledger)))
	if err != nil {
		return failed
	}
	runtime.GOMAXPROCS(C.GMT_CORE_PROCESSORS)
	core = b
	go obeySessionMessages(wire.NewMailbox(unsafe.Pointer(region)), *callbacks)
	return 0
}

//export gmt_core_plan
func gmt_core_plan(request *C.struct_gmt_request, plan *C.struct_gmt_plan, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	var decision broker.Decision
	req := requestFromC(request)
	n, out, err := core.Decide(&decision, &req, scratch[:0])
	if err != nil {
		return failed
	}
	fillPlan(plan, &decision)
	fillEvictions(evictions, out)
	return C.int64_t(n)
}

//export gmt_core_resume
func gmt_core_resume(request *C.struct_gmt_request, plan *C.struct_gmt_plan, late C.uint32_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	decision := broker.Decision{Decision: decisionOfPlan(plan)}
	req := requestFromC(request)
	n, out, err := core.Resume(&decision, &req, broker.Number(plan.number), late != 0, scratch[:0])
	if err != nil {
		return failed
	}
	fillPlan(plan, &decision)
	fillEvictions(evictions, out)
	return C.int64_t(n)
}

// requestFromC converts the shim's request.
func requestFromC(request *C.struct_gmt_request) allocator.Request {
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
		Again:  request.again != 0,
	}
}

// fillPlan fills in the shim's plan field by field: a composite literal would be built elsewhere and copied.
func fillPlan(plan *C.struct_gmt_plan, d *broker.Decision) {
	plan.block, plan.size, plan.handle = C.uint64_t(d.Block), C.uint64_t(d.Size), C.uint64_t(d.Handle)
	plan.slab, plan.offset, plan.slabsize = C.uint64_t(d.Slab), C.uint64_t(d.Offset), C.uint64_t(d.SlabSize)
	plan.number, plan.committed, plan.waived = 0, C.int64_t(d.Committed), C.int64_t(d.Waived)
	plan.tag, plan.reason, plan.route = C.uint32_t(d.Tag), C.uint8_t(d.Reason), C.uint8_t(d.Route)
	plan.hit, plan.fresh, plan.waits = boolToC(d.Hit), boolToC(d.Fresh), boolToC(d.Waits)
}

func boolToC(set bool) C.uint8_t {
	if set {
		return 1
	}
	return 0
}

//export gmt_core_grown
func gmt_core_grown(plan *C.struct_gmt_plan, handle C.uint64_t) C.int64_t {
	return numberOrFailed(core.SlabCreated(decisionOfPlan(plan), uint64(handle)))
}

//export gmt_core_commit
func gmt_core_commit(plan *C.struct_gmt_plan, handle C.uint64_t) C.int64_t {
	return numberOrFailed(core.Commit(decisionOfPlan(plan), uint64(handle)))
}

//export gmt_core_abort
func gmt_core_abort(plan *C.struct_gmt_plan) C.int64_t {
	return numberOrFailed(core.Abort(decisionOfPlan(plan)))
}

//export gmt_core_free
func gmt_core_free(block C.uint64_t, busy C.uint32_t, time C.int64_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	out, n, err := core.Free(allocator.Block(block), busy != 0, int64(time), scratch[:0])
	fillEvictions(evictions, out)
	return numberOrFailed(n, err)
}

//export gmt_core_cooled
func gmt_core_cooled(block C.uint64_t, time C.int64_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [few]broker.Eviction
	out, n, err := core.CoolingEnded(allocator.Block(block), int64(time), scratch[:0])
	fillEvictions(evictions, out)
	return numberOrFailed(n, err)
}

//export gmt_core_forget
func gmt_core_forget(block C.uint64_t) C.int64_t {
	return numberOrFailed(core.Forget(allocator.Block(block)))
}

//export gmt_core_drain
func gmt_core_drain(need C.uint64_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	out, n, err := core.Drain(uint64(need), scratch[:0])
	fillEvictions(evictions, out)
	return numberOrFailed(n, err)
}

//export gmt_core_drop_class
func gmt_core_drop_class(class C.uint32_t, evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	out, n, err := core.DropClass(allocator.Class(class), scratch[:0])
	fillEvictions(evictions, out)
	return numberOrFailed(n, err)
}

//export gmt_core_more
func gmt_core_more(evictions *C.struct_gmt_evictions) C.int64_t {
	var scratch [C.GMT_EVICTIONS_MAX]broker.Eviction
	out, err := core.MoreEvictions(scratch[:0])
	fillEvictions(evictions, out)
	return numberOrFailed(0, err)
}

//export gmt_core_gauge
func gmt_core_gauge(gauge *C.struct_gmt_gauge) C.int64_t {
	s, err := core.Stats()
	*gauge = C.struct_gmt_gauge{
		bytes:   C.uint64_t(s.InSlabs.Bytes),
		largest: C.uint64_t(s.InSlabs.Largest),
		ranges:  C.uint64_t(s.InSlabs.Ranges),
		squares: C.double(s.InSlabs.Squares),
		excess:  C.uint64_t(s.ExcessBytes()),
	}
	return numberOrFailed(0, err)
}

// clock is the address of the kernel's vDSO code that reads the processor's counter; 0: the runtime makes a system call.
//
//go:linkname clock runtime.vdsoClockgettimeSym
var clock uintptr

//export gmt_core_clock
func gmt_core_clock() C.int64_t { return C.int64_t(uintptr(unsafe.Pointer(&clock))) }

func numberOrFailed(n broker.Number, err error) C.int64_t {
	if err != nil {
		return failed
	}
	return C.int64_t(n)
}

// decisionOfPlan returns the decision that answer wrote into a plan.
func decisionOfPlan(plan *C.struct_gmt_plan) allocator.Decision {
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

// fillEvictions stores evictions in the shim's list, and notes whether gmt_core_more has more.
func fillEvictions(to *C.struct_gmt_evictions, out []broker.Eviction) {
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
	if len(out) > 0 && core.HasPendingEvictions() {
		to.more = 1
	}
}

// textBeforeNUL returns the text before the first NUL.
func textBeforeNUL(b []C.uint8_t) string {
	var out []byte
	for _, c := range b {
		if c == 0 {
			break
		}
		out = append(out, byte(c))
	}
	return string(out)
}
