/*
 * context_holds.h: how long the program can use a context. In the driver, queues keep a context that the program has
 * released, and a program may ask its queue for it. It has a pool as long. Then it sleeps, with no block in the pool, as
 * each would keep it alive in the driver: whatever else the program holds of it may lead to it again, and wake it.
 */
#ifndef GMT_CONTEXT_HOLDS_H
#define GMT_CONTEXT_HOLDS_H

#include "../../internal/wire/event.h"
#include "../registry/objects.h"

/* The program's first own reference, or a queue. */
void gmt_context_hold(struct gmt_context *context);
/* It ends. True if it was the last: the context sleeps. To be called before the driver releases what ends. */
bool gmt_context_let_go(struct gmt_context *context);
/* Writes a CONTEXT event. */
void gmt_context_write(const struct gmt_context *context, enum gmtlife life);

#endif
