/*
 * hold.h: the lock under which real objects come and go, and the end of objects. The lock is held while contents move, but not
 * while a call waits for others, and never waited for by a release or for long by a callback.
 */
#ifndef GMT_SPILL_HOLD_H
#define GMT_SPILL_HOLD_H

#include "object.h"

/* The residency lock. False: this is a callback, and another thread has it. */
bool gmt_spill_lock(void);
void gmt_spill_unlock(void);
/* One hold less. With the last one the object ends: its callbacks run, its memory goes. */
void gmt_spill_drop_hold(struct gmt_spill_object *object);
/* A sub-buffer joins its root. */
bool gmt_spill_add_to_root(struct gmt_spill_object *child);

#endif
