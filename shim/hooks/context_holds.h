/*
 * context_holds.h: how long the program can use a context. Its own references and its queues keep a context, because a
 * queue can be asked for its context. Until the last of them ends, the context has a pool. Then it sleeps: the pool gives up
 * its blocks, since each would keep the context alive in the driver. Memory, or any other object of the context that the
 * program still holds, may lead to the context again, which wakes it.
 */
#ifndef GMT_CONTEXT_HOLDS_H
#define GMT_CONTEXT_HOLDS_H

#include "../../internal/wire/event.h"
#include "../registry/objects.h"

/* Notes the program's first own reference, or a queue. */
void gmt_context_hold(struct gmt_context *context);
/* Notes the end of one of these, before the driver releases it. True if it was the last: the context sleeps. */
bool gmt_context_let_go(struct gmt_context *context);
/* Writes a CONTEXT event. */
void gmt_context_write_event(const struct gmt_context *context, enum gmtlife life);

#endif
