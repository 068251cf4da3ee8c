/* command.h: what every hook of an enqueue does around the real call. */
#ifndef GMT_COMMAND_H
#define GMT_COMMAND_H

#include "memory.h"

struct gmt_command {
	struct gmt_queue *queue; /* NULL: unknown, or nobody needs to know */
	uint64_t before;         /* commands that the queue had been given before this one */
	uint64_t position;       /* this command's count; 0: failed, or complete already */
	uint64_t time;
	uint64_t kernel;
	uint8_t op;              /* enum gmtcommand */
};

/* Begins an enqueue; false: only forward. Every true is followed by gmt_command_end and gmt_leave. */
static inline bool gmt_command_begin(struct gmt_command *c, cl_command_queue queue, enum gmtcommand op)
{
	if (!gmt_enter_untimed())
		return false;
	*c = (struct gmt_command){.op = (uint8_t)op};
	if (gmt_pooling() || gmt_session.config.uses) {
		c->queue = gmt_queue_find(queue);
		if (c->queue)
			c->before = atomic_load_explicit(&c->queue->enqueued, memory_order_acquire);
		if (gmt_session.config.uses)
			c->time = gmt_now();
	}
	return true;
}

/*
 * The real call has returned. A blocking command is complete, and on an in-order queue so is all before it. A blocking
 * write is none in this sense: before OpenCL 2.0 it may return as soon as the host's data is copied.
 */
void gmt_command_end(struct gmt_command *c, cl_int err, bool blocking);

/* Notes that the command uses memory, after gmt_command_end. flags: GMT_FLAG_READS, GMT_FLAG_WRITES. */
void gmt_command_use(const struct gmt_command *c, cl_mem handle, uint8_t flags, uint64_t bytes);

/* Drivers allocate lazily, so an enqueue can fail for want of memory that the pool holds. */
#define GMT_TRY(err, expression)                                                                                       \
	do                                                                                                             \
		(err) = (expression);                                                                                  \
	while (gmt_unlikely((err) != CL_SUCCESS) && gmt_pool_drain((err), 0))

#endif
