/*
 * held.h: how many contexts, queues, programs, kernels, events, samplers and command buffers the program holds, by call
 * site. A site is a number for a type of object and a tag. Any thread may call these functions.
 */
#ifndef GMT_HELD_H
#define GMT_HELD_H

#include "../../internal/wire/event.h"
#include "../base/opencl.h"

/* The site of a type and a tag, from 1. Beyond the most that there can be, tags share the site of tag 0. */
uint32_t gmt_held_site(enum gmtheld type, uint32_t tag);
/* Counts an object that a site created. time: now if the caller has just read the clock, else 0. */
void gmt_held_count_created(uint32_t site, uint64_t time);
/* Counts an object that no table has room for: its end will not be seen. */
void gmt_held_count_untracked(uint32_t site, uint64_t time);
/* Counts the end of an object of a site: its last reference was released. 0: the object was not counted. */
void gmt_held_count_released(uint32_t site);
/* Writes the records that are due; time: now. Those of events follow at most a hundred times a second, others at once. */
void gmt_held_write_due(uint64_t time);
/* The process exits: writes all changes, and from here on each one at once. */
void gmt_held_write_rest(void);

#endif
