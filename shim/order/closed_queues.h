/* closed_queues.h: the end of a queue, and queues whose commands outlive it. */
#ifndef GMT_CLOSED_QUEUES_H
#define GMT_CLOSED_QUEUES_H

#include "../registry/objects.h"

/* Before the program's last release of a queue reaches the driver: takes it out of its table. Pass the result on. */
bool gmt_queue_closing(struct gmt_queue *queue);
/* After it. */
void gmt_queue_closed(struct gmt_queue *queue, bool listed);
/* Like gmt_queue_each, closed queues with pending commands included. */
void gmt_queue_each_alive(void (*visit)(struct gmt_queue *, void *), void *arg);
/* All of a context's queues that have pending commands; writes at most room of them, and returns how many there are. */
uint32_t gmt_queue_pending(const struct gmt_context *context, struct gmt_use *out, uint32_t room);
/* Gives up the markers and closed queues of a context that goes to sleep or was terminated. */
void gmt_queue_drop(struct gmt_context *context);

#endif
