/*
 * event.h: everything that crosses from a target process to gpumemtop, defined once.
 *
 * The shim (C) and the eBPF program include this file; internal/wire/gen writes the Go side and event_access.h from it.
 * Field names carry no underscore because cgo -godefs strips a common prefix from names that do.
 *
 * A target process creates one region (a memfd) with one ring per thread and sends its descriptor, with a
 * struct gmthello, over the session's SOCK_SEQPACKET socket. Events flow through the rings; settings flow back
 * through the mailbox in the region's head. From then on the socket is a sign of life only. Nothing else is shared.
 */
#ifndef GMT_EVENT_H
#define GMT_EVENT_H

#include <stdint.h>

/* Raised whenever a layout or a meaning below changes; both sides refuse another version. */
#define GMT_VERSION 10
#define GMT_MAGIC 0x31504d474d45474dull

/* Kinds of event. The tables before struct gmtevent say what each kind carries. */
enum gmtkind {
	GMT_KIND_NONE = 0,
	GMT_KIND_PROCESS = 1,  /* a process joined the session */
	GMT_KIND_THREAD = 2,   /* another thread writes this ring from here on */
	GMT_KIND_MODULE = 3,   /* a file that the process runs code of */
	GMT_KIND_TAG = 4,      /* defines a tag */
	GMT_KIND_SITE = 5,     /* the call site that a tag stands for, with names; written by the session */
	GMT_KIND_DEVICE = 6,   /* a device of a context */
	GMT_KIND_CONTEXT = 7,  /* a context was created, retained or released */
	GMT_KIND_QUEUE = 8,    /* a command queue was created, retained or released */
	GMT_KIND_KERNEL = 9,   /* a kernel was created */
	GMT_KIND_CREATE = 10,  /* the program asked for memory */
	GMT_KIND_RETAIN = 11,  /* the program took another reference to memory */
	GMT_KIND_RELEASE = 12, /* the program gave up a reference to memory */
	GMT_KIND_USE = 13,     /* a command uses memory */
	GMT_KIND_SYNC = 14,    /* a synchronisation point */
	GMT_KIND_COOLED = 15,  /* a cooling block became free */
	GMT_KIND_EVICT = 16,   /* a pooled block went back to the driver */
	GMT_KIND_LIMIT = 17,   /* the process answers a control message */
	GMT_KIND_DIAG = 18,    /* a diagnostic of the shim, or a mistake of the program */
	GMT_KIND_EXIT = 19,    /* the process runs its exit handlers, or is gone */
	GMT_KIND_LOST = 20,    /* events were lost; written by the session */
	GMT_KIND_SLAB = 21,    /* the driver created a slab, or refused to */
	GMT_KIND_GAUGE = 22,   /* free memory in slabs, as the policy sees it */
	GMT_KIND_ORDER = 23,   /* where the policy's next decision stands in the order of all */
	GMT_KIND_AWAIT = 24,   /* a command waits for another */
	GMT_KIND_OBJECT = 25,  /* how many objects of a type a call site has created, and how many of these were released */
	GMT_KIND_TRANSFER = 26, /* more about a command that moves memory */
	GMT_KIND_MACHINE = 27, /* what the machine reports of a process's memory; written by the session */
	GMT_KIND_SPILL = 28,   /* --spill gave a buffer memory of the device or took it away, or a call waited for that */
};

/* What a SPILL reports. */
enum gmtspill {
	GMT_SPILL_FIRST = 0, /* the buffer got memory, and had no contents */
	GMT_SPILL_IN = 1,    /* it got memory, and its contents came from the host */
	GMT_SPILL_OUT = 2,   /* its contents went to the host, and its memory went back to the driver */
	GMT_SPILL_CLEAN = 3, /* its memory went back; the host had the same, or there were no contents */
	GMT_SPILL_END = 4,   /* it ended with memory */
	GMT_SPILL_STALL = 5, /* a call waited for memory or contents */
};

/* What a CREATE made. */
enum gmtmemory {
	GMT_MEMORY_BUFFER = 0,
	GMT_MEMORY_SUBBUFFER = 1,
	GMT_MEMORY_IMAGE = 2,
	GMT_MEMORY_PIPE = 3,
	GMT_MEMORY_SVM = 4,
	GMT_MEMORY_USM_HOST = 5,
	GMT_MEMORY_USM_DEVICE = 6,
	GMT_MEMORY_USM_SHARED = 7,
	GMT_MEMORY_EXTERNAL = 8, /* storage owned by GL, EGL, a file descriptor... */
};

/* How a CREATE was served, or what a last RELEASE did with the memory. */
enum gmtoutcome {
	GMT_OUTCOME_DRIVER = 0,  /* created or released by the driver; never eligible for the pool */
	GMT_OUTCOME_HIT = 1,     /* served from a cached block */
	GMT_OUTCOME_MISS = 2,    /* eligible, but the driver had to create a block */
	GMT_OUTCOME_FAILED = 3,  /* the driver refused; status says why */
	GMT_OUTCOME_CACHED = 4,  /* the block is free in the pool */
	GMT_OUTCOME_COOLING = 5, /* free, but queued commands still use it */
	GMT_OUTCOME_REFUSED = 6, /* pooled block that the policy or its state sent back to the driver; an EVICT follows */
	GMT_OUTCOME_PINNED = 7,  /* no references left, but sub-objects keep the memory alive */
};

/* Why a poolable request was a miss. */
enum gmtmiss {
	GMT_MISS_NONE = 0,
	GMT_MISS_COLD = 1,        /* no block of this class was ever freed that could have served it */
	GMT_MISS_TOO_SMALL = 2,   /* free blocks exist, all smaller */
	GMT_MISS_TOO_WASTEFUL = 3,/* a free block is large enough, but the policy refuses it: over max_waste_ratio, or another call site's */
	GMT_MISS_OTHER_CLASS = 4, /* a fitting block is free in another class */
	GMT_MISS_COOLING = 5,     /* a fitting block is still used by queued commands */
	GMT_MISS_LIMIT = 6,       /* a fitting block was evicted by max_cached_bytes, max_age, proportion or outgrown */
	GMT_MISS_TAG_CAP = 7,     /* a fitting block was evicted by a per-tag or per-bucket cap */
	GMT_MISS_DRAINED = 8,     /* a fitting block was handed back to make room, or to be timed */
	GMT_MISS_POLICY = 9,      /* the policy does not cache */
};

/* Whether a plan served a poolable request, and if not why not. */
enum gmtroute {
	GMT_ROUTE_NONE = 0,          /* the policy takes no plans */
	GMT_ROUTE_PLANNED = 1,       /* it has its planned place */
	GMT_ROUTE_NO_PLAN_YET = 2,
	GMT_ROUTE_OTHER_SITE = 3,    /* the plan has no place for the call site */
	GMT_ROUTE_OTHER_CLASS = 4,   /* it has, in another class */
	GMT_ROUTE_OTHER_SIZE = 5,    /* none of the site's next places has the size */
	GMT_ROUTE_OTHER_ORDER = 6,   /* one that comes much later has */
	GMT_ROUTE_RANGE_IN_USE = 7,  /* another buffer is there */
	GMT_ROUTE_RANGE_COOLING = 8, /* commands still use what was there */
	GMT_ROUTE_NO_ARENA = 9,      /* there is no memory for the arena */
};

/* Why a pooled block went back to the driver. */
enum gmtevict {
	GMT_EVICT_NONE = 0,
	GMT_EVICT_LIMIT = 1,   /* max_cached_bytes */
	GMT_EVICT_TAG_CAP = 2, /* per-tag or per-bucket cap */
	GMT_EVICT_MISFIT = 3,  /* futhark-2018: same tag, wrong size */
	GMT_EVICT_DRAIN = 4,   /* an allocation failed */
	GMT_EVICT_CONTEXT = 5, /* the application released its context */
	GMT_EVICT_TRIM = 6,    /* the user asked */
	GMT_EVICT_AGE = 7,     /* max_age */
	GMT_EVICT_STATE = 8,   /* not recyclable: still mapped, destructor callback, command buffers */
	GMT_EVICT_POLICY = 9,  /* it does not cache, another policy made the block, or an arena has no room */
	GMT_EVICT_RELIEF = 10, /* other programs lacked memory */
	GMT_EVICT_PROPORTION = 11, /* the pool held more than proportion allows */
	GMT_EVICT_OUTGROWN = 12,   /* its call site asked for more than any of its blocks had */
	GMT_EVICT_TIMED = 13,      /* so that what the driver takes for it is known */
};

/* Object life, for CONTEXT and QUEUE. */
enum gmtlife {
	GMT_LIFE_CREATE = 0,
	GMT_LIFE_RETAIN = 1,
	GMT_LIFE_RELEASE = 2, /* not the last reference */
	GMT_LIFE_END = 3,     /* the application's last reference, and of a context its last queue */
};

/* Whether a kernel that may read it was the first to use a recycled block, which no command had written; what the driver's new memory holds then. */
enum gmtexposed {
	GMT_EXPOSED_NO = 0,
	GMT_EXPOSED_UNTRIED = 1, /* new memory could not be looked at */
	GMT_EXPOSED_ZERO = 2,    /* new memory of about that size was zero */
	GMT_EXPOSED_OTHER = 3,   /* it was not */
	GMT_EXPOSED_CLEARED = 4, /* the block was cleared before, as --scrub auto does */
};

/* What an OBJECT counts. */
enum gmtheld {
	GMT_HELD_CONTEXT = 0,
	GMT_HELD_QUEUE = 1,
	GMT_HELD_PROGRAM = 2,
	GMT_HELD_KERNEL = 3,
	GMT_HELD_EVENT = 4,
	GMT_HELD_SAMPLER = 5,
	GMT_HELD_COMMAND_BUFFER = 6,
};

/* Commands that use memory. */
enum gmtcommand {
	GMT_COMMAND_OTHER = 0,
	GMT_COMMAND_KERNEL = 1,
	GMT_COMMAND_READ = 2,
	GMT_COMMAND_WRITE = 3,
	GMT_COMMAND_COPY = 4,
	GMT_COMMAND_FILL = 5,
	GMT_COMMAND_MAP = 6,
	GMT_COMMAND_UNMAP = 7,
	GMT_COMMAND_MIGRATE = 8,
	GMT_COMMAND_NATIVE = 9,
	GMT_COMMAND_ACQUIRE = 10, /* of memory of OpenGL */
	GMT_COMMAND_RELEASE = 11, /* of such memory, to OpenGL */
};

/*
 * USE: READS or WRITES are set where the argument is declared const or __constant, or where the memory was made for the
 * device to read or write only. A USE by a NATIVE command has neither. A USE of object 0 says that a command uses, besides
 * what other events name, memory that we cannot know: the replay of a command buffer. A MAP that WRITES may leave any of
 * the bytes as they were.
 *
 * A COPY is two USE events of its thread with equal times: first the one that READS, then the one that WRITES. There is
 * only one of them when the other side is not memory that we know.
 */

/*
 * The policy numbers its decisions in a process from 2, in the order in which it made them; nothing else shows the order
 * between two threads. The decisions of one thread have consecutive numbers, except where an ORDER says that the decision
 * after "previous" is "number" (previous 0: the thread's first). A thread reports its decisions in order, except those that
 * have an op here: it reports these at once, whichever events come before.
 *
 *   CREATE that is a HIT      one; a sub-allocation one more, with which it was there
 *   CREATE that is a MISS     one, and one with which the block was there; for a sub-allocation in a slab whose SLAB came
 *                             before, one between these, with which the slab was there
 *   RELEASE to the pool       one: CACHED, COOLING or REFUSED
 *   COOLED                    one; its ORDER may follow it, before any other event of the thread
 *   LIMIT                     one; a refused one has none
 */

/* What an ORDER reports, besides the order. */
enum gmtorder {
	GMT_ORDER_NEXT = 0,   /* no decision beyond those that events report */
	GMT_ORDER_ABORT = 1,  /* the plan for the CREATE that follows was given up */
	GMT_ORDER_RETURN = 2, /* the block or range found for the CREATE that follows could not be used: it is free again */
	GMT_ORDER_DRAIN = 3,  /* the driver had no memory, so the policy was asked to make room */
	GMT_ORDER_EXPIRE = 4, /* the policy evicted blocks for their age */
	GMT_ORDER_DROP = 5,   /* scope and access name a class that the program no longer uses */
};

/* What has certainly ended when an awaited command has. */
enum gmtawait {
	GMT_AWAIT_ONE = 0, /* that command alone */
	GMT_AWAIT_ALL = 1, /* also everything that its queue was given before it */
};

/* Where a figure of the machine is from. */
enum gmtmachine {
	GMT_MACHINE_RSS = 0,  /* anonymous resident memory, from /proc/PID/statm */
	GMT_MACHINE_DRM = 1,  /* the kernel's driver: buffers that are resident, of all DRM clients of the process */
	GMT_MACHINE_NVML = 2, /* NVIDIA's management library */
	GMT_MACHINE_DMEM = 3, /* the control group of the process, which others may share */
	GMT_MACHINE_RESIDENT = 4, /* all resident memory, also of files and shared: the RSS of ps */
};

/* Synchronisation points. */
enum gmtsync {
	GMT_SYNC_FINISH = 0,
	GMT_SYNC_FLUSH = 1,
	GMT_SYNC_WAIT = 2,
	GMT_SYNC_BLOCKING = 3, /* a blocking read, write or map */
};

/* What a tag is made of. */
enum gmttagmode {
	GMT_TAGS_NONE = 0,
	GMT_TAGS_CALLER = 1,
	GMT_TAGS_STACK = 2,
	GMT_TAGS_SIZE = 3,
	GMT_TAGS_THREAD = 4,
};

/* What the shim noticed. From UNKNOWN_MEMORY to STALE_ARGUMENT these are mistakes of the program. */
enum gmtdiag {
	GMT_DIAG_TRANSPARENT = 0,       /* pooling is off for this process; the text says why */
	GMT_DIAG_FORKED = 1,            /* a forked child is not watched */
	GMT_DIAG_SECOND_LOADER = 2,     /* calls through another libOpenCL are not seen */
	GMT_DIAG_PANIC = 3,             /* the Go core failed and was switched off */
	GMT_DIAG_TAGS_FULL = 4,         /* more distinct tags than the table holds: the rest share tag 0 */
	GMT_DIAG_UNKNOWN_MEMORY = 5,    /* a release of, or command on, something that no create returned */
	GMT_DIAG_DOUBLE_RELEASE = 6,    /* a release of memory whose last reference was gone */
	GMT_DIAG_USE_AFTER_RELEASE = 7, /* a call on memory whose last reference was gone */
	GMT_DIAG_WRONG_CONTEXT = 8,     /* memory of one context used with a queue or kernel of another */
	GMT_DIAG_STILL_MAPPED = 9,      /* the last release of memory that is mapped */
	GMT_DIAG_STALE_READ = 10,       /* certain: a command reads a recycled block that nothing has written since its create */
	GMT_DIAG_STALE_ARGUMENT = 11,   /* a kernel that cannot write it was given such a block: it reads it, or ignores it */
	GMT_DIAG_WHOLE_BLOCKS = 12,     /* no sub-allocations from here on, in this context and those like it; the text says why */
	GMT_DIAG_OUT_OF_MEMORY = 13,    /* a command failed for lack of memory; it has what a mistake has */
	GMT_DIAG_HOSTED = 14,           /* memory is the host's, as the device's lacked what the pool wastes; it has what a mistake has */
	GMT_DIAG_SPILL = 15,            /* what --spill could not do; the text says why */
	GMT_DIAG_EAGER = 16,            /* what --eager does on this driver; the text says it */
	GMT_DIAG_CALL_FAILED = 17,      /* a call failed that makes no memory */
	GMT_DIAG_USE_AFTER_FORK = 18,   /* a mistake: a child that forked once its parent had a context calls OpenCL; written by the session */
	GMT_DIAG_MEASURE = 19,          /* what an experiment does next, or why it ended; the text says it; written by the session */
	GMT_DIAG_PLACE = 20,            /* who the process is among others; the text has the fields of wire.Place, with tabs between; written by the session */
};

/* When USE and SYNC events are written, beside those of transfers and waits that enum gmttransfers wants. */
enum gmtuses {
	GMT_USES_NEVER = 0,
	GMT_USES_ALWAYS = 1,
	GMT_USES_ASKED = 2, /* while the session asks for them */
};

/* What is written about commands that move memory; also whether waits are. */
enum gmttransfers {
	GMT_TRANSFERS_NONE = 0,
	GMT_TRANSFERS_SAMPLED = 1, /* what costs at most a hundredth of the command */
	GMT_TRANSFERS_HASHED = 2,  /* also hashes of all bytes written */
};

/* What is done to a recycled block before the program gets it. */
enum gmtscrub {
	GMT_SCRUB_NONE = 0,
	GMT_SCRUB_ZERO = 1,
	GMT_SCRUB_POISON = 2, /* bytes of GMT_POISON */
	GMT_SCRUB_AUTO = 3,   /* zero, on the queue of its first use, if that is by a kernel that may read it */
};
#define GMT_POISON 0xffu /* half, float and double read NaN, integers -1: arithmetic notices both */

#define GMT_PAGE 4096u /* bytes: what drivers want of CL_MEM_USE_HOST_PTR where they do not copy */

#define GMT_FLAG_OUT_OF_ORDER 1u
#define GMT_FLAG_WHOLE 1u
#define GMT_FLAG_READS 2u
#define GMT_FLAG_WRITES 4u
#define GMT_FLAG_WOULD_RACE 8u
#define GMT_FLAG_ORDERED 16u
#define GMT_FLAG_SUBALLOC 32u
#define GMT_FLAG_CARRIED 64u
#define GMT_FLAG_SCATTERED 128u
#define GMT_FLAG_OFF_PAGE 128u
#define GMT_FLAG_ARM 128u
#define GMT_FLAG_SCRIPT 1u
#define GMT_FLAG_ROUTE 30u
#define GMT_FLAG_EXPOSED 7u
#define GMT_FLAG_UNIFIED 1u
#define GMT_FLAG_PINNED 1u
#define GMT_FLAG_PAGEABLE 2u

/*
 * What the fields of struct gmtevent mean in each kind. internal/wire/gen reads these tables and writes views.go and
 * event_access.h from them, so code outside internal/wire uses the names in the second column and never a field itself.
 *
 * Columns, two spaces or more apart:
 *   field    of struct gmtevent; flags.X is the bit GMT_FLAG_X, or several
 *            that hold an enumeration; a:b is a 64-bit number in two fields, high half first;
 *            [op=X|Y] or [op!=X]: only for these values of another field
 *   name     of the accessor
 *   type     an enumeration below gmt, bool, double, or the unit of a number
 *   meaning
 * Time is a column of every kind. "payload" says what follows the event; size then counts its bytes.
 */

/*
 * PROCESS
 *   object   PID     pid  of the process
 *   link     Parent  pid  of its parent
 *   granted  RankNumber  number  1 + its rank in its job; 0: unknown
 *   payload  program NUL argument NUL argument ...
 */

/*
 * THREAD
 *   object  TID  tid  of the thread that writes this ring from here on
 */

/*
 * MODULE
 *   object        Module  id    of the module, from 1
 *   flags.SCRIPT  Script  bool  it is a function of Python: offsets in it are lines; not recorded, its name goes into the SITE
 *   payload       path; the session writes a second event with path NUL build id in hexadecimal. Of a function: file NUL name
 */

/*
 * TAG
 *   op       Mode   TagMode  what the tag is made of
 *   tag      Tag    tag      that this event defines
 *   link     Value  number   the size class or thread, where the tag is made of that
 *   payload  struct gmtframe ..., innermost first
 */

/*
 * SITE
 *   tag      Tag  tag  that this event names
 *   payload  a line per frame, innermost first: function TAB file TAB line TAB module+offset
 */

/*
 * DEVICE: of several devices of a context the smallest figure of each, but the largest LargestAlloc.
 *   flags.UNIFIED  Unified       bool   its memory is the host's; of several devices: that of each is
 *   scope          Devices       number  how many devices the context has; 0: unknown
 *   object         Device        id     the device
 *   granted        Memory        bytes  of global memory
 *   link           LargestAlloc  bytes  of one allocation at most
 *   tag            Align         bytes  alignment of sub-buffers
 *   duration:cost  Constant      bytes  of one __constant argument at most; 0: unknown
 *   payload        name NUL driver NUL identity of the first: PCI address, UUID or both, or "local N", which holds in its process; empty: unknown
 */

/*
 * CONTEXT
 *   op             Life         Life   what happened
 *   flags.CARRIED  CarriedOver  bool   it was there before the recording began
 *   scope          Scope        scope  of the context
 *   object         Context      id     the context
 *   link           Device       id     its first device
 */

/*
 * QUEUE
 *   op                  Life         Life   what happened
 *   flags.OUT_OF_ORDER  OutOfOrder   bool   its commands may run in any order
 *   flags.CARRIED       CarriedOver  bool   it was there before the recording began
 *   scope               Scope        scope  of its context
 *   object              Queue        id     the queue
 *   link                Device       number  1 + the place of its device in its context; a part of a device counts as the device; 0: unknown
 */

/*
 * KERNEL
 *   flags.CARRIED  CarriedOver  bool  it was there before the recording began
 *   object         Kernel       id    the kernel
 *   payload        name
 */

/*
 * CREATE
 *   duration                Duration       ns       of the whole call, saturating; 0: not measured
 *   cost                    Cost           ns       of these inside the driver
 *   op                      Memory         Memory   what the call made
 *   outcome                 Outcome        Outcome  how it was served
 *   reason                  Reason         Miss     why a poolable request missed
 *   flags.WHOLE             NeedsBlock     bool     no sub-allocation could have served it, whatever the policy
 *   flags.SUBALLOC          SubAllocation  bool     the block is a piece of a slab, and ends with its buffer
 *   flags.CARRIED           CarriedOver    bool     it was there before the recording began; nothing happened now
 *   flags.ROUTE             Route          Route    whether a plan served it
 *   flags.OFF_PAGE[outcome!=HIT|MISS]  OffPage  bool  it is a buffer in memory of the program that begins at no multiple of GMT_PAGE
 *   flags.ARM[outcome=HIT|MISS]  Arm       bool     the alternative of an experiment decided, and not the present configuration
 *   scope                   Scope          scope    of its context; with Access and Shape it makes the class
 *   access                  Access         flags    the lowest 16 bits of its cl_mem_flags
 *   status[outcome!=HIT|MISS]  Status      cl_int   what the call returned, saturating
 *   status[outcome=HIT|MISS]   Shape       number   what else makes the class, in each context: images from 1 up, SVM and USM from -1 down; 0: a buffer
 *   tag                     Tag            tag      its call site; 0: none
 *   object                  Object         id       the new object; 0: none
 *   size                    Requested      bytes    that the program asked for
 *   granted[op!=SUBBUFFER]  Granted        bytes    of the memory that serves it; 0: unknown
 *   granted[op=SUBBUFFER]   OriginNumber   number   1 + its offset in the parent in bytes; 0 or carried over: unknown
 *   link[outcome=HIT|MISS]   Block         id       the block that serves it
 *   link[outcome!=HIT|MISS]  Parent        id       of a sub-buffer, or an image of a buffer; 0: none
 */

/*
 * RETAIN
 *   duration  Duration    ns      of the whole call, saturating
 *   cost      Site        tag     call site of the retain; 0: unknown
 *   op        Memory      Memory  what the object is
 *   scope     Scope       scope   of its context
 *   status    Status      cl_int  what the call returned
 *   tag       Tag         tag     the call site of its create
 *   object    Object      id      the object; 0: unknown
 *   size      Requested   bytes   of the object
 *   granted   References  count   that the program holds afterwards
 *   link      Block       id      that serves it
 */

/*
 * RELEASE
 *   duration          Duration       ns       of the whole call, saturating; 0: not measured
 *   cost              Cost           ns       of these inside the driver
 *   op                Memory         Memory   what the object is
 *   outcome           Outcome        Outcome  what became of the memory; valid with References 0
 *   flags.WOULD_RACE  WouldRace      bool     an ungated pool could have handed the block out while it was in use
 *   flags.ORDERED     Ordered        bool     still in use, but every later use is ordered behind it
 *   flags.SUBALLOC    SubAllocation  bool     the block is a piece of a slab, and ends now
 *   flags.CARRIED     CarriedOver    bool     it was released before the recording began; nothing happened now
 *   flags.EXPOSED     Exposed        Exposed  whether a kernel may have read what the block's earlier owner left
 *   scope             Scope          scope    of its context
 *   status            Status         cl_int   what the call returned
 *   tag               Tag            tag      the call site of its create
 *   object            Object         id       the object; 0: unknown
 *   size              Requested      bytes    of the object
 *   granted           References     count    that the program still holds
 *   link              Block          id       that served it; 0: none
 */

/*
 * USE
 *   duration            ArgumentNumber  number   1 + the index of the kernel argument that is the memory; 0: none
 *   cost                Duration        ns       of the call of a blocking command, saturating; 0: not measured, or it does not block
 *   op                  Command         Command  what uses the memory
 *   flags.READS         Reads           bool     it reads the object
 *   flags.WRITES        Writes          bool     it writes the object; neither flag: unknown
 *   flags.SCATTERED     Scattered       bool     the bytes do not lie in one piece, or Offset is 0 because it is unknown
 *   scope               Scope           scope    of its context
 *   tag                 Tag             tag      of a COPY its own call site, of others that of the memory's create
 *   object              Object          id       the memory; 0: memory that we cannot know
 *   size                Bytes           bytes    touched; 0: unknown
 *   granted[op=KERNEL]  Kernel          id       the kernel
 *   granted[op!=KERNEL|NATIVE]  Offset  bytes    of the first byte touched within the object
 *   link                Queue           id       the queue
 */

/*
 * SYNC
 *   duration  Duration  ns     of the whole call, saturating
 *   op        Sync      Sync   how the thread synchronised
 *   scope     Scope     scope  of the queue's context
 *   link      Queue     id     the queue; 0: several
 */

/*
 * COOLED
 *   flags.SUBALLOC  SubAllocation  bool   the block is a piece of a slab, and ends now
 *   tag         Tag            tag    the call site that had it last
 *   granted     Bytes          bytes  of the block
 *   link        Block          id     the block
 */

/*
 * EVICT
 *   duration    Duration       ns      of the driver's call, saturating
 *   cost        Cost           ns      of the driver's call
 *   reason      Reason         Evict   why
 *   flags.SUBALLOC  SubAllocation  bool    the block is a piece of a slab: the driver gets nothing
 *   status      Status         cl_int  what the driver returned
 *   tag         Tag            tag     the call site that had it last
 *   granted     Bytes          bytes   of the block
 *   link        Block          id      the block
 */

/*
 * LIMIT
 *   status   Status    number  0: the change holds; -1: refused
 *   object   Sequence  number  of the control message
 *   payload  "name=value", "policy=name[,name=value...]", "relieve=asked given why", of experiments what intercept/broker/control.go says, or the error
 */

/*
 * DIAG: a mistake of the program and OUT_OF_MEMORY have all of these, CALL_FAILED Diag, Status and Tag, another diagnostic only Diag and the text.
 *   op       Diag    Diag    what the shim noticed
 *   scope    Scope   scope   of the memory's context
 *   status   Status  cl_int  what the call returned
 *   tag      Tag     tag     the call site that created the memory, or of the call; 0: unknown
 *   object   Object  id      the memory; 0: unknown
 *   granted  Bytes   bytes   of the memory; 0: unknown
 *   link     Kernel  id      where a kernel is concerned
 *   payload  the OpenCL function of a mistake, of OUT_OF_MEMORY or of CALL_FAILED, otherwise a text
 */

/*
 * EXIT: from the process itself when its exit handlers run; from the session (thread 0) when the process is gone.
 *   status  Status  number  exit status; -1: unknown. From the process itself: what it called exit() with
 *   object  Signal  number  that ended it; 0: none, or unknown
 *   size    OOMKillsNumber  number  1 + the processes of its control group that the kernel ended for lack of memory while it ran; 0: unknown
 */

/*
 * LOST
 *   size     Events  count  lost since the last such event
 *   granted  Uses    count  of these, USE events
 */

/*
 * SLAB
 *   duration       Duration     ns      of the driver's call, saturating
 *   cost           Cost         ns      of the driver's call
 *   flags.CARRIED  CarriedOver  bool    it was there before the recording began; nothing happened now
 *   scope          Scope        scope   of its context; with Access it makes the class
 *   access         Access       flags   the lowest 16 bits of its cl_mem_flags
 *   status         Status       cl_int  what the driver returned; other than 0: there is no slab
 *   tag            Tag          tag     the call site of the request that needed it
 *   granted        Bytes        bytes   of the slab
 *   link           Block        id      the slab
 */

/*
 * GAUGE
 *   object   Ranges   count    free ranges in slabs
 *   size     Largest  bytes    of the largest free range
 *   granted  Free     bytes    of all free ranges
 *   link     Squares  double   the sum of the squares of their sizes
 */

/*
 * ORDER
 *   op                     Order     Order   what happened besides
 *   scope                  Scope     scope   DROP, ABORT, RETURN: of the class
 *   access                 Access    flags   DROP, ABORT, RETURN: of the class
 *   status                 Shape     number  DROP, ABORT, RETURN: of the class
 *   object                 Number    number  of the decision
 *   link                   Previous  number  the thread's decision before it; 0: none
 *   size[op=ABORT|RETURN]  Decision  number  the decision that had planned for, or found a block for, the CREATE that follows
 *   size[op=DRAIN]         Bytes     bytes   that the policy was asked to make room for
 *   granted                Slab      number  the decision with which its slab was there (ABORT), or it was in use (RETURN); 0: none
 */

/*
 * AWAIT
 *   op      Await        Await  what has ended when the awaited command has
 *   scope   Scope        scope  of the waiting queue's context
 *   object  AwaitedQueue  id    the queue of the awaited command
 *   size    AwaitedTime  time   of the awaited command or marker
 *   link    Queue        id     of the thread's command or marker with the same time, which waits; 0: the thread itself waits, in
 *                               the SYNC with the same time
 */

/*
 * OBJECT: counts since the process started, so that a lost one does no harm: the next says the same and more.
 *   op             Held         Held   what is counted
 *   flags.CARRIED  CarriedOver  bool   the counts are those at the beginning of the recording
 *   tag            Tag          tag    the call site
 *   object         Created      count  objects that it created
 *   size           Released     count  of these, whose last reference the program gave up
 *   granted        Most         count  the most that it held since the record before, or now
 *   link           Untracked    count  objects that it created beyond these, while as many as are tracked were held: more may be
 */

/*
 * MACHINE
 *   op       Source    Machine  where the figure is from
 *   status   Unread    number   the errno with which it could not be read; 0: it was
 *   object   Device    id       PCI address: domain << 16 | bus << 8 | device << 3 | function; 0: unknown, or the host
 *   granted  Resident  bytes    in memory; 0 where it could not be read
 */

/*
 * SPILL
 *   duration  Duration  ns     of the move, or of the wait, saturating
 *   op        Spill     Spill  what happened
 *   tag       Tag       tag    the call site that created the buffer; 0: unknown
 *   object    Object    id     the buffer; 0: unknown. Of a STALL: the largest that the call needs
 *   size      Bytes     bytes  of the buffer. Of a STALL: that the call needs at once
 *   granted   Resident  bytes  of buffers with memory of the device, in the process, afterwards
 *   link      Spilled   bytes  of buffers whose contents only the host has, in the process, afterwards
 */

/*
 * TRANSFER: comes before the USE events of its thread with the same time, and adds to their command. Neither Pinned nor Pageable: the command has no host side. With Profiled it comes alone, when a command that did not block has completed, and has Site, Moved and Took only.
 *   duration        Pages     count   pages of the host's side that were looked at before the command; 0: none
 *   cost            Cold      count   of these, not in memory: the first touch of each takes time
 *   flags.PINNED    Pinned    bool    the host's side is memory of the driver: a mapping, USE_HOST_PTR, or USM of the host
 *   flags.PAGEABLE  Pageable  bool    it is not, as far as we know
 *   op              Profiled  Command  that has completed; OTHER: none
 *   tag             Site      tag     call site of the command; 0: unknown
 *   object          Moved     bytes   by the completed command
 *   granted         Took      ns      from its start to its end, as the device's profiling says
 *   size            Hashed    bytes   of a write's source that Hash is made of; 0: none, all of them: it is certain
 *   link            Hash      number  equal for equal bytes
 */

/*
 * One event: 64 bytes. time is CLOCK_MONOTONIC in ns at the moment the event takes effect: for a CREATE the return
 * of the driver, for everything else the entry of the call, so that sorting by time never shows a release before
 * its create. The tables above say what the other fields mean.
 */
struct gmtevent {
	uint64_t time;
	uint32_t duration;
	uint32_t cost;
	uint16_t kind; /* enum gmtkind */
	uint8_t op;
	uint8_t outcome;
	uint8_t reason;
	uint8_t flags;
	uint16_t scope; /* context number modulo 65536, 0 when unknown */
	int16_t status;
	uint16_t access;
	uint32_t tag;
	uint64_t object; /* ids number the objects of a process from 1 and are never reused */
	uint64_t size;
	uint64_t granted;
	uint64_t link;
};

/* One frame of a TAG payload. Offsets are relative to the module, so they mean the same in every run. */
struct gmtframe {
	uint64_t module; /* object of a MODULE event, 0 when unknown */
	uint64_t offset; /* of the call's return address */
};

#define GMT_RINGS 256         /* threads with a ring of their own; further threads share the last one */
#define GMT_RING_EVENTS 16384 /* power of two */
#define GMT_PAYLOAD_MAX 4096  /* bytes; longer text is cut */

/*
 * One ring: single producer (a thread of the target), single consumer (the session). Positions count events from
 * the start and never wrap. The producer alone writes head and the counters, the consumer alone writes tail.
 * The consumer treats everything here as hostile: it copies an event before looking at it.
 */
struct gmtring {
	uint64_t head;
	uint64_t headpad[7];
	uint64_t tail;
	uint64_t tailpad[7];
	uint64_t lost;     /* events that did not fit */
	uint64_t lostuses; /* of these, USE events */
	uint64_t waits;    /* times that the producer waited for room */
	uint32_t owner;    /* tid, 0 when free */
	uint32_t ownerpad;
	uint64_t lostpad[4];
	struct gmtevent events[GMT_RING_EVENTS];
};

/*
 * A message of the session: text is "limit NAME=VALUE", "trim BYTES", "relieve BYTES WHY" (internal/wire:
 * Relief), "period NS" of an iteration, "plan PIECE" (allocator/draft.go), or "policy NAME",
 * behind which a space and limits of that policy may follow, "NAME=VALUE,...". Limits that do not fit follow in messages of
 * their own. Experiments have "arms POLICY", which may go on likewise, "arms +NAME=VALUE", "arms" and "arm 0|1 REQUEST"
 * (intercept/broker/control.go).
 */
struct gmtcontrol {
	uint64_t sequence;
	uint8_t text[120]; /* NUL-terminated */
};

#define GMT_CONTROLS 32 /* power of two */

/*
 * Head of the region; the rings start at byte GMT_RINGS_OFFSET. The session alone writes control, posted, uses, answered and
 * relieved, the target alone the rest. posted and taken count messages from 0 and may wrap. posted is a futex.
 */
#define GMT_RINGS_OFFSET 8192
struct gmtregion {
	uint64_t magic;
	uint32_t version;
	uint32_t rings;
	uint32_t ringevents;
	uint32_t pid;
	uint64_t started;  /* CLOCK_MONOTONIC ns, which a time namespace may have shifted */
	uint64_t realtime; /* CLOCK_REALTIME ns then, which is the same everywhere */
	uint32_t posted;
	uint32_t taken;
	struct gmtcontrol control[GMT_CONTROLS];
	uint32_t used; /* rings below this one have had an owner; the session looks at no others, which have no memory yet */
	uint32_t uses; /* 1: GMT_USES_ASKED means now */
	uint64_t lacks;    /* bytes that a create lacks which found no memory, of the latest ask */
	uint32_t asks;     /* how often the target has asked for memory that other programs keep idle */
	uint32_t answered; /* the ask that the session has answered */
	uint32_t relieved; /* 1: there is more memory now */
	uint32_t pad;
};

/* What the target sends with the region's descriptor. */
struct gmthello {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint32_t ppid;
	uint32_t arguments; /* bytes used of text */
	uint8_t text[2048];    /* the command line: words, each ended by NUL */
};

/*
 * Settings of a session: the file "config" in the runtime folder that GPUMEMTOP_SESSION names. The session writes
 * it before it starts the target; the shim and the Go core read it.
 */
struct gmtconfig {
	uint64_t magic;
	uint32_t version;
	uint32_t tagmode;    /* enum gmttagmode */
	uint32_t stackdepth; /* frames, 1 to GMT_STACK_MAX */
	uint32_t waitms;     /* how long a producer may wait for room in its ring, in all, before events are dropped; 0: never */
	uint32_t uses;       /* enum gmtuses */
	uint32_t transfers;  /* enum gmttransfers; the USE events of such commands do not depend on uses */
	uint32_t pooling;    /* 1: load the Go core */
	uint32_t ungated;    /* 1: hand blocks out while commands still use them; corrupts, for demonstration */
	uint32_t scrub;      /* enum gmtscrub */
	uint32_t spill;      /* 1: memory objects are virtual, and idle ones go to host memory when the device has no room */
	uint64_t devicememory; /* bytes of device memory that each process is made to have; 0: what the device has */
	uint64_t answerfree;   /* 1: answer the query for free memory where the driver does not know it */
	uint64_t copymin;    /* bytes from which buffers with CL_MEM_COPY_HOST_PTR come from the pool */
	uint64_t eager;      /* 1: memory gets its room on the devices when it is created */
	uint8_t policy[64];
	uint8_t limits[1024];   /* "name=value,..." */
	uint64_t neighbours;    /* 1: the session asks other programs for the memory that creates lack */
};

/*
 * What the eBPF program of tracer/ tells, through a BPF ring buffer: calls as they were, which mean nothing yet. Go
 * makes events of them. Times are CLOCK_MONOTONIC ns. Here alone pid and tid are the kernel's: those of the process
 * id namespace that gpumemtop runs in.
 */

/* What the eBPF program saw. */
enum gmtsight {
	GMT_SIGHT_CALL = 0,  /* of the function whose number was the probe's cookie */
	GMT_SIGHT_FORK = 1,  /* result: pid of the child; pid and tid are the parent's */
	GMT_SIGHT_EXEC = 2,  /* result: 1 if another thread than the first executes; it then takes the number of the process. The
	                        first GMT_COMM bytes of argument: the new name of the process, ended by NUL */
	GMT_SIGHT_EXIT = 3,  /* the last thread of pid ends; result: its status as wait(2) has it, all ones when unknown */
};

#define GMT_COMM 16            /* TASK_COMM_LEN of the kernel */
#define GMT_CALL_ARGUMENTS 6   /* those in registers; further ones are not seen */
#define GMT_CALL_DATA 256      /* bytes that one call's copies have, half of it each */
#define GMT_CALL_COPIES 2
#define GMT_CALL_STACK 16384   /* bytes of the caller's stack, from sp upwards, at most */

/* A call. After it come data bytes of copies, when there are any GMT_CALL_DATA of them, and stack bytes of the stack. */
struct gmtcall {
	uint64_t time;     /* the moment that counts: of the return, or of the entry where the shape asks for that */
	uint64_t entered;
	uint32_t pid, tid;
	uint16_t function;
	uint16_t sight;    /* enum gmtsight */
	uint16_t data;     /* 0 or GMT_CALL_DATA */
	uint16_t stack;    /* bytes */
	int32_t error;     /* what the call stored through its errcode_ret, 0 when it has none */
	uint8_t copied[GMT_CALL_COPIES]; /* 1: the copy could be read */
	uint8_t shortened; /* 1: the ring had no room for the stack */
	uint8_t pad;
	uint64_t result;   /* return value; 0 at an entry */
	uint64_t event;    /* what the call stored through its event argument, 0 when it has none */
	uint64_t argument[GMT_CALL_ARGUMENTS];
	/* Registers of the caller as they are after the return: of a call recorded at its entry, only ip. */
	uint64_t ip, sp, bp, bx, r12, r13, r14, r15;
};

/* What to record of a function. */
#define GMT_SHAPE_RETURN 1u /* recorded at the return; else at the entry */
#define GMT_SHAPE_STACK 2u  /* with the caller's stack, where stacks are wanted */
#define GMT_SHAPE_USE 4u    /* one of many: counted apart when lost, and left out where uses are not wanted */
struct gmtcopy {
	uint8_t argument; /* 1 + index of the argument that points to it, 0: no copy */
	uint8_t unit;     /* bytes of one */
	uint8_t count;    /* 1 + index of the argument that says how many there are, 0: one */
	uint8_t text;     /* 1: a text that ends with NUL */
};
struct gmtshape {
	uint8_t flags;    /* GMT_SHAPE_* */
	uint8_t error;    /* 1 + index of errcode_ret, 0: none */
	uint8_t object;   /* 1 + index of an OpenCL handle that every call of the function has; 0: none */
	uint8_t like;     /* 1 + index of a copy that is kept only when it is one handle whose first word is that of object's: both objects of one driver; 0: none */
	uint8_t event;    /* 1 + index of the event that the call returns, which may be on the stack; 0: none */
	uint8_t pad[3];
	struct gmtcopy copy[GMT_CALL_COPIES];
};
#define GMT_FUNCTIONS 128 /* shapes at most */

#define GMT_STACK_MAX 32

#define GMT_SOCKET_NAME "socket"
/*
 * A datagram socket, and an abstract one whose name is its path: processes report there that they are not watched, with an empty
 * string, which program they start without the library because it is out of their reach, with its name, or that a forked child calls
 * OpenCL, with the pid of the process that is watched, a space, and the function.
 */
#define GMT_OUTSIDERS_NAME "outsiders"
#define GMT_OUTSIDER_MAX 256 /* bytes, with a zero at the end */
#define GMT_OUTSIDER_ASKED 2 /* the first byte of what clGetDeviceIDs returned before the first context: "type status devices", the type in hexadecimal */
#define GMT_OUTSIDER_FOREIGN 1 /* the first byte where the program is for another machine or C library */
#define GMT_OUTSIDER_FORKED 3  /* the first byte of a forked child */
#define GMT_CONFIG_NAME "config"
#define GMT_CORE_NAME "libgpumemtop-core.so"
#define GMT_SHIM_NAME "libgpumemtop.so"
#define GMT_SESSION_ENV "GPUMEMTOP_SESSION"
#define GMT_PROBE_ENV "GPUMEMTOP_PROBE" /* shim/entry/probe.c */
#define GMT_USDT_ENV "GPUMEMTOP_USDT"   /* shim/base/usdt.h */

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct gmtevent) == 64, "an event is one cache line");
_Static_assert(sizeof(struct gmtcall) == 168, "no holes that the verifier finds unwritten");
_Static_assert(sizeof(struct gmtshape) == 16, "shapes fit a map's value");
_Static_assert(sizeof(struct gmtframe) == 16, "frames fill payload slots evenly");
_Static_assert(sizeof(struct gmtregion) <= GMT_RINGS_OFFSET, "the region's head fits before the rings");
#endif

#endif
