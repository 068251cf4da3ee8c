/*
 * event.h: everything that crosses from a target process to gpumemtop, defined once.
 *
 * The shim (C) and the eBPF program include this file; types_linux.go is generated from it (see types_def.go).
 * Field names carry no underscore because cgo -godefs strips a common prefix from names that do.
 *
 * A target process creates one region (a memfd) with one ring per thread and sends its descriptor, with a
 * struct gmthello, over the session's SOCK_SEQPACKET socket. Events flow through the rings; settings flow back
 * over the socket as struct gmtcontrol. Nothing else is shared.
 */
#ifndef GMT_EVENT_H
#define GMT_EVENT_H

#include <stdint.h>

/* Raised whenever a layout or a meaning below changes; both sides refuse another version. */
#define GMT_VERSION 4
#define GMT_MAGIC 0x31504d474d45474dull

/* Kinds of event. A kind with a payload carries its length in size; the payload follows in whole 64-byte slots. */
enum gmtkind {
	GMT_KIND_NONE = 0,
	GMT_KIND_PROCESS = 1,  /* object: pid, link: parent pid, payload: program NUL argument NUL ... */
	GMT_KIND_THREAD = 2,   /* object: tid that writes this ring from here on */
	GMT_KIND_MODULE = 3,   /* object: module id, payload: path; a second one, by the session: path NUL build id in hexadecimal */
	GMT_KIND_TAG = 4,      /* tag: id, op: gmttagmode, payload: struct gmtframe..., innermost first; link: value for size, thread */
	GMT_KIND_SITE = 5,     /* tag: id, payload: a line per frame, "function TAB file TAB line TAB module+offset"; written by the session */
	GMT_KIND_DEVICE = 6,   /* object: device, granted: global memory bytes, link: largest allocation bytes, tag: alignment of sub-buffers in bytes, duration and cost: high and low 32 bits of the largest __constant argument's bytes, 0 unknown; of several devices of a context the least of each, but the largest link; payload: name NUL driver */
	GMT_KIND_CONTEXT = 7,  /* op: gmtlife, object: context, link: first device */
	GMT_KIND_QUEUE = 8,    /* op: gmtlife, object: queue, flags: GMT_FLAG_OUT_OF_ORDER */
	GMT_KIND_KERNEL = 9,   /* object: kernel, payload: name */
	GMT_KIND_CREATE = 10,  /* op: gmtmemory; object, size, granted, tag; link: block (root buffer) or parent (sub-buffer, image of a buffer); granted of a sub-buffer: 1 + its offset in the parent, 0 or CARRIED: unknown */
	GMT_KIND_RETAIN = 11,  /* object; granted: references the application holds afterwards */
	GMT_KIND_RELEASE = 12, /* object; granted: references left; at 0 outcome says what became of the memory, link: block */
	GMT_KIND_USE = 13,     /* op: gmtcommand; object; link: queue; size: bytes touched, 0 when unknown; granted, duration, tag: see gmtcommand */
	GMT_KIND_SYNC = 14,    /* op: gmtsync; link: queue, 0 when several */
	GMT_KIND_COOLED = 15,  /* link: block, granted: its size; a cooling block became free */
	GMT_KIND_EVICT = 16,   /* link: block, granted: its size, reason: gmtevict; a pooled block went back to the driver */
	GMT_KIND_LIMIT = 17,   /* object: sequence number of the control message, status: 0 or -1, payload: "name=value", "policy=name[,name=value...]" or the error */
	GMT_KIND_DIAG = 18,    /* op: gmtdiag, payload: text; findings about the program: see gmtdiag */
	GMT_KIND_EXIT = 19,    /* the process runs its exit handlers; status: exit status where known (session) */
	GMT_KIND_LOST = 20,    /* size: events lost since the last such event, granted: of these, uses; written by the session */
	GMT_KIND_SLAB = 21,    /* link: block, granted: its size; a block whose parts serve requests was created, or refused: status */
	GMT_KIND_GAUGE = 22,   /* free memory in slabs as the policy sees it: granted: bytes, size: largest range, object: ranges, link: bits of a double, the sum of their squares */
	GMT_KIND_ORDER = 23,   /* op: gmtorder; object: number of a decision of the policy, link: of the thread's decision before that; see gmtorder */
	GMT_KIND_AWAIT = 24,   /* op: gmtawait; link: queue of the command, or marker, of the thread that has the same time and waits, 0: the thread itself, in the SYNC of that time; object: queue, size: time of the command or marker there that it waits for */
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
	GMT_MISS_LIMIT = 6,       /* a fitting block was evicted by max_cached_bytes */
	GMT_MISS_TAG_CAP = 7,     /* a fitting block was evicted by a per-tag or per-bucket cap */
	GMT_MISS_DRAINED = 8,     /* a fitting block was handed back to make room */
	GMT_MISS_POLICY = 9,      /* the policy does not cache */
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
	GMT_EVICT_POLICY = 9,  /* the policy does not cache, or another one made the block */
};

/* Object life, for CONTEXT and QUEUE. */
enum gmtlife {
	GMT_LIFE_CREATE = 0,
	GMT_LIFE_RETAIN = 1,
	GMT_LIFE_RELEASE = 2, /* not the last reference */
	GMT_LIFE_END = 3,     /* the application's last reference */
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
};

/*
 * A USE of a KERNEL has the kernel's number in granted, and in duration 1 + the index of the argument that is the memory.
 * READS or WRITES are set where the argument is declared const or __constant, or the memory was made for the device to
 * read or write alone. That of NATIVE has neither. All others have in granted the offset of the first byte that they touch
 * within the object, and GMT_FLAG_SCATTERED when the bytes do not lie in one piece, or their place is unknown. A USE of object
 * 0 says that a command uses, besides what others name, memory that cannot be told: a replay of a command buffer.
 *
 * A COPY is two USE events of its thread with equal times, first that which READS, then that which WRITES; one of them
 * when the other side is no memory that we know. Their tag is the call site of the copy itself, in all other USE events it
 * is that of the memory's create. A MAP that WRITES may leave any of the bytes as they were.
 */

/*
 * The policy's decisions of a process have numbers, from 2, in the order in which they were made: nothing else tells that
 * order of two threads. A thread's decisions follow each other, one up, but where an ORDER says that the one after link is
 * object (link 0: the thread's first). A thread tells of its decisions in order, but for those that have an op here and are
 * told of at once, whichever events come before:
 *
 *   CREATE that is a HIT      one, and when it is a part one more, by which the part was there
 *   CREATE that is a MISS     one, and one by which the block was there; for a part in a slab whose SLAB came before, one
 *                             between these, by which the slab was there
 *   RELEASE to the pool       one: CACHED, COOLING or REFUSED
 *   COOLED                    one, of which an ORDER may stand behind it, before any other event of the thread
 *   LIMIT                     one; one that was refused has none
 */

/* What an ORDER tells of, besides the order. */
enum gmtorder {
	GMT_ORDER_NEXT = 0,   /* no other decision than the events tell of */
	GMT_ORDER_ABORT = 1,  /* what decision size had planned for the CREATE that follows was given up; granted: the number by which its slab was there, or 0 */
	GMT_ORDER_RETURN = 2, /* the block that decision size had found for the CREATE that follows could not be used: it is free again */
	GMT_ORDER_DRAIN = 3,  /* the policy was asked for size bytes, because the driver had no memory */
	GMT_ORDER_EXPIRE = 4, /* blocks were found too old */
	GMT_ORDER_DROP = 5,   /* scope and access: the class that nobody asks for any more */
};

/* What else has surely ended when a command that is awaited has. */
enum gmtawait {
	GMT_AWAIT_ONE = 0, /* nothing */
	GMT_AWAIT_ALL = 1, /* all that its queue had been given before it */
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

/* Things that the shim noticed. From UNKNOWN_MEMORY on they are mistakes of the program, see below. */
enum gmtdiag {
	GMT_DIAG_TRANSPARENT = 0,    /* pooling is off for this process; the payload says why */
	GMT_DIAG_FORKED = 1,         /* a forked child is not watched */
	GMT_DIAG_SECOND_LOADER = 2,  /* calls through another libOpenCL are not seen */
	GMT_DIAG_PANIC = 3,          /* the Go core failed and was switched off */
	GMT_DIAG_TAGS_FULL = 4,      /* more distinct tags than the table holds: the rest share tag 0 */
	GMT_DIAG_UNKNOWN_MEMORY = 5, /* release of, or command on, something that no create returned */
	GMT_DIAG_DOUBLE_RELEASE = 6, /* a release of memory whose last reference was gone */
	GMT_DIAG_USE_AFTER_RELEASE = 7, /* a call on memory whose last reference was gone */
	GMT_DIAG_WRONG_CONTEXT = 8,  /* memory of one context used with a queue or kernel of another */
	GMT_DIAG_STILL_MAPPED = 9,   /* the last release of memory that is mapped */
	GMT_DIAG_STALE_READ = 10,     /* certain: a command reads a recycled block that nothing has written since its create */
	GMT_DIAG_STALE_ARGUMENT = 11, /* such a block was given to a kernel that cannot write it: it reads it, or ignores it */
};

/*
 * A DIAG that tells of a mistake: the payload is the name of the OpenCL function, tag the call site that created the
 * memory (0 when unknown), object its number, granted its size, link the kernel's number where a kernel is concerned,
 * status what the call returned.
 */

/* What is done to a recycled block before the program gets it. */
enum gmtscrub {
	GMT_SCRUB_NONE = 0,
	GMT_SCRUB_ZERO = 1,
	GMT_SCRUB_POISON = 2, /* bytes of GMT_POISON */
};
#define GMT_POISON 0xa5u

#define GMT_FLAG_OUT_OF_ORDER 1u
#define GMT_FLAG_WHOLE 1u         /* CREATE: no part of a slab could have served it, whatever the policy */
#define GMT_FLAG_READS 2u         /* USE: the command reads the object */
#define GMT_FLAG_WRITES 4u        /* USE: the command writes the object; neither flag: unknown */
#define GMT_FLAG_WOULD_RACE 8u    /* RELEASE: an ungated pool could have handed the block out while it was in use */
#define GMT_FLAG_ORDERED 16u      /* RELEASE: still in use, but any later use is ordered behind it */
#define GMT_FLAG_PART 32u         /* CREATE, RELEASE, COOLED: the block is a part of a slab, and ends with its buffer */
#define GMT_FLAG_CARRIED 64u      /* CREATE, RELEASE, SLAB of a recording that was cut: what was there before it begins; counts as nothing that happened */
#define GMT_FLAG_SCATTERED 128u   /* USE: others lie between the bytes, which size is the sum of, or granted is 0 because the place is unknown */

/*
 * One event: 64 bytes. time is CLOCK_MONOTONIC in ns at the moment the event takes effect: for a CREATE the return
 * of the driver, for everything else the entry of the call, so that sorting by time never shows a release before
 * its create.
 */
struct gmtevent {
	uint64_t time;
	uint32_t duration; /* ns in the whole call, saturating; 0 when not measured. USE: see gmtcommand */
	uint32_t cost;     /* ns of these inside the driver */
	uint16_t kind;     /* enum gmtkind */
	uint8_t op;
	uint8_t outcome;   /* enum gmtoutcome */
	uint8_t reason;    /* enum gmtmiss or gmtevict */
	uint8_t flags;     /* GMT_FLAG_* */
	uint16_t scope;    /* context number modulo 65536, 0 when unknown */
	int16_t status;    /* cl_int of the call, saturating */
	uint16_t access;   /* CREATE: the lowest 16 bits of its cl_mem_flags; with scope they make the class */
	uint32_t tag;
	uint64_t object;   /* number of the object in its process, from 1, never reused; 0 when unknown */
	uint64_t size;     /* bytes requested by the application; or payload length */
	uint64_t granted;  /* bytes of the block that serves it. USE: see gmtcommand */
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

/* Head of the region; the rings start at byte GMT_RINGS_OFFSET. */
#define GMT_RINGS_OFFSET 4096
struct gmtregion {
	uint64_t magic;
	uint32_t version;
	uint32_t rings;
	uint32_t ringevents;
	uint32_t pid;
	uint64_t started; /* CLOCK_MONOTONIC ns */
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
 * What the session sends back, any time: text is "limit NAME=VALUE", "trim BYTES", or "policy NAME", behind which a space
 * and limits of that policy may follow, "NAME=VALUE,...". Limits that do not fit follow in messages of their own.
 */
struct gmtcontrol {
	uint64_t sequence;
	uint8_t text[120]; /* NUL-terminated */
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
	uint32_t uses;       /* 1: write USE and SYNC events */
	uint32_t pooling;    /* 1: load the Go core */
	uint32_t ungated;    /* 1: hand blocks out while commands still use them; corrupts, for demonstration */
	uint32_t scrub;      /* enum gmtscrub */
	uint64_t devicememory; /* bytes of device memory that each process is made to have; 0: what the device has */
	uint64_t copymin;    /* bytes from which buffers with CL_MEM_COPY_HOST_PTR come from the pool */
	uint8_t policy[64];
	uint8_t limits[1024];   /* "name=value,..." */
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
	GMT_SIGHT_EXEC = 2,  /* result: tid of the thread that executes; from here on it has the number of the process */
	GMT_SIGHT_EXIT = 3,  /* the last thread of pid ends; result: its status as wait(2) has it, all ones when unknown */
};

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
	uint64_t argument[GMT_CALL_ARGUMENTS];
	/* Registers of the caller as they are after the return: of a call that is told at its entry, ip alone. */
	uint64_t ip, sp, bp, bx, r12, r13, r14, r15;
};

/* What to tell of a function. */
#define GMT_SHAPE_RETURN 1u /* told at the return; else at the entry */
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
	struct gmtcopy copy[GMT_CALL_COPIES];
};
#define GMT_FUNCTIONS 128 /* shapes at most */

#define GMT_STACK_MAX 32

#define GMT_SOCKET_NAME "socket"
#define GMT_CONFIG_NAME "config"
#define GMT_CORE_NAME "libgpumemtop-core.so"
#define GMT_SHIM_NAME "libgpumemtop.so"
#define GMT_SESSION_ENV "GPUMEMTOP_SESSION"
#define GMT_PROBE_ENV "GPUMEMTOP_PROBE" /* shim/probe.c */

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct gmtevent) == 64, "an event is one cache line");
_Static_assert(sizeof(struct gmtcall) == 160, "no holes that the verifier finds unwritten");
_Static_assert(sizeof(struct gmtshape) == 12, "shapes fit a map's value");
_Static_assert(sizeof(struct gmtframe) == 16, "frames fill payload slots evenly");
_Static_assert(sizeof(struct gmtregion) <= GMT_RINGS_OFFSET, "the region's head fits before the rings");
#endif

#endif
