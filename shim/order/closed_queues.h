/* closed_queues.h: the end of queues, and queues that the program has released while commands were pending. */
#ifndef GMT_CLOSED_QUEUES_H
#define GMT_CLOSED_QUEUES_H

#include "../registry/objects.h"

/* Removes a queue from its table, before the program's last release reaches the driver. Pass the result to gmt_queue_end_close. */
bool gmt_queue_begin_close(struct gmt_queue *queue);
/* Called after that release. */
void gmt_queue_end_close(struct gmt_queue *queue, bool listed);
/* Like gmt_queue_each, closed queues with pending commands included. */
void gmt_queue_each_alive(void (*visit)(struct gmt_queue *, void *), void *arg);
/* Stores the latest commands of a context's queues that have pending ones, at most room, and returns how many there are. */
uint32_t gmt_queue_list_pending(const struct gmt_context *context, struct gmt_use *out, uint32_t room);
/* Gives up the markers and closed queues of a context that goes to sleep or was terminated. */
void gmt_context_drop_markers(struct gmt_context *context);

#endif
