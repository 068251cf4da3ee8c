/*
 * memory.h: memory objects by handle (shared memory by its first address), and the states that one goes through. Any thread may
 * call these functions.
 *
 *              gmt_memory_add
 *    (none) -------------------> HELD <----------------------+
 *      ^                        |    ^                       |
 *      |        last reference, |    | retain through        | hit: claim, renew
 *      |        pins are left   v    | a sub-buffer          |
 *      |                       PINNED                        |
 *      |                          |                          |
 *      |   last reference or pin: the pool keeps the block   |
 *      |   (from HELD or PINNED)  +---------------------> POOLED
 *      |                          |                          |
 *      +--- unregister <----------+ it does not              | evicted: claim, unregister
 *      +-----------------------------------------------------+
 *
 *    state    references  pooled  released_once   pins
 *    HELD     > 0         0       0; 1 if revived >= 1: one for all references, one for each sub-buffer or image of it and,
 *                                                 on a sub-allocation, one for each mapping
 *    PINNED   0           0       1               >= 1
 *    POOLED   0           1       any             without meaning; gmt_memory_renew sets it
 *
 *  - The thread that takes the last pin ends the memory. The one that clears pooled (gmt_memory_claim) owns the block: it is handed
 *    out or released exactly once.
 *  - A sub-allocation (slab != NULL) becomes POOLED while its sub-buffer is parked (pool/park.h), or if its release is deferred
 *    (has_destructor, and commands still use it): then claim is always followed by unregister. Its range is the core's.
 *  - A slab (is_slab) is created POOLED with no references and two pins, the pool's and that of its first
 *    sub-allocation. Eviction claims it and takes the pool's pin; it goes with the last pin.
 *  - unused and unwritten are set by gmt_memory_renew and gmt_created_register, and cleared by the first command, on HELD or
 *    PINNED. no_reuse and has_destructor are set on HELD or PINNED and never cleared: what has one is not pooled again.
 *
 * pooled, released_once and the four marks stay apart, each an atomic of its own, because different threads set them
 * without a common lock: a command that marks memory as used must not race with the exchange that claims it.
 */
#ifndef GMT_MEMORY_H
#define GMT_MEMORY_H

#include "../../internal/wire/event.h"
#include "objects.h"

#define GMT_MAPPINGS 4
/*
 * Programs may hold very many objects, so most entries end early: before use, unless gmt_follows_events; before offset, except those
 * of sub-allocations, the program's sub-buffers of these, slabs and shared memory.
 */
struct gmt_memory {
	struct gmt_object object;
	struct gmt_memory *parent; /* of the program's sub-buffer, or of an image of a buffer: that buffer */
	struct gmt_context *context;
	uint64_t size;               /* requested, bytes */
	uint64_t granted;            /* of the driver's object, bytes */
	_Atomic uint64_t block;      /* 0: not pooled. Atomic, because readers may look at an entry that is being reused */
	struct gmt_memory *slab;     /* of a sub-allocation: its slab, else NULL */
	_Atomic uint32_t references; /* of the program */
	_Atomic uint32_t pins;
	_Atomic int32_t maps;
	_Atomic uint32_t lock; /* guards uses, many, listed, use, list, and what follows reason */
	uint32_t flags;        /* as requested, the lowest 32: the pool serves no others */
	uint8_t kind;          /* enum gmtmemory */
	uint8_t element;       /* bytes of one element of an image, 0 if unknown */
	bool counted : 1;      /* counts in the budget */
	bool hosted : 1;       /* in the host's memory, as the device's lacked what the pool wastes; sub-buffers and images of it, too */
	bool is_slab : 1;      /* a slab, which the program never gets */
	_Atomic uint8_t pooled;
	_Atomic uint8_t released_once;
	_Atomic uint8_t no_reuse;       /* the driver holds something that belongs to this owner; 2: its release waits for commands */
	_Atomic uint8_t unwritten;      /* recycled, and no command has written it since */
	_Atomic uint8_t exposed;        /* enum gmtexposed: set with the command that clears unwritten */
	_Atomic uint8_t unused;         /* recycled, and no command has used it since */
	_Atomic uint8_t has_destructor; /* a sub-allocation with callbacks, which must not come while commands use it */
	uint8_t uses : 7;               /* see gmt_memory_uses */
	bool many : 1;                  /* used on more queues than fit: wait for all queues of its context */
	bool listed;                    /* list instead of use, from here on also for the entry's next owners */
	union {
		struct gmt_use use;   /* most memory is used on one queue */
		struct gmt_use *list; /* GMT_USES, the oldest first */
	};
	uint64_t offset; /* in the slab, bytes; of the program's sub-buffer of a sub-allocation: in that */
	union {
		cl_context owner;        /* of shared memory: its context, which the driver wants when it is freed */
		struct gmt_store *store; /* of a slab: the memory that it lies in, if that is ours */
		_Atomic(cl_mem) alias;   /* of a sub-allocation in such a slab: the buffer that images of it are made of, once there is one */
	};
	_Atomic uint32_t children; /* of a sub-allocation or slab: sub-buffers of its memory that are alive */
	uint8_t reason;            /* enum gmtevict, of an evicted slab */
	uint8_t mappings;          /* pointers that a sub-allocation and its sub-buffers are mapped to */
	uint32_t unlisted;         /* more mappings than fit */
	const void **mapping;      /* GMT_MAPPINGS, which the entry keeps for its next owners; NULL: never needed */
};

/* Bytes of memory that is hosted. */
extern _Atomic uint64_t gmt_memory_hosted;

/* Also finds POOLED entries. */
struct gmt_memory *gmt_memory_find(const void *handle);
/* The shared memory that has the byte at address; NULL if there is none. Also finds POOLED entries. */
struct gmt_memory *gmt_memory_at(const void *address);
/* A new entry of shared memory, whose granted bytes are known, can be found so. False: memory is short. */
bool gmt_memory_add_range(struct gmt_memory *memory);
/* Called before the first gmt_memory_add. */
void gmt_memory_begin(void);
/* A HELD entry with one reference and one pin; NULL if memory is short. Only a whole one has offset and what follows that. */
struct gmt_memory *gmt_memory_add(const void *handle, bool whole);
/* The entry of that handle and block, with one more pin; NULL if it is gone, or going. */
struct gmt_memory *gmt_memory_pin(const void *handle, uint64_t block);
/* Whether there is a POOLED entry of that handle and block. */
bool gmt_memory_is_pooled(const void *handle, uint64_t block);
/* HELD or PINNED -> POOLED, before the core gets the block. */
void gmt_memory_set_pooled(struct gmt_memory *memory);
/* Leaves POOLED and makes the caller the owner; false if another thread was first. */
bool gmt_memory_claim(struct gmt_memory *memory);
/* Claimed -> HELD, by a new owner and with a new id. */
void gmt_memory_renew(struct gmt_memory *memory);
/*
 * Removes the entry, before its release can reach the driver, and remembers the handle as freed. Returns the bytes to give
 * back to the budget after that.
 */
uint64_t gmt_memory_unregister(struct gmt_memory *memory);
/* Counts sub-buffers of a sub-allocation or slab: by is 1 or -1. */
void gmt_memory_count_child(struct gmt_memory *memory, int32_t by);
/* Calls visit for every entry, POOLED ones included; visit must not add or remove one. */
void gmt_memory_each(void (*visit)(struct gmt_memory *, void *), void *arg);
/* Any POOLED entry from *bucket on, which moves; NULL if there is none. */
struct gmt_memory *gmt_memory_next_pooled(uint32_t *bucket);

/* Shared virtual memory, or unified shared memory: an address instead of a handle. */
static inline bool gmt_memory_is_shared(const struct gmt_memory *memory)
{
	return memory->kind >= GMT_MEMORY_SVM && memory->kind <= GMT_MEMORY_USM_SHARED;
}

/* The latest commands that used memory, as many as its uses, the oldest first. Under the lock. */
static inline struct gmt_use *gmt_memory_uses(struct gmt_memory *memory)
{
	return gmt_unlikely(memory->listed) ? memory->list : &memory->use;
}

/* What a sub-buffer or image of a buffer lies in, in the end; other memory is its own. */
static inline struct gmt_memory *gmt_memory_root(struct gmt_memory *memory)
{
	while (memory->parent)
		memory = memory->parent;
	return memory;
}

/* The sub-allocation that an image of its alias shows; NULL for all other memory. */
static inline struct gmt_memory *gmt_memory_shown(const struct gmt_memory *image)
{
	struct gmt_memory *base = image && image->kind == GMT_MEMORY_IMAGE ? image->parent : NULL;
	return gmt_unlikely(base && base->slab && base->slab->store) ? base : NULL;
}

static inline cl_mem gmt_memory_handle(const struct gmt_memory *memory)
{
	return (cl_mem)atomic_load_explicit(&memory->object.handle, memory_order_relaxed);
}

/* Bytes from its first to address. */
static inline uint64_t gmt_memory_offset(const struct gmt_memory *memory, const void *address)
{
	return (uintptr_t)address - (uintptr_t)gmt_memory_handle(memory);
}

/*
 * True if a range lies beyond what the program asked for, and inside the larger block or the slab that serves it. The
 * driver would accept the range, because it knows only the block, or checks only where a sub-buffer's buffer ends (PoCL 3.1).
 */
static inline bool gmt_memory_beyond(const struct gmt_memory *memory, size_t offset, size_t bytes)
{
	if (!memory || (memory->granted <= memory->size && !memory->slab) || memory->parent)
		return false;
	bool fits = offset <= memory->size && bytes <= memory->size - offset;
	if (memory->slab)
		return gmt_unlikely(!fits);
	return gmt_unlikely(!fits) && offset <= memory->granted && bytes <= memory->granted - offset;
}

#endif
