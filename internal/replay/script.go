package replay

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// script is what a recording says to policies, whichever they are: what happened, in order, with everything looked up
// that records only name.
type script struct {
	classes []class
	changes []change
	slots   uint32 // of buffers that lived at the same time, at most
	facts   facts
	origins []uint32 // of processes: their numbers in the recording
}

// op is one step of a script.
type op struct {
	time  int64         // ns: of a create when the program asked, else when it happened
	size  uint64        // opCreate and opFail: bytes requested; opDrain: wanted from the policy
	slot  uint32        // of the buffer; of opWait, opEnd, opChange and opExit: the process
	class uint32        // opCreate, opFail and opDrop: in script.classes; opChange: in script.changes
	tag   allocator.Tag // opCreate and opFail
	code  code
	mark  mark
}

// mark says more of an op.
type mark uint8

const (
	numbered mark = 1 << iota // all decisions of the process are recorded, in order
	whole                     // no part of a slab could have served the request
	unseen                    // the recorded policy did not hear of it: pooling had ended
	retried                   // nor can one now, because a plan for the same request came to nothing
)

// origin returns the number that a process has in the recording.
func (s *script) origin(process uint32) uint32 { return s.origins[process] }

// code says what an op is.
type code uint8

const (
	opCreate    code = iota // the program asks for a buffer, and the slot is its until opFree and the like
	opFail                  // it asks for one and gets none: the slot stays empty
	opFree                  // nothing uses the buffer any more
	opFreeEarly             // commands still use it, and nothing will say when they end: at the process's next wait
	opCool                  // commands still use it until opCooled or opLose
	opCooled                //
	opLose                  // what cools has left the recorded pool: nothing will say when its commands end
	opRefuse                // the recorded policy let it go, opFree or opForget says why: what is no pool's ends here
	opForget                // the program left it unfit for reuse
	opWait                  // the process waits for commands, or finishes
	opEnd                   // one of the process's contexts ends: opDrop follows for each of its classes
	opDrop                  // no more requests of a class
	opChange                // a limit of the process was changed, or its pool trimmed, or it has another policy
	opNone                  // a decision that changes nothing
	opExpire                // blocks were found too old between requests
	opDrain                 // the recorded policy was asked to make room
	opGone                  // the buffer's process is gone: opExit follows
	opExit                  // the process is gone, with its policy and all that it had

	// These are parts of an opCreate, between which other decisions came. A policy that is not the recorded one hears
	// all with the first.
	opPlan
	opGrown  // the slab of the plan is there; of a sub-allocation in one that was: it is in use
	opCommit // the buffer is there

	// These say how the recorded policy was asked in vain, and are for it alone.
	opTry
	opAbort  // the driver had no memory for what was planned, or made no part of it
	opReturn // the block that was found could not be used
)

// creates reports whether a slot has a buffer from an op on, for policies other than the recorded one.
func (c code) creates() bool { return c == opCreate || c == opPlan }

// ends reports whether a slot is empty after an op.
func (c code) ends() bool {
	switch c {
	case opFree, opFreeEarly, opCooled, opLose, opForget, opGone, opAbort, opReturn:
		return true
	default:
		return false
	}
}

// class is what requests of one context with the same flags have in common.
type class struct {
	process  uint32 // its place among the processes of the recording
	constant uint64 // bytes of the largest __constant argument, 0 unknown
	request  allocator.Request
}

// round returns where rounding up stops: a kernel must not find its __constant argument too large because of it.
func (c *class) round(size uint64) uint64 {
	if c.constant != 0 && size <= c.constant && c.constant < c.request.Max {
		return c.constant
	}
	return c.request.Max
}

// change is a limit or policy changed, or a trim, during the run.
type change struct {
	name, value string // a limit, or "policy" and its name with limits behind it; without a name: the bytes that the pool was trimmed to
	keep        uint64
}

// facts are what a recording says by itself.
type facts struct {
	processes        uint32
	requests         uint64 // that a policy was asked
	whole            uint64 // of these, that no part of a slab could serve
	unpooled, before uint64 // creates that none was asked, of these from before the recording
	hits, misses     uint64
	lost             uint64 // events
	switches         uint64 // of the policy
}
