// Code generated from event.h by internal/wire/gen; DO NOT EDIT.

package wire

import "strconv"

// Kind: Kinds of event. The tables before struct gmtevent say what each kind carries.
type Kind uint16

const (
	KindNone     Kind = 0
	KindProcess  Kind = 1  // a process joined the session
	KindThread   Kind = 2  // another thread writes this ring from here on
	KindModule   Kind = 3  // a file that the process runs code of
	KindTag      Kind = 4  // defines a tag
	KindSite     Kind = 5  // the call site that a tag stands for, with names; written by the session
	KindDevice   Kind = 6  // a device of a context
	KindContext  Kind = 7  // a context was created, retained or released
	KindQueue    Kind = 8  // a command queue was created, retained or released
	KindKernel   Kind = 9  // a kernel was created
	KindCreate   Kind = 10 // the program asked for memory
	KindRetain   Kind = 11 // the program took another reference to memory
	KindRelease  Kind = 12 // the program gave up a reference to memory
	KindUse      Kind = 13 // a command uses memory
	KindSync     Kind = 14 // a synchronisation point
	KindCooled   Kind = 15 // a cooling block became free
	KindEvict    Kind = 16 // a pooled block went back to the driver
	KindLimit    Kind = 17 // the process answers a control message
	KindDiag     Kind = 18 // a diagnostic of the shim, or a mistake of the program
	KindExit     Kind = 19 // the process runs its exit handlers, or is gone
	KindLost     Kind = 20 // events were lost; written by the session
	KindSlab     Kind = 21 // the driver created a slab, or refused to
	KindGauge    Kind = 22 // free memory in slabs, as the policy sees it
	KindOrder    Kind = 23 // where the policy's next decision stands in the order of all
	KindAwait    Kind = 24 // a command waits for another
	KindObject   Kind = 25 // how many objects of a type a call site has created, and how many of these were released
	KindTransfer Kind = 26 // more about a command that moves memory
	KindMachine  Kind = 27 // what the machine reports of a process's memory; written by the session
	KindSpill    Kind = 28 // --spill gave a buffer memory of the device or took it away, or a call waited for that
)

var namesKind = [...]string{"none", "process", "thread", "module", "tag", "site", "device", "context", "queue", "kernel", "create", "retain", "release", "use", "sync", "cooled", "evict", "limit", "diag", "exit", "lost", "slab", "gauge", "order", "await", "object", "transfer", "machine", "spill"}

// String returns the word that screens and reports use.
func (v Kind) String() string {
	if int(v) < len(namesKind) {
		return namesKind[v]
	}
	return strconv.Itoa(int(v))
}

// Spill: What a SPILL reports.
type Spill uint8

const (
	SpillFirst Spill = 0 // the buffer got memory, and had no contents
	SpillIn    Spill = 1 // it got memory, and its contents came from the host
	SpillOut   Spill = 2 // its contents went to the host, and its memory went back to the driver
	SpillClean Spill = 3 // its memory went back; the host had the same, or there were no contents
	SpillEnd   Spill = 4 // it ended with memory
	SpillStall Spill = 5 // a call waited for memory or contents
)

var namesSpill = [...]string{"first", "in", "out", "clean", "end", "stall"}

// String returns the word that screens and reports use.
func (v Spill) String() string {
	if int(v) < len(namesSpill) {
		return namesSpill[v]
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
	MissLimit       Miss = 6 // a fitting block was evicted by max_cached_bytes, max_age, proportion or outgrown
	MissTagCap      Miss = 7 // a fitting block was evicted by a per-tag or per-bucket cap
	MissDrained     Miss = 8 // a fitting block was handed back to make room, or to be timed
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

// Route: Whether a plan served a poolable request, and if not why not.
type Route uint8

const (
	RouteNone         Route = 0 // the policy takes no plans
	RoutePlanned      Route = 1 // it has its planned place
	RouteNoPlanYet    Route = 2
	RouteOtherSite    Route = 3 // the plan has no place for the call site
	RouteOtherClass   Route = 4 // it has, in another class
	RouteOtherSize    Route = 5 // none of the site's next places has the size
	RouteOtherOrder   Route = 6 // one that comes much later has
	RouteRangeInUse   Route = 7 // another buffer is there
	RouteRangeCooling Route = 8 // commands still use what was there
	RouteNoArena      Route = 9 // there is no memory for the arena
)

var namesRoute = [...]string{"none", "planned", "no plan yet", "other site", "other class", "other size", "other order", "range in use", "range cooling", "no arena"}

// String returns the word that screens and reports use.
func (v Route) String() string {
	if int(v) < len(namesRoute) {
		return namesRoute[v]
	}
	return strconv.Itoa(int(v))
}

// Evict: Why a pooled block went back to the driver.
type Evict uint8

const (
	EvictNone       Evict = 0
	EvictLimit      Evict = 1  // max_cached_bytes
	EvictTagCap     Evict = 2  // per-tag or per-bucket cap
	EvictMisfit     Evict = 3  // futhark-2018: same tag, wrong size
	EvictDrain      Evict = 4  // an allocation failed
	EvictContext    Evict = 5  // the application released its context
	EvictTrim       Evict = 6  // the user asked
	EvictAge        Evict = 7  // max_age
	EvictState      Evict = 8  // not recyclable: still mapped, destructor callback, command buffers
	EvictPolicy     Evict = 9  // it does not cache, another policy made the block, or an arena has no room
	EvictRelief     Evict = 10 // other programs lacked memory
	EvictProportion Evict = 11 // the pool held more than proportion allows
	EvictOutgrown   Evict = 12 // its call site asked for more than any of its blocks had
	EvictTimed      Evict = 13 // so that what the driver takes for it is known
)

var namesEvict = [...]string{"none", "limit", "tag cap", "misfit", "drain", "context", "trim", "age", "state", "policy", "relief", "proportion", "outgrown", "timed"}

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
	LifeEnd     Life = 3 // the application's last reference, and of a context its last queue
)

var namesLife = [...]string{"create", "retain", "release", "end"}

// String returns the word that screens and reports use.
func (v Life) String() string {
	if int(v) < len(namesLife) {
		return namesLife[v]
	}
	return strconv.Itoa(int(v))
}

// Exposed: Whether a kernel that may read it was the first to use a recycled block, which no command had written; what the driver's new memory holds then.
type Exposed uint8

const (
	ExposedNo      Exposed = 0
	ExposedUntried Exposed = 1 // new memory could not be looked at
	ExposedZero    Exposed = 2 // new memory of about that size was zero
	ExposedOther   Exposed = 3 // it was not
	ExposedCleared Exposed = 4 // the block was cleared before, as --scrub auto does
)

var namesExposed = [...]string{"no", "untried", "zero", "other", "cleared"}

// String returns the word that screens and reports use.
func (v Exposed) String() string {
	if int(v) < len(namesExposed) {
		return namesExposed[v]
	}
	return strconv.Itoa(int(v))
}

// Held: What an OBJECT counts.
type Held uint8

const (
	HeldContext       Held = 0
	HeldQueue         Held = 1
	HeldProgram       Held = 2
	HeldKernel        Held = 3
	HeldEvent         Held = 4
	HeldSampler       Held = 5
	HeldCommandBuffer Held = 6
)

var namesHeld = [...]string{"context", "queue", "program", "kernel", "event", "sampler", "command buffer"}

// String returns the word that screens and reports use.
func (v Held) String() string {
	if int(v) < len(namesHeld) {
		return namesHeld[v]
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
	CommandAcquire Command = 10 // of memory of OpenGL
	CommandRelease Command = 11 // of such memory, to OpenGL
)

var namesCommand = [...]string{"other", "kernel", "read", "write", "copy", "fill", "map", "unmap", "migrate", "native", "acquire", "release"}

// String returns the word that screens and reports use.
func (v Command) String() string {
	if int(v) < len(namesCommand) {
		return namesCommand[v]
	}
	return strconv.Itoa(int(v))
}

// Order: What an ORDER reports, besides the order.
type Order uint8

const (
	OrderNext   Order = 0 // no decision beyond those that events report
	OrderAbort  Order = 1 // the plan for the CREATE that follows was given up
	OrderReturn Order = 2 // the block or range found for the CREATE that follows could not be used: it is free again
	OrderDrain  Order = 3 // the driver had no memory, so the policy was asked to make room
	OrderExpire Order = 4 // the policy evicted blocks for their age
	OrderDrop   Order = 5 // scope and access name a class that the program no longer uses
)

var namesOrder = [...]string{"next", "abort", "return", "drain", "expire", "drop"}

// String returns the word that screens and reports use.
func (v Order) String() string {
	if int(v) < len(namesOrder) {
		return namesOrder[v]
	}
	return strconv.Itoa(int(v))
}

// Await: What has certainly ended when an awaited command has.
type Await uint8

const (
	AwaitOne Await = 0 // that command alone
	AwaitAll Await = 1 // also everything that its queue was given before it
)

var namesAwait = [...]string{"one", "all"}

// String returns the word that screens and reports use.
func (v Await) String() string {
	if int(v) < len(namesAwait) {
		return namesAwait[v]
	}
	return strconv.Itoa(int(v))
}

// Machine: Where a figure of the machine is from.
type Machine uint8

const (
	MachineRSS      Machine = 0 // anonymous resident memory, from /proc/PID/statm
	MachineDRM      Machine = 1 // the kernel's driver: buffers that are resident, of all DRM clients of the process
	MachineNVML     Machine = 2 // NVIDIA's management library
	MachineDMEM     Machine = 3 // the control group of the process, which others may share
	MachineResident Machine = 4 // all resident memory, also of files and shared: the RSS of ps
)

var namesMachine = [...]string{"rss", "drm", "nvml", "dmem", "resident"}

// String returns the word that screens and reports use.
func (v Machine) String() string {
	if int(v) < len(namesMachine) {
		return namesMachine[v]
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

// Diag: What the shim noticed. From UNKNOWN_MEMORY to STALE_ARGUMENT these are mistakes of the program.
type Diag uint8

const (
	DiagTransparent     Diag = 0  // pooling is off for this process; the text says why
	DiagForked          Diag = 1  // a forked child is not watched
	DiagSecondLoader    Diag = 2  // calls through another libOpenCL are not seen
	DiagPanic           Diag = 3  // the Go core failed and was switched off
	DiagTagsFull        Diag = 4  // more distinct tags than the table holds: the rest share tag 0
	DiagUnknownMemory   Diag = 5  // a release of, or command on, something that no create returned
	DiagDoubleRelease   Diag = 6  // a release of memory whose last reference was gone
	DiagUseAfterRelease Diag = 7  // a call on memory whose last reference was gone
	DiagWrongContext    Diag = 8  // memory of one context used with a queue or kernel of another
	DiagStillMapped     Diag = 9  // the last release of memory that is mapped
	DiagStaleRead       Diag = 10 // certain: a command reads a recycled block that nothing has written since its create
	DiagStaleArgument   Diag = 11 // a kernel that cannot write it was given such a block: it reads it, or ignores it
	DiagWholeBlocks     Diag = 12 // no sub-allocations from here on, in this context and those like it; the text says why
	DiagOutOfMemory     Diag = 13 // a command failed for lack of memory; it has what a mistake has
	DiagHosted          Diag = 14 // memory is the host's, as the device's lacked what the pool wastes; it has what a mistake has
	DiagSpill           Diag = 15 // what --spill could not do; the text says why
	DiagEager           Diag = 16 // what --eager does on this driver; the text says it
	DiagCallFailed      Diag = 17 // a call failed that makes no memory
	DiagUseAfterFork    Diag = 18 // a mistake: a child that forked once its parent had a context calls OpenCL; written by the session
	DiagMeasure         Diag = 19 // what an experiment does next, or why it ended; the text says it; written by the session
	DiagPlace           Diag = 20 // who the process is among others; the text has the fields of wire.Place, with tabs between; written by the session
)

var namesDiag = [...]string{"transparent", "forked", "second loader", "panic", "tags full", "unknown memory", "double release", "use after release", "wrong context", "still mapped", "stale read", "stale argument", "whole blocks", "out of memory", "hosted", "spill", "eager", "call failed", "use after fork", "measure", "place"}

// String returns the word that screens and reports use.
func (v Diag) String() string {
	if int(v) < len(namesDiag) {
		return namesDiag[v]
	}
	return strconv.Itoa(int(v))
}

// Uses: When USE and SYNC events are written, beside those of transfers and waits that enum gmttransfers wants.
type Uses uint8

const (
	UsesNever  Uses = 0
	UsesAlways Uses = 1
	UsesAsked  Uses = 2 // while the session asks for them
)

var namesUses = [...]string{"never", "always", "asked"}

// String returns the word that screens and reports use.
func (v Uses) String() string {
	if int(v) < len(namesUses) {
		return namesUses[v]
	}
	return strconv.Itoa(int(v))
}

// Transfers: What is written about commands that move memory; also whether waits are.
type Transfers uint8

const (
	TransfersNone    Transfers = 0
	TransfersSampled Transfers = 1 // what costs at most a hundredth of the command
	TransfersHashed  Transfers = 2 // also hashes of all bytes written
)

var namesTransfers = [...]string{"none", "sampled", "hashed"}

// String returns the word that screens and reports use.
func (v Transfers) String() string {
	if int(v) < len(namesTransfers) {
		return namesTransfers[v]
	}
	return strconv.Itoa(int(v))
}

// Scrub: What is done to a recycled block before the program gets it.
type Scrub uint8

const (
	ScrubNone   Scrub = 0
	ScrubZero   Scrub = 1
	ScrubPoison Scrub = 2 // bytes of GMT_POISON
	ScrubAuto   Scrub = 3 // zero, on the queue of its first use, if that is by a kernel that may read it
)

var namesScrub = [...]string{"none", "zero", "poison", "auto"}

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
	SightExec Sight = 2
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
