/*
 * inflight.h: which enqueued commands still use which memory. A use is a queue and a position; it is over once the queue
 * is known to have reached that position.
 */
#ifndef GMT_INFLIGHT_H
#define GMT_INFLIGHT_H

#include "../registry/memory.h"

enum gmt_flight {
	GMT_FLIGHT_DONE,    /* no enqueued command uses it */
	GMT_FLIGHT_ORDERED, /* a command does, but all later users run after that */
	GMT_FLIGHT_BUSY,
};

#define GMT_COVERS 16
/* Commands that another one runs after. The first by the order of its own queue; the others because it waits for their events. */
struct gmt_covers {
	uint32_t count;
	struct gmt_cover cover[GMT_COVERS];
};

static inline struct gmt_use gmt_use_of(struct gmt_queue *queue, uint64_t position, bool several)
{
	return (struct gmt_use){queue, queue->object.id, position & UINT64_MAX >> 1, several};
}

bool gmt_use_is_over(const struct gmt_use *use);
/* Notes that a command at position of queue, which runs after covers, uses memory. */
void gmt_use_add(struct gmt_memory *memory, struct gmt_queue *queue, uint64_t position, const struct gmt_covers *covers);
/* Notes that a command may use any memory of the context. */
void gmt_use_add_hidden(struct gmt_context *context, struct gmt_queue *queue, uint64_t position);
/* Notes that a command may use any shared memory of the context. */
void gmt_use_add_indirect(struct gmt_context *context, struct gmt_queue *queue, uint64_t position);
/* The uses of memory, with the hidden uses of its context and, for shared memory, the indirect ones. */
struct gmt_uses gmt_uses_of(struct gmt_memory *memory);
/* Polls the queues of uses and returns their state. With a context, its order may make them ORDERED. */
enum gmt_flight gmt_uses_state(const struct gmt_uses *uses, struct gmt_context *context);
/*
 * Hands memory out after ORDERED uses, see handout.h. False: they are ORDERED no longer. docs/models/inflight.pml says why one
 * look under the lock is needed.
 */
bool gmt_uses_hand_out(const struct gmt_uses *uses, struct gmt_context *context);

#endif
