/*
 * handout.h: blocks that are handed out while commands on an in-order queue still use them. That is safe as long as
 * everything else in the context runs behind these commands. Queues and user events that appear later would break it.
 * gmt_uses_hand_out (inflight.h) notes on the queue what was handed out.
 */
#ifndef GMT_HANDOUT_H
#define GMT_HANDOUT_H

#include "../registry/objects.h"

/* A queue appears in a context: puts it behind the commands that blocks were handed out behind. May flush their queues. */
void gmt_queue_order_behind(struct gmt_queue *fresh);
/* A user event appears: what runs behind it may wait for the program, so markers go behind what was handed out so far. */
void gmt_queue_gate(struct gmt_context *context);
/* The same for semaphores: from here on, in all contexts. */
void gmt_queue_gate_outside(void);

#endif
