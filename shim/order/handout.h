/*
 * handout.h: blocks that are handed out while commands on an in-order queue still use them. That is safe as long as
 * everything else in the context runs after these commands. A queue or user event that is created later would break this.
 * gmt_uses_hand_out (inflight.h) notes hand-outs on the queue.
 */
#ifndef GMT_HANDOUT_H
#define GMT_HANDOUT_H

#include "../registry/objects.h"

/* A queue was created in a context: has it wait for the commands after which blocks were handed out. May flush or finish their queues. */
void gmt_queue_order_behind(struct gmt_queue *fresh);
/* A user event was created, so commands may wait for the program: puts markers after all hand-outs so far. */
void gmt_queue_note_gate(struct gmt_context *context);
/* The same for semaphores, from here on and in all contexts. */
void gmt_queue_note_gate_outside(void);

#endif
