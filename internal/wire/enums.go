// Code generated from event.h by internal/wire/gen; DO NOT EDIT.

package wire

import "strconv"

// Kind: Kinds of event. A kind with a payload carries its length in size; the payload follows in whole 64-byte slots.
type Kind uint16

const (
	KindNone    Kind = 0
	KindProcess Kind = 1  // object: pid, link: parent pid, payload: program NUL argument NUL ...
	KindThread  Kind = 2  // object: tid that writes this ring from here on
	KindModule  Kind = 3  // object: module id, payload: path; a second one, by the session: path NUL build id in hexadecimal
	KindTag     Kind = 4  // tag: id, op: gmttagmode, payload: struct gmtframe..., innermost first; link: value for size, thread
	KindSite    Kind = 5  // tag: id, payload: a line per frame, "function TAB file TAB line TAB module+offset"; written by the session
	KindDevice  Kind = 6  // object: device, granted: global memory bytes, link: largest allocation bytes, tag: alignment of sub-buffers in bytes, duration and cost: high and low 32 bits of the largest __constant argument's bytes, 0 unknown; of several devices of a context the least of each, but the largest link; payload: name NUL driver
	KindContext Kind = 7  // op: gmtlife, object: context, link: first device
	KindQueue   Kind = 8  // op: gmtlife, object: queue, flags: GMT_FLAG_OUT_OF_ORDER
	KindKernel  Kind = 9  // object: kernel, payload: name
	KindCreate  Kind = 10 // op: gmtmemory; object, size, granted, tag; link: block (root buffer) or parent (sub-buffer, image of a buffer); granted of a sub-buffer: 1 + its offset in the parent, 0 or CARRIED: unknown
	KindRetain  Kind = 11 // object; granted: references the application holds afterwards
	KindRelease Kind = 12 // object; granted: references left; at 0 outcome says what became of the memory, link: block
	KindUse     Kind = 13 // op: gmtcommand; object; link: queue; size: bytes touched, 0 when unknown; granted, duration, tag: see gmtcommand
	KindSync    Kind = 14 // op: gmtsync; link: queue, 0 when several
	KindCooled  Kind = 15 // link: block, granted: its size; a cooling block became free
	KindEvict   Kind = 16 // link: block, granted: its size, reason: gmtevict; a pooled block went back to the driver
	KindLimit   Kind = 17 // object: sequence number of the control message, status: 0 or -1, payload: "name=value", "policy=name[,name=value...]" or the error
	KindDiag    Kind = 18 // op: gmtdiag, payload: text; findings about the program: see gmtdiag
	KindExit    Kind = 19 // the process runs its exit handlers; status: exit status where known (session)
	KindLost    Kind = 20 // size: events lost since the last such event, granted: of these, uses; written by the session
	KindSlab    Kind = 21 // link: block, granted: its size; a block whose parts serve requests was created, or refused: status
	KindGauge   Kind = 22 // free memory in slabs as the policy sees it: granted: bytes, size: largest range, object: ranges, link: bits of a double, the sum of their squares
	KindOrder   Kind = 23 // op: gmtorder; object: number of a decision of the policy, link: of the thread's decision before that; see gmtorder
	KindAwait   Kind = 24 // op: gmtawait; link: queue of the command, or marker, of the thread that has the same time and waits, 0: the thread itself, in the SYNC of that time; object: queue, size: time of the command or marker there that it waits for
)

var namesKind = [...]string{"none", "process", "thread", "module", "tag", "site", "device", "context", "queue", "kernel", "create", "retain", "release", "use", "sync", "cooled", "evict", "limit", "diag", "exit", "lost", "slab", "gauge", "order", "await"}

// String returns the word that screens and reports use.
func (v Kind) String() string {
	if int(v) < len(namesKind) {
		return namesKind[v]
	}
	return strconv.Itoa(int(v))
}

// Memory: What a CREATE made.
type Memory uint8

const (
	MemoryBuffer    Memory = 0
	MemorySubBuffer Memory = 1
	MemoryImage     Memory = 2
	MemoryPipe      Memory = 3
	MemorySVM       Memory = 4
	MemoryUSMHost   Memory = 5
	MemoryUSMDevice Memory = 6
	MemoryUSMShared Memory = 7
	MemoryExternal  Memory = 8 // storage owned by GL, EGL, a file descriptor...
)

var namesMemory = [...]string{"buffer", "subbuffer", "image", "pipe", "svm", "usm host", "usm device", "usm shared", "external"}

// String returns the word that screens and reports use.
func (v Memory) String() string {
	if int(v) < len(namesMemory) {
		return namesMemory[v]
	}
	return strconv.Itoa(int(v))
}

// Outcome: How a CREATE was served, or what a last RELEASE did with the memory.
type Outcome uint8

const (
	OutcomeDriver  Outcome = 0 // created or released by the driver; never eligible for the pool
	OutcomeHit     Outcome = 1 // served from a cached block
	OutcomeMiss    Outcome = 2 // eligible, but the driver had to create a block
	OutcomeFailed  Outcome = 3 // the driver refused; status says why
	OutcomeCached  Outcome = 4 // the block is free in the pool
	OutcomeCooling Outcome = 5 // free, but queued commands still use it
	OutcomeRefused Outcome = 6 // pooled block that the policy or its state sent back to the driver; an EVICT follows
	OutcomePinned  Outcome = 7 // no references left, but sub-objects keep the memory alive
)

var namesOutcome = [...]string{"driver", "hit", "miss", "failed", "cached", "cooling", "refused", "pinned"}

// String returns the word that screens and reports use.
func (v Outcome) String() string {
	if int(v) < len(namesOutcome) {
		return namesOutcome[v]
	}
	return strconv.Itoa(int(v))
}

// Miss: Why a poolable request was a miss.
type Miss uint8

const (
	MissNone        Miss = 0
	MissCold        Miss = 1 // no block of this class was ever freed that could have served it
	MissTooSmall    Miss = 2 // free blocks exist, all smaller
	MissTooWasteful Miss = 3 // a free block is large enough, but the policy refuses it: over max_waste_ratio, or another call site's
	MissOtherClass  Miss = 4 // a fitting block is free in another class
	MissCooling     Miss = 5 // a fitting block is still used by queued commands
	MissLimit       Miss = 6 // a fitting block was evicted by max_cached_bytes
	MissTagCap      Miss = 7 // a fitting block was evicted by a per-tag or per-bucket cap
	MissDrained     Miss = 8 // a fitting block was handed back to make room
	MissPolicy      Miss = 9 // the policy does not cache
)

var namesMiss = [...]string{"none", "cold", "too small", "too wasteful", "other class", "cooling", "limit", "tag cap", "drained", "policy"}

// String returns the word that screens and reports use.
func (v Miss) String() string {
	if int(v) < len(namesMiss) {
		return namesMiss[v]
	}
	return strconv.Itoa(int(v))
}

// Evict: Why a pooled block went back to the driver.
type Evict uint8

const (
	EvictNone    Evict = 0
	EvictLimit   Evict = 1 // max_cached_bytes
	EvictTagCap  Evict = 2 // per-tag or per-bucket cap
	EvictMisfit  Evict = 3 // futhark-2018: same tag, wrong size
	EvictDrain   Evict = 4 // an allocation failed
	EvictContext Evict = 5 // the application released its context
	EvictTrim    Evict = 6 // the user asked
	EvictAge     Evict = 7 // max_age
	EvictState   Evict = 8 // not recyclable: still mapped, destructor callback, command buffers
	EvictPolicy  Evict = 9 // the policy does not cache, or another one made the block
)

var namesEvict = [...]string{"none", "limit", "tag cap", "misfit", "drain", "context", "trim", "age", "state", "policy"}

// String returns the word that screens and reports use.
func (v Evict) String() string {
	if int(v) < len(namesEvict) {
		return namesEvict[v]
	}
	return strconv.Itoa(int(v))
}

// Life: Object life, for CONTEXT and QUEUE.
type Life uint8

const (
	LifeCreate  Life = 0
	LifeRetain  Life = 1
	LifeRelease Life = 2 // not the last reference
	LifeEnd     Life = 3 // the application's last reference
)

var namesLife = [...]string{"create", "retain", "release", "end"}

// String returns the word that screens and reports use.
func (v Life) String() string {
	if int(v) < len(namesLife) {
		return namesLife[v]
	}
	return strconv.Itoa(int(v))
}

// Command: Commands that use memory.
type Command uint8

const (
	CommandOther   Command = 0
	CommandKernel  Command = 1
	CommandRead    Command = 2
	CommandWrite   Command = 3
	CommandCopy    Command = 4
	CommandFill    Command = 5
	CommandMap     Command = 6
	CommandUnmap   Command = 7
	CommandMigrate Command = 8
	CommandNative  Command = 9
)

var namesCommand = [...]string{"other", "kernel", "read", "write", "copy", "fill", "map", "unmap", "migrate", "native"}

// String returns the word that screens and reports use.
func (v Command) String() string {
	if int(v) < len(namesCommand) {
		return namesCommand[v]
	}
	return strconv.Itoa(int(v))
}

// Order: What an ORDER tells of, besides the order.
type Order uint8

const (
	OrderNext   Order = 0 // no other decision than the events tell of
	OrderAbort  Order = 1 // what decision size had planned for the CREATE that follows was given up; granted: the number by which its slab was there, or 0
	OrderReturn Order = 2 // the block that decision size had found for the CREATE that follows could not be used: it is free again
	OrderDrain  Order = 3 // the policy was asked for size bytes, because the driver had no memory
	OrderExpire Order = 4 // blocks were found too old
	OrderDrop   Order = 5 // scope and access: the class that nobody asks for any more
)

var namesOrder = [...]string{"next", "abort", "return", "drain", "expire", "drop"}

// String returns the word that screens and reports use.
func (v Order) String() string {
	if int(v) < len(namesOrder) {
		return namesOrder[v]
	}
	return strconv.Itoa(int(v))
}

// Await: What else has surely ended when a command that is awaited has.
type Await uint8

const (
	AwaitOne Await = 0 // nothing
	AwaitAll Await = 1 // all that its queue had been given before it
)

var namesAwait = [...]string{"one", "all"}

// String returns the word that screens and reports use.
func (v Await) String() string {
	if int(v) < len(namesAwait) {
		return namesAwait[v]
	}
	return strconv.Itoa(int(v))
}

// Sync: Synchronisation points.
type Sync uint8

const (
	SyncFinish   Sync = 0
	SyncFlush    Sync = 1
	SyncWait     Sync = 2
	SyncBlocking Sync = 3 // a blocking read, write or map
)

var namesSync = [...]string{"finish", "flush", "wait", "blocking"}

// String returns the word that screens and reports use.
func (v Sync) String() string {
	if int(v) < len(namesSync) {
		return namesSync[v]
	}
	return strconv.Itoa(int(v))
}

// TagMode: What a tag is made of.
type TagMode uint8

const (
	TagsNone   TagMode = 0
	TagsCaller TagMode = 1
	TagsStack  TagMode = 2
	TagsSize   TagMode = 3
	TagsThread TagMode = 4
)

var namesTagMode = [...]string{"none", "caller", "stack", "size", "thread"}

// String returns the word that screens and reports use.
func (v TagMode) String() string {
	if int(v) < len(namesTagMode) {
		return namesTagMode[v]
	}
	return strconv.Itoa(int(v))
}

// Diag: Things that the shim noticed. From UNKNOWN_MEMORY on they are mistakes of the program, see below.
type Diag uint8

const (
	DiagTransparent     Diag = 0  // pooling is off for this process; the payload says why
	DiagForked          Diag = 1  // a forked child is not watched
	DiagSecondLoader    Diag = 2  // calls through another libOpenCL are not seen
	DiagPanic           Diag = 3  // the Go core failed and was switched off
	DiagTagsFull        Diag = 4  // more distinct tags than the table holds: the rest share tag 0
	DiagUnknownMemory   Diag = 5  // release of, or command on, something that no create returned
	DiagDoubleRelease   Diag = 6  // a release of memory whose last reference was gone
	DiagUseAfterRelease Diag = 7  // a call on memory whose last reference was gone
	DiagWrongContext    Diag = 8  // memory of one context used with a queue or kernel of another
	DiagStillMapped     Diag = 9  // the last release of memory that is mapped
	DiagStaleRead       Diag = 10 // certain: a command reads a recycled block that nothing has written since its create
	DiagStaleArgument   Diag = 11 // such a block was given to a kernel that cannot write it: it reads it, or ignores it
)

var namesDiag = [...]string{"transparent", "forked", "second loader", "panic", "tags full", "unknown memory", "double release", "use after release", "wrong context", "still mapped", "stale read", "stale argument"}

// String returns the word that screens and reports use.
func (v Diag) String() string {
	if int(v) < len(namesDiag) {
		return namesDiag[v]
	}
	return strconv.Itoa(int(v))
}

// Scrub: What is done to a recycled block before the program gets it.
type Scrub uint8

const (
	ScrubNone   Scrub = 0
	ScrubZero   Scrub = 1
	ScrubPoison Scrub = 2 // bytes of GMT_POISON
)

var namesScrub = [...]string{"none", "zero", "poison"}

// String returns the word that screens and reports use.
func (v Scrub) String() string {
	if int(v) < len(namesScrub) {
		return namesScrub[v]
	}
	return strconv.Itoa(int(v))
}

// Sight: What the eBPF program saw.
type Sight uint16

const (
	SightCall Sight = 0 // of the function whose number was the probe's cookie
	SightFork Sight = 1 // result: pid of the child; pid and tid are the parent's
	SightExec Sight = 2 // result: tid of the thread that executes; from here on it has the number of the process
	SightExit Sight = 3 // the last thread of pid ends; result: its status as wait(2) has it, all ones when unknown
)

var namesSight = [...]string{"call", "fork", "exec", "exit"}

// String returns the word that screens and reports use.
func (v Sight) String() string {
	if int(v) < len(namesSight) {
		return namesSight[v]
	}
	return strconv.Itoa(int(v))
}
