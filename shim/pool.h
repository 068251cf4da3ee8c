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
	bool part;
	cl_mem handle; /* of a block that is no part */
	cl_mem late; /* the part itself, when it is to be released then, because of its destructors */
	bool alone;  /* nothing but that: its range is free already, or stays taken */
};
void gmt_cooling_add(const struct gmt_cooled *what, const struct gmt_uses *uses, struct gmt_context *context);
/*
 * Looks at no more than most of them, never waits, and takes up to room that have cooled. With markers, some are put
 * behind what nothing else tells about.
 */
unsigned gmt_cooling_take(struct gmt_cooled *out, unsigned room, unsigned most, bool markers);
/* Gives up everything held for a context whose last reference goes. */
void gmt_inflight_drop(struct gmt_context *context);
/* Takes one out of a context's that is to be released late; false when there is none. */
bool gmt_cooling_late(const struct gmt_context *context, struct gmt_cooled *out);

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
	uint64_t block, granted, offset;
	struct gmt_memory *slab; /* not NULL: a part of this, which is pinned for it */
	enum gmtoutcome outcome;
	uint8_t reason;
	bool written; /* its contents are what the program asked for */
	bool alone;   /* no part of a slab could have served it */
};
/* A plan comes to nothing. grown: the latest decision of this thread was that the plan's slab is there. */
void gmt_plan_abort(const struct gmt_call *call, const struct gmt_plan *plan, bool grown);
bool gmt_pool_eligible(const struct gmt_request_for *r);
struct gmt_served gmt_pool_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error);
/* A real create: once, and again for as long as the pool has something to give back. */
cl_mem gmt_pool_driver_try(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error);
cl_mem gmt_pool_driver_create(struct gmt_call *call, const struct gmt_request_for *r, cl_int *error);

/*
 * part.c: buffers that are sub-buffers of slabs, and slabs. A slab's entry is idle while the pool has it, and pinned by
 * the pool and by each part: whoever takes the last pin releases it.
 */
/* How parts that serve r are to be aligned, in bytes; 0 when none may. */
uint32_t gmt_part_align(const struct gmt_request_for *r);
bool gmt_part_create(struct gmt_call *call, const struct gmt_request_for *r, const struct gmt_plan *plan, struct gmt_served *served);
/* The program's own sub-buffer of a part. */
cl_mem gmt_part_child(const struct gmt_memory *part, cl_mem_flags flags, cl_buffer_create_type type, const void *info, cl_int *error);
/* A sub-buffer of memory's, one of the program's or a part, is there or gone. */
void gmt_part_count(struct gmt_memory *memory, int32_t by);
/* A part of the slab is out of the books. */
void gmt_part_lost(struct gmt_memory *slab);
cl_int gmt_part_release(struct gmtevent *event, struct gmt_memory *memory);
/* One that has waited for its commands goes to the driver, unless it has gone. */
void gmt_part_late(const struct gmt_cooled *what);
/* late.c: makes that happen when the commands of uses have completed, as far as markers can tell. */
void gmt_part_wait(const struct gmt_cooled *what, const struct gmt_uses *uses);
/* Pooling has ended: a slab, or such a part, that the caller has claimed. */
void gmt_part_abandon(struct gmt_memory *memory);
void gmt_slab_unpin(struct gmt_memory *slab);
/* The pool gives up a slab that the caller has claimed. */
void gmt_slab_evict(struct gmt_memory *slab, enum gmtevict reason);
/* What a query of a part, or of the program's sub-buffer of one, is to answer instead of what the driver has said. */
void gmt_part_correct(const struct gmt_memory *memory, cl_mem_info what, void *value);
/* For commands that drivers carry out wrongly on sub-buffers: the slab instead, and the offset in there. */
cl_mem gmt_part_whole(const struct gmt_memory *memory, cl_mem handle, size_t *offset);

/*
 * images.c: whether parts may serve a context as far as images are concerned. A driver may refuse images of sub-buffers;
 * then a program that makes any gets none.
 */
bool gmt_images_of_parts(struct gmt_context *context);
/* The program has found, or called, a function that makes images. */
extern _Atomic int gmt_images_wanted;

/* gauge.c: tells how free memory lies in slabs; now, or when it has not been told for a while. */
void gmt_gauge(uint64_t time, bool now);
/* The process ends. */
void gmt_gauge_end(void);

/*
 * recycle.c: releases and evictions. The program let go of memory for good: decides what becomes of it, and writes the
 * RELEASE event.
 */
cl_int gmt_pool_release(struct gmt_call *call, struct gmt_memory *memory);
void gmt_pool_released(struct gmtevent *event, enum gmtoutcome outcome, cl_int status, uint64_t now);
cl_int gmt_pool_to_driver(struct gmtevent *event, struct gmt_memory *memory);
/* Queued commands still use what is about to be released: says whether whatever comes next is ordered behind them. */
enum gmt_flight gmt_pool_in_flight(const struct gmt_uses *uses, struct gmt_context *context);
/* Releases a block that has left the pool, and says so. */
cl_int gmt_pool_release_block(const struct gmt_eviction *e, uint64_t counted);
void gmt_pool_drop_context(struct gmt_context *context);
void gmt_pool_evicted(struct gmt_evictions *evictions);
/* Makes blocks free whose commands have completed; looks at no more than most of those that cool. */
void gmt_pool_settle(unsigned most, bool markers);
/* Takes memory out of the books, before its release can reach the driver. Bytes to give to the budget after that. */
uint64_t gmt_pool_bury(struct gmt_memory *memory);
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

/*
 * drain.c: running out of memory. The call of the program that may, from before its first attempt on.
 */
struct gmt_shortage {
	uint64_t seen;  /* releases that had reached the driver before the latest attempt */
	uint64_t given; /* bytes that this call has had given back */
	uint32_t others; /* times that it tried again because of what other threads did */
};
extern _Atomic uint64_t gmt_given_back;
static inline struct gmt_shortage gmt_shortage(void)
{
	return (struct gmt_shortage){.seen = atomic_load_explicit(&gmt_given_back, memory_order_relaxed)};
}
/* The attempt failed; need: bytes that it asked for, 0 when unknown. True: there may be room now. */
bool gmt_pool_drain(struct gmt_shortage *shortage, cl_int error, uint64_t need);
/* Around every call of the core that may take blocks out of the pool, until they have been released. */
void gmt_evicting(void);
void gmt_evicted(void);
/* A thread has taken blocks out of the pool; they are with the driver now. */
void gmt_leaving(void);
void gmt_left(void);

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
