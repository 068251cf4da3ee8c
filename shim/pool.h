/* pool.h: from the program's calls to blocks: what is in flight, what is recycled, what the driver must do. */
#ifndef GMT_POOL_H
#define GMT_POOL_H

#include "objects.h"

/*
 * queue.c: which commands have completed. A queue counts the commands whose enqueue has returned; a position is such a
 * count. Nothing here waits or flushes, except gmt_queue_order_behind.
 */
bool gmt_queue_reached(const struct gmt_queue *queue, uint64_t position);
/* Everything up to position has completed. */
void gmt_queue_done(struct gmt_queue *queue, uint64_t position);
/* The program has learned that an event's command has completed, without an error. */
void gmt_queue_learn(const struct gmt_completion *of);
/* Looks at the markers that are there. */
void gmt_queue_poll(struct gmt_queue *queue);
/* Puts a marker behind what is queued, unless one is there or everything is done. */
void gmt_queue_mark(struct gmt_queue *queue);
/* The program's last release of a queue is about to reach the driver, or has. closing takes it out of its table. */
bool gmt_queue_closing(struct gmt_queue *queue);
void gmt_queue_closed(struct gmt_queue *queue, bool parked);
/* Blocks are handed out ordered behind the queue's commands up to position. */
void gmt_queue_hand(struct gmt_queue *queue, uint64_t position);
/* A user event appears: what runs behind it may wait for the program, so order is secured up to here first. */
void gmt_queue_gate(struct gmt_context *context);
/* The same for waits that are not OpenCL's: from here on, in all contexts. */
void gmt_queue_gate_outside(void);
extern _Atomic uint32_t gmt_gates_outside;
static inline bool gmt_gated(const struct gmt_context *context)
{
	return atomic_load(&context->gates) || atomic_load_explicit(&gmt_gates_outside, memory_order_relaxed);
}
/* A command has failed: drivers then give up others early, and nothing is known of order any more. context: or NULL. */
void gmt_context_failed(struct gmt_context *context);
/* A queue appears in a context: it runs behind what blocks were handed out behind. */
void gmt_queue_order_behind(struct gmt_queue *fresh);
/* All queues of a context that have commands pending, the closed ones included; at most room. */
uint32_t gmt_queue_pending(const struct gmt_context *context, struct gmt_use *out, uint32_t room);
void gmt_queue_drop(struct gmt_context *context);

/* inflight.c */
enum gmt_flight {
	GMT_FLIGHT_DONE,    /* no queued command uses it */
	GMT_FLIGHT_ORDERED, /* one does, but whatever uses it later runs after that */
	GMT_FLIGHT_BUSY,
};
#define GMT_COVERS 16
/* The first is what the command's own queue orders it behind, the others are of events that it waits for. */
struct gmt_covers {
	uint32_t count;
	struct gmt_cover cover[GMT_COVERS];
};
/* A command at position of queue, which runs after what covers says, uses memory. */
void gmt_use_add(struct gmt_memory *memory, struct gmt_queue *queue, uint64_t position, const struct gmt_covers *covers);
/* A command may use any memory of the context. */
void gmt_use_hidden(struct gmt_context *context, struct gmt_queue *queue, uint64_t position);
/* With a context, order within it counts. */
enum gmt_flight gmt_uses_state(const struct gmt_uses *uses, struct gmt_context *context);
/* The uses of memory, those that its context hides included. */
struct gmt_uses gmt_uses_of(struct gmt_memory *memory);

/* Blocks that were freed while in use wait here until their commands have completed. */
struct gmt_cooled {
	uint64_t block, size;
	uint32_t tag;
};
void gmt_cooling_add(const struct gmt_cooled *what, const struct gmt_uses *uses, struct gmt_context *context);
/*
 * Looks at no more than most of them, never waits, and takes up to room that have cooled. With markers, some are put
 * behind what nothing else tells about.
 */
unsigned gmt_cooling_take(struct gmt_cooled *out, unsigned room, unsigned most, bool markers);
/* Gives up everything held for a context whose last reference goes. */
void gmt_inflight_drop(struct gmt_context *context);

/* pool.c: creates */
struct gmt_request_for {
	struct gmt_context *context;
	cl_mem_flags flags;
	size_t size;
	void *host; /* to copy from, or NULL */
	uint32_t tag;
};
struct gmt_served {
	cl_mem handle;
	uint64_t block, granted;
	enum gmtoutcome outcome;
	uint8_t reason;
	bool written; /* its contents are what the program asked for */
};
bool gmt_pool_eligible(const struct gmt_request_for *r);
struct gmt_served gmt_pool_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error);

/*
 * recycle.c: releases and evictions. The program let go of memory for good: decides what becomes of it, and writes the
 * RELEASE event.
 */
cl_int gmt_pool_release(struct gmt_call *call, struct gmt_memory *memory);
/* After an enqueue or create failed for want of memory: hands blocks back; false when there was nothing left. */
bool gmt_pool_drain(cl_int error, uint64_t need);
void gmt_pool_drop_context(struct gmt_context *context);
void gmt_pool_evicted(struct gmt_evictions *evictions);
/* Makes blocks free whose commands have completed; looks at no more than most of those that cool. */
void gmt_pool_settle(unsigned most, bool markers);
/* Takes memory out of the books, before its release can reach the driver. */
void gmt_pool_bury(struct gmt_memory *memory);
/* Takes an idle block for oneself; false when somebody else did. */
bool gmt_pool_claim(struct gmt_memory *memory);
/* The reverse, before the block is given to the core. */
void gmt_pool_idle(struct gmt_memory *memory);
/* The core has failed: buffers come from the driver from here on. */
void gmt_pool_failed(void);
/* After a block became idle: gives it up when pooling has ended meanwhile. */
void gmt_pool_check(void);
/* Pooling has ended: what the pool has goes back to the driver. */
void gmt_pool_abandon(void);

/* hook_sync.c: queue is NULL when there are several, or none that we know. */
void gmt_write_sync(const struct gmt_call *call, enum gmtsync op, const struct gmt_queue *queue);

/* upload.c: true when size bytes of a block were set, from host or as the session wants recycled blocks. */
bool gmt_upload(struct gmt_context *context, cl_mem handle, size_t size, const void *host);
bool gmt_scrub(struct gmt_context *context, cl_mem handle, size_t size);
void gmt_upload_end(struct gmt_context *context);

/* budget.c: the device memory that the session lets this process have. */
bool gmt_budget_take(uint64_t bytes);
void gmt_budget_give(uint64_t bytes);
/* Bytes to hand back before so many more fit; 0 when they do, or when there is no budget. */
uint64_t gmt_budget_lacks(uint64_t bytes);
cl_ulong gmt_budget_cap(cl_ulong bytes);

/* finding.c: mistakes of the program. function is the name of what it called. */
void gmt_finding(enum gmtdiag code, const char *function, const struct gmt_memory *memory, cl_int status);
void gmt_finding_kernel(enum gmtdiag code, const char *function, const struct gmt_memory *memory, uint64_t kernel);
/* Memory has gone to the driver: its handle is remembered for a while. */
void gmt_finding_buried(const struct gmt_memory *memory);
/* A call names a handle that we have no entry for: true, and a finding, when it is remembered. */
bool gmt_finding_ghost(enum gmtdiag code, const char *function, const void *handle);
/* It is not remembered either, and the call failed. */
void gmt_finding_unknown(const char *function, cl_int status);

#endif
