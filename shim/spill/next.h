/* next.h: when a root is used next, guessed by how often it was used before. Time counts commands. */
#ifndef GMT_SPILL_NEXT_H
#define GMT_SPILL_NEXT_H

#include "object.h"

/* A command has used objects: its time. */
uint64_t gmt_spill_next_tick(void);
/* It was used at tick. Under its lock, like the next. */
void gmt_spill_note_used(struct gmt_spill_object *root, uint64_t tick);
/* How far away its next use is. Nothing is lost by a wrong answer but time. */
uint64_t gmt_spill_next_use_distance(const struct gmt_spill_object *root);

#endif
