/*
 * core.h: the interface between the shim and the Go core, inside one process. The shim loads the core with dlopen and
 * finds these functions by name; the core exports nothing else.
 *
 * Every function returns the number of its decision, which tells replays in which order the policy decided (enum gmtorder
 * in event.h); 0 if it made none; -1 once the core has failed: the shim then stops pooling, and the program goes on with
 * the driver alone. Any thread may call them, one at a time (gate.h).
 */
#ifndef GMT_CORE_H
#define GMT_CORE_H

#include <stdint.h>

#include "../../internal/wire/event.h"

/* Go's processors (GOMAXPROCS) of the core: more than one, since a thread of the program that has returned keeps one for a while. */
#define GMT_CORE_PROCESSORS 8

struct gmt_request {
	uint64_t size;
	uint64_t max;   /* largest block that the driver creates in this class */
	uint64_t round; /* bytes: rounding up makes no block larger than this */
	uint64_t heap;  /* bytes of memory of the class's device; 0: unknown */
	int64_t time;
	uint32_t class;
	uint32_t tag;
	uint32_t align;  /* of sub-buffers, in bytes; 0: no sub-allocation can serve this request */
	uint32_t pinned; /* 1: host memory that the device accesses directly */
	uint32_t exact;  /* 1: a new block must have exactly this size */
	uint32_t again;  /* 1: an earlier plan for this request was given up */
};

/*
 * How to serve a request: with a whole block, or with a sub-allocation of a slab, which is a larger block that
 * gmt_core_grown has reported. A sub-allocation is a sub-buffer in the driver. When the program releases its buffer, the
 * shim releases the sub-buffer and then returns the range with gmt_core_free.
 */
struct gmt_plan {
	uint64_t block;
	uint64_t size;     /* bytes of the block */
	uint64_t handle;   /* driver object of a hit; of a sub-allocation: that of its slab, unless the slab is to be created */
	uint64_t slab;     /* not 0: block is a sub-allocation of this slab */
	uint64_t offset;   /* in the slab */
	uint64_t slabsize; /* not 0: create the slab first, with this many bytes */
	int64_t number;    /* of the decision, as the core returned it; the shim fills it in */
	int64_t committed; /* number of the decision that put a sub-allocation in use already; 0: none has */
	int64_t waived;    /* number of an earlier plan, given up by the decision before this one; 0: none */
	uint32_t tag;
	uint8_t hit;    /* 1: served without new memory of the driver */
	uint8_t reason; /* enum gmtmiss */
	uint8_t fresh;  /* 1: no buffer has used any of this range before */
	uint8_t route;  /* enum gmtroute */
	uint8_t waits;  /* 1: for a slab that another thread creates; gmt_core_resume continues this plan */
};

/* Free memory in slabs. */
struct gmt_gauge {
	uint64_t bytes, largest, ranges;
	double squares; /* sum of the squared sizes of the ranges */
	uint64_t excess; /* bytes taken from the driver beyond those that the program asked for and still holds */
};

/* A block that left the pool. The shim releases its handle. */
struct gmt_eviction {
	uint64_t block;
	uint64_t size;
	uint64_t handle;
	uint32_t tag;
	uint8_t reason; /* enum gmtevict */
};

#define GMT_EVICTIONS_MAX 32

/* A bit of a block's number: the block belongs to the alternative of an experiment. */
#define GMT_BLOCK_ARM 0x80000000u
#define GMT_ARM_OF(block) ((block) / GMT_BLOCK_ARM % 2)

struct gmt_evictions {
	uint32_t count;
	uint32_t more; /* 1: gmt_core_more returns the rest */
	struct gmt_eviction list[GMT_EVICTIONS_MAX];
};

/* The answer to a message of the session. */
struct gmt_obeyed {
	uint64_t sequence;
	uint64_t time;  /* when the policy obeyed */
	int64_t number; /* of the decision, 0 if the message was refused */
	const char *text;
	uint64_t length;
	int32_t status; /* 0, -1: refused */
};

/*
 * Blocks that the program has released and no command uses. They are noted here instead of a call of gmt_core_free for each, as
 * long as there is room and until the time due. The core takes them back before it does anything else. The decision about the
 * block noted last has the number latest + count.
 */
#define GMT_LEDGER_SIZE 32
struct gmt_ledger {
	uint64_t latest;  /* number of the core's latest decision */
	uint64_t room[2]; /* bytes that may still be noted, by arm of an experiment: as many come back without an eviction */
	int64_t due;      /* ns: from then on blocks are not noted, because others may have become idle and the core must look */
	uint64_t count;
	struct gmt_freed {
		uint64_t block;
		int64_t time;
	} freed[GMT_LEDGER_SIZE];
};

/* Functions of the shim that the core calls, on a thread of its own. */
struct gmt_callbacks {
	uint32_t (*idle_begin)(void); /* before work that no message asked for; 0: not now, try later */
	void (*idle_end)(void);
	void (*enter)(void); /* before its own work in the core: waits until no other thread is in the core */
	void (*leave)(void);
	void (*evicted)(struct gmt_evictions *evictions);
	void (*expired)(uint64_t time, int64_t number); /* number: of the decision; its evictions follow */
	void (*limit)(const struct gmt_obeyed *obeyed);
};

/* Starts the policy of config and obeys the messages in the region's mailbox. Called once. */
typedef int64_t gmt_core_start_fn(const struct gmtconfig *config, const struct gmt_callbacks *callbacks,
				  struct gmtregion *region, struct gmt_ledger *ledger);

/*
 * Plans a request. A hit of a whole block is in use on return, and so is a sub-allocation with plan->committed, which the caller
 * creates in plan->handle; if that fails, gmt_core_free takes it back. Otherwise the caller creates a block of plan->size bytes
 * or a sub-allocation, and then calls gmt_core_commit or gmt_core_abort.
 */
typedef int64_t gmt_core_plan_fn(const struct gmt_request *request, struct gmt_plan *plan, struct gmt_evictions *evictions);
/* Continues a plan that waits, when a slab was created or could not be. late: it must not wait any longer. */
typedef int64_t gmt_core_resume_fn(const struct gmt_request *request, struct gmt_plan *plan, uint32_t late,
				   struct gmt_evictions *evictions);
/* Notes that the plan's slab exists now. If the slab or its sub-allocation cannot be created, call gmt_core_abort instead. */
typedef int64_t gmt_core_grown_fn(const struct gmt_plan *plan, uint64_t handle);
typedef int64_t gmt_core_commit_fn(const struct gmt_plan *plan, uint64_t handle);
typedef int64_t gmt_core_abort_fn(const struct gmt_plan *plan);

/* Returns a block to the pool. If the policy does not keep the block, it is among the evictions. */
typedef int64_t gmt_core_free_fn(uint64_t block, uint32_t busy, int64_t time, struct gmt_evictions *evictions);
typedef int64_t gmt_core_cooled_fn(uint64_t block, int64_t time, struct gmt_evictions *evictions);
typedef int64_t gmt_core_forget_fn(uint64_t block);

typedef int64_t gmt_core_drain_fn(uint64_t need, struct gmt_evictions *evictions);
typedef int64_t gmt_core_drop_class_fn(uint32_t class, struct gmt_evictions *evictions);
typedef int64_t gmt_core_more_fn(struct gmt_evictions *evictions);
typedef int64_t gmt_core_gauge_fn(struct gmt_gauge *gauge);

/* Returns the address of a word. If it is 0, Go's runtime asks the kernel for the time instead of reading the processor's counter. */
typedef int64_t gmt_core_clock_fn(void);

/* All of them, for entry/start.c. */
#define GMT_CORE_FUNCTIONS(X)                                                                                          \
	X(start) X(plan) X(resume) X(grown) X(commit) X(abort) X(free) X(cooled) X(forget) X(drain) X(drop_class) X(more) X(gauge) X(clock)

#endif
