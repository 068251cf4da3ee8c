package replay

import "codeberg.org/gpumemtop/gpumemtop/allocator"

// script is the part of a recording that does not depend on a policy: its steps in order, with everything looked up
// that records only name.
type script struct {
	classes        []class
	changes        []change
	slots          uint32 // the largest number of buffers that lived at one time
	facts          facts
	processNumbers []uint32 // by index: the process's number in the recording
}

// op is one step of a script.
type op struct {
	time  int64         // ns: when the program asked, for a create; else when it happened
	size  uint64        // opCreate and opFail: requested bytes; opDrain: bytes that the policy was asked to free
	slot  uint32        // the buffer; for opWait, opEnd, opChange and opExit the process
	class uint32        // opCreate, opFail and opDrop: index in script.classes; opChange: index in script.changes
	tag   allocator.Tag // opCreate and opFail
	code  code
	mark  mark
}

// mark is a flag of a step.
type mark uint8

const (
	numbered   mark = 1 << iota // all decisions of the process are recorded, in order
	needsBlock                  // no sub-allocation could have served the request
	unseen                      // the recorded policy was not asked: pooling had ended
	retried                     // no sub-allocation can serve the request, because a decision on it was given up
)

// processNumber returns the number of a process in the recording.
func (s *script) processNumber(process uint32) uint32 { return s.processNumbers[process] }

// code is the kind of a step.
type code uint8

const (
	opCreate    code = iota // the program requests a buffer, which has the slot until a step such as opFree
	opFail                  // the program requests a buffer and gets none: the slot stays empty
	opFree                  // nothing uses the buffer
	opFreeEarly             // commands still use the buffer, and no record says when they end: until the process's next wait
	opCool                  // commands use the buffer until opCooled or opLose
	opCooled                // no command uses the buffer
	opLose                  // a cooling block left the recorded pool: no record says when its commands end
	opRefuse                // the recorded policy refused the block; opFree or opForget follows. A buffer without a pool ends here
	opForget                // the program left the buffer unfit for reuse
	opWait                  // the process waits for commands, or finishes
	opEnd                   // a context of the process ends: opDrop follows for each of its classes
	opDrop                  // no more requests of a class come
	opChange                // a limit or the policy of the process changed, or its pool was trimmed
	opNone                  // a decision that changes nothing
	opExpire                // blocks were found too old between requests
	opDrain                 // the recorded policy was asked to make room
	opGone                  // the buffer's process has ended: opExit follows
	opExit                  // the process has ended, with its policy and its buffers

	// These are the steps of an opCreate between which other decisions came. A policy that is not the recorded one
	// serves the whole request at the first step.
	opDecide
	opGrown  // the decision's slab exists; for a sub-allocation of an older slab: its range is in use
	opCommit // the buffer exists

	// These are requests that the recorded policy could not serve. Only the recorded policy plays them.
	opTry
	opAbort  // the driver had no memory for the decision, or made no sub-buffer
	opReturn // the block that was found could not be used
)

// givesBuffer reports whether a step gives a slot a buffer, for policies other than the recorded one.
func (c code) givesBuffer() bool { return c == opCreate || c == opDecide }

// emptiesSlot reports whether a step empties a slot.
func (c code) emptiesSlot() bool {
	switch c {
	case opFree, opFreeEarly, opCooled, opLose, opForget, opGone, opAbort, opReturn:
		return true
	default:
		return false
	}
}

// class is what requests of one context with the same flags have in common.
type class struct {
	process  uint32 // index of the process
	constant uint64 // bytes of the largest __constant argument, 0: unknown
	request  allocator.Request
}

// maxRoundedSize returns the size up to which a request may be rounded: a kernel's __constant argument must not become
// too large.
func (c *class) maxRoundedSize(size uint64) uint64 {
	if c.constant != 0 && size <= c.constant && c.constant < c.request.Max {
		return c.constant
	}
	return c.request.Max
}

// change is a change of a limit or policy, a trim, or a wire.Relief, during the run.
type change struct {
	name, value string // a limit with its value, or "policy" with its name and limits; empty: a trim to keep bytes
	keep        uint64
}

// facts are figures of the recording itself.
type facts struct {
	processes             uint32
	requests              uint64 // poolable
	needsBlock            uint64 // requests that no sub-allocation could serve
	unpooled, carriedOver uint64 // creates without a policy; of these, carriedOver are older than the recording
	hits, misses          uint64
	lost                  uint64 // events
	switches              uint64 // changes of the policy
}
