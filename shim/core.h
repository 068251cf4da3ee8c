/*
 * core.h: what the shim and the Go core say to each other, inside one process. The core is loaded with dlopen and
 * found by these names; nothing else is exported from it.
 *
 * Every function returns the number of its decision, by which replays know in which order the policy decided (enum gmtorder
 * in event.h); 0 when it has none; -1 once the core has failed: the shim then stops pooling and the program goes on with the
 * driver alone. All may be called from any thread.
 */
#ifndef GMT_CORE_H
#define GMT_CORE_H

#include <stdint.h>

#include "../internal/wire/event.h"

struct gmt_request {
	uint64_t size;
	uint64_t max;   /* largest block that the driver creates in this class */
	uint64_t round; /* where rounding up stops */
	uint64_t heap; /* bytes of memory that the class's device has; 0: unknown */
	int64_t time;
	uint32_t class;
	uint32_t tag;
	uint32_t align;  /* of sub-buffers, in bytes; 0: no part of a larger block can serve this request */
	uint32_t pinned; /* 1: host memory that the device reaches by itself */
	uint32_t exact;  /* 1: what is created must have just the size */
};

/*
 * A block of its own, or a part of a slab: a larger block that gmt_core_grown has made known. A part is a sub-buffer;
 * its buffer's release releases that, and only then the part is given back with gmt_core_free.
 */
struct gmt_plan {
	uint64_t block;
	uint64_t size;     /* bytes of the block */
	uint64_t handle;   /* a hit's driver object; for a part, that of its slab, unless it is to be created */
	uint64_t slab;     /* not 0: block is a part of this one */
	uint64_t offset;   /* in the slab */
	uint64_t slabsize; /* not 0: the slab is to be created first, with so many bytes */
	int64_t number;    /* of the decision, as it was returned: the shim's own note */
	int64_t waived;    /* number of a plan before this one that was given up, by the decision before this one; 0: none */
	uint32_t tag;
	uint8_t hit;    /* no new memory of the driver is needed */
	uint8_t reason; /* enum gmtmiss */
	uint8_t fresh;  /* nobody had any of this part before */
};

/* Free memory in slabs. */
struct gmt_gauge {
	uint64_t bytes, largest, ranges;
	double squares; /* of the sizes of the ranges, summed */
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

struct gmt_evictions {
	uint32_t count;
	uint32_t more; /* 1: gmt_core_more has the rest */
	struct gmt_eviction list[GMT_EVICTIONS_MAX];
};

/* What became of a message of the session. */
struct gmt_obeyed {
	uint64_t sequence;
	uint64_t time;  /* that the policy was given */
	int64_t number; /* of the decision, 0 when the message was refused */
	const char *text;
	uint64_t length;
	int32_t status; /* 0, -1: refused */
};

/* What the core calls in the shim, from a thread of its own. */
struct gmt_callbacks {
	void (*evicted)(struct gmt_evictions *evictions);
	void (*expired)(uint64_t time, int64_t number); /* that of the decision; what it evicts comes after */
	void (*limit)(const struct gmt_obeyed *obeyed);
	void (*diag)(uint32_t code, const char *text, uint64_t length);
};

/* Starts the policy that config names and listens on the session's socket. Called once. */
typedef int64_t gmt_core_start_fn(const struct gmtconfig *config, const struct gmt_callbacks *callbacks, int32_t socket);

/*
 * A hit of a whole block is in use on return. Everything else is to be created, then gmt_core_commit or gmt_core_abort:
 * a miss with plan->size bytes, a part of plan->handle. May wait for another thread that creates the slab.
 */
typedef int64_t gmt_core_plan_fn(const struct gmt_request *request, struct gmt_plan *plan, struct gmt_evictions *evictions);
/* The slab of plan was created; gmt_core_abort says that it was not, or that its part was not. */
typedef int64_t gmt_core_grown_fn(const struct gmt_plan *plan, uint64_t handle);
typedef int64_t gmt_core_commit_fn(const struct gmt_plan *plan, uint64_t handle);
typedef int64_t gmt_core_abort_fn(const struct gmt_plan *plan);

/* Returns a block to the pool; it is among the evictions when the policy does not keep it. */
typedef int64_t gmt_core_free_fn(uint64_t block, uint32_t busy, int64_t time, struct gmt_evictions *evictions);
typedef int64_t gmt_core_cooled_fn(uint64_t block, int64_t time, struct gmt_evictions *evictions);
typedef int64_t gmt_core_forget_fn(uint64_t block);

typedef int64_t gmt_core_drain_fn(uint64_t need, struct gmt_evictions *evictions);
typedef int64_t gmt_core_drop_class_fn(uint32_t class, struct gmt_evictions *evictions);
typedef int64_t gmt_core_more_fn(struct gmt_evictions *evictions);
typedef int64_t gmt_core_gauge_fn(struct gmt_gauge *gauge);

/* The list of all of them, for the shim's loader. */
#define GMT_CORE_FUNCTIONS(X)                                                                                          \
	X(start) X(plan) X(grown) X(commit) X(abort) X(free) X(cooled) X(forget) X(drain) X(drop_class) X(more) X(gauge)

#endif
